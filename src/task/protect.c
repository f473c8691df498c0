// SPDX-License-Identifier: BSD-3-Clause
/* One execution of a task (seed 002, Algorithm 1; its messages: src/mpi/task/):
 *
 *   copy what it will write ─▶ run ──────────────▶ done, the copy stays for the next one
 *                               ▲         │ error
 *                               └─ restore ┘        at most `retries` times,  then a rollback
 */
#include "task/task.h"

#include <string.h>
#include "base/fmt.h"
#include "task/check.h"
#include "task/family.h"
#include "task/inputs.h"

struct task_settings task_settings;

/* ---- sites ---- */

enum { SITES = 1024 };
static struct task_site sites[SITES];

struct task_site *task_site_of(const void *routine, const char *source)
{
	unsigned at = (unsigned)(((uintptr_t)routine >> 4) * 2654435761u % SITES);

	for (unsigned n = 0; n < SITES; n++, at = (at + 1) % SITES) {
		const void *there = __atomic_load_n(&sites[at].routine, __ATOMIC_ACQUIRE);

		if (there == routine)
			return &sites[at];
		if (there)
			continue;
		const void *none = NULL;
		if (__atomic_compare_exchange_n(&sites[at].routine, &none, routine, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			sites[at].source = source;
			return &sites[at];
		}
		if (none == routine)
			return &sites[at];
	}
	return &sites[0]; /* only its name and its mean time are wrong then */
}

/* Of ";file;function;line;column;;". */
void task_site_place(const struct task_site *s, char *to, size_t size)
{
	const char *part[4];
	int length[4], n = 0;

	for (const char *at = s->source; at && n < 4 && (at = strchr(at, ';')); n++) {
		part[n] = ++at;
		length[n] = (int)strcspn(at, ";");
	}
	if (n >= 3 && strncmp(part[0], "unknown", 7) != 0)
		fmt_print(to, size, "%.*s:%.*s (%.*s)", length[0], part[0], length[2], part[2],
			  length[1], part[1]);
	else
		fmt_print(to, size, "%p (build with -g to see its line)", s->routine);
}

/* ---- which tasks (App_FIT) ---- */

/* Exposure in byte-seconds of all tasks so far, and of those that were left out. */
static _Atomic uint64_t exposed, left_out;

static uint64_t exposure_of(const struct task_record *r)
{
	uint64_t runs = atomic_load_explicit(&r->site->runs, memory_order_relaxed), bytes = 0, us;

	for (uint32_t i = 0; i < r->count; i++)
		bytes += r->ranges[i].length;
	us = runs ? atomic_load_explicit(&r->site->nanoseconds, memory_order_relaxed) / runs / 1000
		  : 0;
	return (bytes + 64) / 64 * (us + 1);
}

/* Leaves a task out as long as all that were left out stay below their share of the failures. */
static bool chosen(const struct task_record *r)
{
	uint64_t e = exposure_of(r);
	uint64_t all = atomic_fetch_add_explicit(&exposed, e, memory_order_relaxed) + e;
	uint64_t out = atomic_load_explicit(&left_out, memory_order_relaxed) + e;

	if ((double)out > task_settings.residual * (double)all)
		return true;
	atomic_fetch_add_explicit(&left_out, e, memory_order_relaxed);
	return false;
}

bool task_wanted(const struct task_record *r)
{
	struct task_thread *t = task_thread_self();
	bool wanted = true;

	if (UNLIKELY(atomic_load_explicit(&r->site->bad, memory_order_relaxed))) {
		t->reason[TASK_RANGES]++;
		return false;
	}
	wanted = task_settings.protect == TASK_PROTECT_ALL ||
		 (task_settings.protect == TASK_PROTECT_AUTO && chosen(r));

	if (!wanted)
		t->reason[TASK_CHOSEN]++;
	return wanted;
}

/* ---- reading what may not be there ---- */

bool task_try(const struct task_record *r, void (*work)(const struct task_record *r, uint64_t *arg),
	      uint64_t *arg)
{
	struct task_thread *t = task_thread_self();
	struct task_frame f = {.outer = t->frame,
			       .thread = t,
			       .record = r,
			       .busy = true,
			       .taking = true,
			       .probes = true};
	volatile bool fine = false;

	t->frame = &f;
	if (_setjmp(f.env) == 0) {
		work(r, arg);
		fine = true;
	} else {
		task_inputs_abandon();
	}
	t->frame = f.outer;
	return fine;
}

void task_made(const struct task_record *r)
{
	struct task_thread *t = task_thread_self();
	uint64_t start;

	if (LIKELY(!task_settings.keep_inputs))
		return;
	start = clock_ns();
	task_try(r, task_inputs_made, &t->copied);
	t->ns[TASK_S_CHECKPOINT] += clock_ns() - start;
}

/* ---- one execution ---- */

static void ranges_are_bad(struct task_thread *t, struct task_site *s, const char *how)
{
	char place[200];

	t->reason[TASK_RANGES]++;
	if (atomic_exchange(&s->bad, true))
		return;
	task_site_place(s, place, sizeof(place));
	log_warn(
	    "--tasks: the tasks at %s declare %s, so they are not protected; depend(…) must name "
	    "what they read and write",
	    place, how);
}

/* Copies what the task will write. False: it can't be protected. */
static bool frame_copy(struct task_thread *t, struct task_frame *f, const struct task_record *r)
{
	volatile bool taken = false;

	f->taking = true;
	if (_setjmp(f->env) == 0) {
		if (UNLIKELY(task_settings.keep_inputs))
			task_inputs_begin(r, &t->copied);
		taken = task_keep_take(f->keep, r, &t->copied);
		if (taken && UNLIKELY(task_settings.keep_inputs))
			task_inputs_taken(r);
		if (!taken)
			ranges_are_bad(t, r->site, "more than there is memory for copies of");
	} else {
		task_inputs_abandon();
		ranges_are_bad(t, r->site, "memory that is not there");
	}
	f->taking = false;
	return taken;
}

static void frame_begin(struct task_thread *t, struct task_frame *f, const struct task_record *r)
{
	uint64_t start = clock_ns();

	f->outer = t->frame;
	f->thread = t;
	f->record = r;
	f->strikes = f->mended = f->locks = f->held = f->due = 0;
	f->family = NULL;
	f->groups = 0;
	f->unmade = NULL;
	f->level = -1;
	f->spawned = f->reduced = f->waits = f->checked = f->probes = f->reads_window = false;
	f->busy = true;
	f->keep = NULL;
	t->frame = f;
	t->count[TASK_RUN]++;
	task_count_running(true);
	if (r && UNLIKELY(t->depth >= TASK_DEPTH)) {
		t->reason[TASK_DEEP]++;
		task_family_uncopied(r);
		f->record = r = NULL;
	}
	if (r) {
		f->keep = &t->keeps[t->depth++];
		if (frame_copy(t, f, r)) {
			t->count[TASK_PROTECTED]++;
		} else {
			task_family_uncopied(r);
			f->record = NULL;
		}
	}
	if (UNLIKELY(task_settings.keep_inputs) && !f->record)
		task_inputs_stranger(1);
	f->messages = task_mpi.open(f->record != NULL);
	f->began = clock_ns();
	t->ns[TASK_S_CHECKPOINT] += r ? f->began - start : 0;
	if (f->record)
		task_due_draw(f);
	f->busy = false;
}

/* After an error: everything as it was before the first attempt. */
static void frame_mend(struct task_frame *f)
{
	struct task_thread *t = f->thread;
	uint64_t now = clock_ns();

	f->busy = true;
	f->mended = f->strikes;
	t->ns[TASK_S_LOST] += now - f->began;
	t->ns[TASK_S_TASKS] += now - f->began;
	t->ns[TASK_S_PROTECTED] += now - f->began;
	if (UNLIKELY(f->groups > 0 || f->unmade))
		task_omp_leave(f);
	if (UNLIKELY(task_settings.keep_inputs)) { /* it may have been copying what it wrote */
		task_inputs_abandon();
		task_inputs_taken(f->record);
	}
	task_keep_restore(f->keep, f->record);
	task_mpi.again();
	t->count[TASK_REEXECUTED]++;
	f->began = clock_ns();
	t->ns[TASK_S_RESTORE] += f->began - now;
	f->busy = false;
}

static void frame_end(struct task_frame *f)
{
	struct task_thread *t = f->thread;
	uint64_t now = clock_ns(), took = now - f->began;

	/* a page that is met as lost now makes the task run again, and its messages must still be
	 * there */
	if (UNLIKELY(task_settings.keep_inputs)) {
		if (f->record) {
			task_inputs_end(f->record, &t->copied);
		} else {
			task_inputs_changed();
			task_inputs_stranger(-1);
		}
	}
	task_mpi.close(f->messages);
	t->ns[TASK_S_TASKS] += took;
	if (f->record) {
		t->ns[TASK_S_PROTECTED] += took;
		atomic_fetch_add_explicit(&f->record->site->runs, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&f->record->site->nanoseconds, took,
					  memory_order_relaxed);
	}
	if (UNLIKELY(f->family != NULL))
		task_family_end(f);
	if (f->keep)
		t->depth--;
	t->frame = f->outer;
	task_count_running(false);
	task_job_meter(t, now);
}

void task_execute(const struct task_record *record, task_body body, void *arg)
{
	struct task_frame f;

	frame_begin(task_thread_self(), &f, record);
	if (UNLIKELY(task_settings.check_writes))
		task_check_begin(&f);
	if (f.record) {
		/* an error comes back here, out of the signal's handler */
		_setjmp(f.env);
		if (f.strikes != f.mended)
			frame_mend(&f);
		task_due_begin(&f);
	}
	body(arg);
	if (f.record)
		task_due_end(&f);
	if (UNLIKELY(f.strikes) && task_window_changed(&f))
		task_fall_back(
		    "in a task that reads its own window, into which others have written");
	if (UNLIKELY(task_settings.check_writes))
		task_check_end(&f);
	frame_end(&f);
}
