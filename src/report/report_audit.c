// SPDX-License-Identifier: BSD-3-Clause
/* What a report says of audits (docs/audit.md). */
#include <stdlib.h>
#include <string.h>
#include "report/report.h"

void report_add_audit(struct report *r, const struct report_audit *a)
{
	size_t n = r->audit_count < REPORT_AUDITS ? r->audit_count : REPORT_AUDITS;

	if (!r->audit)
		r->audit = calloc(REPORT_AUDITS, sizeof(*r->audit));
	if (!r->audit)
		return;
	if (n == REPORT_AUDITS)
		memmove(r->audit, r->audit + 1, --n * sizeof(*r->audit));
	r->audit[n] = *a;
	r->audit_count++;
}

void report_print_audit(const struct report_audit *a, struct json_out *j)
{
	json_uint(j, "rank", a->rank);
	json_string(j, "node", a->node);
	json_string(j, "twin", a->twin);
	json_string(j, "witness", a->witness);
	json_uint(j, "bytes", a->bytes);
	json_double(j, "seconds", a->seconds);
	json_double(j, "pause_seconds", a->pause_seconds);
	json_string(j, "result", a->result);
	if (a->wrong[0])
		json_string(j, "wrong", a->wrong);
	json_double(j, "at_seconds", a->at_seconds);
}

void report_print_audits(const struct report *r, struct json_out *j)
{
	size_t n = r->audit_count < REPORT_AUDITS ? r->audit_count : REPORT_AUDITS;

	if (!r->audits)
		return;
	json_uint(j, "audit_count", r->audit_count);
	json_open_array(j, "audits");
	for (size_t i = 0; r->audit && i < n; i++) {
		json_open_object(j, NULL);
		report_print_audit(&r->audit[i], j);
		json_close_object(j);
	}
	json_close_array(j);
}
