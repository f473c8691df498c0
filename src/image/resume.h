/* SPDX-License-Identifier: BSD-3-Clause */
/* The restored side of a restart: what the sink, in the old memory, hands to the image's own
 * library when the new memory is in place. It lies in scratch memory that no image contains. */
#ifndef HALE_IMAGE_RESUME_H
#define HALE_IMAGE_RESUME_H

#include "image/engine.h"

/* The library in the image has been compiled with the struct of its own time. So a change needs a
 * new IMAGE_VERSION, and formats before it are refused from then on (IMAGE_VERSION_OLDEST): else
 * that library reads pointers where there are none. The assertions below notice most changes. */
struct resume_plan {
	uint64_t scratch, scratch_len; /* unmapped when all threads are back */
	const struct process_record *process;
	const void *auxv;
	const struct signals_record *signals;
	struct timer_record *timers;
	size_t timer_count;
	const struct thread_record *threads;
	size_t thread_count;
	struct lock_record *locks;
	size_t lock_count;
	const struct sched_record *scheduling;
	size_t scheduling_count;
	struct sched_record began;  /* how the process that was started runs */
	const struct range *locked; /* memory that is locked: to its end, or as its pages come */
	const bool *locked_on_fault;
	size_t locked_count;
	const struct advice_record *advice;
	size_t advice_count;
	char *stacks;			/* one for each thread */
	int32_t *tids;			/* new ids, one for each thread */
	struct file_identity stream[3]; /* of the process that was started */
	struct file_identity source[ENGINE_SOURCES_MAX];
	unsigned source_count;
	char passed[IMAGE_PASS_MAX];
	size_t passed_len;
	bool has_passed;
	int live_fd; /* the stream that this process came through, or -1 */
};

_Static_assert(sizeof(struct resume_plan) == 3352 &&
		   offsetof(struct resume_plan, advice) == 1200 &&
		   offsetof(struct resume_plan, passed) == 2308,
	       "libraries in images of IMAGE_VERSION_OLDEST and later take this plan");

enum { RESUME_STACK = 32 << 10 };

/* Entered by the sink's last step, on a stack in scratch memory, with the main thread's fs. */
void image_resume(struct resume_plan *plan) __attribute__((noreturn));

/* Later, in the thread that had called image_capture, when the others sleep again: timers,
 * pending signals; the scratch memory goes. */
void image_resume_finish(void);

#endif
