/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"

void report_fini(struct report *r)
{
	free(r->checkpoints);
	free(r->failures);
	free(r->migrations);
	free(r->stays);
	free(r->events);
	free(r->clones);
	free(r->shadows.promotions);
	free(r->shadows.jumps);
	free(r->sdc);
	free(r->audit);
	r->clones = NULL;
	r->clone_count = 0;
	r->checkpoints = NULL;
	r->failures = NULL;
	r->migrations = NULL;
	r->stays = NULL;
	r->stay_count = 0;
	r->events = NULL;
	r->event_count = 0;
	r->checkpoint_count = r->failure_count = r->migration_count = 0;
}

/* A job of a day may take one each second. */
static void forget_oldest(struct report *r)
{
	size_t left = r->checkpoint_count - REPORT_FORGOTTEN;

	report_sum_up(r, REPORT_FORGOTTEN, r->before);
	memmove(r->checkpoints, r->checkpoints + REPORT_FORGOTTEN, left * sizeof(*r->checkpoints));
	r->checkpoint_count = left;
	r->checkpoints_before += REPORT_FORGOTTEN;
}

void report_add_checkpoint(struct report *r, const struct report_checkpoint *c)
{
	struct report_checkpoint *more;

	if (r->checkpoint_count == REPORT_CHECKPOINTS)
		forget_oldest(r);
	more = realloc(r->checkpoints, (r->checkpoint_count + 1) * sizeof(*more));
	if (!more)
		return;
	r->checkpoints = more;
	more[r->checkpoint_count++] = *c;
}

uint64_t report_newest_checkpoint(const struct report *r)
{
	return r->checkpoints_before + r->checkpoint_count;
}

struct report_checkpoint *report_checkpoint_at(const struct report *r, uint64_t number)
{
	if (number <= r->checkpoints_before || number > report_newest_checkpoint(r))
		return NULL;
	return &r->checkpoints[number - r->checkpoints_before - 1];
}

void report_add_migration(struct report *r, const struct report_migration *m)
{
	struct report_migration *more =
	    realloc(r->migrations, (r->migration_count + 1) * sizeof(*more));

	if (!more)
		return;
	r->migrations = more;
	more[r->migration_count++] = *m;
}

void report_add_clone(struct report *r, const struct report_clone *c)
{
	struct report_clone *more = realloc(r->clones, (r->clone_count + 1) * sizeof(*more));

	if (!more)
		return;
	r->clones = more;
	more[r->clone_count++] = *c;
}

void report_add_sdc(struct report *r, const struct report_sdc *s)
{
	struct report_sdc *more;

	if (++r->sdc_count > REPORT_SDC_MAX)
		return;
	more = realloc(r->sdc, r->sdc_count * sizeof(*more));
	if (!more) {
		r->sdc_count--;
		return;
	}
	r->sdc = more;
	more[r->sdc_count - 1] = *s;
}

struct report_failure *report_add_failure(struct report *r, uint32_t rank, const char *node,
					  const char *reason, double at_seconds)
{
	struct report_failure *more = realloc(r->failures, (r->failure_count + 1) * sizeof(*more));
	struct report_failure *f;

	if (!more)
		return NULL;
	r->failures = more;
	f = &more[r->failure_count++];
	*f = (struct report_failure){.rank = rank, .at_seconds = at_seconds};
	snprintf(f->node, sizeof(f->node), "%s", node);
	snprintf(f->reason, sizeof(f->reason), "%s", reason);
	return f;
}

static void print_checkpoint(const struct report_checkpoint *c, struct json_out *j)
{
	json_open_object(j, NULL);
	json_uint(j, "id", c->id);
	json_uint(j, "bytes", c->bytes);
	json_double(j, "pause_seconds", c->pause_seconds);
	json_double(j, "seconds", c->seconds);
	json_bool(j, "complete", c->complete);
	json_uint(j, "base", c->base);
	json_bool(j, "lz4", c->lz4);
	json_bool(j, "compressed", c->compressed);
	json_double(j, "at_seconds", c->at_seconds);
	json_int(j, "level", c->level);
	json_double(j, "copied_seconds", c->copied_seconds);
	if (!c->complete)
		json_string(j, "why", c->why);
	json_close_object(j);
}

static const char *const then_names[REPORT_THENS] = {"end", "rollback", "replica"};

static report_then_t then_of(const char *name)
{
	report_then_t t = REPORT_ENDS;

	while (t < REPORT_THENS && strcmp(then_names[t], name) != 0)
		t++;
	return t < REPORT_THENS ? t : REPORT_ENDS;
}

static void print_failure(const struct report_failure *f, struct json_out *j)
{
	json_open_object(j, NULL);
	json_uint(j, "rank", f->rank);
	json_uint(j, "slot", f->slot);
	json_string(j, "node", f->node);
	json_string(j, "reason", f->reason);
	json_double(j, "at_seconds", f->at_seconds);
	json_string(j, "then", then_names[f->then]);
	json_uint(j, "rolled_back_to", f->rolled_back_to);
	json_double(j, "lost_seconds", f->lost_seconds);
	json_double(j, "restart_seconds", f->restart_seconds);
	json_close_object(j);
}

void report_print_migration(const struct report_migration *m, struct json_out *j)
{
	json_string(j, "from", m->from);
	json_string(j, "to", m->to);
	json_uint(j, "ranks", m->ranks);
	json_uint(j, "bytes", m->bytes);
	json_double(j, "seconds", m->seconds);
	json_double(j, "downtime_seconds", m->downtime_seconds);
	json_uint(j, "relayed_bytes", m->relayed);
	json_uint(j, "stopped_bytes", m->stopped);
	json_uint(j, "rounds", m->rounds);
	json_uint(j, "held_rounds", m->held);
}

static void print_migration(const struct report_migration *m, struct json_out *j)
{
	json_open_object(j, NULL);
	report_print_migration(m, j);
	json_double(j, "at_seconds", m->at_seconds);
	json_close_object(j);
}

void report_print_clone(const struct report_clone *c, struct json_out *j)
{
	json_uint(j, "rank", c->rank);
	json_uint(j, "slot", c->slot);
	json_string(j, "from", c->from);
	json_string(j, "to", c->to);
	json_uint(j, "bytes", c->bytes);
	if (c->same_bytes > 0)
		json_uint(j, "same_bytes", c->same_bytes);
	json_double(j, "precopy_seconds", c->precopy_seconds);
	json_double(j, "quiesce_seconds", c->quiesce_seconds);
	json_double(j, "clone_seconds", c->clone_seconds);
	json_double(j, "resume_seconds", c->resume_seconds);
	json_double(j, "downtime_seconds", c->downtime_seconds);
	json_double(j, "vulnerable_seconds", c->vulnerable_seconds);
	json_double(j, "at_seconds", c->at_seconds);
}

static void print_replicas(const struct report *r, struct json_out *j)
{
	json_open_object(j, "replicas");
	json_uint(j, "degree", r->degree);
	json_uint(j, "lost", r->replicas_lost);
	json_close_object(j);
	json_open_array(j, "clones");
	for (size_t i = 0; i < r->clone_count; i++) {
		json_open_object(j, NULL);
		report_print_clone(&r->clones[i], j);
		json_close_object(j);
	}
	json_close_array(j);
}

static void print_one_sdc(const struct report_sdc *s, struct json_out *j)
{
	json_open_object(j, NULL);
	json_uint(j, "rank", s->rank);
	json_int(j, "slot", s->slot);
	json_string(j, "node", s->node);
	json_uint(j, "peer", s->peer);
	json_uint(j, "context", s->context);
	json_uint(j, "message", s->message);
	json_uint(j, "bytes", s->bytes);
	if (s->named) {
		json_uint(j, "first", s->first);
		json_uint(j, "last", s->last);
	}
	if (s->envelope)
		json_bool(j, "envelope", true);
	json_string(j, "action", s->action);
	json_double(j, "at_seconds", s->at_seconds);
	json_close_object(j);
}

static void print_sdc(const struct report *r, struct json_out *j)
{
	size_t n = r->sdc_count < REPORT_SDC_MAX ? r->sdc_count : REPORT_SDC_MAX;

	json_uint(j, "sdc_count", r->sdc_count);
	json_open_array(j, "sdc");
	for (size_t i = 0; i < n; i++)
		print_one_sdc(&r->sdc[i], j);
	json_close_array(j);
}

static void print_all(const struct report *r, size_t skipped, size_t events, int exit_status,
		      double wall_seconds, struct json_out *j)
{
	uint64_t before = r->checkpoints_before + skipped;

	json_string(j, "job", r->job);
	json_int(j, "exit", exit_status);
	json_uint(j, "ranks", r->ranks);
	json_double(j, "wall_seconds", wall_seconds);
	json_uint(j, "restarts", r->restarts);
	if (r->degree > 1)
		print_replicas(r, j);
	report_print_shadows(r, j);
	if (r->compares)
		print_sdc(r, j);
	report_print_audits(r, j);
	json_uint(j, "agents_replaced", r->agents_replaced);
	json_uint(j, "warm_sinks", r->warm_sinks);
	if (before > 0)
		json_uint(j, "checkpoints_before", before);
	json_open_array(j, "checkpoints");
	for (size_t i = skipped; i < r->checkpoint_count; i++)
		print_checkpoint(&r->checkpoints[i], j);
	json_close_array(j);
	json_open_array(j, "failures");
	for (size_t i = 0; i < r->failure_count; i++)
		print_failure(&r->failures[i], j);
	json_close_array(j);
	json_open_array(j, "migrations");
	for (size_t i = 0; i < r->migration_count; i++)
		print_migration(&r->migrations[i], j);
	json_close_array(j);
	report_print_nodes(r, j);
	report_print_events(r, events, j);
	json_uint(j, "seed", r->seed);
}

static void print_unified(const struct report_unified *u, struct json_out *j)
{
	json_open_object(j, "unified");
	json_double(j, "coverage", u->coverage);
	json_double(j, "memory", u->memory);
	json_double(j, "task_waste", u->task_waste);
	json_double(j, "due_rate_hz", u->due_rate_hz);
	json_double(j, "ckpt_seconds", u->ckpt_s);
	json_double(j, "restart_seconds", u->restart_s);
	json_double(j, "system_interval_seconds", u->system_interval_s);
	json_double(j, "interval_seconds", u->interval_s);
	json_double(j, "score", u->score);
	json_close_object(j);
}

void report_print(const struct report *r, int exit_status, double wall_seconds, struct json_out *j)
{
	json_open_object(j, NULL);
	print_all(r, 0, REPORT_EVENTS, exit_status, wall_seconds, j);
	report_print_unprotected(r, j);
	if (r->unified.is)
		print_unified(&r->unified, j);
	if (r->profile.ranks > 0)
		report_print_profile(r, "profile", wall_seconds, j);
	json_close_object(j);
}

void report_print_unprotected(const struct report *r, struct json_out *j)
{
	if (!r->unprotected.is)
		return;
	json_open_object(j, "unprotected");
	json_double(j, "since_seconds", r->unprotected.since_seconds);
	json_string(j, "why", r->unprotected.why);
	json_close_object(j);
}

enum { SERIES = sizeof(struct report_sums) / sizeof(struct report_series) };

static struct report_series *series_of(struct report_sums *s, size_t i)
{
	return (struct report_series *[]){&s->bytes, &s->pause, &s->seconds, &s->cost}[i];
}

void report_print_inherited(const struct report *r, struct json_out *j)
{
	size_t skipped =
	    r->checkpoint_count > REPORT_INHERITED ? r->checkpoint_count - REPORT_INHERITED : 0;
	struct report_sums sums[2] = {r->before[0], r->before[1]};

	report_sum_up(r, skipped, sums);
	json_open_object(j, NULL);
	print_all(r, skipped, REPORT_EVENTS_INHERITED, 0, 0, j);
	json_open_array(j, "sums_before");
	for (size_t i = 0; i < 2 * (size_t)SERIES; i++) {
		const struct report_series *s = series_of(&sums[i / SERIES], i % SERIES);

		json_uint(j, NULL, s->count);
		json_double(j, NULL, s->sum);
		json_double(j, NULL, s->squares);
	}
	json_close_array(j);
	json_close_object(j);
}

static uint64_t whole(const struct json_value *v, const char *key)
{
	return (uint64_t)json_number_int(json_get(v, key), 0);
}

static double real(const struct json_value *v, const char *key)
{
	return json_number(json_get(v, key), 0);
}

static void read_checkpoint(struct report *r, const struct json_value *v)
{
	struct report_checkpoint c = {.id = (uint32_t)whole(v, "id"),
				      .base = (uint32_t)whole(v, "base"),
				      .bytes = whole(v, "bytes"),
				      .pause_seconds = real(v, "pause_seconds"),
				      .seconds = real(v, "seconds"),
				      .at_seconds = real(v, "at_seconds"),
				      .level = (int)whole(v, "level"),
				      .copied_seconds = real(v, "copied_seconds"),
				      .complete = json_truth(json_get(v, "complete"), false),
				      .lz4 = json_truth(json_get(v, "lz4"), false)};

	c.compressed = json_truth(json_get(v, "compressed"), false);
	snprintf(c.why, sizeof(c.why), "%s", json_text(json_get(v, "why"), ""));
	report_add_checkpoint(r, &c);
}

static void read_failure(struct report *r, const struct json_value *v)
{
	struct report_failure *f =
	    report_add_failure(r, (uint32_t)whole(v, "rank"), json_text(json_get(v, "node"), "?"),
			       json_text(json_get(v, "reason"), "?"), real(v, "at_seconds"));

	if (!f)
		return;
	f->slot = (uint32_t)whole(v, "slot");
	f->then = then_of(json_text(json_get(v, "then"), ""));
	f->rolled_back_to = (uint32_t)whole(v, "rolled_back_to");
	f->lost_seconds = real(v, "lost_seconds");
	f->restart_seconds = real(v, "restart_seconds");
}

static void read_migration(struct report *r, const struct json_value *v)
{
	struct report_migration m = {.ranks = (uint32_t)whole(v, "ranks"),
				     .bytes = whole(v, "bytes"),
				     .relayed = whole(v, "relayed_bytes"),
				     .stopped = whole(v, "stopped_bytes"),
				     .rounds = (uint32_t)whole(v, "rounds"),
				     .held = (uint32_t)whole(v, "held_rounds"),
				     .seconds = real(v, "seconds"),
				     .downtime_seconds = real(v, "downtime_seconds"),
				     .at_seconds = real(v, "at_seconds")};

	snprintf(m.from, sizeof(m.from), "%s", json_text(json_get(v, "from"), "?"));
	snprintf(m.to, sizeof(m.to), "%s", json_text(json_get(v, "to"), "?"));
	report_add_migration(r, &m);
}

static void read_sums(struct report *r, const struct json_value *list)
{
	for (size_t i = 0; i < 2 * (size_t)SERIES; i++) {
		struct report_series *s = series_of(&r->before[i / SERIES], i % SERIES);

		s->count = (uint64_t)json_number_int(json_at(list, 3 * i), 0);
		s->sum = json_number(json_at(list, 3 * i + 1), 0);
		s->squares = json_number(json_at(list, 3 * i + 2), 0);
	}
}

void report_read(struct report *r, const struct json_value *v)
{
	const struct json_value *list = json_get(v, "checkpoints");

	r->checkpoints_before = whole(v, "checkpoints_before");
	read_sums(r, json_get(v, "sums_before"));
	r->restarts = (uint32_t)whole(v, "restarts");
	r->agents_replaced = (uint32_t)whole(v, "agents_replaced");
	r->warm_sinks = (uint32_t)whole(v, "warm_sinks");
	for (size_t i = 0; i < json_count(list); i++)
		read_checkpoint(r, json_at(list, i));
	list = json_get(v, "failures");
	for (size_t i = 0; i < json_count(list); i++)
		read_failure(r, json_at(list, i));
	list = json_get(v, "migrations");
	for (size_t i = 0; i < json_count(list); i++)
		read_migration(r, json_at(list, i));
	report_read_replicas(r, v);
	report_read_nodes(r, v);
	report_read_events(r, v);
}

/* /dev/stdout and the like can't be renamed over */
static bool is_device(const char *path)
{
	return strncmp(path, "/dev/", 5) == 0;
}

static void temporary_name(const char *path, char name[PATH_MAX])
{
	snprintf(name, PATH_MAX, "%s.%d.tmp", path, (int)getpid());
}

hale_status_t report_probe(const char *what, const char *path, struct error *err)
{
	char temporary[PATH_MAX];
	struct stat st;
	int fd;

	if (is_device(path))
		return HALE_OK;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "cannot write the %s '%s': it is a folder; name a file in it",
				 what, path);
	temporary_name(path, temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 && errno != ENOSPC && errno != EDQUOT)
		return error_sys(err, HALE_ERR_ARGUMENT, "cannot write the %s '%s'", what, path);
	if (fd >= 0) {
		close(fd);
		unlink(temporary);
	}
	return HALE_OK;
}

hale_status_t report_write_text(const struct json_out *j, const char *what, const char *path,
				struct error *err)
{
	char temporary[PATH_MAX];
	bool good = false;
	FILE *f;

	temporary_name(path, temporary);
	f = fopen(is_device(path) ? path : temporary, "we");
	if (f && j->text) {
		good = fprintf(f, "%s\n", j->text) > 0;
		good = fclose(f) == 0 && good;
		if (!is_device(path))
			good = good && rename(temporary, path) == 0;
	}
	if (good)
		return HALE_OK;
	error_sys(err, HALE_ERR_SYSTEM, "cannot write the %s '%s'", what, path);
	unlink(temporary);
	return HALE_ERR_SYSTEM;
}

hale_status_t report_write(const struct report *r, const char *path, int exit_status,
			   double wall_seconds, struct error *err)
{
	struct json_out j;
	hale_status_t status;

	json_out_init(&j);
	report_print(r, exit_status, wall_seconds, &j);
	status = report_write_text(&j, "report", path, err);
	json_out_fini(&j);
	return status;
}

/* ---- the record ---- */

void record_init(struct record *r)
{
	*r = (struct record){.fd = -1};
}

void record_fini(struct record *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->early);
	record_init(r);
}

/* A record that can't be written is a pity, but no reason to disturb the job. */
static void append(int fd, const char *text, size_t len)
{
	ssize_t n = write(fd, text, len);
	(void)n;
}

void record_open(struct record *r, const char *job_folder)
{
	char path[PATH_MAX];

	if (r->fd >= 0)
		return;
	snprintf(path, sizeof(path), "%s/record.jsonl", job_folder);
	r->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (r->fd >= 0 && r->early_len > 0)
		append(r->fd, r->early, r->early_len);
	free(r->early);
	r->early = NULL;
	r->early_len = 0;
}

void record_begin(struct json_out *j, const char *event)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	json_out_init(j);
	json_open_object(j, NULL);
	json_double(j, "at", (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
	json_string(j, "event", event);
}

void record_end(struct record *r, struct json_out *j)
{
	char *line = NULL;
	int len = -1;

	json_close_object(j);
	if (j->text)
		len = asprintf(&line, "%s\n", j->text);
	json_out_fini(j);
	if (len < 0)
		return;
	if (r->fd >= 0) {
		append(r->fd, line, (size_t)len);
	} else {
		char *more = realloc(r->early, r->early_len + (size_t)len);
		if (more) {
			memcpy(more + r->early_len, line, (size_t)len);
			r->early = more;
			r->early_len += (size_t)len;
		}
	}
	free(line);
}
