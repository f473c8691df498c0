/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/job_state.h"

#include <stddef.h>

struct row {
	job_state_t state;
	job_event_t event;
	job_action_t action;
	job_state_t next;
};

/* Every transition of a job. A pair that is not listed changes nothing. */
static const struct row rows[] = {
    {JOB_STARTING, JOB_NODES_READY, JOB_BEGIN, JOB_RUNNING},
    {JOB_STARTING, JOB_STOP, JOB_STOP_ALL, JOB_STARTING},
    {JOB_STARTING, JOB_TAKEN_OVER, JOB_DO_NOTHING, JOB_RUNNING},
    {JOB_STARTING, JOB_END, JOB_END_ALL, JOB_ENDING},
    {JOB_STARTING, JOB_SUPERSEDED, JOB_DO_NOTHING, JOB_ENDED},

    {JOB_RUNNING, JOB_RANK_READY, JOB_LOOK_READY, JOB_RUNNING},
    {JOB_RUNNING, JOB_RANK_DONE, JOB_COUNT_DONE, JOB_RUNNING},
    {JOB_RUNNING, JOB_RANK_FAILED, JOB_FAIL, JOB_RUNNING},
    {JOB_RUNNING, JOB_RANK_NOT_REBUILT, JOB_FAIL, JOB_RUNNING},
    {JOB_RUNNING, JOB_RANK_KILLED, JOB_ASSESS_RANK, JOB_RUNNING},
    {JOB_RUNNING, JOB_NODE_LOST, JOB_ASSESS_NODE, JOB_RUNNING},
    {JOB_RUNNING, JOB_DAMAGED, JOB_REJECT, JOB_RUNNING},
    {JOB_RUNNING, JOB_ALL_GONE, JOB_FINISH, JOB_ENDED},
    {JOB_RUNNING, JOB_STOP, JOB_STOP_ALL, JOB_RUNNING},
    {JOB_RUNNING, JOB_ROLL_BACK, JOB_KILL_ALL, JOB_CLEARING},
    /* `hale restart`: the job begins with a checkpoint, and nobody runs yet */
    {JOB_RUNNING, JOB_CHECKPOINT_FOUND, JOB_RESTORE, JOB_RESTORING},
    {JOB_RUNNING, JOB_BEGINNING_FOUND, JOB_LAUNCH, JOB_RUNNING},
    {JOB_RUNNING, JOB_END, JOB_END_ALL, JOB_ENDING},
    {JOB_RUNNING, JOB_SUPERSEDED, JOB_DO_NOTHING, JOB_ENDED},

    {JOB_CLEARING, JOB_RANK_DONE, JOB_CHECK_GONE, JOB_CLEARING},
    {JOB_CLEARING, JOB_RANK_FAILED, JOB_CHECK_GONE, JOB_CLEARING},
    {JOB_CLEARING, JOB_RANK_NOT_REBUILT, JOB_CHECK_GONE, JOB_CLEARING},
    {JOB_CLEARING, JOB_RANK_KILLED, JOB_CHECK_GONE, JOB_CLEARING},
    {JOB_CLEARING, JOB_NODE_LOST, JOB_ADD_NODE, JOB_CLEARING},
    {JOB_CLEARING, JOB_ALL_GONE, JOB_FIND_TARGET, JOB_CLEARING},
    {JOB_CLEARING, JOB_CHECKPOINT_FOUND, JOB_RESTORE, JOB_RESTORING},
    {JOB_CLEARING, JOB_BEGINNING_FOUND, JOB_LAUNCH, JOB_RUNNING},
    {JOB_CLEARING, JOB_STOP, JOB_STOP_ALL, JOB_CLEARING},
    {JOB_CLEARING, JOB_END, JOB_END_ALL, JOB_ENDING},
    {JOB_CLEARING, JOB_SUPERSEDED, JOB_DO_NOTHING, JOB_ENDED},

    {JOB_RESTORING, JOB_RANK_READY, JOB_LOOK_BACK, JOB_RESTORING},
    {JOB_RESTORING, JOB_RANK_DONE, JOB_LOOK_BACK_DONE, JOB_RESTORING},
    /* a rank that had become its image failed by itself: as if all were back */
    {JOB_RESTORING, JOB_RANK_FAILED, JOB_FAIL, JOB_RUNNING},
    {JOB_RESTORING, JOB_RANK_NOT_REBUILT, JOB_REFUSE_TARGET, JOB_RESTORING},
    {JOB_RESTORING, JOB_RANK_KILLED, JOB_ASSESS_RANK, JOB_RUNNING},
    {JOB_RESTORING, JOB_NODE_LOST, JOB_ASSESS_NODE, JOB_RUNNING},
    {JOB_RESTORING, JOB_TIMEOUT, JOB_LATE_TARGET, JOB_RESTORING},
    {JOB_RESTORING, JOB_ALL_BACK, JOB_GO_ON, JOB_RUNNING},
    {JOB_RESTORING, JOB_ALL_GONE, JOB_FINISH, JOB_ENDED},
    {JOB_RESTORING, JOB_STOP, JOB_STOP_ALL, JOB_RESTORING},
    {JOB_RESTORING, JOB_ROLL_BACK, JOB_KILL_ALL, JOB_CLEARING},
    {JOB_RESTORING, JOB_END, JOB_END_ALL, JOB_ENDING},
    {JOB_RESTORING, JOB_SUPERSEDED, JOB_DO_NOTHING, JOB_ENDED},

    {JOB_ENDING, JOB_RANK_DONE, JOB_CHECK_GONE, JOB_ENDING},
    {JOB_ENDING, JOB_RANK_FAILED, JOB_CHECK_GONE, JOB_ENDING},
    {JOB_ENDING, JOB_RANK_NOT_REBUILT, JOB_CHECK_GONE, JOB_ENDING},
    {JOB_ENDING, JOB_RANK_KILLED, JOB_CHECK_GONE, JOB_ENDING},
    {JOB_ENDING, JOB_NODE_LOST, JOB_CHECK_GONE, JOB_ENDING},
    {JOB_ENDING, JOB_ALL_GONE, JOB_FINISH, JOB_ENDED},
    {JOB_ENDING, JOB_SUPERSEDED, JOB_DO_NOTHING, JOB_ENDED},
};

struct job_step job_state_step(job_state_t state, job_event_t event)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].state == state && rows[i].event == event)
			return (struct job_step){rows[i].action, rows[i].next};
	return (struct job_step){JOB_DO_NOTHING, state};
}

const char *job_state_name(job_state_t state)
{
	static const char *const names[JOB_STATES] = {"starting",  "running", "clearing",
						      "restoring", "ending",  "ended"};

	return state < JOB_STATES ? names[state] : "?";
}

const char *job_event_name(job_event_t event)
{
	static const char *const names[JOB_EVENTS] = {
	    "nodes ready", "rank ready", "rank done", "rank failed", "not rebuilt", "rank killed",
	    "node lost",   "damaged",	 "all gone",  "timeout",     "stop",	    "all back",
	    "roll back",   "checkpoint", "beginning", "taken over",  "end",	    "superseded"};

	return event < JOB_EVENTS ? names[event] : "?";
}

bool job_event_needs_newest(job_state_t state, job_event_t event)
{
	switch (state) {
	case JOB_RUNNING:
		return event == JOB_RANK_KILLED || event == JOB_NODE_LOST || event == JOB_DAMAGED;
	case JOB_CLEARING:
		return event == JOB_ALL_GONE;
	case JOB_RESTORING:
		return event == JOB_RANK_KILLED || event == JOB_RANK_FAILED ||
		       event == JOB_RANK_NOT_REBUILT || event == JOB_NODE_LOST ||
		       event == JOB_TIMEOUT;
	default:
		return false;
	}
}
