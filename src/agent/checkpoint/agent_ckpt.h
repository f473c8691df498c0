/* SPDX-License-Identifier: BSD-3-Clause */
/* What a checkpoint needs of this node. Calls ranks/ and copies/. */
#ifndef HALE_AGENT_CHECKPOINT_AGENT_CKPT_H
#define HALE_AGENT_CHECKPOINT_AGENT_CKPT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "node/proto.h"
#include "store/store.h"
#include "wire/message/message.h"
#include "wire/session/loop.h"

struct agent;

/* The checkpoint under way, as far as this node is concerned. */
struct agent_ckpt {
	uint32_t id; /* 0: none */
	char folder[STORE_FOLDER_MAX + 16];
	bool local;	/* it is on this node's own disk */
	bool children;	/* at the last look some rank had child processes */
	bool connected; /* … or a connection to another rank */
	uint64_t inode; /* of a folder that all nodes share; 0: not known */
	struct loop_timer look;
};

/* agent_ckpt.c */
void agent_ckpt_again(struct agent *a); /* of one that is under way */
/* files: says only which files the ranks of this node write. */
void agent_ckpt_check(struct agent *a, uint32_t id, bool files);
/* CKPT_ACROSS: all ranks of the job are so far; all of generation are back. */
void agent_ckpt_on(struct agent *a, uint32_t id, uint32_t stage);
void agent_ckpt_back(struct agent *a, uint32_t generation);
void agent_ckpt_start(struct agent *a, const struct message *m);
void agent_ckpt_take(struct agent *a, uint32_t rank, const struct proto_ckpt *p);
void agent_ckpt_cancel(struct agent *a, uint32_t id);
/* The head is gone, and may have found it complete before: the images stay. */
void agent_ckpt_orphan(struct agent *a);
/* No head will complete the checkpoint that was under way, and no rank writes any more: its folder
 * goes. */
void agent_ckpt_forget(const struct agent *a);
void agent_ckpt_over(struct agent *a);
void agent_ckpt_refuse_all(struct agent *a);
void agent_inject(struct agent *a, const struct message *m);
void agent_task_due(struct agent *a, const struct message *m);

#endif
