/* SPDX-License-Identifier: BSD-3-Clause */
/* The models as `hale model` offers them: named values in, named answers out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "model/catalog.h"
#include "model/model.h"

#define HOUR_S 3600.0

/* Answers to "key=value key=value". */
static hale_status_t asked(const char *model, const char *scheme, const char *values,
			   struct model_answers *out, struct error *err)
{
	const struct model_entry *entry = model_entry_find(model);
	double v[MODEL_KEYS_MAX];
	char text[256], *rest = NULL;

	assert_non_null(entry);
	model_values_init(entry, v);
	snprintf(text, sizeof(text), "%s", values);
	for (char *a = strtok_r(text, " ", &rest); a; a = strtok_r(NULL, " ", &rest))
		if (model_values_read(entry, a, v, err) != HALE_OK)
			return HALE_ERR_ARGUMENT;
	return model_entry_solve(entry, v, scheme, out, err);
}

static double answered(const struct model_answers *out, const char *name)
{
	const struct model_answer *a = model_answer_find(out, name);

	if (!a)
		fail_msg("there is no answer %s", name);
	return a->value;
}

static void assert_near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * fabs(b)))
		fail_msg("%.12g is not %.12g", a, b);
}

static void intervals_are_those_of_the_formulas(void **state)
{
	struct model_answers out;
	double young_s, daly_s, best_s;

	assert_int_equal(asked("interval", NULL, "ckpt=40s mtbf=6h", &out, NULL), HALE_OK);
	model_young_s(40, 6 * HOUR_S, &young_s, NULL);
	model_daly_s(40, 6 * HOUR_S, &daly_s, NULL);
	model_best_interval_s(40, 6 * HOUR_S, &best_s, NULL);
	assert_near(answered(&out, "young_s"), young_s);
	assert_near(answered(&out, "daly_s"), daly_s);
	assert_near(answered(&out, "best_s"), best_s);
	assert_null(model_answer_find(&out, "daly_wall_s")); /* of no job */
	assert_int_equal(asked("interval", NULL, "ckpt=40s rate=4/d", &out, NULL), HALE_OK);
	assert_near(answered(&out, "daly_s"), daly_s);
}

static void times_of_a_job_are_told_where_there_is_one(void **state)
{
	static const char job[] = "mtbf=6h restart=60s work=100h";
	struct model_answers out;
	char values[128];
	double wall_s, daly_s;

	snprintf(values, sizeof(values), "ckpt=40s %s", job);
	assert_int_equal(asked("interval", NULL, values, &out, NULL), HALE_OK);
	model_daly_s(40, 6 * HOUR_S, &daly_s, NULL);
	model_daly_wall_s(100 * HOUR_S, daly_s, 40, 60, 6 * HOUR_S, &wall_s, NULL);
	assert_near(answered(&out, "daly_wall_s"), wall_s);
	assert_true(answered(&out, "system_total_s") > 100 * HOUR_S);
	/* an interval of one's own */
	snprintf(values, sizeof(values), "ckpt=40s every=2h %s", job);
	assert_int_equal(asked("interval", NULL, values, &out, NULL), HALE_OK);
	model_daly_wall_s(100 * HOUR_S, 2 * HOUR_S, 40, 60, 6 * HOUR_S, &wall_s, NULL);
	assert_near(answered(&out, "daly_wall_s"), wall_s);
	/* one that is longer than the job is the job */
	snprintf(values, sizeof(values), "ckpt=40s every=200h %s", job);
	assert_int_equal(asked("interval", NULL, values, &out, NULL), HALE_OK);
	model_daly_wall_s(100 * HOUR_S, 100 * HOUR_S, 40, 60, 6 * HOUR_S, &wall_s, NULL);
	assert_near(answered(&out, "daly_wall_s"), wall_s);
}

/* The best interval of what costs nothing is none, and Daly's formula has no answer for it. */
static void checkpoints_that_cost_nothing_have_a_time_with_an_interval_only(void **state)
{
	struct model_answers out;
	double wall_s;

	assert_int_equal(asked("interval", NULL, "ckpt=0s mtbf=6h work=10h", &out, NULL), HALE_OK);
	assert_near(answered(&out, "young_s"), 0);
	assert_null(model_answer_find(&out, "daly_wall_s"));
	assert_non_null(model_answer_find(&out, "system_total_s"));
	assert_int_equal(asked("interval", NULL, "ckpt=0s mtbf=6h work=10h every=1h", &out, NULL),
			 HALE_OK);
	model_daly_wall_s(10 * HOUR_S, HOUR_S, 0, 0, 6 * HOUR_S, &wall_s, NULL);
	assert_near(answered(&out, "daly_wall_s"), wall_s);
}

static void jobs_are_played_when_that_is_asked_for(void **state)
{
	struct model_answers out;
	struct error err;
	double mean;

	assert_int_equal(asked("interval", NULL, "ckpt=40s mtbf=6h work=100h runs=200", &out, NULL),
			 HALE_OK);
	mean = answered(&out, "played_mean_s");
	assert_true(answered(&out, "played_low_s") < mean &&
		    mean < answered(&out, "played_high_s"));
	assert_near(answered(&out, "played_difference"),
		    mean / answered(&out, "unified_total_s") - 1);
	assert_int_equal(asked("interval", NULL, "ckpt=40s mtbf=6h runs=200", &out, &err),
			 HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "needs work="));
	assert_int_equal(asked("interval", NULL, "ckpt=40s mtbf=6h work=9h runs=1", &out, &err),
			 HALE_ERR_ARGUMENT);
}

/* Worked by hand from each model's source. */
static void small_models_answer(void **state)
{
	struct model_answers out;
	struct model_mpi_times t = {100, 30, 6, 0, 2, 1, 10};
	struct model_comm c;
	double p;

	assert_int_equal(asked("lvf", NULL, "live=20min size=4GiB", &out, NULL), HALE_OK);
	assert_near(answered(&out, "lvf_byte_seconds"), 1200 * 4294967296.0);
	assert_null(model_answer_find(&out, "expected_errors"));
	assert_int_equal(asked("lvf", NULL, "live=20min size=4GiB fit=50", &out, NULL), HALE_OK);
	/* 32768 times 2^20 bits for a third of an hour */
	assert_near(answered(&out, "expected_errors"), 32768 * 50e-9 / 3);
	assert_int_equal(asked("communication", NULL,
			       "app=100s mpi=30s send=6s irecv=1s recv=2s wait=10s", &out, NULL),
			 HALE_OK);
	assert_int_equal(model_comm_from_times(&t, &c, NULL), HALE_OK);
	assert_near(answered(&out, "alpha"), 0.3);
	assert_near(answered(&out, "f_send"), c.f_send);
	assert_near(answered(&out, "f_recv"), c.f_recv);
	assert_near(answered(&out, "beta"), c.beta);
	assert_int_equal(asked("vulnerability", NULL, "window=2min ranks=1M t=100h", &out, NULL),
			 HALE_OK);
	model_vulnerability(120, 1e6, 100 * HOUR_S, &p, NULL);
	assert_near(answered(&out, "probability"), p);
}

static void replicas_are_asked_for_by_their_schemes(void **state)
{
	static const char machine[] = "nodes=200k mttf=50y t=256h";
	struct model_answers two, cloned, out;
	struct error err;
	char values[128];

	snprintf(values, sizeof(values), "%s beta=0.2", machine);
	assert_int_equal(asked("redundancy", "2x", values, &two, NULL), HALE_OK);
	assert_int_equal(asked("redundancy", "2xD", values, &cloned, NULL), HALE_OK);
	assert_near(answered(&two, "nodes_running"), 400000);
	assert_near(answered(&two, "t_red_hours"), 256 * 1.2);
	assert_near(answered(&two, "overhead"), answered(&two, "t_total_hours") / 256 - 1);
	assert_true(answered(&cloned, "reliability") > answered(&two, "reliability"));
	assert_true(answered(&cloned, "spare_nodes_99") >= answered(&cloned, "spare_nodes"));
	/* beta out of its three parts */
	snprintf(values, sizeof(values), "%s alpha=0.5 fsend=0.3 frecv=0.1", machine);
	assert_int_equal(asked("redundancy", "2x", values, &out, NULL), HALE_OK);
	snprintf(values, sizeof(values), "%s alpha=0.5 fsend=0.3", machine);
	assert_int_equal(asked("redundancy", "2x", values, &out, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "alpha=, fsend= and frecv="));
	snprintf(values, sizeof(values), "%s beta=0.2", machine);
	for (size_t i = 0; i < 5; i++) {
		const char *none[] = {"x", "0x", "2y", "2xE", "2xDD"};

		assert_int_equal(asked("redundancy", none[i], values, &out, &err),
				 HALE_ERR_ARGUMENT);
		assert_non_null(strstr(err.text, none[i]));
	}
}

static void what_cannot_be_read_is_named(void **state)
{
	struct model_answers out;
	struct error err;

	assert_null(model_entry_find("nothing"));
	assert_int_equal(asked("interval", NULL, "mtbf=6h", &out, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "needs ckpt="));
	assert_int_equal(asked("interval", NULL, "ckpt=1s mtbf=6h rate=4/d", &out, &err),
			 HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "either mtbf=6h or rate=4/d"));
	assert_int_equal(asked("interval", NULL, "ckpt=1s", &out, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(asked("interval", NULL, "ckpt=1s mtbf=0s", &out, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(asked("interval", NULL, "ckpt=1s colour=red", &out, &err),
			 HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "no key 'colour'"));
	assert_non_null(strstr(err.text, "mtbf"));
	for (size_t i = 0; i < 3; i++) {
		const char *none[] = {"ckpt", "=5", "aKeyThatIsLongerThanAnyNameOfThem=1"};

		assert_int_equal(asked("interval", NULL, none[i], &out, &err), HALE_ERR_ARGUMENT);
		assert_non_null(strstr(err.text, "key=value"));
	}
	assert_int_equal(asked("redundancy", "2x", "form=wrong", &out, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "published,exact"));
}

static void choices_are_words(void **state)
{
	const struct model_entry *e = model_entry_find("redundancy");
	double v[MODEL_KEYS_MAX];

	model_values_init(e, v);
	assert_near(v[model_key_find(e, "form")] + 1, 1);
	assert_near(v[model_key_find(e, "clone")], 120);
	assert_true(isnan(v[model_key_find(e, "beta")]) && isnan(v[model_key_find(e, "nodes")]));
	assert_int_equal(model_values_read(e, "form=exact", v, NULL), HALE_OK);
	assert_near(v[model_key_find(e, "form")], 1);
	assert_int_equal(model_key_find(e, "colour"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(intervals_are_those_of_the_formulas),
	    cmocka_unit_test(times_of_a_job_are_told_where_there_is_one),
	    cmocka_unit_test(checkpoints_that_cost_nothing_have_a_time_with_an_interval_only),
	    cmocka_unit_test(jobs_are_played_when_that_is_asked_for),
	    cmocka_unit_test(small_models_answer),
	    cmocka_unit_test(replicas_are_asked_for_by_their_schemes),
	    cmocka_unit_test(what_cannot_be_read_is_named),
	    cmocka_unit_test(choices_are_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
