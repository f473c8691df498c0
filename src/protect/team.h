/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers that read large variables together with the thread that asks.
 *
 * A process that has one thread keeps one: helpers are started at the first large scan of a process
 * that has several already, or where HALE_PROTECT=threads=N asks for them. They sleep between
 * scans, and spin never. One scan at a time has them; other threads that scan meanwhile do it
 * alone. A helper that wakes too late finds nothing to do, and nobody waits for it. The child of a
 * fork has none, and starts its own. */
#ifndef HALE_PROTECT_TEAM_H
#define HALE_PROTECT_TEAM_H

#include <stddef.h>

#define TEAM_MAX 8

/* Workers at most: 0: as many as the thread may use cores, 4 at most; otherwise 1 to TEAM_MAX.
 * Before the first scan. */
void team_limit(int workers);

/* How many workers a scan of so many bytes should have, the caller among them. At least 1. */
int team_size(size_t bytes);

/* Calls work(arg, worker, part) once for each part from 0 to parts - 1, worker from 0 to workers
 * - 1. Calls of one worker follow each other, those of several run at once. Returns when all have.
 */
void team_run(int workers, size_t parts, void (*work)(void *arg, int worker, size_t part),
	      void *arg);

#endif
