/* SPDX-License-Identifier: BSD-3-Clause */
/* What protection of OpenCL programs found and cost: the form in which a process hands it on
 * (HALE_OPENCL_REPORTS, docs/opencl.md), and the three in which users get it. Agreed between the
 * layer in the program (epoch/report.c) and `hale run --opencl`, which adds up its processes. */
#ifndef HALE_NODE_OCL_ACCOUNT_H
#define HALE_NODE_OCL_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/json.h"

enum account_count {
	ACCOUNT_SYNCS,
	ACCOUNT_EPOCHS,
	ACCOUNT_COMMANDS,
	ACCOUNT_CHECKS,
	ACCOUNT_CHECKPOINTS,
	ACCOUNT_ERRORS,
	ACCOUNT_RECOVERIES,
	ACCOUNT_MOVES,
	ACCOUNT_COUNTS
};

/* Seconds, each apart from the others. */
enum account_share {
	ACCOUNT_LOG,
	ACCOUNT_CHECK,
	ACCOUNT_CHECKPOINT,
	ACCOUNT_CONSOLIDATE,
	ACCOUNT_RESTORE,
	ACCOUNT_REPLAY,
	ACCOUNT_SHARES
};

/* Bytes: of host data logged, written to checkpoints, found unchanged, … */
enum account_bytes {
	ACCOUNT_LOGGED,
	ACCOUNT_SAVED,
	ACCOUNT_SKIPPED,
	ACCOUNT_CONSOLIDATED,
	ACCOUNT_RESTORED,
	ACCOUNT_BYTES
};

struct account {
	uint64_t processes; /* that this is the sum of */
	int pid;	    /* of one */
	uint64_t count[ACCOUNT_COUNTS], bytes[ACCOUNT_BYTES];
	double share[ACCOUNT_SHARES];
	double move; /* s: making everything anew elsewhere; no part of the shares */
	double wall; /* s */
	char device[128], moved_to[128];
};

/* Of the time that the run would have taken without, in percent; moves, which may start a server,
 * stand apart. */
double account_overhead(const struct account *a);
/* Adds what a process has handed on. */
void account_add(struct account *a, const struct json_value *of);
/* As an object without a name. */
void account_json(const struct account *a, struct json_out *j);
/* By the ending of its name: .json; .svg and .png: a stacked bar as in the figures of VOCL-FT,
 * drawn by gnuplot; else text. NULL: it is written; else why not, and nothing has been said. */
const char *account_write(const struct account *a, const char *path);
/* That file would be a picture, or text: no JSON. */
bool account_is_picture(const char *path);
bool account_is_text(const char *path);

#endif
