/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of processes in reserve and of spawned ones: what MPI_Init, MPI_Finalize and exit() do
 * there that they do nowhere else. */
#include <stdio.h>
#include <stdlib.h>
#include "mpi/dynamic/dynamic.h"
#include "mpi/env/env.h"

static bool spawn_is_spawned(void)
{
	return world_text() && getenv("HALE_SPAWNED");
}

/* A spawned program learns here from whom it comes. */
static void parent_meet(const char *spawned)
{
	int process, tag;
	struct comm *out;
	if (sscanf(spawned, "%d:%d", &process, &tag) != 2)
		return;
	order_begun();
	int rc = intercomm_meet(COMM_WORLD, 0, world_all(), process, tag, &out);
	if (rc) {
		log_warn("MPI_Init of a spawned process can't reach those who spawned it");
		link_abort(1);
	}
	spawn_parent_set(out);
}

static void spawn_init_end(void)
{
	const char *spawned = getenv("HALE_SPAWNED");
	if (!world_all())
		return;
	match_crowd_look();
	if (world_in_reserve())
		order_await();
	else if (world_text() && spawned)
		parent_meet(spawned);
}

static void spawn_let_go(void)
{
	struct segment *s = link_self()->segment;
	if (!world_text() || spawn_is_spawned() || COMM_WORLD->rank != 0 || world_in_reserve())
		return;
	atomic_store(&s->spawn_over, 1);
	for (uint32_t p = 0; p < s->nranks; p++)
		if (segment_here(s, p))
			mailbox_ring(segment_mailbox(s, p));
}

/* Spawned processes do not leave before the job does: without them no further checkpoint would be
 * whole. The handlers of exit() that were there before MPI_Init run behind this one. */
static void rest(void)
{
	if (!link_self()->connected || api_state != API_FINALIZED)
		return;
	fflush(NULL);
	guard_enter();
	order_rest();
	link_mpi_finalized();
	guard_leave();
}

static void spawn_rest_at_exit(void)
{
	order_done();
	if (atexit(rest) != 0)
		rest();
}

__attribute__((constructor)) static void spawn_life_give(void)
{
	static const struct env_life life = {.init_end = spawn_init_end,
					     .stays = spawn_is_spawned,
					     .let_go = spawn_let_go,
					     .rest_at_exit = spawn_rest_at_exit};
	env_life_set(&life);
}
