/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are made of others: MPI_Isendrecv (MPI-4 3.10) and partitioned messages (MPI-4, 4).
 * A hook of progress completes them when their parts are. All partitions of a message leave
 * together, once the last one is ready, which the standard leaves to the implementation.
 *
 * Partitioned messages only match each other: they travel in the collective context, with the tags
 * below MPI_ANY_TAG, which nothing else uses there. */
#include <stdlib.h>
#include "mpi/mpi4.h"
#include "mpi/p2p/p2p.h"
#include "mpi/task/intask.h"

typedef enum composite_kind { SENDRECV, PART_SEND, PART_RECV } composite_kind_t;

struct composite {
	struct composite *next; /* of those that are under way */
	struct request *whole, *send, *recv;
	void *copy; /* MPI_Isendrecv_replace: what is sent */
	composite_kind_t kind;
	/* partitioned */
	int partitions, unready;
	bool *ready;
	size_t count; /* of all partitions */
	void *buf;
	struct datatype *type; /* retained */
	int peer, tag;
};

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
	int sent = part_end(&k->send), received = part_end(&k->recv);
	heap_free(k->copy);
	k->copy = NULL;
	request_complete(k->whole, received ? received : sent);
}

static int composites_progress(void)
{
	struct composite **at = &under_way;
	int moved = 0;
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

static void composite_begin(struct composite *k)
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
	if (k->type)
		datatype_release(k->type);
	heap_free(k->ready);
	heap_free(k->copy);
	heap_free(k);
}

static struct composite *composite_new(struct comm *c)
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
	return k;
}

static void composite_drop(struct composite *k)
{
	request_complete(k->whole, MPI_SUCCESS);
	match_request_free(k->whole);
}

/* ---- MPI_Isendrecv ---- */

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

/* ---- partitioned ---- */

static int partitioned_tag(int tag)
{
	return MPI_ANY_TAG - 1 - tag;
}

static int partitioned_send(struct composite *k)
{
	return match_isend(k->buf, k->count, k->type, k->peer, k->tag, k->whole->comm,
			   MATCH_STANDARD | MATCH_COLL, &k->send);
}

static int partitioned_start(struct request *r)
{
	struct composite *k = r->extra;
	int rc = MPI_SUCCESS;
	r->active = true;
	r->complete = 0;
	k->unready = 0;
	if (k->kind == PART_SEND) {
		k->unready = k->partitions;
		for (int i = 0; i < k->partitions; i++)
			k->ready[i] = false;
	} else {
		rc = match_irecv(k->buf, k->count, k->type, k->peer, k->tag, r->comm, MATCH_COLL,
				 &k->recv);
	}
	if (!rc)
		composite_begin(k);
	return rc;
}

static int partitioned_init(composite_kind_t kind, void *buf, int partitions, int count,
			    struct datatype *t, int peer, int tag, struct comm *c,
			    MPI_Request *request)
{
	if (UNLIKELY(tasklog_now != NULL))
		intask_lose("in a task with partitioned messages");
	struct composite *k = composite_new(c);
	if (!k)
		return MPI_ERR_NO_MEM;
	k->ready = heap_calloc((size_t)partitions, sizeof(bool));
	if (!k->ready) {
		composite_drop(k);
		return MPI_ERR_NO_MEM;
	}
	k->kind = kind;
	k->partitions = partitions;
	k->count = (size_t)partitions * (size_t)count;
	k->buf = buf;
	k->type = t;
	datatype_retain(t);
	k->peer = peer;
	k->tag = partitioned_tag(tag);
	k->whole->persistent = true;
	k->whole->active = false;
	k->whole->start = partitioned_start;
	*request = request_handle(k->whole);
	return MPI_SUCCESS;
}

static int check_partitioned(const void *buf, int partitions, int count, const struct datatype *t,
			     const struct comm *c, int peer, int tag, const MPI_Request *request)
{
	int bad = check_buffer(buf, count, t);
	if (!bad && (partitions < 1 || !request))
		bad = MPI_ERR_ARG;
	if (!bad)
		bad = check_dest(peer, c);
	return bad ? bad : check_send_tag(tag);
}

int PMPI_Psend_init(const void *buf, int partitions, int count, MPI_Datatype type, int dest,
		    int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Psend_init");
	struct comm *c = comm_of(comm);
	struct datatype *t = datatype_of(type);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	int bad = check_partitioned(buf, partitions, count, t, c, dest, tag, request);
	if (bad)
		return API_FAIL(c, bad);
	return API_LEAVE(c, partitioned_init(PART_SEND, (void *)(uintptr_t)buf, partitions, count,
					     t, dest, tag, c, request));
}
API_ALIAS(Psend_init);

int PMPI_Precv_init(void *buf, int partitions, int count, MPI_Datatype type, int source, int tag,
		    MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Precv_init");
	struct comm *c = comm_of(comm);
	struct datatype *t = datatype_of(type);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	int bad = check_partitioned(buf, partitions, count, t, c, source, tag, request);
	if (bad)
		return API_FAIL(c, bad);
	return API_LEAVE(
	    c, partitioned_init(PART_RECV, buf, partitions, count, t, source, tag, c, request));
}
API_ALIAS(Precv_init);

/* NULL: it is no request of that kind. */
static struct composite *partitioned_of(MPI_Request request, composite_kind_t kind)
{
	struct request *r = request_of(request);
	struct composite *k;
	if (!request_ok(r) || r->destroy != composite_destroy)
		return NULL;
	k = r->extra;
	return k->kind == kind ? k : NULL;
}

/* MPI_SUCCESS, or the class of what is wrong. */
static int partitions_ready(MPI_Request request, const int *list, int n, int first)
{
	struct composite *k = partitioned_of(request, PART_SEND);
	int rc = MPI_SUCCESS;
	if (!k || !k->whole->active)
		return MPI_ERR_REQUEST;
	for (int i = 0; i < n && !rc; i++) {
		int p = list ? list[i] : first + i;
		if (p < 0 || p >= k->partitions || k->ready[p])
			return MPI_ERR_ARG;
		k->ready[p] = true;
		if (k->unready == 1)
			rc = partitioned_send(k);
		k->unready--;
	}
	if (rc) { /* what can't be sent completes with its error */
		composites_progress();
		return rc;
	}
	composites_progress();
	return MPI_SUCCESS;
}

int PMPI_Pready(int partition, MPI_Request request)
{
	API_ENTER("MPI_Pready");
	return API_LEAVE(NULL, partitions_ready(request, NULL, 1, partition));
}
API_ALIAS(Pready);

int PMPI_Pready_range(int partition_low, int partition_high, MPI_Request request)
{
	API_ENTER("MPI_Pready_range");
	if (partition_high < partition_low)
		return API_FAIL(NULL, MPI_ERR_ARG);
	return API_LEAVE(NULL, partitions_ready(request, NULL, partition_high - partition_low + 1,
						partition_low));
}
API_ALIAS(Pready_range);

int PMPI_Pready_list(int length, const int partitions[], MPI_Request request)
{
	API_ENTER("MPI_Pready_list");
	if (length < 0 || (length && !partitions))
		return API_FAIL(NULL, MPI_ERR_ARG);
	return API_LEAVE(NULL, partitions_ready(request, partitions, length, 0));
}
API_ALIAS(Pready_list);

int PMPI_Parrived(MPI_Request request, int partition, int *flag)
{
	API_ENTER("MPI_Parrived");
	struct composite *k = partitioned_of(request, PART_RECV);
	if (!flag)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!k)
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	if (partition < 0 || partition >= k->partitions)
		return API_FAIL(k->whole->comm, MPI_ERR_ARG);
	if (k->whole->active && !k->whole->complete)
		match_progress();
	*flag = !k->whole->active || k->whole->complete;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Parrived);
