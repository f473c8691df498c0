/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults on request: --inject and `hale inject`. Each happens once, however often the job is
 * rolled back. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "head/head.h"
#include "node/task_settings.h"

/* splitmix64: the same seed gives the same faults. */
static uint64_t draw(struct head *h)
{
	uint64_t z = (h->faults.random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static void kill_now(struct armed_fault *a)
{
	struct head *h = a->head;
	uint32_t rank = a->process;

	a->done = true;
	if (!node_set_present(&h->node_set, rank)) {
		log_info("the fault for rank %ld has nobody to meet: it is not running",
			 a->fault.rank);
		return;
	}
	log_info("injected: signal %d to rank %ld", a->fault.signal, a->fault.rank);
	node_set_signal_program(&h->node_set, rank, a->fault.signal);
}

static const char *flip_word(fault_flip_t flip)
{
	return flip == FLIP_RESULT ? "flip:result" : "flip:message";
}

/* All processes there: those that come later have another segment, and are told again. */
static void flip_node(struct armed_fault *a)
{
	struct head *h = a->head;

	a->fired = true;
	for (uint32_t p = 0; p < h->nranks; p++)
		if (!replicas_is_lost(h, p) && node_set_present(&h->node_set, p) &&
		    strcmp(node_set_node_of(&h->node_set, p)->name, a->fault.node) == 0)
			node_set_inject(&h->node_set, p, flip_word(a->fault.flip), a->fault.count,
					(int)a->fault.every);
}

/* The agent reads it (agent_inject): no MPI function is called so. */
static void flip_now(struct armed_fault *a)
{
	struct head *h = a->head;

	a->done = true;
	if (!node_set_present(&h->node_set, a->process)) {
		log_info("the flips for rank %ld have nobody to meet: it is not running",
			 a->fault.rank);
		return;
	}
	log_info("injected: %llu flips in rank %ld", (unsigned long long)a->fault.count,
		 a->fault.rank);
	if (a->fault.flip != FLIP_MEMORY) {
		node_set_inject(&h->node_set, a->process, flip_word(a->fault.flip), a->fault.count,
				(int)a->fault.every);
		return;
	}
	for (uint64_t i = 0; i < a->fault.count; i++)
		node_set_inject(&h->node_set, a->process, "flip:memory", draw(h), 0);
}

static void fire(void *arg)
{
	struct armed_fault *a = arg;

	if (a->fault.node[0]) {
		log_info("injected: %llu flips in each process of node %s",
			 (unsigned long long)a->fault.count, a->fault.node);
		flip_node(a);
	} else if (a->fault.flip != FLIP_NONE)
		flip_now(a);
	else
		kill_now(a);
}

static void arm_mailbox(struct head *h, const struct armed_fault *a)
{
	node_set_inject(&h->node_set, a->process, a->fault.call, a->fault.count, a->fault.signal);
}

static bool mailbox_taken(const struct head *h, uint32_t rank)
{
	for (size_t i = 0; i < h->faults.count; i++)
		if (!h->faults.armed[i].done && h->faults.armed[i].fault.call[0] &&
		    h->faults.armed[i].process == rank)
			return true;
	return false;
}

static bool node_is_known(const struct head *h, const char *name)
{
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (strcmp(h->node_set.nodes[k].name, name) == 0)
			return true;
	return false;
}

hale_status_t inject_add(struct head *h, const struct fault *f, struct error *err)
{
	struct armed_fault *a = &h->faults.armed[h->faults.count];

	if (h->faults.count == OPTIONS_FAULTS_MAX)
		return error_set(err, HALE_ERR_ARGUMENT, "no more than %d faults a job",
				 OPTIONS_FAULTS_MAX);
	*a = (struct armed_fault){.fault = *f, .head = h};
	if (f->node[0] && !node_is_known(h, f->node))
		return error_set(err, HALE_ERR_ARGUMENT, "the job has no node %s", f->node);
	if (f->rank < 0)
		a->fault.rank = (long)(draw(h) % h->view.nranks);
	if (a->fault.rank >= (long)h->view.nranks)
		return error_set(err, HALE_ERR_ARGUMENT, "there is no rank %ld among %u", f->rank,
				 h->view.nranks);
	if ((f->flip == FLIP_MESSAGE || f->flip == FLIP_RESULT) && h->degree == 1)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "where=message and where=result are for jobs with --replicas or "
		    "--audit, whose messages Hale has in its hands; write where=memory");
	if (f->flip == FLIP_MEMORY && f->count > FLIPS_MAX)
		return error_set(err, HALE_ERR_ARGUMENT, "no more than %d bits of memory at once",
				 FLIPS_MAX);
	if (f->slot >= (long)h->degree)
		return error_set(err, HALE_ERR_ARGUMENT, "rank %ld has no slot %ld", a->fault.rank,
				 f->slot);
	a->process = living_process(&h->view, (uint32_t)a->fault.rank, (uint32_t)f->slot);
	if (f->call[0] && mailbox_taken(h, a->process))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "rank %ld has a fault at a call already; one at a time",
				 a->fault.rank);
	h->faults.count++;
	if (f->after >= 0) {
		double share = (double)(draw(h) >> 11) * 0x1p-53;
		loop_timer_set(&h->loop, &a->timer, f->after + share * (f->after_max - f->after),
			       fire, a);
	}
	if (f->call[0] && h->node_set.laid_out)
		arm_mailbox(h, a);
	return HALE_OK;
}

hale_status_t inject_task_due(struct head *h, const char *due, struct error *err)
{
	struct task_due checked;
	char why[160];

	if (!h->o->tasks)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the job runs without --tasks, so an error would end a rank; "
				 "start it with hale run --tasks");
	if (strlen(due) >= sizeof(h->faults.task_due) || !task_due_read(&checked, due, why))
		return error_set(err, HALE_ERR_ARGUMENT, "'due:%.100s' is no fault in tasks", due);
	snprintf(h->faults.task_due, sizeof(h->faults.task_due), "%s", due);
	h->faults.task_due_number++;
	head_save(h); /* another head says it again after a rollback */
	log_info("injected from now on: memory errors in tasks, due:%s", due);
	if (h->node_set.laid_out)
		node_set_task_due(&h->node_set, h->faults.task_due_number, h->faults.task_due);
	return HALE_OK;
}

void inject_arm_mailboxes(struct head *h)
{
	if (h->faults.task_due_number > 0)
		node_set_task_due(&h->node_set, h->faults.task_due_number, h->faults.task_due);
	for (size_t i = 0; i < h->faults.count; i++) {
		if (!h->faults.armed[i].done && h->faults.armed[i].fault.call[0])
			arm_mailbox(h, &h->faults.armed[i]);
		if (h->faults.armed[i].fired)
			flip_node(&h->faults.armed[i]);
	}
}

void inject_at_checkpoint(struct head *h, uint32_t id)
{
	for (size_t i = 0; i < h->faults.count; i++)
		if (!h->faults.armed[i].done && h->faults.armed[i].fault.at_checkpoint == id)
			kill_now(&h->faults.armed[i]);
}

void inject_at_restart(struct head *h, uint32_t restart)
{
	for (size_t i = 0; i < h->faults.count; i++)
		if (!h->faults.armed[i].done && restart > 0 &&
		    h->faults.armed[i].fault.at_restart == restart && h->state != JOB_ENDING)
			kill_now(&h->faults.armed[i]);
}

/* A fault at a call shows only by what it does. */
void inject_rank_killed(struct head *h, uint32_t rank)
{
	for (size_t i = 0; i < h->faults.count; i++) {
		struct armed_fault *a = &h->faults.armed[i];

		if (a->fault.call[0] && a->process == rank &&
		    h->ranks[rank].exit_status == 128 + a->fault.signal)
			a->done = true;
	}
}

void inject_fini(struct head *h)
{
	for (size_t i = 0; i < h->faults.count; i++)
		loop_timer_clear(&h->loop, &h->faults.armed[i].timer);
}
