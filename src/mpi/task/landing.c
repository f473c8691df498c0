/* SPDX-License-Identifier: BSD-3-Clause */
/* Where MPI writes by itself: receives and nonblocking collective operations that were begun
 * outside of tasks, persistent receives, windows. A task that is executed again gets back the data
 * that it began with. What has arrived meanwhile in the same place would be lost without anybody
 * noticing, so such a task is not executed again. (Receives that a task began arrive in its log.)
 */
#include "mpi/task/intask.h"

struct landing {
	struct landing *next, *prev;
	const void *key; /* a request, or what a window was made of */
	const char *from, *to;
	bool request;
};

bool intask_landing_watch;
static struct landing *first;
/* Held for a few instructions, inside of MPI only: never by a thread that an error interrupts. */
static _Atomic int busy;

static void lock(void)
{
	while (atomic_exchange_explicit(&busy, 1, memory_order_acquire))
		;
}

static void unlock(void)
{
	atomic_store_explicit(&busy, 0, memory_order_release);
}

static struct landing *landing_make(const void *key, const void *at, size_t bytes)
{
	struct landing *l = heap_calloc(1, sizeof(*l));

	if (!l)
		return NULL; /* the next allocation of the program's call says so */
	l->key = key;
	l->from = at;
	l->to = l->from + bytes;
	lock();
	l->next = first;
	if (first)
		first->prev = l;
	first = l;
	unlock();
	return l;
}

static void landing_end(struct landing *l)
{
	lock();
	if (l->prev)
		l->prev->next = l->next;
	else
		first = l->next;
	if (l->next)
		l->next->prev = l->prev;
	unlock();
	heap_free(l);
}

/* ---- requests ---- */

static void landing_give(struct request *r)
{
}

static void landing_drop(struct request *r)
{
	landing_end(r->note);
	r->note = NULL;
}

bool intask_landing_is(const struct request *r)
{
	return r->note_drop == landing_drop;
}

static void request_watch(struct request *r, const void *at, size_t bytes)
{
	struct landing *l;

	if (!bytes || r->note || r->kind == REQUEST_NONE)
		return;
	l = landing_make(r, at, bytes);
	if (!l)
		return;
	l->request = true;
	r->note = l;
	r->note_give = landing_give;
	r->note_drop = landing_drop;
}

void intask_landing_recv(struct request *r)
{
	if (r->kind == REQUEST_RECV && r->type)
		request_watch(r, (char *)r->buf + coll_low(r->type, r->count),
			      coll_span(r->type, r->count));
}

void intask_landing_span(struct request *r, const void *buf, size_t count, struct datatype *t)
{
	if (intask_landing_watch)
		request_watch(r, (const char *)buf + coll_low(t, count), coll_span(t, count));
}

void intask_landing_coll(struct request *r, const struct coll_args *a)
{
	const char *from;
	size_t bytes = intask_coll_span(a, &from);

	request_watch(r, from, bytes);
}

/* ---- windows ---- */

void intask_landing_memory(const void *key, const void *at, size_t bytes)
{
	if (intask_landing_watch && bytes)
		landing_make(key, at, bytes);
}

bool intask_landing_forget(const void *key)
{
	struct landing *l = first;

	while (l && (l->request || l->key != key))
		l = l->next;
	if (l)
		landing_end(l);
	return l != NULL;
}

/* ---- asked by libhale_task.so, on a thread that is not inside of MPI ---- */

/* A persistent one that a task has started receives into the task's log. */
static bool request_lands(const struct landing *l)
{
	const struct request *r = l->key;

	return r->active && r->note == l;
}

bool intask_landing_in(const void *at, size_t bytes)
{
	const char *from = at, *to = from + bytes;
	bool found = false;

	lock();
	for (struct landing *l = first; l && !found; l = l->next)
		found = l->from < to && from < l->to && (!l->request || request_lands(l));
	unlock();
	return found;
}

bool intask_landing_window(const void *at, size_t bytes)
{
	const char *from = at, *to = from + bytes;
	bool found = false;

	lock();
	for (struct landing *l = first; l && !found; l = l->next)
		found = !l->request && l->from < to && from < l->to;
	unlock();
	return found;
}
