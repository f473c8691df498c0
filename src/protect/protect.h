/* SPDX-License-Identifier: BSD-3-Clause */
/* protect/: libhale_protect.so, what programs made by `halecc` stand on: references of variables,
 * checks, corrections, copies, shadows, reports, injection (include/hale/protect.h).
 *
 * May call: base/. May be called by: the user's program. It knows nothing of MPI and of Hale's own
 * library; whoever wants all ranks to agree includes hale/protect_mpi.h.
 *
 * One lock guards the lists and the numbers; it is never held while a variable is read.
 */
#ifndef HALE_PROTECT_PROTECT_H
#define HALE_PROTECT_PROTECT_H

#include <pthread.h>
#include <stdint.h>
#include "hale/protect.h"
#include "protect/sums.h"

/* After so many misses of one variable in a row the error is taken for permanent. */
#define PROTECT_MISSES_MAX 16

/* What the library remembers of a variable. It is on the list of live variables from hale_expect or
 * hale_note until hale_forget. */
struct hale_reference {
	struct hale_reference *next, **link;
	char name[48];
	char *base;
	size_t bytes;
	hale_check_kind_t kind;
	bool noted;
	double since; /* clock_seconds of the first note, or of hale_expect */
	int written; /* hale_confirmed: times that it was asked for since it was the same */
	bool sealed; /* seal: hash of the bytes as the judges met them (hale_seal) */
	struct hash128 seal;
	bool differs; /* the last check by reference found it damaged */
	bool left; /* a region runs again for it; `damaged` is the hash of what it had then */
	struct hash128 damaged;
	struct sums sums;
	uint8_t sha[32], sha_copy[32];
};

/* What is known of all variables of one name. */
struct protect_figure {
	struct protect_figure *next;
	char name[48];
	size_t bytes; /* the most that one had */
	unsigned long long notes, checks, detected, corrected, recomputed, unrecoverable;
	double lvf;
};

extern pthread_mutex_t protect_lock;
extern struct hale_region *protect_regions;
extern struct hale_reference *protect_live;
extern struct protect_figure *protect_figures;

/* Reads HALE_PROTECT and HALE_PROTECT_INJECT at the first call. */
void protect_start(void);
/* "report=", "ckpt=" of HALE_PROTECT; NULL when not given. */
const char *protect_setting(const char *name);
/* The lock is held. */
struct protect_figure *protect_figure(const char *name);
void protect_unseal(const void *base); /* var.c */
/* A region runs again to write it. */
void protect_left(struct hale_var *v);
/* Ends the program with a sentence and status. */
void protect_die(int status, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* Of HALE_PROTECT_INJECT, inject.c. */
void inject_start(void);
/* Called when run number `run` of a region begins, for each variable that it will check. */
void inject_at_enter(const struct hale_region *r, const struct hale_var *v);
/* Called when a judge looks at a variable. */
void inject_at_check(const struct hale_region *r, const struct hale_var *v);
/* The lock is held: what became of the flips that have struck a variable. */
void inject_outcome(const char *var, const char *outcome);
/* Stops the thread that injects by time. */
void inject_stop(void);
struct json_out;
void inject_report(struct json_out *j);

#endif
