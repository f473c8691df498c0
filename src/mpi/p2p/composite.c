/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/p2p/composite.h"

#include "mpi/mpi4.h"
#include "mpi/task/intask.h"

static struct composite *under_way;

static bool part_over(const struct request *r)
{
	return !r || r->complete;
}

static int part_end(struct request **r)
{
	int rc = MPI_SUCCESS;
	if (*r) {
		rc = (*r)->status.MPI_ERROR;
		match_request_free(*r);
	}
	*r = NULL;
	return rc;
}

static void composite_end(struct composite *k)
{
	k->whole->status = k->recv ? k->recv->status : ompi_status_empty;
	if (k->recv && k->tag != MPI_ANY_TAG && k->whole->status.MPI_SOURCE != MPI_PROC_NULL)
		k->whole->status.MPI_TAG = k->tag;
	int sent = part_end(&k->send), received = part_end(&k->recv);
	heap_free(k->copy);
	k->copy = NULL;
	request_complete(k->whole, k->error ? k->error : received ? received : sent);
}

int composites_progress(void)
{
	struct composite **at = &under_way;
	int moved = partitioned_progress();
	while (*at) {
		struct composite *k = *at;
		if (k->unready || !part_over(k->send) || !part_over(k->recv)) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		composite_end(k);
		moved++;
	}
	return moved;
}

void composite_begin(struct composite *k)
{
	static bool hooked;
	if (!hooked)
		match_progress_hook(composites_progress);
	hooked = true;
	k->next = under_way;
	under_way = k;
	composites_progress();
}

static void composite_destroy(struct request *r)
{
	struct composite *k = r->extra;
	if (k->partitioned)
		partitioned_free(k->partitioned);
	heap_free(k->copy);
	heap_free(k);
}

struct composite *composite_new(struct comm *c)
{
	struct composite *k = heap_calloc(1, sizeof(*k));
	struct request *r = k ? match_request_new(REQUEST_COLL, c) : NULL;
	if (!r) {
		heap_free(k);
		return NULL;
	}
	r->active = true;
	r->extra = k;
	r->destroy = composite_destroy;
	k->whole = r;
	k->tag = MPI_ANY_TAG;
	return k;
}

void composite_drop(struct composite *k)
{
	request_complete(k->whole, MPI_SUCCESS);
	match_request_free(k->whole);
}

struct message_ends {
	const void *buf;
	size_t count;
	struct datatype *type;
	int peer, tag;
};

static int sendrecv_start(const struct message_ends *out, void *rbuf, const struct message_ends *in,
			  void *copy, struct comm *c, MPI_Request *request)
{
	struct composite *k = composite_new(c);
	if (!k) {
		heap_free(copy);
		return MPI_ERR_NO_MEM;
	}
	if (UNLIKELY(tasklog_now != NULL))
		intask_lose("in a task with MPI_Isendrecv");
	k->copy = copy;
	int rc = match_irecv(rbuf, in->count, in->type, in->peer, in->tag, c, 0, &k->recv);
	if (!rc)
		rc = match_isend(out->buf, out->count, out->type, out->peer, out->tag, c,
				 MATCH_STANDARD, &k->send);
	if (rc) {
		if (k->recv)
			match_cancel(k->recv);
		if (k->recv)
			match_wait(k->recv);
		part_end(&k->recv);
		composite_drop(k);
		return rc;
	}
	composite_begin(k);
	intask_landing_span(k->whole, rbuf, in->count, in->type);
	*request = request_handle(k->whole);
	return MPI_SUCCESS;
}

int PMPI_Isendrecv(const void *sbuf, int scount, MPI_Datatype stype, int dst, int stag, void *rbuf,
		   int rcount, MPI_Datatype rtype, int src, int rtag, MPI_Comm comm,
		   MPI_Request *request)
{
	API_ENTER("MPI_Isendrecv");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	struct message_ends out = {sbuf, (size_t)scount, datatype_of(stype), dst, stag},
			    in = {rbuf, (size_t)rcount, datatype_of(rtype), src, rtag};
	int bad = p2p_check_send(sbuf, scount, out.type, dst, stag, c);
	if (!bad)
		bad = p2p_check_recv(rbuf, rcount, in.type, src, rtag, c);
	if (!bad && !request)
		bad = MPI_ERR_REQUEST;
	if (UNLIKELY(bad))
		return API_FAIL(c, bad);
	return API_LEAVE(c, sendrecv_start(&out, rbuf, &in, NULL, c, request));
}
API_ALIAS(Isendrecv);

int PMPI_Isendrecv_replace(void *buf, int count, MPI_Datatype type, int dst, int stag, int src,
			   int rtag, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Isendrecv_replace");
	struct comm *c = comm_of(comm);
	struct datatype *t = datatype_of(type);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	int bad = p2p_check_send(buf, count, t, dst, stag, c);
	if (!bad)
		bad = p2p_check_recv(buf, count, t, src, rtag, c);
	if (!bad && !request)
		bad = MPI_ERR_REQUEST;
	if (UNLIKELY(bad))
		return API_FAIL(c, bad);
	size_t bytes = (size_t)count * t->size;
	void *copy = heap_alloc(bytes + 1);
	if (!copy)
		return API_FAIL(c, MPI_ERR_NO_MEM);
	datatype_pack(t, buf, (size_t)count, 0, copy, bytes);
	struct message_ends out = {copy, bytes, datatype_of(MPI_PACKED), dst, stag},
			    in = {buf, (size_t)count, t, src, rtag};
	return API_LEAVE(c, sendrecv_start(&out, buf, &in, copy, c, request));
}
API_ALIAS(Isendrecv_replace);
