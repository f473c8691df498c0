/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/sim/sim_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/base.h"

struct sim_plan plan_of(double nodes, double work_s, const char *failures, const char *scheme,
			uint32_t runs)
{
	struct sim_plan p;
	struct error err = {0};
	char *file;

	sim_plan_init(&p);
	p.job.nodes = nodes;
	p.job.work_s = work_s;
	p.runs = runs;
	if (sim_failures_parse(failures, &p.failures, &file, &err) != HALE_OK ||
	    sim_scheme_parse(scheme, &p.scheme, &err) != HALE_OK)
		fail_msg("%s", err.text);
	free(file);
	return p;
}

struct sim_summary run(const struct sim_plan *p)
{
	struct sim_summary s;
	struct error err = {0};

	if (sim_run(p, &s, NULL, NULL, &err) != HALE_OK)
		fail_msg("%s", err.text);
	return s;
}

void expect_near(double value, double mean, double error, const char *what)
{
	if (!(fabs(value - mean) <= error))
		fail_msg("%s: %.10g expected, %.10g +- %.3g simulated", what, value, mean, error);
}

/* The wall time that a formula says. The interval is one of 1.96 standard errors. */
void expect_wall(double formula_s, const struct sim_summary *s)
{
	assert_int_equal(s->finished, s->runs);
	expect_near(formula_s, s->mean[SIM_WALL_S], (s->high_s - s->low_s), "wall time");
}

void expect_share(double probability, const struct sim_summary *s)
{
	double n = s->runs;

	expect_near(probability, s->finished / n, 4 * sqrt(probability * (1 - probability) / n),
		    "share of runs");
}
