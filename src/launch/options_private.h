/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that take options share: a table of options each, which options.c looks through.
 *
 *   options.c        the command line as a whole; output, the environment, events, faults
 *   options_place.c  how many ranks, on which nodes and hosts
 *   options_ckpt.c   checkpoints: when, where, how
 *   options_fault.c  the little language of --inject
 *   options_mpirun.c what people who write mpirun or mpiexec are used to give
 */
#ifndef HALE_LAUNCH_OPTIONS_PRIVATE_H
#define HALE_LAUNCH_OPTIONS_PRIVATE_H

#include "launch/options.h"

enum { SHARED_EVERY = 10 };

#define CKPT_FIRST_SECONDS 30
#define CKPT_OVERHEAD	   0.01

enum { OPTION_EQUALS = -1, OPTIONS_SEEN_MAX = 64 };

struct option;

/* What has been given, so that a second, other value is noticed. */
struct option_seen {
	const struct option *option;
	const char *value;
};

struct parser {
	struct options *o;
	struct error *err;
	options_for_t which;
	const char *name; /* of the option, as written */
	const char
	    *value;    /* NULL: the option takes none; else the first, the others follow in argv */
	char **values; /* all of them, where there are several */
	struct option_seen seen[OPTIONS_SEEN_MAX];
	size_t seen_count;
};

typedef hale_status_t (*option_fn)(struct parser *p);

struct option {
	const char *names; /* "-n|-np|-c": alternatives */
	int values;	   /* how many values follow; OPTION_EQUALS: one after = or none */
	bool run_only;
	option_fn take;
};

/* A sentence about the option's value, into p->err. */
hale_status_t options_bad_value(struct parser *p, const char *wanted);

/* Each ends with an option without names. */
extern const struct option options_place[], options_ckpt[], options_mpirun[];

/* --cpu-baseline (cpu_baseline.c). */
hale_status_t options_take_baseline(struct parser *p);
/* It means nothing here, and says so at info level. */
hale_status_t options_take_nothing(struct parser *p);
/* VAR=VAL for the ranks. */
hale_status_t options_take_assignment(struct parser *p, const char *assignment);
hale_status_t options_take_tag(struct parser *p);
/* --ppn, for --map-by ppr:N:node. */
hale_status_t options_take_per_node(struct parser *p);

/* What a job with replicas can't have: a sentence. */
hale_status_t options_check_replicas(struct options *o, struct error *err);
/* What --shadows goes with, and what only goes with it; tells ranks of it. */
hale_status_t options_check_shadows(struct options *o, struct error *err);
/* --audit: what it goes with, and what else it means. */
hale_status_t options_check_audit(struct options *o, struct error *err);
/* --sdc and --on-sdc; tells ranks of it. */
hale_status_t options_check_sdc(struct options *o, struct error *err);

#endif
