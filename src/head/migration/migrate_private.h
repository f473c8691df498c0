/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of a migration share.
 *
 *   migrate_queue.c   migrations that wait for their turn
 *   migrate.c         how one begins and ends
 *   migrate_rounds.c  its rounds, up to the change of segments
 *   migrate_follow.c  one that an earlier head had begun */
#ifndef HALE_HEAD_MIGRATION_MIGRATE_PRIVATE_H
#define HALE_HEAD_MIGRATION_MIGRATE_PRIVATE_H

#include "image/live/live.h"
#include "head/migration/migrate.h"

enum { MIGRATE_STEPS_MAX = 32 };

enum migration_phase {
	CHECKING,
	PREPARING,
	AHEAD,
	ANNOUNCING, /* alone: all are to keep for the copy */
	STOPPING,
	GOING,
	RELEASING,
	CANCELLING
};

/* One that has not begun. */
struct migrate_wish {
	uint32_t id;
	uint32_t from, to; /* to == from: anywhere */
	char *folder;	   /* for files; NULL: streams */
	bool by_user;	   /* somebody waits for the answer */
	struct migrate_wish *next;
};

struct mover {
	bool moves;
	bool begun;    /* its copy is started */
	char *program; /* that it executes; NULL: the job's */
	bool running;  /* a round is under way */
	bool small;    /* what is left is little, as of its newest round */
	bool again;    /* that was long ago: one more round */
	unsigned held; /* as live_bounds.held, with the round to come */
	uint32_t held_rounds;
	double began; /* its newest round */
	double rest;  /* seconds that a last round would have taken when it became small */
	bool whole;   /* the copy has said HELLO */
	bool moved;   /* the source has ended */
	bool stopped, resumed;
	uint32_t id; /* of its newest round */
	pid_t copy;
	bool copy_ended; /* … when this head came, and how: waitpid's */
	int copy_status;
	uint64_t position[3];
	struct live_step step[MIGRATE_STEPS_MAX];
	size_t steps;
	uint64_t bytes, same; /* sent; compared, and not sent */
	uint32_t source;      /* cloned: as a copy of which process */
	uint32_t replaces;    /* … in whose place; LIVING_NOWHERE: nobody's, that was dead */
};

struct migration {
	enum migration_phase phase;
	uint32_t id;		  /* of the wish; 0: another head's */
	uint32_t from, to;	  /* to == from: anywhere */
	bool cloned;		  /* movers are copies of processes that stay (clone.c) */
	bool alone;		  /* … one copy, for which nobody but its source stops */
	double pause;		  /* alone: for so many seconds */
	double quiet_at, gone_at; /* all stood still; the copy was told to go */
	char target[256];	  /* for sentences */
	char *folder;		  /* for files; NULL: streams */
	uint32_t generation, stop_id, ranks;
	uint32_t *coming; /* [nranks] */
	struct mover *movers;
	unsigned freshened; /* times that those that waited for others had one more round */
	bool
	    *awaited; /* [nodes]: an answer is outstanding: to BEGIN, CANCEL; by files to RELEASE */
	struct places {
		void *bytes;
		size_t len;
	} * places; /* [nodes]: where they listen for streams; the agents' own words */
	double began, moved_at, stopped_at;
	double doomed_at; /* a copy has ended: given up at the latest then; 0: none has */
	uint64_t bytes, relayed, stopped;
	char why[512];
	struct loop_timer timer;
};

/* migrate_queue.c */
double migrate_patience(void);	   /* seconds in which nothing may happen */
void migrate_turn(struct head *h); /* none is under way: the next one may begin */

/* migrate.c */
/* Alone, after GO: the copy ends, and all is as before. */
void migrate_alone_failed(struct head *h, const char *why);
/* Takes the folder. */
void migrate_come_to_nothing(struct head *h,
			     const char *why); /* with a rollback, or the job's end */
hale_status_t migrate_begin(struct head *h, struct migrate_wish *w, struct error *err);
bool migrate_all_answered(const struct head *h);
void migrate_await_all(struct head *h);
bool migrate_all_resumed(const struct head *h); /* who doesn't move */
void migrate_cancelled(struct head *h);		/* … by all: then the ranks go on */
void migrate_done(struct head *h);		/* all ranks run where they are to */
/* From this node, and nothing is known of it yet; NULL: no memory. */
struct migration *migrate_create(struct head *h, uint32_t from);
void migrate_name_target(struct head *h); /* what it is called; how many ranks move */
void migrate_watch(struct head *h);	  /* it may take too long */
/* Of the rank that had most of them. */
uint32_t migrate_rounds_most(const struct head *h);
uint32_t migrate_held_most(const struct head *h);

/* clone.c: one that is cloned. */
/* Whose rounds this process sends: its own, or those of a copy that is to stay beside it. */
uint32_t clone_mover(const struct head *h, uint32_t process);
void clone_goes(struct head *h);  /* GO is said: it lives */
void clone_stays(struct head *h); /* it has come to nothing */
void clone_done(struct head *h);
/* A move of a job with replicas: who is dead does not move, and nobody to where another replica of
 * its rank lives, if that can be. */
void clone_keep_apart(struct head *h);
/* The dead of the node that was left would come back elsewhere. */
void clone_follow_move(struct head *h);

/* migrate_rounds.c */
void migrate_over_if_resumed(struct head *h);
/* Releases the copies once all sources have ended, or if none has to. */
void migrate_release_if_moved(struct head *h);

#endif
