/* SPDX-License-Identifier: BSD-3-Clause */
/* Partitioned messages (MPI-4, 4). All partitions of a message leave together, once the last one is
 * ready, which the standard leaves to the implementation.
 *
 * Messages match by the order of their MPI_Psend_init and MPI_Precv_init, not by that of their
 * starts. So each MPI_Psend_init announces {tag, number} to the receiver, and the data travel with
 * the number as their tag:
 *
 *   sender   Psend_init(tag 5) ── announcement {5, #17} ──▶ first Precv_init(tag 5) gets #17
 *            Start, Pready …   ── data, tag of #17 ───────▶ its receive
 *
 * The receiver asks for announcements as soon as a started request lacks its number. All of this
 * travels in the collective context, with tags that schedules and context.h don't use. */
#include "deliver/redundant.h"
#include "mpi/mpi4.h"
#include "mpi/p2p/composite.h"
#include "mpi/p2p/replay.h"
#include "mpi/task/intask.h"

enum {
	TAG_ANNOUNCEMENT = -0x40000001,
	TAG_DATA = 0x40000000, /* plus the number */
	NUMBERS = 0x3f000000   /* then they begin anew */
};

typedef enum partitioned_kind { PART_SEND, PART_RECV } partitioned_kind_t;

struct announcement {
	uint32_t tag, number;
};

struct partitioned {
	struct composite *composite; /* NULL: the program has freed it */
	partitioned_kind_t kind;
	int partitions;
	bool *ready;   /* [partitions]; send */
	char *kept;    /* send: packed copies of those that tasks have made ready; NULL: none */
	bool *is_kept; /* [partitions]; there if kept is */
	bool numbered; /* receive: the number is known */
	struct announcement sent;
	struct request *announcing; /* send; NULL: the announcement has left */
	size_t count;		    /* of all partitions */
	void *buf;
	struct datatype *type; /* retained */
	int peer, tag;
	struct partitioned *next; /* receive: in its pairing; send: in `leaving` */
};

struct announced {
	struct announced *next;
	struct announcement what;
};

/* Of one sender in one communicator: the receives without number and the numbers without receive,
 * each in order. */
struct pairing {
	struct pairing *next;
	struct comm *comm; /* retained */
	int peer;
	struct partitioned *unnumbered;
	struct announced *announced;
	struct request *asking; /* for the next announcement; NULL: not now */
	struct announcement incoming;
};

static struct pairing *pairings;
static struct partitioned *leaving; /* freed senders whose announcement has not left */

static int data_tag(const struct partitioned *p)
{
	return TAG_DATA + (int)p->sent.number;
}

static void partitioned_delete(struct partitioned *p)
{
	datatype_release(p->type);
	heap_free(p->ready);
	heap_free(p->kept);
	heap_free(p->is_kept);
	heap_free(p);
}

/* ---- the receiver's numbers ---- */

static struct pairing *pairing_of(struct comm *c, int peer)
{
	for (struct pairing *g = pairings; g; g = g->next)
		if (g->comm == c && g->peer == peer)
			return g;
	struct pairing *g = heap_calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	comm_retain(c);
	g->comm = c;
	g->peer = peer;
	g->next = pairings;
	pairings = g;
	return g;
}

static int pairing_add(struct comm *c, struct partitioned *p)
{
	struct pairing *g = pairing_of(c, p->peer);
	if (!g)
		return MPI_ERR_NO_MEM;
	struct partitioned **at = &g->unnumbered;
	while (*at)
		at = &(*at)->next;
	*at = p;
	return MPI_SUCCESS;
}

static void receive_post(struct partitioned *p)
{
	struct composite *k = p->composite;
	k->unready = 0;
	k->error = match_irecv(p->buf, p->count, p->type, p->peer, data_tag(p), k->whole->comm,
			       MATCH_COLL, &k->recv);
}

/* p is in no list any more. */
static void receive_number(struct partitioned *p, uint32_t number)
{
	p->sent.number = number;
	p->numbered = true;
	if (!p->composite)
		partitioned_delete(p);
	else if (p->composite->whole->active)
		receive_post(p);
}

/* The first announcement with that tag, taken out; NULL: none. */
static struct announced *announced_take(struct pairing *g, int tag)
{
	for (struct announced **at = &g->announced; *at; at = &(*at)->next) {
		struct announced *a = *at;
		if ((int)a->what.tag != tag)
			continue;
		*at = a->next;
		return a;
	}
	return NULL;
}

static int pairing_match(struct pairing *g)
{
	int moved = 0;
	for (struct partitioned **at = &g->unnumbered; *at;) {
		struct partitioned *p = *at;
		struct announced *a = announced_take(g, p->tag);
		if (!a) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		receive_number(p, a->what.number);
		heap_free(a);
		moved++;
	}
	return moved;
}

/* Does one lack its number that is started, or is gone and must not leave its number to the next? */
static bool pairing_wants(const struct pairing *g)
{
	for (const struct partitioned *p = g->unnumbered; p; p = p->next)
		if (!p->composite || p->composite->whole->active)
			return true;
	return false;
}

static void pairing_ask(struct pairing *g)
{
	/* without memory or with an error it is tried again in the next round */
	(void)match_irecv(&g->incoming, sizeof(g->incoming), datatype_of(MPI_BYTE), g->peer,
			  TAG_ANNOUNCEMENT, g->comm, MATCH_COLL, &g->asking);
}

static bool pairing_hear(struct pairing *g)
{
	if (!g->asking || !g->asking->complete)
		return false;
	struct announced *a = heap_calloc(1, sizeof(*a));
	if (!a)
		return false;
	a->what = g->incoming;
	match_request_free(g->asking);
	g->asking = NULL;
	struct announced **at = &g->announced;
	while (*at)
		at = &(*at)->next;
	*at = a;
	return true;
}

static int pairing_progress(struct pairing *g)
{
	int moved = 0;
	do {
		moved += pairing_match(g);
		if (!g->asking && pairing_wants(g))
			pairing_ask(g);
	} while (pairing_hear(g));
	return moved;
}

int partitioned_progress(void)
{
	int moved = 0;
	for (struct pairing **at = &pairings; *at;) {
		struct pairing *g = *at;
		moved += pairing_progress(g);
		if (g->unnumbered || g->announced || g->asking) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		comm_release(g->comm);
		heap_free(g);
	}
	for (struct partitioned **at = &leaving; *at;) {
		struct partitioned *p = *at;
		if (!p->announcing->complete) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		match_request_free(p->announcing);
		partitioned_delete(p);
	}
	return moved;
}

/* ---- requests ---- */

static void announcement_forget(struct partitioned *p)
{
	if (!p->announcing || !p->announcing->complete)
		return;
	match_request_free(p->announcing);
	p->announcing = NULL;
}

void partitioned_free(struct partitioned *p)
{
	p->composite = NULL;
	announcement_forget(p);
	if (p->announcing) {
		p->next = leaving;
		leaving = p;
	} else if (p->kind == PART_SEND || p->numbered) {
		partitioned_delete(p);
	}
}

static int partitioned_announce(struct partitioned *p, struct comm *c)
{
	static uint32_t numbers;
	if (p->peer == MPI_PROC_NULL)
		return MPI_SUCCESS;
	p->sent = (struct announcement){(uint32_t)p->tag, numbers++ % NUMBERS};
	return match_isend(&p->sent, sizeof(p->sent), datatype_of(MPI_BYTE), p->peer,
			   TAG_ANNOUNCEMENT, c, MATCH_STANDARD | MATCH_COLL, &p->announcing);
}

static void partition_pack(struct partitioned *p, int at)
{
	size_t count = p->count / (size_t)p->partitions, bytes = count * p->type->size;
	datatype_pack(p->type, (char *)p->buf + (ptrdiff_t)count * at * p->type->extent, count, 0,
		      p->kept + bytes * (size_t)at, bytes);
	p->is_kept[at] = true;
}

/* A task that may be executed again says that a partition is ready. An error may set the data of
 * the task back before the message leaves, so the message takes a copy. */
static void partition_keep(struct partitioned *p, int at)
{
	if (!p->is_kept)
		p->is_kept = heap_calloc((size_t)p->partitions, sizeof(bool));
	if (!p->kept && p->is_kept)
		p->kept = heap_alloc(p->count * p->type->size + 1);
	if (p->kept)
		partition_pack(p, at);
	else
		intask_lose("in a task for whose messages there was no memory");
}

static int partitioned_send(struct composite *k)
{
	struct partitioned *p = k->partitioned;
	announcement_forget(p);
	for (int i = 0; p->kept && i < p->partitions; i++)
		if (!p->is_kept[i])
			partition_pack(p, i);
	if (p->kept)
		return match_isend(p->kept, p->count * p->type->size, datatype_of(MPI_PACKED),
				   p->peer, data_tag(p), k->whole->comm,
				   MATCH_STANDARD | MATCH_COLL, &k->send);
	return match_isend(p->buf, p->count, p->type, p->peer, data_tag(p), k->whole->comm,
			   MATCH_STANDARD | MATCH_COLL, &k->send);
}

static int partitioned_start(struct request *r)
{
	struct composite *k = r->extra;
	struct partitioned *p = k->partitioned;
	r->active = true;
	r->complete = 0;
	k->error = MPI_SUCCESS;
	k->unready = 1;
	if (p->kind == PART_SEND) {
		k->unready = p->partitions;
		for (int i = 0; i < p->partitions; i++)
			p->ready[i] = false;
		for (int i = 0; p->is_kept && i < p->partitions; i++)
			p->is_kept[i] = false;
	} else if (p->numbered) {
		receive_post(p);
	}
	composite_begin(k);
	return MPI_SUCCESS;
}

static struct partitioned *partitioned_new(partitioned_kind_t kind, void *buf, int partitions,
					   int count, struct datatype *t, int peer, int tag)
{
	struct partitioned *p = heap_calloc(1, sizeof(*p));
	bool *ready = p ? heap_calloc((size_t)partitions, sizeof(bool)) : NULL;
	if (!ready) {
		heap_free(p);
		return NULL;
	}
	datatype_retain(t);
	*p = (struct partitioned){.kind = kind, .partitions = partitions, .ready = ready,
				  .numbered = peer == MPI_PROC_NULL,
				  .count = (size_t)partitions * (size_t)count, .buf = buf,
				  .type = t, .peer = peer, .tag = tag};
	return p;
}

static int partitioned_init(struct partitioned *p, struct comm *c, MPI_Request *request)
{
	if (UNLIKELY(tasklog_now != NULL))
		intask_lose("in a task with partitioned messages");
	struct composite *k = p ? composite_new(c) : NULL;
	if (!k) {
		if (p)
			partitioned_delete(p);
		return MPI_ERR_NO_MEM;
	}
	int rc = MPI_SUCCESS;
	if (p->kind == PART_SEND)
		rc = partitioned_announce(p, c);
	else if (!p->numbered)
		rc = pairing_add(c, p);
	if (rc) {
		partitioned_delete(p);
		composite_drop(k);
		return rc;
	}
	p->composite = k;
	k->partitioned = p;
	k->tag = p->tag;
	k->whole->persistent = true;
	k->whole->active = false;
	k->whole->start = partitioned_start;
	if (p->kind == PART_RECV && p->peer != MPI_PROC_NULL)
		intask_landing_span(k->whole, p->buf, p->count, p->type);
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
	struct partitioned *p = partitioned_new(PART_SEND, (void *)(uintptr_t)buf, partitions, count,
						t, dest, tag);
	return API_LEAVE(c, partitioned_init(p, c, request));
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
	struct partitioned *p =
	    partitioned_new(PART_RECV, buf, partitions, count, t, source, tag);
	return API_LEAVE(c, partitioned_init(p, c, request));
}
API_ALIAS(Precv_init);

/* NULL: it is no request of that kind. */
static struct partitioned *partitioned_of(MPI_Request request, partitioned_kind_t kind)
{
	struct request *r = request_of(request);
	struct composite *k;
	if (!request_ok(r) || r->start != partitioned_start)
		return NULL;
	k = r->extra;
	return k->partitioned->kind == kind ? k->partitioned : NULL;
}

/* MPI_SUCCESS, or the class of what is wrong. */
static int partitions_mark(MPI_Request request, const int *list, int n, int first)
{
	struct partitioned *p = partitioned_of(request, PART_SEND);
	if (!p || !p->composite->whole->active)
		return MPI_ERR_REQUEST;
	struct composite *k = p->composite;
	for (int i = 0; i < n && !k->error; i++) {
		int at = list ? list[i] : first + i;
		if (at < 0 || at >= p->partitions || p->ready[at])
			return MPI_ERR_ARG;
		p->ready[at] = true;
		if (UNLIKELY(tasklog_now != NULL))
			partition_keep(p, at);
		if (k->unready == 1) /* what can't be sent completes with its error */
			k->error = partitioned_send(k);
		k->unready--;
	}
	int rc = k->error;
	composites_progress();
	return rc;
}

/* Once for a task, however often it is executed. */
static int partitions_ready(MPI_Request request, const int *list, int n, int first)
{
	int rc;
	if (LIKELY(!tasklog_now) || !request_ok(request_of(request)))
		return partitions_mark(request, list, n, first);
	if (!intask_call_again(request_of(request), &rc))
		rc = intask_call_done(request_of(request),
				      partitions_mark(request, list, n, first));
	return rc;
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
	struct partitioned *p = partitioned_of(request, PART_RECV);
	if (!flag)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!p)
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	struct request *whole = p->composite->whole;
	if (partition < 0 || partition >= p->partitions)
		return API_FAIL(whole->comm, MPI_ERR_ARG);
	int rc;
	if (UNLIKELY(tasklog_now != NULL) && intask_call_again(whole, &rc)) {
		*flag = 1;
		return API_LEAVE(NULL, rc);
	}
	if (UNLIKELY(redundant_on) && whole->active) {
		*flag = replay_one(whole);
	} else {
		if (whole->active && !whole->complete)
			match_progress();
		*flag = !whole->active || whole->complete;
	}
	if (UNLIKELY(tasklog_now != NULL) && *flag)
		intask_call_done(whole, MPI_SUCCESS);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Parrived);
