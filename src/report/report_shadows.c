// SPDX-License-Identifier: BSD-3-Clause
/* What a report says of shadows (docs/shadows.md). */
#include <stdlib.h>
#include "report/report.h"

void report_add_promotion(struct report *r, const struct report_promotion *p)
{
	struct report_shadows *s = &r->shadows;
	struct report_promotion *more =
	    realloc(s->promotions, (s->promotion_count + 1) * sizeof(*more));

	if (!more)
		return;
	s->promotions = more;
	more[s->promotion_count++] = *p;
}

void report_add_jump(struct report *r, const struct report_jump *jump)
{
	struct report_shadows *s = &r->shadows;
	struct report_jump *more = realloc(s->jumps, (s->jump_count + 1) * sizeof(*more));

	if (!more)
		return;
	s->jumps = more;
	more[s->jump_count++] = *jump;
}

void report_print_promotion(const struct report_promotion *p, struct json_out *j)
{
	json_uint(j, "rank", p->rank);
	json_uint(j, "set", p->set);
	json_string(j, "from", p->from);
	json_string(j, "to", p->to);
	json_uint(j, "log_bytes", p->log_bytes);
	json_uint(j, "stopped", p->stopped);
	json_double(j, "at_seconds", p->at_seconds);
}

void report_print_jump(const struct report_jump *jump, struct json_out *j)
{
	json_uint(j, "rank", jump->rank);
	json_uint(j, "bytes", jump->bytes);
	json_uint(j, "same_bytes", jump->same_bytes);
	json_uint(j, "log_bytes", jump->log_bytes);
	json_double(j, "seconds", jump->seconds);
	json_double(j, "pause_seconds", jump->pause_seconds);
	json_string(j, "why", jump->why);
	json_double(j, "at_seconds", jump->at_seconds);
}

void report_print_energy(const struct report_energy *e, struct json_out *j)
{
	if (!e->known)
		return;
	json_open_object(j, "energy");
	if (e->measured) {
		json_open_object(j, "measured");
		json_double(j, "joules", e->joules);
		json_string(j, "of",
			    "all processors of the machine, since the job began (powercap)");
		json_close_object(j);
	}
	json_open_object(j, "modelled");
	json_string(j, "unit", "seconds of one core at full power");
	json_double(j, "static_part", e->static_part);
	json_double(j, "mains", e->mains);
	json_double(j, "shadows", e->shadows);
	json_double(j, "twins", e->twins);
	json_close_object(j);
	json_close_object(j);
}

/* The log grows by 1 - sigma of what comes (seed 003, 2.5); g(S) = 1 / sigma (2.2). */
void report_print_speed(const struct report_speed *s, struct json_out *j)
{
	double sigma = s->came_bytes ? (double)s->eaten_bytes / (double)s->came_bytes : 0;

	if (s->seconds <= 0)
		return;
	json_open_object(j, "speed");
	json_string(j, "held_by", s->held);
	json_double(j, "core_share", s->cpu_seconds / s->seconds);
	if (sigma > 0) {
		json_double(j, "sigma", sigma);
		json_double(j, "g", 1 / sigma);
	}
	json_close_object(j);
}

void report_print_shadows(const struct report *r, struct json_out *j)
{
	const struct report_shadows *s = &r->shadows;

	if (s->size == 0)
		return;
	json_open_object(j, "shadows");
	json_uint(j, "sets", s->sets);
	json_uint(j, "set_size", s->size);
	report_print_energy(&s->energy, j);
	report_print_speed(&s->speed, j);
	json_open_array(j, "promotions");
	for (size_t i = 0; i < s->promotion_count; i++) {
		json_open_object(j, NULL);
		report_print_promotion(&s->promotions[i], j);
		json_close_object(j);
	}
	json_close_array(j);
	json_open_array(j, "jumps");
	for (size_t i = 0; i < s->jump_count; i++) {
		json_open_object(j, NULL);
		report_print_jump(&s->jumps[i], j);
		json_close_object(j);
	}
	json_close_array(j);
	json_close_object(j);
}
