/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the simulator share. Everything random has a fixed seed, so that each
 * comparison always comes out the same; formulas must lie within four standard errors of the
 * simulated mean. */
#ifndef HALE_MODEL_SIM_FIXTURE_H
#define HALE_MODEL_SIM_FIXTURE_H

#include "model/sim/sim_world.h"

struct sim_plan plan_of(double nodes, double work_s, const char *failures, const char *scheme,
			uint32_t runs);
struct sim_summary run(const struct sim_plan *p);
void expect_near(double value, double mean, double error, const char *what);
/* The wall time that a formula says, of runs that all finish. */
void expect_wall(double formula_s, const struct sim_summary *s);
/* The share of runs that finish. */
void expect_share(double probability, const struct sim_summary *s);

#endif
