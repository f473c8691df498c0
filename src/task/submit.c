// SPDX-License-Identifier: BSD-3-Clause
/* hale_task_submit(): tasks, who comes before whom, and their end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "hale/task.h"
#include "task/family.h"
#include "task/inputs.h"
#include "task/run.h"

enum { MANY = 4096 }; /* tasks of one parent, above which the parent executes some itself */

struct work work_outside = {.refs = 1, .children = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
static _Atomic uint64_t numbers;

/* ---- one task ---- */

void work_hold(struct work *w)
{
	atomic_fetch_add_explicit(&w->refs, 1, memory_order_relaxed);
}

void work_drop(struct work *w)
{
	if (atomic_fetch_sub(&w->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w->after);
	free(w);
}

bool work_is_over(const struct work *w)
{
	return atomic_load(&w->over);
}

static void work_ready(struct work *w)
{
	if (atomic_fetch_sub(&w->waits, 1) == 1)
		pool_add(w);
}

/* Those that have waited for w, outside of its lock. */
static void work_over(struct work *w)
{
	struct work *parent = w->parent;
	uint32_t n;

	pthread_mutex_lock(&w->lock);
	atomic_store(&w->over, true);
	n = w->nafter;
	region_clear(&w->regions);
	pthread_mutex_unlock(&w->lock);
	/* the last one first: the newest in a deque is the next to run */
	while (n > 0) {
		work_ready(w->after[--n]);
		work_drop(w->after[n]);
	}
	w->nafter = 0;
	work_drop(w);
	work_child_over(parent);
}

void work_child_over(struct work *w)
{
	uint32_t left = atomic_fetch_sub(&w->children, 1) - 1;

	if (left == 0)
		work_over(w);
	else if (left == 1)
		pool_tell(); /* somebody may wait for the children */
}

static void body_of(void *arg)
{
	struct work *w = arg;

	w->body(w->arg);
}

void work_execute(struct work *w)
{
	struct work *outer = pool_current;

	pool_current = w;
	if (task_family_enter(&w->record, w->protect)) {
		task_execute(w->protect ? &w->record : NULL, body_of, w);
		task_family_leave(&w->record);
	}
	pool_current = outer;
	work_child_over(w);
}

/* ---- who comes before whom ---- */

static void comes_after(void *arg, struct work *before)
{
	struct work *w = arg, **more;

	pthread_mutex_lock(&before->lock);
	if (!atomic_load(&before->over) &&
	    !(before->nafter && before->after[before->nafter - 1] == w)) {
		if (before->nafter == before->room) {
			more = realloc(before->after, (before->room * 2 + 4) * sizeof(*more));
			if (!more) {
				log_warn("hale_task_submit: no memory for the order of tasks");
				abort();
			}
			before->after = more;
			before->room = before->room * 2 + 4;
		}
		before->after[before->nafter++] = w;
		work_hold(w);
		atomic_fetch_add(&w->waits, 1);
	}
	pthread_mutex_unlock(&before->lock);
}

static bool regions_note(struct work *parent, struct work *w, const struct hale_task_range *r,
			 size_t count)
{
	bool ok = true;

	pthread_mutex_lock(&parent->lock);
	for (size_t i = 0; ok && i < count; i++)
		if (r[i].length)
			ok = region_use(&parent->regions, (uintptr_t)r[i].at,
					(uintptr_t)r[i].at + r[i].length,
					(r[i].use & HALE_TASK_OUT) != 0, w, comes_after, w);
	pthread_mutex_unlock(&parent->lock);
	return ok;
}

/* ---- making one ---- */

/* What was there before does not matter: unless another range says that it does. */
static bool is_discarded(const struct hale_task_range *r, size_t count, size_t i)
{
	uintptr_t from = (uintptr_t)r[i].at, to = from + r[i].length;

	if (r[i].use != HALE_TASK_OUT || count > 64)
		return false;
	for (size_t k = 0; k < count; k++)
		if (r[k].use & HALE_TASK_IN && (uintptr_t)r[k].at < to &&
		    from < (uintptr_t)r[k].at + r[k].length)
			return false;
	return true;
}

static struct work *work_make(void (*body)(void *), const void *arg, size_t arg_bytes,
			      const struct hale_task_range *r, size_t count)
{
	size_t ranges = (count + 1) * sizeof(struct task_range), at = sizeof(struct work) + ranges;
	struct work *w;

	at = ALIGN_UP(at, 16);
	w = calloc(1, at + arg_bytes);
	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	atomic_store(&w->refs, 1);
	atomic_store(&w->waits, 1);
	atomic_store(&w->children, 1);
	w->body = body;
	w->arg = (char *)w + at;
	if (arg_bytes)
		memcpy(w->arg, arg, arg_bytes);
	/* the body may change its arg in place */
	w->ranges[0] =
	    (struct task_range){.at = w->arg, .length = arg_bytes, .written = true, .own = true};
	for (size_t i = 0; i < count; i++)
		w->ranges[i + 1] = (struct task_range){.at = r[i].at,
						       .length = r[i].length,
						       .written = (r[i].use & HALE_TASK_OUT) != 0,
						       .discard = is_discarded(r, count, i)};
	w->record.site = task_site_of((const void *)(uintptr_t)body, NULL);
	w->record.number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
	w->record.count = (uint32_t)count + 1;
	w->record.ranges = w->ranges;
	w->protect = task_wanted(&w->record);
	return w;
}

static bool ranges_good(const struct hale_task_range *r, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (r[i].use < HALE_TASK_IN || r[i].use > HALE_TASK_INOUT ||
		    (uintptr_t)r[i].at + r[i].length < (uintptr_t)r[i].at)
			return false;
	return true;
}

int hale_task_submit(void (*body)(void *arg), const void *arg, size_t arg_bytes,
		     const struct hale_task_range *ranges, size_t count)
{
	struct work *parent = pool_current ? pool_current : &work_outside, *w;

	if (!body || (arg_bytes && !arg) || (count && !ranges) || count > 1 << 20 ||
	    !ranges_good(ranges, count))
		return EINVAL;
	pool_start();
	w = work_make(body, arg, arg_bytes, ranges, count);
	if (!w)
		return ENOMEM;
	task_family_join(&w->record);
	w->parent = parent;
	atomic_fetch_add(&parent->children, 1);
	if (!regions_note(parent, w, ranges, count)) {
		log_warn("hale_task_submit: no memory for the order of tasks");
		abort();
	}
	if (w->protect)
		task_made(&w->record);
	work_ready(w);
	while (atomic_load(&parent->children) > MANY && pool_help_once())
		;
	return 0;
}

void hale_task_wait(void)
{
	struct work *parent = pool_current ? pool_current : &work_outside;
	struct task_frame *f = task_thread_self()->frame;

	pool_start();
	if (f)
		f->waits = true;
	pool_help(&parent->children, 1);
	if (f)
		f->waits = false;
	task_inputs_settled();
	pthread_mutex_lock(&parent->lock);
	if (atomic_load(&parent->children) == 1)
		region_clear(&parent->regions);
	pthread_mutex_unlock(&parent->lock);
}
