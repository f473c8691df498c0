/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "base/base.h"
#include "base/clock.h"
#include "base/json.h"
#include "control/control.h"
#include "top/top.h"

enum { FOLD_FROM = 200 }; /* more ranks than any screen has lines */

static void copy_text(char *to, size_t size, const struct json_value *v, const char *fallback)
{
	snprintf(to, size, "%s", json_text(v, fallback));
}

static void job_free(struct top_job *job)
{
	free(job->ranks);
	free(job->nodes);
}

void top_data_fini(struct top_data *d)
{
	for (size_t i = 0; i < d->count; i++)
		job_free(&d->jobs[i]);
	free(d->jobs);
	*d = (struct top_data){0};
}

struct top_job *top_data_find(const struct top_data *d, const char *id)
{
	for (size_t i = 0; i < d->count; i++)
		if (strcmp(d->jobs[i].id, id) == 0)
			return &d->jobs[i];
	return NULL;
}

void top_pace_add(struct top_pace *p, double at, double value)
{
	bool again = p->at <= 0 || value < p->value || at <= p->at;

	p->rate = again ? -1 : (value - p->value) / (at - p->at);
	p->at = at;
	p->value = value;
}

/* ---- what heads answer ---- */

static void read_nodes(struct top_job *job, const struct json_value *answer,
		       const struct top_job *before)
{
	const struct json_value *nodes = json_get(answer, "nodes");
	size_t count = json_count(nodes), ranks = job->rank_count;
	struct utsname here;

	uname(&here);
	job->nodes = calloc(count + 1, sizeof(*job->nodes));
	for (size_t k = 0; job->nodes && k < count; k++) {
		const struct json_value *v = json_at(nodes, k);
		struct top_node *n = &job->nodes[job->node_count++];

		copy_text(n->name, sizeof(n->name), json_get(v, "node"), "?");
		copy_text(n->host, sizeof(n->host), json_get(v, "host"), "?");
		copy_text(n->state, sizeof(n->state), json_get(v, "state"), "?");
		n->ranks = (int)json_number_int(json_get(v, "ranks"), 0);
		n->cores = (int)json_number_int(json_get(v, "cores"), 0);
		n->usable = json_truth(json_get(v, "usable"), true);
		n->local = strcmp(n->host, here.nodename) == 0;
		n->folded =
		    before && k < before->node_count ? before->nodes[k].folded : ranks > FOLD_FROM;
	}
}

static int find_node(const struct top_job *job, const char *name, int guess)
{
	if (guess >= 0 && (size_t)guess < job->node_count &&
	    strcmp(job->nodes[guess].name, name) == 0)
		return guess;
	for (size_t k = 0; k < job->node_count; k++)
		if (strcmp(job->nodes[k].name, name) == 0)
			return (int)k;
	return -1;
}

/* What was measured of the same process before goes on. */
static void read_rank(struct top_job *job, size_t i, const struct json_value *v,
		      const struct top_job *before)
{
	struct top_rank *r = &job->ranks[i];
	const char *node = json_text(json_get(v, "node"), "?");

	*r = (struct top_rank){.cpu = -1};
	r->pid = (pid_t)json_number_int(json_get(v, "pid"), 0);
	if (before && i < before->rank_count && before->ranks[i].pid == r->pid)
		*r = before->ranks[i];
	r->rank = (int)json_number_int(json_get(v, "rank"), -1);
	r->slot = (int)json_number_int(json_get(v, "slot"), 0);
	r->leader = strcmp(json_text(json_get(v, "role"), "leader"), "leader") == 0;
	copy_text(r->state, sizeof(r->state), json_get(v, "state"), "?");
	r->node = find_node(job, node, i > 0 ? job->ranks[i - 1].node : 0);
	r->local = r->node >= 0 && job->nodes[r->node].local;
	job->replicas |= r->slot > 0;
}

static void read_job(struct top_job *job, const struct json_value *ps,
		     const struct json_value *nodes, const struct top_job *before)
{
	const struct json_value *ranks = json_get(ps, "ranks");
	const struct json_value *unprotected = json_get(ps, "unprotected");

	if (before) {
		job->calls = before->calls;
		job->messages = before->messages;
		job->bytes = before->bytes;
	}
	job->mpi_share = -1;
	copy_text(job->program, sizeof(job->program), json_get(ps, "program"), "?");
	copy_text(job->state, sizeof(job->state), json_get(ps, "state"),
		  job->answers ? "?" : "not answering");
	job->seconds = json_number(json_get(ps, "seconds"), 0);
	job->restarts = json_number_int(json_get(ps, "restarts"), 0);
	job->checkpoint = json_number_int(json_get(ps, "checkpoint"), 0);
	job->has_checkpoint = json_get(ps, "checkpoint_bytes") != NULL;
	job->checkpoint_bytes = json_number_int(json_get(ps, "checkpoint_bytes"), 0);
	job->checkpoint_age = json_number(json_get(ps, "checkpoint_age_seconds"), 0);
	job->dirty = json_number(json_get(ps, "dirty_bytes_per_second"), -1);
	job->unprotected = unprotected != NULL;
	job->unprotected_since = json_number(json_get(unprotected, "since_seconds"), 0);
	copy_text(job->why, sizeof(job->why), json_get(unprotected, "why"), "");
	job->rank_count = json_count(ranks);
	read_nodes(job, nodes, before);
	job->ranks = calloc(job->rank_count + 1, sizeof(*job->ranks));
	if (!job->ranks)
		job->rank_count = 0;
	for (size_t i = 0; i < job->rank_count; i++)
		read_rank(job, i, json_at(ranks, i), before);
}

/* ---- more about one ---- */

static double sum_of(const struct json_value *list, const char *key)
{
	double sum = 0;

	for (size_t i = 0; i < json_count(list); i++)
		sum += json_number(json_get(json_at(list, i), key), 0);
	return sum;
}

static void read_profile(struct top_job *job, const struct json_value *p)
{
	const struct json_value *messages = json_get(p, "messages");
	double now = clock_seconds(), all = json_number(json_get(p, "app_seconds"), 0);

	if (!json_get(p, "ranks"))
		return;
	top_pace_add(&job->calls, now, sum_of(json_get(p, "calls"), "count"));
	top_pace_add(&job->messages, now, json_number(json_get(messages, "count"), 0));
	top_pace_add(&job->bytes, now, json_number(json_get(messages, "bytes"), 0));
	if (all > 0)
		job->mpi_share = json_number(json_get(p, "mpi_seconds"), 0) / all;
}

static void read_processes(struct top_job *job, const struct json_value *list)
{
	for (size_t i = 0; i < job->rank_count; i++)
		job->ranks[i].inside[0] = '\0';
	for (size_t i = 0; i < json_count(list); i++) {
		const struct json_value *p = json_at(list, i);
		size_t process = (size_t)json_number_int(json_get(p, "process"), -1);

		if (process < job->rank_count)
			top_told(&job->ranks[process], json_text(json_get(p, "inside"), ""),
				 json_number(json_get(p, "cpu_seconds"), 0),
				 (uint64_t)json_number_int(json_get(p, "memory"), 0));
	}
}

static void read_more(struct top_job *job)
{
	struct json_value *answer = NULL;
	hale_status_t status;

	control_ask_each(&job->id, 1, "{\"op\":\"metrics\"}", &answer, &status);
	if (status == HALE_OK) {
		job->lost_seconds = json_number(json_get(answer, "lost_seconds"), 0);
		job->faults = json_number_int(json_get(answer, "rank_failures"), 0) +
			      json_number_int(json_get(answer, "node_failures"), 0);
		job->recovered = json_number_int(json_get(answer, "rank_failures_recovered"), 0) +
				 json_number_int(json_get(answer, "node_failures_recovered"), 0);
	}
	json_free(answer);
	answer = NULL;
	control_ask_each(&job->id, 1, "{\"op\":\"profile\"}", &answer, &status);
	if (status == HALE_OK)
		read_profile(job, answer);
	json_free(answer);
	answer = NULL;
	control_ask_each(&job->id, 1, "{\"op\":\"processes\"}", &answer, &status);
	if (status == HALE_OK)
		read_processes(job, json_get(answer, "processes"));
	json_free(answer);
	top_local_read(job);
}

/* ---- all ---- */

static void ask_all(char (*names)[JOB_ID_MAX], size_t count, struct top_data *now,
		    const struct top_data *before, const char *wanted)
{
	struct json_value **ps = calloc(count + 1, sizeof(struct json_value *));
	struct json_value **nodes = calloc(count + 1, sizeof(struct json_value *));
	hale_status_t *status = calloc(2 * count + 1, sizeof(*status));

	if (!ps || !nodes || !status)
		count = 0;
	if (count) {
		control_ask_each(names, count, "{\"op\":\"ps\"}", ps, status);
		control_ask_each(names, count, "{\"op\":\"nodes\"}", nodes, status + count);
	}
	for (size_t i = 0; i < count; i++) {
		struct top_job *job = &now->jobs[now->count];

		if (status[i] == HALE_OK || status[i] == HALE_ERR_TIMEOUT) {
			snprintf(job->id, sizeof(job->id), "%s", names[i]);
			job->answers = status[i] == HALE_OK;
			read_job(job, ps[i], nodes[i], top_data_find(before, names[i]));
			if (job->answers && wanted && strcmp(wanted, names[i]) == 0)
				read_more(job);
			now->count++;
		}
		json_free(ps[i]);
		json_free(nodes[i]);
	}
	free(ps);
	free(nodes);
	free(status);
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct top_job *)a)->id, ((const struct top_job *)b)->id);
}

void top_data_read(struct top_data *d, const char *wanted)
{
	char(*names)[JOB_ID_MAX];
	size_t count = control_jobs(&names);
	struct top_data now = {.jobs = calloc(count + 1, sizeof(struct top_job))};

	if (now.jobs) {
		ask_all(names, count, &now, d, wanted);
		qsort(now.jobs, now.count, sizeof(*now.jobs), by_id);
		top_data_fini(d);
		*d = now;
	}
	free(names);
}
