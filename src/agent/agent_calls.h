/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the agent ask of those above them. A part calls the parts below it by their
 * headers; upward it calls one of these, which agent_calls.c fills, so that no two parts call each
 * other:
 *
 *   agent ─▶ failover ─▶ migration, checkpoint, standby, copies, events ─▶ lease ─▶ ranks ─▶ job
 *     ▲                                                                                 ─▶ session
 *     └──────────────── struct agent_calls ◀── any of them
 */
#ifndef HALE_AGENT_AGENT_CALLS_H
#define HALE_AGENT_AGENT_CALLS_H

struct agent_calls {
	void (*fence)(struct agent *a, const char *why);
	bool (*wait_for_head)(struct agent *a);
	void (*written)(void *agent);
	void (*ckpt_packet)(struct agent *a, uint32_t rank, const struct proto_ckpt *p);
	void (*ckpt_refuse)(struct agent *a);
	void (*move_hello)(struct agent *a, struct agent_conn *c, const struct proto_hello *h);
	void (*move_ended)(struct agent *a, uint32_t rank, int status);
	void (*seal_ended)(struct agent *a, pid_t pid, int status);
	void (*stand_look)(struct agent *a);
	bool (*begin)(struct agent *a);
	hale_status_t (*begin_again)(struct agent *a, struct error *err);
	void (*clear_again)(void *agent);
	void (*leave)(struct agent *a);
	void (*leave_when_clear)(void *agent);
};
extern const struct agent_calls agent_calls;

/* Ends all ranks at once, says why, and then the agent itself. */
static inline void agent_fence(struct agent *a, const char *why)
{
	a->up->fence(a, why);
}

/* The head is gone. True: another one is waited for; false: the ranks are to end. */
static inline bool agent_wait_for_head(struct agent *a)
{
	return a->up->wait_for_head(a);
}

/* What this turn has come to is written down, and only then what it says goes out. */
static inline void agent_written(void *agent)
{
	((struct agent *)agent)->up->written(agent);
}

/* A rank has said something of a checkpoint; what is under way can no longer be kept. */
static inline void agent_ckpt_packet(struct agent *a, uint32_t rank, const struct proto_ckpt *p)
{
	a->up->ckpt_packet(a, rank, p);
}

static inline void agent_ckpt_refuse(struct agent *a)
{
	a->up->ckpt_refuse(a);
}

/* A copy that moves in has said HELLO; its process has ended. */
static inline void agent_move_hello(struct agent *a, struct agent_conn *c,
				    const struct proto_hello *h)
{
	a->up->move_hello(a, c, h);
}

static inline void agent_move_ended(struct agent *a, uint32_t rank, int status)
{
	a->up->move_ended(a, rank, status);
}

/* A child has ended that is no rank: it may be one that seals a stream, and say why that is no
 * good. */
static inline void agent_seal_ended(struct agent *a, pid_t pid, int status)
{
	a->up->seal_ended(a, pid, status);
}

/* A child has ended: processes that stand ready are counted. */
static inline void agent_stand_look(struct agent *a)
{
	a->up->stand_look(a);
}

/* Begins on a node that has no agent yet; what follows from the description for any agent. */
static inline bool agent_begin(struct agent *a)
{
	return a->up->begin(a);
}

static inline hale_status_t agent_begin_again(struct agent *a, struct error *err)
{
	return a->up->begin_again(a, err);
}

/* Looks again whether anything is left of the ranks. */
static inline void agent_clear_again(void *agent)
{
	((struct agent *)agent)->up->clear_again(agent);
}

/* Ends all ranks, and then the agent. */
static inline void agent_leave(struct agent *a)
{
	a->up->leave(a);
}

static inline void agent_leave_when_clear(void *agent)
{
	((struct agent *)agent)->up->leave_when_clear(agent);
}

#endif
