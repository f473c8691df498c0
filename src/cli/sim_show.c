/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/sim.h"
#include "model/quantity.h"

static const char *const level_names[POLICY_LEVELS] = {"L1", "L2", "L4"};

static void show_head(const struct sim_plan *plan, const char *failures)
{
	char work[MODEL_QUANTITY_TEXT];

	printf("%.0f nodes, %s of work, failures %s", plan->job.nodes,
	       model_quantity_show(plan->job.work_s, MODEL_TIME_S, work), failures);
	if (plan->job.beta > 0)
		printf(", beta %.4g", plan->job.beta);
	printf("\n");
}

/* Why the mean is not one, on the line before it; nothing where it is. */
static void show_unfinished(const struct sim_plan *plan, const struct sim_summary *s)
{
	if (s->hopeless)
		printf("  never finishes: none of the first %u runs was done after %g times its "
		       "work, or ever could be\n",
		       s->runs, plan->limit);
	else if (s->finished < s->runs)
		printf(
		    "  %u of %u runs never finish (%g times their work was not enough, or no node "
		    "was left); what follows is of the others\n",
		    s->runs - s->finished, s->runs, plan->limit);
	if (s->outlived)
		printf("  %u of %u runs went on after the end of the trace, without failures\n",
		       s->outlived, s->runs);
}

static void show_parts(const struct sim_plan *plan, const struct sim_summary *s)
{
	static const struct {
		enum sim_figure figure;
		const char *name;
	} parts[] = {{SIM_CKPT_S, "checkpoints"},
		     {SIM_REWORK_S, "lost work"},
		     {SIM_RESTART_S, "restarts"},
		     {SIM_STALL_S, "stalls"},
		     {SIM_WAIT_S, "waiting for nodes"}};
	double work = plan->job.work_s, more = s->mean[SIM_WORK_S] - work;

	printf("  of that         ");
	if (more > 0)
		printf("redundancy %.3g %%, ", 100 * more / work);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		printf("%s%s %.3g %%", i ? ", " : "", parts[i].name,
		       100 * s->mean[parts[i].figure] / work);
	printf("\n");
}

static void show_counts(const struct sim_summary *s)
{
	static const struct {
		enum sim_figure figure;
		const char *name;
	} counts[] = {{SIM_FAILURES, "failures"},	    {SIM_RESTARTS, "restarts"},
		      {SIM_COVERED, "tasks re-executed"},   {SIM_CLONES, "clones"},
		      {SIM_PROMOTIONS, "shadows promoted"}, {SIM_JUMPS, "forced jumps"},
		      {SIM_REJUVENATIONS, "rejuvenations"}, {SIM_CKPTS, "checkpoints"}};

	printf("  on average      ");
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		if (i < 2 || s->mean[counts[i].figure] > 0)
			printf("%s%.6g %s", i ? ", " : "", s->mean[counts[i].figure],
			       counts[i].name);
	printf("\n  nodes           %llu in use, %.6g replaced, at most %.6g at a time\n",
	       (unsigned long long)s->slots, s->mean[SIM_SPARES], s->mean[SIM_SPARES_PEAK]);
}

void sim_show_one(const struct sim_plan *plan, const char *failures,
		  const struct sim_scheme *scheme, const struct sim_summary *s)
{
	char a[MODEL_QUANTITY_TEXT], b[MODEL_QUANTITY_TEXT], c[MODEL_QUANTITY_TEXT];
	bool some = false;

	printf("%s\n", scheme->text);
	show_head(plan, failures);
	show_unfinished(plan, s);
	if (!s->hopeless) {
		printf("  wall time       %s  (95 %% interval of the mean: %s to %s)\n",
		       model_quantity_show(s->mean[SIM_WALL_S], MODEL_TIME_S, a),
		       model_quantity_show(s->low_s, MODEL_TIME_S, b),
		       model_quantity_show(s->high_s, MODEL_TIME_S, c));
		printf("  loss            %.3g %% of the work\n", 100 * s->loss);
		show_parts(plan, s);
		if (isfinite(s->p95_s))
			printf("  half the runs   within %s, 95 %% within %s\n",
			       model_quantity_show(s->median_s, MODEL_TIME_S, a),
			       model_quantity_show(s->p95_s, MODEL_TIME_S, b));
		show_counts(s);
		printf("  energy          %s\n",
		       model_quantity_show(s->mean[SIM_ENERGY_J], MODEL_ENERGY_J, a));
	}
	for (int k = 0; k < POLICY_LEVELS; k++)
		if (s->every_s[k] > 0) {
			printf("%s %s every %s", some ? "," : "  checkpoints    ", level_names[k],
			       model_quantity_show(s->every_s[k], MODEL_TIME_S, a));
			some = true;
		}
	if (some)
		printf("\n");
	if (scheme->shadows)
		printf("  shadows         at %.3g of the full speed\n", s->speed);
	printf("  %u runs, seed %llu\n", s->runs, (unsigned long long)plan->seed);
}

void sim_show_table(const struct sim_plan *plan, const char *failures,
		    const struct sim_scheme *schemes, const struct sim_summary *summaries,
		    size_t count)
{
	size_t width = 6;

	show_head(plan, failures);
	for (size_t i = 0; i < count; i++)
		width = strlen(schemes[i].text) > width ? strlen(schemes[i].text) : width;
	printf("%-*s  %12s  %8s  %8s  %10s  %10s  %12s\n", (int)width, "scheme", "wall time",
	       "loss", "+-", "restarts", "replaced", "energy");
	for (size_t i = 0; i < count; i++) {
		const struct sim_summary *s = &summaries[i];
		char wall[MODEL_QUANTITY_TEXT], energy[MODEL_QUANTITY_TEXT];
		printf("%-*s  ", (int)width, schemes[i].text);
		if (s->hopeless) {
			printf("%12s\n", "never");
			continue;
		}
		printf("%12s  %6.2f %%  %6.2f %%  %10.4g  %10.6g  %12s%s\n",
		       model_quantity_show(s->mean[SIM_WALL_S], MODEL_TIME_S, wall), 100 * s->loss,
		       100 * (s->high_s - s->low_s) / 2 / plan->job.work_s, s->mean[SIM_RESTARTS],
		       s->mean[SIM_SPARES],
		       model_quantity_show(s->mean[SIM_ENERGY_J], MODEL_ENERGY_J, energy),
		       s->finished < s->runs ? "  (of the runs that finish)" : "");
	}
	printf("%u runs each, seed %llu; +- is half the 95 %% interval of the mean\n", plan->runs,
	       (unsigned long long)plan->seed);
}

static void json_figures(struct json_out *j, const struct sim_summary *s)
{
	static const char *const names[SIM_FIGURES] = {
	    [SIM_WALL_S] = "wall_s",	       [SIM_WORK_S] = "work_s",
	    [SIM_CKPT_S] = "checkpoint_s",     [SIM_REWORK_S] = "rework_s",
	    [SIM_RESTART_S] = "restart_s",     [SIM_STALL_S] = "stall_s",
	    [SIM_WAIT_S] = "wait_s",	       [SIM_FAILURES] = "failures",
	    [SIM_COVERED] = "covered",	       [SIM_RESTARTS] = "restarts",
	    [SIM_CLONES] = "clones",	       [SIM_PROMOTIONS] = "promotions",
	    [SIM_JUMPS] = "forced_jumps",      [SIM_REJUVENATIONS] = "rejuvenations",
	    [SIM_CKPTS] = "checkpoints",       [SIM_SPARES] = "spares",
	    [SIM_SPARES_PEAK] = "spares_peak", [SIM_ENERGY_J] = "energy_j",
	};

	json_open_object(j, "means");
	for (int i = 0; i < SIM_FIGURES; i++)
		json_double(j, names[i], s->mean[i]);
	json_close_object(j);
}

static void json_one(struct json_out *j, const struct sim_plan *plan, const char *failures,
		     const struct sim_scheme *scheme, const struct sim_summary *s)
{
	double unknown = s->hopeless ? NAN : 0; /* printed as null */

	json_open_object(j, NULL);
	json_double(j, "mean", s->mean[SIM_WALL_S] + unknown);
	json_open_array(j, "interval");
	json_double(j, NULL, s->low_s + unknown);
	json_double(j, NULL, s->high_s + unknown);
	json_close_array(j);
	json_uint(j, "runs", s->runs);
	json_uint(j, "seed", plan->seed);
	json_string(j, "unit", "s");
	json_double(j, "confidence", 0.95);
	json_string(j, "scheme", scheme->text);
	json_string(j, "failures", failures);
	json_double(j, "nodes", plan->job.nodes);
	json_uint(j, "nodes_in_use", s->slots);
	json_double(j, "plain_s", plan->job.work_s);
	json_double(j, "loss", s->loss + unknown);
	json_bool(j, "never_finishes", s->hopeless);
	json_uint(j, "finished", s->finished);
	json_uint(j, "outlived_trace", s->outlived);
	json_double(j, "deviation_s", s->deviation_s);
	json_double(j, "median_s", s->median_s);
	json_double(j, "p95_s", s->p95_s);
	json_open_array(j, "energy_interval_j");
	json_double(j, NULL, s->energy_low_j);
	json_double(j, NULL, s->energy_high_j);
	json_close_array(j);
	json_open_object(j, "intervals_s");
	for (int k = 0; k < POLICY_LEVELS; k++)
		if (s->every_s[k] > 0)
			json_double(j, level_names[k], s->every_s[k]);
	json_close_object(j);
	json_figures(j, s);
	json_close_object(j);
}

void sim_show_json(const struct sim_plan *plan, const char *failures,
		   const struct sim_scheme *schemes, const struct sim_summary *summaries,
		   size_t count)
{
	struct json_out j;

	json_out_init(&j);
	if (count > 1)
		json_open_array(&j, NULL);
	for (size_t i = 0; i < count; i++)
		json_one(&j, plan, failures, &schemes[i], &summaries[i]);
	if (count > 1)
		json_close_array(&j);
	puts(j.text);
	json_out_fini(&j);
}
