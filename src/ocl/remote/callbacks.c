/* SPDX-License-Identifier: BSD-3-Clause */
/* Callbacks of events and contexts: called by a thread of this driver, each once. What the server
 * has said is taken out of the ring into memory of the program, so that it outlives the server and
 * is part of images. */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

static const long look_ns = 50000000; /* between two looks at whether the server is there */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct callback *waiting; /* in no order */
/* What is ready, in the order in which it was said. */
static struct callback *first, **last = &first;
static bool running;

static void unlink_waiting(struct callback *b)
{
	*b->at = b->next;
	if (b->next)
		b->next->at = b->at;
}

static void make_ready(struct callback *b, int32_t status)
{
	unlink_waiting(b);
	b->status = status;
	b->ready = true;
	b->next = NULL;
	*last = b;
	last = &b->next;
}

static bool is_waiting(const struct callback *b)
{
	const struct callback *w = waiting;

	while (w && w != b)
		w = w->next;
	return w != NULL;
}

static void collect(struct remote_wire *w)
{
	uint64_t tail = atomic_load(&w->callback_tail);

	for (; tail != atomic_load(&w->callback_head); tail++) {
		struct wire_callback c = w->callback[tail % WIRE_CALLBACKS];
		struct callback *b = (struct callback *)(uintptr_t)c.cookie;
		/* the server doesn't decide what is called here */
		if (is_waiting(b))
			make_ready(b, c.status);
		atomic_store(&w->callback_tail, tail + 1);
	}
}

void callbacks_collect(struct remote_wire *w)
{
	pthread_mutex_lock(&lock);
	collect(w);
	pthread_mutex_unlock(&lock);
}

void callbacks_make_room(struct remote_wire *w)
{
	if (atomic_load(&w->callback_head) - atomic_load(&w->callback_tail) > WIRE_CALLBACKS / 2)
		callbacks_collect(w);
}

void callbacks_restored(uint32_t life)
{
	for (struct callback *b = waiting; b; b = b->next)
		b->life = life;
}

/* Whose server has ended: nobody else will ever call them. */
static void collect_left(void)
{
	for (struct callback *b = waiting, *next; b; b = next) {
		next = b->next;
		if (remote_has_ended(b->life))
			make_ready(b, CL_DEVICE_NOT_AVAILABLE);
	}
}

static struct callback *take(void)
{
	struct callback *b = first;

	if (!b)
		return NULL;
	first = b->next;
	if (!first)
		last = &first;
	return b;
}

static void *call_them(void *arg)
{
	bool look = false;

	for (;;) {
		struct timespec t = {0, look_ns};
		struct remote_wire *w;
		struct callback *b;
		uint32_t seen;

		remote_enter(); /* a checkpoint must not come between taking one and knowing it */
		pthread_mutex_lock(&lock);
		w = remote_wire();
		seen = atomic_load(&w->callback_bell);
		collect(w);
		if (look && !first)
			collect_left();
		b = take();
		pthread_mutex_unlock(&lock);
		remote_leave();
		if (b)
			b->call(b, b->status);
		else
			look = syscall(SYS_futex, &w->callback_bell, FUTEX_WAIT, seen, &t, NULL,
				       0) != 0;
	}
	return arg;
}

/* Under the lock. */
static bool start_thread(void)
{
	sigset_t all, old;
	pthread_t t;

	if (running)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	running = pthread_create(&t, NULL, call_them, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (running)
		pthread_detach(t);
	return running;
}

bool callback_add(struct callback *b)
{
	bool good;

	remote_enter();
	pthread_mutex_lock(&lock);
	b->life = remote_life();
	b->ready = false;
	b->next = waiting;
	b->at = &waiting;
	if (waiting)
		waiting->at = &b->next;
	waiting = b;
	good = start_thread();
	pthread_mutex_unlock(&lock);
	remote_leave();
	return good;
}

bool callback_remove(struct callback *b)
{
	bool ours;

	remote_enter();
	pthread_mutex_lock(&lock);
	ours = is_waiting(b);
	if (ours)
		unlink_waiting(b);
	pthread_mutex_unlock(&lock);
	remote_leave();
	return ours;
}
