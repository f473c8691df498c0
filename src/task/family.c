// SPDX-License-Identifier: BSD-3-Clause
#include "task/family.h"

#include <sched.h>
#include <stdlib.h>

enum { WAIT_SECONDS = 10 };

/* The children of one task. */
struct task_family {
	_Atomic uint32_t refs;	  /* children that are not over, and the parent */
	_Atomic uint32_t attempt; /* of the parent */
	_Atomic uint32_t running; /* children, and children of children */
	_Atomic bool over;	  /* the parent has ended */
	_Atomic bool outside;	  /* one that has begun may have written elsewhere */
	_Atomic bool spoke;	  /* one has called MPI */
	struct task_family *above;
	uint32_t above_attempt;
	_Atomic uintptr_t stack_low; /* the parent's stack, as far as it has come */
	uintptr_t stack_high;
	uint32_t count;
	struct task_range ranges[]; /* that the parent writes: they go back with it */
};

static void family_drop(struct task_family *f)
{
	struct task_family *above;

	for (; f && atomic_fetch_sub(&f->refs, 1) == 1; f = above) {
		above = f->above;
		free(f);
	}
}

static struct task_family *family_make(const struct task_frame *frame)
{
	const struct task_record *r = frame->record;
	struct task_family *f = calloc(1, sizeof(*f) + r->count * sizeof(f->ranges[0]));

	if (!f)
		return NULL;
	atomic_store(&f->refs, 1);
	f->above = r->family;
	f->above_attempt = r->attempt;
	if (f->above)
		atomic_fetch_add(&f->above->refs, 1);
	f->stack_high = (uintptr_t)frame;
	atomic_store(&f->stack_low, f->stack_high);
	for (uint32_t i = 0; i < r->count; i++)
		if (r->ranges[i].written)
			f->ranges[f->count++] = r->ranges[i];
	return f;
}

void task_family_join(struct task_record *r)
{
	struct task_frame *f = task_thread_self()->frame;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	r->family = NULL;
	if (!f || !f->record)
		return;
	if (!f->family && !(f->family = family_make(f))) {
		f->spawned = true;
		return;
	}
	if (here < atomic_load(&f->family->stack_low))
		atomic_store(&f->family->stack_low, here);
	atomic_fetch_add(&f->family->refs, 1);
	r->family = f->family;
	r->attempt = atomic_load(&f->family->attempt);
}

static bool range_goes_back(const struct task_family *f, const struct task_range *r)
{
	uintptr_t from = (uintptr_t)r->at, to = from + r->length;

	if (!r->written || r->own || (from >= atomic_load(&f->stack_low) && to <= f->stack_high))
		return true;
	for (uint32_t i = 0; i < f->count; i++)
		if (from >= (uintptr_t)f->ranges[i].at &&
		    to <= (uintptr_t)f->ranges[i].at + f->ranges[i].length)
			return true;
	return false;
}

/* Those above r in turn, each with the attempt that r belongs to. */
struct family_step {
	struct task_family *family;
	uint32_t attempt;
};

static struct family_step step_first(const struct task_record *r)
{
	return (struct family_step){r->family, r->attempt};
}

static struct family_step step_next(struct family_step s)
{
	return (struct family_step){s.family->above, s.family->above_attempt};
}

/* A parent that runs may wait for r, so it decides; those above it wait until it has ended. */
static bool record_counts(const struct task_record *r)
{
	for (struct family_step s = step_first(r); s.family; s = step_next(s)) {
		if (atomic_load(&s.family->attempt) != s.attempt)
			return false;
		if (!atomic_load(&s.family->over))
			return true;
	}
	return true;
}

bool task_family_enter(const struct task_record *r, bool declared)
{
	for (struct family_step s = step_first(r); s.family; s = step_next(s))
		atomic_fetch_add(&s.family->running, 1);
	if (!record_counts(r)) {
		task_family_leave(r);
		return false;
	}
	for (struct family_step s = step_first(r); s.family; s = step_next(s)) {
		bool back = declared;

		for (uint32_t i = 0; back && i < r->count; i++)
			back = range_goes_back(s.family, &r->ranges[i]);
		if (!back)
			atomic_store(&s.family->outside, true);
	}
	return true;
}

void task_family_uncopied(const struct task_record *r)
{
	for (struct family_step s = step_first(r); s.family; s = step_next(s))
		atomic_store(&s.family->outside, true);
}

void task_family_leave(const struct task_record *r)
{
	for (struct family_step s = step_first(r), next; s.family; s = next) {
		next = step_next(s);
		atomic_fetch_sub(&s.family->running, 1);
	}
	family_drop(r->family);
}

void task_family_spoke(const struct task_record *r)
{
	for (struct family_step s = step_first(r); s.family; s = step_next(s))
		atomic_store(&s.family->spoke, true);
}

static const char *family_obstacle(const struct task_family *f)
{
	if (atomic_load(&f->outside))
		return "in a task that has made others which write more than it declares";
	if (atomic_load(&f->spoke))
		return "in a task that has made others which have called MPI";
	return NULL;
}

const char *task_family_stop(struct task_frame *frame)
{
	struct task_family *f = frame->family;
	uint64_t until = clock_ns() + (uint64_t)WAIT_SECONDS * 1000000000;
	const char *why;

	if (!f)
		return NULL;
	atomic_fetch_add(&f->attempt, 1);
	for (;;) {
		bool over = atomic_load(&f->running) == 0;

		why = family_obstacle(f);
		if (why || over)
			return why;
		if (clock_ns() > until)
			return "in a task that has made others which do not end";
		sched_yield();
	}
}

void task_family_end(struct task_frame *frame)
{
	atomic_store(&frame->family->over, true);
	family_drop(frame->family);
	frame->family = NULL;
}
