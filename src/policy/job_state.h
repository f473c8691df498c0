/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a job as a table: (state, event) -> (action, next state).
 *
 *   STARTING
 *      | NODES_READY
 *      v           ROLL_BACK                ALL_GONE, then CHECKPOINT_FOUND
 *   RUNNING ----------------------> CLEARING ------------------------------> RESTORING
 *      ^                              |  BEGINNING_FOUND                        |
 *      +------------------------------+<---------------- ALL_BACK --------------+
 *   any state -- END --> ENDING -- ALL_GONE --> ENDED
 *
 * The head owns the current state, and assigns it in one place only (head_event): it looks the
 * event up, enters the next state, then carries the action out. An action may raise the next event;
 * ASSESS_RANK for instance raises ROLL_BACK or END (recovery.h). */
#ifndef HALE_POLICY_JOB_STATE_H
#define HALE_POLICY_JOB_STATE_H

#include <stdbool.h>

/* The order is the one of the numbers in a head's record on disk: append only. */
typedef enum job_state {
	JOB_STARTING,  /* agents are on their way */
	JOB_RUNNING,   /* ranks compute */
	JOB_CLEARING,  /* all ranks are being killed, and then go back to a checkpoint */
	JOB_RESTORING, /* processes run that become the images of a checkpoint */
	JOB_ENDING,    /* all ranks are being ended, and then the job */
	JOB_ENDED,
	JOB_STATES
} job_state_t;

typedef enum job_event {
	/* reported by agents, timers, users */
	JOB_NODES_READY,      /* the agents of all nodes answer */
	JOB_RANK_READY,	      /* a rank said HELLO, or left MPI_Init */
	JOB_RANK_DONE,	      /* a rank ended well */
	JOB_RANK_FAILED,      /* a rank ended with a status, or without MPI_Finalize */
	JOB_RANK_NOT_REBUILT, /* a process ended before it had become its image */
	JOB_RANK_KILLED,      /* a signal ended a rank */
	JOB_NODE_LOST,	      /* a node with ranks is lost */
	JOB_DAMAGED,	      /* ranks run from an image that turns out to be damaged */
	JOB_ALL_GONE,	      /* no process of the job is left */
	JOB_TIMEOUT,	      /* the images did not run in time */
	JOB_STOP,	      /* a user wants the job to end */
	/* raised by the head, as outcomes of an action or a decision */
	JOB_ALL_BACK,	      /* every rank runs again */
	JOB_ROLL_BACK,	      /* decided: all ranks go back to a checkpoint */
	JOB_CHECKPOINT_FOUND, /* there is a checkpoint to go back to */
	JOB_BEGINNING_FOUND,  /* there is none, and the job starts again from its beginning */
	JOB_TAKEN_OVER,	      /* a head that follows another one knows how the ranks are */
	JOB_END,	      /* decided: the job ends */
	JOB_SUPERSEDED,	      /* a newer head has the job */
	JOB_EVENTS
} job_event_t;

typedef enum job_action {
	JOB_DO_NOTHING,
	JOB_BEGIN,	    /* start all ranks, or restore the checkpoint that was asked for */
	JOB_LOOK_READY,	    /* a rank more is ready: what waits for that may begin */
	JOB_COUNT_DONE,	    /* a rank has ended well: perhaps it was the last */
	JOB_FAIL,	    /* the job ends with this rank's status */
	JOB_ASSESS_RANK,    /* a rank is gone: raise ROLL_BACK or END */
	JOB_ASSESS_NODE,    /* a node is gone: raise ROLL_BACK or END */
	JOB_ADD_NODE,	    /* one more node is gone during a rollback */
	JOB_REJECT,	    /* set the damaged checkpoint aside, then raise ROLL_BACK */
	JOB_KILL_ALL,	    /* end what is left of all ranks, for a rollback */
	JOB_CHECK_GONE,	    /* perhaps that was the last process */
	JOB_FIND_TARGET,    /* raise CHECKPOINT_FOUND, BEGINNING_FOUND or END */
	JOB_RESTORE,	    /* place the ranks, and start what becomes the images */
	JOB_LAUNCH,	    /* start all ranks from their beginning */
	JOB_LOOK_BACK,	    /* one more rank runs again: raise ALL_BACK after the last */
	JOB_LOOK_BACK_DONE, /* the same, and perhaps no process is left */
	JOB_REFUSE_TARGET,  /* the image, or the process, was no good: raise ROLL_BACK */
	JOB_LATE_TARGET,    /* the checkpoint was not restored in time: raise ROLL_BACK */
	JOB_GO_ON,	    /* all ranks run: intervals, reports, warm spares go on */
	JOB_STOP_ALL,	    /* a user ends the job */
	JOB_END_ALL,	    /* end all ranks, then the job */
	JOB_FINISH,	    /* nothing is left: write reports, leave */
	JOB_ACTIONS
} job_action_t;

struct job_step {
	job_action_t action;
	job_state_t next;
};

/* Total: an event that a state does not react to gives JOB_DO_NOTHING and the same state. */
struct job_step job_state_step(job_state_t state, job_event_t event);

/* The words of `hale ps`, events and logs. */
const char *job_state_name(job_state_t state);
const char *job_event_name(job_event_t event);

/* The job ends or has ended: nothing new begins. */
static inline bool job_state_over(job_state_t state)
{
	return state == JOB_ENDING || state == JOB_ENDED;
}

/* The event needs to know which checkpoint is the newest. While a child process still writes a
 * manifest the head keeps such an event, and all later ones, until that child has ended. */
bool job_event_needs_newest(job_state_t state, job_event_t event);

#endif
