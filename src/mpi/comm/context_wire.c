/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement on a context id by messages of its own, moved on by progress: for MPI_Comm_create_group
 * (no collective over those processes exists), MPI_Comm_idup (nobody may wait, and its retries must
 * not get between the program's collectives), and across two groups.
 *
 * One round among members 0..n-1:  masks go up a binomial tree to member 0, the result comes down.
 * With a bridge, member 0 swaps what came up with the other group's member 0 in between.
 */
#include <limits.h>
#include <string.h>
#include "mpi/comm/context.h"

struct context_wire {
	struct context_wire *next;
	struct context_ticket ticket;
	struct comm *comm; /* retained */
	int *ranks; /* members, in comm; owned; NULL: all of comm, shifted so that root is 0 */
	int n, me, root, tag;
	struct comm *bridge; /* retained; NULL: none, or not the one who swaps */
	int bridge_rank, bridge_tag;
	bool bridged; /* this agreement spans two groups */
	enum { WIRE_UP, WIRE_SWAP_SEND, WIRE_SWAP_RECV, WIRE_DOWN, WIRE_OVER } phase;
	int distance;		 /* in the tree: of the next partner */
	bool merging;		 /* what arrives is to be ANDed in */
	struct request *request; /* under way; NULL: none */
	uint64_t incoming[CONTEXT_WORDS], swap[CONTEXT_WORDS];
	context_done_t *done;
	void *arg;
};

static struct context_wire *wires;

int context_tag(int user_tag)
{
	return -2 - user_tag % 0x3fffffff;
}

static int sequence_tag(uint32_t sequence)
{
	return INT_MIN + (int)(sequence % 0x3ffffff0u);
}

static int partner(const struct context_wire *w, int member)
{
	return w->ranks ? w->ranks[member] : (member + w->root) % w->n;
}

static int wire_recv(struct context_wire *w, struct comm *c, int rank, int tag, uint64_t *words)
{
	return match_irecv(words, CONTEXT_WORDS, datatype_of(MPI_UINT64_T), rank, tag, c,
			   MATCH_COLL, &w->request);
}

static int wire_send(struct context_wire *w, struct comm *c, int rank, int tag,
		     const uint64_t *words)
{
	return match_isend(words, CONTEXT_WORDS, datatype_of(MPI_UINT64_T), rank, tag, c,
			   MATCH_COLL, &w->request);
}

static void round_start(struct context_wire *w)
{
	context_ticket_offer(&w->ticket);
	w->phase = WIRE_UP;
	w->distance = 1;
}

/* Up: from each child in turn, nearest first, then to the parent. */
static int step_up(struct context_wire *w)
{
	int d = w->distance;
	if (w->me & d) {
		w->phase = WIRE_DOWN;
		w->distance = d;
		return wire_send(w, w->comm, partner(w, w->me - d), w->tag, w->ticket.words);
	}
	if (d >= w->n) {
		w->phase = w->bridge ? WIRE_SWAP_SEND : WIRE_DOWN;
		return MPI_SUCCESS;
	}
	w->distance = 2 * d;
	if (w->me + d >= w->n)
		return MPI_SUCCESS;
	w->merging = true;
	return wire_recv(w, w->comm, partner(w, w->me + d), w->tag, w->incoming);
}

static int step_swap(struct context_wire *w)
{
	if (w->phase == WIRE_SWAP_SEND) {
		memcpy(w->swap, w->ticket.words, sizeof(w->swap));
		w->phase = WIRE_SWAP_RECV;
		return wire_send(w, w->bridge, w->bridge_rank, w->bridge_tag, w->swap);
	}
	w->phase = WIRE_DOWN;
	w->merging = true;
	return wire_recv(w, w->bridge, w->bridge_rank, w->bridge_tag, w->incoming);
}

/* Down: the result comes from the parent, then goes to the children, the farthest first.
 *   distance > 0   that to the parent: the result is not here yet (at the root: beyond the group)
 *   distance < 0   the result is here; -distance / 2 is how far the next child is
 */
static int step_down(struct context_wire *w)
{
	if (w->distance > 0) {
		int d = w->distance;
		w->distance = -d;
		if (w->me & d)
			return wire_recv(w, w->comm, partner(w, w->me - d), w->tag,
					 w->ticket.words);
		return MPI_SUCCESS;
	}
	int d = -w->distance / 2;
	if (d == 0) {
		w->phase = WIRE_OVER;
		return MPI_SUCCESS;
	}
	w->distance = -d;
	if (w->me + d >= w->n)
		return MPI_SUCCESS;
	return wire_send(w, w->comm, partner(w, w->me + d), w->tag, w->ticket.words);
}

static void wire_end(struct context_wire *w, int error)
{
	struct context_wire **at = &wires;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	context_ticket_close(&w->ticket);
	comm_release(w->comm);
	if (w->bridge)
		comm_release(w->bridge);
	heap_free(w->ranks);
	w->done(w->arg, error, w->ticket.contexts);
	heap_free(w);
}

static int take_request(struct context_wire *w)
{
	int error = w->request->status.MPI_ERROR;
	match_request_free(w->request);
	w->request = NULL;
	if (w->merging)
		for (int i = 0; i < CONTEXT_WORDS; i++)
			w->ticket.words[i] &= w->incoming[i];
	w->merging = false;
	return error;
}

/* As far as it goes now. True when w is gone. */
static bool wire_run(struct context_wire *w, int *moved)
{
	int error = MPI_SUCCESS;
	while (!error) {
		if (w->request) {
			if (!w->request->complete)
				return false;
			error = take_request(w);
			++*moved;
		} else if (w->phase == WIRE_UP) {
			error = step_up(w);
		} else if (w->phase == WIRE_DOWN) {
			error = step_down(w);
		} else if (w->phase == WIRE_OVER) {
			++*moved;
			if (context_ticket_settle(&w->ticket, &error)) {
				wire_end(w, error);
				return true;
			}
			round_start(w);
			if (w->n == 1 && !w->bridged)
				return false; /* let those in our way move first */
		} else {
			error = step_swap(w);
		}
	}
	context_ticket_abandon(&w->ticket);
	wire_end(w, error);
	return true;
}

/* Steps can start and finish operations, whose progress must not come back here. */
static int wires_progress(void)
{
	static bool busy;
	int moved = 0;
	if (busy)
		return 0;
	busy = true;
	for (struct context_wire *w = wires, *next; w; w = next) {
		next = w->next;
		wire_run(w, &moved);
	}
	busy = false;
	return moved;
}

static int wire_start(struct context_wire *w, uint64_t key, int want)
{
	static bool hooked;
	if (!hooked) {
		match_progress_hook(wires_progress);
		hooked = true;
	}
	comm_retain(w->comm);
	if (w->bridge)
		comm_retain(w->bridge);
	context_ticket_open(&w->ticket, key, want);
	round_start(w);
	w->next = wires;
	wires = w;
	wires_progress();
	return MPI_SUCCESS;
}

static struct context_wire *wire_new(struct comm *c, int n, int me, int tag, context_done_t *done,
				     void *arg)
{
	struct context_wire *w = heap_calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->comm = c;
	w->n = n;
	w->me = me;
	w->tag = tag;
	w->done = done;
	w->arg = arg;
	return w;
}

int context_agree_start(struct comm *c, uint32_t sequence, context_done_t *done, void *arg)
{
	struct context_wire *w = wire_new(c, c->size, c->rank, sequence_tag(sequence), done, arg);
	if (!w)
		return MPI_ERR_NO_MEM;
	return wire_start(w, context_key(c->context, KEY_SEQUENCE, sequence), 1);
}

static struct context_wire *bridge_new(const struct context_bridge *b, int tag, int bridge_tag,
				       context_done_t *done, void *arg)
{
	struct comm *c = b->local;
	struct context_wire *w =
	    wire_new(c, c->size, (c->rank - b->leader + c->size) % c->size, tag, done, arg);
	if (!w)
		return NULL;
	w->root = b->leader;
	w->bridged = true;
	if (c->rank == b->leader) {
		w->bridge = b->bridge;
		w->bridge_rank = b->bridge_rank;
		w->bridge_tag = bridge_tag;
	}
	return w;
}

int context_agree_start_bridge(const struct context_bridge *b, uint32_t sequence,
			       context_done_t *done, void *arg)
{
	int tag = sequence_tag(sequence);
	struct context_wire *w = bridge_new(b, tag, tag, done, arg);
	return w ? wire_start(w, b->key, 2) : MPI_ERR_NO_MEM;
}

/* ---- the same, waiting ---- */

struct waiting {
	bool over;
	int error;
	int want;
	uint32_t *contexts;
};

static void waiting_done(void *arg, int error, const uint32_t *contexts)
{
	struct waiting *w = arg;
	w->error = error;
	memcpy(w->contexts, contexts, (size_t)w->want * sizeof(*contexts));
	w->over = true;
}

static bool waiting_over(void *arg)
{
	return ((struct waiting *)arg)->over;
}

static int waiting_result(struct waiting *w)
{
	if (!w->over)
		match_wait_until(waiting_over, w);
	return w->error;
}

int context_agree_group(struct comm *c, const int *ranks, int n, int me, int tag, uint32_t *context)
{
	struct waiting waiting = {.want = 1, .contexts = context};
	struct context_wire *w = wire_new(c, n, me, context_tag(tag), waiting_done, &waiting);
	if (w)
		w->ranks = heap_alloc((size_t)n * sizeof(int));
	if (!w || !w->ranks) {
		heap_free(w);
		return MPI_ERR_NO_MEM;
	}
	memcpy(w->ranks, ranks, (size_t)n * sizeof(int));
	int rc = wire_start(w, context_key(c->context, KEY_TAG, (uint32_t)tag), 1);
	return rc ? rc : waiting_result(&waiting);
}

int context_agree_bridge(const struct context_bridge *b, int want, uint32_t *contexts)
{
	struct waiting waiting = {.want = want, .contexts = contexts};
	uint32_t sequence = b->local->agreements++;
	struct context_wire *w =
	    bridge_new(b, sequence_tag(sequence), context_tag(b->tag), waiting_done, &waiting);
	if (!w)
		return MPI_ERR_NO_MEM;
	int rc = wire_start(w, b->key, want);
	return rc ? rc : waiting_result(&waiting);
}
