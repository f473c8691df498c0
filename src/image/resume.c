// SPDX-License-Identifier: BSD-3-Clause
#include "image/resume.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <asm/prctl.h>

#include "image/capture.h"
#include "image/ipc/ipc.h"
#include "image/mutexes.h"

/* Kept in the image's own memory while the plan is in use. */
static struct resume_plan *current;

static int32_t new_tid(int32_t old)
{
	const struct resume_plan *plan = current;
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

/* With the id that it had, where this process has its own again. -1 or less: it can't be. */
static long thread_create_as(struct resume_plan *plan, size_t i, unsigned long flags)
{
	const struct thread_record *t = &plan->threads[i];
	int32_t wanted = t->tid;
	struct clone_args args = {.flags = flags,
				  .child_tid = t->tid_address,
				  .parent_tid = t->tid_address,
				  .stack = (uint64_t)(plan->stacks + i * RESUME_STACK),
				  .stack_size = RESUME_STACK,
				  .tls = t->fs,
				  .set_tid = (uint64_t)&wanted,
				  .set_tid_size = 1};
	return clone_run_as(&args, sizeof(args), thread_start, (void *)(uintptr_t)t);
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
	long tid = -1;
	if (plan->process->pid == sys(SYS_getpid))
		tid = thread_create_as(plan, i, flags);
	if (tid < 0)
		tid = clone_run(flags, plan->stacks + (i + 1) * RESUME_STACK, word, word, t->fs,
				thread_start, (void *)(uintptr_t)t);
	if (tid < 0) {
		log_warn("the restart failed: thread %zu of %zu can't be made (error %ld); raise "
			 "`ulimit -u`",
			 i + 1, plan->thread_count, -tid);
		sys(SYS_exit_group, 70);
	}
	plan->tids[i] = (int32_t)tid;
}

static void engine_adopt(const struct resume_plan *plan)
{
	memcpy(engine.stream, plan->stream, sizeof(engine.stream));
	engine.began = plan->began;
	engine.oom_began = process_oom_read();
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
	mutexes_correct(plan->locks, plan->lock_count, new_tid);
	long rc = ipc_restores_late(plan->process->pid) ? 0 : ipc_undo_restore(plan->process->pid);
	if (rc)
		log_warn("after the restart semaphores are not given back at the program's end "
			 "(SEM_UNDO, error %ld)",
			 -rc);
	if (leader->tid_address) {
		*(volatile int32_t *)leader->tid_address = plan->tids[leads];
		sys(SYS_set_tid_address, leader->tid_address);
	}
	thread_revive(leader, plan->process->rseq_offset, plan->process->rseq_len);
	context_jump(&leader->context);
}

static void memory_advise(const struct resume_plan *plan)
{
	static const struct {
		uint32_t flag;
		int advice;
	} known[] = {
	    {MAP_FLAG_SEQUENTIAL, MADV_SEQUENTIAL}, {MAP_FLAG_RANDOM, MADV_RANDOM},
	    {MAP_FLAG_DONTFORK, MADV_DONTFORK},	    {MAP_FLAG_DONTDUMP, MADV_DONTDUMP},
	    {MAP_FLAG_MERGEABLE, MADV_MERGEABLE},   {MAP_FLAG_HUGEPAGE, MADV_HUGEPAGE},
	    {MAP_FLAG_NOHUGEPAGE, MADV_NOHUGEPAGE}, {MAP_FLAG_WIPEONFORK, MADV_WIPEONFORK}};
	for (size_t i = 0; i < plan->advice_count; i++)
		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			if (plan->advice[i].flags & known[k].flag)
				sys(SYS_madvise, plan->advice[i].start,
				    plan->advice[i].end - plan->advice[i].start, known[k].advice);
}

/* Memory that isn't swapped out: an image has the pages that were there. */
static void memory_lock(const struct resume_plan *plan)
{
	long rc = 0;
	for (size_t i = 0; i < plan->locked_count && !rc; i++)
		rc = sys(SYS_mlock2, plan->locked[i].start,
			 plan->locked[i].end - plan->locked[i].start,
			 plan->locked_on_fault[i] ? MLOCK_ONFAULT : 0);
	if (!rc && plan->process->lock_future)
		rc = sys(SYS_mlockall, plan->process->lock_future);
	if (rc)
		log_warn("after the restart memory that the program had locked is not locked any "
			 "more (error %ld): raise `ulimit -l`",
			 -rc);
}

void image_resume_finish(void)
{
	struct resume_plan *plan = current;
	image_restart_revived();
	for (size_t i = 0; i < plan->timer_count; i++)
		if (plan->timers[i].notify & SIGEV_THREAD_ID)
			plan->timers[i].tid = new_tid(plan->timers[i].tid);
	signals_clocks_correct(plan->timers, plan->timer_count, new_tid);
	signals_restore_timers(plan->signals, plan->timers, plan->timer_count);
	scheduling_restore(plan->scheduling, plan->scheduling_count, new_tid);
	memory_lock(plan);
	memory_advise(plan);
	process_register_barriers(plan->process->barriers);
	if (plan->process->oom_adj != plan->process->oom_began)
		process_oom_write(plan->process->oom_adj);
	limits_restore(plan->process->limits);
	current = NULL;
	sys(SYS_munmap, plan->scratch, plan->scratch_len);
}
