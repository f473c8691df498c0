// SPDX-License-Identifier: BSD-3-Clause
/* Signal actions, pending signals and timers. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "image/engine.h"
#include "image/queued.h"

enum { TIMERS_TEXT = 64 << 10, TIMERS_TRIES = 100 };

static long number_after(const char **p, const char *key)
{
	const char *at = strstr(*p, key);
	if (!at)
		return -1;
	at += strlen(key);
	long v = 0;
	bool minus = *at == '-';
	for (at += minus; *at >= '0' && *at <= '9'; at++)
		v = v * 10 + (*at - '0');
	*p = at;
	return minus ? -v : v;
}

static uint64_t hex_at(const char *p)
{
	uint64_t v = 0;
	for (;; p++) {
		if (*p >= '0' && *p <= '9')
			v = v * 16 + (uint64_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			v = v * 16 + (uint64_t)(*p - 'a' + 10);
		else
			return v;
	}
}

/* Signals that were sent to the process, not to one of its threads. */
static sys_set_t pending_of_process(void)
{
	char text[4096];
	if (sys_read_small("/proc/thread-self/status", text, sizeof(text)) <= 0)
		return 0;
	const char *p = strstr(text, "ShdPnd:\t");
	return p ? hex_at(p + 8) : 0;
}

/* By their ids, which the kernel gives out in order: newer ones list the newest timer first. */
static void timers_sort(struct list *timers)
{
	struct timer_record *t = timers->items;
	for (size_t i = 1; i < timers->count; i++) {
		struct timer_record moved = t[i];
		size_t k = i;
		for (; k > 0 && t[k - 1].id > moved.id; k--)
			t[k] = t[k - 1];
		t[k] = moved;
	}
}

/* /proc/self/timers, as the kernel prints it:
 *   ID: 0
 *   signal: 34/00007ffd…
 *   notify: signal/tid.123
 *   ClockID: 1 */
static bool timers_collect(struct list *timers)
{
	static const char *const notify[] = {"signal", "none", "thread"};
	char *text = arena_alloc(timers->arena, TIMERS_TEXT); /* the stack may be a small one */
	if (!text || sys_read_small("/proc/self/timers", text, TIMERS_TEXT) <= 0)
		return text != NULL;
	const char *p = text;
	long id;
	while ((id = number_after(&p, "ID: ")) >= 0) {
		struct timer_record *t = list_add(timers);
		struct itimerspec spec = {0};
		if (!t)
			return false;
		t->id = (int32_t)id;
		t->signal = (int32_t)number_after(&p, "signal: ");
		t->value = *p == '/' ? hex_at(p + 1) : 0;
		const char *how = strstr(p, "notify: ");
		if (!how)
			return true;
		how += strlen("notify: ");
		for (int i = 0; i < 3; i++)
			if (!strncmp(how, notify[i], strlen(notify[i])))
				t->notify = i;
		p = how;
		const char *tid = strchr(how, '.'), *line = strchr(how, '\n');
		if (tid && line && tid < line) {
			t->tid = (int32_t)number_after(&p, ".");
			if (!strncmp(tid - 3, "tid", 3))
				t->notify |= SIGEV_THREAD_ID;
		}
		t->clock = (int32_t)number_after(&p, "ClockID: ");
		sys(SYS_timer_gettime, id, &spec);
		t->interval_s = spec.it_interval.tv_sec;
		t->interval_ns = spec.it_interval.tv_nsec;
		t->value_s = spec.it_value.tv_sec;
		t->value_ns = spec.it_value.tv_nsec;
	}
	return true;
}

bool signals_collect(struct signals_record *s, struct list *timers)
{
	for (int sig = 1; sig <= SYS_SIGNALS; sig++)
		sys(SYS_rt_sigaction, sig, NULL, &s->action[sig], sizeof(sys_set_t));
	/* a timer that fires between the looks would be there as one that has and one that will */
	for (int tries = 0; tries < TIMERS_TRIES; tries++) {
		s->pending = pending_of_process();
		timers->count = 0;
		for (int i = 0; i < 3; i++)
			sys(SYS_getitimer, i, &s->itimer[i]);
		if (!timers_collect(timers))
			return false;
		if (s->pending == pending_of_process())
			break;
	}
	timers_sort(timers);
	return true;
}

/* Clocks of processor time are negative: the inverted id of a process or thread, and in three bits
 * what it is. Id 0: of the process, or the thread, that has made the timer. */
enum { CLOCK_BITS = 3, CLOCK_OF_THREAD = 4, CLOCK_KIND = 7 };

static int32_t clock_id(int32_t clock)
{
	return clock < 0 ? ~(clock >> CLOCK_BITS) : 0;
}

static int32_t clock_with(int32_t clock, int32_t id)
{
	return (int32_t)(~(uint32_t)id << CLOCK_BITS) | (clock & CLOCK_KIND);
}

const char *signals_clocks_refusal(struct list *timers, size_t threads)
{
	int32_t pid = (int32_t)sys(SYS_getpid);
	for (size_t i = 0; i < timers->count; i++) {
		struct timer_record *t = list_at(timers, i);
		bool of_thread = t->clock < 0 && t->clock & CLOCK_OF_THREAD;
		int32_t id = clock_id(t->clock);
		if (t->clock >= 0)
			continue;
		if (!of_thread && id && id != pid)
			return "the processor time of another process";
		if (of_thread && !id && threads > 1)
			return "the processor time of a thread that the kernel does not name "
			       "(timer_create by a system call of its own)";
		t->clock = clock_with(t->clock, !of_thread ? 0 : id ? id : pid);
	}
	return NULL;
}

void signals_clocks_correct(struct timer_record *timers, size_t count, int32_t (*new_tid)(int32_t))
{
	for (size_t i = 0; i < count; i++) {
		int32_t id = clock_id(timers[i].clock);
		int32_t now = id && timers[i].clock & CLOCK_OF_THREAD ? new_tid(id) : id;
		/* of a thread that has ended: one that nobody has */
		if (timers[i].clock < 0)
			timers[i].clock =
			    clock_with(timers[i].clock, id && !now ? INT32_MAX >> 3 : now);
	}
}

void signals_restore_actions(const struct signals_record *s)
{
	for (int sig = 1; sig <= SYS_SIGNALS; sig++)
		sys(SYS_rt_sigaction, sig, &s->action[sig], NULL, sizeof(sys_set_t));
}

/* The kernel gives out ids in order and glibc knows timers by them: make and delete until the
 * wanted one comes. */
static void timer_make(const struct timer_record *t)
{
	struct sigevent ev = {.sigev_signo = t->signal, .sigev_notify = t->notify};
	struct itimerspec spec = {{t->interval_s, t->interval_ns}, {t->value_s, t->value_ns}};
	ev.sigev_value.sival_ptr = (void *)t->value;
	ev._sigev_un._tid = t->tid;
	int id = -1;
	for (int tries = 0; tries < 100000; tries++) {
		long rc = sys(SYS_timer_create, t->clock, &ev, &id);
		if (rc < 0) {
			log_warn("after the restart a timer of the program is missing (error %ld)",
				 -rc);
			return;
		}
		if (id == t->id)
			break;
		sys(SYS_timer_delete, id);
	}
	if (id != t->id)
		log_warn("after the restart timer %d of the program is missing", t->id);
	else
		sys(SYS_timer_settime, id, 0, &spec, NULL);
}

void signals_restore_timers(const struct signals_record *s, const struct timer_record *timers,
			    size_t count)
{
	for (size_t i = 0; i < count; i++)
		timer_make(&timers[i]);
	for (int i = 0; i < 3; i++) {
		struct itimer_record t = s->itimer[i];
		/* the kernel starts this one anew when its signal is taken, which still waits */
		if (i == ITIMER_REAL && !t.value_s && !t.value_us) {
			t.value_s = t.interval_s;
			t.value_us = t.interval_us;
		}
		if (t.value_s || t.value_us)
			sys(SYS_setitimer, i, &t, NULL);
	}
	for (int sig = 1; sig <= SYS_SIGNALS; sig++)
		if (s->pending & SYS_SET_BIT(sig) && sig != image_park_signal() &&
		    !queued_restore(0, sig))
			sys(SYS_kill, sys(SYS_getpid), sig);
}
