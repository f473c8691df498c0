/* SPDX-License-Identifier: BSD-3-Clause */
/* How the agent learns that ranks have ended. Ranks are children of the supervisor, which writes
 * their exit statuses into the node's record (the book). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/agent_private.h"

static bool is_late_copy(const struct agent *a, const struct agent_rank *r, int status)
{
	return agent_is_copy(a, r->rank) && a->move.went && WIFEXITED(status) &&
	       WEXITSTATUS(status) != EXIT_UNRECOVERED;
}

/* clang's OpenMP library takes this name back only when its process ends by itself. */
static void libomp_forget(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/__KMP_REGISTERED_LIB_%d_%d", (int)pid,
		 (int)getuid());
	unlink(path);
}

static uint32_t spawn_state_of(const struct agent *a, uint32_t rank)
{
	return atomic_load(&segment_spawn_room(a->view.segment, rank)->state);
}

static bool waits_for_end(uint32_t state)
{
	return state == SPAWN_STARTING || state == SPAWN_IDLE || state == SPAWN_DONE;
}

void agent_reserve_end(struct agent *a)
{
	if (!a->view.segment)
		return;
	atomic_store(&a->view.segment->spawn_over, 1);
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (agent_has(a, r))
			mailbox_ring(agent_mailbox(a, r));
}

/* Processes in reserve for MPI_Comm_spawn end when all others have ended well, also those that have
 * not come to wait yet. The first world says so in MPI_Finalize; programs that never call it are
 * why the agent looks, too, where all processes are its own. */
static void reserve_let_go(struct agent *a)
{
	if (a->view.here < a->setup.nranks)
		return;
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		const struct agent_rank *k = &a->ranks[r];

		if (!agent_has(a, r))
			continue;
		if (k->ended ? k->status != 0 : !waits_for_end(spawn_state_of(a, r)))
			return;
	}
	agent_reserve_end(a);
}

/* A spawned process may end itself after MPI_Finalize, by _exit for instance. The head is told that
 * it has finalized. */
static void tell_finalized(struct agent *a, struct agent_rank *r)
{
	struct proto_plain p = {.type = PROTO_FINALIZED};

	if (!a->view.segment || spawn_state_of(a, r->rank) != SPAWN_DONE || r->finalized)
		return;
	r->finalized = true;
	agent_send(a, &(struct message){
			  .type = MSG_PACKET, .rank = r->rank, .bytes = &p, .len = sizeof(p)});
}

/* The head gets a rank's last packets and output before it hears that the rank has ended. The agent
 * records them piece by piece. Until all are recorded, the process counts as alive. */
static void rank_ended(struct agent *a, struct agent_rank *r, int status)
{
	agent_conn_drain(r);
	/* the output of the source goes first, and some of that may still be on its way */
	if (is_late_copy(a, r, status)) {
		r->pid = 0;
		r->late = true;
		r->status = status;
		return;
	}
	if (r->moved) /* its copy runs; a script around it was killed with it */
		status = EXIT_MOVED << 8;
	for (int i = 0; i < 2; i++)
		stream_drain(&r->out[i]);
	if (WIFSIGNALED(status) && r->pid > 0)
		libomp_forget(r->pid);
	r->pid = 0;
	if (r->rank == 0)
		stdin_sink_close(&a->streams.stdin_sink);
	r->ended = true;
	r->late = false;
	r->status = status;
	if (supervisor_over(&a->supervisor))
		return;
	if (agent_is_copy(a, r->rank)) {
		agent_move_ended(a, r->rank, status);
		return;
	}
	tell_finalized(a, r);
	agent_send(a,
		   &(struct message){.type = MSG_ENDED, .rank = r->rank, .value = (int32_t)status});
	if (a->view.segment)
		reserve_let_go(a);
}

/* Without a supervisor nobody knows the exit status; SIGKILL stands for it. */
static bool has_ended(const struct agent *a, const struct agent_rank *r, int *status)
{
	const struct book_child *c = &a->supervisor.book->child[r->rank];

	*status = SIGKILL;
	if (r->pid <= 0)
		return false;
	if (atomic_load(&c->pid) == r->pid && atomic_load(&c->ended)) {
		*status = c->status;
		return true;
	}
	return a->orphaned;
}

/* Others may have failed because of those that were killed, as who writes to one of them does. They
 * have ended after them, and the head would take their failure for the job's. */
static void reap_killed(struct agent *a)
{
	int status;

	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (has_ended(a, &a->ranks[r], &status) && WIFSIGNALED(status))
			rank_ended(a, &a->ranks[r], status);
}

/* Ranks are children of the supervisor. The agent's own children copy images and encrypt
 * streams. */
void agent_reap(struct agent *a)
{
	pid_t pid;
	int status;

	for (uint32_t r = 0; a->ranks && r < a->setup.nranks; r++) {
		if (has_ended(a, &a->ranks[r], &status)) {
			if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
				reap_killed(a);
			rank_ended(a, &a->ranks[r], status);
		} else if (a->ranks[r].late && a->move.id == 0) { /* all are released */
			rank_ended(a, &a->ranks[r], a->ranks[r].status);
		}
	}
	agent_stand_look(a);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		agent_seal_ended(a, pid, status);
}

static void reap_now(void *arg)
{
	agent_reap(arg);
}

/* Defers the work: the caller may be in the middle of a change to the ranks that agent_reap looks
 * at. */
void agent_reap_soon(struct agent *a)
{
	loop_timer_set(&a->loop, &a->reaping, 0, reap_now, a);
}

bool agent_clear_rank(struct agent *a, uint32_t rank)
{
	struct agent_rank *r = &a->ranks[rank];

	if (r->group == 0)
		return true;
	if (r->pid > 0 || !agent_group_is_strange(a, rank))
		if (kill(-r->group, SIGKILL) == 0 || errno != ESRCH || r->pid > 0)
			return false;
	r->group = 0;
	supervisor_watch(&a->supervisor, rank, 0);
	agent_conn_drop(a, r);
	return true;
}

bool agent_clear(struct agent *a)
{
	bool clear = true;

	for (uint32_t r = 0; a->ranks && r < a->setup.nranks; r++)
		clear = agent_clear_rank(a, r) && clear;
	return clear;
}
