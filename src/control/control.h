/* SPDX-License-Identifier: BSD-3-Clause */
/* How other hale commands reach a running job: an abstract stream socket
 * "hale/<uid>/<job>/ctl"; one JSON request in one line, one JSON answer, end.
 *   {"op":"ps"}                          the object of the job in `hale ps --json`
 *   {"op":"nodes"}                       the machines of the job, and how they are
 *   {"op":"metrics"}                     sums for `hale metrics`
 *   {"op":"report"}                      what --report would write now
 *   {"op":"profile"}                     the job's profile as it is now
 *   {"op":"ckpt"}                        {"path":…} when it is complete, or {"error":…}
 *   {"op":"inject","fault":"kill:…"}     {} or {"error":…}; "now":true kills at once
 * Only the user that runs the job, and root, are answered; only those are asked. Names that others
 * have taken are passed over, whatever they claim to be.
 */
#ifndef HALE_CONTROL_CONTROL_H
#define HALE_CONTROL_CONTROL_H

#include <stddef.h>
#include <sys/types.h>
#include "base/error.h"
#include "base/json.h"
#include "node/job.h"

enum { CONTROL_REQUEST_MAX = 4096 };

/* ---- for the commands (control_client.c) ---- */

/* Names of this user's running jobs; malloc'ed array of JOB_ID_MAX names. */
size_t control_jobs(char (**jobs)[JOB_ID_MAX]);

/* Connects to a job; -1 with errno when nobody is there (EPERM: only another user, who isn't
 * asked).
 */
int control_connect(const char *job);

/* Sends a request (one line of JSON) and waits for the answer. Text of an "error" in it becomes
 * err. *answer is to be freed with json_free. */
hale_status_t control_ask(const char *job, const char *request, struct json_value **answer,
			  struct error *err);

/* The answer as it came, NUL-terminated, to be freed; NULL: none within some seconds. */
char *control_ask_text(const char *job, const char *request);

/* The same for several jobs at once, for answers that come at once: a job that is stopped or stuck
 * (HALE_ERR_TIMEOUT in status[i]) doesn't keep the others waiting. */
void control_ask_each(char (*jobs)[JOB_ID_MAX], size_t count, const char *request,
		      struct json_value **answers, hale_status_t *status);

/* job may be NULL when exactly one runs: then name gets that one. */
hale_status_t control_choose(const char *job, char name[JOB_ID_MAX], struct error *err);

/* The address of a job's control socket; returns its length, for bind and connect. */
struct sockaddr_un;
size_t control_address(const char *job, unsigned uid, struct sockaddr_un *address);
/* Listens at "hale/<uid>/<job>/KIND", from the second head of a job on (docs/attach.md) at
 * "…/KIND.EPOCH"; KIND "ctl" of the first is "…/ctl", of others "…/KIND.1". Any user can take names
 * of abstract sockets: where somebody else listens there, at "…/KIND.EPOCH.RANDOM", which nobody
 * foresees. -1 with errno; EADDRINUSE: a process of ours listens there. */
int control_listen(const char *job, const char *kind, uint32_t epoch);
/* Asks whoever of ours listens there, and waits so many seconds at most; epoch 0: the newest. NULL:
 * no answer; with errno ETIMEDOUT if somebody is there. To be freed with json_free. */
struct json_value *control_ask_at(const char *job, const char *kind, uint32_t epoch,
				  const char *request, double patience);

#endif
