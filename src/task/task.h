/* SPDX-License-Identifier: BSD-3-Clause */
/* task/: libhale_task.so, preloaded by `hale run --tasks`: a task that a memory error strikes is
 * executed again from copies of its data, and nothing else of the job notices (seed 002, 6.1).
 *
 *   omp.c      stands before libomp: what a task declares becomes a task_record
 *   submit.c   hale_task_submit(): the same for tasks of Hale's own runtime (run.h)
 *   protect.c  one execution: copy, run, and after an error restore and run again
 *   fault.c    ranges that are no memory; pages that tests take away
 *   check.c    check:writes, which looks for writes that are not declared
 *   inputs.c   inputs:keep, copies of what is only read
 *   keep.c     the copies; memory that threads use again and again
 *   job.c      what the job asks for and is told while it runs
 *   family.c   tasks that tasks make
 *   lock.c     locks of POSIX and C11 threads that a task holds
 *   window.c   memory that other processes may write to
 *   mpi.c      what MPI keeps of a task's messages (src/mpi/task/), if the program has MPI
 *   due.c      errors as the kernel reports them (SIGBUS), as checkers raise them, as tests pretend
 *   count.c    what it did and cost, for the job's report
 *   settings.c, account.c: agreed with hale
 *
 * May call: base/, and libhale.so's agreements, if it is there. No libhale.so, no libomp, no MPI is
 * needed. Threads only meet in the list of threads, in sites and in the deques of run.h.
 */
#ifndef HALE_TASK_TASK_H
#define HALE_TASK_TASK_H

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/base.h"
#include "node/meter.h"
#include "node/task_account.h"
#include "node/task_settings.h"

/* Data that a task declares. Written: it is copied before the task runs, unless what was there
 * before does not matter (discard). */
struct task_range {
	char *at;
	size_t length;
	bool written, discard;
	bool own; /* nobody else has it: what is firstprivate */
};

/* A place in the program that makes tasks. Never freed. */
struct task_site {
	const void *routine;
	const char *source; /* libomp's ";file;function;line;column;;", or NULL */
	_Atomic uint64_t runs, nanoseconds;
	_Atomic bool bad; /* its tasks declare memory that is not there */
	_Atomic uintptr_t said_page;
	_Atomic uint32_t checked, said; /* check:writes: executions watched; sentences */
};

/* One task, as it was declared. */
struct task_record {
	struct task_site *site;
	uint64_t number; /* in the order of making, from 0: what is drawn depends on it */
	struct task_family *family; /* of the task that has made it (family.h); NULL: none */
	uint32_t attempt;	    /* of that task */
	uint32_t count;
	const struct task_range *ranges;
};

typedef void (*task_body)(void *arg);

/* The copies of one execution. */
struct task_keep {
	char *at;
	size_t size;
};

enum { TASK_LOCKS = 16 }; /* of threads; an error in a task that has held more rolls back */

/* One execution that is under way; on the stack of its thread. */
struct task_frame {
	jmp_buf env; /* where the next attempt begins */
	struct task_frame *outer;
	struct task_thread *thread;
	const struct task_record *record; /* NULL: no copies were made */
	struct task_keep *keep;
	volatile unsigned strikes, mended; /* errors so far; those that were restored from */
	volatile unsigned locks;	   /* of OpenMP, that the task holds */
	volatile unsigned held;		   /* of threads, that the task holds: in lock[] */
	const volatile void *volatile lock[TASK_LOCKS];
	volatile bool spawned;		     /* it has made tasks that run at once */
	struct task_family *volatile family; /* the other tasks that it has made; NULL: none */
	volatile unsigned groups;	     /* taskgroups that it is in */
	void *volatile unmade;		     /* omp.c: a task that it has begun to make */
	void *group_loc;		     /* as the runtime wants it for their ends */
	int group_thread;
	int level;	       /* parallel regions around it; -1: not of OpenMP */
	volatile bool reduced; /* it has added to a reduction */
	volatile bool busy;    /* copies are being made or taken */
	volatile bool taking;  /* the former: from memory that may not be there */
	bool probes;	       /* of task_try(): an error ends the attempt and nothing else */
	bool checked;	       /* holds the lock of check.c */
	volatile bool waits;   /* inside the runtime: other tasks may run on its stack */
	bool reads_window;     /* window.c: and what it looked like at the first MPI call */
	uint64_t window_mark;
	unsigned due;	/* attempts that are still to be struck, for a test */
	uint64_t began; /* clock of this attempt */
	void *messages; /* MPI's, of the execution below on the stack */
};

enum {
	TASK_DEPTH = 128
}; /* executions on one stack, each on top of a waiting one; more: no copies */

struct task_thread {
	struct task_thread *next;
	struct task_frame *volatile frame; /* the innermost */
	struct task_keep keeps[TASK_DEPTH];
	unsigned depth;
	uint64_t count[TASK_COUNTS], reason[TASK_REASONS];
	uint64_t copied, ns[TASK_SHARES];
	uint64_t metered[METER_TASKS], metered_at; /* of it, what the meter has */
	timer_t timer;
	bool has_timer;
	volatile bool timer_set;
	volatile bool striking; /* an error of its task is being looked at */
};

extern struct task_settings task_settings;
/* Errors that a test wants now; never freed, as others may still read it. */
extern const struct task_due *_Atomic task_due;

/* ---- protect.c ---- */

/* Runs body(arg) as record says. NULL: without copies, and an error inside rolls the job back. */
void task_execute(const struct task_record *record, task_body body, void *arg);
/* Calls work(r, arg), which may read memory that does not exist or was lost. Such a read ends work,
 * after lost pages were put back where there are copies. False: work was ended so. */
bool task_try(const struct task_record *r, void (*work)(const struct task_record *r, uint64_t *arg),
	      uint64_t *arg);
/* With inputs:keep, copies what the task declares when it is made, before it can begin. */
void task_made(const struct task_record *r);
/* True: the task is to be protected. False: it is not, and the reason is counted (TASK_RANGES,
 * TASK_CHOSEN). */
bool task_wanted(const struct task_record *r);
/* The site of a routine; made at its first task. */
struct task_site *task_site_of(const void *routine, const char *source);
/* "file:line (function)" of a site's tasks, or an address without debug information.
 * Async-signal-safe. */
void task_site_place(const struct task_site *s, char *to, size_t size);

/* ---- keep.c ---- */

/* Copies what will be written. False: no memory. */
bool task_keep_take(struct task_keep *k, const struct task_record *r, uint64_t *copied);
void task_keep_restore(const struct task_keep *k, const struct task_record *r);
/* Where the copy of range i begins, NULL: there is none. */
const char *task_keep_of(const struct task_keep *k, const struct task_record *r, uint32_t i);
size_t task_keep_bytes(void); /* memory of all threads */
/* Does [from, to) contain memory of copies, or a struct task_thread? */
bool task_keep_is_ours(uintptr_t from, uintptr_t to);

/* ---- due.c ---- */

void task_due_init(void);
/* From now on errors are drawn as d says. */
void task_due_set(const struct task_due *d);
/* Before an attempt, and behind the last instruction of one: does a test want it struck? */
void task_due_draw(struct task_frame *f);
void task_due_begin(struct task_frame *f);
void task_due_end(struct task_frame *f);
/* The kernel reports an error at that address to this thread. Returns if it has been mended. */
void task_due_strike(void *address, const void *context);
/* Is that an address in the runtimes of OpenMP and MPI, in libc, or in Hale's libraries? */
bool task_due_is_runtime(uintptr_t pc);
/* Nothing here mends this error: a sentence, and the process ends by SIGBUS. */
void task_fall_back(const char *why) __attribute__((noreturn));

/* ---- mpi.c ---- */

/* Hale's MPI, if it is in the process; else functions that do nothing. */
struct task_mpi {
	void *(*open)(int protected);
	void (*again)(void);
	void (*close)(void *outer);
	int (*inside)(void);
	const char *(*lost)(void);
	void (*totals)(uint64_t to[5]);
	int (*landing)(const void *at, size_t bytes);
	int (*window)(const void *at, size_t bytes);
};
extern struct task_mpi task_mpi;
void task_mpi_init(void);

/* ---- window.c ---- */

/* The task of f makes its first MPI call. */
void task_window_note(struct task_frame *f);
/* True: others have written since into what f reads of a window of this process. */
bool task_window_changed(const struct task_frame *f);

/* ---- job.c ---- */

/* Finds the agreements of libhale.so (src/ckpt/tasks.c), if that is in the process. */
void task_job_init(void);
/* Errors that were asked for since the last look become those of task_due. */
void task_job_look(void);
/* Now and then: adds what this thread has counted meanwhile to the meter of the process. */
void task_job_meter(struct task_thread *t, uint64_t now);

/* ---- count.c ---- */

struct task_thread *task_thread_self(void);
/* The innermost execution of this thread, NULL: none; it may never have had one. */
struct task_frame *task_thread_frame(void);
extern struct task_thread *_Atomic task_threads;
void task_count_init(void);
uint64_t task_count_serial_ns(void);  /* in which no task ran */
uint64_t task_count_log_ns(void);     /* that threads took to keep messages */
void task_count_running(bool begins); /* a task begins or has ended on some thread */
/* Leaves in the folder for reports that this process fell back, because of task `number` or
 * (UINT64_MAX) of something else. Async-signal-safe. */
void task_count_fell_back(unsigned rank, uint64_t number);
/* True: an error in that task has rolled the job back. A pretended error does not strike such a
 * task again. */
bool task_count_has_fallen(unsigned rank, uint64_t number);

/* ---- omp.c ---- */

void task_omp_init(void);
/* Parallel regions around this code; 0 without OpenMP. Async-signal-safe. */
int task_omp_level(void);
/* f begins again: the runtime gets what it has been promised, and f leaves its taskgroups. */
void task_omp_leave(struct task_frame *f);
/* Why that can't be; NULL: it can. Async-signal-safe. */
const char *task_omp_obstacle(const struct task_frame *f);

#endif
