// SPDX-License-Identifier: BSD-3-Clause
#include "image/resume.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <asm/prctl.h>

#include "image/capture.h"

/* Kept in the image's own memory while the plan is in use. */
static struct resume_plan *current;

static int32_t new_tid(const struct resume_plan *plan, int32_t old)
{
	for (size_t i = 0; i < plan->thread_count; i++)
		if (plan->threads[i].tid == old)
			return plan->tids[i];
	return 0;
}

static void thread_start(void *arg)
{
	const struct thread_record *t = arg;
	thread_revive(t, current->process->rseq_offset, current->process->rseq_len);
	context_jump(&t->context);
}

/* The thread's id stands in its thread block, where the kernel clears it at the thread's end. */
static void thread_create(struct resume_plan *plan, size_t i)
{
	const struct thread_record *t = &plan->threads[i];
	volatile int32_t *word = (volatile int32_t *)t->tid_address;
	unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			      CLONE_SYSVSEM | CLONE_SETTLS;
	if (word)
		flags |= CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
	long tid = clone_run(flags, plan->stacks + (i + 1) * RESUME_STACK, word, word, t->fs,
			     thread_start, (void *)(uintptr_t)t);
	if (tid < 0) {
		log_warn("the restart failed: thread %zu of %zu can't be made (error %ld); raise "
			 "`ulimit -u`",
			 i + 1, plan->thread_count, -tid);
		sys(SYS_exit_group, 70);
	}
	plan->tids[i] = (int32_t)tid;
}

/* Mutexes that were held at the checkpoint still name the old id of their owner. */
static void locks_correct(const struct resume_plan *plan)
{
	enum { OWNER = 8 };
	for (size_t i = 0; i < plan->lock_count; i++) {
		volatile int32_t *owner = (volatile int32_t *)(plan->locks[i].address + OWNER);
		int32_t tid = new_tid(plan, plan->locks[i].tid);
		if (tid && *owner == plan->locks[i].tid)
			*owner = tid;
	}
}

static void engine_adopt(const struct resume_plan *plan)
{
	memcpy(engine.stream, plan->stream, sizeof(engine.stream));
	memcpy(engine.source, plan->source, sizeof(engine.source));
	engine.source_count = plan->source_count;
	engine.has_passed = plan->has_passed;
	engine.passed_len = plan->passed_len;
	memcpy(engine.passed, plan->passed, sizeof(engine.passed));
	capture_forget();
	live_adopt(plan->live_fd);
	track_reset();
}

void image_resume(struct resume_plan *plan)
{
	size_t leads = 0;
	current = plan;
	engine_adopt(plan);
	if (!process_set_landmarks(plan->process, plan->auxv))
		log_warn("after the restart the heap can't grow at its old place; malloc will use "
			 "other memory");
	signals_restore_actions(plan->signals);
	threads_expect_revival();
	for (size_t i = 0; i < plan->thread_count; i++)
		if (plan->threads[i].leader)
			leads = i;
	const struct thread_record *leader = &plan->threads[leads];
	plan->tids[leads] = (int32_t)sys(SYS_getpid);
	for (size_t i = 0; i < plan->thread_count; i++)
		if (i != leads)
			thread_create(plan, i);
	locks_correct(plan);
	if (leader->tid_address) {
		*(volatile int32_t *)leader->tid_address = plan->tids[leads];
		sys(SYS_set_tid_address, leader->tid_address);
	}
	thread_revive(leader, plan->process->rseq_offset, plan->process->rseq_len);
	context_jump(&leader->context);
}

void image_resume_finish(void)
{
	struct resume_plan *plan = current;
	for (size_t i = 0; i < plan->timer_count; i++)
		if (plan->timers[i].notify & SIGEV_THREAD_ID)
			plan->timers[i].tid = new_tid(plan, plan->timers[i].tid);
	signals_restore_timers(plan->signals, plan->timers, plan->timer_count);
	current = NULL;
	sys(SYS_munmap, plan->scratch, plan->scratch_len);
}
