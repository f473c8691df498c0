/* SPDX-License-Identifier: BSD-3-Clause */
/* hale campaign: what campaign.c, campaign_run.c, campaign_outside.c and campaign_show.c share. */
#ifndef HALE_CLI_CAMPAIGN_H
#define HALE_CLI_CAMPAIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CAMPAIGN_FLIPS_MAX 256
#define CAMPAIGN_VARS_MAX  256
#define CAMPAIGN_TOLD_MAX  10 /* runs that crashed and say how */

/* How a run ended. */
typedef enum campaign_end {
	END_RIGHT,
	END_WRONG,    /* with a wrong result and without a word */
	END_REPORTED, /* the program found an error that it could not mend, and said so: 72 */
	END_CRASHED,  /* by a signal or with another status */
	END_HUNG,     /* longer than the limit */
	ENDS
} campaign_end_t;

struct campaign_flip {
	char var[64];
	bool mended; /* the program has corrected it */
};

struct campaign_run {
	campaign_end_t end;
	double seconds;
	struct campaign_flip flip[CAMPAIGN_FLIPS_MAX];
	size_t flips;
};

/* What became of the faults that struck one variable. */
struct campaign_var {
	char name[64];
	unsigned long faults, corrected, harmless, wrong, reported, crashed;
};

struct campaign {
	char **argv;
	double rate; /* events per second; 0: `faults` of them in each run */
	long faults, runs, seed;
	double limit_s; /* 0: ten times what the program takes */
	const char *output, *judge, *data, *plot;
	bool outside, json;
	/* results */
	double alone_s;
	char folder[64];
	uint64_t right_out, right_file;
	unsigned long ends[ENDS], told;
	double seconds;
	struct campaign_var var[CAMPAIGN_VARS_MAX];
	size_t vars;
};

/* Runs the program once; number 0 is the run without faults. False after a sentence. */
bool campaign_run_once(struct campaign *c, long number, struct campaign_run *r);

void campaign_reports_remove(const struct campaign *c);

/* Where bits of another process can be flipped: variables of its symbol table, its heap. */
struct outside;
struct outside *outside_open(pid_t pid, const char *program, const char *only, uint64_t seed);
/* Stops the process, flips one bit of one variable, lets it go on. False: nothing was there. */
bool outside_flip(struct outside *o, struct campaign_flip *f);
void outside_close(struct outside *o); /* NULL is fine */
/* splitmix64 */
uint64_t campaign_draw(uint64_t *state);

void campaign_show(const struct campaign *c);
bool campaign_plot(const struct campaign *c);

#endif
