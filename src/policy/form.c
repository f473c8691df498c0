/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/form.h"

/* A form is left for another one that is better by this share at least. */
#define BETTER 0.95

enum { PAGE = 4096 };

double form_cost_s(const struct form_view *v, form_kind_t kind)
{
	const struct form_measured *m = &v->kind[kind];

	if (m->count == 0)
		return -1;
	return m->cost_s + (kind >= FORM_CHANGES ? m->bytes / PAGE * FORM_FAULT_S : 0);
}

static bool tried(const struct form_view *v, form_kind_t kind)
{
	return v->kind[kind].count >= FORM_SERIES;
}

static bool better(const struct form_view *v, form_kind_t a, form_kind_t b)
{
	double x = form_cost_s(v, a), y = form_cost_s(v, b);

	return x >= 0 && y >= 0 && x < BETTER * y;
}

struct form form_next(const struct form_view *v)
{
	struct form f = {.compress = v->compress, .track = v->changes, .changes = v->changes};
	form_kind_t full, changes;

	if (v->may_compress && !tried(v, FORM_PLAIN)) {
		f.compress = false;
	} else if (v->may_compress && !tried(v, FORM_LZ4)) {
		f.compress = true;
		return f;
	} else if (v->may_compress) {
		f.compress = better(v, FORM_LZ4, FORM_PLAIN);
	}
	if (!v->may_change || !tried(v, f.compress ? FORM_LZ4 : FORM_PLAIN))
		return f;
	full = f.compress ? FORM_LZ4 : FORM_PLAIN;
	changes = f.compress ? FORM_CHANGES_LZ4 : FORM_CHANGES;
	/* the first of them needs a base, on which writes are noted */
	if (!tried(v, changes) || better(v, changes, full)) {
		f.track = true;
		f.changes = v->based;
	}
	return f;
}
