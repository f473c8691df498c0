/* SPDX-License-Identifier: BSD-3-Clause */
/* The formulas as `hale model` offers them: by name, with named values in and out, so that help,
 * JSON, tables and pictures come from one description. */
#ifndef HALE_MODEL_CATALOG_H
#define HALE_MODEL_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"
#include "model/quantity.h"

#define MODEL_KEYS_MAX	  20
#define MODEL_ANSWERS_MAX 20

/* One value that a model takes. */
struct model_key {
	const char *name, *meaning;
	enum model_kind kind;
	const char *fallback; /* as it would be typed; NULL: must be given; "": may be left out,
				 then it is NAN */
	const char *choices;  /* "pair,energy": words instead of a quantity; the value is the
				 word's place; else NULL */
};

/* One value that a model gives: under its name in the name's unit (time_hours), for people in
 * kind: base units are value times scale. */
struct model_answer {
	const char *name, *meaning;
	enum model_kind kind;
	double value, scale;
};
struct model_answers {
	struct model_answer of[MODEL_ANSWERS_MAX];
	size_t count;
};

struct model_entry {
	const char *name, *summary, *source, *example;
	const struct model_key *keys; /* ends with a NULL name */
	const char *schemes;  /* what --compare takes, for help; NULL: this model has none */
	const char *standard; /* the scheme if none is asked for */
	const char *compared; /* those of a picture if none are asked for */
	/* values[i] belongs to keys[i]; scheme is NULL for models without */
	hale_status_t (*solve)(const double *values, const char *scheme, struct model_answers *out,
			       struct error *err);
	/* Where scheme b overtakes scheme a, in the key of that name; or NULL. */
	hale_status_t (*cross)(const double *values, const char *a, const char *b, double *at,
			       struct error *err);
	const char *cross_key;
	/* The picture, if nothing else is asked for: an answer over a key. */
	const char *plot_y, *plot_x, *plot_from, *plot_to;
	bool plot_log; /* x */
};

/* The models, in the order of the manual; ends with a NULL name. */
extern const struct model_entry model_entries[];
const struct model_entry *model_entry_find(const char *name);

/* Sets values[] of all keys to their fallbacks. */
void model_values_init(const struct model_entry *entry, double values[MODEL_KEYS_MAX]);
/* Reads "key=value" into its place. */
hale_status_t model_values_read(const struct model_entry *entry, const char *assignment,
				double values[MODEL_KEYS_MAX], struct error *err);
/* The place of a key; -1 if the model has none of that name. */
int model_key_find(const struct model_entry *entry, const char *name);
/* Solves; refuses if a value that must be given is missing (NAN). */
hale_status_t model_entry_solve(const struct model_entry *entry, const double *values,
				const char *scheme, struct model_answers *out, struct error *err);
const struct model_answer *model_answer_find(const struct model_answers *answers, const char *name);

#endif
