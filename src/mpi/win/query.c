/* SPDX-License-Identifier: BSD-3-Clause */
/* What one can ask a window, and its attributes, hints and error handler. */
#include <string.h>
#include "mpi/win/win.h"

int PMPI_Win_get_group(MPI_Win win, MPI_Group *group)
{
	WIN_ENTER("MPI_Win_get_group", w, win);
	if (!group)
		return WIN_LEAVE(w, MPI_ERR_ARG);
	group_retain(w->comm->group);
	*group = group_handle(w->comm->group);
	return WIN_LEAVE(w, MPI_SUCCESS);
}
API_ALIAS(Win_get_group);

int PMPI_Win_set_name(MPI_Win win, const char *name)
{
	WIN_ENTER("MPI_Win_set_name", w, win);
	if (!name)
		return WIN_LEAVE(w, MPI_ERR_ARG);
	strncpy(w->name, name, sizeof(w->name) - 1);
	return WIN_LEAVE(w, MPI_SUCCESS);
}
API_ALIAS(Win_set_name);

int PMPI_Win_get_name(MPI_Win win, char *name, int *resultlen)
{
	WIN_ENTER("MPI_Win_get_name", w, win);
	if (!name || !resultlen)
		return WIN_LEAVE(w, MPI_ERR_ARG);
	size_t n = strlen(w->name);
	memcpy(name, w->name, n + 1);
	*resultlen = (int)n;
	return WIN_LEAVE(w, MPI_SUCCESS);
}
API_ALIAS(Win_get_name);

/* ---- hints: the standard's, with what holds when nothing is said ---- */

static const struct {
	const char *key, *value;
} win_hints[] = {
    {"no_locks", "false"},
    {"accumulate_ordering", "rar,raw,war,waw"},
    {"accumulate_ops", "same_op_no_op"},
    {"same_size", "false"},
    {"same_disp_unit", "false"},
    {"alloc_shared_noncontig", "false"},
};

int PMPI_Win_set_info(MPI_Win win, MPI_Info info)
{
	WIN_ENTER("MPI_Win_set_info", w, win);
	struct info *from = info_of(info);
	if (info == MPI_INFO_NULL || !info_ok(from))
		return WIN_LEAVE(w, MPI_ERR_INFO);
	int rc = w->info ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	for (size_t i = 0; i < ARRAY_LEN(win_hints) && !rc; i++) {
		const char *value = info_get(from, win_hints[i].key);
		if (value)
			rc = info_set(w->info, win_hints[i].key, value);
	}
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_set_info);

int PMPI_Win_get_info(MPI_Win win, MPI_Info *info)
{
	WIN_ENTER("MPI_Win_get_info", w, win);
	if (!info)
		return WIN_LEAVE(w, MPI_ERR_INFO);
	struct info *all = info_new();
	int rc = all ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	for (size_t i = 0; i < ARRAY_LEN(win_hints) && !rc; i++) {
		const char *value = w->info ? info_get(w->info, win_hints[i].key) : NULL;
		rc = info_set(all, win_hints[i].key, value ? value : win_hints[i].value);
	}
	if (rc)
		info_release(all);
	else
		*info = info_handle(all);
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_get_info);

/* ---- attributes ---- */

int PMPI_Win_set_attr(MPI_Win win, int keyval, void *value)
{
	WIN_ENTER("MPI_Win_set_attr", w, win);
	union attr_value v = {.pointer = value};
	return WIN_LEAVE(w, attr_set(ATTR_WIN, w, &w->attrs, keyval, ATTR_C, v));
}
API_ALIAS(Win_set_attr);

int PMPI_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag)
{
	WIN_ENTER("MPI_Win_get_attr", w, win);
	union attr_value v = {.pointer = NULL};
	if (!value || !flag)
		return WIN_LEAVE(w, MPI_ERR_ARG);
	if (keyval == MPI_KEYVAL_INVALID)
		return WIN_LEAVE(w, MPI_ERR_KEYVAL);
	int rc = attr_get(ATTR_WIN, w->attrs, keyval, ATTR_C, &v, flag);
	if (!rc && *flag)
		memcpy(value, &v.pointer, sizeof(void *));
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_get_attr);

int PMPI_Win_delete_attr(MPI_Win win, int keyval)
{
	WIN_ENTER("MPI_Win_delete_attr", w, win);
	return WIN_LEAVE(w, attr_delete(ATTR_WIN, w, &w->attrs, keyval));
}
API_ALIAS(Win_delete_attr);

/* ---- error handler ---- */

int PMPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler)
{
	WIN_ENTER("MPI_Win_set_errhandler", w, win);
	struct errhandler *e = errhandler_of(errhandler);
	if (!errhandler_fits(e, ERRHANDLER_WIN))
		return WIN_LEAVE(w, MPI_ERR_ARG);
	object_retain(&e->obj);
	errhandler_release(w->errhandler);
	w->errhandler = e;
	return WIN_LEAVE(w, MPI_SUCCESS);
}
API_ALIAS(Win_set_errhandler);

int PMPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler)
{
	WIN_ENTER("MPI_Win_get_errhandler", w, win);
	if (!errhandler)
		return WIN_LEAVE(w, MPI_ERR_ARG);
	object_retain(&w->errhandler->obj);
	*errhandler = errhandler_handle(w->errhandler);
	return WIN_LEAVE(w, MPI_SUCCESS);
}
API_ALIAS(Win_get_errhandler);

int PMPI_Win_call_errhandler(MPI_Win win, int errorcode)
{
	WIN_ENTER("MPI_Win_call_errhandler", w, win);
	win_leave(w, errorcode, api_name);
	return MPI_SUCCESS;
}
API_ALIAS(Win_call_errhandler);
