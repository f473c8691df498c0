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

/* Between it and here, where it lies without gaps. False: it can't be accessed. */
bool far_move(const struct far *f, char *here, bool to_program);

/* ---- server_underway.c ---- */
/* A command in q is under way, with data here. Takes over data, not done. */
void underway_add(cl_command_queue q, cl_event done, char *data, bool in, const struct far *far);
/* Waits for the first one through pinned memory that nobody waits for yet, and ends it: one into
 * the program's memory (in; else any), of queue (NULL: any), no later than the command of event
 * last (NULL: whenever). False: there is none. */
bool underway_end_first(bool in, cl_command_queue queue, cl_event last);
/* The queue of the one whose event is done; NULL: there is none. */
cl_command_queue underway_queue(cl_event done);
/* Memory of a transfer, pinned or from malloc. */
void underway_free(char *data);

/* ---- server_crew.c ---- */
/* Calls work(arg) here and in some more threads, as many as cores allow; returns when all have
 * returned. One at a time: a second caller does it alone. */
void crew_run(void (*work)(void *arg), void *arg);

#endif
