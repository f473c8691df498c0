/* SPDX-License-Identifier: BSD-3-Clause */
/* How often to take a checkpoint, and what a run with checkpoints takes.
 * ckpt_s (δ) is the time that a checkpoint takes from the program, restart_s (R) the time from a
 * failure to going on, mtbf_s (M) the mean time between failures of the whole job. */
#ifndef HALE_MODEL_INTERVAL_H
#define HALE_MODEL_INTERVAL_H

#include "base/error.h"

/* Work between two checkpoints. Young 1974: sqrt(2 δ M). ckpt_s >= 0, mtbf_s > 0. */
hale_status_t model_young_s(double ckpt_s, double mtbf_s, double *interval_s, struct error *err);

/* Daly 2006, higher order: sqrt(2 δ M) (1 + 1/3 sqrt(δ/2M) + δ/18M) - δ if δ < 2M, else M. */
hale_status_t model_daly_s(double ckpt_s, double mtbf_s, double *interval_s, struct error *err);

/* The very minimum of Daly's wall time for long runs: M (1 + W(-exp(-1 - δ/M))), W Lambert's
 * function. Young's and Daly's are its approximations. */
hale_status_t model_best_interval_s(double ckpt_s, double mtbf_s, double *interval_s,
				    struct error *err);

/* Expected wall time of work_s (T_s) with a checkpoint after every interval_s (τ) of work, but
 * none after the last piece, exponential failures (003 eq. 3, Daly's complete model):
 * M e^(R/M) (e^((τ+δ)/M) - 1) (T_s/τ - δ/(τ+δ)). work_s >= interval_s > 0, restart_s >= 0. */
hale_status_t model_daly_wall_s(double work_s, double interval_s, double ckpt_s, double restart_s,
				double mtbf_s, double *wall_s, struct error *err);

/* First order, 002 eq. 6: the share of time that goes into checkpoints, rework and restarts:
 * δ/τ + τ/2M + R/M. */
hale_status_t model_first_order_waste(double interval_s, double ckpt_s, double restart_s,
				      double mtbf_s, double *fraction, struct error *err);

/* Mean time between failures of count things with one mean time each: mean / count. */
hale_status_t model_system_mtbf_s(double each_mtbf_s, double count, double *mtbf_s,
				  struct error *err);

#endif
