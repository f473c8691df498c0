/* SPDX-License-Identifier: BSD-3-Clause */
/* A spare has the program's files in memory, and processes of it that stand ready. Calls ranks/. */
#ifndef HALE_AGENT_STANDBY_AGENT_WARM_H
#define HALE_AGENT_STANDBY_AGENT_WARM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "wire/message/message.h"
#include "wire/session/loop.h"

struct agent;

/* A child and what comes of it: all that it writes into its pipe. */
struct agent_warm_child {
	struct agent *agent;
	struct loop_source source; /* fd -1: there is none */
	unsigned char *bytes;
	size_t len, cap;
	uint32_t id; /* of the question */
	void (*done)(struct agent *a, const struct agent_warm_child *c);
};

struct agent_warm {
	struct agent_warm_child lister; /* of what the ranks here have mapped */
	struct agent_warm_child reader; /* of what ranks elsewhere have */
	uint32_t id;			/* of the newest MSG_WARM */
	unsigned char *list;		/* of its files; of several nodes, one behind another */
	size_t len;
	uint32_t sinks; /* processes that are to stand ready */
	uint64_t bytes; /* in memory */
	char text[320]; /* what is wrong with a file here; "": nothing */
};

struct agent_stand {
	uint32_t wanted;  /* processes that are to stand ready */
	uint32_t started; /* since that was said */
	uint32_t said;	  /* that so many do, to the head */
	char text[128];	  /* why there are fewer; "" */
	struct loop_timer timer;
};

/* agent_warm.c */
void agent_warm_init(struct agent *a);
void agent_warm_stop(struct agent *a);
bool agent_warm_take(struct agent *a, const struct message *m); /* false: it is none of ours */

/* What there is now. */
void agent_warm_say(struct agent *a);

/* agent_standby.c: so many processes of this program shall stand ready; identity: of its files as
 * they are here. */
void agent_stand_want(struct agent *a, uint32_t count, const char *program, uint64_t identity);
void agent_stand_none(struct agent *a);
void agent_stand_count(struct agent *a); /* a child has ended */

#endif
