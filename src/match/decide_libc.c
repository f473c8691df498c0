// SPDX-License-Identifier: BSD-3-Clause
/* Clocks, processor times, random bytes and opened files of libc as determinants
 * (ckpt/libc_replay.h).
 *
 * Unlike a question to MPI they need not come at the same points in all replicas: a runtime may
 * look at the clock as often as it waits. So they don't count as questions. A follower takes what
 * its leader was told between the same two questions, in order; what the leader was told and the
 * follower does not ask is dropped, and what only the follower asks it answers itself. That it is
 * alone in asking it sees when the leader comes to the next question, or else by waiting long. */
#include "match/decide.h"

#include "base/clock.h"
#include "ckpt/libc_replay.h"
#include "match/internal.h"

#define LATE_SECONDS 5.0
enum { LATE_TIMES = 3 };

struct libc_wait {
	void *value;
	size_t size;
	decide_turn_t turn;
	double until;
	bool late;
};

static bool heard_or_late(void *arg)
{
	struct libc_wait *w = arg;

	w->turn = decide_libc_heard(w->value, w->size, &w->late);
	return !w->late || clock_seconds() > w->until;
}

static bool value_decide(void *value, size_t size)
{
	static unsigned late;
	struct libc_wait w = {value, size, .until = clock_seconds() + LATE_SECONDS};

	w.turn = decide_libc_heard(value, size, &w.late);
	if (w.late && late < LATE_TIMES)
		match_wait_until(heard_or_late, &w);
	if (w.turn == DECIDE_HERE) {
		match_wait_until(redundant_determinants_left, NULL);
		decide_libc_say(value, size);
	}
	if (w.late && late < LATE_TIMES && ++late == LATE_TIMES)
		log_warn("rank %u, process %u: it reads clocks where its leader does not; from now "
			 "on they are its own, and what depends on them may differ",
			 match.rank, link_self()->process);
	return w.turn == DECIDE_YES;
}

/* ---- files: every replica comes to the same opens ---- */

static bool file_ask(struct libc_replay_file *f)
{
	size_t size = sizeof(*f);

	switch (decide_ask(DECIDE_FILE, f, &size)) {
	case DECIDE_HERE:
		return false;
	case DECIDE_NO:
		decide_kinds_differ(DECIDE_FILE, 0);
	default:
		return true;
	}
}

/* What this process writes into the file must not be there before its successor knows of it. */
static void file_tell(const struct libc_replay_file *f)
{
	decide_tell(DECIDE_FILE, true, f, sizeof(*f));
	match_wait_until(redundant_determinants_known, NULL);
}

const struct libc_replay_hooks decide_libc_hooks = {
    .value = value_decide,
    .file_ask = file_ask,
    .file_tell = file_tell,
};
