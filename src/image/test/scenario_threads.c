// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "image/test/scenario.h"

enum { THREADS = 4, ROUNDS = 3000, MS = 1000000 };

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile int go, done;
static __thread uint64_t mine;
static uint64_t sums[THREADS];

/* ---- threads in the middle of computing ---- */

static void *compute(void *arg)
{
	size_t me = (size_t)arg;
	double x = 1.0 + (double)me;
	_MM_SET_ROUNDING_MODE(me % 2 ? _MM_ROUND_UP : _MM_ROUND_DOWN);
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < 2000; k++)
			x = x * 1.000001 + 1.0 / x;
		mine += (uint64_t)x ^ (uint64_t)i;
		char *p = malloc((size_t)(i % 977) * 16 + 1);
		p[0] = (char)i;
		free(p);
		__atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
	}
	CHECK(_MM_GET_ROUNDING_MODE() == (me % 2 ? _MM_ROUND_UP : _MM_ROUND_DOWN));
	pthread_barrier_wait(&barrier);
	sums[me] = mine;
	return (void *)(uintptr_t)pthread_self();
}

static void start(pthread_t *thread, void *(*run)(void *), size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK(!pthread_create(&thread[i], NULL, run, (void *)i));
}

static void computing_threads(void)
{
	pthread_t thread[THREADS];
	pthread_barrier_init(&barrier, NULL, THREADS);
	start(thread, compute, THREADS);
	while (done < ROUNDS)
		usleep(1000);
	_MM_SET_ROUNDING_MODE(_MM_ROUND_TOWARD_ZERO);
	take();
	CHECK(_MM_GET_ROUNDING_MODE() == _MM_ROUND_TOWARD_ZERO);
	for (int i = 0; i < THREADS; i++) {
		void *self;
		CHECK(!pthread_join(thread[i], &self) && (pthread_t)self == thread[i]);
	}
	CHECK(sums[0] && sums[0] != sums[1]);
	/* new threads can still be made and ended */
	start(thread, compute, THREADS);
	uint64_t before[THREADS];
	memcpy(before, sums, sizeof(before));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK(!memcmp(before, sums, sizeof(before)));
}

/* ---- the thread that captures isn't the main one ---- */

static void *captures(void *arg)
{
	pthread_setname_np(pthread_self(), "captor");
	take();
	char name[16];
	CHECK(!pthread_getname_np(pthread_self(), name, sizeof(name)) && !strcmp(name, "captor"));
	pthread_mutex_lock(&mutex);
	go = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	CHECK(syscall(SYS_gettid) != getpid());
	return NULL;
}

static void other_thread(void)
{
	pthread_t thread;
	start(&thread, captures, 1);
	pthread_mutex_lock(&mutex);
	while (!go)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	CHECK(syscall(SYS_gettid) == getpid());
	CHECK(!pthread_join(thread, NULL));
}

/* ---- the main thread has ended ---- */

static void *outlives(void *arg)
{
	pthread_join(*(pthread_t *)arg, NULL);
	usleep(10000);
	take();
	CHECK(!pthread_mutex_lock(&mutex) && !pthread_mutex_unlock(&mutex));
	exit(0);
}

static void main_thread_gone(void)
{
	static pthread_t self, thread;
	self = pthread_self();
	CHECK(!pthread_create(&thread, NULL, outlives, &self));
	pthread_exit(NULL);
}

/* ---- mutexes that know their owner ---- */

static void held_mutexes(void)
{
	pthread_mutex_t *recursive, checking;
	/* the owner of one is on another page than its begin */
	char *pages = aligned_alloc(4096, 8192);
	recursive = (pthread_mutex_t *)(pages + 4096 - 8);
	/* numbers that happen to be the thread's are left alone */
	int numbers[] = {1, 1, getpid(), 1, 1, 7, 0, 0};
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(recursive, &attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&checking, &attr);
	CHECK(!pthread_mutex_lock(recursive) && !pthread_mutex_lock(recursive));
	CHECK(!pthread_mutex_lock(&checking));
	volatile int numbers_owner = getpid();
	take();
	CHECK(!pthread_mutex_lock(recursive));
	CHECK(pthread_mutex_lock(&checking) == EDEADLK);
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_mutex_unlock(recursive));
	CHECK(pthread_mutex_unlock(recursive) == EPERM);
	CHECK(!pthread_mutex_unlock(&checking));
	CHECK(pthread_kill(pthread_self(), 0) == 0);
	CHECK(numbers[2] == numbers_owner);
}

static pthread_mutex_t robust, inheriting, both;

static void *waits_for_mutexes(void *arg)
{
	__atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
	CHECK(!pthread_mutex_lock(&inheriting) && !pthread_mutex_lock(&robust) &&
	      !pthread_mutex_lock(&both));
	__atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_mutex_unlock(i == 0 ? &robust : i == 1 ? &inheriting : &both));
	return NULL;
}

/* Its owner ends with it: the next one is told. */
static void *dies_with_mutex(void *arg)
{
	CHECK(!pthread_mutex_lock(arg));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void make_mutex(pthread_mutex_t *m, int is_robust, int protocol, int type)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	CHECK(!pthread_mutexattr_settype(&attr, type) &&
	      !pthread_mutexattr_setrobust(&attr, is_robust) &&
	      !pthread_mutexattr_setprotocol(&attr, protocol));
	CHECK(!pthread_mutex_init(m, &attr));
	pthread_mutexattr_destroy(&attr);
}

/* Mutexes whose word has the owner's id, which the kernel reads. */
static void robust_mutexes(void)
{
	static pthread_mutex_t orphan, recursive;
	pthread_t waiter, owner;
	make_mutex(&robust, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_NORMAL);
	make_mutex(&inheriting, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL);
	make_mutex(&both, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_ERRORCHECK);
	make_mutex(&orphan, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_NORMAL);
	make_mutex(&recursive, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT,
		   PTHREAD_MUTEX_RECURSIVE);
	pthread_barrier_init(&barrier, NULL, 2);
	CHECK(!pthread_mutex_lock(&robust) && !pthread_mutex_lock(&inheriting) &&
	      !pthread_mutex_lock(&both) && !pthread_mutex_lock(&recursive));
	CHECK(!pthread_create(&waiter, NULL, waits_for_mutexes, NULL));
	CHECK(!pthread_create(&owner, NULL, dies_with_mutex, &orphan));
	pthread_barrier_wait(&barrier);
	while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST))
		usleep(1000);
	usleep(20000);
	take();
	CHECK(!pthread_mutex_lock(&recursive) && pthread_mutex_lock(&both) == EDEADLK);
	CHECK(!pthread_mutex_unlock(&inheriting));
	usleep(20000); /* the other one waits for the next */
	CHECK(!pthread_mutex_unlock(&robust) && !pthread_mutex_unlock(&both));
	CHECK(!pthread_join(waiter, NULL) && done == 2);
	CHECK(pthread_mutex_trylock(&orphan) == EBUSY);
	pthread_barrier_wait(&barrier);
	CHECK(!pthread_join(owner, NULL) && pthread_mutex_lock(&orphan) == EOWNERDEAD);
	CHECK(!pthread_mutex_consistent(&orphan) && !pthread_mutex_unlock(&orphan));
	CHECK(!pthread_mutex_unlock(&recursive) && !pthread_mutex_unlock(&recursive) &&
	      pthread_mutex_unlock(&recursive) == EPERM);
}

/* ---- calls that a signal interrupts ---- */

static int waiting;

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / MS;
}

static void *sleeps(void *arg)
{
	const struct timespec t = {0, 300 * MS};
	struct timespec rest = {7, 7}, at;
	struct timeval tv = {0, 300000};
	uint64_t began = now_ms();
	sem_t sem;
	sem_init(&sem, 0, 0);
	__atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
	switch ((size_t)arg) {
	case 0:
		CHECK(nanosleep(&t, &rest) == 0);
		break;
	case 1:
		CHECK(usleep(300000) == 0);
		break;
	case 2:
		CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL) == 0);
		break;
	case 3:
		CHECK(poll(NULL, 0, 300) == 0);
		break;
	case 4:
		CHECK(select(0, NULL, NULL, NULL, &tv) == 0);
		break;
	case 5:
		clock_gettime(CLOCK_REALTIME, &at);
		at.tv_sec += 1;
		CHECK(sem_timedwait(&sem, &at) == -1 && errno == ETIMEDOUT);
		break;
	}
	CHECK(now_ms() - began >= 299);
	return NULL;
}

static void interrupted_calls(void)
{
	pthread_t thread[6];
	start(thread, sleeps, 6);
	while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) < 6)
		usleep(1000);
	usleep(50000);
	take();
	for (int i = 0; i < 6; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

const struct scenario scenarios_threads[] = {{"computing_threads", computing_threads},
					     {"other_thread", other_thread},
					     {"main_thread_gone", main_thread_gone},
					     {"held_mutexes", held_mutexes},
					     {"robust_mutexes", robust_mutexes},
					     {"interrupted_calls", interrupted_calls},
					     {NULL, NULL}};
