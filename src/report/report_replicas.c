/* SPDX-License-Identifier: BSD-3-Clause */
/* What another head's report says of replicas, clones and silent errors, read again. */
#include <stdio.h>
#include "report/report.h"

static uint64_t whole(const struct json_value *v, const char *key)
{
	return (uint64_t)json_number_int(json_get(v, key), 0);
}

static double real(const struct json_value *v, const char *key)
{
	return json_number(json_get(v, key), 0);
}

static void read_clone(struct report *r, const struct json_value *v)
{
	struct report_clone c = {.rank = (uint32_t)whole(v, "rank"),
				 .slot = (uint32_t)whole(v, "slot"),
				 .bytes = whole(v, "bytes"),
				 .same_bytes = whole(v, "same_bytes"),
				 .precopy_seconds = real(v, "precopy_seconds"),
				 .quiesce_seconds = real(v, "quiesce_seconds"),
				 .clone_seconds = real(v, "clone_seconds"),
				 .resume_seconds = real(v, "resume_seconds"),
				 .downtime_seconds = real(v, "downtime_seconds"),
				 .vulnerable_seconds = real(v, "vulnerable_seconds"),
				 .at_seconds = real(v, "at_seconds")};

	snprintf(c.from, sizeof(c.from), "%s", json_text(json_get(v, "from"), "?"));
	snprintf(c.to, sizeof(c.to), "%s", json_text(json_get(v, "to"), "?"));
	report_add_clone(r, &c);
}

static void read_sdc(struct report *r, const struct json_value *v)
{
	struct report_sdc s = {.rank = (uint32_t)whole(v, "rank"),
			       .peer = (uint32_t)whole(v, "peer"),
			       .slot = (int)json_number_int(json_get(v, "slot"), -1),
			       .context = (uint32_t)whole(v, "context"),
			       .message = (uint32_t)whole(v, "message"),
			       .bytes = (uint32_t)whole(v, "bytes"),
			       .named = json_get(v, "first") != NULL,
			       .first = (uint32_t)whole(v, "first"),
			       .last = (uint32_t)whole(v, "last"),
			       .envelope = json_truth(json_get(v, "envelope"), false),
			       .at_seconds = real(v, "at_seconds")};

	snprintf(s.node, sizeof(s.node), "%s", json_text(json_get(v, "node"), ""));
	snprintf(s.action, sizeof(s.action), "%s", json_text(json_get(v, "action"), ""));
	report_add_sdc(r, &s);
}

void report_read_audit(struct report_audit *a, const struct json_value *v)
{
	*a = (struct report_audit){.rank = (uint32_t)whole(v, "rank"),
				   .bytes = whole(v, "bytes"),
				   .seconds = real(v, "seconds"),
				   .pause_seconds = real(v, "pause_seconds"),
				   .at_seconds = real(v, "at_seconds")};
	snprintf(a->node, sizeof(a->node), "%s", json_text(json_get(v, "node"), ""));
	snprintf(a->twin, sizeof(a->twin), "%s", json_text(json_get(v, "twin"), ""));
	snprintf(a->witness, sizeof(a->witness), "%s", json_text(json_get(v, "witness"), ""));
	snprintf(a->result, sizeof(a->result), "%s", json_text(json_get(v, "result"), ""));
	snprintf(a->wrong, sizeof(a->wrong), "%s", json_text(json_get(v, "wrong"), ""));
}

void report_read_replicas(struct report *r, const struct json_value *v)
{
	const struct json_value *list = json_get(v, "clones");
	struct report_audit a;

	r->replicas_lost = (uint32_t)whole(json_get(v, "replicas"), "lost");
	for (size_t i = 0; i < json_count(list); i++)
		read_clone(r, json_at(list, i));
	list = json_get(v, "sdc");
	for (size_t i = 0; i < json_count(list); i++)
		read_sdc(r, json_at(list, i));
	if (whole(v, "sdc_count") > r->sdc_count)
		r->sdc_count = whole(v, "sdc_count");
	list = json_get(v, "audits");
	for (size_t i = 0; i < json_count(list); i++) {
		report_read_audit(&a, json_at(list, i));
		report_add_audit(r, &a);
	}
	if (whole(v, "audit_count") > r->audit_count)
		r->audit_count = whole(v, "audit_count");
}
