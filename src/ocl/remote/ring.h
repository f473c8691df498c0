/* SPDX-License-Identifier: BSD-3-Clause */
/* The other end of a program's ring, for what stands beside the program: its server, or the relay
 * to a server of another node. */
#ifndef HALE_OCL_REMOTE_RING_H
#define HALE_OCL_REMOTE_RING_H

#include "ocl/remote/wire.h"

enum { REQUEST_MAX = sizeof(struct wire_request) + WIRE_WORDS * 8 };

extern struct remote_wire *wire;

/* Takes the region that the program has left as descriptor WIRE_FD. False: there is none. */
bool ring_open(void);
/* From now on this process ends when the program does, also in the middle of a kernel. */
bool ring_watch(void);
/* Calls carry_out for each request in its order, and idle (NULL: nothing) where there is none for
 * now. Returns when the program has overwritten the ring. */
void ring_run(void (*carry_out)(const struct wire_request *r), void (*idle)(void));
/* The program waits until this is said. */
void ring_say_ready(bool good);
/* The reply in r is whole: whoever waits for it learns that. */
void ring_reply_done(struct wire_reply *r);
/* The program's thread that calls back is told; waits while there is no room. */
void ring_call_back(uint64_t cookie, int32_t status);
/* What signals of a terminal or a launcher, sent to the whole group, are to us: nothing. */
void ring_ignore_signals(void);
/* False, with errno: there is no such memory in the program. */
bool memory_read(void *to, uint64_t address, size_t size);
bool memory_write(uint64_t address, const void *from, size_t size);

#endif
