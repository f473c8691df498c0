/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults on request: --inject and `hale inject`. Calls nodes/. */
#ifndef HALE_HEAD_FAULTS_FAULTS_H
#define HALE_HEAD_FAULTS_FAULTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "launch/options.h"
#include "node/segment.h"
#include "wire/session/loop.h"

struct head;

enum { FLIPS_MAX = 10000 };

struct armed_fault {
	struct fault fault;
	uint32_t process; /* whom it meets */
	bool done;
	bool fired; /* of a whole node: goes on where processes come */
	struct loop_timer timer;
	struct head *head;
};

struct faults {
	struct armed_fault armed[OPTIONS_FAULTS_MAX];
	size_t count;
	uint64_t random;
	char task_due[MAILBOX_DUE]; /* asked for while the job ran; "": nothing */
	uint32_t task_due_number;
	uint32_t tasks_fell; /* ranks that died of errors which no task could mend */
};

/* inject.c */
hale_status_t inject_add(struct head *h, const struct fault *f, struct error *err);
/* Memory errors in tasks, in the words of node/task_settings.h; the newest ones count. */
hale_status_t inject_task_due(struct head *h, const char *due, struct error *err);
void inject_arm_mailboxes(struct head *h); /* a new segment */
void inject_launched(struct head *h);
void inject_at_checkpoint(struct head *h, uint32_t id);
void inject_at_restart(struct head *h, uint32_t restart);
void inject_rank_killed(struct head *h, uint32_t rank);
void inject_fini(struct head *h);

#endif
