// SPDX-License-Identifier: BSD-3-Clause
/* These definitions stand before libc's, as those of masks.c do. Where nothing has been restored
 * elsewhere, clocks cost a comparison more than libc's.
 *
 * Who waits until a time has that of the machine in a deadline of its own, which its thread knows:
 * libc and the kernel look at it again after each interruption, and a restored thread has made it
 * anew before they do. */
#include "ckpt/clocks.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fmt.h"
#include "ckpt/owners.h"
#include "ckpt/libc_result.h"
#include "image/sys.h"

#define API __attribute__((visibility("default")))

enum { TOLERANCE_NS = 1000000000, SECOND_NS = 1000000000 };

/* Those that count from a machine's start; each has its own offset, since machines sleep, and
 * clocks are slewed. */
enum clocks_kind { MONOTONIC, RAW, BOOT, KINDS, OTHER = KINDS };

static struct {
	int64_t ahead, saved;
} clocks[KINDS];
static int64_t saved_real;
static bool moved; /* any is ahead */
void (*clocks_replay)(clockid_t id, struct timespec *t, const void *caller);

static struct {
	int (*gettime)(clockid_t, struct timespec *);
	int (*nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
	int (*cond_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t,
			      const struct timespec *);
	int (*cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	int (*mutex_clocklock)(pthread_mutex_t *, clockid_t, const struct timespec *);
	int (*clockrdlock)(pthread_rwlock_t *, clockid_t, const struct timespec *);
	int (*clockwrlock)(pthread_rwlock_t *, clockid_t, const struct timespec *);
	int (*clockjoin)(pthread_t, void **, clockid_t, const struct timespec *);
	int (*sem_clockwait)(sem_t *, clockid_t, const struct timespec *);
	int (*timer_create)(clockid_t, struct sigevent *, timer_t *);
	int (*timerfd_settime)(int, int, const struct itimerspec *, struct itimerspec *);
} libc;

static enum clocks_kind kind_of(clockid_t id)
{
	switch (id) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
		return MONOTONIC;
	case CLOCK_MONOTONIC_RAW:
		return RAW;
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return BOOT;
	default:
		return OTHER;
	}
}

/* What is before or after all times becomes the first or last of them; what is none stays so. */
static struct timespec later(const struct timespec *t, int64_t ns)
{
	struct timespec sum = {.tv_nsec = t->tv_nsec + ns % SECOND_NS};
	int64_t seconds = ns / SECOND_NS;
	if (t->tv_nsec < 0 || t->tv_nsec >= SECOND_NS)
		return *t;
	if (sum.tv_nsec < 0 || sum.tv_nsec >= SECOND_NS) {
		seconds += sum.tv_nsec < 0 ? -1 : 1;
		sum.tv_nsec += sum.tv_nsec < 0 ? SECOND_NS : -SECOND_NS;
	}
	if (__builtin_add_overflow(t->tv_sec, seconds, &sum.tv_sec))
		sum.tv_sec = INT64_MAX;
	if (sum.tv_sec < 0)
		sum = (struct timespec){0, 0};
	return sum;
}

/* ---- being restored ---- */

static int64_t machine_ns(clockid_t id)
{
	struct timespec t = {0};
	sys(SYS_clock_gettime, id, &t);
	return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static const clockid_t of_kind[KINDS] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME};

int64_t clocks_ahead(void)
{
	return clocks[MONOTONIC].ahead;
}

void clocks_save(void)
{
	saved_real = machine_ns(CLOCK_REALTIME);
	for (int i = 0; i < KINDS; i++)
		clocks[i].saved = machine_ns(of_kind[i]);
}

/* Clock and time of day agree about how long it has been, or the clock is another machine's (or
 * this one's after a reboot). Then the time of day says how long it has been. */
void clocks_restored(void)
{
	int64_t real = machine_ns(CLOCK_REALTIME) - saved_real;
	if (real < 0)
		real = 0;
	for (int i = 0; i < KINDS; i++) {
		int64_t passed = machine_ns(of_kind[i]) - clocks[i].saved;
		if (passed < 0 || passed - real > TOLERANCE_NS || real - passed > TOLERANCE_NS)
			clocks[i].ahead += real - passed;
		moved = moved || clocks[i].ahead;
	}
	clocks_thread_restored();
}

/* ---- reading ---- */

static inline int clock_read(clockid_t id, struct timespec *t, const void *caller)
{
	if (UNLIKELY(!libc.gettime))
		return (int)libc_result(sys(SYS_clock_gettime, id, t));
	if (LIKELY(!(moved || clocks_replay)))
		return libc.gettime(id, t);
	int rc = libc.gettime(id, t);
	enum clocks_kind k = moved ? kind_of(id) : OTHER;
	if (!rc && k != OTHER)
		*t = later(t, clocks[k].ahead);
	if (!rc && clocks_replay)
		clocks_replay(id, t, caller);
	return rc;
}

API int clock_gettime(clockid_t id, struct timespec *t)
{
	return clock_read(id, t, __builtin_return_address(0));
}

/* ---- waiting ---- */

struct deadline {
	struct timespec machine; /* what libc and the kernel look at */
	struct timespec program;
	enum clocks_kind kind;
	struct deadline *outer; /* one that a signal handler has interrupted */
};

static __thread struct deadline *deadlines __attribute__((tls_model("initial-exec")));

void clocks_thread_restored(void)
{
	for (struct deadline *d = deadlines; d; d = d->outer)
		d->machine = later(&d->program, -clocks[d->kind].ahead);
}

static void deadline_begin(struct deadline *d, enum clocks_kind kind, const struct timespec *t)
{
	*d = (struct deadline){.machine = *t, .program = *t, .kind = kind, .outer = deadlines};
	atomic_signal_fence(memory_order_seq_cst);
	deadlines = d;
	atomic_signal_fence(memory_order_seq_cst);
	if (UNLIKELY(moved))
		clocks_thread_restored();
}

static void deadline_end(void *d)
{
	deadlines = ((struct deadline *)d)->outer;
}

/* rc = call, in which d.machine is the time t of that clock; also where the thread is cancelled. */
#define UNTIL(id, t, plain, call)                                                                  \
	__extension__({                                                                            \
		enum clocks_kind kind_ = kind_of(id);                                              \
		int rc_ = 0;                                                                       \
		if (kind_ == OTHER) {                                                              \
			rc_ = plain;                                                               \
		} else {                                                                           \
			struct deadline d;                                                         \
			deadline_begin(&d, kind_, t);                                              \
			pthread_cleanup_push(deadline_end, &d);                                    \
			rc_ = call;                                                                \
			pthread_cleanup_pop(1);                                                    \
		}                                                                                  \
		rc_;                                                                               \
	})

API int clock_nanosleep(clockid_t id, int flags, const struct timespec *t, struct timespec *rest)
{
	if (!(flags & TIMER_ABSTIME))
		return libc.nanosleep(id, flags, t, rest);
	return UNTIL(id, t, libc.nanosleep(id, flags, t, rest),
		     libc.nanosleep(id, flags, &d.machine, rest));
}

API int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t id,
			       const struct timespec *t)
{
	int32_t owner = owners_id();
	int rc = UNTIL(id, t, libc.cond_clockwait(c, m, id, t),
		       libc.cond_clockwait(c, m, id, &d.machine));
	owners_correct(m, owner);
	return rc;
}

/* What pthread_condattr_setclock has said: bit 1 of glibc's __wrefs. */
static clockid_t clock_of_cond(const pthread_cond_t *c)
{
	return c->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

API int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
	int32_t owner = owners_id();
	int rc = UNTIL(clock_of_cond(c), t, libc.cond_timedwait(c, m, t),
		       libc.cond_timedwait(c, m, &d.machine));
	owners_correct(m, owner);
	return rc;
}

API int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t id, const struct timespec *t)
{
	int32_t owner = owners_id();
	int rc =
	    UNTIL(id, t, libc.mutex_clocklock(m, id, t), libc.mutex_clocklock(m, id, &d.machine));
	if (!rc || rc == EOWNERDEAD)
		owners_correct(m, owner);
	return rc;
}

API int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t id, const struct timespec *t)
{
	return UNTIL(id, t, libc.clockrdlock(l, id, t), libc.clockrdlock(l, id, &d.machine));
}

API int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t id, const struct timespec *t)
{
	return UNTIL(id, t, libc.clockwrlock(l, id, t), libc.clockwrlock(l, id, &d.machine));
}

API int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t id,
			     const struct timespec *t)
{
	if (!t)
		return libc.clockjoin(thread, result, id, t);
	return UNTIL(id, t, libc.clockjoin(thread, result, id, t),
		     libc.clockjoin(thread, result, id, &d.machine));
}

API int sem_clockwait(sem_t *s, clockid_t id, const struct timespec *t)
{
	return UNTIL(id, t, libc.sem_clockwait(s, id, t), libc.sem_clockwait(s, id, &d.machine));
}

/* The kernel does not tell whose processor time a timer counts that asks for "this thread's". */
API int timer_create(clockid_t id, struct sigevent *event, timer_t *timer)
{
	enum { OF_THREAD = 6, BITS = 3 }; /* as pthread_getcpuclockid makes it */
	if (id == CLOCK_THREAD_CPUTIME_ID)
		id = (clockid_t)(~(unsigned)gettid() << BITS | OF_THREAD);
	return libc.timer_create(id, event, timer);
}

static enum clocks_kind kind_of_timerfd(int fd)
{
	char path[64], text[512];
	fmt_print(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (sys_read_small(path, text, sizeof(text)) <= 0)
		return OTHER;
	const char *p = strstr(text, "clockid: ");
	return p ? kind_of(atoi(p + strlen("clockid: "))) : OTHER;
}

/* What is set goes into images as the rest of its time. */
API int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct itimerspec machine;
	if (UNLIKELY(moved) && flags & TFD_TIMER_ABSTIME && new &&
	    (new->it_value.tv_sec || new->it_value.tv_nsec)) {
		enum clocks_kind k = kind_of_timerfd(fd);
		machine = *new;
		if (k != OTHER)
			machine.it_value = later(&new->it_value, -clocks[k].ahead);
		/* long past; 0 would disarm it */
		machine.it_value.tv_nsec += !machine.it_value.tv_sec && !machine.it_value.tv_nsec;
		new = &machine;
	}
	return libc.timerfd_settime(fd, flags, new, old);
}

/* ---- system calls by their numbers, as runtimes of other languages make them ---- */

static bool waits_until(long op)
{
	long command = op & FUTEX_CMD_MASK;
	return !(op & FUTEX_CLOCK_REALTIME) &&
	       (command == FUTEX_WAIT_BITSET || command == FUTEX_WAIT_REQUEUE_PI ||
		command == FUTEX_LOCK_PI2);
}

/* The three calls that have to do with clocks; the arguments as syscall(2) has them. */
__attribute__((used)) static long of_clocks(long nr, long a, long b, long c, long d, long e, long f)
{
	struct deadline until;
	long rc;

	if (nr == SYS_clock_gettime)
		return clock_read((clockid_t)a, (struct timespec *)b, __builtin_return_address(0));
	/* the numbers by name: what a checkpoint has interrupted is known by them */
	if (nr == SYS_clock_nanosleep && b & TIMER_ABSTIME && c && kind_of((clockid_t)a) != OTHER) {
		deadline_begin(&until, kind_of((clockid_t)a), (const struct timespec *)c);
		rc = sys(SYS_clock_nanosleep, a, b, &until.machine, d);
		deadline_end(&until);
	} else if (nr == SYS_clock_nanosleep) {
		rc = sys(SYS_clock_nanosleep, a, b, c, d);
	} else if (waits_until(b) && d) {
		deadline_begin(&until, MONOTONIC, (const struct timespec *)d);
		rc = sys(SYS_futex, a, b, c, &until.machine, e, f);
		deadline_end(&until);
	} else {
		rc = sys(SYS_futex, a, b, c, d, e, f);
	}
	return libc_result(rc);
}

__attribute__((used)) static long not_of_clocks(long rc)
{
	return libc_result(rc);
}

/* All others as libc does it, with nothing on the stack. Where a checkpoint interrupts it, the
 * number in xmm15 says what is to be started again (image/restart.c knows these instructions). */
__attribute__((naked)) API long syscall(long nr __attribute__((unused)), ...)
{
	__asm__("endbr64\n\t"
		"cmp $202, %rdi\n\t" /* futex */
		"je of_clocks\n\t"
		"cmp $228, %rdi\n\t" /* clock_gettime */
		"je of_clocks\n\t"
		"cmp $230, %rdi\n\t" /* clock_nanosleep */
		"je of_clocks\n\t"
		"mov %rdi, %rax\n\t"
		"mov %rsi, %rdi\n\t"
		"mov %rdx, %rsi\n\t"
		"mov %rcx, %rdx\n\t"
		"mov %r8, %r10\n\t"
		"mov %r9, %r8\n\t"
		"mov 8(%rsp), %r9\n\t"
		"movq %rax, %xmm15\n\t"
		"syscall\n\t"
		"cmp $-4095, %rax\n\t"
		"jae 1f\n\t"
		"ret\n"
		"1: mov %rax, %rdi\n\t"
		"jmp not_of_clocks");
}
_Static_assert(SYS_futex == 202 && SYS_clock_gettime == 228 && SYS_clock_nanosleep == 230,
	       "as in syscall");

/* ---- libc's ---- */

/* The function of that name that comes next behind ours: libc's, or that of a library in between.
 * In a program that was started without `hale run` ours may come behind libc. Then nothing is next,
 * and libc is asked by its name. */
static void *find(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);
	void *handle = f ? NULL : dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	return handle ? dlsym(handle, name) : f;
}

void clocks_init(void)
{
	*(void **)&libc.nanosleep = find("clock_nanosleep");
	*(void **)&libc.cond_clockwait = find("pthread_cond_clockwait");
	/* before 2.3.2 it had conditions of another kind */
	*(void **)&libc.cond_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	if (!libc.cond_timedwait)
		*(void **)&libc.cond_timedwait = find("pthread_cond_timedwait");
	*(void **)&libc.mutex_clocklock = find("pthread_mutex_clocklock");
	*(void **)&libc.clockrdlock = find("pthread_rwlock_clockrdlock");
	*(void **)&libc.clockwrlock = find("pthread_rwlock_clockwrlock");
	*(void **)&libc.clockjoin = find("pthread_clockjoin_np");
	*(void **)&libc.sem_clockwait = find("sem_clockwait");
	*(void **)&libc.timer_create = find("timer_create");
	*(void **)&libc.timerfd_settime = find("timerfd_settime");
	*(void **)&libc.gettime = find("clock_gettime");
}
