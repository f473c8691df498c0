/* SPDX-License-Identifier: BSD-3-Clause */
/* What the head tells an agent of the job when it begins: the bytes of MSG_SETUP. */
#ifndef HALE_WIRE_SESSION_SETUP_H
#define HALE_WIRE_SESSION_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "node/segment.h"

enum setup_flag {
	SETUP_PRELOAD_ONE = 1 << 16, /* which library is preloaded: program_mpi_t times this */
	SETUP_PRELOAD_MPI = 3 * SETUP_PRELOAD_ONE,
	SETUP_NO_MPI = 2,
	SETUP_TOGETHER = 4,  /* all nodes are this machine: they share its cores and its loopback */
	SETUP_LOCAL = 8,     /* this node is the head's machine */
	SETUP_NAMED = 16,    /* ranks are to call the node by its name, not by the host's */
	SETUP_EVENTS = 32,   /* serves events here, with the head's broker above */
	SETUP_ENCRYPT = 64,  /* what ranks of different nodes send each other */
	SETUP_NOFSYNC = 128, /* copies of images need not have reached the disk */
	SETUP_ADOPT = 256,   /* an agent that dies gets a successor */
	SETUP_SAY_PINS = 512,	/* agents say what they bind ranks to */
	SETUP_AUDITS = 1024,	/* --audit */
	SETUP_STORE_ALL = 2048, /* a checkpoint has each replica, not only the leaders (--sdc) */
	SETUP_HEIR = 4096,	/* all nodes that the job had before have ended for certain */
};

struct setup {
	uint32_t flags;	      /* enum setup_flag */
	uint32_t nranks;      /* processes */
	uint32_t degree;      /* of these, replicas of each rank */
	uint32_t shadows;     /* which are shadows, so many a core; 0: they are equals */
	uint32_t shadow_rate; /* of a core in thousandths; 0: as sharing one gives */
	uint32_t node;	      /* which one this is, among all of the job */
	uint32_t bind;	      /* bind_to_t */
	uint64_t lease_ns;    /* 0: none */
	uint64_t grace_ns;    /* so long it waits for another head; 0: not at all */
	uint64_t hang_ns;     /* ranks that stand still for so long are told; 0: none */
	uint64_t compute_ns;  /* … that compute for so long without MPI; 0: none */
	uint64_t wait_ns; /* … and how many calls each has made, some times in so long; 0: not */
	uint32_t epoch;	  /* of the head */
	unsigned char secret[SEGMENT_SECRET]; /* by which ranks know each other over the network */
	const char *job, *name;
	const char *program; /* path for execve */
	const char *wdir;
	const char *local;		   /* --ckpt-local, absolute; "": none */
	const char *folder;		   /* of the job's record; "": none */
	const char *tag;		   /* by which a new head finds the agents */
	char **argv, **environ, **exports; /* NULL-terminated */
	void *owned;			   /* what the texts of a setup that was read lie in */
};

/* malloc'ed bytes; NULL: no memory. */
void *setup_write(const struct setup *s, size_t *len);
/* False: it is none, or there is no memory. Afterwards setup_fini. */
bool setup_read(const void *bytes, size_t len, struct setup *s);
/* On another machine than the head's: what belongs to a machine or a login is as own has it. own
 * stays the caller's and must live on. False: no memory. */
bool setup_localize(struct setup *s, char *const *own);
void setup_fini(struct setup *s);

#endif
