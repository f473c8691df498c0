/* SPDX-License-Identifier: BSD-3-Clause */
/* Which nodes a job has had, and how many of its ranks each had when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/report.h"

/* How many it has had last; -1: it has not been there. */
static int64_t last_of(const struct report *r, const char *node)
{
	for (size_t i = r->stay_count; i-- > 0;)
		if (strcmp(r->stays[i].node, node) == 0)
			return r->stays[i].ranks;
	return -1;
}

void report_node_has(struct report *r, const char *node, uint32_t ranks, double at_seconds)
{
	struct report_stay *more, *s;

	if (r->stay_count == REPORT_STAYS || last_of(r, node) == ranks)
		return;
	more = realloc(r->stays, (r->stay_count + 1) * sizeof(*more));
	if (!more)
		return;
	r->stays = more;
	s = &more[r->stay_count++];
	*s = (struct report_stay){.ranks = ranks, .at_seconds = at_seconds};
	snprintf(s->node, sizeof(s->node), "%s", node);
}

void report_print_nodes(const struct report *r, struct json_out *j)
{
	json_open_array(j, "nodes");
	for (size_t i = 0; i < r->stay_count; i++) {
		json_open_object(j, NULL);
		json_string(j, "node", r->stays[i].node);
		json_uint(j, "ranks", r->stays[i].ranks);
		json_double(j, "at_seconds", r->stays[i].at_seconds);
		json_close_object(j);
	}
	json_close_array(j);
}

void report_read_nodes(struct report *r, const struct json_value *v)
{
	const struct json_value *list = json_get(v, "nodes");

	for (size_t i = 0; i < json_count(list); i++) {
		const struct json_value *s = json_at(list, i);

		report_node_has(r, json_text(json_get(s, "node"), "?"),
				(uint32_t)json_number_int(json_get(s, "ranks"), 0),
				json_number(json_get(s, "at_seconds"), 0));
	}
}
