/* SPDX-License-Identifier: BSD-3-Clause */
/* The tool interface (MPI-4.1 chapter 15), with no control variable, no performance variable, no
 * category, no event and no source of events: tools that enumerate find none and go on. Any index,
 * handle or name is not valid. */
#include "mpi/api.h"
#include "mpi/mpi4.h"

static int users; /* MPI_T_init_thread minus MPI_T_finalize */
static int sessions;

int PMPI_T_init_thread(int required, int *provided)
{
	users++;
	if (provided)
		*provided = MPI_THREAD_MULTIPLE;
	return MPI_SUCCESS;
}
API_ALIAS(T_init_thread);

int PMPI_T_finalize(void)
{
	if (!users)
		return MPI_T_ERR_NOT_INITIALIZED;
	users--;
	return MPI_SUCCESS;
}
API_ALIAS(T_finalize);

/* How many there are: none. */
#define T_NUMBER(name)                                                                             \
	int PMPI_T_##name(int *number)                                                             \
	{                                                                                          \
		if (!users)                                                                        \
			return MPI_T_ERR_NOT_INITIALIZED;                                          \
		if (!number)                                                                       \
			return MPI_ERR_ARG;                                                        \
		*number = 0;                                                                       \
		return MPI_SUCCESS;                                                                \
	}                                                                                          \
	API_ALIAS(T_##name)

/* What can only fail, because there is nothing that its argument could name. */
#define T_NONE(name, parameters, error)                                                            \
	int PMPI_T_##name parameters                                                               \
	{                                                                                          \
		return users ? (error) : MPI_T_ERR_NOT_INITIALIZED;                                \
	}                                                                                          \
	API_ALIAS(T_##name)

T_NUMBER(cvar_get_num);
T_NUMBER(pvar_get_num);
T_NUMBER(category_get_num);
T_NUMBER(category_changed);

T_NONE(cvar_get_info,
       (int index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype,
	MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope),
       MPI_T_ERR_INVALID_INDEX);
T_NONE(cvar_get_index, (const char *name, int *index), MPI_T_ERR_INVALID_NAME);
T_NONE(cvar_handle_alloc, (int index, void *object, MPI_T_cvar_handle *handle, int *count),
       MPI_T_ERR_INVALID_INDEX);
T_NONE(cvar_handle_free, (MPI_T_cvar_handle * handle), MPI_T_ERR_INVALID_HANDLE);
T_NONE(cvar_read, (MPI_T_cvar_handle handle, void *buf), MPI_T_ERR_INVALID_HANDLE);
T_NONE(cvar_write, (MPI_T_cvar_handle handle, const void *buf), MPI_T_ERR_INVALID_HANDLE);

T_NONE(category_get_info,
       (int index, char *name, int *name_len, char *desc, int *desc_len, int *num_cvars,
	int *num_pvars, int *num_categories),
       MPI_T_ERR_INVALID_INDEX);
T_NONE(category_get_index, (const char *name, int *index), MPI_T_ERR_INVALID_NAME);
T_NONE(category_get_cvars, (int index, int len, int indices[]), MPI_T_ERR_INVALID_INDEX);
T_NONE(category_get_pvars, (int index, int len, int indices[]), MPI_T_ERR_INVALID_INDEX);
T_NONE(category_get_categories, (int index, int len, int indices[]), MPI_T_ERR_INVALID_INDEX);

T_NONE(pvar_get_info,
       (int index, char *name, int *name_len, int *verbosity, int *var_class,
	MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind,
	int *readonly, int *continuous, int *atomic),
       MPI_T_ERR_INVALID_INDEX);
T_NONE(pvar_get_index, (const char *name, int var_class, int *index), MPI_T_ERR_INVALID_NAME);

/* Sessions can be made: they only have nothing to contain. */
int PMPI_T_pvar_session_create(MPI_T_pvar_session *session)
{
	if (!users)
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!session)
		return MPI_ERR_ARG;
	sessions++;
	*session = (MPI_T_pvar_session)&sessions;
	return MPI_SUCCESS;
}
API_ALIAS(T_pvar_session_create);

int PMPI_T_pvar_session_free(MPI_T_pvar_session *session)
{
	if (!users)
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!session || *session != (MPI_T_pvar_session)&sessions || !sessions)
		return MPI_T_ERR_INVALID_SESSION;
	sessions--;
	*session = MPI_T_PVAR_SESSION_NULL;
	return MPI_SUCCESS;
}
API_ALIAS(T_pvar_session_free);

T_NONE(pvar_handle_alloc,
       (MPI_T_pvar_session session, int index, void *object, MPI_T_pvar_handle *handle, int *count),
       MPI_T_ERR_INVALID_INDEX);
T_NONE(pvar_handle_free, (MPI_T_pvar_session session, MPI_T_pvar_handle *handle),
       MPI_T_ERR_INVALID_HANDLE);
T_NONE(pvar_read, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf),
       MPI_T_ERR_INVALID_HANDLE);
T_NONE(pvar_write, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf),
       MPI_T_ERR_INVALID_HANDLE);
T_NONE(pvar_readreset, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf),
       MPI_T_ERR_INVALID_HANDLE);

/* MPI_T_PVAR_ALL_HANDLES of a session are none: done already. */
#define T_ALL(name)                                                                                \
	int PMPI_T_##name(MPI_T_pvar_session session, MPI_T_pvar_handle handle)                    \
	{                                                                                          \
		if (!users)                                                                        \
			return MPI_T_ERR_NOT_INITIALIZED;                                          \
		return handle == MPI_T_PVAR_ALL_HANDLES ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;  \
	}                                                                                          \
	API_ALIAS(T_##name)

T_ALL(pvar_start);
T_ALL(pvar_stop);
T_ALL(pvar_reset);

T_NONE(enum_get_info, (MPI_T_enum enumtype, int *num, char *name, int *name_len),
       MPI_T_ERR_INVALID_HANDLE);
T_NONE(enum_get_item, (MPI_T_enum enumtype, int index, int *value, char *name, int *name_len),
       MPI_T_ERR_INVALID_HANDLE);

/* ---- events (MPI-4.0) ---- */

T_NUMBER(source_get_num);
T_NUMBER(event_get_num);

T_NONE(category_get_num_events, (int index, int *number), MPI_T_ERR_INVALID_INDEX);
T_NONE(category_get_events, (int index, int len, int indices[]), MPI_T_ERR_INVALID_INDEX);

T_NONE(source_get_info,
       (int index, char *name, int *name_len, char *desc, int *desc_len, int *ordering,
	MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info),
       MPI_T_ERR_INVALID_INDEX);
T_NONE(source_get_timestamp, (int index, MPI_Count *timestamp), MPI_T_ERR_INVALID_INDEX);

T_NONE(event_get_index, (const char *name, int *index), MPI_T_ERR_INVALID_NAME);
T_NONE(event_get_info,
       (int index, char *name, int *name_len, int *verbosity, MPI_Datatype types[],
	MPI_Aint displacements[], int *elements, MPI_T_enum *enumtype, MPI_Info *info, char *desc,
	int *desc_len, int *bind),
       MPI_T_ERR_INVALID_INDEX);
T_NONE(event_handle_alloc, (int index, void *object, MPI_Info info, void **event),
       MPI_T_ERR_INVALID_INDEX);
T_NONE(event_handle_free, (void *event, void *data, void *function), MPI_T_ERR_INVALID_HANDLE);
T_NONE(event_handle_get_info, (void *event, MPI_Info *info), MPI_T_ERR_INVALID_HANDLE);
T_NONE(event_handle_set_info, (void *event, MPI_Info info), MPI_T_ERR_INVALID_HANDLE);
T_NONE(event_register_callback,
       (void *event, int safety, MPI_Info info, void *data, void *function),
       MPI_T_ERR_INVALID_HANDLE);
T_NONE(event_callback_get_info, (void *event, int safety, MPI_Info *info),
       MPI_T_ERR_INVALID_HANDLE);
T_NONE(event_callback_set_info, (void *event, int safety, MPI_Info info), MPI_T_ERR_INVALID_HANDLE);
T_NONE(event_set_dropped_handler, (void *event, void *function), MPI_T_ERR_INVALID_HANDLE);
T_NONE(event_copy, (void *instance, void *buffer), MPI_T_ERR_INVALID_HANDLE);
T_NONE(event_read, (void *instance, int element, void *buffer), MPI_T_ERR_INVALID_HANDLE);
T_NONE(event_get_source, (void *instance, int *index), MPI_T_ERR_INVALID_HANDLE);
T_NONE(event_get_timestamp, (void *instance, MPI_Count *timestamp), MPI_T_ERR_INVALID_HANDLE);
