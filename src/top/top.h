/* SPDX-License-Identifier: BSD-3-Clause */
/* top/: the live view of `hale top`, a program of its own (PREFIX/lib/hale/hale-top), so that
 * neither hale nor any library in programs needs ncurses. It asks the jobs' heads as `hale ps`
 * does, and has `hale ckpt`, `migrate`, `inject` and `events` do what is asked for.
 *
 *   data.c   what the heads say, and how fast numbers grow
 *   local.c  what the kernel says of ranks on this machine
 *   rows.c   which rows a table has, in which order: pure
 *   draw.c   the screen;  main.c  keys and time
 *
 * May call: control/ (the client; follow.c: commands that run beside it), base/. Called by: the command `hale top`, by exec. */
#ifndef HALE_TOP_TOP_H
#define HALE_TOP_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "node/job.h"
#include "control/follow.h"

struct top_rank {
	int rank, slot;
	bool leader, local;
	int node; /* in the job's nodes; -1: not known */
	pid_t pid;
	char state[16];
	char kernel;		  /* state as in /proc/PID/stat; '?': of another machine; 0: not known */
	char inside[32];	  /* the MPI function that it waits in, as its agent says; "": none */
	uint64_t memory;	  /* bytes */
	double cpu_seconds, cpu_at; /* used so far, and clock_seconds() of that; 0: never read */
	double cpu;		  /* cores in use; < 0: not known */
};

struct top_node {
	char name[64], host[64], state[16];
	int ranks, cores;
	bool usable, local, folded;
};

struct top_pace {
	double at, value, rate; /* rate < 0: not known */
};

struct top_job {
	char id[JOB_ID_MAX], program[256], state[16], why[256];
	bool answers, unprotected, replicas, has_checkpoint;
	double seconds, checkpoint_age, unprotected_since, lost_seconds;
	double dirty; /* bytes of memory a second that change; < 0: not known */
	int64_t restarts, checkpoint, checkpoint_bytes, faults, recovered;
	struct top_rank *ranks;
	size_t rank_count;
	struct top_node *nodes;
	size_t node_count;
	/* of the job that is looked at */
	struct top_pace calls, messages, bytes;
	double mpi_share; /* < 0: not known */
};

struct top_data {
	struct top_job *jobs;
	size_t count;
};

/* Asks all heads. wanted: the job to know more about, or NULL. */
void top_data_read(struct top_data *d, const char *wanted);
struct top_job *top_data_find(const struct top_data *d, const char *id);
void top_data_fini(struct top_data *d);
/* A rate from two values of a counter; one that has gone back begins anew. */
void top_pace_add(struct top_pace *p, double at, double value);

/* Processor and memory of a job's ranks on this machine. */
void top_local_read(struct top_job *job);
/* What its agent says of a rank; of local ones the kernel itself is asked for the rest. */
void top_told(struct top_rank *r, const char *inside, double cpu_seconds, uint64_t memory);
/* The MPI function that it is in, or "computes", "waits", …: from the kernel's state and the
 * processor that it has used. */
const char *top_does(const struct top_rank *r);
/* What can be said of a process in lines; to be freed. */
char *top_local_describe(pid_t pid);

/* ---- rows.c ---- */

typedef enum top_sort {
	TOP_SORT_NODE,
	TOP_SORT_RANK,
	TOP_SORT_STATE,
	TOP_SORT_CPU,
	TOP_SORT_MEMORY,
	TOP_SORTS
} top_sort_t;

struct top_row {
	int node; /* this node's line, and rank is -1 */
	int rank; /* index in the job's ranks */
};

/* The rows of a job: with TOP_SORT_NODE each node and, unless it is folded, its ranks; otherwise
 * the ranks. filter: only ranks one of whose columns has that text, in any case; "": all. Returns
 * how many there are; rows has room for ranks + nodes. */
size_t top_rows(const struct top_job *job, top_sort_t sort, const char *filter,
		struct top_row *rows);
/* An event's line as `hale events` has it, without what a narrow screen needs least: date, namespace
 * and job. What is no such line stays as it is. */
void top_event_text(const char *line, size_t len, char *text, size_t size);
/* "2 running, 1 checkpointing" of a node's ranks. */
void top_node_summary(const struct top_job *job, int node, char *text, size_t size);

/* ---- the screen ---- */

typedef enum top_view { TOP_JOBS, TOP_JOB, TOP_RANK } top_view_t;

typedef enum top_action { TOP_NOTHING, TOP_CHECKPOINT, TOP_MIGRATE, TOP_INJECT } top_action_t;

struct top {
	const char *hale; /* the program to run commands with */
	struct top_data data;
	top_view_t view;
	char job[JOB_ID_MAX]; /* that is looked at */
	size_t at, first;     /* the row under the cursor; the first one shown */
	struct top_row *rows;
	size_t row_count;
	top_sort_t sort;
	char filter[64];
	bool filtering, help;
	/* a rank that is looked at */
	int rank, slot;
	char *described;
	size_t scroll;
	/* asked twice */
	top_action_t asked;
	int asked_times;
	char asked_about[160];
	char target[64];
	char said[256]; /* the last line */
	struct follow events, action, stack;
	char events_of[JOB_ID_MAX];
	bool seen; /* a job to start with has been there */
};

void top_draw(struct top *t);
/* How many rows of a table there is room for. */
size_t top_draw_room(const struct top *t);
struct top_job *top_current(const struct top *t);

#endif
