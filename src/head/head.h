/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of a job. What happens (agents, signals, timers and requests report it) is an event; the
 * table in policy/job_state.h says for each state what to do, and which state follows. */
#ifndef HALE_HEAD_HEAD_H
#define HALE_HEAD_HEAD_H

#include <stdbool.h>
#include <stdint.h>
#include "head/nodes/node_set.h"
#include "head/job/child_task.h"
#include "node/job.h"
#include "head/output/output_daemon.h"
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
	int last_signal; /* that it died of, since the last checkpoint */
	double launched_at;
	struct loop_timer lost; /* its process is gone, the shell that started it is not */
	struct head *head;
};

enum checkpoint_phase { CKPT_IDLE, CKPT_CHECKING, CKPT_CAPTURING, CKPT_WRITING, CKPT_COMMITTING };

struct checkpoint_rank {
	bool asked, resumed, written;
	struct store_part part;
};

typedef enum ckpt_origin { ORIGIN_TIMER, ORIGIN_USER, ORIGIN_PROGRAM, ORIGIN_RULE } ckpt_origin_t;

struct checkpoint {
	enum checkpoint_phase phase;
	bool wanted; /* to be started as soon as the job can */
	bool shared; /* it goes to the shared folder, whatever else (levels.h) */
	ckpt_origin_t origin;
	uint32_t id, base, last_id;
	bool chain_broken;     /* the next one must be full */
	uint32_t chain_length; /* since the last full one */
	char folder[PATH_MAX];
	double began, phase_began, moved_at;
	uint64_t bytes_seen, bytes_expected;
	bool progress_shown;
	uint32_t resumed, written, asked;
	uint32_t looks;
	bool halted_said;    /* that it waits for a rank that somebody has stopped */
	uint32_t idle_looks; /* times in a row that somebody's image had nobody to write it */
	struct checkpoint_rank *ranks;
	char last_refusal[480];
	struct store_manifest manifest; /* COMMITTING */
	struct errand commit;		/* writes it, and syncs */
	struct errand sweep;		/* removes what is not kept */
	bool unswept;			/* there has come more since that began */
	struct loop_timer interval, watch;
	/* checkpoint_auto.c */
	double quiet_since; /* the last one was complete, or the last attempt was made */
	uint32_t attempts;  /* of the timer, since the last one that was complete */
	bool asked_for;	    /* somebody has asked for one, so the job's are kept */
	/* checkpoint_wait.c */
	double waits_since; /* for a moment without child processes; 0: it does not */
	double look;	    /* seconds until the next look */
	bool wait_said;
	struct loop_timer again;
};

struct recovery {
	uint64_t *sums; /* [chain_count][nranks]: checksums of the images, as manifests have them */
	uint32_t target;	   /* checkpoint; 0: from the beginning */
	char folder[PATH_MAX];	   /* of the job's checkpoints; "": none yet */
	struct recovery_skip skip; /* checkpoints that are not gone back to */
	char refused[480];	   /* why the last one was refused that was tried; "": none was */
	bool first;		   /* the restore that hale restart begins with */
	bool moving;		   /* ranks leave a node: nothing has failed */
	struct store_manifest manifest;
	uint32_t chain[STORE_CHAIN_MAX];
	size_t chain_count;
	/* after a lazy restart: children read all of the images while the ranks run from them */
	bool checking;
	struct error *verdicts; /* shared with the children; [nranks] */
	pid_t *checkers;	/* [nranks]; 0: done or not begun */
	uint32_t next_check, checkers_running;
	double began;
	struct loop_timer deadline;
	/* recover_files.c */
	struct errand undo;
	bool undone; /* the files are what they were at checkpoint undo_target, or said not to be */
	uint32_t undo_target;
	bool journal_only; /* nothing else has needed the job's folder so far */
	size_t dir_there;  /* so much of --ckpt-dir's name was there before */
	char **exports;	   /* the user's, and journal_text; NULL: not made yet */
	char journal_text[STORE_FOLDER_MAX + 16];
};

struct armed_fault {
	struct fault fault;
	uint32_t process; /* whom it meets */
	bool done;
	struct loop_timer timer;
	struct head *head;
};

/* The phase of the profile changes as soon as the meters of all ranks have come in. */
struct profile_turn {
	uint32_t look;
	enum profile_phase next;
	double at;
	uint64_t checkpoint; /* whose stretch ends: its number in the report; 0: none */
	struct profile_turn *next_turn;
};

/* What is to be done when no manifest is being written any more. */
struct head_put_off {
	job_event_t event;
	uint32_t rank;
	char lost_why[256]; /* of JOB_NODE_LOST, as head.lost_why */
	char lost_name[JOB_NODE_NAME];
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

struct control;
struct head_calls;
struct watch;
struct migration;

struct head {
	const struct head_calls *up;
	struct options *o;
	const struct program *program;
	const char *libdir;
	char job[JOB_ID_MAX];
	char run[STORE_RUN_MAX]; /* what manifests of this job have, and those of no other */
	char node[64];
	struct loop loop;
	struct crew crew;
	struct head_rank *ranks;
	uint32_t nranks; /* processes: those of all replicas */
	uint32_t degree; /* replicas of each rank */
	struct living view;
	job_state_t state;
	bool exit_decided;
	int exit_status;
	uint32_t exit_rank; /* that decided it */
	bool polite;	    /* ending, but nobody was told to: ranks end by themselves */
	bool mpi_seen;	    /* some rank called MPI_Init */
	bool restarted;	    /* by hale restart: there is no beginning to go back to */
	uint32_t generation;
	double began, job_began; /* of this hale; of the job, before restarts too */
	int signals;
	struct loop_source signal_source;
	struct loop_timer grace, clearing, leave, slow_start;
	struct loop_timer timeout;    /* --timeout */
	struct loop_timer unread_end; /* ends the job, as nobody reads … */
	const char *unread;	      /* … its "stdout" or "stderr" */
	bool stopping;
	struct store store;
	bool store_is_ours; /* nobody else has its folder */
	bool store_is_open;
	struct record record;
	struct report report;
	struct checkpoint ckpt;
	struct levels levels;
	struct recovery recovery;
	struct migration *move;	     /* NULL: none is under way */
	struct migrate_wish *wishes; /* those that wait for their turn, in its order */
	uint32_t last_wish;
	double waiting_since; /* the first of them, when nothing is in its way */
	struct loop_timer next_move;
	struct armed_fault faults[OPTIONS_FAULTS_MAX];
	size_t fault_count;
	uint64_t random;
	struct control *control;
	const struct head_start *start;
	/* where another head may follow this one (takeover.h) */
	uint32_t epoch; /* 0: none may, or not yet */
	char tag[ATTACH_TAG];
	struct keeper keeper;
	bool superseded, save_failed;
	bool begin_said;	   /* the line of its beginning, so that of its end follows */
	char store_refused[480];   /* why --ckpt-dir can't have automatic checkpoints; "": it can */
	bool placing;		   /* ranks have new places, and have not been started there */
	struct takeover *takeover; /* this one has followed another; NULL: it has not */
	struct hosts hosts;
	char wdir[PATH_MAX];	  /* of the ranks on other machines */
	char local[PATH_MAX];	  /* --ckpt-local, absolute */
	enum profile_phase phase; /* that the newest of the turns leads to */
	struct profile_turn *turns;
	uint32_t final_look;
	char lost_why[256]; /* the node of JOB_NODE_LOST: its name, and why */
	char lost_name[JOB_NODE_NAME];
	struct head_put_off *put_off; /* [put_off_count], in their order */
	size_t put_off_count;
	bool gone_put_off; /* JOB_ALL_GONE is to be looked for again */
	struct loop_timer settled;
	struct head_partition partition;
	struct warm warm;
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
void head_say_end(struct head *h);

/* head_profile.c: call the first when the state of the job or of its checkpoint has changed, before
 * a new layout. */
void head_profile_turn(struct head *h);
/* The newest turn ends the stretch of this checkpoint of the report. */
void head_profile_of_checkpoint(struct head *h, uint64_t number);
void head_profile_looked(struct head *h, uint32_t look, const struct profile *p, uint64_t progress);
void head_profile_end(struct head *h); /* the last look has come: into --profile's file */
void head_profile_fini(struct head *h);

/* checkpoint.c */
void checkpoint_init(struct head *h);
void checkpoint_fini(struct head *h);
/* HALE_OK: under way, or will be; the control and the program hear of the end. Otherwise refused.
 */
hale_status_t checkpoint_request(struct head *h, ckpt_origin_t origin, struct error *err);
void checkpoint_checked(struct head *h, const struct error *err, uint64_t resident_bytes);
void checkpoint_packet(struct head *h, uint32_t rank, const union proto_packet *p);
void checkpoint_ask(struct head *h, uint32_t rank, uint32_t last_id);
/* The job can be checkpointed now, perhaps: starts what is wanted. */
void checkpoint_poll(struct head *h);
/* Something else has the job: the one under way is given up. */
void checkpoint_abandon(struct head *h, const char *why);
/* But not if all images are there and only the manifest is on its way to the disk. */
void checkpoint_abandon_open(struct head *h, const char *why);
/* checkpoint_auto.c: the timer of checkpoints that nobody asks for begins; anew after one has been
 * completed. */
void checkpoint_interval_start(struct head *h);
void checkpoint_interval_again(struct head *h);
/* HALE_ERR_STORE_FULL: the automatic one would fill the disk too far. */
hale_status_t checkpoint_has_room(const struct head *h, struct error *err);
/* checkpoint_wait.c: false: it has waited for as long as it may, and is refused for err. */
bool checkpoint_wait(struct head *h, const struct error *err);
void checkpoint_wait_end(struct head *h);
/* Since now, unless that was so before, there is no new checkpoint; there is one again. */
void checkpoint_unprotected(struct head *h, const char *why);
void checkpoint_protected(struct head *h);
/* checkpoint_write.c */
void checkpoint_complete(struct head *h);
/* Waits for the child that commits, if there is one, and takes what came of it. */
void checkpoint_settle(struct head *h);
bool checkpoint_child(struct head *h, pid_t pid); /* false: another one's */
/* Has a child remove what the store has set aside. */
void checkpoint_sweep(struct head *h);
/* Takes away what is more than --keep wants. */
void checkpoint_prune(struct head *h);
/* Waits until all of it is removed. */
void checkpoint_sweep_end(struct head *h);
void checkpoint_watch(void *arg);
void checkpoint_progress_clear(struct head *h);

/* recover.c: from CLEARING on */
void recover_fini(struct head *h);
bool recover_possible(const struct head *h);
bool recover_has_beginning(const struct head *h); /* the job may start again from there */
/* Everybody is gone: goes back to the newest checkpoint that is whole. */
void recover_start(struct head *h);
/* Starts what becomes the images of the target; all ranks from their beginning. */
void recover_restore(struct head *h);
void recover_launch(struct head *h);
/* Says that the target is refused, and why; remembered for whoever asks why the job begins anew. */
void recover_refuse(struct head *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void recover_reject(struct head *h);	 /* the target is damaged: set aside for good */
void recover_pass_over(struct head *h);	 /* the target can't be restored here: not tried again */
uint32_t recover_newest(struct head *h); /* id; 0: none */
/* To the user of a job that ends: how it can go on, if it can. */
void recover_say_how(struct head *h);
/* The manifest is of this job. HALE_ERR_IMAGE_MISMATCH */
hale_status_t recover_check_whose(const struct head *h, const char *job_folder,
				  const struct store_manifest *m, struct error *err);
/* Folder of the job that checkpoint id is in. */
const char *recover_folder_of(struct head *h, uint32_t id);

/* recover_files.c: files that were changed since a checkpoint. exports: the user's, and where the
 * journal is. begin: ranks begin now, or come back. wait: true while the files are not yet what
 * they were at the target of the recovery; then recover_start comes again. end: the last of all.
 * drop: of the journal what no checkpoint needs; true: there was such, to be swept. */
char **recover_files_exports(struct head *h);
void recover_files_init(struct head *h);
void recover_files_fini(struct head *h);
void recover_files_end(struct head *h);
void recover_files_begin(struct head *h);
bool recover_files_wait(struct head *h);
bool recover_files_child(struct head *h, pid_t pid);
bool recover_files_drop(struct head *h);

/* recover_check.c: after a lazy restart the images are verified while the job runs; no checkpoint
 * is taken meanwhile. A bad one is JOB_DAMAGED. */
void recover_check_start(struct head *h);
bool recover_checking(const struct head *h);
void recover_check_stop(struct head *h);
bool recover_child(struct head *h, pid_t pid, int status); /* a child of this kind ended */

/* replicas.c */
bool replicas_init(struct head *h);
void replicas_fini(struct head *h);
hale_status_t replicas_check(const struct head *h, struct error *err);
/* Has this process died? */
static inline bool replicas_is_lost(const struct head *h, uint32_t process)
{
	return h->view.lost && h->view.lost[process];
}
void replicas_begin(struct head *h); /* every process starts */
void replicas_say_placement(const struct head *h);
/* A process was killed (how: "signal 9 (SIGKILL)"); a node of h->lost_why is lost. True: all ranks
 * live on, and everybody hears of the next view. */
bool replicas_survive_death(struct head *h, uint32_t process, const char *how);
bool replicas_survive_node(struct head *h, const struct node *node);

/* inject.c */
hale_status_t inject_add(struct head *h, const struct fault *f, struct error *err);
void inject_arm_mailboxes(struct head *h); /* a new segment */
void inject_launched(struct head *h);
void inject_at_checkpoint(struct head *h, uint32_t id);
void inject_at_restart(struct head *h, uint32_t restart);
void inject_rank_killed(struct head *h, uint32_t rank);
void inject_fini(struct head *h);

/* head_partition.c: rank says that it can't reach peer over the network, or that it can again. */
void head_partition_told(struct head *h, uint32_t rank, uint32_t peer, bool lost);
/* Ranks have moved, and all begin anew to reach each other. */
void head_partition_begin(struct head *h);
void head_partition_fini(struct head *h);

/* leave.c: the ranks of a node go to a spare, or without one where free slots are, because of
 * `why`, a few words. OK: they will when it is their turn, and watch_left says when. Otherwise a
 * sentence: no rank is there (ARGUMENT), there is no place (NODE). */
hale_status_t leave_node(struct head *h, const char *node, const char *why, struct error *err);
/* A migration from this node is over: all are elsewhere; they have stayed; all ranks go back to a
 * checkpoint. */
void leave_moved(struct head *h, uint32_t node);
void leave_not_moved(struct head *h, uint32_t node);
/* When its turn came it could not be; left: no rank is there any more. */
void leave_refused(struct head *h, uint32_t node, bool left);
/* What rules wanted of another head: with a rollback that is about to begin, or by themselves. */
void leave_inherit(struct head *h, bool with_rollback);
/* What rules want may have changed: whose reason is over doesn't leave, if it hasn't begun to. */
void leave_review(struct head *h);
void leave_with_rollback(struct head *h, uint32_t node);
void leave_saved(struct head *h);		    /* a checkpoint is whole */
void leave_failed(struct head *h, const char *why); /* … will not be */
/* crew_layout, without ranks on nodes that are being left. */
hale_status_t leave_layout(struct head *h, struct error *err);
void leave_over(struct head *h); /* all ranks run */
/* The name of a node's state, as the seed's launch agents have it: ARM while its ranks are leaving
 * it, INACTIVE when they have and the job does not run on yet. (Seed 001, 3.4.2.) */
const char *leave_node_state(const struct head *h, const struct node *n);

/* control.c */
hale_status_t control_start(struct head *h, struct error *err);
void control_stop(struct head *h);
/* control_metrics.c: the answer to {"op":"metrics"}, into the open object of j. */
void control_print_metrics(const struct head *h, struct json_out *j);
/* Answers everybody who waits for a checkpoint. folder NULL: it came to nothing, and why. */
void control_checkpoint_over(struct head *h, const char *folder, const char *why);
/* Answers who waits for this migration; m NULL: it came to nothing, and why. */
void control_migrated(struct head *h, uint32_t id, const struct report_migration *m,
		      const struct error *why);
/* A look has been answered: report.profile is that of now. */
void control_looked(struct head *h, uint32_t look);

#include "head/head_calls.h"

#endif
