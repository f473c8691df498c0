/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of a job. What happens (agents, signals, timers and requests report it) is an event; the
 * table in policy/job_state.h says for each state what to do, and which state follows. */
#ifndef HALE_HEAD_HEAD_H
#define HALE_HEAD_HEAD_H

#include <stdbool.h>
#include <stdint.h>
#include "head/audit.h"
#include "head/checkpoint/checkpoint.h"
#include "head/faults/faults.h"
#include "head/migration/leave.h"
#include "head/migration/migrate.h"
#include "head/profile/head_profile.h"
#include "head/head_requeue.h"
#include "head/recovery/recovery.h"
#include "head/nodes/node_set.h"
#include "head/job/child_task.h"
#include "node/job.h"
#include "head/output/output_daemon.h"
#include "head/shadows.h"
#include "head/levels/levels.h"
#include "head/standby/warm.h"
#include "launch/options.h"
#include "launch/program.h"
#include "report/report.h"
#include "head/failover/takeover.h"
#include "policy/job_state.h"
#include "policy/recovery.h"
#include "node/living.h"
#include "store/store.h"

struct head_rank {
	bool ended;
	int exit_status; /* as a shell has it; valid when ended */
	bool aborted;	 /* called MPI_Abort */
	int abort_code;
	bool convicted;	    /* it has sent wrong messages (sdc.c), and is being ended */
	double computes_at; /* it was told last that it computes and calls no MPI; 0: never */
	/* --hang-after wait=: it had made so many calls of MPI, since then; waits in one; as of
	 * then */
	uint64_t calls;
	double calls_at, beat_at; /* 0: nothing is known yet */
	bool waits;
	int last_signal; /* that it died of, since the last checkpoint */
	double launched_at;
	struct loop_timer lost; /* its process is gone, the shell that started it is not */
	struct head *head;
};

/* The end of the job, and what leads to it. */
struct head_end {
	bool decided;
	int status;
	uint32_t rank; /* that decided it */
	bool polite;   /* ending, but nobody was told to: ranks end by themselves */
	bool stopping;
	struct loop_timer grace, clearing;
	struct loop_timer timeout;    /* --timeout */
	struct loop_timer unread_end; /* ends the job, as nobody reads … */
	const char *unread;	      /* … its "stdout" or "stderr" */
};

/* What names the job and its head. */
struct head_id {
	char job[JOB_ID_MAX];
	char run[STORE_RUN_MAX]; /* what manifests of this job have, and those of no other */
	char node[64];
};

/* Where the job's files lie. */
struct head_files {
	struct store store;
	bool is_ours; /* nobody else has the store's folder */
	bool is_open;
	char refused[480]; /* why --ckpt-dir can't have automatic checkpoints; "": it can */
	struct record record;
	char wdir[PATH_MAX];  /* of the ranks on other machines */
	char local[PATH_MAX]; /* --ckpt-local, absolute */
};

/* Where another head may follow this one (failover/). */
struct head_succession {
	uint32_t epoch; /* 0: none may, or not yet */
	char tag[ATTACH_TAG];
	bool superseded, save_failed;
	struct takeover *takeover;    /* this one has followed another; NULL: it has not */
	struct takeover_found *found; /* silent errors that were told before it had settled */
};

/* The node of JOB_NODE_LOST: its name, and why. */
struct head_lost {
	char why[256];
	char name[JOB_NODE_NAME];
};

struct head_signals {
	int fd;
	struct loop_source source;
	bool usr2_waits; /* until all ranks run again */
};

/* What is to be done when no manifest is being written any more. */
struct put_off_event {
	job_event_t event;
	uint32_t rank;
	struct head_lost lost; /* of JOB_NODE_LOST */
};

struct head_put_off {
	struct put_off_event *list; /* [count], in their order */
	size_t count;
	bool gone; /* JOB_ALL_GONE is to be looked for again */
	struct loop_timer settled;
};

/* What ranks say of each other (head_partition.c). */
struct head_partition {
	struct partition *table; /* NULL: nobody has said anything */
	uint32_t generation;	 /* of the job's life that it is of */
	uint32_t restarts;	 /* the same; ranks that move change the generation only */
	double known_at;	 /* when silence means something again */
	struct loop_timer timer;
	double due; /* of the timer */
	uint32_t times;
	bool under_way; /* some can't reach each other */
	bool patient;	/* it has been said that the job waits for longer */
};

struct control_server;
struct head_calls;
struct watch;

struct head {
	const struct head_calls *up;
	const struct head_start *start;
	struct options *o;
	const struct program *program;
	struct head_id id;
	struct loop loop;
	struct hosts hosts;
	struct head_rank *ranks;
	uint32_t nranks; /* processes: those of all replicas */
	uint32_t degree; /* replicas of each rank */
	struct living view;
	struct head_shadows shadows;
	struct head_audit audit;
	double hung_at; /* a process that waited was ended; 0: none */
	uint32_t
	    sdc_back; /* the checkpoint that was gone back to since messages differed; 0: none */
	job_state_t state;
	bool mpi_seen;	 /* some rank called MPI_Init */
	bool restarted;	 /* by hale restart: there is no beginning to go back to */
	bool placing;	 /* ranks have new places, and have not been started there */
	bool begin_said; /* the line of its beginning, so that of its end follows */
	uint32_t generation;
	double began, job_began;      /* of this hale; of the job, before restarts too */
	struct loop_timer slow_start; /* says that nodes let the job wait */
	struct head_end end;
	struct head_signals signals;
	struct head_files files;
	struct head_succession succession;
	struct head_lost lost;
	struct report report;
	/* the parts, each with a header of its own */
	struct node_set node_set;
	struct output_daemon output_daemon;
	struct profile_turns profile;
	struct faults faults;
	struct warm warm;
	struct levels levels;
	struct checkpoint ckpt;
	struct migrations moves;
	struct recovery recovery;
	struct head_put_off put_off;
	struct head_partition partition;
	struct head_requeue requeue;
	struct control_server *control;
	struct watch *watch; /* NULL: no events */
};

/* Runs a job to its end; returns the exit status of hale. With a checkpoint (folder of a complete
 * one, read into m) it goes on from there. */
struct head_start {
	struct options *options;
	const struct program *program;
	const char *libdir;
	agent_main_t *agent;
	const char *job;		       /* its id; NULL: to be made */
	const struct store_manifest *manifest; /* NULL: a fresh job */
	const char *job_folder;		       /* of the manifest's checkpoint */
	struct takeover *takeover;	       /* the job runs; the options are those of */
	uint32_t epoch;			       /* the head of this epoch */
};
int head_run(const struct head_start *start);

/* ---- for the files of the head ---- */

/* A sentence about the life of the job, unless --quiet. */
#define head_say(h, ...)                                                                           \
	do {                                                                                       \
		if (!(h)->o->quiet)                                                                \
			log_warn(__VA_ARGS__);                                                     \
	} while (0)

/* Something has happened. While it is not known which checkpoint is the newest, some events wait
 * (head_put_off.c). */
void head_take_event(struct head *h, job_event_t event, uint32_t rank);
/* The same at once: for outcomes and decisions of the head itself. */
void head_take_step(struct head *h, job_event_t event, uint32_t rank);
/* The rank is about to be started, or has ended with this status before the checkpoint (-1: not).
 */
void head_rank_reset(struct head *h, uint32_t rank, int ended_with);
/* Ends everybody and then the job, with this status unless one was decided before. */
void head_end_job(struct head *h, int exit_status);
double head_seconds(const struct head *h); /* since the job began */
const char *head_state_name(const struct head *h);
bool head_all_ready(const struct head *h);
/* Why they are not, and what to do; NULL: they are. */
const char *head_why_not_ready(const struct head *h);
bool head_any_finalized(const struct head *h);
bool head_rank_alive(const struct head *h, uint32_t rank);
hale_status_t head_open_store(struct head *h, struct error *err);

/* head_lines.c: the line that a job begins with, and the one that it ends with. */
void head_say_begin(struct head *h);
/* How many ranks each node has now, into the report. */
void head_report_nodes(struct head *h);
void head_say_end(struct head *h);

/* head_partition.c: rank says that it can't reach peer over the network, or that it can again. */
void head_partition_told(struct head *h, uint32_t rank, uint32_t peer, bool lost);
/* Ranks have moved, and all begin anew to reach each other. */
void head_partition_begin(struct head *h);
void head_partition_fini(struct head *h);

/* "rank 3", or of a job with replicas "replica 1 of rank 3". */
enum { HEAD_NAME = 48 };
const char *head_name(const struct head *h, uint32_t process, char text[HEAD_NAME]);
/* Of a process that is dead: it is to come back. Else its rank is to have no more than it has. */
bool replicas_is_wanted(const struct head *h, uint32_t process);
/* Has this process of a job with replicas died? */
static inline bool replicas_is_lost(const struct head *h, uint32_t process)
{
	return h->view.lost && h->view.lost[process];
}

#include "head/head_calls.h"

#endif
