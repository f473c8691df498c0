/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy that comes while all others run (docs/shadows.md, "One pair alone"): its node's segment
 * stays what it is, and all nodes learn where it lives. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/agent_private.h"
#include "node/living.h"

/* Seconds between two looks of processes that compute at what has come. */
#define KICK_EVERY 0.004

bool agent_move_is_alone(const struct agent *a)
{
	const struct agent_move *v = &a->move;

	return v->id && (v->went ? v->old.generation : v->coming.generation) == a->view.generation;
}

/* Nothing of what another process had in that place is left, but that it is dead. */
static void mailbox_wipe(struct mailbox *m)
{
	const size_t lost = offsetof(struct mailbox, lost), behind = lost + sizeof(m->lost);

	memset(m, 0, lost);
	memset((char *)m + behind, 0, sizeof(*m) - behind);
	for (int i = 0; i < MAILBOX_OWN_FDS; i++)
		m->own_fd[i] = -1;
}

static void place(struct segment *s, uint32_t process, bool here)
{
	struct segment_address *at = segment_address_of(s, process);

	if (here) {
		mailbox_wipe(segment_mailbox(s, process));
		atomic_store(&segment_mailbox(s, process)->alone, 1);
	}
	if (!at->away == here)
		return;
	at->away = !here;
	s->nhere += here ? 1 : -1;
}

static hale_status_t share(const struct agent_view *now, struct agent_view *v, struct error *err)
{
	if (!now->segment)
		return HALE_OK;
	v->segment_fd = fcntl(now->segment_fd, F_DUPFD_CLOEXEC, 0);
	if (v->segment_fd < 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot share the segment");
	v->segment = mmap(NULL, now->segment->bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_NORESERVE, v->segment_fd, 0);
	if (v->segment != MAP_FAILED)
		return HALE_OK;
	v->segment = NULL;
	return error_sys(err, HALE_ERR_MEMORY, "cannot map the shared segment");
}

hale_status_t agent_layout_shared(struct agent *a, const uint32_t *node_of, struct agent_view *v,
				  struct error *err)
{
	uint32_t n = a->setup.nranks;
	hale_status_t status;

	*v = (struct agent_view){.generation = a->view.generation, .segment_fd = -1, .slot = -1};
	v->node_of = malloc(n * sizeof(*node_of));
	if (!v->node_of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u ranks", n);
	memcpy(v->node_of, node_of, n * sizeof(*node_of));
	for (uint32_t p = 0; p < n; p++)
		v->here += node_of[p] == a->setup.node;
	status = share(&a->view, v, err);
	for (uint32_t p = 0; status == HALE_OK && v->segment && p < n; p++)
		if (a->view.node_of[p] == LIVING_NOWHERE && node_of[p] != LIVING_NOWHERE)
			place(v->segment, p, node_of[p] == a->setup.node);
	agent_view_swap(a, v);
	agent_view_write(a, v->generation, node_of);
	agent_view_swap(a, v);
	return status;
}

/* Who computes answers nobody: it is interrupted for a moment. */
static void kick(void *arg)
{
	struct agent *a = arg;

	for (uint32_t p = 0; p < a->setup.nranks; p++)
		if (agent_has(a, p) && a->ranks[p].pid > 0 && a->ranks[p].initialized &&
		    !a->ranks[p].finalized)
			agent_signal_member(a, p, PROTO_CKPT_SIGNAL);
	if (a->move.id)
		loop_timer_set(&a->loop, &a->move.holding, KICK_EVERY, kick, a);
}

void agent_kick(struct agent *a)
{
	kick(a);
}
