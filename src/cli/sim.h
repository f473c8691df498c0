/* SPDX-License-Identifier: BSD-3-Clause */
/* hale sim: its help, and how it shows on stdout what it found. */
#ifndef HALE_CLI_SIM_H
#define HALE_CLI_SIM_H

#include "model/sim/sim.h"

extern const char cli_sim_help[];

void sim_show_one(const struct sim_plan *plan, const char *failures,
		  const struct sim_scheme *scheme, const struct sim_summary *summary);
void sim_show_table(const struct sim_plan *plan, const char *failures,
		    const struct sim_scheme *schemes, const struct sim_summary *summaries,
		    size_t count);
/* One object for one scheme, an array of them for several. */
void sim_show_json(const struct sim_plan *plan, const char *failures,
		   const struct sim_scheme *schemes, const struct sim_summary *summaries,
		   size_t count);

#endif
