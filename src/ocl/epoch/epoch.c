/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the program waits: which epochs close, what is checked, and when a checkpoint is due. */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include "base/base.h"
#include "base/cancel.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"
#include "ocl/ocl.h"

/* Of the run time, checkpoints under ckpt=auto may take this part. */
static const double auto_share = 0.01;
static const double auto_least = 1.0; /* seconds between two */
static const uint64_t put_off_much = 64ull << 20;
/* … and those that fail, under any setting, this one. */
static const double failing_share = 0.1;
/* So many checks in a row at which no epoch closes count as one: programs that only ever wait for
 * events of an out-of-order queue, or for older ones, are to have checkpoints, too. The layer waits
 * for the rest itself then. */
static const uint32_t open_checks = 4;

bool ocl_domain_gated(const struct domain *d)
{
	return d->gates_used & d->gates_unset;
}

bool ocl_epoch_quiesce(struct domain *d)
{
	UNCANCELLED;
	bool gated = false;

	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next) {
		struct queue *q = (struct queue *)o;

		if (o->kind != OCL_QUEUE || q->on_device)
			continue;
		if (q->gates & d->gates_unset) {
			gated = true;
			if (q->before_gate)
				NEXT->clWaitForEvents(1, &q->before_gate);
		} else if (o->refs > 0 || q->kept || o->real != o->handle) {
			/* what is in others has run */
			NEXT->clFinish(o->real);
		}
	}
	for (struct ocl_entry *e = gated ? d->first : NULL; e; e = e->next)
		if (e->own && !(e->gates & d->gates_unset))
			NEXT->clWaitForEvents(1, &e->own);
	return !gated;
}

/* ---- devices that are lost ---- */

/* Codes that drivers give when a device has gone; most of them may mean other things, too. */
static bool may_mean_lost(cl_int status)
{
	return status == CL_DEVICE_NOT_AVAILABLE || status == CL_OUT_OF_RESOURCES ||
	       status == CL_INVALID_COMMAND_QUEUE || status == CL_INVALID_CONTEXT ||
	       status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST || status == -9999;
}

/* Whether the device of q (NULL: of d) still takes a word and gives it back. */
static bool answers(struct domain *d, struct queue *q)
{
	UNCANCELLED;
	const uint32_t sent = 0x48616c65;
	uint32_t got = 0;
	cl_command_queue own = ocl_queue_beside(d, q);
	cl_int status;
	cl_mem m;

	if (!own)
		return false;
	m = NEXT->clCreateBuffer(OBJ(d)->real, CL_MEM_READ_WRITE, sizeof(sent), NULL, &status);
	if (status != CL_SUCCESS)
		return false;
	status = NEXT->clEnqueueWriteBuffer(own, m, CL_TRUE, 0, sizeof(sent), &sent, 0, NULL, NULL);
	if (status == CL_SUCCESS)
		status =
		    NEXT->clEnqueueReadBuffer(own, m, CL_TRUE, 0, sizeof(got), &got, 0, NULL, NULL);
	NEXT->clReleaseMemObject(m);
	return status == CL_SUCCESS && got == sent;
}

bool ocl_epoch_answers(struct domain *d)
{
	return answers(d, NULL);
}

/* ---- which data the program may look at now ---- */

/* What can't be asked has not come, and what failed with its device neither: it is to be repeated
 * elsewhere. What else has failed will bring nothing any more. */
static bool has_come(struct domain *d, const struct ocl_entry *e)
{
	cl_int status = CL_QUEUED;

	if (NEXT->clGetEventInfo(e->own, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
				 NULL) != CL_SUCCESS)
		return false;
	return status == CL_COMPLETE ||
	       (status < 0 && (!may_mean_lost(status) || answers(d, e->queue)));
}

/* Counts reads in the log whose data have come. */
static uint64_t arrived(struct domain *d)
{
	uint64_t count = 0;

	for (struct ocl_entry *e = d->unchecked ? ocl_log_unsettled(d) : NULL; e; e = e->next) {
		if (!ocl_entry_reads(e))
			continue;
		e->arrived =
		    e->arrived || !e->own || e->number <= e->queue->finished || has_come(d, e);
		count += e->arrived;
	}
	return count;
}

void ocl_epoch_came(struct domain *d, uint64_t number)
{
	struct ocl_entry *e = d->unchecked ? ocl_log_unsettled(d) : NULL;

	while (e && e->number != number && (d->reordered || e->number < number))
		e = e->next;
	if (e && e->number == number && ocl_entry_reads(e))
		e->arrived = true;
}

/* False: not everything has run. A device that is lost meanwhile must not cost the log what is to
 * be repeated elsewhere. */
static bool finish_all(struct domain *d)
{
	return ocl_epoch_quiesce(d) && arrived(d) == d->unchecked;
}

/* ---- when a checkpoint is due ---- */

static uint64_t dirty_bytes(const struct domain *d)
{
	uint64_t bytes = 0;

	for (const struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next) {
		const struct mem *m = (const struct mem *)o;
		/* what only the log has still is not saved; a part of it keeps the whole */
		if ((o->kind == OCL_MEM || o->kind == OCL_SVM) && m->root == m && m->modified &&
		    (o->refs > 0 || o->kin > 0))
			bytes += m->size;
	}
	return bytes;
}

/* Where something has failed before, more is worth its while: Young's interval sqrt(2 C M), with
 * the time M between failures that this run has seen. Otherwise failures that come faster than what
 * has been logged can be repeated would let the program get nowhere. */
static bool failures_due(double cost, double elapsed)
{
	double ran = clock_seconds() - ocl.report.started;

	return ocl.report.recoveries > 0 &&
	       elapsed * elapsed * (double)ocl.report.recoveries >= 2 * cost * ran;
}

/* What the log keeps of objects that are released is memory that the program doesn't find again:
 * new one costs more than a checkpoint that has little to write. */
static bool frees_much(struct domain *d)
{
	if (d->put_off < put_off_much || d->put_off / 2 < d->put_off_left)
		return false;
	d->put_off_left = d->put_off; /* looked at; again when it has doubled */
	return dirty_bytes(d) <= d->put_off / 16;
}

static bool auto_due(struct domain *d, double elapsed)
{
	uint64_t bytes = d->checkpoint_bytes;
	double cost = d->checkpoint_cost, speed;

	if (frees_much(d))
		return true;
	if (elapsed < auto_least)
		return false;
	if (cost == 0) {
		bytes = dirty_bytes(d);
		cost = (double)bytes / 1e9;
	}
	speed = ocl_store_speed(d);
	if (speed > 0 && elapsed < (double)bytes / speed)
		return false;
	return elapsed >= cost / auto_share || failures_due(cost, elapsed);
}

static bool checkpoint_due(struct domain *d, double now)
{
	double elapsed = now - d->checkpoint_at;

	/* a disk that is full is not filled again at once */
	if (ocl.set.when == OCL_CKPT_OFF ||
	    (d->save_failed && elapsed < d->checkpoint_cost / failing_share))
		return false;
	if (d->unprotected)
		return true;
	if (ocl.set.when == OCL_CKPT_EPOCHS)
		return d->epochs_since >= ocl.set.every_epochs;
	if (ocl.set.when == OCL_CKPT_SECONDS)
		return elapsed >= ocl.set.every_seconds;
	return auto_due(d, elapsed);
}

/* ---- closing ---- */

/* This process has come from a checkpoint of its job, in which what is lost here is whole: going
 * back there beats a code that most programs can only end at. By a signal that the job takes for
 * the program's own the second time without a checkpoint between: what comes again each time is
 * not tried for ever. */
static void go_back(void)
{
	log_warn("opencl: this process ends, so that its job goes back to its checkpoint");
	prctl(PR_SET_DUMPABLE, 0); /* its memory would say nothing about that */
	signal(SIGABRT, SIG_DFL);
	abort();
}

static cl_int give_up(struct domain *d)
{
	if (atomic_load(&ocl.lives) > 0)
		go_back();
	log_warn("opencl: the program gets an error code");
	d->dead = true;
	return CL_OUT_OF_RESOURCES;
}

/* The program's data are good; makes them the point to go back to. */
static cl_int checkpoint(struct domain *d)
{
	UNCANCELLED;
	double start = clock_seconds();
	ocl_saved_t saved;

	while ((saved = ocl_checkpoint_save(d)) == OCL_SAVE_ERRORS)
		if (!ocl_recover(d, false))
			return give_up(d);
	d->save_failed = saved == OCL_SAVE_FAILED;
	d->checkpoint_at = clock_seconds();
	d->checkpoint_cost = d->checkpoint_at - start;
	d->epochs_since = 0;
	d->put_off_left = d->put_off;
	return CL_SUCCESS;
}

/* What shares memory with the host at any time may wait there for the program. */
static bool stays_open(struct domain *d, bool closes)
{
	d->open_checks = closes ? 0 : d->open_checks + 1;
	if (closes || d->open_checks < open_checks || d->fine_svm > 0)
		return !closes;
	d->open_checks = 0;
	return false;
}

static cl_int close_epoch(struct domain *d, const struct queue *q, bool closes)
{
	bool may_save = !stays_open(d, closes);
	double now = clock_seconds();
	cl_int status = CL_SUCCESS;
	bool save;

	ocl.report.epochs++;
	d->epochs++;
	d->epochs_since += may_save;
	save = may_save && checkpoint_due(d, now) && !ocl_domain_gated(d);
	if (save) {
		save = finish_all(d);
		now = clock_seconds();
	}
	if (ocl_detect_errors(d, OCL_AT_EPOCH, now) && !ocl_recover(d, false))
		return give_up(d);
	if (save)
		status = checkpoint(d);
	else if (closes)
		ocl_log_end_epoch(d, q);
	if (!save)
		ocl_log_capture_all(d);
	return status;
}

cl_int ocl_epoch_sync(struct domain *d, struct queue *queue, bool closes)
{
	bool ready = arrived(d) > 0 || d->fine_svm > 0 || d->natives;
	cl_int status;

	ocl_store_renew(d);
	ocl.report.syncs++;
	if (d->dead)
		return ready ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
	if (!ready && (!closes || (ocl.set.opt & OCL_OPT_HD))) {
		ocl_log_capture_all(d); /* the program may write there from now on */
		return CL_SUCCESS;
	}
	status = close_epoch(d, queue, closes);
	if (status == CL_SUCCESS)
		ocl_log_settle(d);
	return status;
}

void ocl_epoch_force(struct domain *d)
{
	if (d->dead || ocl_domain_gated(d)) {
		return;
	}
	log_info("opencl: an epoch is closed because its log is long");
	ocl.report.epochs++;
	d->epochs++;
	if (!finish_all(d))
		return;
	if (ocl_detect_errors(d, OCL_AT_EPOCH, clock_seconds()) && !ocl_recover(d, false)) {
		give_up(d);
		return;
	}
	if (ocl.set.when != OCL_CKPT_OFF)
		checkpoint(d);
}

/* ---- after a loss ---- */

cl_int ocl_epoch_failed(struct domain *d, struct queue *q, cl_int status, uint32_t moves)
{
	if (!may_mean_lost(status) || d->dead)
		return status;
	if (d->moved_at > moves) /* another thread has seen it first */
		return CL_SUCCESS;
	if (status != CL_DEVICE_NOT_AVAILABLE && answers(d, q))
		return status;
	if (!ocl_recover(d, true)) {
		give_up(d);
		return status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? CL_OUT_OF_RESOURCES
									      : status;
	}
	ocl_log_settle(d);
	return CL_SUCCESS;
}

/* Where another context has noticed a loss first, and has begun anew, this one's objects are not
 * known there. */
static bool may_be_unknown(cl_int status)
{
	return status == CL_INVALID_CONTEXT || status == CL_INVALID_MEM_OBJECT ||
	       status == CL_INVALID_PROGRAM || status == CL_INVALID_KERNEL ||
	       status == CL_INVALID_COMMAND_QUEUE || status == CL_INVALID_SAMPLER ||
	       status == CL_INVALID_EVENT || status == CL_INVALID_PROGRAM_EXECUTABLE ||
	       status == CL_INVALID_VALUE;
}

bool ocl_epoch_moved(struct domain *d, cl_int status, uint32_t moves)
{
	bool unknown = may_be_unknown(status);

	if (LIKELY(status != CL_DEVICE_NOT_AVAILABLE && !unknown))
		return false;
	return ocl_epoch_failed(d, NULL, unknown ? CL_INVALID_CONTEXT : status, moves) ==
	       CL_SUCCESS;
}

/* Calls of this thread in a row that a loss has ended: what the runtime dies of each time is not
 * repeated for ever. */
static __thread unsigned losses;

bool ocl_lost_too_often(bool again)
{
	enum { LOSSES_MAX = 20 };

	losses = again ? losses + 1 : 0;
	if (LIKELY(losses < LOSSES_MAX))
		return false;
	if (losses == LOSSES_MAX)
		log_warn("opencl: a call of the program's has lost the device %u times in a row, "
			 "which may be why; it gets an error",
			 losses);
	return true;
}

bool ocl_again(void *handle, ocl_kind_t kind, cl_int status, uint32_t moves)
{
	struct ocl_object *o;
	bool again;

	if (LIKELY(status == CL_SUCCESS) || ocl.passive) {
		losses = 0;
		return false;
	}
	ocl_lock();
	o = ocl_find(handle, kind);
	/* an event of a runtime that was left before tells of no loss */
	again = o && !(kind == OCL_EVENT && ocl_event_was_complete((struct event *)o)) &&
		ocl_epoch_moved(o->domain, status, moves);
	ocl_unlock();
	return again && !ocl_lost_too_often(again);
}

void ocl_epoch_restarted(struct domain *d)
{
	ocl_store_renew(d);
	if (d->dead || ocl.set.when == OCL_CKPT_OFF || ocl_domain_gated(d))
		return;
	if (finish_all(d))
		checkpoint(d);
}
