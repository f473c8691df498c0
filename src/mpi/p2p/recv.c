/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives, and the combined send and receive. */
#include "mpi/p2p/p2p.h"

#include "mpi/task/intask.h"

#define RECV_CHECKS()                                                                              \
	struct comm *c = comm_of(comm);                                                            \
	struct datatype *t = datatype_of(type);                                                    \
	if (!comm_ok(c))                                                                           \
		return API_FAIL(NULL, MPI_ERR_COMM);                                               \
	int bad = p2p_check_recv(buf, count, t, src, tag, c);                                      \
	if (UNLIKELY(bad))                                                                         \
	return API_FAIL(c, bad)

int PMPI_Recv(void *buf, int count, MPI_Datatype type, int src, int tag, MPI_Comm comm,
	      MPI_Status *status)
{
	API_ENTER("MPI_Recv");
	RECV_CHECKS();
	if (UNLIKELY(tasklog_now != NULL))
		return API_LEAVE(c, intask_recv(buf, (size_t)count, t, src, tag, c, status));
	return API_LEAVE(c, match_recv(buf, (size_t)count, t, src, tag, c, 0, status));
}
API_ALIAS(Recv);

int PMPI_Irecv(void *buf, int count, MPI_Datatype type, int src, int tag, MPI_Comm comm,
	       MPI_Request *request)
{
	API_ENTER("MPI_Irecv");
	RECV_CHECKS();
	if (UNLIKELY(!request))
		return API_FAIL(c, MPI_ERR_REQUEST);
	struct request *r = NULL;
	int rc = UNLIKELY(tasklog_now != NULL)
		     ? intask_irecv(buf, (size_t)count, t, src, tag, c, &r)
		     : match_irecv(buf, (size_t)count, t, src, tag, c, 0, &r);
	if (UNLIKELY(intask_landing_watch) && !tasklog_now && !rc)
		intask_landing_recv(r);
	if (LIKELY(rc == MPI_SUCCESS))
		*request = request_handle(r);
	return API_LEAVE(c, rc);
}
API_ALIAS(Irecv);

int PMPI_Recv_init(void *buf, int count, MPI_Datatype type, int src, int tag, MPI_Comm comm,
		   MPI_Request *request)
{
	API_ENTER("MPI_Recv_init");
	RECV_CHECKS();
	if (!request)
		return API_FAIL(c, MPI_ERR_REQUEST);
	struct request *r = NULL;
	int rc = UNLIKELY(tasklog_now != NULL)
		     ? intask_recv_init(buf, (size_t)count, t, src, tag, c, &r)
		     : match_recv_init(buf, (size_t)count, t, src, tag, c, 0, &r);
	if (UNLIKELY(intask_landing_watch) && !rc)
		intask_landing_recv(r);
	if (rc == MPI_SUCCESS)
		*request = request_handle(r);
	return API_LEAVE(c, rc);
}
API_ALIAS(Recv_init);

/* Both at once: the receive is posted first, so that the blocking send can't wait for ever for a
 * peer that does the same. */
struct recv_exchange {
	const void *sbuf;
	size_t scount;
	struct datatype *stype;
	int dst, stag;
	void *rbuf;
	size_t rcount;
	struct datatype *rtype;
	int src, rtag;
};

/* Inside a task: each half is an event of its own. */
static int exchange_in_task(const struct recv_exchange *x, struct comm *c, MPI_Status *status)
{
	struct request *r = NULL;
	struct failure f = {0};
	MPI_Status st;
	int rc = intask_irecv(x->rbuf, x->rcount, x->rtype, x->src, x->rtag, c, &r), failed;

	if (rc)
		return rc;
	rc = intask_send(x->sbuf, x->scount, x->stype, x->dst, x->stag, c, MATCH_STANDARD);
	if (rc) {
		intask_lose("in a task with a send that MPI refused");
		match_cancel(r);
	}
	if (!r->complete)
		match_wait(r);
	MPI_Request handle = request_handle(r);
	failed = request_retire(&handle, &st, &f);
	if (f.comm)
		comm_release(f.comm);
	status_copy_single(status, &st);
	return rc ? rc : failed;
}

static int exchange_run(const struct recv_exchange *x, struct comm *c, MPI_Status *status)
{
	if (UNLIKELY(tasklog_now != NULL))
		return exchange_in_task(x, c, status);
	struct request *r = NULL;
	int rc = match_irecv(x->rbuf, x->rcount, x->rtype, x->src, x->rtag, c, 0, &r);

	if (rc)
		return rc;
	rc = match_send(x->sbuf, x->scount, x->stype, x->dst, x->stag, c, MATCH_STANDARD);
	if (UNLIKELY(rc)) {
		match_cancel(r);
		match_wait(r);
		match_request_free(r);
		return rc;
	}
	match_wait(r);
	status_copy_single(status, &r->status);
	rc = r->status.MPI_ERROR;
	match_request_free(r);
	return rc;
}

int PMPI_Sendrecv(const void *sbuf, int scount, MPI_Datatype stype, int dst, int stag, void *rbuf,
		  int rcount, MPI_Datatype rtype, int src, int rtag, MPI_Comm comm,
		  MPI_Status *status)
{
	API_ENTER("MPI_Sendrecv");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	struct recv_exchange x = {sbuf, (size_t)scount, datatype_of(stype), dst, stag,
				  rbuf, (size_t)rcount, datatype_of(rtype), src, rtag};
	int bad = p2p_check_send(sbuf, scount, x.stype, dst, stag, c);
	if (!bad)
		bad = p2p_check_recv(rbuf, rcount, x.rtype, src, rtag, c);
	if (UNLIKELY(bad))
		return API_FAIL(c, bad);
	return API_LEAVE(c, exchange_run(&x, c, status));
}
API_ALIAS(Sendrecv);

/* Sends a packed copy, so that the buffer is free for what comes. */
static int replace_run(void *buf, struct recv_exchange x, struct comm *c, MPI_Status *status)
{
	size_t bytes = x.rcount * x.rtype->size;
	char small[2048];
	char *copy = bytes <= sizeof(small) ? small : heap_alloc(bytes);
	int rc;

	if (!copy)
		return MPI_ERR_NO_MEM;
	datatype_pack(x.rtype, buf, x.rcount, 0, copy, bytes);
	x.sbuf = copy;
	x.scount = bytes;
	x.stype = datatype_of(MPI_PACKED);
	rc = exchange_run(&x, c, status);
	if (copy != small)
		heap_free(copy);
	return rc;
}

int PMPI_Sendrecv_replace(void *buf, int count, MPI_Datatype type, int dst, int stag, int src,
			  int rtag, MPI_Comm comm, MPI_Status *status)
{
	API_ENTER("MPI_Sendrecv_replace");
	struct comm *c = comm_of(comm);
	struct datatype *t = datatype_of(type);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	int bad = p2p_check_send(buf, count, t, dst, stag, c);
	if (!bad)
		bad = p2p_check_recv(buf, count, t, src, rtag, c);
	if (UNLIKELY(bad))
		return API_FAIL(c, bad);
	struct recv_exchange x = {NULL, 0, NULL, dst, stag, buf, (size_t)count, t, src, rtag};
	return API_LEAVE(c, replace_run(buf, x, c, status));
}
API_ALIAS(Sendrecv_replace);
