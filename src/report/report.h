/* SPDX-License-Identifier: BSD-3-Clause */
/* What happened to a job: collected while it runs, written as JSON when it ends (--report), and
 * line by line into the job's record on disk. */
#ifndef HALE_REPORT_REPORT_H
#define HALE_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"
#include "base/timestamp.h"
#include "report/profile.h"

struct report_checkpoint {
	uint32_t id, base;
	uint64_t bytes;
	double pause_seconds, seconds, at_seconds;
	bool complete, lz4, compressed; /* compressed: by anything */
	int level;		       /* docs/levels.md: 1, 2 or 4; 0: not complete */
	double copied_seconds;	       /* until that level was reached, since it was complete */
	struct profile_stretch during; /* how far the program came meanwhile */
	char why[160];		       /* not complete */
};

/* Mean and spread of something measured several times. */
struct report_series {
	uint64_t count;
	double sum, squares;
};

/* Of complete checkpoints: [0] full, [1] incremental ones. */
struct report_sums {
	struct report_series bytes, pause, seconds, cost;
};

enum {
	REPORT_CHECKPOINTS = 10000, /* in the report: the newest … */
	REPORT_FORGOTTEN = 1000,    /* … of which so many are forgotten at a time */
	REPORT_INHERITED = 200,	    /* those that a new head gets */
};

/* What came of one. */
typedef enum report_then {
	REPORT_ENDS,	  /* nothing: the job ends */
	REPORT_GOES_BACK, /* all ranks */
	REPORT_GOES_ON,	  /* the rank, in another replica */
	REPORT_THENS
} report_then_t;

struct report_failure {
	uint32_t rank, slot;
	char node[64];
	char reason[280];
	double at_seconds;
	report_then_t then;
	uint32_t rolled_back_to; /* 0: the beginning, or nothing */
	bool together;		 /* with the one before, which has the seconds of both */
	bool by_itself; /* the program has ended so: MPI_Abort, a status; no machine has failed */
	double lost_seconds;
	double restart_seconds; /* until all ranks ran again; 0: they did not, or anew */
};

/* From a time on a node has so many ranks, until its next entry. */
struct report_stay {
	char node[64];
	uint32_t ranks; /* 0: a spare, or lost */
	double at_seconds;
};

enum { REPORT_STAYS = 1000 }; /* what comes later is not written down */

/* Of the backplane; a payload may be longer. */
struct report_event {
	double at_seconds;
	char time[TIMESTAMP_SIZE]; /* of the day, as `hale events` has it */
	char severity[8], space[64], name[64], host[64], payload[400];
};

/* The newest so many, of INFO so many when there are more. */
enum { REPORT_EVENTS = 300, REPORT_EVENTS_INFO = 100, REPORT_EVENTS_INHERITED = 50 };

struct report_migration {
	char from[64], to[256];
	uint32_t ranks;
	uint64_t bytes;	  /* that went over */
	uint64_t relayed; /* of them, and of what went back: those that passed hale run */
	uint64_t stopped; /* of them, those that went while the program stood still */
	uint32_t rounds,
	    held; /* of the rank that had most: ahead of the stop, held (docs/migration.md) */
	double seconds, downtime_seconds;
	double at_seconds;
};

/* A replica that was dead and is there again, as a copy of another one of its rank. */
struct report_clone {
	uint32_t rank, slot;
	char from[64], to[64];
	uint64_t bytes, same_bytes; /* sent; had before by the process whose place it takes */
	/* ahead, while the program ran; until all stood still; until the copy was whole; until all
	 * ran again. The last three are the downtime */
	double precopy_seconds, quiesce_seconds, clone_seconds, resume_seconds;
	double downtime_seconds, at_seconds;
	double vulnerable_seconds; /* since its death: the rank had one replica less */
};

/* A main has died, and its shadow is the main (docs/shadows.md). */
struct report_promotion {
	uint32_t rank, set;
	char from[64], to[64]; /* nodes */
	uint64_t log_bytes;    /* that the shadow had still to consume, as it said last */
	uint32_t stopped;      /* shadows of its set that stopped for it */
	double at_seconds;
};

/* A shadow has got the state of its main. */
struct report_jump {
	uint32_t rank;
	uint64_t bytes;	     /* from main to shadow */
	uint64_t same_bytes; /* that the shadow had already */
	uint64_t log_bytes;  /* that its log had */
	double seconds, pause_seconds, at_seconds;
	char why[16]; /* "log", "failure", "rejuvenation" */
};

/* Of a job with shadows. Modelled (policy/energy.h), in seconds of one core at full power: of its
 * mains, of its shadows, and of twice the mains (--replicas 2). Measured, of the machine: joules.
 */
struct report_energy {
	bool known, measured;
	double joules;
	double static_part, mains, shadows, twins;
};

/* Of all shadows, while they were some: seconds, of these of processor time; what came of messages,
 * and of that what their programs have come to. */
struct report_speed {
	double seconds, cpu_seconds;
	uint64_t came_bytes, eaten_bytes;
	char held[8]; /* "core", "sleep", "weight": what makes them slow; "": not known */
};

struct report_shadows {
	uint32_t size, sets; /* S; 0: the job has no shadows */
	struct report_speed speed;
	struct report_energy energy;
	struct report_promotion *promotions;
	size_t promotion_count;
	struct report_jump *jumps;
	size_t jump_count;
};

/* Replicas of a rank have sent different messages. */
struct report_sdc {
	uint32_t rank, peer; /* the message is of rank, to peer */
	int slot;	     /* of the replica that is wrong; -1: nobody knows which one */
	char node[64];	     /* that replica's; "": of all of them */
	uint32_t context, message, bytes;
	bool named; /* bytes first to last differ */
	uint32_t first, last;
	bool envelope;	 /* its length, tag or kind differ */
	char action[16]; /* "corrected", "stopped", "rolled back" */
	double at_seconds;
};

/* A visit of --audit to one rank (docs/audit.md). */
struct report_audit {
	uint32_t rank;
	char node[64], twin[64], witness[64]; /* where they ran; "": it did not come to that */
	uint64_t bytes;			      /* of both copies */
	double seconds;			      /* that messages were compared */
	double pause_seconds;		      /* that the program stood still for the copies */
	char result[16];		      /* "agreed", "differed", "cut short" */
	char wrong[64];			      /* the node of the process that was wrong */
	double at_seconds;
};

/* The last checkpoint that was wanted was refused, or failed, and so were all since. */
struct report_unprotected {
	bool is;
	double since_seconds; /* of the job's time */
	char why[480];
};

/* Tasks and checkpoints together (model/unified.h), as measured so far; of a job with --tasks. */
struct report_unified {
	bool is;
	double coverage, memory, task_waste;
	double due_rate_hz, ckpt_s, restart_s;
	double system_interval_s, interval_s, score;
};

struct report {
	const char *job;
	uint32_t ranks;
	uint64_t seed;
	uint32_t restarts;
	uint32_t degree; /* replicas of each rank; 1: none */
	uint32_t replicas_lost;
	uint32_t agents_replaced;
	uint32_t warm_sinks; /* processes that stood ready on a spare and became ranks */
	struct report_checkpoint *checkpoints; /* the newest */
	size_t checkpoint_count;
	uint64_t checkpoints_before; /* those that are counted and summed up only */
	struct report_sums before[2];
	struct report_failure *failures;
	size_t failure_count;
	struct report_migration *migrations;
	size_t migration_count;
	struct report_stay *stays; /* in the order of time */
	size_t stay_count;
	struct report_event *events; /* in the order of time */
	size_t event_count;
	uint64_t events_before; /* that were left out */
	struct report_clone *clones;
	size_t clone_count;
	struct report_shadows shadows;
	bool compares;		    /* --sdc */
	bool audits;		    /* --audit */
	struct report_audit *audit; /* the newest REPORT_AUDITS */
	size_t audit_count;	    /* of all */
	struct report_sdc *sdc;	    /* the first REPORT_SDC_MAX */
	size_t sdc_count;	    /* of all */
	struct profile profile;
	struct profile_pace pace;
	struct report_unprotected unprotected;
	struct report_unified unified;
};

void report_fini(struct report *r);
void report_add_checkpoint(struct report *r, const struct report_checkpoint *c);
/* The number of the newest, counted from 1 over all; that one, or NULL if it isn't in the list. */
uint64_t report_newest_checkpoint(const struct report *r);
struct report_checkpoint *report_checkpoint_at(const struct report *r, uint64_t number);
/* Adds what the first n of the list say to sums. */
void report_sum_up(const struct report *r, size_t n, struct report_sums sums[2]);
void report_add_migration(struct report *r, const struct report_migration *m);
void report_add_promotion(struct report *r, const struct report_promotion *p);
void report_add_jump(struct report *r, const struct report_jump *jump);
void report_print_promotion(const struct report_promotion *p, struct json_out *j);
void report_print_jump(const struct report_jump *jump, struct json_out *j);
/* "energy":{…} into the open object of j, if it is known. */
void report_print_energy(const struct report_energy *e, struct json_out *j);
/* "speed":{…} into the open object of j, if it is known. */
void report_print_speed(const struct report_speed *s, struct json_out *j);
/* "shadows":{…} into the open object of j, if the job has any. */
void report_print_shadows(const struct report *r, struct json_out *j);
void report_add_clone(struct report *r, const struct report_clone *c);
/* The node has so many ranks now; nothing changes when it had as many. */
void report_node_has(struct report *r, const char *node, uint32_t ranks, double at_seconds);
/* "nodes":[{"node","ranks","at_seconds"}…] into the open object of j, and from there. */
void report_print_nodes(const struct report *r, struct json_out *j);
void report_read_nodes(struct report *r, const struct json_value *v);
void report_add_event(struct report *r, const struct report_event *e);
/* The newest `most`: "events":[{"time","at_seconds","severity","namespace","name","host",
 * "payload"}…], with "events_before":N if there were N more; and from there. */
void report_print_events(const struct report *r, size_t most, struct json_out *j);
void report_read_events(struct report *r, const struct json_value *v);
/* Those beyond REPORT_SDC_MAX are counted only. */
enum { REPORT_SDC_MAX = 1000 };
void report_add_sdc(struct report *r, const struct report_sdc *s);
void report_print_clone(const struct report_clone *c, struct json_out *j);
enum { REPORT_AUDITS = 1000 };
void report_add_audit(struct report *r, const struct report_audit *a);
void report_print_audit(const struct report_audit *a, struct json_out *j);
/* "audit_count" and "audits":[…] into the open object of j, if the job has any. */
void report_print_audits(const struct report *r, struct json_out *j);
/* One of them read again; and all that a report says of replicas, clones, silent errors, audits. */
void report_read_audit(struct report_audit *a, const struct json_value *v);
void report_read_replicas(struct report *r, const struct json_value *v);
/* What became of it, into the open object of j. */
void report_print_migration(const struct report_migration *m, struct json_out *j);
/* The added failure, to be completed; valid until the next one is added. NULL: no memory. */
struct report_failure *report_add_failure(struct report *r, uint32_t rank, const char *node,
					  const char *reason, double at_seconds);

/* {"job","exit","ranks","wall_seconds","restarts","checkpoints":[…],"failures":[…],
 * "migrations":[…],"nodes":[…],"events":[…],"seed"} into a
 * new JSON text; with "profile":{…} if any rank was in MPI_Init, with "checkpoints_before":N if
 * there were N more before those in the list. */
void report_print(const struct report *r, int exit_status, double wall_seconds, struct json_out *j);
hale_status_t report_write(const struct report *r, const char *path, int exit_status,
			   double wall_seconds, struct error *err);

/* "unprotected":{"since_seconds","why"} into the open object of j, if it is. */
void report_print_unprotected(const struct report *r, struct json_out *j);

/* The same for a new head: as short for a job of a month as for one of an hour. */
void report_print_inherited(const struct report *r, struct json_out *j);
/* What either has printed, but for the profile, into an empty report. */
void report_read(struct report *r, const struct json_value *v);
/* The profile alone, as an object (key NULL: at the top), and into a file. */
void report_print_profile(const struct report *r, const char *key, double wall_seconds,
			  struct json_out *j);
hale_status_t report_write_profile(const struct report *r, const char *path, double wall_seconds,
				   struct error *err);
/* Such a file could be written: a file beside it can be made. what: "report", for the sentence. */
hale_status_t report_probe(const char *what, const char *path, struct error *err);
/* A text beside path and then renamed: who waits for the file never sees half of it. */
hale_status_t report_write_text(const struct json_out *j, const char *what, const char *path,
				struct error *err);

/* ---- the record: <job folder>/record.jsonl ---- */

struct record {
	int fd;	     /* -1: there is no folder yet */
	char *early; /* what happened before there was one; owned */
	size_t early_len;
};

void record_init(struct record *r);
void record_fini(struct record *r);
/* From now on into this folder, beginning with what happened before. */
void record_open(struct record *r, const char *job_folder);
/* One event: {"at": seconds since 1970, "event": …} begun; the caller adds keys, then record_end.
 */
void record_begin(struct json_out *j, const char *event);
void record_end(struct record *r, struct json_out *j);

#endif
