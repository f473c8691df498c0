/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls over several requests: the core gets an array of its own, and what it retired is null in
 * the program's afterwards. */
#include <stdlib.h>
#include "mpi/front/front.h"

struct several {
	struct front_array requests;
	MPI_Status *statuses; /* MPI_STATUSES_IGNORE: not wanted */
	MPI_Status small[FRONT_ARRAY_SMALL];
	bool failed;
};

/* A count that is negative or an array that is missing reaches the core, which refuses it. */
static void several_begin(struct several *s, int count, front_request *requests,
			  front_status *statuses)
{
	s->requests.at = NULL;
	s->statuses = MPI_STATUSES_IGNORE;
	s->failed = false;
	if (!requests || count <= 0)
		return;
	s->failed = !front_array_reserve(&s->requests, count);
	for (int i = 0; !s->failed && i < count; i++)
		s->requests.at[i] = front_request_in(requests[i]);
	if (front_ignored(statuses) || s->failed)
		return;
	s->statuses = s->small;
	if (count > FRONT_ARRAY_SMALL)
		s->statuses = malloc((size_t)count * sizeof(MPI_Status));
	s->failed = !s->statuses;
	for (int i = 0; !s->failed && i < count; i++)
		front_status_begin(&s->statuses[i]);
}

/* statuses_count: how many of the statuses the call may have filled. */
static int several_end(struct several *s, int count, front_request *requests,
		       front_status *statuses, int statuses_count, int rc)
{
	if (s->requests.at && !s->failed) {
		for (int i = 0; i < count; i++)
			if (s->requests.at[i] == MPI_REQUEST_NULL)
				requests[i] = front_request_out(MPI_REQUEST_NULL);
		if (s->statuses != MPI_STATUSES_IGNORE)
			for (int i = 0; i < statuses_count; i++)
				front_status_end(&statuses[i], &s->statuses[i]);
	}
	if (s->statuses != MPI_STATUSES_IGNORE && s->statuses != s->small)
		free(s->statuses);
	front_array_drop(&s->requests);
	return front_error_out(rc);
}

static int several_no_memory(const char *function)
{
	return api_error(NULL, MPI_ERR_NO_MEM, function);
}

FRONT(int, Waitall, (int count, front_request requests[], front_status *statuses))
{
	struct several s;
	several_begin(&s, count, requests, statuses);
	int rc = s.failed ? several_no_memory("MPI_Waitall")
			  : core_Waitall(count, s.requests.at, s.statuses);
	return several_end(&s, count, requests, statuses, count, rc);
}

FRONT(int, Testall, (int count, front_request requests[], int *flag, front_status *statuses))
{
	struct several s;
	several_begin(&s, count, requests, statuses);
	int rc = s.failed ? several_no_memory("MPI_Testall")
			  : core_Testall(count, s.requests.at, flag, s.statuses);
	return several_end(&s, count, requests, statuses, count, rc);
}

FRONT(int, Waitsome,
      (int count, front_request requests[], int *done, int indices[], front_status *statuses))
{
	struct several s;
	several_begin(&s, count, requests, statuses);
	int rc = s.failed ? several_no_memory("MPI_Waitsome")
			  : core_Waitsome(count, s.requests.at, done, indices, s.statuses);
	return several_end(&s, count, requests, statuses, count, rc);
}

FRONT(int, Testsome,
      (int count, front_request requests[], int *done, int indices[], front_status *statuses))
{
	struct several s;
	several_begin(&s, count, requests, statuses);
	int rc = s.failed ? several_no_memory("MPI_Testsome")
			  : core_Testsome(count, s.requests.at, done, indices, s.statuses);
	return several_end(&s, count, requests, statuses, count, rc);
}

FRONT(int, Waitany, (int count, front_request requests[], int *index, front_status *status))
{
	struct several s;
	MPI_Status one;
	several_begin(&s, count, requests, FRONT_STATUS_IGNORE);
	front_status_begin(&one);
	int rc = s.failed ? several_no_memory("MPI_Waitany")
			  : core_Waitany(count, s.requests.at, index,
					 front_ignored(status) ? MPI_STATUS_IGNORE : &one);
	if (!front_ignored(status))
		front_status_end(status, &one);
	return several_end(&s, count, requests, NULL, 0, rc);
}

FRONT(int, Testany,
      (int count, front_request requests[], int *index, int *flag, front_status *status))
{
	struct several s;
	MPI_Status one;
	several_begin(&s, count, requests, FRONT_STATUS_IGNORE);
	front_status_begin(&one);
	int rc = s.failed ? several_no_memory("MPI_Testany")
			  : core_Testany(count, s.requests.at, index, flag,
					 front_ignored(status) ? MPI_STATUS_IGNORE : &one);
	if (!front_ignored(status))
		front_status_end(status, &one);
	return several_end(&s, count, requests, NULL, 0, rc);
}

FRONT(int, Startall, (int count, front_request requests[]))
{
	struct several s;
	several_begin(&s, count, requests, FRONT_STATUS_IGNORE);
	int rc = s.failed ? several_no_memory("MPI_Startall") : core_Startall(count, s.requests.at);
	return several_end(&s, count, requests, NULL, 0, rc);
}
