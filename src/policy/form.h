/* SPDX-License-Identifier: BSD-3-Clause */
/* What an automatic checkpoint writes (`--ckpt-every auto`): all memory or only what has changed,
 * as it is or compressed by lz4, whichever has cost this job least. Each form is tried first, and
 * now and then again, as programs change. */
#ifndef HALE_POLICY_FORM_H
#define HALE_POLICY_FORM_H

#include <stdbool.h>
#include <stdint.h>

typedef enum form_kind {
	FORM_PLAIN,
	FORM_LZ4,
	FORM_CHANGES,
	FORM_CHANGES_LZ4,
	FORM_KINDS
} form_kind_t;

/* Seconds that a program loses to a page that is written the first time since a checkpoint, when
 * the kernel notes that: assumed, as it is too short to be seen in a job. */
#define FORM_FAULT_S 1e-6

enum {
	FORM_SERIES = 2, /* so many in a row are of the form that is tried: a mean says more */
	FORM_AGAIN = 64, /* after so many checkpoints all forms are tried again */
};

struct form_measured {
	uint32_t count; /* complete ones of that kind since forms were tried last */
	double cost_s;	/* mean of cadence_cost_s */
	double bytes;	/* mean */
};

struct form_view {
	struct form_measured kind[FORM_KINDS];
	bool may_compress; /* the user has not said how, and images are not mapped as they are */
	bool may_change;   /* nor whether only changes are written */
	bool compress;	   /* what is used where it may not be chosen: lz4, or another one */
	bool changes;
	bool based; /* the newest checkpoint can be the base of changes */
};

struct form {
	bool compress;
	bool track;   /* writes are noted from now on, so that the next one can be of changes */
	bool changes; /* if there is a base */
};

struct form form_next(const struct form_view *v);

/* Mean cost of a checkpoint of that kind, with what the noting of writes takes; < 0: not known. */
double form_cost_s(const struct form_view *v, form_kind_t kind);

#endif
