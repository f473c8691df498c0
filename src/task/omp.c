// SPDX-License-Identifier: BSD-3-Clause
/* Between clang's OpenMP programs and libomp: the functions that make tasks.
 *
 * With `depend` clang tells libomp address, length and direction of each dependence; the task's
 * struct holds what is firstprivate, and a block of pointers to what is shared. All that is copied
 * before the task runs. The record of a task lies in the memory that libomp gives for that block,
 * before it: no search, no allocation of ours.
 *
 *   | libomp's | struct ktask, privates | struct made | pointers to shareds |
 *                │ routine: run_again      ▲             ▲
 *                └ shareds ────────────────┼─────────────┘
 */
#include "task/family.h"
#include "task/inputs.h"
#include "task/task.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
/* libomp has no header for what compilers call. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef int32_t (*entry_fn)(int32_t gtid, void *task);

struct ktask {
	void *shareds;
	entry_fn routine;
	int32_t part_id;
};

struct kdep {
	intptr_t base;
	size_t length;
	uint8_t flags;
};

enum { DEP_IN = 1, DEP_OUT = 2, DEP_MUTEX = 4, DEP_SET = 8 };
enum { FLAG_TIED = 1, FLAG_DESTRUCTORS = 8, FLAG_DETACHABLE = 64 };
enum { RANGES = 14, MADE_MAGIC = 0x6d616465 };

struct made {
	uint32_t magic;
	int32_t flags;
	entry_fn routine;
	void *loc; /* where it is made, by which thread */
	int32_t gtid;
	struct ktask *before; /* another one that is being made, around this one */
	size_t task_bytes, shared_bytes;
	struct task_record record;
	struct task_range range[RANGES]; /* more: by malloc */
};

static struct ktask *(*real_alloc)(void *, int32_t, int32_t, size_t, size_t, entry_fn);
static int32_t (*real_task)(void *, int32_t, struct ktask *);
static int32_t (*real_with_deps)(void *, int32_t, struct ktask *, int32_t, struct kdep *, int32_t,
				 struct kdep *);
static _Atomic uint64_t numbers;

static struct made *made_of(struct ktask *t)
{
	struct made *m = (struct made *)t->shareds - 1;

	return t->shareds && m->magic == MADE_MAGIC ? m : NULL;
}

/* ---- running ---- */

struct omp_call {
	struct ktask *task;
	entry_fn routine;
	int32_t gtid, result;
};

static void call_routine(void *arg)
{
	struct omp_call *c = arg;

	task_thread_self()->frame->level = task_omp_level();
	c->result = c->routine(c->gtid, c->task);
}

static void ranges_free(const struct made *m)
{
	if (UNLIKELY(m->record.ranges != m->range))
		free((void *)(uintptr_t)m->record.ranges);
}

static int32_t run_protected(int32_t gtid, void *task)
{
	struct made *m = made_of(task);
	struct omp_call c = {task, m->routine, gtid, 0};

	if (task_family_enter(&m->record, true)) {
		task_execute(&m->record, call_routine, &c);
		task_family_leave(&m->record);
	}
	ranges_free(m);
	return c.result;
}

/* Only so that an error in it is not taken for one of a task below it on the stack. */
static int32_t run_plain(int32_t gtid, void *task)
{
	struct made *m = made_of(task);
	struct omp_call c = {task, m->routine, gtid, 0};

	if (task_family_enter(&m->record, false)) {
		task_execute(NULL, call_routine, &c);
		task_family_leave(&m->record);
	}
	return c.result;
}

/* ---- being made ----
 *
 * libomp counts a task when it gives the memory for it. Between that and the call that hands the
 * task over, the program fills in what is firstprivate. If an error ends that, the task has to be
 * handed over all the same, to do nothing: its parent, or a group, would wait for it for ever. */

static int32_t run_nothing(int32_t gtid, void *task)
{
	(void)gtid, (void)task;
	return 0;
}

static void unmade_add(struct ktask *t)
{
	struct task_frame *f = task_thread_self()->frame;

	if (!f || !f->record)
		return;
	made_of(t)->before = f->unmade;
	f->unmade = t;
}

static void unmade_forget(struct ktask *t)
{
	struct task_frame *f = task_thread_self()->frame;
	struct made *m = made_of(t);
	struct ktask *around = f ? f->unmade : NULL;

	if (!around || !m)
		return;
	if (around == t) {
		f->unmade = m->before;
		return;
	}
	while (around && made_of(around)->before != t)
		around = made_of(around)->before;
	if (around)
		made_of(around)->before = m->before;
}

static void unmade_finish(struct task_frame *f)
{
	for (struct ktask *t; (t = f->unmade);) {
		struct made *m = made_of(t);

		f->unmade = m->before;
		t->routine = run_nothing;
		real_task(m->loc, m->gtid, t);
	}
}

const char *task_omp_obstacle(const struct task_frame *f)
{
	for (struct ktask *t = f->unmade; t; t = made_of(t)->before)
		if (made_of(t)->flags & FLAG_DESTRUCTORS)
			return "in a task that copies objects for another one";
	return NULL;
}

/* ---- making ---- */

static void range_add(struct made *m, struct task_range *to, void *at, size_t length, bool written)
{
	if (length)
		to[m->record.count++] =
		    (struct task_range){.at = at, .length = length, .written = written};
}

/* The same range may be named twice. */
static void ranges_of_deps(struct made *m, struct task_range *to, const struct kdep *d, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		range_add(m, to, (void *)d[i].base, d[i].length,
			  (d[i].flags & (DEP_OUT | DEP_MUTEX)) != 0);
}

static bool declares(struct made *m, struct ktask *t, const struct kdep *d, int32_t n,
		     const struct kdep *more, int32_t nmore)
{
	struct task_range *to = m->range;

	if (n + nmore + 2 > RANGES)
		to = malloc((size_t)(n + nmore + 2) * sizeof(*to));
	if (!to)
		return false;
	m->record.count = 0;
	m->record.ranges = to;
	/* the routine changes its private copies in place */
	range_add(m, to, &t->part_id, m->task_bytes - offsetof(struct ktask, part_id), true);
	range_add(m, to, t->shareds, m->shared_bytes, true);
	for (uint32_t i = 0; i < m->record.count; i++)
		to[i].own = true;
	ranges_of_deps(m, to, d, n);
	ranges_of_deps(m, to, more, nmore);
	return true;
}

static enum task_reason reason_against(const struct made *m, const struct kdep *d, int32_t n)
{
	if (n == 0)
		return TASK_NO_DEPEND;
	if (!(m->flags & FLAG_TIED) || m->flags & FLAG_DETACHABLE)
		return TASK_UNTIED;
	if (m->flags & FLAG_DESTRUCTORS)
		return TASK_OBJECTS;
	for (int32_t i = 0; i < n; i++)
		if (d[i].flags & DEP_SET)
			return TASK_SET;
	return TASK_REASONS;
}

/* A task that runs at once writes before anybody can say that it doesn't count. */
static void note_child(void)
{
	struct task_frame *f = task_thread_self()->frame;

	if (f)
		f->spawned = true;
}

static const char *source_of(void *loc)
{
	return loc ? *(const char **)((char *)loc + 16) : NULL;
}

static void arm(void *loc, struct ktask *t, const struct kdep *d, int32_t n,
		const struct kdep *more, int32_t nmore)
{
	struct made *m = made_of(t);
	enum task_reason why;

	unmade_forget(t);
	if (!m) {
		note_child();
		return;
	}
	if (m->routine)
		return;
	task_family_join(&m->record);
	m->routine = t->routine;
	m->record.site = task_site_of((const void *)t->routine, source_of(loc));
	m->record.number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
	why = reason_against(m, d, n);
	if (why != TASK_REASONS)
		task_thread_self()->reason[why]++;
	else if (declares(m, t, d, n, more, nmore)) {
		if (task_wanted(&m->record)) {
			t->routine = run_protected;
			task_made(&m->record);
			return;
		}
		ranges_free(m);
	}
	t->routine = run_plain;
}

API struct ktask *__kmpc_omp_task_alloc(void *loc, int32_t gtid, int32_t flags, size_t task_bytes,
					size_t shared_bytes, entry_fn entry)
{
	struct ktask *t =
	    real_alloc(loc, gtid, flags, task_bytes, sizeof(struct made) + shared_bytes, entry);
	struct made *m = t->shareds;

	m->magic = MADE_MAGIC;
	m->flags = flags;
	m->routine = NULL;
	m->loc = loc;
	m->gtid = gtid;
	m->before = NULL;
	m->task_bytes = task_bytes;
	m->shared_bytes = shared_bytes;
	t->shareds = m + 1;
	unmade_add(t);
	return t;
}

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

API int32_t __kmpc_omp_task_with_deps(void *loc, int32_t gtid, struct ktask *t, int32_t n,
				      struct kdep *d, int32_t nmore, struct kdep *more)
{
	struct task_thread *self = task_thread_self();
	uint64_t run = self->count[TASK_RUN];
	int32_t result;

	arm(loc, t, d, n, more, nmore);
	result = real_with_deps(loc, gtid, t, n, d, nmore, more);
	if (self->count[TASK_RUN] != run) /* in a serial region, for one: it is over here */
		task_inputs_changed();
	return result;
}

/* What the program computed before a parallel region may have changed what tasks read. */
__attribute__((used)) static void *fork_begin(void)
{
	static void *real;

	if (!real)
		real = next("__kmpc_fork_call");
	task_inputs_changed();
	return real;
}

/* It takes any number of arguments, so they are left where they are. */
__attribute__((naked)) API void __kmpc_fork_call(void)
{
	__asm__("push %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n\t"
		"push %rax\n\tcall fork_begin\n\tmov %rax, %r11\n\tpop %rax\n\tpop %r9\n\t"
		"pop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n\tjmp *%r11");
}

API int32_t __kmpc_omp_task(void *loc, int32_t gtid, struct ktask *t)
{
	arm(loc, t, NULL, 0, NULL, 0);
	return real_task(loc, gtid, t);
}

/* ---- tasks that don't come that way ---- */

API void __kmpc_omp_task_begin_if0(void *loc, int32_t gtid, struct ktask *t)
{
	static void (*real)(void *, int32_t, struct ktask *);

	if (!real)
		*(void **)&real = next("__kmpc_omp_task_begin_if0");
	note_child();
	unmade_forget(t);
	task_inputs_unseen();
	task_thread_self()->reason[TASK_UNDEFERRED]++;
	real(loc, gtid, t);
}

static void note_loop(struct ktask *t)
{
	note_child();
	unmade_forget(t);
	task_inputs_unseen();
	task_thread_self()->reason[TASK_LOOP]++;
}

API void __kmpc_taskloop(void *loc, int gtid, struct ktask *t, int if_val, uint64_t *lb,
			 uint64_t *ub, int64_t st, int nogroup, int sched, uint64_t grainsize,
			 void *task_dup)
{
	static void (*real)(void *, int, struct ktask *, int, uint64_t *, uint64_t *, int64_t, int,
			    int, uint64_t, void *);

	if (!real)
		*(void **)&real = next("__kmpc_taskloop");
	note_loop(t);
	real(loc, gtid, t, if_val, lb, ub, st, nogroup, sched, grainsize, task_dup);
}

/* That of newer compilers. */
API void __kmpc_taskloop_5(void *loc, int gtid, struct ktask *t, int if_val, uint64_t *lb,
			   uint64_t *ub, int64_t st, int nogroup, int sched, uint64_t grainsize,
			   int modifier, void *task_dup)
{
	static void (*real)(void *, int, struct ktask *, int, uint64_t *, uint64_t *, int64_t, int,
			    int, uint64_t, int, void *);

	if (!real)
		*(void **)&real = next("__kmpc_taskloop_5");
	note_loop(t);
	real(loc, gtid, t, if_val, lb, ub, st, nogroup, sched, grainsize, modifier, task_dup);
}

/* ---- where a task waits inside the runtime, what it holds ---- */

static struct task_frame *wait_begin(void)
{
	struct task_frame *f = task_thread_self()->frame;

	if (f)
		f->waits = true;
	return f;
}

static void wait_end(struct task_frame *f)
{
	task_inputs_settled();
	if (f)
		f->waits = false;
}

static void lock_count(int change)
{
	struct task_frame *f = task_thread_self()->frame;

	if (f)
		f->locks += (unsigned)change;
}

#define WAITING(type, name, params, args)                                                          \
	API type name params                                                                       \
	{                                                                                          \
		static type(*real) params;                                                         \
		if (!real)                                                                         \
			*(void **)&real = next(#name);                                             \
		struct task_frame *f = wait_begin();                                               \
		type result = real args;                                                           \
		wait_end(f);                                                                       \
		return result;                                                                     \
	}
#define WAITING_VOID(name, params, args)                                                           \
	API void name params                                                                       \
	{                                                                                          \
		static void(*real) params;                                                         \
		if (!real)                                                                         \
			*(void **)&real = next(#name);                                             \
		struct task_frame *f = wait_begin();                                               \
		real args;                                                                         \
		wait_end(f);                                                                       \
	}
#define LOCKING(name, params, args, change)                                                        \
	API void name params                                                                       \
	{                                                                                          \
		static void(*real) params;                                                         \
		if (!real)                                                                         \
			*(void **)&real = next(#name);                                             \
		if (change > 0)                                                                    \
			lock_count(change);                                                        \
		real args;                                                                         \
		if (change < 0)                                                                    \
			lock_count(change);                                                        \
	}

/* A lock that may not be taken. */
#define TESTING(name)                                                                              \
	API int name(void *lock)                                                                   \
	{                                                                                          \
		static int (*real)(void *);                                                        \
		if (!real)                                                                         \
			*(void **)&real = next(#name);                                             \
		lock_count(1);                                                                     \
		int taken = real(lock);                                                            \
		if (!taken)                                                                        \
			lock_count(-1);                                                            \
		return taken;                                                                      \
	}

WAITING(int32_t, __kmpc_omp_taskwait, (void *loc, int32_t gtid), (loc, gtid))
WAITING(int32_t, __kmpc_omp_taskyield, (void *loc, int32_t gtid, int end), (loc, gtid, end))
WAITING_VOID(__kmpc_barrier, (void *loc, int32_t gtid), (loc, gtid))
/* (the program goes on although tasks run) */
WAITING_VOID(__kmpc_omp_wait_deps,
	     (void *loc, int32_t gtid, int32_t n, struct kdep *d, int32_t nmore, struct kdep *more),
	     (loc, gtid, n, d, nmore, more))

/* ---- taskgroups ---- */

API void __kmpc_taskgroup(void *loc, int gtid)
{
	static void (*real)(void *, int);
	struct task_frame *f = task_thread_self()->frame;

	if (!real)
		*(void **)&real = next("__kmpc_taskgroup");
	real(loc, gtid);
	if (!f)
		return;
	f->group_loc = loc;
	f->group_thread = gtid;
	f->groups++;
}

static void (*end_group)(void *loc, int gtid);

API void __kmpc_end_taskgroup(void *loc, int gtid)
{
	struct task_frame *f;

	if (!end_group)
		*(void **)&end_group = next("__kmpc_end_taskgroup");
	f = wait_begin();
	end_group(loc, gtid);
	if (f && f->groups > 0)
		f->groups--;
	wait_end(f);
}

void task_omp_leave(struct task_frame *f)
{
	unmade_finish(f);
	if (!end_group)
		*(void **)&end_group = next("__kmpc_end_taskgroup");
	for (; f->groups > 0; f->groups--)
		end_group(f->group_loc, f->group_thread);
}

/* ---- what it holds ---- */

LOCKING(__kmpc_critical, (void *loc, int32_t gtid, void *name), (loc, gtid, name), 1)
LOCKING(__kmpc_critical_with_hint, (void *loc, int32_t gtid, void *name, uint32_t hint),
	(loc, gtid, name, hint), 1)
LOCKING(__kmpc_end_critical, (void *loc, int32_t gtid, void *name), (loc, gtid, name), -1)
TESTING(omp_test_lock)
TESTING(omp_test_nest_lock)
LOCKING(omp_set_lock, (void *lock), (lock), 1)
LOCKING(omp_unset_lock, (void *lock), (lock), -1)
LOCKING(omp_set_nest_lock, (void *lock), (lock), 1)
LOCKING(omp_unset_nest_lock, (void *lock), (lock), -1)

API void *__kmpc_task_reduction_get_th_data(int gtid, void *group, void *data)
{
	static void *(*real)(int, void *, void *);
	struct task_frame *f = task_thread_self()->frame;

	if (!real)
		*(void **)&real = next("__kmpc_task_reduction_get_th_data");
	if (f)
		f->reduced = true;
	return real(gtid, group, data);
}

/* ---- at start ---- */

/* libgomp is told addresses without lengths: nothing to copy by. */
static void say_gcc(void)
{
	const char *r = getenv("HALE_RANK");

	if (r && atoi(r) == 0)
		log_warn(
		    "--tasks: this program's OpenMP is gcc's (libgomp), which is not told how long "
		    "the data of a task is: its tasks are not protected; build it with clang "
		    "-fopenmp, or give its tasks to hale_task_submit (<hale/task.h>)");
}

static int (*get_level)(void);

int task_omp_level(void)
{
	return get_level ? get_level() : 0;
}

void task_omp_init(void)
{
	*(void **)&get_level = next("omp_get_level");
	*(void **)&real_alloc = next("__kmpc_omp_task_alloc");
	*(void **)&real_task = next("__kmpc_omp_task");
	*(void **)&real_with_deps = next("__kmpc_omp_task_with_deps");
	if (!real_alloc && next("GOMP_task"))
		say_gcc();
}
