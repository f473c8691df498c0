/* SPDX-License-Identifier: BSD-3-Clause */
/* When the next checkpoint is due that nobody has asked for: at a fixed interval, or as often as
 * policy/cadence.h says from what earlier ones have cost and how often the job has failed. */
#include <stdio.h>
#include <sys/statvfs.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "model/unified.h"
#include "policy/cadence.h"
#include "policy/form.h"
#include "node/task_settings.h"

/* The newest checkpoints say what the next one will take. */
enum { NEWEST = 3 };

/* ---- what is known ---- */

static void add_measured(const struct head *h, const struct report_checkpoint *c,
			 struct cadence_view *v, uint32_t *count, uint32_t *costs)
{
	double cost;

	v->pause_s += c->pause_seconds;
	v->writing_s += c->seconds;
	++*count;
	if (profile_checkpoint_cost(&h->report.pace, &c->during, &cost)) {
		v->cost_s += cost;
		++*costs;
	}
}

static void measure(const struct head *h, struct cadence_view *v)
{
	const struct report *r = &h->report;
	uint32_t count = 0, costs = 0;

	for (size_t i = r->checkpoint_count; i-- > 0 && count < NEWEST;)
		if (r->checkpoints[i].complete)
			add_measured(h, &r->checkpoints[i], v, &count, &costs);
	if (count > 0) {
		v->pause_s /= count;
		v->writing_s /= count;
	}
	v->cost_s = costs > 0 ? v->cost_s / costs : -1;
}

static uint32_t failures(const struct head *h)
{
	uint32_t count = 0;

	for (size_t i = 0; i < h->report.failure_count; i++)
		count += !h->report.failures[i].together && !h->report.failures[i].by_itself;
	return count;
}

/* ---- with tasks ---- */

static double task_seconds(const struct head *h, enum meter_task what)
{
	return 1e-9 * (double)h->report.profile.task[what];
}

/* False: the job runs without --tasks. */
static bool tasks_known(const struct head *h, struct cadence_tasks *t)
{
	struct task_settings s;
	char why[160];

	if (!h->o->tasks || !task_settings_read(&s, h->o->tasks, why))
		return false;
	*t = (struct cadence_tasks){.memory = s.memory,
				    .mended = h->report.profile.task[METER_TASK_MENDED],
				    .fell = h->faults.tasks_fell,
				    .protected_s = task_seconds(h, METER_TASK_PROTECTED),
				    .exposed_s = task_seconds(h, METER_TASK_NS) +
						 task_seconds(h, METER_TASK_SERIAL)};
	return true;
}

static struct cadence_view view_of(const struct head *h)
{
	struct cadence_tasks t;
	struct cadence_view v = {.ranks = h->nranks,
				 .cores = node_set_cores(&h->node_set),
				 .overhead = h->o->overhead,
				 .least_s = h->o->ckpt_first,
				 .mtbf_s = h->o->mtbf,
				 .nodes = h->node_set.count,
				 .past_failures = h->ckpt.timed.past.failures,
				 .past_node_seconds = h->ckpt.timed.past.node_seconds,
				 .failures = failures(h),
				 .run_s = head_seconds(h)};

	measure(h, &v);
	if (tasks_known(h, &t))
		v.covered = t.memory * cadence_coverage(&t);
	return v;
}

static struct cadence next(const struct head *h)
{
	struct cadence_view v = view_of(h);

	return cadence_next(&v);
}

static double restart_seconds(const struct head *h)
{
	double sum = 0;
	uint32_t count = 0;

	for (size_t i = 0; i < h->report.failure_count; i++)
		if (h->report.failures[i].restart_seconds > 0) {
			sum += h->report.failures[i].restart_seconds;
			count++;
		}
	return count ? sum / count : 0;
}

/* Share of the time in tasks that their protection took. */
static double task_waste(const struct head *h)
{
	double in_tasks = task_seconds(h, METER_TASK_NS), waste;

	if (in_tasks <= 0)
		return 0;
	waste = (task_seconds(h, METER_TASK_CHECKPOINT) + task_seconds(h, METER_TASK_LOG) +
		 task_seconds(h, METER_TASK_AGAIN)) /
		in_tasks;
	return waste < 1 ? waste : 1;
}

void checkpoint_report_tasks(struct head *h)
{
	struct report_unified *u = &h->report.unified;
	struct cadence_view v = view_of(h), alone = v;
	struct model_unified_result r;
	struct cadence_tasks t;
	struct error err;

	if (!tasks_known(h, &t))
		return;
	alone.covered = 0;
	*u = (struct report_unified){.coverage = cadence_coverage(&t),
				     .memory = t.memory,
				     .task_waste = task_waste(h),
				     .ckpt_s = cadence_cost_s(&v),
				     .restart_s = restart_seconds(h)};
	/* as cadence_mtbf_s() counts, but memory errors only, and all of these */
	alone.failures = 0;
	u->due_rate_hz = (t.memory + (double)t.mended + (double)t.fell) / cadence_mtbf_s(&alone);
	alone.failures = v.failures;
	u->system_interval_s = cadence_next(&alone).interval_s;
	u->interval_s = cadence_next(&v).interval_s;
	u->is = model_unified(&(struct model_unified){.ckpt_s = u->ckpt_s,
						      .restart_s = u->restart_s,
						      .due_rate_hz = u->due_rate_hz,
						      .coverage = u->coverage,
						      .task_waste = u->task_waste},
			      &r, &err) == HALE_OK;
	u->score = r.score;
}

/* ---- its form ---- */

/* The newest checkpoints since all forms were tried last, by what they wrote. */
static void measure_forms(const struct head *h, struct form_view *v)
{
	const struct report *r = &h->report;
	uint64_t newest = report_newest_checkpoint(r);
	size_t since = (size_t)(newest % FORM_AGAIN);

	for (size_t i = r->checkpoint_count; i-- > 0 && since-- > 0;) {
		const struct report_checkpoint *c = &r->checkpoints[i];
		struct cadence_view one = {
		    .ranks = h->nranks, .cores = node_set_cores(&h->node_set), .cost_s = -1};
		struct form_measured *m = &v->kind[(c->base ? FORM_CHANGES : FORM_PLAIN) + c->lz4];
		uint32_t count = 0, costs = 0;

		if (!c->complete)
			continue;
		one.cost_s = 0;
		add_measured(h, c, &one, &count, &costs);
		one.cost_s = costs ? one.cost_s : -1;
		m->cost_s = (m->cost_s * m->count + cadence_cost_s(&one)) / (m->count + 1);
		m->bytes = (m->bytes * m->count + (double)c->bytes) / (m->count + 1);
		m->count++;
	}
}

void checkpoint_choose_form(struct head *h)
{
	struct checkpoint *c = &h->ckpt;
	const struct options *o = h->o;
	struct form_view v = {.may_compress = !o->given_compress && o->restart != IMAGE_LAZY,
			      .may_change = !o->given_incremental,
			      .compress = o->compress == IMAGE_LZ4,
			      .changes = o->incremental,
			      .based = c->tracked && !c->chain.broken};
	struct form f;

	c->compress = o->compress;
	c->tracks = c->changes = o->incremental;
	/* who asks for one gets it as the options say */
	if (!o->ckpt_auto || c->origin != ORIGIN_TIMER)
		return;
	measure_forms(h, &v);
	f = form_next(&v);
	if (v.may_compress)
		c->compress = f.compress ? IMAGE_LZ4 : IMAGE_PLAIN;
	if (v.may_change) {
		c->tracks = f.track;
		c->changes = f.changes;
	}
	log_debug("the next checkpoint is of %s%s", c->changes ? "changes" : "all memory",
		  f.compress ? ", by lz4" : "");
}

/* ---- the timer ---- */

/* Until the next one is due, from now on. */
static double until_due(const struct head *h)
{
	const struct checkpoint *c = &h->ckpt;
	double after = h->o->ckpt_first, waited = clock_seconds() - c->timed.quiet_since;

	if (!h->o->ckpt_auto)
		return h->o->ckpt_every;
	if (c->timed.attempts > 0)
		after = cadence_retry_s(h->o->ckpt_first, c->timed.attempts);
	else if (c->last_id > 0)
		after = next(h).interval_s;
	return waited < after ? after - waited : 0;
}

static void interval_over(void *arg);

static void set_timer(struct head *h)
{
	loop_timer_set(&h->loop, &h->ckpt.timed.interval, until_due(h), interval_over, h);
}

/* What was measured meanwhile may have moved the time. */
static void interval_over(void *arg)
{
	struct head *h = arg;
	struct error err;

	if (h->o->ckpt_auto && until_due(h) > 0) {
		set_timer(h);
		return;
	}
	h->ckpt.timed.attempts++;
	h->ckpt.timed.quiet_since = clock_seconds();
	checkpoint_request(h, ORIGIN_TIMER, &err);
	set_timer(h);
}

void checkpoint_interval_start(struct head *h)
{
	h->ckpt.timed.quiet_since = clock_seconds();
	h->ckpt.timed.attempts = 0;
	if (h->o->ckpt_every > 0 || h->o->ckpt_auto)
		set_timer(h);
}

void checkpoint_interval_again(struct head *h)
{
	char every[16], cost[16], mtbf[CKPT_MTBF], covered[64] = "";
	struct cadence_tasks t;
	struct cadence c;

	if (!h->o->ckpt_auto || job_state_over(h->state))
		return;
	checkpoint_interval_start(h);
	c = next(h);
	if (tasks_known(h, &t))
		snprintf(covered, sizeof(covered), "; tasks mend %.1f %% of memory errors",
			 100 * cadence_coverage(&t));
	if (log_level() >= LOG_INFO)
		log_info("the next checkpoint follows in %s: one costs %s, and %s%s",
			 units_show_seconds(c.interval_s, every),
			 units_show_seconds(c.cost_s, cost), checkpoint_show_mtbf(h, mtbf),
			 covered);
}

/* ---- how often it fails ---- */

const char *checkpoint_show_mtbf(const struct head *h, char text[CKPT_MTBF])
{
	const struct failure_history *past = &h->ckpt.timed.past;
	struct cadence_view v = view_of(h);
	char every[16], from[48] = "assumed";

	if (h->o->mtbf > 0)
		snprintf(from, sizeof(from), "--mtbf");
	else if (past->jobs > 0)
		snprintf(from, sizeof(from), "%lu in %u earlier job%s",
			 (unsigned long)past->failures, past->jobs, past->jobs == 1 ? "" : "s");
	snprintf(text, CKPT_MTBF, "a failure is expected every %s: %s",
		 units_show_seconds(cadence_mtbf_s(&v), every), from);
	return text;
}

void checkpoint_add_to_history(const struct head *h)
{
	/* failures on purpose say nothing about the machines */
	if (!h->begin_said || h->faults.count > 0 || h->o->due || h->faults.task_due[0])
		return;
	if (!failure_history_add(clock_seconds() - h->began, h->node_set.count, failures(h)))
		log_info(
		    "the list of failures can't be written: later jobs won't know of this one");
}

/* ---- room ---- */

hale_status_t checkpoint_has_room(const struct head *h, struct error *err)
{
	const struct checkpoint *c = &h->ckpt;
	char need[16], free_[16];
	struct statvfs fs;
	uint64_t left;

	if (!h->o->ckpt_auto || c->origin != ORIGIN_TIMER || h->levels.on ||
	    store_statvfs(h->o->ckpt_dir, &fs) != 0)
		return HALE_OK;
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (c->progress.bytes_expected <= left / 2)
		return HALE_OK;
	return error_set(err, HALE_ERR_STORE_FULL,
			 "it may take %s, more than half of the %s that are free in '%s'; "
			 "--ckpt-dir puts checkpoints elsewhere, and with --ckpt-every TIME they "
			 "are taken all the same",
			 units_show_bytes(c->progress.bytes_expected, need),
			 units_show_bytes(left, free_), h->o->ckpt_dir);
}
