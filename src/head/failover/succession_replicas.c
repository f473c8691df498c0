/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/failover/succession_replicas.h"

#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/head.h"
#include "head/failover/succession.h"

/* ---- lists of small numbers ---- */

static void put_bytes(struct json_out *j, const char *key, const unsigned char *of, uint32_t count)
{
	json_open_array(j, key);
	for (uint32_t i = 0; i < count; i++)
		json_uint(j, NULL, of[i]);
	json_close_array(j);
}

/* Each at most `most`. */
static bool read_bytes(const struct json_value *v, const char *key, unsigned char *to,
		       uint32_t count, int64_t most)
{
	const struct json_value *list = json_get(v, key);

	if (json_count(list) != count)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		int64_t n = json_number_int(json_at(list, i), -1);

		if (n < 0 || n > most)
			return false;
		to[i] = (unsigned char)n;
	}
	return true;
}

/* ---- audits ---- */

static void put_audit(const struct head *h, struct json_out *j)
{
	const struct head_audit *a = &h->audit;

	json_open_object(j, "audit");
	json_int(j, "phase", (int64_t)a->phase);
	json_uint(j, "rank", a->rank);
	json_uint(j, "main", a->main);
	json_uint(j, "twin", a->twin);
	json_uint(j, "witness", a->witness);
	json_uint(j, "guilty", a->guilty);
	json_double(j, "phase_began", head_record_real(a->phase_began));
	json_bool(j, "called", a->called);
	json_bool(j, "lost", a->lost);
	json_bool(j, "stuck", a->stuck);
	json_open_object(j, "visit");
	report_print_audit(&a->visit, j);
	json_close_object(j);
	json_close_object(j);
}

/* A process of the job, or none: nranks. */
static bool read_process(const struct head *h, const struct json_value *v, const char *key,
			 uint32_t *to)
{
	int64_t p = json_number_int(json_get(v, key), -1);

	*to = (uint32_t)p;
	return p >= 0 && p <= h->nranks;
}

static bool read_audit(struct head *h, const struct json_value *v)
{
	struct head_audit *a = &h->audit;
	int64_t phase = json_number_int(json_get(v, "phase"), -1);
	int64_t rank = json_number_int(json_get(v, "rank"), -1);

	if (phase < AUDIT_BETWEEN || phase > AUDIT_ENDS || rank < 0 || rank >= h->view.nranks ||
	    !read_process(h, v, "main", &a->main) || !read_process(h, v, "twin", &a->twin) ||
	    !read_process(h, v, "witness", &a->witness) ||
	    !read_process(h, v, "guilty", &a->guilty))
		return false;
	a->phase = (audit_phase_t)phase;
	a->rank = (uint32_t)rank;
	a->phase_began = head_record_since(v, "phase_began");
	a->called = json_truth(json_get(v, "called"), false);
	a->lost = json_truth(json_get(v, "lost"), false);
	a->stuck = json_truth(json_get(v, "stuck"), false);
	report_read_audit(&a->visit, json_get(v, "visit"));
	return true;
}

/* ---- all ---- */

static void put_places(const struct head *h, struct json_out *j)
{
	const struct clones *c = &h->moves.clones;

	json_open_array(j, "homes");
	for (uint32_t p = 0; p < h->nranks; p++)
		json_uint(j, NULL, c->homes[p]);
	json_close_array(j);
	json_open_array(j, "died_at");
	for (uint32_t p = 0; p < h->nranks; p++)
		json_double(j, NULL, c->died_at[p] > 0 ? head_record_real(c->died_at[p]) : 0);
	json_close_array(j);
	json_open_array(j, "convicted");
	for (uint32_t p = 0; p < h->nranks; p++)
		if (h->ranks[p].convicted)
			json_uint(j, NULL, p);
	json_close_array(j);
	json_uint(j, "only", c->only);
	json_bool(j, "asked", c->asked);
}

void succession_replicas_put(const struct head *h, struct json_out *j)
{
	const struct clones *c = &h->moves.clones;

	if (h->degree <= 1)
		return;
	json_open_object(j, "view");
	json_uint(j, "number", h->view.number);
	put_bytes(j, "lost", h->view.lost, h->nranks);
	put_bytes(j, "wanted", c->wanted, h->view.nranks);
	put_bytes(j, "dropped", c->dropped, h->nranks);
	put_bytes(j, "insists", c->insists, h->nranks);
	put_places(h, j);
	json_uint(j, "sdc_back", h->sdc_back);
	if (h->view.audits)
		put_audit(h, j);
	json_close_object(j);
}

static bool read_places(struct head *h, const struct json_value *v, uint32_t nodes)
{
	const struct json_value *homes = json_get(v, "homes"), *died = json_get(v, "died_at"),
				*convicted = json_get(v, "convicted");
	struct clones *c = &h->moves.clones;
	double now = clock_seconds(), real_now = head_record_real(now);

	if (json_count(homes) != h->nranks || json_count(died) != h->nranks)
		return false;
	for (uint32_t p = 0; p < h->nranks; p++) {
		int64_t k = json_number_int(json_at(homes, p), -1);

		if (k < 0 || k >= nodes)
			return false;
		c->homes[p] = (uint32_t)k;
		if (json_number(json_at(died, p), 0) > 0)
			c->died_at[p] = now - (real_now - json_number(json_at(died, p), 0));
	}
	for (size_t i = 0; i < json_count(convicted); i++) {
		int64_t p = json_number_int(json_at(convicted, i), -1);

		if (p < 0 || p >= h->nranks)
			return false;
		h->ranks[p].convicted = true;
	}
	c->only = (uint32_t)json_number_int(json_get(v, "only"), h->nranks);
	c->asked = json_truth(json_get(v, "asked"), false);
	return true;
}

bool succession_replicas_restore(struct head *h, const struct json_value *doc, uint32_t nodes)
{
	const struct json_value *v = json_get(doc, "view");
	struct clones *c = &h->moves.clones;

	if (h->degree <= 1)
		return true;
	if (!read_bytes(v, "lost", h->view.lost, h->nranks, LIVING_CONVICTED) ||
	    !read_bytes(v, "wanted", c->wanted, h->view.nranks, h->degree) ||
	    !read_bytes(v, "dropped", c->dropped, h->nranks, 1) ||
	    !read_bytes(v, "insists", c->insists, h->nranks, 1) || !read_places(h, v, nodes))
		return false;
	h->view.number = (uint32_t)json_number_int(json_get(v, "number"), 0);
	h->sdc_back = (uint32_t)json_number_int(json_get(v, "sdc_back"), 0);
	/* a copy that was under way had another place in the meantime */
	for (uint32_t p = 0; p < h->nranks; p++) {
		if (!h->view.lost[p])
			continue;
		h->ranks[p].ended = true;
		h->node_set.placement.node_of[p] = c->homes[p];
	}
	return !h->view.audits || read_audit(h, json_get(v, "audit"));
}
