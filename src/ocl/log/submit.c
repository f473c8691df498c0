/* SPDX-License-Identifier: BSD-3-Clause */
/* One command from the program to the runtime and into the log. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/cancel.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"
#include "ocl/ocl.h"

enum { WAITS_MAX = 64 };

/* More than this in the log closes an epoch, whether the program synchronises or not. */
static const uint64_t entries_max = 1u << 18;

struct submit_waits {
	cl_uint count;
	const cl_event *list;
	uint64_t gates;
	cl_event few[WAITS_MAX], *many;
};

/* ---- user events: what can't run before the program says so ---- */

/* So many unset ones can be told apart; what goes beyond has the last number in common. */
static const int shared_gate = 63;

static void tell_of_shared_gate(const struct domain *d)
{
	static bool told;

	if (!told && !d->unprotected)
		log_warn("opencl: commands wait for more than %d user events at a time; an error "
			 "before all of them are set and the next checkpoint can't be mended",
			 shared_gate);
	told = true;
}

/* Numbers of events that are set long ago are used again. */
static void recycle_gates(struct domain *d)
{
	uint64_t unset = d->gates_unset;

	for (struct ocl_entry *e = d->first; e; e = e->next)
		e->gates &= unset;
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next)
		if (o->kind == OCL_QUEUE) {
			((struct queue *)o)->gates &= unset;
			((struct queue *)o)->barred &= unset;
		}
	d->gates_used &= unset;
}

/* What waited for the event that had the number before does so no more. */
static void give_number(struct domain *d, struct event *user, int number)
{
	uint64_t gate = 1ull << number;

	user->gate = number;
	if (d->gates_unset & gate) /* shared_gate */
		return;
	d->gates_unset |= gate;
	d->gate_since[number] = d->numbers;
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next)
		if (o->kind == OCL_QUEUE) {
			((struct queue *)o)->gates &= ~gate;
			((struct queue *)o)->barred &= ~gate;
		}
}

uint64_t ocl_event_gates(const struct event *ev)
{
	const struct domain *d = OBJ(ev)->domain;
	uint64_t gates = ev->gates & d->gates_unset;

	for (uint64_t left = gates; left; left &= left - 1)
		if (ev->number <= d->gate_since[__builtin_ctzll(left)])
			gates &= ~(left & -left);
	return gates;
}

static uint64_t gate_of(struct domain *d, struct event *ev)
{
	uint64_t taken = d->gates_unset | d->gates_used | 1ull << shared_gate;

	if (ev->seen)
		return 0;
	if (ev->gate >= 0)
		return 1ull << ev->gate & d->gates_unset;
	if (taken == ~0ull) {
		recycle_gates(d);
		taken = d->gates_unset | d->gates_used | 1ull << shared_gate;
	}
	give_number(d, ev, taken == ~0ull ? shared_gate : __builtin_ctzll(~taken));
	if (ev->gate == shared_gate) {
		tell_of_shared_gate(d);
		d->gates_shared++;
		d->unprotected = true;
	}
	return 1ull << ev->gate;
}

/* Of those that share a number nobody knows which command waits for which: in what order they run
 * is not known either, so that nothing is repeated before the next checkpoint. */
void ocl_gate_open(struct domain *d, struct event *user)
{
	if (user->gate < 0)
		return;
	if (user->gate == shared_gate) {
		d->unprotected = true;
		if (--d->gates_shared > 0)
			return;
	}
	d->gates_unset &= ~(1ull << user->gate);
	ocl_log_gate_opened(d, 1ull << user->gate);
}

/* Events from before a move are complete; the new runtime doesn't know them. Those that the program
 * has released are NULL to it. */
static void look_at_waits(struct domain *d, struct submit_waits *w, cl_uint count,
			  const cl_event *list)
{
	cl_event *kept;
	bool ghosts = false;
	cl_uint n = 0;

	w->count = count;
	w->list = list;
	w->gates = 0;
	w->many = NULL;
	kept = w->few;
	if (!list || count == 0)
		return;
	for (cl_uint i = 0; i < count && list[i]; i++) { /* behind what is wrong may be nothing */
		struct event *ev = ocl_find(list[i], OCL_EVENT);
		if (ev && ev->queue)
			w->gates |= ocl_event_gates(ev);
		else if (ev)
			w->gates |= gate_of(d, ev);
		else
			ghosts |= ocl_is_ghost(list[i], OCL_EVENT);
	}
	if (d->generation == 0 && !ghosts)
		return;
	for (cl_uint i = 0; i < count; i++)
		if (!list[i]) /* the runtime will say so */
			return;
	if (count > WAITS_MAX && !(w->many = kept = malloc(count * sizeof(*kept))))
		return;
	for (cl_uint i = 0; i < count; i++) {
		struct event *ev = ocl_find(list[i], OCL_EVENT);
		if (!ev)
			kept[n++] = ocl_checked(list[i], OCL_EVENT);
		else if (ev->generation == d->generation)
			kept[n++] = OBJ(ev)->real;
	}
	w->count = n;
	w->list = n ? kept : NULL;
}

/* Where commands begin to wait for the program, those before must be told from those behind, unless
 * they have run: with PoCL 3.1 markers wait for all that runs in the queue, and what waits for an
 * event that comes at the moment at which another one fails ends the program. */
static void mark_gate(struct queue *q)
{
	if (q->before_gate)
		NEXT->clReleaseEvent(q->before_gate);
	q->before_gate = NULL;
	if (q->last_number <= q->finished)
		return;
	NEXT->clEnqueueMarkerWithWaitList(OBJ(q)->real, 0, NULL, &q->before_gate);
	NEXT->clFlush(OBJ(q)->real);
}

static uint64_t gates_for(struct domain *d, struct queue *q, struct ocl_entry *e,
			  struct submit_waits *w)
{
	uint64_t behind = q->gates & d->gates_unset;
	uint64_t gates = w->gates | (q->barred & d->gates_unset);

	if (!q->out_of_order || (w->count == 0 && (e->op == OP_MARKER || e->op == OP_BARRIER)))
		gates |= behind;
	if (gates && !behind)
		mark_gate(q);
	q->gates = behind | gates;
	if (e->op == OP_BARRIER)
		q->barred = gates;
	return gates;
}

/* ---- before and after the runtime has it ---- */

static bool is_read(ocl_op_t op)
{
	return op <= OP_READ_IMAGE;
}

static bool is_map(ocl_op_t op)
{
	return op == OP_MAP || op == OP_MAP_IMAGE || op == OP_SVM_MAP;
}

bool ocl_entry_reads(const struct ocl_entry *e)
{
	return is_read(e->op) || is_map(e->op) || (e->op == OP_SVM_COPY && !e->dst);
}

static bool is_write(ocl_op_t op)
{
	return op >= OP_WRITE && op <= OP_WRITE_IMAGE;
}

static void resolve_svm(struct domain *d, struct ocl_entry *e)
{
	e->dst = ocl_svm_at(d, e->a[0]);
	e->src = e->op == OP_SVM_COPY ? ocl_svm_at(d, e->b[0]) : NULL;
	e->host_span = e->region[0];
	e->host = (void *)e->a[0];
	if (e->op == OP_SVM_COPY && e->dst && !e->src) {
		e->from_host = true;
		e->host = (void *)e->b[0];
	}
	if (e->dst)
		ocl_hold(OBJ(e->dst));
	if (e->src)
		ocl_hold(OBJ(e->src));
	if ((e->dst && (e->dst->flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)))
		d->unprotected = true;
}

static bool known(cl_mem handle, struct mem **m)
{
	*m = handle ? ocl_mem_of(handle) : NULL;
	return !handle || *m;
}

bool ocl_entry_resolve(struct domain *d, struct ocl_entry *e)
{
	struct mem *dst, *src;
	bool all = known(e->dst_handle, &dst) && known(e->src_handle, &src);

	if (!all)
		return false;
	if (e->op >= OP_SVM_COPY && e->op <= OP_SVM_MIGRATE) {
		resolve_svm(d, e);
		return true;
	}
	e->dst = dst;
	e->src = src;
	if (dst)
		ocl_hold(OBJ(dst));
	if (src)
		ocl_hold(OBJ(src));
	if (e->kernel_handle) {
		e->kernel = ocl_find(e->kernel_handle, OCL_KERNEL);
		if (!e->kernel)
			return false;
		ocl_hold(OBJ(e->kernel));
		if (!ocl_kernel_uses(e->kernel, e->kernel->args, e))
			return false;
		e->args = ocl_args_ref(e->kernel->args);
	}
	return e->op != OP_RECORDED || ocl_recorded_uses(d, e);
}

/* A function of the program may write to any of it. */
static void mark_svm(struct domain *d)
{
	for (uint32_t i = 0; i < d->svm_count; i++)
		d->svm[i]->modified |= OCL_BY_DEVICE;
}

void ocl_entry_mark(struct ocl_entry *e)
{
	struct mem *m = e->dst ? e->dst->root : NULL;

	/* mappings may be written to at any time, and what isn't known may be anything */
	if (e->op >= OP_MAP && e->op != OP_MARKER && e->op != OP_BARRIER && e->op != OP_SVM_FREE)
		e->lasting = true;
	if (e->op == OP_NATIVE) {
		e->lasting = true;
		for (uint32_t i = 0; i < e->used_count; i++)
			((struct mem *)e->used[i])->root->modified |= OCL_BY_DEVICE;
		mark_svm(OBJ(e->queue)->domain);
	}
	if (!m)
		return;
	e->lasting |= !m->scratch;
	if (e->op == OP_WRITE || e->op == OP_WRITE_RECT)
		m->modified |= OCL_BY_HOST;
	else if (e->op == OP_WRITE_IMAGE || (e->op >= OP_COPY && e->op <= OP_FILL_IMAGE) ||
		 e->op == OP_SVM_COPY || e->op == OP_SVM_FILL || e->op == OP_UNMAP ||
		 e->op == OP_SVM_UNMAP)
		m->modified |= OCL_BY_DEVICE;
}

/* Whether the log must be able to ask about e: what it reads, or whether it has run already, where
 * the queue can't be waited for. */
static bool is_asked_about(const struct domain *d, const struct queue *q, const struct ocl_entry *e)
{
	return ocl_entry_reads(e) || e->gates || q->gates & d->gates_unset;
}

/* In the log from here on. */
static void keep(struct domain *d, struct queue *q, struct ocl_entry *e, cl_event event,
		 bool theirs)
{
	bool reads = ocl_entry_reads(e);

	e->queue = q;
	ocl_hold(OBJ(q));
	if (event && is_asked_about(d, q, e)) {
		e->own = event;
		if (theirs)
			NEXT->clRetainEvent(event);
	} else if (event && !theirs) {
		NEXT->clReleaseEvent(event);
	}
	ocl_entry_mark(e);
	if (d->unchecked == 0)
		ranges_clear(&d->reading);
	ocl_log_append(d, e);
	if (reads) {
		d->unchecked++;
		ranges_add(&d->reading, e->host, e->host_span);
		if (!is_map(e->op))
			ocl_map_takes(e->host, e->host_span);
	}
	if ((is_write(e->op) && e->data.size == 0) || e->from_host) {
		e->uncaptured = true;
		e->behind_read =
		    ranges_meet(&d->reading, e->host, e->host_span) && ocl_log_is_behind_read(d, e);
		d->uncaptured++;
	}
}

static void event_add(struct domain *d, struct queue *q, struct ocl_entry *e, cl_event event,
		      bool ours_too)
{
	struct event *ev = ocl_object_create(sizeof(*ev), OCL_EVENT, event, d);

	if (!ev)
		return;
	ev->queue = q;
	ocl_hold(OBJ(q));
	ev->number = d->numbers + 1;
	ev->gates = e->gates;
	ev->gate = -1;
	ev->generation = d->generation;
	ev->ours_too = ours_too;
	if (ours_too)
		ocl_hold(OBJ(ev));
}

static bool is_long(const struct domain *d)
{
	return d->entries >= entries_max || d->host_bytes + d->spilled >= ocl.set.log_bytes;
}

/* The program has released more than the log is to keep; what outlives an end of the log is not
 * a reason to end it again. */
static bool keeps_too_much(const struct domain *d)
{
	return d->put_off >= ocl.set.log_bytes && d->put_off / 2 >= d->put_off_left;
}

/* Too much in the log: an epoch ends now, whatever the program does. */
static void bound_log(struct domain *d)
{
	uint64_t used;

	if (LIKELY(!is_long(d) && !keeps_too_much(d)))
		return;
	if (d->late)
		return;
	d->late = true;
	ocl_epoch_force(d); /* does nothing where commands wait for the program */
	d->late = false;
	d->put_off_left = d->put_off;
	if (!is_long(d))
		return;
	used = d->gates_used & d->gates_unset;
	if (!d->unprotected)
		log_warn("opencl: %lu commands with %lu MiB of the program's data can't be kept "
			 "any longer without a checkpoint; an error before the next one can't be "
			 "mended",
			 (unsigned long)d->entries,
			 (unsigned long)((d->host_bytes + d->spilled) >> 20));
	ocl_log_give_up(d);
	d->gates_used = used; /* these commands wait still */
}

/* ---- the whole ---- */

/* Whether e is about what the program has released, and only the log has still. The runtime isn't
 * asked: with NULL in such a place PoCL 3.1 ends the program. */
static cl_int of_released(const struct ocl_entry *e)
{
	if (ocl_is_ghost(e->dst_handle, OCL_MEM) || ocl_is_ghost(e->src_handle, OCL_MEM))
		return CL_INVALID_MEM_OBJECT;
	return ocl_is_ghost(e->kernel_handle, OCL_KERNEL) ? CL_INVALID_KERNEL : CL_SUCCESS;
}

/* Something in e isn't known here: it is wrong, or of an extension. */
static cl_int pass_on(struct ocl_entry *e, cl_command_queue queue, bool blocking, cl_uint waits,
		      const cl_event *wait, cl_event *event, void **map)
{
	cl_event own = NULL;
	cl_int status;

	ocl_lock();
	status = ocl_issue(e, ocl_real(queue, OCL_QUEUE), e->host, waits, wait,
			   event      ? event
			   : blocking ? &own
				      : NULL,
			   map);
	ocl_unlock();
	if (status == CL_SUCCESS && blocking)
		status = NEXT->clWaitForEvents(1, event ? event : &own);
	if (own)
		NEXT->clReleaseEvent(own);
	ocl_lock();
	ocl_entry_free(NULL, e);
	ocl_unlock();
	return status;
}

/* What stands for command number now, ours, where it has been enqueued anew; NULL: it has not been,
 * and a recovery has repeated it. */
static cl_event requeued(const struct domain *d, uint64_t number, cl_event before)
{
	const struct ocl_entry *e = d->first;

	while (e && e->number != number)
		e = e->next;
	if (!e || !e->own || e->own == before)
		return NULL;
	NEXT->clRetainEvent(e->own);
	return e->own;
}

/* Whether the runtime may be let wait for e itself, with the lock held: on NVIDIA's GPUs its
 * blocking reads take a quarter of the time of others with a wait for their events. e waits for
 * nothing that another thread does, and hardly any other thread asks for the lock meanwhile. Not
 * writes: when a blocking one returns its data have been taken, but what was before it in the queue
 * need not have run. */
static bool may_block(const struct domain *d, const struct ocl_entry *e, cl_uint waits)
{
	return ocl_entry_reads(e) && waits == 0 && !d->gates_unset && ocl_lock_is_alone();
}

/* The program waits, unlocked, for the newest command. event NULL: it has run. */
static cl_int wait_for(struct domain *d, struct queue *q, cl_event event, bool theirs)
{
	uint64_t command = d->numbers, number = q->out_of_order ? 0 : q->last_number;
	cl_int status = CL_SUCCESS;

	ocl_hold(OBJ(d));
	ocl_hold(OBJ(q));
	while (event) {
		uint32_t moves = ocl.moves;
		cl_event next = NULL;

		ocl_unlock();
		status = NEXT->clWaitForEvents(1, &event);
		ocl_lock();
		if (UNLIKELY(status != CL_SUCCESS)) {
			status = ocl_epoch_failed(d, q, status, moves);
			if (status == CL_SUCCESS)
				next = requeued(d, command, event);
		}
		if (!theirs)
			NEXT->clReleaseEvent(event);
		theirs = false;
		event = next;
	}
	if (status == CL_SUCCESS) {
		q->finished = number > q->finished ? number : q->finished;
		ocl_epoch_came(d, command);
		ocl_log_has_run(d, command);
		status = ocl_epoch_sync(d, q, true);
	}
	ocl_drop(OBJ(q));
	ocl_drop(OBJ(d));
	return status;
}

/* What the program wrote into a mapping that it ends now, where the mapping is the memory itself: a
 * recovery has put there what was before. */
static void write_again(struct domain *d, const struct ocl_entry *e)
{
	void *owned = NULL;
	const void *data = e->data.size > 0 ? ocl_log_data(d, e, &owned) : NULL;

	if (data)
		memcpy(e->host, data, e->data.size);
	free(owned);
}

/* Where it waits in the runtime: a thread that is cancelled there has the lock. */
static cl_int issue(const struct ocl_entry *e, cl_command_queue q, const struct submit_waits *w,
		    cl_event *own, void **map)
{
	if (!e->blocks)
		return ocl_issue(e, q, e->host, w->count, w->list, own, map);
	UNCANCELLED;
	return ocl_issue(e, q, e->host, w->count, w->list, own, map);
}

/* Issues e, on another device when that of q turns out to be lost. */
static cl_int issue_somewhere(struct domain *d, struct queue *q, struct ocl_entry *e,
			      bool need_event, cl_uint waits, const cl_event *wait, cl_event *own,
			      void **map)
{
	for (;;) {
		uint32_t moves = ocl.moves;
		struct submit_waits w;
		cl_int status;

		look_at_waits(d, &w, waits, wait);
		e->gates = gates_for(d, q, e, &w);
		need_event |= !e->blocks && is_asked_about(d, q, e);
		status = issue(e, OBJ(q)->real, &w, need_event ? own : NULL, map);
		free(w.many);
		if (LIKELY(status == CL_SUCCESS))
			return status;
		status = ocl_epoch_failed(d, q, status, moves);
		if (status != CL_SUCCESS)
			return status;
		if ((e->op == OP_UNMAP || e->op == OP_SVM_UNMAP) && e->host_span > 0)
			write_again(d, e);
		if (e->op == OP_UNMAP && e->host_span > 0)
			ocl_map_moved(e);
	}
}

static cl_int submit_known(struct domain *d, struct queue *q, struct ocl_entry *e, bool blocking,
			   cl_uint waits, const cl_event *wait, cl_event *event, void **map)
{
	struct ocl_map *ended = NULL;
	cl_event own = NULL;
	cl_int status;
	bool waits_here = false;

	if (is_read(e->op) || (e->op == OP_SVM_COPY && !e->dst))
		ocl_log_capture_range(d, e->host, e->host_span);
	if (e->op == OP_UNMAP || e->op == OP_SVM_UNMAP) {
		ended = ocl_map_end(d, e);
		ocl_log_capture_range(d, e->host, e->host_span); /* it will be the device's */
	}
	if (e->op == OP_NATIVE) /* may write to what was given to earlier commands */
		ocl_log_capture_all(d);
	e->blocks = blocking && may_block(d, e, waits);
	waits_here = blocking && !e->blocks;
	status = issue_somewhere(d, q, e, event || waits_here, waits, wait, &own, map);
	if (status != CL_SUCCESS) {
		ocl_entry_free(d, e);
		return status;
	}
	if (ended)
		ocl_map_forget(d, ended);
	q->last_number = d->numbers + 1;
	if (event) {
		*event = own;
		event_add(d, q, e, own, is_asked_about(d, q, e));
	}
	if (waits_here && !event) /* one for the log, one to wait for */
		NEXT->clRetainEvent(own);
	keep(d, q, e, own, event != NULL);
	if (map || e->op == OP_SVM_MAP) {
		e->host = map ? *map : e->host;
		ocl_map_begin(d, e);
	}
	if (e->uncaptured && !e->behind_read && (blocking || !(ocl.set.opt & OCL_OPT_HB)))
		ocl_log_capture(d, e);
	e->blocks = false;
	if (blocking)
		status = wait_for(d, q, waits_here ? own : NULL, event != NULL);
	bound_log(d);
	return status;
}

/* The runtime has taken a command that can't be repeated. */
static void unprotect(cl_command_queue queue)
{
	struct queue *q;

	ocl_lock();
	q = ocl_find(queue, OCL_QUEUE);
	if (q) {
		OBJ(q)->domain->unprotected = true;
		ocl_content_unlogged(OBJ(q)->domain);
	}
	ocl_unlock();
}

cl_int ocl_submit(struct ocl_entry *e, cl_command_queue queue, bool blocking, cl_uint waits,
		  const cl_event *wait, cl_event *event, void **map)
{
	struct queue *q;
	struct domain *d;
	cl_int status;

	if (!e)
		return CL_OUT_OF_HOST_MEMORY;
	if (UNLIKELY(ocl.passive))
		return pass_on(e, queue, blocking, waits, wait, event, map);
	ocl_lock();
	q = ocl_find(queue, OCL_QUEUE);
	d = q ? OBJ(q)->domain : NULL;
	/* before e marks what it may write: a checkpoint takes marks away */
	if (d && UNLIKELY(ocl_store_is_gone(&d->store)))
		ocl_epoch_restarted(d);
	if (!d || !ocl_entry_resolve(d, e)) {
		bool changes = !ocl_entry_reads(e);

		status = d ? of_released(e) : CL_SUCCESS;
		if (status != CL_SUCCESS) {
			ocl_entry_free(NULL, e);
			ocl_unlock();
			return status;
		}
		ocl_unlock();
		status = pass_on(e, queue, blocking, waits, wait, event, map);
		if (d && status == CL_SUCCESS && changes)
			unprotect(queue);
		return status;
	}
	status = submit_known(d, q, e, blocking, waits, wait, event, map);
	ocl_entry_ready();
	ocl_unlock();
	if (blocking)
		ocl_svm_free_settle();
	return status;
}
