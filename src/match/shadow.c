// SPDX-License-Identifier: BSD-3-Clause
/* What a shadow does beside its program (docs/shadows.md). A timer interrupts the program:
 *
 * - Messages and determinants that have come are taken into this process's memory: they are its log
 *   then, and their senders keep them no longer. So a main waits for the interruption at most, and
 *   never for the program of a shadow.
 * - Where shadows share no core of their own, this process sleeps as long as its rate asks for.
 * - The head hears how much the log has, and when it is to be emptied by a jump.
 *
 * All of this ends when the process is promoted. */
#include "match/internal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "ckpt/mute.h"
#include "node/doze.h"
#include "node/proto.h"

enum {
	SLICE_NS = 4000000,   /* of sleep, after which a request of a checkpoint is looked for */
	CREDIT_NS = 20000000, /* of work that was not done, which is made up for later */
	SAY_NS = 250000000,   /* between two words to the head */
	LOG_MAX = 512 << 20,
	LATE_AT = 64 << 20,
};

static struct {
	bool on;
	uint64_t cpu_ns, wall_ns; /* where the account of the rate begins */
	uint64_t said_ns;
	uint64_t jump_at; /* bytes of the log; 0: never */
	uint64_t log_max; /* no more is taken into it */
	uint64_t late_at; /* bytes of a witness's log, at which it catches up */
	bool late;
} shadow;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t bytes_wanted(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t bytes;

	return text && units_parse_bytes(text, &bytes) && bytes > 0 ? bytes : otherwise;
}

/* Three quarters of the log, unless the user says otherwise: a full one makes mains wait. */
static uint64_t jump_wanted(void)
{
	const char *text = getenv("HALE_JUMP_AT");

	return text && strcmp(text, "off") == 0
		   ? 0
		   : bytes_wanted("HALE_JUMP_AT", shadow.log_max / 4 * 3);
}

static uint64_t log_bytes(void)
{
	uint64_t bytes = decide_log_bytes();

	for (uint32_t i = 0; i < match.nranks; i++)
		if (i != match.rank)
			bytes += match.peer[i].kept;
	return bytes;
}

static bool is_asked_to_stop(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, PROTO_CKPT_SIGNAL) == 1;
}

static int log_take(void)
{
	return log_bytes() < shadow.log_max ? match_progress() : 0;
}

/* Nanoseconds to sleep until the time that has passed allows for the work that was done. */
static uint64_t debt_ns(uint32_t rate)
{
	uint64_t worked = cpu_ns() - shadow.cpu_ns, passed = clock_ns() - shadow.wall_ns;
	uint64_t allowed = passed * rate / 1000;

	if (allowed > worked + CREDIT_NS)
		shadow.cpu_ns -= allowed - worked - CREDIT_NS;
	return worked > allowed ? (worked - allowed) * 1000 / rate : 0;
}

static void head_tell(void)
{
	struct proto_shadow say = {.log_bytes = log_bytes()};
	uint64_t now = clock_ns();
	bool jump = shadow.jump_at && say.log_bytes > shadow.jump_at;

	if (now - shadow.said_ns < SAY_NS)
		return;
	shadow.said_ns = now;
	say.jump = jump;
	say.full = !shadow.jump_at && say.log_bytes >= shadow.log_max;
	say.cpu_ns = cpu_ns();
	say.came_bytes = redundant_bytes_accepted();
	say.held = link_self()->segment->shadow_rate > 0    ? HELD_BY_SLEEP
		   : link_self()->segment->shadow_weighed ? HELD_BY_WEIGHT
							    : HELD_BY_CORE;
	hale_mute_trim();
	link_shadow_tell(&say);
}

static void rate_hold(void)
{
	struct mailbox *m = link_self()->mailbox;
	uint32_t rate = link_self()->segment->shadow_rate;
	uint64_t debt;

	while (rate > 0 && (debt = debt_ns(rate)) > 0 && !is_asked_to_stop()) {
		uint32_t seen = mailbox_will_doze(m);

		if (log_take() == 0)
			link_sleep(seen, debt < SLICE_NS ? debt : SLICE_NS);
		mailbox_awake(m);
		if (!shadow.on)
			return;
		head_tell();
	}
}

static int shadow_work(void)
{
	int moved = match.suspended ? 0 : log_take();

	if (shadow.on && !match.suspended)
		rate_hold();
	if (shadow.on)
		head_tell();
	return moved;
}

/* Is this process a shadow now, and was it one before? */
void shadow_look(void)
{
	bool now = redundant_on && redundant_is_shadow();

	match.dozes = now && !redundant_is_witness();
	match_crowd_look();
	if (now == shadow.on)
		return;
	shadow.on = now;
	if (!now) {
		hale_mute_end();
		tick_stop();
		return;
	}
	hale_mute_begin();
	shadow.cpu_ns = cpu_ns();
	shadow.wall_ns = clock_ns();
	shadow.log_max = bytes_wanted("HALE_SHADOW_LOG", LOG_MAX);
	shadow.late_at = bytes_wanted("HALE_AUDIT_LOG", LATE_AT);
	shadow.late = false;
	shadow.jump_at = jump_wanted();
	if (!tick_start(shadow_work))
		log_warn("rank %u, process %u: there is no timer for this shadow, so mains wait "
			 "for its MPI calls",
			 match.rank, link_self()->process);
}

/* A witness goes on, unasked, until most of its log is gone. */
bool shadow_is_late(void)
{
	uint64_t log = log_bytes();

	shadow.late = log > shadow.late_at || (shadow.late && log > shadow.late_at / 8);
	return shadow.late;
}

void shadow_fini(void)
{
	if (shadow.on)
		tick_stop();
	shadow.on = false;
}
