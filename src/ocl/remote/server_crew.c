/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that copy. Between two processes one core moves 3 to 5 GB/s (its pages are pinned one by
 * one), a bus to a device moves ten times that. */
#include "base/base.h"
#include "base/cpus.h"
#include "ocl/remote/server_transfers.h"

enum { HANDS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
	int hands; /* -1: not counted yet */
	bool taken;
	uint64_t round;
	int at_work;
	void (*work)(void *arg);
	void *arg;
} crew = {.hands = -1};

static void *hand(void *unused)
{
	uint64_t seen = 0;

	pthread_mutex_lock(&lock);
	for (;;) {
		void (*work)(void *);
		void *arg;

		while (crew.round == seen)
			pthread_cond_wait(&changed, &lock);
		seen = crew.round;
		work = crew.work;
		arg = crew.arg;
		pthread_mutex_unlock(&lock);
		work(arg);
		pthread_mutex_lock(&lock);
		if (--crew.at_work == 0)
			pthread_cond_broadcast(&changed);
	}
	return unused;
}

/* Half of the cores are the program's. */
static void gather(void)
{
	int wanted = (int)cpus_allowed() / 2 - 1;

	wanted = wanted > HANDS ? HANDS : wanted;
	for (crew.hands = 0; crew.hands < wanted; crew.hands++) {
		pthread_t t;

		if (pthread_create(&t, NULL, hand, NULL) != 0)
			break;
		pthread_detach(t);
	}
}

void crew_run(void (*work)(void *arg), void *arg)
{
	bool alone;

	pthread_mutex_lock(&lock);
	if (crew.hands < 0)
		gather();
	alone = crew.taken || crew.hands == 0;
	if (!alone) {
		crew.taken = true;
		crew.work = work;
		crew.arg = arg;
		crew.at_work = crew.hands;
		crew.round++;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	work(arg);
	if (alone)
		return;
	pthread_mutex_lock(&lock);
	while (crew.at_work > 0)
		pthread_cond_wait(&changed, &lock);
	crew.taken = false;
	pthread_mutex_unlock(&lock);
}
