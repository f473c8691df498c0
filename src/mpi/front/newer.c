/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of MPI-4.1 that the core does not have: the status of several requests without completing
 * them (MPI-4.1 3.7.6), the type of a value with an index (6.9.4), resources of the hardware (9.1). */
#include "mpi/front/front.h"
#include "mpi/p2p/p2p.h"

/* Is it complete? One that is null or not started counts as complete. */
static int request_look(front_request request, bool *complete, bool *idle, front_status *status)
{
	void *r = front_request_in(request);
	int flag = 0;
	MPI_Status s;

	*complete = *idle = false;
	if (request_ok(r))
		*idle = request_idle(r);
	front_status_begin(&s);
	int rc = core_Request_get_status(r, &flag, &s);
	*complete = flag;
	if (!rc && flag && status)
		front_status_end(status, &s);
	return rc;
}

static front_status *status_at(front_status *statuses, int i)
{
	return front_ignored(statuses) ? NULL : &statuses[i];
}

static int arguments_bad(int count, const void *requests, bool outputs, const char *function)
{
	if (count >= 0 && (requests || !count) && outputs)
		return MPI_SUCCESS;
	return front_error_out(api_error(NULL, MPI_ERR_ARG, function));
}

FRONT(int, Request_get_status_all,
      (int count, const front_request requests[], int *flag, front_status *statuses))
{
	int rc = arguments_bad(count, requests, flag != NULL, "MPI_Request_get_status_all");
	bool complete = true, idle;

	for (int i = 0; !rc && complete && i < count; i++)
		rc = front_error_out(request_look(requests[i], &complete, &idle, NULL));
	if (rc)
		return rc;
	*flag = complete;
	for (int i = 0; !rc && complete && i < count && !front_ignored(statuses); i++) {
		bool still;
		FRONT_ERROR(&statuses[i]) = MPI_SUCCESS;
		rc = front_error_out(request_look(requests[i], &still, &idle, &statuses[i]));
	}
	return rc;
}

FRONT(int, Request_get_status_any,
      (int count, const front_request requests[], int *index, int *flag, front_status *status))
{
	int rc = arguments_bad(count, requests, index && flag, "MPI_Request_get_status_any");
	bool active = false;

	for (int i = 0; !rc && i < count; i++) {
		bool complete, idle;
		rc = front_error_out(
		    request_look(requests[i], &complete, &idle, status_at(status, 0)));
		active = active || !idle;
		if (!rc && complete && !idle) {
			*index = i;
			*flag = 1;
			return rc;
		}
	}
	if (rc)
		return rc;
	*index = FRONT_UNDEFINED;
	*flag = !active;
	return rc;
}

FRONT(int, Request_get_status_some,
      (int count, const front_request requests[], int *done, int indices[], front_status *statuses))
{
	int rc = arguments_bad(count, requests, done && (indices || !count),
			       "MPI_Request_get_status_some");
	int n = 0;
	bool active = false;

	for (int i = 0; !rc && i < count; i++) {
		bool complete, idle;
		rc = front_error_out(
		    request_look(requests[i], &complete, &idle, status_at(statuses, n)));
		active = active || !idle;
		if (!rc && complete && !idle)
			indices[n++] = i;
	}
	if (!rc)
		*done = active ? n : FRONT_UNDEFINED;
	return rc;
}

/* The only resource that this library tells apart is the node. */
FRONT(int, Get_hw_resource_info, (front_info *info))
{
	void *made = NULL;
	int rc = info ? core_Info_create(&made) : MPI_ERR_ARG;

	if (!rc)
		rc = core_Info_set(made, "mpi_shared_memory", "true");
	if (!rc)
		*info = front_info_out(made);
	return front_error_out(rc);
}

FRONT(int, Type_get_value_index, (front_type value, front_type index, front_type *pair))
{
	const struct {
		void *value, *index, *pair;
	} pairs[] = {
	    {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},   {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
	    {MPI_LONG, MPI_INT, MPI_LONG_INT},	   {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
	    {MPI_INT, MPI_INT, MPI_2INT},	   {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
	    {MPI_REAL, MPI_REAL, MPI_2REAL},	   {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
	    {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
	};
	const void *v = front_type_in(value), *i = front_type_in(index);
	void *found = MPI_DATATYPE_NULL;

	if (!pair || !datatype_ok(v) || !datatype_ok(i))
		return front_error_out(api_error(NULL, pair ? MPI_ERR_TYPE : MPI_ERR_ARG,
						 "MPI_Type_get_value_index"));
	for (size_t k = 0; k < ARRAY_LEN(pairs); k++)
		if (pairs[k].value == v && pairs[k].index == i)
			found = pairs[k].pair;
	*pair = front_type_out(found);
	return MPI_SUCCESS;
}

/* No index names an event, so nothing is filled in. */
FRONT(int, T_event_get_info,
      (int event_index, char *name, int *name_len, int *verbosity, front_type array_of_datatypes[],
       MPI_Aint array_of_displacements[], int *num_elements, void **enumtype, front_info *info,
       char *desc, int *desc_len, int *bind))
{
	return front_error_out(core_T_event_get_info(event_index, name, name_len, verbosity, NULL,
						     array_of_displacements, num_elements, enumtype,
						     NULL, desc, desc_len, bind));
}
