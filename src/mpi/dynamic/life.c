/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of processes in reserve and of spawned ones: what MPI_Init, MPI_Finalize and exit() do
 * there that they do nowhere else. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "channel/carry/carry.h"
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

/* Nothing that this process has still to send is waited for: its receivers may have left. */
static _Noreturn void reserve_leave(void)
{
	link_mpi_finalized();
	_exit(0);
}

static void spawn_init_end(void)
{
	const char *spawned = getenv("HALE_SPAWNED");
	if (!world_all())
		return;
	if (carry_arrived()) {
		world_carry(carry_arrived());
		port_carry(carry_arrived());
		carry_end();
	}
	match_crowd_look();
	if (keeper_is_me())
		keeper_serve();
	else if (world_in_reserve())
		order_await();
	if (world_in_reserve())
		reserve_leave();
	else if (world_text() && spawned)
		parent_meet(spawned);
}

static void spawn_let_go(void)
{
	if (world_text() && !spawn_is_spawned() && COMM_WORLD->rank == 0 && !world_in_reserve())
		keeper_first_world_over();
}

/* Spawned processes do not leave before the job does: without them no further checkpoint would be
 * whole. The handlers of exit() that were there before MPI_Init run behind this one, and not at all
 * where another program takes the process. */
static void spawn_rest(int status, void *arg)
{
	if (!link_self()->connected || api_state != API_FINALIZED)
		return;
	fflush(NULL);
	guard_enter();
	order_rest(status);
	link_mpi_finalized();
	guard_leave();
}

static void spawn_rest_at_exit(void)
{
	order_done();
	if (on_exit(spawn_rest, NULL) != 0)
		spawn_rest(EXIT_FAILURE, NULL);
}

__attribute__((constructor)) static void spawn_life_give(void)
{
	static const struct env_life life = {.init_end = spawn_init_end,
					     .stays = spawn_is_spawned,
					     .job_ends = order_job_ends,
					     .let_go = spawn_let_go,
					     .rest_at_exit = spawn_rest_at_exit};
	env_life_set(&life);
}
