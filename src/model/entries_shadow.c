/* SPDX-License-Identifier: BSD-3-Clause */
/* Models of the catalog: lazy shadows, shadows that jump. */
#include <math.h>
#include <string.h>
#include "model/entries.h"
#include "model/model.h"

enum {
	SH_SOCKETS,
	SH_POWER,
	SH_SOCKET,
	SH_MTBF,
	SH_SHAPE,
	SH_WORK,
	SH_OVERHEAD,
	SH_EXPONENT,
	SH_SIGMA,
	SH_GOAL,
	SH_CKPT,
	SH_RESTART,
	SH_IO,
	SH_STRETCH,
	SH_COUNT,
	SH_EVEN
};
const struct model_key shadow_keys[] = {
    {"sockets", "sockets that the budget feeds at full speed, without shadows", MODEL_COUNT, "",
     NULL},
    {"power", "budget; two of sockets, power and socket give the third", MODEL_POWER_W, "", NULL},
    {"socket", "power of one socket at full speed (200W)", MODEL_POWER_W, "", NULL},
    {"mtbf", "mean time to failure of a socket", MODEL_TIME_S, NULL, NULL},
    {"shape", "of its Weibull law; 1: exponential", MODEL_NUMBER, "1", NULL},
    {"work", "time of the job on these sockets without failures", MODEL_TIME_S, "168h", NULL},
    {"overhead", "static part of a socket's power", MODEL_FRACTION, "0.6", NULL},
    {"exponent", "of dynamic power in speed", MODEL_NUMBER, "3", NULL},
    {"sigma", "the shadows' speed; left out: the best", MODEL_FRACTION, "", NULL},
    {"goal",
     "what is best: least energy of a pair (as published), of the job, least time, least "
     "product",
     MODEL_NUMBER, "pair", "pair,energy,time,energy-delay"},
    {"ckpt", "time of a checkpoint", MODEL_TIME_S, "15min", NULL},
    {"restart", "from a failure to going on, with checkpoints", MODEL_TIME_S, "25min", NULL},
    {"io", "power of input and output, in dynamic power of a socket", MODEL_NUMBER, "0", NULL},
    {"stretch", "speed of stretched replication", MODEL_FRACTION, "0.5", NULL},
    {"count", "a job takes as long as its last pair, or as one pair does on average (as published)",
     MODEL_NUMBER, "job", "job,pair"},
    {"even", "break-even with checkpointing in", MODEL_NUMBER, "time", "time,energy"},
    {NULL, NULL, MODEL_NUMBER, NULL, NULL},
};

static hale_status_t shadow_in(const double *v, struct model_contest *c, struct error *err)
{
	double sockets = v[SH_SOCKETS], power_w = v[SH_POWER], socket_w = v[SH_SOCKET];

	if (isnan(sockets) && isnan(power_w))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "model shadow needs sockets= or power=; for example power=20MW");
	if (isnan(socket_w))
		socket_w = isnan(sockets) || isnan(power_w) ? 200 : power_w / sockets;
	if (isnan(sockets))
		sockets = floor(power_w / socket_w * (1 + 1e-12));
	if (!isnan(power_w) && fabs(sockets * socket_w / power_w - 1) > 0.01 &&
	    !isnan(v[SH_SOCKETS]))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "%.0f sockets of %g W draw %g W, not %g W; leave one of the three "
				 "out",
				 sockets, socket_w, sockets * socket_w, power_w);
	*c = (struct model_contest){.law = {v[SH_MTBF], v[SH_SHAPE]},
				    .work_s = v[SH_WORK],
				    .plain_sockets = sockets,
				    .socket_w = socket_w,
				    .static_part = v[SH_OVERHEAD],
				    .exponent = v[SH_EXPONENT],
				    .ckpt_s = v[SH_CKPT],
				    .restart_s = v[SH_RESTART],
				    .io_part = v[SH_IO],
				    .stretched_speed = v[SH_STRETCH],
				    .goal = (enum model_goal)v[SH_GOAL],
				    .shadow_speed = isnan(v[SH_SIGMA]) ? -1 : v[SH_SIGMA],
				    .pairs_alone = v[SH_COUNT] == 1};
	return HALE_OK;
}

static hale_status_t find_method(const char *scheme, enum model_method *method, struct error *err)
{
	static const char *const names[] = {"checkpointing", "replication", "stretched",
					    "shadowing"};

	for (int i = 0; i < MODEL_METHODS; i++)
		if (strcmp(names[i], scheme) == 0) {
			*method = (enum model_method)i;
			return HALE_OK;
		}
	return error_set(err, HALE_ERR_ARGUMENT,
			 "'%.40s' is none of checkpointing, replication, stretched, shadowing",
			 scheme);
}

SOLVER(shadow_solve)
{
	struct model_contest c = {0};
	struct model_contest_result job;
	enum model_method method = MODEL_CHECKPOINTING;
	double main_sockets;

	if (shadow_in(v, &c, err) || find_method(scheme, &method, err) ||
	    model_contest(&c, method, &job, err))
		return HALE_ERR_ARGUMENT;
	main_sockets = floor(job.main_sockets * (1 + 1e-12));
	answer(out, "sigma_s", MODEL_FRACTION, job.shadow_speed, 1, "speed of the shadows");
	answer(out, "expected_time_s", MODEL_TIME_S, job.time_s, 1,
	       c.pairs_alone ? "expected time of a pair" : "expected time of the job");
	answer(out, "expected_energy_j", MODEL_ENERGY_J, job.energy_j, 1, "expected energy");
	answer(out, "sockets", MODEL_COUNT,
	       method == MODEL_CHECKPOINTING ? main_sockets : 2 * main_sockets, 1,
	       "sockets running");
	answer(out, "main_sockets", MODEL_COUNT, main_sockets, 1, "of these with mains");
	answer(out, "mean_power_w", MODEL_POWER_W, job.energy_j / job.time_s, 1, "mean power");
	if (method != MODEL_CHECKPOINTING) {
		struct model_contest_result pair;

		c.pairs_alone = true;
		if (model_contest(&c, method, &pair, err))
			return HALE_ERR_ARGUMENT;
		answer(out, "pair_time_s", MODEL_TIME_S, pair.time_s, 1,
		       "expected time of one pair");
	}
	return HALE_OK;
}

CROSSING(shadow_cross)
{
	struct model_contest c;
	enum model_method from = MODEL_CHECKPOINTING, to = MODEL_CHECKPOINTING;

	if (shadow_in(v, &c, err) || find_method(a, &from, err) || find_method(b, &to, err))
		return HALE_ERR_ARGUMENT;
	if (from != MODEL_CHECKPOINTING || to == MODEL_CHECKPOINTING)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "break-even is sought against checkpointing");
	return model_break_even(&c, to, v[SH_EVEN] == 1, 10, 1e7, at, err);
}

enum {
	JUMP_WORK,
	JUMP_PAIRS,
	JUMP_MTBF,
	JUMP_SIGMA,
	JUMP_PER_CORE,
	JUMP_PRESSURE,
	JUMP_JUMP,
	JUMP_EVERY,
	JUMP_RATE,
	JUMP_BUFFER
};
const struct model_key jumping_keys[] = {
    {"work", "time of the job without failures", MODEL_TIME_S, NULL, NULL},
    {"pairs", "mains, each with a shadow", MODEL_COUNT, NULL, NULL},
    {"mtbf", "mean time to failure of a socket", MODEL_TIME_S, NULL, NULL},
    {"sigma", "the shadows' speed", MODEL_FRACTION, "", NULL},
    {"per_core", "or: shadows that share a core", MODEL_COUNT, "", NULL},
    {"pressure", "their speed is per_core to this power, inverted; 1: no cache misses",
     MODEL_NUMBER, "1.5", NULL},
    {"jump", "time of a forced jump", MODEL_TIME_S, "0", NULL},
    {"every", "time between forced jumps; or rate= and buffer=", MODEL_TIME_S, "never", NULL},
    {"rate", "messages that a main receives", MODEL_BYTES_PER_S, "", NULL},
    {"buffer", "for a shadow's message log; when it is full, the shadow jumps", MODEL_BYTES, "",
     NULL},
    {NULL, NULL, MODEL_NUMBER, NULL, NULL},
};

static hale_status_t jumping_speed(const double *v, double *speed, struct error *err)
{
	*speed = v[JUMP_SIGMA];
	if (isnan(*speed) == isnan(v[JUMP_PER_CORE]))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "model jumping needs either sigma=0.25 or per_core=4");
	if (isnan(*speed))
		return model_shadow_collocated(v[JUMP_PER_CORE], v[JUMP_PRESSURE], speed, err);
	return HALE_OK;
}

SOLVER(jumping_solve)
{
	struct model_jumping in = {.work_s = v[JUMP_WORK],
				   .pairs = v[JUMP_PAIRS],
				   .socket_mttf_s = v[JUMP_MTBF],
				   .jump_every_s = v[JUMP_EVERY],
				   .jump_s = v[JUMP_JUMP]};
	struct model_jumping_result r;
	double growth = NAN, full_s;

	if (jumping_speed(v, &in.shadow_speed, err))
		return HALE_ERR_ARGUMENT;
	if (isnan(v[JUMP_RATE]) != isnan(v[JUMP_BUFFER]))
		return error_set(err, HALE_ERR_ARGUMENT, "rate= and buffer= belong together");
	if (!isnan(v[JUMP_RATE])) {
		if (model_shadow_log(v[JUMP_RATE], in.shadow_speed, 1, v[JUMP_BUFFER], &growth,
				     &full_s, err))
			return HALE_ERR_ARGUMENT;
		in.jump_every_s = fmin(in.jump_every_s, full_s);
	}
	if (model_jumping(&in, &r, err))
		return HALE_ERR_ARGUMENT;
	answer(out, "sigma_s", MODEL_FRACTION, in.shadow_speed, 1, "speed of the shadows");
	answer(out, "expected_time_s", MODEL_TIME_S, r.time_s, 1, "expected time of the job");
	answer(out, "failures", MODEL_NUMBER, r.failures, 1, "mains lost, on average");
	answer(out, "waiting_s", MODEL_TIME_S, r.waiting_s, 1, "of it, waiting for shadows");
	answer(out, "jumping_s", MODEL_TIME_S, r.jumping_s, 1, "of it, in forced jumps");
	answer(out, "every_s", MODEL_TIME_S, in.jump_every_s, 1, "between forced jumps");
	answer(out, "best_every_s", MODEL_TIME_S, r.best_every_s, 1, "the best time between them");
	if (!isnan(growth))
		answer(out, "log_bytes_per_s", MODEL_BYTES_PER_S, growth, 1,
		       "by which the message log grows");
	return HALE_OK;
}
