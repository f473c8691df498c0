/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user asked for on the command line of `hale run` and `hale restart`. */
#ifndef HALE_LAUNCH_OPTIONS_H
#define HALE_LAUNCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "image/image.h"
#include "node/job.h"

/* What each rank is bound to; from BIND_L3 on all of the one that its first core is in. */
typedef enum bind_to {
	BIND_DEFAULT,
	BIND_NONE,
	BIND_CORE,
	BIND_L3,
	BIND_NUMA,
	BIND_SOCKET,
	BIND_KINDS
} bind_to_t;

/* What becomes of the checkpoints of a job that has ended with status 0. By default those are
 * removed that nobody has asked for. */
typedef enum on_success { SUCCESS_DEFAULT, SUCCESS_KEEP, SUCCESS_REMOVE } on_success_t;

/* What a fault changes a bit of: memory of the program; messages as they leave; messages as if the
 * program had computed them wrongly. */
typedef enum fault_flip { FLIP_NONE, FLIP_MEMORY, FLIP_MESSAGE, FLIP_RESULT } fault_flip_t;

/* What is done with a message that a rank's replicas have sent differently, and of which nobody
 * knows which one is right. */
typedef enum on_sdc { ON_SDC_STOP, ON_SDC_ROLLBACK } on_sdc_t;

/* A fault to inject: who dies, of what, and when. Exactly one of the four whens is set. */
struct fault {
	long rank;     /* -1: any, drawn with the seed */
	char node[64]; /* instead of a rank: all processes that run there, now or later */
	long slot;     /* which of its replicas */
	int signal;
	fault_flip_t flip;	 /* bits that change instead: then count of them, */
	uint32_t every;		 /* in each so manieth message */
	double after, after_max; /* seconds since launch, drawn between the two; < 0: not so */
	char call[64];		 /* at the count'th call of this MPI function */
	uint64_t count;
	uint32_t at_checkpoint; /* when this checkpoint has been asked of the ranks */
	uint32_t at_restart;	/* when this restart has spawned its processes */
};

/* warm_sinks: as many as ranks may come; spares are not made warm at all. */
enum { WARM_ALL = -1, WARM_OFF = -2 };

enum { OPTIONS_FAULTS_MAX = 64, OPTIONS_MONITORS_MAX = 8 };

struct options {
	/* what to run */
	long ranks;
	long replicas;		 /* processes of each rank */
	const char *replicas_of; /* of these ranks at the beginning (rank_list.h); NULL: of all */
	long replicas_first;	 /* so many processes of these at first; 0: as many as replicas */
	long shadows; /* the second process of each rank is a shadow, of so many a core; 0: none */
	double shadow_rate;    /* of a core, that each may use; 0: by their number */
	long rejuvenate_after; /* failures after which sets get back what they lack; 0: never */
	uint64_t jump_at;      /* bytes of a shadow's log from which on it jumps; 0: by its log */
	bool jumps_off;	       /* … never */
	long spawn;	       /* processes in reserve for MPI_Comm_spawn; -1: not said */
	long reserve;	       /* so many of ranks are those, and their keeper */
	double hang_after;     /* a rank that is stopped for so long counts as dead; 0: never */
	double hang_compute;   /* … that computes for so long without a call of MPI; 0: never */
	double hang_wait; /* … that stands still for so long while another replica is ahead */
	bool replenish;	  /* dead replicas come back */
	const char *sdc;  /* --sdc: "hash", "full"; NULL: messages are not compared */
	on_sdc_t on_sdc;
	bool given_on_sdc, given_shadows, given_audit;
	double audit;	      /* --audit: seconds that each rank is visited for; 0: none is */
	long nodes, per_node; /* 0: not said */
	long spares;	      /* nodes that get ranks when others are lost */
	bool step;	      /* a rank for each task of the Slurm step (slurm_step.h) */
	const char *hosts;    /* file of hosts; NULL: not said */
	const char *host_list;
	const char *launcher; /* template; NULL: ssh, or srun in a Slurm allocation */
	bool net_encrypt;     /* what ranks of different nodes send each other */
	double head_grace;    /* seconds that the job outlives its head; 0: not at all */
	bool agent_lost_ends; /* a node's ranks end with its agent; otherwise another one goes on */
	long warm_sinks;      /* processes that stand ready on a spare; or WARM_… */
	double node_timeout;  /* seconds without a word after which a node is given up */
	char **program;	      /* argv of the program, NULL-terminated; points into main's argv */
	char **merged;	      /* of several programs, the one that program is; owned */
	char **wrapped;	      /* --output-filename: the shell that program is; owned */
	const char *app, *output_folder; /* --app, --output-filename; NULL: without */
	const char *wdir;
	bool no_mpi;
	char **exports; /* VAR=VAL of -x, NULL-terminated; owned */
	size_t export_count;
	bind_to_t bind;
	const char *cpu_set; /* cores of this machine that the job may use; NULL: all */
	bool no_stdin;
	bool report_bindings, display_map;
	double timeout; /* seconds after which the job is ended; 0: never */
	/* checkpoints */
	double ckpt_every; /* seconds; 0: only on request, or automatic */
	bool ckpt_auto;	   /* as often as their cost and failures ask for (policy/cadence.h) … */
	double ckpt_first; /* … the first after so many seconds */
	double overhead;   /* the largest share of the run time that automatic ones may cost */
	double mtbf;	   /* seconds between failures of the job; 0: not said */
	on_success_t on_success;
	bool requeue;		   /* a batch system ends it, and it goes on in its next life … */
	char lives_as[JOB_ID_MAX]; /* … under this name */
	double ckpt_wait;   /* seconds that a checkpoint waits until ranks have no children */
	bool ckpt_required; /* a job that is unprotected ends */
	const char *ckpt_dir;
	const char *ckpt_local; /* template of a folder on each node; NULL: images go to ckpt_dir */
	long shared_every;	/* each so many of these go to ckpt_dir, too; 0: none */
	long keep;
	long max_restarts;
	bool incremental;
	bool no_fsync;
	bool leave_files; /* a rollback leaves files as they are */
	image_compress_t compress;
	image_restart_t restart;
	/* which of the above were on the command line: `hale restart` takes the others from the
	 * checkpoint */
	bool given_every, given_dir, given_keep, given_compress, given_incremental, given_tag,
	    given_max_restarts, given_net_security, given_local, given_shared_every, given_auto,
	    given_ranks, given_replicas;
	/* what to show */
	bool tag, timestamp, verbose, quiet;
	closed_output_t on_closed_output;
	const char *report, *profile;
	/* events (watch.h) */
	bool events, no_events;
	const char *rules; /* file; NULL: those that Hale ships */
	const char *monitors[OPTIONS_MONITORS_MAX];
	size_t monitor_count;
	/* tasks (node/task_settings.h) */
	const char *tasks; /* what --tasks= says, "": nothing; NULL: without */
	const char *due;   /* memory errors to pretend in tasks: what follows due:; NULL: none */
	/* faults */
	uint64_t seed;
	struct fault faults[OPTIONS_FAULTS_MAX];
	size_t fault_count;
	char bare[256];	   /* times that were given without a unit */
	char twice[256];   /* options that were given again, with another value */
	char without[256]; /* options that have no meaning here, for one sentence */
	/* instead of running */
	bool help, version;
};

typedef enum options_for { OPTIONS_RUN, OPTIONS_RESTART } options_for_t;

/* Parses argv[1..] (argv[0] is the command). HALE_ERR_ARGUMENT with a sentence. For
 * OPTIONS_RESTART program[0] is the checkpoint. Notes about options that mean nothing here go to
 * the log at info level. */
hale_status_t options_parse(struct options *o, options_for_t which, int argc, char **argv,
			    struct error *err);
/* Is there an option of hale run with that name that does what it says? */
bool options_offers(const char *name);
/* How many words follow that option of hale run; 0 also for one that is not known. */
int options_values(const char *name);
/* Is it one that hale restart does not take? */
bool options_of_run_only(const char *name);

/* One more VAR=VALUE for the ranks; takes assignment over (NULL: out of memory). */
hale_status_t options_export(struct options *o, char *assignment, struct error *err);

/* Adds the processes in reserve that --spawn asks for, or that a program gets which calls
 * MPI_Comm_spawn. HALE_ERR_UNSUPPORTED: this job can have none. */
hale_status_t options_reserve(struct options *o, bool spawns, struct error *err);

void options_fini(struct options *o);
/* hale restart: of a job with so many ranks, and room for degree processes of each. HALE_OK, or a
 * sentence: what was asked for can't be had with it. */
hale_status_t options_restart_replicas(struct options *o, uint32_t ranks, uint32_t degree,
				       uint32_t shadows, struct error *err);
/* The same of audits: audit is what the checkpoint says, 0: none. After options_restart_replicas.
 */
hale_status_t options_restart_audit(struct options *o, double audit, struct error *err);

/* 'kill:rank=1,after=3s', 'kill:rank=any,at-call=MPI_Allreduce:100', … */
hale_status_t options_parse_fault(const char *text, struct fault *f, struct error *err);

/* "KILL", "SIGKILL" or "9"; 0: none of that name. */
int options_signal_number(const char *name);

#endif
