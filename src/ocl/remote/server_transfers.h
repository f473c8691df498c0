/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers between the program's memory and the runtime: what the files about them share. */
#ifndef HALE_OCL_REMOTE_SERVER_TRANSFERS_H
#define HALE_OCL_REMOTE_SERVER_TRANSFERS_H

#include "ocl/remote/server.h"

/* A box in the program's memory. */
struct far {
	uint64_t address;
	size_t bytes, rows, planes, row_pitch, plane_pitch;
};

/* Copies between program memory and `here`, which has no gaps. False: program memory can't be
 * accessed. */
bool far_move(const struct far *f, char *here, bool to_program);

/* ---- server_underway.c ---- */
/* Copies data to the program's memory, and logs a sentence if that fails. */
void far_bring(const struct far *f, char *data);
/* A command in q is under way, with data here. Takes over data, not done. */
void underway_add(cl_command_queue q, cl_event done, char *data, bool in, const struct far *far);
/* Waits for the first one through pinned memory that nobody waits for yet, and ends it: one into
 * the program's memory (in; else any), of queue (NULL: any), no later than the command of event
 * last (NULL: whenever). False: there is none. */
bool underway_end_first(bool in, cl_command_queue queue, cl_event last);
/* The queue of the transfer whose event is `done`; NULL: there is none. */
cl_command_queue underway_queue(cl_event done);
/* Reads in c that bring some of f, the oldest first, at most room of them; retained. */
cl_uint underway_reads(cl_context c, const struct far *f, cl_event *list, cl_uint room);
/* Memory of a transfer, pinned or from malloc. */
void underway_free(char *data);

/* ---- server_late.c ---- */
enum { LATE_MAX = 64 };
/* Waits until no read in c is under way that fills a part of f. It can't wait while the program has
 * unset user events: then it returns those reads, retained. Reads of other contexts are left out.
 * They have no order with c's commands, and may wait for ever. */
cl_uint late_reads(cl_context c, const struct far *f, cl_event read[LATE_MAX]);
/* Once those reads have come, copies f to data and opens the gate, for which the command must wait.
 * Takes over data and the reads. NULL: out of memory. */
struct late;
struct late *late_begin(cl_context c, const struct far *f, char *data, cl_uint reads,
			cl_event *read);
cl_event late_gate(const struct late *l);
/* The command was issued and owns data; or the runtime has refused it. */
void late_end(struct late *l, bool refused);

/* ---- server_crew.c ---- */
/* Calls work(arg) here and in some more threads, as many as cores allow; returns when all have
 * returned. One at a time: a second caller does it alone. */
void crew_run(void (*work)(void *arg), void *arg);

#endif
