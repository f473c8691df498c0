/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's clocks. The monotonic ones count from the start of a machine, so a process that is
 * restored on another one, or on the same after a reboot, would see them go back or leap by days,
 * and wait as long. Here they go on: the program's clock is the machine's and what it is ahead of
 * that, and what waits in libc until a time waits until the machine's time for it.
 *
 * All of libhale.so and libmpi.so sees the program's clocks, too. */
#ifndef HALE_CKPT_CLOCKS_H
#define HALE_CKPT_CLOCKS_H

#include <stdint.h>
#include <time.h>

/* ns that this process's CLOCK_MONOTONIC is ahead of the machine's, by which others here live. */
int64_t clocks_ahead(void);

/* What clock_gettime has said replicas replace by what their leader was told (libc_replay.c); NULL:
 * it stays. caller: the address that the call returns to. */
extern void (*clocks_replay)(clockid_t id, struct timespec *t, const void *caller);

/* Finds libc's functions. Early (library constructor); until then they are system calls. */
void clocks_init(void);
/* Right before an image is taken, and first of all in a process that is restored from it; all other
 * threads are parked. */
void clocks_save(void);
void clocks_restored(void);
/* In each thread of a process that has been restored, before it goes on. Async-signal-safe. */
void clocks_thread_restored(void);

#endif
