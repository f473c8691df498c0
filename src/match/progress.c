// SPDX-License-Identifier: BSD-3-Clause
/* What moves things on, and waiting.
 *
 * With a core for each rank a waiting rank spins, then yields, then sleeps. With more ranks than
 * cores it yields at once, since whoever it waits for may need this core, and sleeps after a
 * hundred microseconds, or as soon as a yield shows that others compute on this core
 * (base/yield.h). Asleep it costs nothing; a peer that has something for it rings its bell.
 *
 * Below MPI_THREAD_MULTIPLE a rank sleeps outside the guard, too: then a checkpoint needs nobody's
 * cooperation, its signal handler finds everything consistent and does it at once.
 */
#include "match/internal.h"

#include "base/yield.h"
#include "node/doze.h"

enum {
	SPIN_ROUNDS = 4000,
	PATIENT_ROUNDS_FIRST = 200, /* some microseconds */
	PATIENT_ROUNDS = 25,
	PATIENCE_TRIED = 32, /* where it has been in vain: in each so many'th wait */
	PAYS_ALWAYS = 65536,
	LONG_ROUNDS = 64,	 /* some microseconds: beside them a look at the clock is nothing */
	LONG_ROUNDS_CROWDED = 1, /* each is a system call */
	SHADOWS_REST = 100,	 /* thousandths of a core: who is held to so many leaves it to others */
	SLEEP_NS = 100000000,	 /* nothing depends on it: a net below what we did not think of */
	DOZE_NS = 4000000,	 /* of a shadow: nobody waits for it */
	HOOKS_MAX = 8,
};

static int (*hooks[HOOKS_MAX])(void);
static unsigned nhooks;
static int sleepers; /* threads of this process in link_sleep, or about to be */

void match_progress_hook(int (*hook)(void))
{
	if (nhooks == HOOKS_MAX) {
		log_warn("internal error: more than %d progress hooks", HOOKS_MAX);
		link_abort(70);
	}
	hooks[nhooks++] = hook;
	match.work++;
}

void progress_hooks_forget(void)
{
	match.work -= nhooks;
	nhooks = 0;
}

static __attribute__((noinline)) int progress_work(void)
{
	int moved = 0;
	if (match.suspended)
		return 0;
	if (UNLIKELY(match.unsettled))
		channels_choose();
	if (UNLIKELY(redundant_on))
		decide_catch_up();
	if (match.busy)
		moved += queues_flush();
	moved += rendezvous_progress();
	for (unsigned i = 0; i < nhooks; i++)
		moved += hooks[i]();
	if (match.orphans)
		orphans_sweep();
	return moved;
}

int match_progress(void)
{
	int moved = match.arrived = channel_poll_all();
	if (UNLIKELY(match.work))
		moved += progress_work();
	channel_flush_all();
	/* another thread of ours may sleep until just this */
	if (UNLIKELY(moved && sleepers))
		mailbox_ring_slow(link_self()->mailbox);
	return moved;
}

/* ---- waiting ---- */

/* Which of those of other nodes sleep can't be seen: all count. */
static uint32_t awake_here(void)
{
	struct segment *s = link_self()->segment;
	uint32_t n = s->nbeside;
	for (uint32_t i = 0; i < s->nranks; i++)
		n += segment_here(s, i) &&
		     !atomic_load_explicit(&segment_mailbox(s, i)->asleep, memory_order_relaxed);
	return n;
}

/* Replica i of a rank waits for replica i of another one. Where those of one slot have a core each,
 * they are best all awake at once, and then all those of the next slot: a peer's answer is there
 * before a yield would be over (an exchange of 8 bytes takes 2.6 us instead of 5). Slots that are
 * equally patient can get stuck one after the other with the wrong half awake: so the first one is
 * more patient, and the others make room for it. Where patience is in vain, since messages of other
 * slots are waited for, it ends, and is tried now and then. */
static unsigned patience_of_slot(void)
{
	struct segment *s = link_self()->segment;
	uint32_t n = link_self()->nranks, slot = link_self()->process / n, here = 0;

	if (!redundant_slots_are_apart())
		return 0;
	for (uint32_t r = 0; r < n; r++)
		here += segment_here(s, slot * n + r);
	return here > s->cores ? 0 : slot ? PATIENT_ROUNDS : PATIENT_ROUNDS_FIRST;
}

static struct {
	unsigned pays; /* how often, of PAYS_ALWAYS: a mean that forgets */
	unsigned asked;
} patience = {PAYS_ALWAYS, 0};

static unsigned patience_now(void)
{
	bool tries = patience.pays > PAYS_ALWAYS / 8 * 7 || ++patience.asked % PATIENCE_TRIED == 0;

	return tries ? match.patience : 0;
}

static void patience_learn(bool paid)
{
	patience.pays -= patience.pays / 16;
	if (paid)
		patience.pays += PAYS_ALWAYS / 16;
}

/* Shadows that sleep most of the time leave the cores to the mains. Mains then spin while they
 * wait, as in a job without shadows: a yield would last as long as a shadow is at work. */
static bool is_crowded(void)
{
	struct segment *s = link_self()->segment;
	uint32_t mains = 0;

	if (!s->oversubscribed || s->shadow_rate == 0 || s->shadow_rate > SHADOWS_REST ||
	    !redundant_is_main(link_self()->process))
		return s->oversubscribed;
	for (uint32_t p = 0; p < s->nranks; p++)
		mains += segment_here(s, p) && redundant_is_main(p);
	return mains > s->cores;
}

void match_crowd_look(void)
{
	match.oversubscribed = is_crowded();
	match.patience = patience_of_slot();
}

void progress_init(void)
{
	match_crowd_look(); /* again: now the channels are open */
	yield_among(awake_here);
}

struct waiter {
	unsigned idle;	/* rounds in which nothing moved, since something did */
	unsigned spins; /* for as many of them on a crowded node */
	struct yields yields;
	bool slept;
};

/* The neighbour that rang has cleared `asleep` and woken this thread; other threads of the process
 * may have slept on. This thread sets `asleep` again for them, and takes in what came without a
 * ring. */
static void sleep_on(void)
{
	mailbox_will_sleep(link_self()->mailbox);
	channel_before_sleep_all();
	match_progress();
}

/* Until the bell rings. done is asked once more after peers can see that we sleep. */
static void waiter_sleep(struct waiter *w, bool (*done)(void *), void *arg)
{
	struct mailbox *m = link_self()->mailbox;
	if (UNLIKELY(redundant_on))
		decide_settle();
	uint32_t seen = match.dozes ? mailbox_will_doze(m) : mailbox_will_sleep(m);
	uint64_t ns = match.dozes ? DOZE_NS : SLEEP_NS;
	sleepers++;
	channel_before_sleep_all();
	if (match_progress() || done(arg)) {
		*w = (struct waiter){0};
	} else if (guard_inside == 1) {
		guard_leave();
		link_sleep(seen, ns);
		guard_enter();
		w->slept = true;
	} else {
		link_sleep(seen, ns);
		w->slept = true;
	}
	m = link_self()->mailbox;
	if (--sleepers == 0)
		mailbox_awake(m);
	else if (!atomic_load_explicit(&m->asleep, memory_order_relaxed))
		sleep_on();
}

void match_sleep(bool (*done)(void *), void *arg)
{
	struct waiter w = {0};
	waiter_sleep(&w, done, arg);
}

static bool is_patient(struct waiter *w)
{
	if (w->idle == 1)
		w->spins = patience_now();
	if (w->idle < w->spins)
		return true;
	if (w->spins) {
		patience_learn(false);
		w->spins = 0;
	}
	return false;
}

/* After a round in which nothing moved. */
static __attribute__((noinline)) void waiter_idle(struct waiter *w, bool (*done)(void *), void *arg)
{
	if (++w->idle == (match.oversubscribed ? LONG_ROUNDS_CROWDED : LONG_ROUNDS)) {
		match_call_long();
		if (yield_is_dear())
			w->idle = SPIN_ROUNDS;
	}
	if (UNLIKELY(match.dozes)) {
		waiter_sleep(w, done, arg);
		return;
	}
	if (match.patience && match.oversubscribed && is_patient(w)) {
		cpu_relax();
		return;
	}
	if (!match.oversubscribed && w->idle < SPIN_ROUNDS && !w->slept) {
		cpu_relax();
		return;
	}
	if (w->slept || !yield_core(&w->yields) || yields_are_long(&w->yields))
		waiter_sleep(w, done, arg);
}

static inline void waiter_round(struct waiter *w, bool (*done)(void *), void *arg)
{
	if (match_progress()) {
		if (UNLIKELY(w->spins))
			patience_learn(true);
		*w = (struct waiter){0};
	} else {
		waiter_idle(w, done, arg);
	}
	guard_safe_point();
}

static bool request_is_complete(void *arg)
{
	return ((struct request *)arg)->complete;
}

void match_wait(struct request *r)
{
	struct waiter w = {0};
	while (!r->complete)
		waiter_round(&w, request_is_complete, r);
}

void match_wait_until(bool (*done)(void *), void *arg)
{
	struct waiter w = {0};
	while (!done(arg))
		waiter_round(&w, done, arg);
}

struct progress_word {
	const _Atomic uint32_t *at;
	uint32_t value;
};

static bool word_reached(void *arg)
{
	const struct progress_word *w = arg;
	return (int32_t)(atomic_load_explicit(w->at, memory_order_acquire) - w->value) >= 0;
}

void match_wait_word(const _Atomic uint32_t *at, uint32_t value)
{
	struct progress_word word = {at, value};
	struct waiter w = {0};
	while (!word_reached(&word))
		waiter_round(&w, word_reached, &word);
}

/* The caller is in the guard, as the sleepers were when they said so. */
void match_wake(void)
{
	mailbox_wake(link_self()->mailbox);
}

/* The bell that a sleeper has looked at was the old segment's. */
void wait_resumed(void)
{
	struct mailbox *m = link_self()->mailbox;
	atomic_fetch_add(&m->bell, link_self()->generation << 16 | 1);
	if (sleepers)
		atomic_store(&m->asleep, 1);
}
