/* SPDX-License-Identifier: BSD-3-Clause */
/* Statuses that a program fills or looks into by functions; errors; numbers too large. */
#include <stdlib.h>
#include "mpi/front/front.h"

int front_error_out_slow(int v)
{
	return front_error_out_known(v, v > MPI_ERR_LASTCODE
					    ? v - MPI_ERR_LASTCODE + FRONT_ERR_LASTCODE
					    : v);
}

int front_too_large(const char *function)
{
	log_warn("%s: a count or displacement beyond 2147483647 is not supported by this version "
		 "of Hale; use a larger datatype",
		 function);
	return front_error_out(api_error(NULL, MPI_ERR_COUNT, function));
}

bool front_narrow(struct front_narrow *n, const void *array, int count)
{
	const MPI_Count *from = array;

	if (!from || count < 0)
		return true;
	n->at = malloc((size_t)(count ? count : 1) * sizeof(int));
	if (!n->at)
		return false;
	for (int i = 0; i < count; i++) {
		if (!front_fits(from[i]))
			return false;
		n->at[i] = (int)from[i];
	}
	return true;
}

void front_narrow_drop(struct front_narrow *n)
{
	free(n->at);
}

/* ---- what a program says in a status ---- */

#define STATUS_SET(name, parameters, call)                                                         \
	FRONT(int, name, parameters)                                                               \
	{                                                                                          \
		MPI_Status s;                                                                      \
		if (!status || front_ignored(status))                                              \
			return front_error_out(api_error(NULL, MPI_ERR_ARG, "MPI_" #name));        \
		front_status_in(&s, status);                                                       \
		int rc = call;                                                                     \
		front_status_hidden_out(status, &s);                                               \
		return front_error_out(rc);                                                        \
	}
STATUS_SET(Status_set_cancelled, (front_status * status, int flag),
	   core_Status_set_cancelled(&s, flag))
STATUS_SET(Status_set_elements, (front_status * status, front_type type, int count),
	   core_Status_set_elements(&s, front_type_in(type), count))
STATUS_SET(Status_set_elements_x, (front_status * status, front_type type, MPI_Count count),
	   core_Status_set_elements_x(&s, front_type_in(type), count))
STATUS_SET(Status_set_elements_c, (front_status * status, front_type type, MPI_Count count),
	   core_Status_set_elements_x(&s, front_type_in(type), count))

FRONT(int, Get_elements_c, (const front_status *status, front_type type, MPI_Count *count))
{
	return front_Get_elements_x(status, type, count);
}

#define STATUS_FIELD(lower, FIELD)                                                                 \
	FRONT(int, Status_get_##lower, (const front_status *status, int *value))                   \
	{                                                                                          \
		if (!status || front_ignored(status) || !value)                                    \
			return front_error_out(MPI_ERR_ARG);                                       \
		*value = FIELD(status);                                                            \
		return MPI_SUCCESS;                                                                \
	}                                                                                          \
	FRONT(int, Status_set_##lower, (front_status * status, int value))                         \
	{                                                                                          \
		if (!status || front_ignored(status))                                              \
			return front_error_out(MPI_ERR_ARG);                                       \
		FIELD(status) = value;                                                             \
		return MPI_SUCCESS;                                                                \
	}
STATUS_FIELD(source, FRONT_SOURCE)
STATUS_FIELD(tag, FRONT_TAG)
STATUS_FIELD(error, FRONT_ERROR)
