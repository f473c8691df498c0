/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/single_threaded.h>
#include "protect/team.h"

/* Waking a helper takes some 50 us, in which one thread reads 1.5 MB. */
#define TEAM_BYTES_MIN ((size_t)4 << 20)
#define TEAM_USUAL_MAX 4

static pthread_mutex_t team_use =
    PTHREAD_MUTEX_INITIALIZER; /* held by the scan that has the helpers */
static pthread_mutex_t team_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the job below */
static pthread_cond_t team_bell = PTHREAD_COND_INITIALIZER, team_done = PTHREAD_COND_INITIALIZER;
static int limit, helpers; /* helpers: under team_use */
static struct {
	unsigned long number; /* of the job; a helper takes part in each once */
	int open;	      /* workers that may still join; 0: closed */
	int joined, active;   /* the caller is worker 0 and not among them */
	size_t parts;
	atomic_size_t next;
	void (*work)(void *arg, int worker, size_t part);
	void *arg;
} job;

void team_limit(int workers)
{
	limit = workers;
}

static int cores(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

	return n > TEAM_USUAL_MAX ? TEAM_USUAL_MAX : n;
}

int team_size(size_t bytes)
{
	if (bytes < TEAM_BYTES_MIN)
		return 1;
	return limit ? limit : __libc_single_threaded ? 1 : cores();
}

static void parts_take(int worker)
{
	size_t part;

	while ((part = atomic_fetch_add_explicit(&job.next, 1, memory_order_relaxed)) < job.parts)
		job.work(job.arg, worker, part);
}

static void *help(void *unused)
{
	unsigned long seen = 0;

	(void)unused;
	pthread_mutex_lock(&team_lock);
	for (;;) {
		while (job.number == seen || !job.open)
			pthread_cond_wait(&team_bell, &team_lock);
		seen = job.number;
		job.open--;
		job.active++;
		int worker = ++job.joined;
		pthread_mutex_unlock(&team_lock);
		parts_take(worker);
		pthread_mutex_lock(&team_lock);
		if (--job.active == 0)
			pthread_cond_signal(&team_done);
	}
	return NULL;
}

/* fork has left the helpers behind. */
static void child_forgets(void)
{
	helpers = 0;
	job.open = job.active = 0;
	pthread_mutex_init(&team_use, NULL);
	pthread_mutex_init(&team_lock, NULL);
	pthread_cond_init(&team_bell, NULL);
	pthread_cond_init(&team_done, NULL);
}

static void fork_watch(void)
{
	pthread_atfork(NULL, NULL, child_forgets);
}

/* Helpers take no signals of the program's. */
static void helpers_start(int count)
{
	static pthread_once_t watched = PTHREAD_ONCE_INIT;
	sigset_t all, was;
	pthread_t t;

	if (helpers >= count)
		return;
	pthread_once(&watched, fork_watch);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	while (helpers < count && pthread_create(&t, NULL, help, NULL) == 0) {
		pthread_detach(t);
		helpers++;
	}
	pthread_sigmask(SIG_SETMASK, &was, NULL);
}

static void job_share(int workers, size_t parts, void (*work)(void *, int, size_t), void *arg)
{
	helpers_start(workers - 1);
	pthread_mutex_lock(&team_lock);
	job.number++;
	job.open = workers - 1;
	job.joined = 0;
	job.parts = parts;
	job.work = work;
	job.arg = arg;
	atomic_store_explicit(&job.next, 0, memory_order_relaxed);
	pthread_cond_broadcast(&team_bell);
	pthread_mutex_unlock(&team_lock);
	parts_take(0);
	pthread_mutex_lock(&team_lock);
	job.open = 0;
	while (job.active)
		pthread_cond_wait(&team_done, &team_lock);
	pthread_mutex_unlock(&team_lock);
}

void team_run(int workers, size_t parts, void (*work)(void *arg, int worker, size_t part),
	      void *arg)
{
	if (workers > 1 && parts > 1 && pthread_mutex_trylock(&team_use) == 0) {
		job_share(workers, parts, work, arg);
		pthread_mutex_unlock(&team_use);
		return;
	}
	for (size_t part = 0; part < parts; part++)
		work(arg, 0, part);
}
