/* SPDX-License-Identifier: BSD-3-Clause */
/* --audit: one rank after the other is visited (docs/audit.md). */
#ifndef HALE_HEAD_AUDIT_H
#define HALE_HEAD_AUDIT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "policy/place.h"
#include "report/report.h"
#include "wire/session/loop.h"

struct head;

typedef enum audit_phase {
	AUDIT_BETWEEN,	/* nobody is visited; ranks leave wrong nodes now */
	AUDIT_WITNESS,	/* the visited rank's first copy is made, which then stands still */
	AUDIT_TWIN,	/* and its second one */
	AUDIT_COMPARES, /* what rank and twin send is compared */
	AUDIT_SETTLES,	/* the twin ends first, the witness when nobody can ask it any more */
	AUDIT_COPIES,	/* the rank moves: it is copied to another node */
	AUDIT_ENDS	/* all processes of the rank but one are ended */
} audit_phase_t;

struct head_audit {
	audit_phase_t phase;
	uint32_t rank; /* that is visited, or is next */
	uint32_t main, twin,
	    witness;	 /* its processes; of a rank that moves: the old one, the new one */
	uint32_t guilty; /* nranks: none */
	double phase_began;
	bool called; /* the witness was told to speak, and nobody is convicted yet */
	bool lost;   /* one of its processes has died: the visit ended for that reason */
	bool stuck;  /* it was said that processes can't leave a wrong node */
	struct report_audit visit;
	struct loop_timer timer;
};

/* Where the ranks of such a job begin. */
hale_status_t audit_place(struct head *h, struct placement *p, struct error *err);
void audit_say_placement(const struct head *h);
/* Another head has begun the job, and has written down what is in struct head_audit. */
void audit_follow(struct head *h);
/* All processes begin, or begin again. */
void audit_begin(struct head *h);
void audit_fini(struct head *h);
/* A rank is visited, or about to leave a wrong node: no move begins. */
bool audit_is_busy(const struct head *h);
/* The job is about to end, or has ended: a visit that is under way gets into the report. */
void audit_job_over(struct head *h);
/* Process `process` runs, as the copy that c describes. */
void audit_returned(struct head *h, uint32_t process, const struct report_clone *c);
/* Processes have died: a visit that lacks one of its own ends. */
void audit_settle(struct head *h);
/* A majority has shown that this process sends wrong messages; it is about to be ended. */
void audit_convicted(struct head *h, uint32_t process);
/* Rank and twin have sent different messages, and the witness has been asked. */
void audit_called(struct head *h, uint32_t rank);
/* What hale ps calls a process. */
const char *audit_role(const struct head *h, uint32_t process);

#endif
