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

enum { OUTPUT_DAEMON_PIECE = 32768 };

#define OUTPUT_DAEMON_UNKNOWN UINT64_MAX

struct output_daemon_config {
	const char *job, *folder, *program;
	uint32_t epoch, nranks;
	double grace;
	closed_output_t on_closed;
	const uint64_t (*printed)[2]; /* [nranks]: positions to begin with */
};

struct output_daemon {
	struct output_daemon_config config;
	pid_t pid;  /* 0: none */
	int out[2]; /* stdout's, stderr's; -1: gone */
};

hale_status_t output_daemon_start(struct output_daemon *k,
				  const struct output_daemon_config *config, struct error *err);
enum { OUTPUT_DAEMON_GONE = -1, OUTPUT_DAEMON_UNREAD = -2 };
/* 1: handed over; 0: not yet, out[which - 1] will say when there is room; OUTPUT_DAEMON_GONE; once,
 * OUTPUT_DAEMON_UNREAD: not handed over, nobody reads this output any more, and the job is to end.
 * len: at most OUTPUT_DAEMON_PIECE. */
int output_daemon_send(struct output_daemon *k, int which, uint32_t rank, uint64_t position,
		       const void *bytes, size_t len);
/* The job is over: returns when all is written. */
bool output_daemon_end(struct output_daemon *k);
/* Another head has the job: leaves the process to itself. */
void output_daemon_leave(struct output_daemon *k);

/* ---- for a new head ---- */

/* Where the job's newest output_daemon on this machine says that the record is: folder gets
 * PATH_MAX bytes. *headless: it has seen the end of its head. False: there is none. */
bool output_daemon_find(const char *job, char *folder, bool *headless);
/* No more is printed by the heads up to that epoch: printed[nranks] gets how far each stream is.
 * False: that output_daemon is not there, and nothing is known (OUTPUT_DAEMON_UNKNOWN everywhere).
 */
bool output_daemon_cut(const char *job, uint32_t epoch, uint32_t nranks, uint64_t (*printed)[2]);
/* The new head has an output daemon of its own: the ones before are not asked again. */
void output_daemon_release(const char *job, uint32_t epoch);

#endif
