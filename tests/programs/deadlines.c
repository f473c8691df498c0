/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that lives by the monotonic clock: two ranks whose threads wait until a time comes, in
 * every way that libc has for it. Every wait is 10 ms long. Prints "rank R step N" every 50 ms as
 * long as the clock neither goes back nor leaps and all threads come on; ends when the file "stop"
 * is there. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 50, WAIT_MS = 10, PATIENCE_S = 20 };

static int rank;

static double seconds(clockid_t id)
{
	struct timespec t;
	if (clock_gettime(id, &t) != 0)
		abort();
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct timespec in_ms(int ms)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += ms * 1000000L;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void fail(const char *what, const char *why, double by)
{
	printf("rank %d: %s: %s %.3f\n", rank, what, why, by);
	exit(3);
}

/* ---- a wait of each kind; returns what libc returned, 0 or ETIMEDOUT for one that was right ----
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER, never_monotonic;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER,
			read_only = PTHREAD_RWLOCK_INITIALIZER;
static pthread_t lasting;
static sem_t empty;

static int wait_cond(const struct timespec *t)
{
	pthread_mutex_lock(&lock);
	int rc = pthread_cond_clockwait(&never, &lock, CLOCK_MONOTONIC, t);
	pthread_mutex_unlock(&lock);
	return rc;
}

static int wait_cond_attr(const struct timespec *t)
{
	pthread_mutex_lock(&lock);
	int rc = pthread_cond_timedwait(&never_monotonic, &lock, t);
	pthread_mutex_unlock(&lock);
	return rc;
}

static int wait_mutex(const struct timespec *t)
{
	return pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, t);
}

static int wait_read(const struct timespec *t)
{
	return pthread_rwlock_clockrdlock(&written, CLOCK_MONOTONIC, t);
}

static int wait_write(const struct timespec *t)
{
	return pthread_rwlock_clockwrlock(&read_only, CLOCK_MONOTONIC, t);
}

static int wait_join(const struct timespec *t)
{
	return pthread_clockjoin_np(lasting, NULL, CLOCK_MONOTONIC, t);
}

static int wait_sem(const struct timespec *t)
{
	int rc;
	while ((rc = sem_clockwait(&empty, CLOCK_MONOTONIC, t)) && errno == EINTR)
		;
	return rc ? errno : 0;
}

static int wait_sleep(const struct timespec *t)
{
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, t, NULL);
}

static int wait_futex(const struct timespec *t)
{
	static uint32_t word;
	long rc;
	while ((rc = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, t, NULL,
			     FUTEX_BITSET_MATCH_ANY)) &&
	       errno == EINTR)
		;
	return rc ? errno : 0;
}

static int wait_timerfd(const struct timespec *t)
{
	static int fd = -1;
	uint64_t times;
	if (fd < 0)
		fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (fd < 0 ||
	    timerfd_settime(fd, TFD_TIMER_ABSTIME, &(struct itimerspec){.it_value = *t}, NULL))
		return errno;
	return read(fd, &times, sizeof(times)) == sizeof(times) ? 0 : errno;
}

static int wait_poll(const struct timespec *t)
{
	(void)t;
	return poll(NULL, 0, WAIT_MS);
}

static int wait_spin(const struct timespec *t)
{
	struct timespec now;
	do {
		usleep(500);
		now = in_ms(0);
	} while (now.tv_sec < t->tv_sec || (now.tv_sec == t->tv_sec && now.tv_nsec < t->tv_nsec));
	return 0;
}

/* ---- a thread for each ---- */

static struct waiter {
	const char *name;
	int (*wait)(const struct timespec *);
	_Atomic int count;
	int seen;
	double since;
} waiters[] = {
    {.name = "pthread_cond_clockwait", .wait = wait_cond},
    {.name = "pthread_cond_timedwait", .wait = wait_cond_attr},
    {.name = "pthread_mutex_clocklock", .wait = wait_mutex},
    {.name = "pthread_rwlock_clockrdlock", .wait = wait_read},
    {.name = "pthread_rwlock_clockwrlock", .wait = wait_write},
    {.name = "pthread_clockjoin_np", .wait = wait_join},
    {.name = "sem_clockwait", .wait = wait_sem},
    {.name = "clock_nanosleep", .wait = wait_sleep},
    {.name = "futex", .wait = wait_futex},
    {.name = "timerfd", .wait = wait_timerfd},
    {.name = "poll", .wait = wait_poll},
    {.name = "clock_gettime", .wait = wait_spin},
};
enum { WAITERS = sizeof(waiters) / sizeof(waiters[0]) };

static void *come_on(void *arg)
{
	struct waiter *w = arg;
	for (;;) {
		struct timespec t = in_ms(WAIT_MS);
		int rc = w->wait(&t);
		struct timespec now = in_ms(0);
		double early =
		    (double)(t.tv_sec - now.tv_sec) + 1e-9 * (double)(t.tv_nsec - now.tv_nsec);
		if (rc != 0 && rc != ETIMEDOUT)
			fail(w->name, "error", rc);
		if (early > 0.001)
			fail(w->name, "ended too early, seconds:", early);
		atomic_fetch_add(&w->count, 1);
	}
	return NULL;
}

static void *last(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void begin(void)
{
	pthread_condattr_t attr;
	pthread_t t;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&never_monotonic, &attr);
	pthread_mutex_lock(&held);
	pthread_rwlock_wrlock(&written);
	pthread_rwlock_rdlock(&read_only);
	sem_init(&empty, 0, 0);
	pthread_create(&lasting, NULL, last, NULL);
	for (int i = 0; i < WAITERS; i++) {
		waiters[i].since = seconds(CLOCK_REALTIME);
		pthread_create(&t, NULL, come_on, &waiters[i]);
	}
}

/* Time passes as it does for everybody. */
static void check_clock(clockid_t id, const char *name, double before, double real)
{
	double passed = seconds(id) - before;
	if (passed < -0.001)
		fail(name, "goes back by", -passed);
	if (passed - real > 2 || real - passed > 2)
		fail(name, "leaps by", passed - real);
}

static void check_waiters(void)
{
	for (int i = 0; i < WAITERS; i++) {
		struct waiter *w = &waiters[i];
		int count = atomic_load(&w->count);
		double now = seconds(CLOCK_REALTIME);
		if (count != w->seen) {
			w->seen = count;
			w->since = now;
		} else if (now - w->since > PATIENCE_S) {
			fail(w->name, "waits for", now - w->since);
		}
	}
}

int main(int argc, char **argv)
{
	int stop = 0;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &(int){0});
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	begin();
	for (int step = 0; !stop; step++) {
		double real = seconds(CLOCK_REALTIME), monotonic = seconds(CLOCK_MONOTONIC),
		       raw = seconds(CLOCK_MONOTONIC_RAW), coarse = seconds(CLOCK_MONOTONIC_COARSE),
		       boot = seconds(CLOCK_BOOTTIME), wtime = MPI_Wtime();
		usleep(STEP_MS * 1000);
		stop = rank == 0 && access("stop", F_OK) == 0;
		MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
		real = seconds(CLOCK_REALTIME) - real;
		check_clock(CLOCK_MONOTONIC, "CLOCK_MONOTONIC", monotonic, real);
		check_clock(CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW", raw, real);
		check_clock(CLOCK_MONOTONIC_COARSE, "CLOCK_MONOTONIC_COARSE", coarse, real);
		check_clock(CLOCK_BOOTTIME, "CLOCK_BOOTTIME", boot, real);
		wtime = MPI_Wtime() - wtime - real;
		if (wtime < -2 || wtime > 2)
			fail("MPI_Wtime", "leaps by", wtime);
		check_waiters();
		printf("rank %d step %d\n", rank, step);
	}
	printf("done rank %d\n", rank);
	fflush(stdout);
	MPI_Finalize();
	_exit(0); /* threads wait still */
}
