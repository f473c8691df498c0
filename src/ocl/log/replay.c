/* SPDX-License-Identifier: BSD-3-Clause */
/* After an error: memory as it was at the checkpoint, then the commands since, in the order in
 * which the queues got them. Reads that the program has used already have left the log
 * (VOCL-FT 5.3.2). */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/cancel.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"
#include "ocl/ocl.h"

/* Whether the command had run, or will when the program sets an event. */
static bool has_run(const struct domain *d, const struct ocl_entry *e)
{
	cl_int status = CL_COMPLETE;

	if (e->own)
		NEXT->clGetEventInfo(e->own, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				     &status, NULL);
	if (d->lost) /* nobody can be asked */
		return !(e->gates & d->gates_unset) && !e->failed;
	if (e->gates & d->gates_unset)
		return e->own && status == CL_COMPLETE;
	return status >= CL_COMPLETE;
}

static bool still_mapped(const struct domain *d, const struct ocl_entry *e)
{
	for (const struct ocl_map *r = d->maps; r; r = r->next)
		if (r->number == e->number)
			return true;
	return false;
}

bool ocl_replay_transfer(const struct domain *d, const struct ocl_entry *e, struct ocl_entry *t)
{
	bool wrote = e->data.size > 0;

	*t = *e;
	if (e->superseded)
		return false;
	switch (e->op) {
	case OP_MAP:
		t->op = OP_READ;
		return still_mapped(d, e);
	case OP_MAP_IMAGE:
		t->op = OP_READ_IMAGE;
		return still_mapped(d, e);
	case OP_UNMAP:
		t->op = e->count == OP_MAP_IMAGE ? OP_WRITE_IMAGE : OP_WRITE;
		return wrote;
	case OP_SVM_UNMAP:
		t->op = OP_SVM_COPY;
		t->from_host = true;
		return wrote;
	case OP_INIT:
		t->op = e->dst->type == CL_MEM_OBJECT_BUFFER ? OP_WRITE : OP_WRITE_IMAGE;
		return true;
	case OP_SVM_MAP:
	case OP_MARKER:
	case OP_BARRIER:
	case OP_MIGRATE:
	case OP_SVM_MIGRATE:
	case OP_SVM_FREE:
		return false;
	default:
		return true;
	}
}

static bool takes_host_data(const struct ocl_entry *t)
{
	return (t->op >= OP_WRITE && t->op <= OP_WRITE_IMAGE) || t->from_host;
}

/* Where a replay finds, and puts, what lies at `at`: content of mappings is kept elsewhere until
 * all is over. */
static void *place_of(const struct domain *d, void *at, size_t size)
{
	for (const struct ocl_map *r = d->maps; r; r = r->next) {
		size_t offset = (size_t)((char *)at - (char *)r->ptr);
		if (r->kept && (char *)at >= (char *)r->ptr && offset + size <= r->span)
			return (char *)r->kept + offset;
	}
	return at;
}

static bool is_mapping(const struct ocl_entry *e)
{
	return e->op == OP_MAP || e->op == OP_MAP_IMAGE || e->op == OP_SVM_MAP;
}

/* What reads that come before e have brought just now: those data from before may have been wrong.
 * What else e writes the log has alone, where a later read has come into the same memory. */
static bool take_again(struct domain *d, struct ocl_entry *e, cl_command_queue q)
{
	char *data = ocl_log_in_memory(d, e);

	if (!data || NEXT->clFinish(q) != CL_SUCCESS)
		return false;
	for (const struct ocl_entry *r = ocl_log_unsettled(d); r && r->order < e->order;
	     r = r->next)
		if (ocl_entry_reads(r) && has_run(d, r))
			ocl_log_take_read(
			    r, is_mapping(r) ? r->host : place_of(d, r->host, r->host_span), data,
			    e->host, e->data.size);
	return true;
}

static bool replay_entry(struct domain *d, struct ocl_entry *e, cl_command_queue q)
{
	struct ocl_entry t;
	void *host = e->host, *owned = NULL;
	cl_int status;

	if (!ocl_replay_transfer(d, e, &t)) {
		e->arrived |= ocl_entry_reads(e);
		return true;
	}
	if (e->recorded)
		return ocl_recorded_replay(e->recorded, q) == CL_SUCCESS;
	if (e->kernel && ocl_kernel_bind(e->kernel, e->args, false) != CL_SUCCESS)
		return false;
	if (e->behind_read && !e->uncaptured && ocl_log_is_behind_read(d, e) &&
	    !take_again(d, e, q))
		return false;
	if (ocl_entry_reads(e) && t.op == e->op) { /* no mapping: these are told of later */
		host = place_of(d, host, e->host_span);
		if (t.op == OP_SVM_COPY)
			t.a[0] = (size_t)host;
	}
	if (takes_host_data(&t)) {
		host = (void *)ocl_log_data(d, e, &owned);
		if (!host)
			return false;
		if (host == e->host) /* a read before it brings it */
			host = place_of(d, host, e->host_span);
	}
	if (e->op == OP_INIT && ocl_aside_needed(e->dst, true))
		status = ocl_aside_init(e->dst, e, q, host) ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
	else if (ocl_aside_reads(&t))
		status = ocl_aside_read(&t, q, host, 0, NULL, NULL);
	else
		status = ocl_issue(&t, q, host, 0, NULL, NULL, NULL);
	if (owned) { /* read back from the spill file, needed until it has been taken */
		NEXT->clFinish(q);
		free(owned);
	}
	e->arrived |= ocl_entry_reads(e);
	return status == CL_SUCCESS;
}

void ocl_replay_unbind(struct domain *d)
{
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next) {
		if (o->kind == OCL_KERNEL)
			ocl_kernel_unbind((struct kernel *)o);
	}
}

bool ocl_replay(struct domain *d)
{
	double start = clock_seconds();
	cl_command_queue q = NULL;
	bool good = true;

	for (struct ocl_entry *e = d->first; e && good; e = e->next) {
		cl_command_queue own = ocl_queue_beside(d, e->queue);

		if (!own) {
			good = false;
			break;
		}
		if (q && own != q)
			good = NEXT->clFinish(q) == CL_SUCCESS;
		q = own;
		if (!has_run(d, e))
			continue;
		good = good && replay_entry(d, e, q);
	}
	if (q)
		good = NEXT->clFinish(q) == CL_SUCCESS && good;
	ocl_replay_unbind(d);
	ocl.report.replay += clock_seconds() - start;
	return good;
}

/* ---- what the program has written into mappings that are still there ---- */

/* Until the program has been told that it is there it can't have written; what is there now may be
 * wrong, and is made anew. */
static bool is_told(const struct domain *d, const struct ocl_map *r)
{
	for (const struct ocl_entry *e = d->first; e; e = e->next)
		if (e->number == r->number)
			return false;
	return true;
}

static void keep_mappings(struct domain *d)
{
	for (struct ocl_map *r = d->maps; r; r = r->next) {
		if (!ocl_map_may_be_written(r) || !is_told(d, r) ||
		    !(r->kept = malloc(r->span ? r->span : 1)))
			continue;
		memcpy(r->kept, r->ptr, r->span);
	}
}

static void put_mappings_back(struct domain *d)
{
	for (struct ocl_map *r = d->maps; r; r = r->next) {
		if (r->kept)
			memcpy(r->ptr, r->kept, r->span);
		free(r->kept);
		r->kept = NULL;
	}
}

/* ---- the whole ---- */

static bool try_here(struct domain *d)
{
	bool good = ocl_part_from_host(d);

	if (good && d->damaged)
		ocl_checkpoint_damage(d);
	good = good && ocl_checkpoint_restore(d) && ocl_replay(d);
	if (!good) {
		log_warn("opencl: memory could not be restored or commands not be repeated");
		return false;
	}
	ocl.report.replays++;
	return !ocl_detect_errors(d, OCL_AT_REPLAY, clock_seconds());
}

static bool mend(struct domain *d, bool lost)
{
	bool good = !lost && try_here(d);

	while (!good) {
		double start = clock_seconds();
		bool moved;

		/* it may have gone while memory was being restored */
		if (!d->lost && !ocl_epoch_answers(d))
			d->lost = true;
		moved = ocl_migrate(d);

		ocl.report.move += clock_seconds() - start;
		if (!moved)
			return false;
		good = try_here(d);
	}
	return true;
}

static bool recover(struct domain *d, bool lost)
{
	const char *what = lost ? "the loss of a device" : "an error in device memory";
	uint32_t generation = d->generation;
	double start = clock_seconds();
	bool good;

	ocl_store_renew(d);
	d->lost = lost;
	d->renewals = 0;
	log_info("opencl: %s in epoch %lu: going back and repeating %lu commands",
		 lost ? "the device failed" : "errors in device memory",
		 (unsigned long)ocl.report.epochs, (unsigned long)d->entries);
	if (lost)
		ocl.report.errors++;
	if (d->unprotected) {
		log_warn("opencl: %s can't be mended: not everything since the last checkpoint "
			 "could be logged",
			 what);
		return false;
	}
	ocl_log_capture_all(d);
	if (!lost)
		ocl_epoch_quiesce(d);
	keep_mappings(d);
	good = mend(d, lost);
	put_mappings_back(d);
	if (good && d->generation != generation) {
		d->repeated_from = start;
		d->repeated_to = clock_seconds();
		good = ocl_requeue(d);
	}
	if (good)
		ocl.report.recoveries++;
	else
		log_warn("opencl: %s can't be mended: %s, and there is no other device to go to",
			 what, lost ? "it no longer answers" : "it came back");
	return good;
}

bool ocl_recover(struct domain *d, bool lost)
{
	UNCANCELLED;
	bool good;

	atomic_fetch_add(&ocl.recoveries, 1);
	good = recover(d, lost);
	atomic_fetch_sub(&ocl.recoveries, 1);
	return good;
}
