// SPDX-License-Identifier: BSD-3-Clause
/* The threads of hale_task_submit(), and their deques. */
#include "task/run.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include "hale/task.h"

enum { WORKERS = 256, SPINS = 200 };

struct pool_worker {
	pthread_mutex_t lock;
	struct work *oldest, *newest;
	_Atomic uint32_t ready;
} __attribute__((aligned(CACHE_LINE)));

static struct pool_worker workers[WORKERS];
static int nworkers = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;
__thread struct work *pool_current;
/* Threads of the program's share the deque of number 0. */
static __thread int number = -1;
static __thread uint32_t draw;

/* Threads that found nothing sleep here; `told` changes when there may be something. */
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static _Atomic uint32_t told, sleepers;

void pool_tell(void)
{
	atomic_fetch_add(&told, 1);
	if (atomic_load(&sleepers) == 0)
		return;
	pthread_mutex_lock(&idle_lock);
	pthread_cond_broadcast(&idle);
	pthread_mutex_unlock(&idle_lock);
}

static struct pool_worker *worker_self(void)
{
	return &workers[number > 0 ? number : 0];
}

void pool_add(struct work *w)
{
	struct pool_worker *me = worker_self();

	pthread_mutex_lock(&me->lock);
	w->older = me->newest;
	w->newer = NULL;
	if (me->newest)
		me->newest->newer = w;
	else
		me->oldest = w;
	me->newest = w;
	atomic_fetch_add(&me->ready, 1);
	pthread_mutex_unlock(&me->lock);
	pool_tell();
}

static struct work *worker_take(struct pool_worker *from, bool newest)
{
	struct work *w;

	if (atomic_load(&from->ready) == 0)
		return NULL;
	pthread_mutex_lock(&from->lock);
	w = newest ? from->newest : from->oldest;
	if (w) {
		if (w->older)
			w->older->newer = w->newer;
		else
			from->oldest = w->newer;
		if (w->newer)
			w->newer->older = w->older;
		else
			from->newest = w->older;
		atomic_fetch_sub(&from->ready, 1);
	}
	pthread_mutex_unlock(&from->lock);
	return w;
}

static struct work *pool_find(void)
{
	struct pool_worker *me = worker_self();
	struct work *w = worker_take(me, true);

	draw = draw * 1664525u + 1013904223u;
	for (int i = 0, n = nworkers, at = (int)(draw >> 16) % n; i < n && !w;
	     i++, at = (at + 1) % n)
		if (&workers[at] != me)
			w = worker_take(&workers[at], false);
	return w;
}

bool pool_help_once(void)
{
	struct work *w = pool_find();

	if (w)
		work_execute(w);
	return w != NULL;
}

void pool_help(_Atomic uint32_t *count, uint32_t least)
{
	for (int tries = 0; atomic_load(count) > least;) {
		uint32_t seen = atomic_load(&told);

		if (pool_help_once()) {
			tries = 0;
			continue;
		}
		if (++tries < SPINS) {
			sched_yield();
			continue;
		}
		atomic_fetch_add(&sleepers, 1);
		pthread_mutex_lock(&idle_lock);
		while (atomic_load(&told) == seen && atomic_load(count) > least)
			pthread_cond_wait(&idle, &idle_lock);
		pthread_mutex_unlock(&idle_lock);
		atomic_fetch_sub(&sleepers, 1);
		tries = 0;
	}
}

static void *worker_main(void *arg)
{
	static _Atomic uint32_t ever = 1;

	number = (int)(intptr_t)arg;
	draw = (uint32_t)number * 2654435761u;
	pool_help(&ever, 0);
	return NULL;
}

static int threads_wanted(void)
{
	const char *n = getenv("HALE_TASK_THREADS");
	cpu_set_t cores;
	int wanted;

	if (!n)
		n = getenv("OMP_NUM_THREADS");
	wanted = n ? atoi(n) : 0;
	if (wanted < 1 && sched_getaffinity(0, sizeof(cores), &cores) == 0)
		wanted = CPU_COUNT(&cores);
	return wanted < 1 ? 1 : wanted > WORKERS ? WORKERS : wanted;
}

static void start(void)
{
	pthread_attr_t a;
	pthread_t t;
	int n = threads_wanted();

	for (int i = 0; i < WORKERS; i++)
		pthread_mutex_init(&workers[i].lock, NULL);
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	nworkers = n;
	for (int i = 1; i < n; i++)
		if (pthread_create(&t, &a, worker_main, (void *)(intptr_t)i) != 0) {
			log_warn("hale_task_submit: only %d of %d threads could be started", i, n);
			break;
		}
	pthread_attr_destroy(&a);
}

void pool_start(void)
{
	pthread_once(&once, start);
}

int hale_task_threads(void)
{
	pool_start();
	return nworkers;
}

int hale_task_thread(void)
{
	return number >= 0 ? number : pool_current ? 0 : -1;
}
