// SPDX-License-Identifier: BSD-3-Clause
/* The policy `redundant` over a channel that this test moves: all processes of a job live in this
 * one, a seeded scheduler runs one step of one of them at a time, and processes die at any step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "ckpt/rank.h"
#include "deliver/replicas.h"
#include "node/proto.h"

enum {
	RANKS = 3,
	AFTER_THE_END = 64, /* records to a process that has left: half a ring */
	DEGREE_MAX = 3,
	PROCESSES_MAX = RANKS * DEGREE_MAX,
	CONTEXTS = 2,
	MESSAGES = 8, /* of each rank to each other one */
	ROOM = 3,     /* records in a queue */
	RECORD = 64,  /* bytes in a record, or after a restart elsewhere twice as many */
	LONGEST = 300,
	LENT = 90, /* longer messages are lent, where that is wanted */
};

struct redundant_record {
	struct envelope envelope;
	unsigned char payload[2 * RECORD];
};

struct redundant_queue {
	struct redundant_record at[ROOM];
	int n;
};

/* What belongs to one process while another one runs. */
struct redundant_process {
	struct replicas state;
	struct link link;
	struct ledger ledger[CONTEXTS][RANKS];
	int sent;	  /* steps of its program */
	int to_of[RANKS]; /* … to each receiver, of those that have an order of their own */
	bool dead, left;
	uint32_t heard;				      /* determinants, in order */
	uint32_t decided[MESSAGES * (RANKS - 1) + 1]; /* … by number; 0: not yet */
};

static struct redundant_process process[PROCESSES_MAX];
static struct redundant_queue queue[PROCESSES_MAX][PROCESSES_MAX];
static unsigned char lost[PROCESSES_MAX];
static struct segment *segment;
static size_t segment_used; /* nobody here touches more of it */
static uint32_t me, deaths_told;
static unsigned long long state;
static uint32_t degree = 2, processes = 2 * RANKS;
static enum compare_mode compare;
static uint32_t lend_min = UINT32_MAX;
static uint32_t loans, refusals, lent_at_once;
static uint32_t gaps; /* messages that a process with a refused loan was sent, behind it */
static bool resizes;  /* records have now more room, now less */
/* Each replica sends in an order of its own; what one receiver gets has one order. */
static bool any_order;
static uint32_t numbers_begin; /* so many messages have been there before */
static uint32_t providers_told;
static bool shadows; /* the second process of each rank is slow and mute (docs/shadows.md) */
/* --sdc: of the records of this replica of each rank, those from the flip_at'th on, each
 * flip_each'th, get a wrong bit (0: none) */
static uint32_t flip_slot, flip_at, flip_each, flip_records, flipped;
static struct proto_sdc told; /* the last one */
static uint32_t told_count, calls;
/* The third process of each rank is a witness (docs/audit.md). */
static bool audits, witnesses_are_late;
/* This process opens MPI when a death has been told of, not before. */
static uint32_t opens_late = UINT32_MAX;
static size_t opens_with;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % below;
}

/* ---- what the policy stands on ---- */

const struct link *link_self(void)
{
	return &process[me].link;
}
void link_abort(int code)
{
	fail_msg("process %u gave up", me);
	_exit(code);
}

void link_sdc_tell(struct proto_sdc *found)
{
	calls += found->called;
	if (found->called)
		return;
	told = *found;
	told_count++;
}

static size_t record_max = RECORD;

/* What can be wrong without the channel itself being broken. */
static void maybe_flip(struct redundant_record *r)
{
	uint8_t kind = r->envelope.kind;
	if (flip_at == 0 || me / RANKS != flip_slot ||
	    (kind != RECORD_EAGER && kind != REPLICA_PART && kind != REPLICA_DIGEST))
		return;
	flip_records++;
	if (flip_records < flip_at || (flip_records - flip_at) % flip_each != 0)
		return;
	r->payload[draw(r->envelope.length)] ^= (unsigned char)(1u << draw(8));
	flipped++;
}

static bool queue_send(uint32_t to, const struct envelope *e, const void *payload)
{
	struct redundant_queue *q = &queue[me][to];
	assert_true(e->length <= record_max);
	if (process[to].left) { /* nobody reads them any more: a ring has room for so many */
		assert_true(q->n++ < AFTER_THE_END);
		return true;
	}
	if (shadows && redundant_is_shadow())
		assert_true(e->kind != RECORD_EAGER && e->kind != RECORD_SYNC &&
			    e->kind != REPLICA_BIG && e->kind != REPLICA_PART);
	if (q->n == ROOM)
		return false;
	q->at[q->n].envelope = *e;
	if (e->length)
		memcpy(q->at[q->n].payload, payload, e->length);
	maybe_flip(&q->at[q->n]);
	q->n++;
	return true;
}

/* Of the living only, and only what they keep. */
static bool keeps(uint32_t of, const struct iovec *v)
{
	const struct replicas *r = &process[of].state;

	if (process[of].dead)
		return false;
	for (uint32_t to = 0; to < RANKS; to++)
		for (const struct kept *k = r->remote[to].first; k; k = k->next)
			if ((const unsigned char *)v->iov_base >= k->payload &&
			    (const unsigned char *)v->iov_base + v->iov_len <=
				k->payload + k->envelope.length)
				return true;
	fail_msg("process %u reads what process %u does not keep", me, of);
	return false;
}

/* Perhaps a part of it; now and then it can't be done. */
static ssize_t queue_get(uint32_t rank, const struct iovec *local, size_t nlocal,
			 const struct iovec *remote, size_t nremote, bool stable)
{
	size_t n = draw(2) ? local->iov_len : 1 + draw((uint32_t)local->iov_len);
	bool refused = !keeps(rank, remote) || draw(40) == 0;

	loans += !refused;
	refusals += refused;
	if (refused)
		return draw(2) ? 0 : -1;
	memcpy(local->iov_base, remote->iov_base, n);
	return (ssize_t)n;
}

static ssize_t queue_put(uint32_t rank, const struct iovec *local, size_t nlocal,
			 const struct iovec *remote, size_t nremote)
{
	fail();
	return -1;
}

static const struct channel_ops channel_queue = {.name = "queue",
						 .send = queue_send,
						 .get = queue_get,
						 .put = queue_put,
						 .eager_max = &record_max};

hale_status_t channel_open_all(channel_arrive_t *arrive, struct error *err)
{
	return HALE_OK;
}
void channel_close_all(void)
{
}
const struct channel_ops *channel_for(uint32_t rank)
{
	return &channel_queue;
}

/* One record of one sender that has any, or (all) everything. */
static int poll_from(uint32_t from)
{
	struct redundant_queue *q = &queue[from][me];
	struct redundant_record r = q->at[0];
	if (q->n == 0)
		return 0;
	memmove(q->at, q->at + 1, (size_t)--q->n * sizeof(r));
	gaps += replicas.wire[from].refused && r.envelope.kind == RECORD_EAGER;
	receipt_arrive(from, &r.envelope, r.payload);
	return 1;
}

void channel_forget_all(uint32_t rank)
{
}

void channel_renew_all(uint32_t rank)
{
	queue[me][rank].n = queue[rank][me].n = 0;
}

int channel_poll_all(void)
{
	int n = 0;
	for (uint32_t p = 0; p < processes; p++)
		n += poll_from(p);
	return n;
}

/* ---- the program: what each rank sends, the same in all replicas ---- */

static void step_of(uint32_t rank, int step, uint32_t *to, uint32_t *context, uint32_t *length)
{
	uint32_t x = rank * 2654435761u + (uint32_t)step * 40503u;
	*to = (rank + 1 + (uint32_t)step % (RANKS - 1)) % RANKS;
	*context = (x >> 7) % CONTEXTS;
	*length = 4 + (x >> 3) % (LONGEST - 4);
}
enum { STEPS = MESSAGES * (RANKS - 1) };

static unsigned char byte_of(uint32_t rank, uint32_t context, uint32_t number, uint32_t i)
{
	return (unsigned char)(rank * 131 + context * 37 + number * 7 + i);
}

/* Which step of its program does this process try next? */
static int step_next(const struct redundant_process *p)
{
	uint32_t to;

	if (!any_order)
		return p->sent;
	do
		to = draw(RANKS - 1);
	while (p->to_of[to] == MESSAGES);
	return p->to_of[to] * (RANKS - 1) + (int)to;
}

/* Whoever lives of a rank has decided the same. */
static void decision_note(uint32_t number, uint32_t what)
{
	process[me].decided[number] = what;
	for (uint32_t q = me % RANKS; q < processes; q += RANKS)
		if (!process[q].dead && process[q].decided[number] != 0)
			assert_int_equal(process[q].decided[number], what);
}

static void program_step(void)
{
	struct redundant_process *p = &process[me];
	uint32_t to, context, length;
	unsigned char payload[LONGEST];
	int step = step_next(p);
	step_of(replicas.rank, step, &to, &context, &length);
	struct ledger *l = &p->ledger[context][to];
	struct envelope e = {
	    .kind = RECORD_EAGER, .length = length, .context = context, .number = deliver_next(l)};
	/* the first bytes say on how many determinants it depends; each step of a leader makes one
	 */
	uint32_t depends = (uint32_t)step + 1;
	for (uint32_t i = 0; i < length; i++)
		payload[i] = byte_of(replicas.rank, context, e.number, i);
	memcpy(payload, &depends, sizeof(depends));
	while (redundant_leads() && p->heard < depends) {
		uint32_t what = 1 + draw(1 << 30);
		struct envelope d = {.length = sizeof(what)};
		redundant_determine(&d, &what);
		decision_note(++p->heard, what);
	}
	if (p->heard < depends) /* a follower waits for it */
		return;
	if (!channel_redundant.send(to, &e, payload))
		return;
	l->sent++;
	p->sent++;
	p->to_of[step % (RANKS - 1)]++;
}

/* What has been heard of a rank's determinants by a process, or lies in the memory of its node. */
static uint32_t determinants_there(uint32_t of)
{
	uint32_t most = process[of].heard;
	for (uint32_t p = 0; p < processes; p++)
		for (int i = 0; i < queue[p][of].n; i++)
			if (queue[p][of].at[i].envelope.kind == REPLICA_DETERMINANT &&
			    queue[p][of].at[i].envelope.number > most)
				most = queue[p][of].at[i].envelope.number;
	return most;
}

/* It is a copy that its main has not told everything yet. */
static bool joins(uint32_t p);

static void on_arrive(uint32_t from, const struct envelope *e, const void *payload)
{
	struct ledger *l = &process[me].ledger[e->context][from];
	uint32_t depends;
	if (!deliver_accept(l, from, e, payload))
		return;
	assert_int_equal(e->number, l->have);
	memcpy(&depends, payload, sizeof(depends));
	for (uint32_t i = sizeof(depends); i < e->length; i++)
		assert_int_equal(((const unsigned char *)payload)[i],
				 byte_of(from, e->context, e->number, i));
	/* the output rule: whoever lives of that rank can replay what this depends on */
	for (uint32_t s = 0; s < degree; s++)
		if (!process[s * RANKS + from].dead && !joins(s * RANKS + from))
			assert_true(determinants_there(s * RANKS + from) >= depends);
}

static void on_heard(const struct envelope *e, const void *payload)
{
	uint32_t what;
	assert_int_equal(e->number, process[me].heard + 1);
	process[me].heard++;
	memcpy(&what, payload, sizeof(what));
	decision_note(e->number, what);
}
static void on_promoted(void)
{
}
static void on_demoted(void)
{
}
static void on_output(void)
{
}
static bool is_late(void)
{
	return witnesses_are_late;
}

/* ---- the scheduler ---- */

static void switch_to(uint32_t p)
{
	process[me].state = replicas;
	me = p;
	replicas = process[me].state;
}

/* As after a long run: what it has told its providers is some time ago. */
static void numbers_set(void)
{
	for (uint32_t c = 0; c < CONTEXTS; c++)
		for (uint32_t r = 0; r < RANKS; r++) {
			struct lane *l = replica_lane(r, c);

			process[me].ledger[c][r] =
			    (struct ledger){.sent = numbers_begin, .have = numbers_begin};
			l->sent = l->have = l->mate_sent = l->shown = numbers_begin;
			l->told = numbers_begin - 30;
			for (uint32_t s = 0; s < degree; s++)
				l->acked[s] = numbers_begin - (s == replicas.slot ? 1 << 20 : 0);
		}
}

static void process_opens(size_t kept_max)
{
	static const struct redundant_hooks hooks = {on_heard, on_promoted, on_demoted, on_output,
						     is_late};
	struct error err;

	process[me].link = (struct link){.rank = me % RANKS,
					 .nranks = RANKS,
					 .process = me,
					 .nprocesses = processes,
					 .degree = degree,
					 .segment = segment,
					 .mailbox = segment_mailbox(segment, me)};
	assert_int_equal(redundant_open(on_arrive, &hooks, &err), HALE_OK);
	replicas.kept_max = kept_max;
	replicas.lend_min = lend_min;
	replicas.compare = compare;
	mirror_follow_view();
	if (numbers_begin)
		numbers_set();
}

static void everything_begins(size_t kept_max)
{
	memset(process, 0, sizeof(process));
	memset(queue, 0, sizeof(queue));
	memset(lost, 0, sizeof(lost));
	memset(segment, 0, segment_used);
	segment_layout(segment, processes, 2, 1);
	segment->shadows = shadows ? RANKS : 0;
	segment->audits = audits;
	deaths_told = 0;
	/* room for a jump: nobody is there */
	for (uint32_t p = 2 * RANKS; shadows && p < processes; p++) {
		process[p].dead = true;
		lost[p] = 1;
		atomic_store(&segment_mailbox(segment, p)->lost, LIVING_ABSENT);
	}
	for (me = 0; me < processes; me++) {
		if (me == opens_late)
			continue;
		process_opens(kept_max);
		process[me].state = replicas;
	}
	me = 0;
	replicas = process[0].state;
	deliver_policy = &deliver_redundant;
}

static void kill_process(uint32_t p)
{
	process[p].dead = true;
}

/* The head has noticed: all hear of it, each when it looks. */
static void death_publish(uint32_t p)
{
	atomic_store(&segment_mailbox(segment, p)->lost, 1);
	atomic_store(&segment->view, ++deaths_told);
	lost[p] = 1;
}

static bool has_all(const struct redundant_process *p, uint32_t rank)
{
	uint32_t have = 0, expected = STEPS;
	for (uint32_t r = 0; r < RANKS; r++)
		for (uint32_t c = 0; r != rank && c < CONTEXTS; c++)
			have += (uint32_t)p->ledger[c][r].have - numbers_begin;
	return have == expected;
}

/* Nobody waits for the shadow of a main that has ended. */
static bool is_needed(uint32_t p)
{
	if (audits)
		return p < 2 * RANKS || (process[p - RANKS].dead && process[p - 2 * RANKS].dead);
	for (uint32_t q = p; shadows && q >= RANKS; q -= RANKS)
		if (!process[q - RANKS].dead)
			return false;
	return true;
}

static bool all_over(void)
{
	for (uint32_t p = 0; p < processes; p++)
		if (!process[p].dead && !process[p].left && is_needed(p))
			return false;
	return true;
}

/* Process p takes one step of its program, or of the policy, or takes one record. */
static void process_step(uint32_t p)
{
	switch_to(p);
	if (p == opens_late && !replicas.wire)
		process_opens(opens_with);
	switch (draw(4)) {
	case 0:
		if (process[p].sent < STEPS && (!shadows || !redundant_is_shadow() || draw(4) == 0))
			program_step();
		break;
	case 1:
		redundant_progress();
		break;
	default:
		poll_from(draw(processes));
	}
}

static void random_step(void)
{
	uint32_t p = draw(processes);
	if (process[p].dead || process[p].left || (p == opens_late && deaths_told == 0))
		return;
	process_step(p);
	for (uint32_t q = 0; q < processes; q++)
		if (replicas.wire[q].nlent > lent_at_once)
			lent_at_once = replicas.wire[q].nlent;
	if (process[p].sent < STEPS || !has_all(&process[p], replicas.rank))
		return;
	if (!replicas.leaving)
		redundant_leave();
	process[p].left = redundant_left(NULL);
}

static void everything_ends(void)
{
	for (uint32_t p = 0; p < processes; p++) {
		switch_to(p);
		for (uint32_t r = 0; numbers_begin && r < RANKS; r++)
			providers_told +=
			    number_reached(replica_lane(r, 0)->acked[replicas.slot], numbers_begin);
		redundant_close();
		process[p].state = replicas;
	}
}

/* Then the head ends witnesses, since nobody serves them any more. */
static bool anybody_left(void)
{
	for (uint32_t p = 0; p < processes; p++)
		if (process[p].left)
			return true;
	return false;
}

/* One job: victims die after so many steps and are noticed some steps later. Returns the steps. */
static int job(unsigned seed, size_t kept_max, const uint32_t *victim, const int *when,
	       int nvictims)
{
	int steps = 0, noticed[PROCESSES_MAX] = {0};
	state = seed * 977 + 1;
	opens_with = kept_max;
	everything_begins(kept_max);
	for (; !all_over(); steps++) {
		assert_true(steps < 400000); /* somebody waits for ever */
		for (int i = 0; i < nvictims; i++) {
			if (!process[victim[i]].dead && !process[victim[i]].left &&
			    steps >= when[i] && !(audits && anybody_left())) {
				kill_process(victim[i]);
				noticed[i] = steps + 1 + (int)draw(200);
			}
			if (process[victim[i]].dead && !lost[victim[i]] && steps >= noticed[i])
				death_publish(victim[i]);
		}
		if (resizes && draw(20) == 0)
			record_max = RECORD * (1 + draw(2));
		random_step();
	}
	everything_ends();
	record_max = RECORD;
	return steps;
}

static void undisturbed_jobs_end(void **unused)
{
	for (unsigned seed = 1; seed <= 50; seed++)
		job(seed, 1 << 20, NULL, NULL, 0);
}

static void memory_at_its_bound_lets_senders_wait_but_nothing_is_lost(void **unused)
{
	for (unsigned seed = 1; seed <= 50; seed++)
		job(seed, 500, NULL, NULL, 0);
}

/* Each process dies at every so manieth step of a job. */
static void whoever_dies_whenever_nothing_is_lost(void **unused)
{
	int steps = job(1, 1 << 20, NULL, NULL, 0);
	for (uint32_t p = 0; p < processes; p++)
		for (int when = 0; when < steps; when += 1 + steps / 40)
			job((unsigned)when % 7 + 1, when % 3 ? 1 << 20 : 700, &p, &when, 1);
}

/* One process of every rank dies. */
static void one_of_each_rank_may_die(void **unused)
{
	int steps = job(1, 1 << 20, NULL, NULL, 0);
	for (unsigned seed = 1; seed <= 300; seed++) {
		uint32_t victim[RANKS];
		int when[RANKS];
		state = seed;
		for (uint32_t r = 0; r < RANKS; r++) {
			victim[r] = r + draw(degree) * RANKS;
			when[r] = (int)draw((uint32_t)steps);
		}
		job(seed, seed % 2 ? 1 << 20 : 700, victim, when, RANKS);
	}
}

static void compared(uint32_t of, enum compare_mode mode)
{
	degree = of;
	processes = of * RANKS;
	compare = mode;
}

#include "deliver/redundant_bound_cases.h"
#include "deliver/redundant_late_cases.h"
#include "deliver/redundant_shadow_cases.h"
#include "deliver/redundant_jump_cases.h"
#include "deliver/redundant_compare_cases.h"
#include "deliver/redundant_audit_cases.h"

/* ---- memory of long messages ---- */

static int lent_over(void **unused)
{
	shadows = false;
	lend_min = UINT32_MAX;
	resizes = false;
	compared(2, COMPARE_OFF);
	return 0;
}

#include "deliver/redundant_clone_cases.h"

/* Messages that receivers copy out of the memory of senders, who may be dead by then. */
static void lent_messages_are_kept_until_they_are_taken(void **unused)
{
	loans = refusals = lent_at_once = gaps = 0;
	lend_min = LENT;
	for (int with = 0; with < 4; with++) {
		shadows = with == 1;
		resizes = with == 3;
		compared(with == 2 ? 3 : 2, with == 2 ? COMPARE_FULL : COMPARE_OFF);
		undisturbed_jobs_end(NULL);
		memory_at_its_bound_lets_senders_wait_but_nothing_is_lost(NULL);
		whoever_dies_whenever_nothing_is_lost(NULL);
		one_of_each_rank_may_die(NULL);
	}
	assert_true(loans > 1000 && refusals > 100);
	assert_true(lent_at_once > 1 && gaps > 100);
	assert_int_equal(told_count, 0);
}

/* The memory of long messages serves the next ones that need about as much. */
static void memory_of_long_messages_is_used_again(void **unused)
{
	enum { SIZE = 100 << 10, MANY = 40 };
	struct kept *k = kept_alloc(SIZE), *many[MANY];
	size_t before, in_use, mapped;

	kept_free(k);
	assert_ptr_equal(kept_alloc(SIZE - 1000), k);
	kept_free(k);
	struct kept *small = kept_alloc(SIZE / 4), *large = kept_alloc(SIZE + 1);
	assert_true(small != k && large != k);
	kept_free(small);
	kept_free(large);
	blocks_forget();
	heap_stats(&before, &mapped);
	for (int i = 0; i < MANY; i++)
		many[i] = kept_alloc((size_t)SIZE * 20);
	for (int i = 0; i < MANY; i++)
		kept_free(many[i]);
	heap_stats(&in_use, &mapped);
	assert_in_range(in_use - before, 1, 16 << 20);
	blocks_forget();
	heap_stats(&in_use, &mapped);
	assert_int_equal(in_use, before);
}

static int segment_get(void **unused)
{
	segment = calloc(1, segment_bytes(PROCESSES_MAX));
	if (!segment)
		return 1;
	segment_layout(segment, PROCESSES_MAX, 2, 1);
	segment_used = segment->channel_offset;
	return 0;
}

static int segment_put(void **unused)
{
	free(segment);
	return 0;
}

/* With an argument: the cases of that name alone (with * and ?). */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(undisturbed_jobs_end),
	    cmocka_unit_test(memory_at_its_bound_lets_senders_wait_but_nothing_is_lost),
	    cmocka_unit_test(whoever_dies_whenever_nothing_is_lost),
	    cmocka_unit_test(one_of_each_rank_may_die),
	    cmocka_unit_test(after_two_thousand_million_messages_all_go_on),
	    cmocka_unit_test_teardown(replicas_with_different_orders_do_not_block_each_other,
				      any_order_over),
	    cmocka_unit_test_teardown(receivers_of_replicas_with_different_orders_may_die,
				      any_order_over),
	    cmocka_unit_test_teardown(who_opens_after_a_death_knows_what_the_dead_had_decided,
				      late_over),
	    cmocka_unit_test_teardown(lent_messages_are_kept_until_they_are_taken, lent_over),
	    cmocka_unit_test_teardown(shadows_stand_in_for_whoever_dies, shadows_over),
	    cmocka_unit_test_teardown(
		figure_2_a_main_that_lives_ends_first_and_a_shadow_does_the_rest_at_full_speed,
		shadows_over),
	    cmocka_unit_test_teardown(a_shadow_jumps_while_all_others_run, jumps_over),
	    cmocka_unit_test_teardown(whoever_dies_in_the_jump_of_one_pair_nothing_is_lost,
				      jumps_over),
	    cmocka_unit_test_teardown(one_of_each_rank_may_die_about_a_jump, jumps_over),
	    cmocka_unit_test_teardown(compared_jobs_end_whoever_dies, compared_over),
	    cmocka_unit_test_teardown(no_flip_is_missed_by_two, compared_over),
	    cmocka_unit_test_teardown(flips_are_corrected_by_three, compared_over),
	    cmocka_unit_test_teardown(two_of_each_rank_of_three_may_die, compared_over),
	    cmocka_unit_test_teardown(who_has_died_comes_back_as_a_copy, clones_over),
	    cmocka_unit_test_teardown(
		no_decision_is_lost_or_made_twice_when_one_of_three_comes_back, clones_over),
	    cmocka_unit_test_teardown(processes_die_and_come_back_in_turn, clones_over),
	    cmocka_unit_test_teardown(compared_processes_die_and_come_back_in_turn, clones_over),
	    cmocka_unit_test_teardown(the_source_of_a_copy_dies_when_some_have_gone_on,
				      clones_over),
	    cmocka_unit_test_teardown(a_witness_that_nobody_asks_holds_nobody_up, audits_over),
	    cmocka_unit_test_teardown(a_witness_decides_between_two_that_differ, audits_over),
	    cmocka_unit_test_teardown(a_wrong_witness_does_no_harm, audits_over),
	    cmocka_unit_test_teardown(a_witness_goes_on_when_nobody_else_is_left, audits_over),
	    cmocka_unit_test_teardown(claims_of_the_convicted_are_void, audits_over),
	    cmocka_unit_test(memory_of_long_messages_is_used_again),
	};
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, segment_get, segment_put);
}
