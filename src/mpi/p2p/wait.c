/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Wait and MPI_Test for one, any, some, all requests. */
#include "deliver/redundant.h"
#include "mpi/p2p/replay.h"

#include "mpi/task/intask.h"

/* What all forms over several requests check first, in Open MPI's order. */
static int check_array(int count, const MPI_Request *requests, bool outputs_there)
{
	int rc = MPI_SUCCESS;

	if (!requests && count != 0)
		rc = MPI_ERR_REQUEST;
	for (int i = 0; i < count && !rc; i++)
		if (!request_ok(request_of(requests[i])))
			rc = MPI_ERR_REQUEST;
	if (count < 0 || (count > 0 && !outputs_there))
		rc = MPI_ERR_ARG;
	return rc;
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
	API_ENTER("MPI_Wait");
	struct request *r = request ? request_of(*request) : NULL;
	if (UNLIKELY(!request_ok(r)))
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	if (UNLIKELY(request_idle(r))) {
		status_copy_single(status, &ompi_status_empty);
		return API_LEAVE(NULL, MPI_SUCCESS);
	}
	if (!r->complete)
		match_wait(r);
	struct failure f = {0};
	MPI_Status st;
	request_retire(request, &st, &f);
	status_copy_single(status, &st);
	return request_leave(&f, api_name);
}
API_ALIAS(Wait);

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	API_ENTER("MPI_Test");
	struct request *r = request ? request_of(*request) : NULL;
	if (UNLIKELY(!request_ok(r)))
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	if (UNLIKELY(!flag))
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (UNLIKELY(request_idle(r))) {
		*flag = 1;
		status_copy_single(status, &ompi_status_empty);
		return API_LEAVE(NULL, MPI_SUCCESS);
	}
	if (UNLIKELY(redundant_on)) {
		*flag = replay_one(r);
	} else {
		if (!r->complete)
			match_progress();
		*flag = r->complete;
	}
	if (!*flag)
		return p2p_leave_empty(api_name);
	struct failure f = {0};
	MPI_Status st;
	request_retire(request, &st, &f);
	status_copy_single(status, &st);
	return request_leave(&f, api_name);
}
API_ALIAS(Test);

/* ---- all ---- */

/* Retires them all; statuses may be MPI_STATUSES_IGNORE. With an error among them the handler gets
 * that error and the caller MPI_ERR_IN_STATUS. */
static int retire_all(int count, MPI_Request *requests, MPI_Status *statuses, const char *function)
{
	struct failure f = {0};

	for (int i = 0; i < count; i++) {
		MPI_Status *out = statuses == MPI_STATUSES_IGNORE ? NULL : &statuses[i];
		if (!request_idle(request_of(requests[i])))
			request_retire(&requests[i], out, &f);
		else if (out)
			*out = ompi_status_empty;
	}
	return request_leave(&f, function) ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int PMPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	API_ENTER("MPI_Waitall");
	int bad = check_array(count, requests, true);
	if (UNLIKELY(bad))
		return API_FAIL(NULL, bad);
	for (int i = 0; i < count; i++) {
		struct request *r = request_of(requests[i]);
		if (!r->complete && !request_idle(r))
			match_wait(r);
	}
	return retire_all(count, requests, statuses, api_name);
}
API_ALIAS(Waitall);

static bool all_complete(int count, const MPI_Request *requests)
{
	for (int i = 0; i < count; i++) {
		const struct request *r = request_of(requests[i]);
		if (!r->complete && !request_idle(r))
			return false;
	}
	return true;
}

int PMPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	API_ENTER("MPI_Testall");
	int bad = check_array(count, requests, true);
	if (!flag)
		bad = MPI_ERR_ARG;
	if (UNLIKELY(bad))
		return API_FAIL(NULL, bad);
	*flag =
	    UNLIKELY(redundant_on) ? replay_all(count, requests) : all_complete(count, requests);
	if (!*flag && !redundant_on) {
		match_progress();
		*flag = all_complete(count, requests);
	}
	if (*flag)
		return retire_all(count, requests, statuses, api_name);
	return p2p_leave_empty(api_name);
}
API_ALIAS(Testall);

/* ---- any ---- */

struct wait_pending {
	int count;
	const MPI_Request *requests;
	int active; /* that are not idle */
	int first;  /* complete one, or MPI_UNDEFINED */
};

static bool pending_look(void *arg)
{
	struct wait_pending *p = arg;

	const int32_t *chosen;
	int n;

	p->active = 0;
	if (UNLIKELY(tasklog_now != NULL) &&
	    (chosen = intask_chosen(p->count, p->requests, &n)) != NULL) {
		p->first = chosen[0];
		p->active = 1;
		return true;
	}
	p->first = MPI_UNDEFINED;
	for (int i = 0; i < p->count; i++) {
		const struct request *r = request_of(p->requests[i]);
		if (request_idle(r))
			continue;
		p->active++;
		if (r->complete) {
			p->first = i;
			return true;
		}
	}
	return false;
}

/* Waitsome and Testsome take all from the first index on; the others what was complete first. */
static int pending_first(const struct wait_pending *p)
{
	return tasklog_now ? p->first : request_first(p->count, p->requests, p->first);
}

static int retire_any(MPI_Request *requests, int i, int *indx, MPI_Status *status,
		      const char *function)
{
	struct failure f = {0};
	MPI_Status st;

	*indx = i;
	if (UNLIKELY(tasklog_now != NULL))
		intask_choose(&i, 1);
	request_retire(&requests[i], &st, &f);
	status_copy_single(status, &st);
	return request_leave(&f, function);
}

/* With replicas; flag as in MPI_Testany. */
static int any_replayed(int count, MPI_Request *requests, bool wait, int *indx, int *flag,
			MPI_Status *status, const char *function)
{
	int32_t found;
	int n = replay_some(count, requests, wait, 1, &found);

	*flag = n != 0;
	*indx = MPI_UNDEFINED;
	if (n == 0)
		return p2p_leave_empty(function);
	if (n > 0)
		return retire_any(requests, found, indx, status, function);
	status_copy_single(status, &ompi_status_empty);
	return api_leave(NULL, MPI_SUCCESS, function);
}

int PMPI_Waitany(int count, MPI_Request requests[], int *indx, MPI_Status *status)
{
	API_ENTER("MPI_Waitany");
	int bad = check_array(count, requests, indx != NULL);
	if (UNLIKELY(bad || !indx))
		return API_FAIL(NULL, bad ? bad : MPI_ERR_ARG);
	if (UNLIKELY(redundant_on)) {
		int flag;
		return any_replayed(count, requests, true, indx, &flag, status, api_name);
	}
	struct wait_pending p = {.count = count, .requests = requests};
	if (!pending_look(&p)) {
		if (!p.active) {
			*indx = MPI_UNDEFINED;
			status_copy_single(status, &ompi_status_empty);
			return API_LEAVE(NULL, MPI_SUCCESS);
		}
		match_wait_until(pending_look, &p);
	}
	return retire_any(requests, pending_first(&p), indx, status, api_name);
}
API_ALIAS(Waitany);

int PMPI_Testany(int count, MPI_Request requests[], int *indx, int *flag, MPI_Status *status)
{
	API_ENTER("MPI_Testany");
	int bad = check_array(count, requests, indx && flag);
	if (UNLIKELY(bad || !indx || !flag))
		return API_FAIL(NULL, bad ? bad : MPI_ERR_ARG);
	if (UNLIKELY(redundant_on))
		return any_replayed(count, requests, false, indx, flag, status, api_name);
	struct wait_pending p = {.count = count, .requests = requests};
	bool found = pending_look(&p);
	if (!found && p.active) {
		match_progress();
		found = pending_look(&p);
	}
	*flag = found || !p.active;
	*indx = MPI_UNDEFINED;
	if (found)
		return retire_any(requests, pending_first(&p), indx, status, api_name);
	if (!*flag)
		return p2p_leave_empty(api_name);
	status_copy_single(status, &ompi_status_empty);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Testany);

/* ---- some ---- */

/* Those that are complete; p has been looked at. An execution of a task after an error gets those
 * that the earlier one got. */
static int some_complete(int count, const MPI_Request *requests, const struct wait_pending *p,
			 int *indices)
{
	const int32_t *chosen = NULL;
	int n = 0;

	if (UNLIKELY(tasklog_now != NULL))
		chosen = intask_chosen(count, requests, &n);
	for (int i = 0; chosen && i < n; i++)
		indices[i] = chosen[i];
	for (int i = p->first; !chosen && i != MPI_UNDEFINED && i < count; i++)
		if (!request_idle(request_of(requests[i])) && request_of(requests[i])->complete)
			indices[n++] = i;
	if (UNLIKELY(tasklog_now != NULL))
		intask_choose(indices, n);
	return n;
}

static int retire_some(int count, MPI_Request *requests, const struct wait_pending *p,
		       int *outcount, int *indices, MPI_Status *statuses, const char *function)
{
	struct failure f = {0};
	int n;

	if (!p->active) {
		*outcount = MPI_UNDEFINED;
		return request_leave(&f, function);
	}
	*outcount = n = some_complete(count, requests, p, indices);
	for (int i = 0; i < n; i++)
		request_retire(&requests[indices[i]],
			       statuses == MPI_STATUSES_IGNORE ? NULL : &statuses[i], &f);
	if (!n)
		return p2p_leave_empty(function);
	return request_leave(&f, function) ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

static int some_replayed(int count, MPI_Request *requests, bool wait, int *outcount, int *indices,
			 MPI_Status *statuses, const char *function)
{
	struct failure f = {0};
	int32_t found[REPLAY_MAX];
	int n = replay_some(count, requests, wait, REPLAY_MAX, found);

	*outcount = n;
	if (n == 0)
		return p2p_leave_empty(function);
	for (int i = 0; i < n; i++) {
		request_retire(&requests[found[i]],
			       statuses == MPI_STATUSES_IGNORE ? NULL : &statuses[i], &f);
		indices[i] = found[i];
	}
	return request_leave(&f, function) ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int PMPI_Waitsome(int count, MPI_Request requests[], int *outcount, int indices[],
		  MPI_Status statuses[])
{
	API_ENTER("MPI_Waitsome");
	int bad = check_array(count, requests, outcount && indices);
	if (UNLIKELY(bad || !outcount))
		return API_FAIL(NULL, bad ? bad : MPI_ERR_ARG);
	if (UNLIKELY(redundant_on))
		return some_replayed(count, requests, true, outcount, indices, statuses, api_name);
	struct wait_pending p = {.count = count, .requests = requests};
	/* One round first, so that a loop of Waitsome takes what came meanwhile, all at once. */
	match_progress();
	if (!pending_look(&p) && p.active)
		match_wait_until(pending_look, &p);
	return retire_some(count, requests, &p, outcount, indices, statuses, api_name);
}
API_ALIAS(Waitsome);

int PMPI_Testsome(int count, MPI_Request requests[], int *outcount, int indices[],
		  MPI_Status statuses[])
{
	API_ENTER("MPI_Testsome");
	int bad = check_array(count, requests, outcount && indices);
	if (UNLIKELY(bad || !outcount))
		return API_FAIL(NULL, bad ? bad : MPI_ERR_ARG);
	if (UNLIKELY(redundant_on))
		return some_replayed(count, requests, false, outcount, indices, statuses, api_name);
	struct wait_pending p = {.count = count, .requests = requests};
	match_progress();
	pending_look(&p);
	return retire_some(count, requests, &p, outcount, indices, statuses, api_name);
}
API_ALIAS(Testsome);
