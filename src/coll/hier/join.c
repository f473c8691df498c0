/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/exit_status.h"
#include "channel/carry/carry.h"
#include "coll/hier/join.h"

#include "coll/hier/hier.h"
#include "coll/schedule.h"

enum { TAG_CHANGE = 0x40000000, TAG_NUMBERS = 0x3effffff };

/* What members say when they join: maxima. */
enum { JOIN_SEQ, JOIN_APART, JOIN_LACKING, JOIN_OLDEST, JOIN_NEWEST, JOIN_VALUES };

/* An agreement after a restart. */
struct coll_change {
	struct coll_change *next;
	uint64_t number;     /* of the layout */
	uint64_t calls;	     /* operations begun: the maximum over the members when it is known */
	struct request *req; /* NULL: known */
};

bool coll_messages_only, coll_flat;

/* Restarts after which ranks may live elsewhere: the same number in all processes, since all have
 * gone through the same ones. */
static uint64_t layout;
static bool spread; /* the job has several nodes */
static struct coll_state *states;
static unsigned awaited; /* changes that aren't known yet, and farewells */

/* How many members live here; lowest: the first of them. */
static int members_here(const struct comm *c, int *lowest)
{
	int n = 0;
	for (int i = c->size - 1; i >= 0; i--)
		if (segment_here(link_self()->segment, (uint32_t)c->group->world[i])) {
			*lowest = i;
			n++;
		}
	return n;
}

static bool job_spread(void)
{
	const struct segment *s = link_self()->segment;
	return s->nhere < s->nranks;
}

/* ---- agreements ---- */

static struct coll_args maxima(struct comm *c, uint64_t *values, size_t count)
{
	return (struct coll_args){.kind = COLL_ALLREDUCE,
				  .comm = c,
				  .op = (struct op *)MPI_MAX,
				  .sbuf = MPI_IN_PLACE,
				  .rbuf = values,
				  .rcount = count,
				  .rtype = (struct datatype *)MPI_UINT64_T};
}

static int agree(struct comm *c, uint64_t *values, size_t count)
{
	struct coll_args a = maxima(c, values, count);
	return schedule_run_args(&a);
}

static _Noreturn void lacking(void)
{
	log_warn("rank %u has no memory to agree on how its collective operations go: run with "
		 "fewer ranks on this node, or with more memory",
		 link_self()->rank);
	link_abort(EXIT_UNRECOVERED);
}

/* Agreements of a communicator go on beside its operations, under a tag of their own: members
 * begin them between different operations. */
static void change_start(struct comm *c, uint64_t number)
{
	struct coll_change *ch = heap_calloc(1, sizeof(*ch)), **at = &c->coll->changes;
	if (ch) {
		ch->number = number;
		ch->calls = c->coll->calls;
		struct coll_args a = maxima(c, &ch->calls, 1);
		int tag = TAG_CHANGE | (int)(number & TAG_NUMBERS);
		if (schedule_start_tagged(&a, tag, &ch->req) != MPI_SUCCESS) {
			heap_free(ch);
			ch = NULL;
		}
	}
	if (!ch)
		lacking();
	while (*at && (*at)->number < number)
		at = &(*at)->next;
	ch->next = *at;
	*at = ch;
	awaited++;
	c->coll->attached = false;
}

/* All members have freed it: nobody asks any more. */
static bool changes_abandon(struct coll_state *s)
{
	for (struct coll_change *ch = s->changes; ch; ch = ch->next)
		if (ch->req) {
			if (!schedule_abandon(ch->req))
				return false;
			ch->req = NULL;
			awaited--;
		}
	return true;
}

/* One that has come to its end, taken out of where it was. */
static struct request *completed_one(void)
{
	for (struct coll_state *s = states; s; s = s->next) {
		struct request *farewell = s->farewell;
		for (struct coll_change *ch = s->changes; ch; ch = ch->next)
			if (ch->req && ch->req->complete) {
				struct request *req = ch->req;
				ch->req = NULL;
				return req;
			}
		if (farewell && farewell->complete && changes_abandon(s)) {
			s->farewell = NULL;
			s->done = true;
			return farewell;
		}
	}
	return NULL;
}

/* The request may hold the last reference to its communicator. */
bool join_settled(void)
{
	return awaited == 0;
}

void join_quit(void)
{
	join_finish(NULL);
	states = NULL;
}

void join_carry(struct carry *c)
{
	carry_bytes(c, &layout, sizeof(layout));
}

int join_progress(void)
{
	struct request *req;
	int moved = 0;
	while (UNLIKELY(awaited) && (req = completed_one())) {
		awaited--;
		moved++;
		match_request_free(req);
	}
	return moved;
}

static bool change_known(void *arg)
{
	return !((struct coll_change *)arg)->req;
}

/* ---- joining ---- */

static struct coll_home *home_of(const struct comm *c)
{
	return &coll_homes[c->context / COMM_CONTEXTS];
}

/* The map of who lives where; lowest: of the members that live where this one does. NULL: everybody
 * lives alone. */
static struct coll_hier *map_agree(struct comm *c, int lowest)
{
	uint64_t *all = heap_calloc((size_t)c->size, sizeof(*all)), mine = (uint64_t)lowest;
	struct coll_hier *map = NULL;
	if (!all)
		lacking();
	struct coll_args a = {.kind = COLL_ALLGATHER,
			      .comm = c,
			      .sbuf = &mine,
			      .scount = 1,
			      .stype = (struct datatype *)MPI_UINT64_T,
			      .rbuf = all,
			      .rcount = 1,
			      .rtype = (struct datatype *)MPI_UINT64_T};
	bool known = schedule_run_args(&a) == MPI_SUCCESS, alone = true;
	for (int i = 0; i < c->size; i++)
		alone = alone && all[i] == (uint64_t)i;
	if (known && !alone && !(map = hier_create(all, c->size, c->rank)))
		lacking();
	heap_free(all);
	return map;
}

/* Members go on counting above whatever any of them has used in its cell, and find out whether
 * they can read each other's memory. */
static void join_cells(struct comm *c, uint64_t base)
{
	struct coll_state *s = c->coll;
	struct coll_home *h = home_of(c);
	uint64_t unreadable;
	h->seq = h->known_done = base;
	cells_stage(h, cells_done(base));
	unreadable = !cells_read_probe(h, (h->rank + 1) % h->n);
	h->reads = agree(c, &unreadable, 1) == MPI_SUCCESS && !unreadable;
	s->home = h;
}

/* Each makes itself a home among those that it sees on its node, then all say what they see: a
 * restart after that may split them before anything is in their cells. If somebody lacks memory,
 * nobody uses cells. Nor if some have looked before a restart and others after it: then its
 * agreement asks again. (Also if all see all: of two restarts the first may have split those who
 * had looked, which go on with mirrors, and the second brought them together.)
 *
 * Members that have entered before a restart start its agreement right after it. If one has, those
 * who have entered since start it now. */
static void join(struct comm *c)
{
	struct coll_state *s = c->coll;
	struct coll_home *h = home_of(c);
	cells_home_vacate(h);
	uint64_t number = layout, oldest = number;
	int lowest = c->rank, here = members_here(c, &lowest);
	bool occupied = cells_home_occupy(h, c), again = s->entered, cells = true;
	uint64_t said[JOIN_VALUES] = {h->seq, here < c->size, !occupied, UINT64_MAX - number,
				      number};
	if (occupied)
		h->cell->probe = (uintptr_t)&coll_probe_word;
	s->entered = true;
	if (agree(c, said, JOIN_VALUES) == MPI_SUCCESS)
		oldest = UINT64_MAX - said[JOIN_OLDEST];
	else
		said[JOIN_LACKING] = 1;
	if (said[JOIN_LACKING] || said[JOIN_NEWEST] != oldest || (said[JOIN_APART] && coll_flat))
		cells = false;
	else if (said[JOIN_APART])
		cells = (s->hier = map_agree(c, lowest)) != NULL;
	if (cells)
		join_cells(c, said[JOIN_SEQ]);
	else if (occupied)
		cells_home_free(h);
	for (uint64_t next = oldest + 1; !again && next <= number; next++)
		change_start(c, next);
	s->joined = true;
}

/* ---- changes ---- */

/* Whatever was begun has come to its end here; who has ended it, too, waits for us in join. */
static void change_apply(struct comm *c)
{
	struct coll_state *s = c->coll;
	s->home = NULL;
	hier_destroy(s->hier);
	s->hier = NULL;
	join(c);
}

struct coll_home *join_home(struct comm *c)
{
	struct coll_state *s = c->coll;
	if (!s->joined)
		join(c);
	while (s->changes) {
		struct coll_change *ch = s->changes;
		match_wait_until(change_known, ch);
		if (s->calls <= ch->calls)
			return s->home;
		s->changes = ch->next;
		heap_free(ch);
		change_apply(c);
	}
	s->attached = true;
	return s->home;
}

/* ---- life ---- */

void join_init(void)
{
	spread = job_spread();
}

static bool all_given_up(void *world)
{
	for (struct coll_state *s = states; s; s = s->next) {
		if (s->comm == world)
			continue;
		if (!changes_abandon(s))
			return false;
		if (s->farewell && !s->farewell->complete) {
			struct request *farewell = s->farewell;
			comm_retain(s->comm); /* so that the list stays; the end frees it */
			s->farewell = NULL;
			if (!schedule_abandon(farewell)) {
				s->farewell = farewell;
				comm_release(s->comm);
				return false;
			}
			awaited--;
		}
	}
	return true;
}

void join_finish(struct comm *world)
{
	match_wait_until(all_given_up, world);
}

void join_restored(void)
{
	bool before = spread;
	spread = job_spread();
	if (!before && !spread)
		return;
	layout++;
	for (struct coll_state *s = states; s; s = s->next)
		if (s->entered)
			change_start(s->comm, layout);
}

int join_create(struct comm *c)
{
	struct coll_state *s = c->coll = heap_calloc(1, sizeof(*s));
	if (!s)
		return MPI_ERR_NO_MEM;
	s->comm = c;
	s->shares = !c->remote && c->size > 1 && !coll_messages_only &&
		    c->context / COMM_CONTEXTS < COLL_SHARED_CONTEXTS;
	s->attached = s->joined = !s->shares;
	if (!s->shares)
		return MPI_SUCCESS;
	s->next = states;
	if (states)
		states->prev = s;
	states = s;
	return MPI_SUCCESS;
}

void join_farewell(struct comm *c)
{
	struct coll_args a = {.kind = COLL_BARRIER, .comm = c};
	struct coll_state *s = c->coll;
	if (!s->entered || schedule_start_args(&a, &s->farewell) != MPI_SUCCESS)
		return;
	awaited++;
}

/* Its cell stays as it is: nobody reads it any more, but the next communicator goes on counting
 * from there. Without farewell somebody may: then that one waits; for ever, if a member has used
 * the cell for others since, and been restored. So whoever has entered one says farewell. */
void join_destroy(struct comm *c)
{
	struct coll_state *s = c->coll;
	c->coll = NULL;
	if (s->home && s->done)
		cells_home_free(s->home);
	if (s->prev)
		s->prev->next = s->next;
	else if (states == s)
		states = s->next;
	if (s->next)
		s->next->prev = s->prev;
	while (s->changes) {
		struct coll_change *ch = s->changes;
		s->changes = ch->next;
		heap_free(ch);
	}
	hier_destroy(s->hier);
	heap_free(s);
}
