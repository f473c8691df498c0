/* SPDX-License-Identifier: BSD-3-Clause */
/* A meter lives and dies with its process: it is saved in the image and written into the new
 * segment after a rollback. So it tells what the program did on the way to where it is now, as if
 * nothing had failed; what failures cost is in the job's report. */
#include "mpi/profile/profile.h"

#include <string.h>
#include "ckpt/clocks.h"
#include "ckpt/rank.h"
#include "object/datatype.h"

/* Calls of a class before which each is timed, and the mean gap from which on it grows no more. */
enum { EACH_BELOW = 64, GAP_MAX = 256 };

struct rank_meter *profile_meter;

static uint32_t random_state;
/* clock_ns(), and the machine's time, when the checkpoint under way began */
static uint64_t stopped_ns, machine_stopped_ns;
static struct rank_meter *saved; /* during a checkpoint */

/* Around changes of times: odd meanwhile. */
static void change_begin(void)
{
	uint32_t version = atomic_load_explicit(&profile_meter->version, memory_order_relaxed);

	atomic_store_explicit(&profile_meter->version, version + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static void change_end(void)
{
	uint32_t version = atomic_load_explicit(&profile_meter->version, memory_order_relaxed);

	atomic_store_explicit(&profile_meter->version, version + 1, memory_order_release);
}

/* From half to one and a half times the mean, so that a period of the program's does not choose
 * always the same of its calls. */
static uint32_t draw_gap(uint64_t calls)
{
	uint64_t mean = calls / EACH_BELOW < GAP_MAX ? calls / EACH_BELOW : GAP_MAX;

	if (mean <= 1)
		return 1;
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return (uint32_t)(mean / 2 + 1 + random_state % mean);
}

/* The call just entered is drawn: its beginning is timed. */
void profile_sample(void)
{
	uint32_t what = match_call.what;
	struct meter_times *t = &profile_meter->times[what];
	uint32_t gap = atomic_load_explicit(&t->gap, memory_order_relaxed), next;

	change_begin();
	METER_ADD(t->calls, gap);
	next = draw_gap(atomic_load_explicit(&t->calls, memory_order_relaxed));
	atomic_store_explicit(&t->gap, next, memory_order_relaxed);
	atomic_store_explicit(&profile_meter->left[what], next, memory_order_relaxed);
	change_end();
	match_call.weight = gap;
	match_call.since = 0;
	match_call.noted = true;
	match_call.entered = match_clock_ns();
}

static void tell_name(const char *name)
{
	strncpy(profile_meter->inside, name ? name : "", METER_NAME_MAX - 1);
}

/* The call that is being left was drawn, or was long. */
void profile_note(void)
{
	struct match_call *c = &match_call;
	struct meter_times *t = &profile_meter->times[c->what];
	uint64_t now = match_clock_ns();

	change_begin();
	if (c->entered) {
		METER_ADD(t->covered, c->weight);
		METER_ADD(t->short_ns, ((c->since ? c->since : now) - c->entered) * c->weight);
	}
	if (c->since) {
		METER_ADD(t->long_ns, now - c->since);
		profile_meter->inside[0] = '\0';
	}
	change_end();
	*c = (struct match_call){0};
}

/* ---- collectives ---- */

static bool gives(const struct coll_args *a)
{
	const struct comm *c = a->comm;

	switch (a->kind) {
	case COLL_BARRIER:
		return false;
	case COLL_BCAST:
	case COLL_SCATTER:
		return a->root == (c->remote ? MPI_ROOT : c->rank);
	case COLL_GATHER:
	case COLL_REDUCE:
		return !c->remote || a->root >= 0;
	default:
		return true;
	}
}

static uint64_t blocks_bytes(const struct coll_args *a)
{
	/* in place, what is sent is what lies where it will be received */
	bool in_place = a->kind == COLL_ALLTOALL && coll_in_place(a);
	uint64_t sum = 0;

	for (int i = 0; i < a->comm->peers; i++)
		sum += coll_block_bytes(in_place ? coll_recv_block(a, i) : coll_send_block(a, i));
	return sum;
}

/* Bytes that this rank gives to the others and itself. */
static uint64_t collective_bytes(const struct coll_args *a)
{
	uint64_t count = a->rcount;

	if (!gives(a))
		return 0;
	switch (a->kind) {
	case COLL_SCATTER:
	case COLL_ALLTOALL:
		return blocks_bytes(a);
	case COLL_GATHER:
	case COLL_ALLGATHER:
		return coll_block_bytes(coll_in_place(a) ? coll_recv_block(a, a->comm->rank)
							 : coll_send_one(a));
	case COLL_REDUCE_SCATTER:
		count = 0;
		for (int i = 0; i < a->comm->size; i++)
			count += coll_share(a, i);
		return count * a->rtype->size;
	default:
		return count * a->rtype->size;
	}
}

void profile_collective(const struct coll_args *a)
{
	uint64_t bytes = collective_bytes(a);

	METER_ADD(profile_meter->collectives, 1);
	METER_ADD(profile_meter->collective_bytes, bytes);
	if (UNLIKELY(bytes >= MATCH_LONG_BYTES))
		match_call_long();
}

/* ---- life ---- */

/* Others read the meter, by their clocks. */
static uint64_t machine_ns(void)
{
	return clock_ns() - (uint64_t)clocks_ahead();
}

static void on_suspend(void)
{
	stopped_ns = clock_ns();
	machine_stopped_ns = machine_ns();
}

static void on_save(void)
{
	memcpy(saved, profile_meter, sizeof(*saved));
}

static void on_resume(bool restored)
{
	uint64_t skipped = clock_ns() - stopped_ns;

	if (restored) {
		profile_meter = segment_meter(link_self()->segment, link_self()->process);
		memcpy(profile_meter, saved, sizeof(*saved));
	}
	match_skipped_ns += skipped;
	if (atomic_load(&profile_meter->began_ns))
		METER_ADD(profile_meter->began_ns, machine_ns() - machine_stopped_ns);
}

static struct ckpt_participant participant = {
    .name = "profile",
    .suspend_start = on_suspend,
    .save = on_save,
    .resume = on_resume,
};

int profile_init(void)
{
	saved = heap_calloc(1, sizeof(*saved));
	if (!saved)
		return MPI_ERR_NO_MEM;
	profile_meter = segment_meter(link_self()->segment, link_self()->process);
	random_state = 2463534242u + link_self()->rank;
	for (int i = 0; i < METER_CALLS; i++) {
		atomic_store(&profile_meter->times[i].gap, 1);
		atomic_store(&profile_meter->left[i], 1);
	}
	ckpt_participate(&participant);
	match_call_tell = tell_name;
	return MPI_SUCCESS;
}

void profile_begin(void)
{
	match_call = (struct match_call){0};
	atomic_store(&profile_meter->began_ns, machine_ns());
}

void profile_end(void)
{
	atomic_store(&profile_meter->app_ns, machine_ns() - atomic_load(&profile_meter->began_ns));
}
