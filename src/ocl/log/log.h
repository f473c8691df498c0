/* SPDX-License-Identifier: BSD-3-Clause */
/* log/: what programs have enqueued since the last checkpoint: entries in the order of the queues,
 * with the host data that they need, ready to be issued (again). Called by: entry/, epoch/. */
#ifndef HALE_OCL_LOG_LOG_H
#define HALE_OCL_LOG_LOG_H

#include "ocl/ocl.h"

/* ---- log.c ---- */
struct ocl_entry *ocl_entry_new(ocl_op_t op);
/* Puts an entry aside, with the lock held, so that the next ocl_entry_new() needs no lock. */
void ocl_entry_ready(void);
/* True: the log itself has all the data that e writes. */
static inline bool ocl_entry_consolidates(const struct ocl_entry *e)
{
	return (e->op == OP_WRITE && !e->superseded) || e->op == OP_WRITE_RECT || e->op == OP_INIT;
}
/* A new entry from src to dst; either may be NULL. */
struct ocl_entry *ocl_entry_between(ocl_op_t op, cl_mem src, cl_mem dst);
/* e with a copy of small data: patterns, colours, arguments; data may be NULL. NULL, with e freed:
 * no memory. */
struct ocl_entry *ocl_entry_carry(struct ocl_entry *e, const void *data, size_t size);
void ocl_entry_free(struct domain *d, struct ocl_entry *e);
/* Frees an entry that was never submitted; takes the lock. NULL is fine. */
void ocl_entry_discard(struct ocl_entry *e);
void ocl_log_append(struct domain *d, struct ocl_entry *e);
/* A user event is set. What waited for it, and for no other one, may run from now on: after all
 * that is in the log, which the program may have seen to be complete, and before what comes. */
void ocl_log_gate_opened(struct domain *d, uint64_t gate);
/* Drops all entries: they are part of a checkpoint, or nobody can see them any more. */
void ocl_log_clear(struct domain *d);
/* Drops all entries before a checkpoint has their effects: no error can be mended before the next
 * checkpoint. */
void ocl_log_give_up(struct domain *d);
/* Copies the host data of e now, into memory or the spill file. False: out of both; the domain
 * is unprotected until the next checkpoint. */
bool ocl_log_capture(struct domain *d, struct ocl_entry *e);
void ocl_log_capture_all(struct domain *d);
/* `command` has run. If it is the newest one, and a write, the entry that it has overwritten is
 * dropped. */
void ocl_log_has_run(struct domain *d, uint64_t command);
/* True: a read before e, which has not been checked yet, fills the host memory that e writes to the
 * device. */
bool ocl_log_is_behind_read(struct domain *d, const struct ocl_entry *e);
/* Captures e's host data when the reads into that memory have come. */
void ocl_log_capture_behind_read(struct domain *d, struct ocl_entry *e);
/* Captures the host data of entries that overlap [host, host + size), which the program is about to
 * change. */
void ocl_log_capture_range(struct domain *d, const void *host, size_t size);
/* Those reads that had arrived before the check are good: the program has their data, so that they
 * are never repeated. They leave the log. */
void ocl_log_settle(struct domain *d);
/* The first entry that may be unchecked or uncaptured. Searches begin there, since the log may be
 * long and has few of them. */
struct ocl_entry *ocl_log_unsettled(struct domain *d);
/* If the open epoch, with all of it run in q and checked, changed nothing but scratch objects, it
 * need never be repeated: its entries go. The next epoch begins in either case. */
void ocl_log_end_epoch(struct domain *d, const struct queue *q);
/* The data of an entry for replay: as captured or the program's own; free what *owned says. */
const void *ocl_log_data(struct domain *d, const struct ocl_entry *e, void **owned);
/* Captured host data of e in memory for as long as e is in the log; NULL: none. */
void *ocl_log_in_memory(struct domain *d, struct ocl_entry *e);
/* The log gives back its reference of a runtime's event. */
void ocl_log_event_released(cl_event own);
size_t ocl_rect_span(const size_t origin[3], const size_t region[3], size_t row, size_t slice);
/* What read puts into memory of which `data` has the `size` bytes at `at`: taken from where it is
 * now, in `from`, which stands for read->host. Not what lies between its rows. */
void ocl_log_take_read(const struct ocl_entry *read, const char *from, char *data, const char *at,
		       size_t size);

/* ---- submit.c ---- */
/* Takes over e, hands the command to the runtime and logs it; when blocking, waits and closes the
 * epoch. e NULL: out of memory. Handles that were never known here reach the runtime as they are,
 * so that it says what is wrong. A handle that the program has released is refused here. map: where
 * a map command's pointer goes. */
cl_int ocl_submit(struct ocl_entry *e, cl_command_queue queue, bool blocking, cl_uint waits,
		  const cl_event *wait, cl_event *event, void **map);
/* Finds and holds what e refers to. False: something in it isn't known here. */
bool ocl_entry_resolve(struct domain *d, struct ocl_entry *e);
/* Marks what the command may change as modified since the last checkpoint. */
void ocl_entry_mark(struct ocl_entry *e);
/* True: the command brings device data to host memory or into a mapping, where the program
 * sees it. */
bool ocl_entry_reads(const struct ocl_entry *e);
/* The program has set a user event, or has none of it any more. */
void ocl_gate_open(struct domain *d, struct event *user);
/* The unset user events, by number, that ev's command waits for. Numbers are used again. */
uint64_t ocl_event_gates(const struct event *ev);
/* The command of e as a call of the runtime. host: where its host data is. */
cl_int ocl_issue(const struct ocl_entry *e, cl_command_queue queue, void *host, cl_uint waits,
		 const cl_event *wait, cl_event *event, void **map);

/* ---- recorded.c ---- */
/* Our own function of that name of cl_khr_command_buffer, where the runtime has one; else NULL. */
void *ocl_recorded_function(const char *name, void *real);
/* Marks what the commands of e's buffer may write. False: out of memory. */
bool ocl_recorded_uses(struct domain *d, struct ocl_entry *e);
/* Enqueues the command buffer of e: the runtime's own. After a move the runtime has none; then each
 * of its commands. */
cl_int ocl_recorded_issue(const struct ocl_entry *e, cl_command_queue q, cl_uint n,
			  const cl_event *w, cl_event *event);
/* All its commands in q, which is in order; kernels are left with the arguments of the last. */
cl_int ocl_recorded_replay(const struct recorded *r, cl_command_queue q);
void ocl_recorded_fini(struct recorded *r);
cl_int ocl_recorded_release(void *handle);

/* ---- requeue.c: what waits for user events, in a context that moves ---- */
/* After the move: user events that are not set, or were to an error, exist there. */
void ocl_requeue_user_events(struct domain *d);
/* Before a move from a device that is still there: what waits ends there. */
void ocl_requeue_give_up(struct domain *d);
/* The program has set user to an error: with what waits for it. */
void ocl_requeue_failed(struct domain *d, struct event *user, cl_int error);
/* After the replay: the commands wait in their queues as before. */
bool ocl_requeue(struct domain *d);

#endif
