/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes, and receives of matched messages. */
#include "mpi/p2p/p2p.h"

#include "mpi/task/intask.h"

const MPI_Status p2p_status_proc_null = {
    .MPI_SOURCE = MPI_PROC_NULL, .MPI_TAG = MPI_ANY_TAG, .MPI_ERROR = MPI_SUCCESS};

#define PROBE_CHECKS()                                                                             \
	struct comm *c = comm_of(comm);                                                            \
	if (!comm_ok(c))                                                                           \
		return API_FAIL(NULL, MPI_ERR_COMM);                                               \
	int bad = check_recv_tag(tag);                                                             \
	if (!bad)                                                                                  \
		bad = check_source(src, c);                                                        \
	if (UNLIKELY(bad))                                                                         \
	return API_FAIL(c, bad)

/* Inside tasks that may be executed again, what was found is found again. */
static int probe(int src, int tag, struct comm *c, MPI_Status *status)
{
	return UNLIKELY(tasklog_now != NULL) ? intask_probe(src, tag, c, NULL, status)
					     : match_probe(src, tag, c, status);
}

static int iprobe(int src, int tag, struct comm *c, int *flag, MPI_Status *status)
{
	return UNLIKELY(tasklog_now != NULL) ? intask_probe(src, tag, c, flag, status)
					     : match_iprobe(src, tag, c, flag, status);
}

static int mprobe(int src, int tag, struct comm *c, struct match_message **m, MPI_Status *status)
{
	return UNLIKELY(tasklog_now != NULL) ? intask_mprobe(src, tag, c, NULL, m, status)
					     : match_mprobe(src, tag, c, m, status);
}

static int improbe(int src, int tag, struct comm *c, int *flag, struct match_message **m,
		   MPI_Status *status)
{
	return UNLIKELY(tasklog_now != NULL) ? intask_mprobe(src, tag, c, flag, m, status)
					     : match_improbe(src, tag, c, flag, m, status);
}

int PMPI_Probe(int src, int tag, MPI_Comm comm, MPI_Status *status)
{
	API_ENTER("MPI_Probe");
	PROBE_CHECKS();
	MPI_Status found = p2p_status_proc_null;
	int rc = src == MPI_PROC_NULL ? MPI_SUCCESS : probe(src, tag, c, &found);
	status_copy_single(status, &found);
	return API_LEAVE(c, rc);
}
API_ALIAS(Probe);

int PMPI_Iprobe(int src, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	API_ENTER("MPI_Iprobe");
	PROBE_CHECKS();
	if (!flag)
		return API_FAIL(c, MPI_ERR_ARG);
	MPI_Status found = p2p_status_proc_null;
	int yes = 1;
	int rc = src == MPI_PROC_NULL ? MPI_SUCCESS : iprobe(src, tag, c, &yes, &found);
	*flag = yes != 0;
	if (!yes && !rc)
		return p2p_leave_empty(api_name);
	status_copy_single(status, &found);
	return API_LEAVE(c, rc);
}
API_ALIAS(Iprobe);

int PMPI_Mprobe(int src, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	API_ENTER("MPI_Mprobe");
	PROBE_CHECKS();
	if (!message)
		return API_FAIL(c, MPI_ERR_REQUEST);
	if (src == MPI_PROC_NULL) {
		*message = MPI_MESSAGE_NO_PROC;
		status_copy_single(status, &p2p_status_proc_null);
		return API_LEAVE(c, MPI_SUCCESS);
	}
	MPI_Status found = ompi_status_empty;
	struct match_message *m = NULL;
	int rc = mprobe(src, tag, c, &m, &found);
	if (rc == MPI_SUCCESS) {
		*message = message_handle(m);
		status_copy_single(status, &found);
	}
	return API_LEAVE(c, rc);
}
API_ALIAS(Mprobe);

int PMPI_Improbe(int src, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
		 MPI_Status *status)
{
	API_ENTER("MPI_Improbe");
	PROBE_CHECKS();
	if (!flag)
		return API_FAIL(c, MPI_ERR_ARG);
	if (!message)
		return API_FAIL(c, MPI_ERR_REQUEST);
	if (src == MPI_PROC_NULL) {
		*flag = 1;
		*message = MPI_MESSAGE_NO_PROC;
		status_copy_single(status, &p2p_status_proc_null);
		return API_LEAVE(c, MPI_SUCCESS);
	}
	MPI_Status found = ompi_status_empty;
	struct match_message *m = NULL;
	int yes = 0;
	int rc = improbe(src, tag, c, &yes, &m, &found);
	*flag = yes != 0;
	*message = yes ? message_handle(m) : MPI_MESSAGE_NULL;
	if (!yes && !rc)
		return p2p_leave_empty(api_name);
	status_copy_single(status, &found);
	return API_LEAVE(c, rc);
}
API_ALIAS(Improbe);

static int check_message(const MPI_Message *message)
{
	const struct object *o = message ? (const struct object *)*message : NULL;

	return o && o->kind == OBJECT_MESSAGE && *message != MPI_MESSAGE_NULL ? MPI_SUCCESS
									      : MPI_ERR_REQUEST;
}

int PMPI_Mrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
	API_ENTER("MPI_Mrecv");
	struct datatype *t = datatype_of(type);
	int rc = check_buffer(buf, count, t);
	if (!rc)
		rc = check_message(message);
	if (rc)
		return API_FAIL(NULL, rc);
	MPI_Message m = *message;
	*message = MPI_MESSAGE_NULL;
	if (m == MPI_MESSAGE_NO_PROC) {
		status_copy_single(status, &p2p_status_proc_null);
		return API_LEAVE(NULL, MPI_SUCCESS);
	}
	if (UNLIKELY(intask_is_message(message_of(m))))
		return API_LEAVE(NULL, intask_mrecv(buf, (size_t)count, t, message_of(m), status));
	return API_LEAVE(NULL, match_mrecv(buf, (size_t)count, t, message_of(m), status));
}
API_ALIAS(Mrecv);

int PMPI_Imrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
	API_ENTER("MPI_Imrecv");
	struct datatype *t = datatype_of(type);
	int rc = check_buffer(buf, count, t);
	if (!rc)
		rc = request ? check_message(message) : MPI_ERR_REQUEST;
	if (rc)
		return API_FAIL(NULL, rc);
	MPI_Message m = *message;
	struct request *r = NULL;
	*message = MPI_MESSAGE_NULL;
	if (m == MPI_MESSAGE_NO_PROC)
		rc = match_irecv(buf, (size_t)count, t, MPI_PROC_NULL, MPI_ANY_TAG,
				 comm_of(MPI_COMM_WORLD), 0, &r);
	else if (UNLIKELY(intask_is_message(message_of(m))))
		rc = intask_imrecv(buf, (size_t)count, t, message_of(m), &r);
	else
		rc = match_imrecv(buf, (size_t)count, t, message_of(m), &r);
	if (UNLIKELY(intask_landing_watch) && !tasklog_now && !rc)
		intask_landing_recv(r);
	if (rc == MPI_SUCCESS)
		*request = request_handle(r);
	return API_LEAVE(NULL, rc);
}
API_ALIAS(Imrecv);
