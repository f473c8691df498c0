/* SPDX-License-Identifier: BSD-3-Clause */
/* The other end of a program's ring, for the process beside the program: its server, or the relay
 * to a server of another node. */
#ifndef HALE_OCL_REMOTE_RING_H
#define HALE_OCL_REMOTE_RING_H

#include "ocl/remote/wire.h"

enum { REQUEST_MAX = sizeof(struct wire_request) + WIRE_WORDS * 8 };

extern struct remote_wire *wire;

/* Takes the region that the program has left as descriptor WIRE_FD. False: there is none. */
bool ring_open(void);
/* From now on this process ends with the program, even in the middle of a kernel. False, with
 * errno: it can't be watched. */
bool ring_watch(void);
/* Calls carry_out for each request in their order, and idle (or nothing, if NULL) whenever the ring
 * is empty. Returns when the program has overwritten the ring. */
void ring_run(void (*carry_out)(const struct wire_request *r), void (*idle)(void));
/* Tells the program, which waits for it, whether requests will be carried out. */
void ring_say_ready(bool good);
/* Tells the thread that waits for r that the reply is complete. */
void ring_reply_done(struct wire_reply *r);
/* Has the program call back; waits while there is no room in the ring of callbacks. */
void ring_call_back(uint64_t cookie, int32_t status);
/* A terminal or a launcher sends signals to the whole group: this process ignores them. */
void ring_ignore_signals(void);
/* False, with errno: there is no such memory in the program. */
bool memory_read(void *to, uint64_t address, size_t size);
bool memory_write(uint64_t address, const void *from, size_t size);

#endif
