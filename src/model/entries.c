/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of models, and the smaller ones of them. */
#include <math.h>
#include "model/entries.h"
#include "model/model.h"

const struct model_entry model_entries[] = {
    {.name = "interval",
     .summary = "how often to take a checkpoint; with task-level re-execution below it",
     .source = "Young 1974, Daly 2006; Subasi et al. 2016",
     .example = "ckpt=40s mtbf=6h restart=60s coverage=0.86",
     .keys = interval_keys,
     .solve = interval_solve,
     .plot_y = "unified_s",
     .plot_x = "mtbf",
     .plot_from = "1h",
     .plot_to = "30d",
     .plot_log = true},
    {.name = "tasks",
     .summary = "what task-level re-execution costs, from its parts",
     .source = "Subasi et al. 2016, eq. 7-11",
     .example = "ckpt=1% log=0.5% rework=2s rate=1/h overlap=0.3",
     .keys = tasks_keys,
     .solve = tasks_solve,
     .plot_y = "task_waste",
     .plot_x = "overlap",
     .plot_from = "0",
     .plot_to = "1"},
    {.name = "redundancy",
     .summary = "replicated ranks, lost ones cloned or not",
     .source = "Rezaei 2016, 3.7 and 3.9",
     .example = "nodes=200000 mttf=50y t=256h beta=0.2 clone=2min --compare 2x,2xD,3x",
     .keys = redundancy_keys,
     .schemes = "1x 2x 3x … replicas, the job starts again when a rank has lost all; 2xD 3xD … "
		"lost replicas are cloned",
     .standard = "2xD",
     .compared = "2x,2xD,3x",
     .solve = redundancy_solve,
     .cross = redundancy_cross,
     .cross_key = "nodes",
     .plot_y = "t_total_hours",
     .plot_x = "nodes",
     .plot_from = "10k",
     .plot_to = "2M"},
    {.name = "communication",
     .summary = "a program's beta from the times it spends in MPI calls",
     .source = "Rezaei 2016, eq. 3.1-3.3",
     .example = "app=100s mpi=30s send=6s irecv=1s recv=2s wait=10s",
     .keys = comm_keys,
     .solve = comm_solve,
     .plot_y = "beta",
     .plot_x = "wait",
     .plot_from = "0s",
     .plot_to = "10s"},
    {.name = "partial",
     .summary = "some ranks replicated, checkpoints for the others",
     .source = "Rezaei 2016, figure 3.1; Daly 2006",
     .example = "nodes=100k mttf=5y t=168h ckpt=15min restart=15min fraction=0.5",
     .keys = partial_keys,
     .solve = partial_solve,
     .plot_y = "t_total_hours",
     .plot_x = "fraction",
     .plot_from = "0",
     .plot_to = "1"},
    {.name = "vulnerability",
     .summary = "soft errors while a rank's twin is being cloned",
     .source = "Rezaei 2016, 3.9.3",
     .example = "window=2min ranks=1M t=100h",
     .keys = window_keys,
     .solve = window_solve,
     .plot_y = "probability",
     .plot_x = "window",
     .plot_from = "1s",
     .plot_to = "10min"},
    {.name = "shadow",
     .summary = "lazy shadows against checkpoints and replicas, on one power budget",
     .source = "Melhem et al., Lazy Shadowing, 2.1-2.7",
     .example = "sockets=100000 mtbf=25y power=20MW overhead=0.6 "
		"--compare checkpointing,replication,stretched,shadowing",
     .keys = shadow_keys,
     .schemes = "checkpointing replication stretched shadowing",
     .standard = "shadowing",
     .compared = "checkpointing,replication,stretched,shadowing",
     .solve = shadow_solve,
     .cross = shadow_cross,
     .cross_key = "sockets",
     .plot_y = "expected_time_s",
     .plot_x = "mtbf",
     .plot_from = "5y",
     .plot_to = "50y"},
    {.name = "jumping",
     .summary = "shadows that jump to their mains' state, at failures and when their log is full",
     .source = "Melhem et al., Lazy Shadowing, 2.2-2.5",
     .example = "work=168h pairs=50000 mtbf=25y per_core=4 jump=5s rate=54.2MB/s buffer=8GiB",
     .keys = jumping_keys,
     .solve = jumping_solve,
     .plot_y = "expected_time_s",
     .plot_x = "every",
     .plot_from = "10s",
     .plot_to = "2h",
     .plot_log = true},
    {.name = "lvf",
     .summary = "live vulnerability factor of a variable",
     .source = "Rezaei 2016, 4.2.2",
     .example = "live=20min size=4GiB fit=50",
     .keys = lvf_keys,
     .solve = lvf_solve,
     .plot_y = "lvf_byte_seconds",
     .plot_x = "live",
     .plot_from = "0s",
     .plot_to = "1h"},
    {.name = NULL},
};

enum {
	TASKS_OVERLAP,
	TASKS_CKPT,
	TASKS_LOG,
	TASKS_REWORK,
	TASKS_NO_SEND,
	TASKS_RESTART,
	TASKS_RATE
};
const struct model_key tasks_keys[] = {
    {"overlap", "share of it that shows in wall time", MODEL_FRACTION, "1", NULL},
    {"ckpt", "task checkpoints, share of time", MODEL_FRACTION, NULL, NULL},
    {"log", "logging of messages, share of time", MODEL_FRACTION, "0", NULL},
    {"rework", "work of a failed task that is done again", MODEL_TIME_S, "0", NULL},
    {"nosend", "of that, sends that need not be repeated", MODEL_TIME_S, "0", NULL},
    {"restart", "time to restore a failed task", MODEL_TIME_S, "0", NULL},
    {"rate", "detected errors of the job", MODEL_RATE_HZ, "0", NULL},
    {NULL, NULL, MODEL_NUMBER, NULL, NULL},
};

SOLVER(tasks_solve)
{
	struct model_task_level t = {.overlap = v[TASKS_OVERLAP],
				     .ckpt = v[TASKS_CKPT],
				     .log = v[TASKS_LOG],
				     .rework = v[TASKS_REWORK],
				     .no_send = v[TASKS_NO_SEND],
				     .restart = v[TASKS_RESTART]};
	double waste;

	if (model_task_waste(&t, v[TASKS_RATE], &waste, err))
		return HALE_ERR_ARGUMENT;
	answer(out, "task_waste", MODEL_FRACTION, waste, 1,
	       "share of time that the task level costs; task= of model interval");
	return HALE_OK;
}

enum { COMM_APP, COMM_MPI, COMM_SEND, COMM_ISEND, COMM_RECV, COMM_IRECV, COMM_WAIT };
const struct model_key comm_keys[] = {
    {"app", "from the end of MPI_Init to MPI_Finalize", MODEL_TIME_S, NULL, NULL},
    {"mpi", "of that, within MPI calls", MODEL_TIME_S, NULL, NULL},
    {"send", "in MPI_Send", MODEL_TIME_S, "0", NULL},
    {"isend", "in MPI_Isend", MODEL_TIME_S, "0", NULL},
    {"recv", "in MPI_Recv", MODEL_TIME_S, "0", NULL},
    {"irecv", "in MPI_Irecv", MODEL_TIME_S, "0", NULL},
    {"wait", "in MPI_Wait and MPI_Waitall", MODEL_TIME_S, "0", NULL},
    {NULL, NULL, MODEL_NUMBER, NULL, NULL},
};

SOLVER(comm_solve)
{
	struct model_mpi_times t = {v[COMM_APP],  v[COMM_MPI],	 v[COMM_SEND], v[COMM_ISEND],
				    v[COMM_RECV], v[COMM_IRECV], v[COMM_WAIT]};
	struct model_comm c;

	if (model_comm_from_times(&t, &c, err))
		return HALE_ERR_ARGUMENT;
	answer(out, "alpha", MODEL_FRACTION, c.alpha, 1, "share of time in MPI");
	answer(out, "f_send", MODEL_FRACTION, c.f_send, 1, "of that, in sends");
	answer(out, "f_recv", MODEL_FRACTION, c.f_recv, 1, "of that, in receives");
	answer(out, "beta", MODEL_FRACTION, c.beta, 1,
	       "share of time that each further replica costs once more");
	return HALE_OK;
}

enum { WINDOW_WINDOW, WINDOW_RANKS, WINDOW_T };
const struct model_key window_keys[] = {
    {"window", "time without a twin", MODEL_TIME_S, "2min", NULL},
    {"ranks", "number of ranks, each twofold", MODEL_COUNT, NULL, NULL},
    {"t", "time that a rank runs", MODEL_TIME_S, NULL, NULL},
    {NULL, NULL, MODEL_NUMBER, NULL, NULL},
};

SOLVER(window_solve)
{
	double p;

	if (model_vulnerability(v[WINDOW_WINDOW], v[WINDOW_RANKS], v[WINDOW_T], &p, err))
		return HALE_ERR_ARGUMENT;
	answer(out, "probability", MODEL_NUMBER, p, 1,
	       "that a soft error falls on the lonely rank in its window");
	return HALE_OK;
}

enum { LVF_LIVE, LVF_SIZE, LVF_FIT };
const struct model_key lvf_keys[] = {
    {"live", "from the first set to the last use", MODEL_TIME_S, NULL, NULL},
    {"size", "of the data", MODEL_BYTES, NULL, NULL},
    {"fit", "soft errors in 10^9 hours and 2^20 bits", MODEL_NUMBER, "", NULL},
    {NULL, NULL, MODEL_NUMBER, NULL, NULL},
};

SOLVER(lvf_solve)
{
	double lvf, errors;

	if (model_lvf(v[LVF_LIVE], v[LVF_SIZE], &lvf, err))
		return HALE_ERR_ARGUMENT;
	answer(out, "lvf_byte_seconds", MODEL_NUMBER, lvf, 1, "live range times size");
	if (isnan(v[LVF_FIT]))
		return HALE_OK;
	if (model_lvf_errors(lvf, v[LVF_FIT], &errors, err))
		return HALE_ERR_ARGUMENT;
	answer(out, "expected_errors", MODEL_NUMBER, errors, 1,
	       "that strike the data while it lives");
	return HALE_OK;
}
