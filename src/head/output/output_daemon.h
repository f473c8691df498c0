/* SPDX-License-Identifier: BSD-3-Clause */
/* A little process that outlives its head (docs/attach.md): it alone writes the job's output, so
 * that which byte of which rank was printed is known although the head was killed in the middle,
 * and while there is no head it answers `hale ps`.
 *
 * The head hands it packets: bytes for stdout or stderr, with the rank that printed them and the
 * position that its stream has then. A packet is handed over as a whole or not at all. When
 * another head asks, no more is taken from this one, what was taken is written, and the positions
 * are the answer. */
#ifndef HALE_HEAD_OUTPUT_OUTPUT_DAEMON_H
#define HALE_HEAD_OUTPUT_OUTPUT_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "node/job.h"

enum { KEEPER_PIECE = 32768 };

#define KEEPER_UNKNOWN UINT64_MAX

struct keeper_config {
	const char *job, *folder, *program;
	uint32_t epoch, nranks;
	double grace;
	closed_output_t on_closed;
	const uint64_t (*printed)[2]; /* [nranks]: positions to begin with */
};

struct keeper {
	struct keeper_config config;
	pid_t pid;  /* 0: none */
	int out[2]; /* stdout's, stderr's; -1: gone */
};

hale_status_t keeper_start(struct keeper *k, const struct keeper_config *config, struct error *err);
enum { KEEPER_GONE = -1, KEEPER_UNREAD = -2 };
/* 1: handed over; 0: not yet, out[which - 1] will say when there is room; KEEPER_GONE; once,
 * KEEPER_UNREAD: not handed over, nobody reads this output any more, and the job is to end. len:
 * at most KEEPER_PIECE. */
int keeper_send(struct keeper *k, int which, uint32_t rank, uint64_t position, const void *bytes,
		size_t len);
/* The job is over: returns when all is written. */
void keeper_end(struct keeper *k);
/* Another head has the job: leaves the process to itself. */
void keeper_leave(struct keeper *k);

/* ---- for a new head ---- */

/* Where the job's newest keeper on this machine says that the record is: folder gets PATH_MAX
 * bytes. *headless: it has seen the end of its head. False: there is none. */
bool keeper_find(const char *job, char *folder, bool *headless);
/* No more is printed by the heads up to that epoch: printed[nranks] gets how far each stream is.
 * False: that keeper is not there, and nothing is known (KEEPER_UNKNOWN everywhere). */
bool keeper_cut(const char *job, uint32_t epoch, uint32_t nranks, uint64_t (*printed)[2]);
/* The new head has a keeper of its own: the ones before are not asked again. */
void keeper_release(const char *job, uint32_t epoch);

#endif
