/* SPDX-License-Identifier: BSD-3-Clause */
/* --hang-after: tells the head of a rank that somebody has stopped (SIGSTOP) for that long. The
 * head decides what follows. A rank that is paused with the whole job does not count, nor one that
 * a debugger holds.
 *
 * In a job with replicas it tells the head also of a process that has computed for that long, of
 * processor time, without a call of MPI: whether it hangs its mates know, which have gone on or
 * not. Time that it stands still in, or that others take from it, does not count.
 *
 * With wait= it tells the head, again and again, how many calls each process has made. The head
 * compares those of a rank's replicas. */
#include "agent/agent_private.h"
#include "node/meter.h"

/* A stop is noticed at this share of the time later at most. */
#define LOOKS 8

static bool stands_still(const struct agent *a, const struct agent_rank *k)
{
	if (k->pid == 0 || k->member <= 0 || k->ended || a->lease.paused)
		return false;
	return agent_process_state(agent_thread_of(k->member)) == 'T';
}

/* Changes with every call of MPI; 0: it is in one, or not between MPI_Init and MPI_Finalize. */
static uint64_t heartbeat_of(const struct agent *a, uint32_t rank)
{
	const struct rank_meter *m = segment_meter(a->view.segment, rank);
	uint64_t beat = 1;

	if (atomic_load(&m->began_ns) == 0 || atomic_load(&m->app_ns) != 0 || m->inside[0])
		return 0;
	for (unsigned i = 0; i < METER_CALLS; i++)
		beat = beat * 0x100000001b3ull + atomic_load(&m->left[i]);
	return beat | 1;
}

static void look_at_heartbeat(struct agent *a, uint32_t rank, double limit)
{
	struct agent_rank *k = &a->ranks[rank];
	uint64_t beat = k->member > 0 && !k->ended ? heartbeat_of(a, rank) : 0;
	double cpu = beat ? agent_process_cpu(agent_thread_of(k->member)) : -1;

	if (cpu < 0 || beat != k->heartbeat) {
		k->heartbeat = beat;
		k->cpu_then = cpu;
	} else if (cpu - k->cpu_then >= limit) {
		agent_send(a, &(struct message){.type = MSG_HUNG,
						.rank = rank,
						.value = -(int32_t)((cpu - k->cpu_then) * 1e3)});
	}
}

static void look_at_stop(struct agent *a, uint32_t rank, double limit, double now)
{
	struct agent_rank *k = &a->ranks[rank];

	if (!agent_has(a, rank) || !stands_still(a, k)) {
		k->still_since = 0;
	} else if (k->still_since == 0) {
		k->still_since = now;
	} else if (now - k->still_since >= limit) {
		agent_send(a, &(struct message){.type = MSG_HUNG,
						.rank = rank,
						.value = (int32_t)((now - k->still_since) * 1e3)});
		k->still_since = now; /* said once, and again if nothing follows */
	}
}

/* Calls of MPI so far. False: the rank was just at changing that. */
static bool calls_of(const struct rank_meter *m, uint64_t *calls)
{
	uint32_t version = atomic_load(&m->version);

	*calls = 0;
	for (unsigned i = 0; i < METER_CALLS; i++)
		*calls += atomic_load(&m->times[i].calls) + atomic_load(&m->times[i].gap) -
			  atomic_load(&m->left[i]);
	return version % 2 == 0 && version == atomic_load(&m->version);
}

static void tell_beat(struct agent *a, uint32_t rank)
{
	const struct rank_meter *m = segment_meter(a->view.segment, rank);
	const struct agent_rank *k = &a->ranks[rank];
	uint64_t calls;

	if (k->member <= 0 || k->ended || a->lease.paused || atomic_load(&m->began_ns) == 0 ||
	    atomic_load(&m->app_ns) != 0 || !calls_of(m, &calls))
		return;
	agent_send(
	    a, &(struct message){
		   .type = MSG_BEAT, .rank = rank, .number = calls, .flags = m->inside[0] != '\0'});
}

/* The shortest of the times. */
static double look_seconds(const struct agent *a)
{
	uint64_t times[] = {a->setup.hang_ns, a->setup.compute_ns, a->setup.wait_ns}, ns = 0;

	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (times[i] > 0 && (ns == 0 || times[i] < ns))
			ns = times[i];
	return (double)ns * 1e-9 / LOOKS;
}

static void look(void *arg)
{
	struct agent *a = arg;
	double now = clock_seconds();

	for (uint32_t r = 0; a->ranks && r < a->setup.nranks; r++) {
		if (a->setup.hang_ns > 0)
			look_at_stop(a, r, (double)a->setup.hang_ns * 1e-9, now);
		if (a->setup.compute_ns > 0 && a->setup.degree > 1 && a->view.segment &&
		    agent_has(a, r))
			look_at_heartbeat(a, r, (double)a->setup.compute_ns * 1e-9);
		if (a->setup.wait_ns > 0 && a->setup.degree > 1 && a->view.segment &&
		    agent_has(a, r))
			tell_beat(a, r);
	}
	loop_timer_set(&a->loop, &a->hang, look_seconds(a), look, a);
}

void agent_hang_start(struct agent *a)
{
	if (a->setup.hang_ns > 0 || a->setup.compute_ns > 0 || a->setup.wait_ns > 0)
		loop_timer_set(&a->loop, &a->hang, look_seconds(a), look, a);
}

void agent_hang_stop(struct agent *a)
{
	loop_timer_clear(&a->loop, &a->hang);
}
