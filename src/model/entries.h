/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files entries*.c share: each has the keys and the solver of some models. */
#ifndef HALE_MODEL_ENTRIES_H
#define HALE_MODEL_ENTRIES_H

#include <assert.h>
#include "model/catalog.h"

static inline void answer(struct model_answers *out, const char *name, enum model_kind kind,
			  double value, double scale, const char *meaning)
{
	assert(out->count < MODEL_ANSWERS_MAX);
	out->of[out->count++] = (struct model_answer){name, meaning, kind, value, scale};
}

extern const struct model_key interval_keys[], tasks_keys[], redundancy_keys[], comm_keys[],
    partial_keys[], window_keys[], shadow_keys[], jumping_keys[], lvf_keys[];

#define SOLVER(name)                                                                               \
	hale_status_t name(const double *v, const char *scheme, struct model_answers *out,         \
			   struct error *err)
SOLVER(interval_solve);
SOLVER(tasks_solve);
SOLVER(redundancy_solve);
SOLVER(comm_solve);
SOLVER(partial_solve);
SOLVER(window_solve);
SOLVER(shadow_solve);
SOLVER(jumping_solve);
SOLVER(lvf_solve);

#define CROSSING(name)                                                                             \
	hale_status_t name(const double *v, const char *a, const char *b, double *at,              \
			   struct error *err)
CROSSING(redundancy_cross);
CROSSING(shadow_cross);

#endif
