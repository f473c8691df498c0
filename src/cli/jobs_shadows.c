// SPDX-License-Identifier: BSD-3-Clause
/* hale ps --shadows: the shadowed sets of a job (docs/shadows.md). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"

static const char *text_of(const struct json_value *v, const char *key)
{
	return json_text(json_get(v, key), "?");
}

static int64_t number_of(const struct json_value *v, const char *key)
{
	return json_number_int(json_get(v, key), -1);
}

static void show_process(const struct json_value *r)
{
	char size[24];

	printf("    rank %-4" PRId64 " %-6s on %s, pid %" PRId64 ", %s", number_of(r, "rank"),
	       text_of(r, "role"), text_of(r, "node"), number_of(r, "pid"), text_of(r, "state"));
	if (json_get(r, "lag_bytes"))
		printf(", %s of messages behind",
		       units_show_bytes((uint64_t)number_of(r, "lag_bytes"), size));
	if (json_get(r, "rate"))
		printf(", %.2f of a core", json_number(json_get(r, "rate"), 0));
	putchar('\n');
}

/* "energy": modelled, and measured where the machine can. */
static void show_energy(const struct json_value *e)
{
	const struct json_value *m = json_get(e, "modelled"), *d = json_get(e, "measured");
	double mains = json_number(json_get(m, "mains"), 0);
	double all = mains + json_number(json_get(m, "shadows"), 0);

	if (m && mains > 0)
		printf(
		    "  energy, modelled: %.4g seconds of a core at full power, %.0f %% of what two "
		    "full processes of each rank would take\n",
		    all, 100 * all / (2 * mains));
	if (d)
		printf("  energy, measured: %.6g J (%s)\n", json_number(json_get(d, "joules"), 0),
		       text_of(d, "of"));
}

void jobs_show_shadows(const struct json_value *job)
{
	const struct json_value *ranks = json_get(job, "ranks");
	size_t count = json_count(ranks);
	int64_t sets = 0;

	for (size_t i = 0; i < count; i++)
		if (number_of(json_at(ranks, i), "set") >= sets)
			sets = number_of(json_at(ranks, i), "set") + 1;
	printf("%s: %s\n", text_of(job, "id"), sets > 0 ? text_of(job, "state") : "no shadows");
	for (int64_t set = 0; set < sets; set++) {
		bool begun = false;

		for (size_t i = 0; i < count; i++) {
			const struct json_value *r = json_at(ranks, i);

			if (number_of(r, "set") != set)
				continue;
			if (!begun)
				printf("  set %" PRId64 "%s\n", set,
				       json_truth(json_get(r, "vulnerable"), false) ? ", vulnerable"
										    : "");
			begun = true;
			show_process(r);
		}
	}
	show_energy(json_get(job, "energy"));
}

static void copy_number(struct json_out *j, const struct json_value *r, const char *key)
{
	if (json_get(r, key))
		json_uint(j, key, (uint64_t)number_of(r, key));
}

void jobs_copy_shadow(struct json_out *j, const struct json_value *r)
{
	if (!json_get(r, "set"))
		return;
	copy_number(j, r, "set");
	json_bool(j, "vulnerable", json_truth(json_get(r, "vulnerable"), false));
	copy_number(j, r, "lag_bytes");
	if (json_get(r, "rate"))
		json_double(j, "rate", json_number(json_get(r, "rate"), 0));
}

static void copy_value(struct json_out *j, const struct json_value *from, const char *key)
{
	json_double(j, key, json_number(json_get(from, key), 0));
}

void jobs_copy_energy(struct json_out *j, const struct json_value *job)
{
	const struct json_value *e = json_get(job, "energy");
	const struct json_value *m = json_get(e, "modelled"), *d = json_get(e, "measured");

	if (!m)
		return;
	json_open_object(j, "energy");
	if (d) {
		json_open_object(j, "measured");
		copy_value(j, d, "joules");
		json_string(j, "of", text_of(d, "of"));
		json_close_object(j);
	}
	json_open_object(j, "modelled");
	json_string(j, "unit", text_of(m, "unit"));
	copy_value(j, m, "static_part");
	copy_value(j, m, "mains");
	copy_value(j, m, "shadows");
	copy_value(j, m, "twins");
	json_close_object(j);
	json_close_object(j);
}
