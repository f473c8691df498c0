/* SPDX-License-Identifier: BSD-3-Clause */
/* Exit statuses that are not a program's own: of the commands of `hale`, and of processes of a job.
 * The only place that has them; docs/running-jobs.md tells users of theirs. */
#ifndef HALE_BASE_EXIT_STATUS_H
#define HALE_BASE_EXIT_STATUS_H

enum exit_status {
	EXIT_CAMPAIGN_WRONG = 3, /* `hale campaign`: a run ended with a wrong result */
	EXIT_USAGE = 64,	 /* bad options, or a program that can't run here */
	EXIT_IMAGE_BAD = 65, /* a sink's image is missing, torn or damaged: the checkpoint before it
			      * may serve. (Any other failure of a sink: EXIT_UNRECOVERED; the
			      * image may be good elsewhere.) */
	EXIT_MOVED = 66,     /* a rank has moved: its copy runs */
	EXIT_UNRECOVERED = 70,	 /* a failure that no checkpoint could mend */
	EXIT_SUPERSEDED = 71,	 /* another head has the job */
	EXIT_UNRECOVERABLE = 72, /* an error in a protected region that nothing mends: of the
				  * program, as HALE_EXIT_UNRECOVERABLE of hale/protect.h */
	EXIT_SDC = 73, /* replicas have sent different messages (--sdc), and nobody knows which is
			* right */
	EXIT_UNPROTECTED = 74,	   /* --require-checkpoints: no checkpoint could be taken */
	EXIT_REQUEUE = 75,	   /* `hale run --requeue`: ended, to go on in its next life */
	EXIT_TIMEOUT = 124,	   /* --timeout, as timeout(1) has it */
	EXIT_NOT_EXECUTABLE = 126, /* as shells have it */
	EXIT_NOT_FOUND = 127,
};

#endif
