/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/join.h"

#include "coll/schedule.h"

enum { TAG_CHANGE = 0x40000000, TAG_NUMBERS = 0x3effffff, EXIT_NO_MEMORY = 70 };

enum { CHANGE_CALLS, CHANGE_APART, CHANGE_VALUES };

/* An agreement after a restart; the values are maxima over the members when it is known. */
struct coll_change {
	struct coll_change *next;
	uint64_t number; /* of the layout */
	uint64_t value[CHANGE_VALUES];
	struct request *req; /* NULL: known */
};

bool coll_messages_only;

/* Restarts after which ranks may live elsewhere: the same number in all processes, since all have
 * gone through the same ones. */
static uint64_t layout;
static bool spread; /* the job has several nodes */
static struct coll_state *states;
static unsigned awaited; /* changes that aren't known yet, and farewells */

static bool all_here(const struct comm *c)
{
	for (int i = 0; i < c->size; i++)
		if (!segment_here(link_self()->segment, (uint32_t)c->group->world[i]))
			return false;
	return true;
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

/* Agreements of a communicator go on beside its operations, under a tag of their own: members
 * begin them between different operations. */
static void change_start(struct comm *c, uint64_t number)
{
	struct coll_change *ch = heap_calloc(1, sizeof(*ch)), **at = &c->coll->changes;
	if (ch) {
		ch->number = number;
		ch->value[CHANGE_CALLS] = c->coll->calls;
		ch->value[CHANGE_APART] = !all_here(c);
		struct coll_args a = maxima(c, ch->value, CHANGE_VALUES);
		int tag = TAG_CHANGE | (int)(number & TAG_NUMBERS);
		if (schedule_start_tagged(&a, tag, &ch->req) != MPI_SUCCESS) {
			heap_free(ch);
			ch = NULL;
		}
	}
	if (!ch) {
		log_warn("rank %u has no memory to agree on how collectives go on after the "
			 "restart: restart with more memory",
			 link_self()->rank);
		link_abort(EXIT_NO_MEMORY);
	}
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

/* Members go on counting above whatever any of them has used in its cell, and find out whether
 * they can read each other's memory. Whoever finds that not all live here, or lacks memory, says
 * so, and nobody uses cells; a restart after that may split them before anything is in them. */
static void join_cells(struct comm *c, bool occupied, const uint64_t *agreed)
{
	struct coll_state *s = c->coll;
	struct coll_home *h = home_of(c);
	if (agreed[1]) {
		if (occupied)
			cells_home_free(h);
		s->home = NULL;
		return;
	}
	uint64_t base = agreed[0], unreadable;
	h->seq = h->known_done = base;
	cells_stage(h, cells_done(base));
	unreadable = !cells_read_probe(h, (h->rank + 1) % h->n);
	h->reads = agree(c, &unreadable, 1) == MPI_SUCCESS && !unreadable;
	s->home = h;
}

/* Members that have entered before a restart start its agreement right after it. If one has, those
 * who have entered since start it now. */
static void join(struct comm *c)
{
	struct coll_state *s = c->coll;
	struct coll_home *h = home_of(c);
	cells_home_vacate(h);
	uint64_t mine = layout, lowest = mine;
	bool occupied = all_here(c) && cells_home_occupy(h, c), again = s->entered;
	uint64_t agreed[] = {h->seq, !occupied, UINT64_MAX - mine};
	if (occupied)
		h->cell->probe = (uintptr_t)&coll_probe_word;
	s->entered = true;
	if (agree(c, agreed, 3) == MPI_SUCCESS)
		lowest = UINT64_MAX - agreed[2];
	else
		agreed[1] = 1;
	join_cells(c, occupied, agreed);
	for (uint64_t number = lowest + 1; !again && number <= mine; number++)
		change_start(c, number);
	s->joined = true;
}

/* ---- changes ---- */

static void change_apply(struct comm *c, bool apart)
{
	struct coll_state *s = c->coll;
	struct coll_home *h = s->home;
	if (h && (apart || h->mirror)) {
		cells_home_vacate(h);
		s->home = h = NULL;
	}
	if (!h && !apart)
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
		if (s->calls <= ch->value[CHANGE_CALLS])
			return s->home;
		bool apart = ch->value[CHANGE_APART];
		s->changes = ch->next;
		heap_free(ch);
		change_apply(c, apart);
	}
	s->attached = true;
	return s->home;
}

/* ---- life ---- */

void join_init(void)
{
	spread = job_spread();
}

static bool all_given_up(void *unused)
{
	(void)unused;
	for (struct coll_state *s = states; s; s = s->next) {
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

void join_finish(void)
{
	match_wait_until(all_given_up, NULL);
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
 * from there. Without farewell somebody may: then that one waits. */
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
	heap_free(s);
}
