/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a job's way of working, from what its ranks count (meter.h) and from its
 * checkpoints and restarts: the "profile" of its report, `hale run --profile FILE`, and what
 * `hale advise` reasons about. docs/advisor.md defines each number. */
#ifndef HALE_REPORT_PROFILE_H
#define HALE_REPORT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/json.h"
#include "node/meter.h"
#include "node/segment.h"

/* Counts and seconds are sums over all ranks but where it says otherwise. */
struct profile_call {
	uint64_t count;
	double seconds;
};

/* One process, now. */
struct profile_process {
	uint32_t process;
	char inside[METER_NAME_MAX]; /* the MPI function that it waits in; "": none */
	double cpu_seconds;	     /* so far */
	uint64_t memory;	     /* resident, bytes */
};

struct profile {
	uint32_t ranks; /* that have been in MPI_Init */
	double app_seconds, mpi_seconds;
	double share_least, share_most; /* of MPI in the time of one rank */
	struct profile_call call[METER_CALLS];
	uint64_t messages[METER_SIZES], bytes[METER_SIZES];
	uint64_t collectives, collective_bytes;
	uint64_t task[METER_TASKS]; /* of all processes with tasks, also without MPI */
};

/* What an agent answers: the node's sums, and its processes if they were asked for. */
struct profile_answer {
	struct profile all;
	struct profile_process each[];
};

/* One rank's meter, as it is now; while it runs all words of it that belong together agree. */
void profile_add_rank(struct profile *p, struct rank_meter *m, uint64_t now_ns);
/* All ranks of one node: meters of others are blank in its segment. */
void profile_add_node(struct profile *p, struct segment *s, uint32_t nranks);

/* Adds what another node's ranks did. */
void profile_merge(struct profile *p, const struct profile *other);

/* Messages and collectives of all ranks of a node so far: how far the program is. */
uint64_t profile_progress(struct segment *s, uint32_t nranks);

/* ---- how fast it goes, with and without a checkpoint being written beside it ---- */

enum profile_phase { PROFILE_DOWN, PROFILE_UNDISTURBED, PROFILE_CHECKPOINT };

/* One stretch of time in one phase. */
struct profile_stretch {
	double seconds;
	uint64_t progress;
};

struct profile_pace {
	enum profile_phase phase;
	double since; /* clock_seconds() */
	uint64_t progress;
	struct profile_stretch undisturbed; /* all stretches */
};

/* A phase ends now and another one begins. last (may be NULL) gets the stretch that ended. */
void profile_pace_turn(struct profile_pace *p, enum profile_phase next, double now,
		       uint64_t progress, struct profile_stretch *last);

/* What a checkpoint cost the program, in seconds: the time it took less the time in which the
 * program comes as far undisturbed. False: it can't be said, the program shows too little progress.
 */
bool profile_checkpoint_cost(const struct profile_pace *p, const struct profile_stretch *during,
			     double *seconds);

/* {"ranks","app_seconds",…} without the closing brace: the caller may add to it. */
void profile_print(const struct profile *p, const char *key, struct json_out *j);

/* The name of a class of calls as it stands in JSON. */
const char *profile_call_name(enum meter_call call);

#endif
