/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "base/base.h"
#include "model/model.h"

#define YEAR_S (365.25 * 86400)
#define HOUR_S 3600.0

static void assert_near(double a, double b, double tolerance)
{
	if (!(fabs(a - b) <= tolerance))
		fail_msg("%.12g is not %.12g +- %g", a, b, tolerance);
}

static void quantities_are_read_in_every_unit(void **state)
{
	static const struct {
		const char *text;
		enum model_kind kind;
		double value;
	} good[] = {
	    {"50y", MODEL_TIME_S, 50 * YEAR_S}, {"2min", MODEL_TIME_S, 120},
	    {"10ms", MODEL_TIME_S, 0.01},	{"256h", MODEL_TIME_S, 256 * HOUR_S},
	    {"0", MODEL_TIME_S, 0},		{"1.5 d", MODEL_TIME_S, 1.5 * 86400},
	    {"20MW", MODEL_POWER_W, 20e6},	{"4GiB", MODEL_BYTES, 4.0 * (1 << 30)},
	    {"4GB", MODEL_BYTES, 4e9},		{"54.2MB/s", MODEL_BYTES_PER_S, 54.2e6},
	    {"1e-3", MODEL_RATE_HZ, 1e-3},	{"1e-3/s", MODEL_RATE_HZ, 1e-3},
	    {"6/h", MODEL_RATE_HZ, 6 / 3600.},	{"86%", MODEL_FRACTION, 0.86},
	    {"0.2", MODEL_FRACTION, 0.2},	{"200k", MODEL_COUNT, 200000},
	    {"1e6", MODEL_COUNT, 1e6},		{".5", MODEL_NUMBER, 0.5},
	};
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		double v = -1;

		assert_int_equal(model_quantity_parse(good[i].text, good[i].kind, &v, NULL),
				 HALE_OK);
		assert_near(v, good[i].value, 1e-12 * good[i].value);
	}
}

static void garbage_is_refused_by_a_sentence_that_shows_it(void **state)
{
	static const struct {
		const char *text;
		enum model_kind kind;
	} bad[] = {
	    {"", MODEL_TIME_S},	     {"y", MODEL_TIME_S},	   {"-1s", MODEL_TIME_S},
	    {"+1", MODEL_TIME_S},    {"1parsec", MODEL_TIME_S},	   {"nan", MODEL_TIME_S},
	    {"inf", MODEL_TIME_S},   {"0x10", MODEL_TIME_S},	   {"1..2", MODEL_TIME_S},
	    {" 5s", MODEL_TIME_S},   {"5s ", MODEL_TIME_S},	   {"20MB", MODEL_POWER_W},
	    {"1e999", MODEL_NUMBER}, {"2.5", MODEL_COUNT},	   {"1e17", MODEL_COUNT},
	    {"5h", MODEL_FRACTION},  {"1KiB/", MODEL_BYTES_PER_S}, {".", MODEL_NUMBER},
	    {"1e-3", MODEL_COUNT},  {"6", MODEL_TIME_S},
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct error err = {0};
		double v = 7;

		assert_int_equal(model_quantity_parse(bad[i].text, bad[i].kind, &v, &err),
				 HALE_ERR_ARGUMENT);
		assert_non_null(strstr(err.text, bad[i].text));
		assert_near(v, 7, 0);
	}
}

static void quantities_are_shown_for_people(void **state)
{
	char b[MODEL_QUANTITY_TEXT];

	assert_string_equal(model_quantity_show(50 * YEAR_S, MODEL_TIME_S, b), "50 y");
	assert_string_equal(model_quantity_show(0.01, MODEL_TIME_S, b), "10 ms");
	assert_string_equal(model_quantity_show(90, MODEL_TIME_S, b), "90 s");
	assert_string_equal(model_quantity_show(600, MODEL_TIME_S, b), "10.00 min");
	assert_string_equal(model_quantity_show(252.28 * 3600, MODEL_TIME_S, b), "252.28 h");
	assert_string_equal(model_quantity_show(INFINITY, MODEL_TIME_S, b), "never");
	assert_string_equal(model_quantity_show(20e6, MODEL_POWER_W, b), "20 MW");
	assert_string_equal(model_quantity_show(1.5 * (1 << 30), MODEL_BYTES, b), "1.5 GiB");
	assert_string_equal(model_quantity_show(200000, MODEL_COUNT, b), "200000");
	for (int kind = 0; kind <= MODEL_NUMBER; kind++) /* whatever the size, it fits */
		for (int e = -300; e <= 300; e += 5)
			assert_true(strlen(model_quantity_show(-1.23456789 * pow(10, e),
							       (enum model_kind)kind, b)) <
				    MODEL_QUANTITY_TEXT);
}

static void failure_laws_are_read(void **state)
{
	struct model_law l;
	struct error err;

	assert_int_equal(model_law_parse("25y", &l, NULL), HALE_OK);
	assert_near(l.mean_s, 25 * YEAR_S, 1);
	assert_near(l.shape, 1, 0);
	assert_int_equal(model_law_parse("weibull:shape=0.7,mttf=50y", &l, NULL), HALE_OK);
	assert_near(l.mean_s, 50 * YEAR_S, 1);
	assert_near(l.shape, 0.7, 1e-15);
	assert_int_equal(model_law_parse("exp:mtbf=1h", &l, NULL), HALE_OK);
	assert_int_equal(model_law_parse("weibull:shape=0.7", &l, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(model_law_parse("weibull:shape=0,mttf=1h", &l, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(model_law_parse("exp:mttf=1h,shape=2", &l, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(model_law_parse("gamma:mttf=1h", &l, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(model_law_parse("weibull:size=0.7,mttf=1h", &l, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(model_law_parse("0", &l, &err), HALE_ERR_ARGUMENT);
}

static void laws_agree_with_themselves(void **state)
{
	static const double shapes[] = {0.5, 0.7, 1, 1.5, 3};

	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct model_law l = {1000, shapes[i]};
		double mean = 0, h = 1e-4;

		/* by quantiles: the mean of the draws at the middles of 10^6 equal parts */
		for (int k = 0; k < 1000000; k++)
			mean += model_law_draw_s(&l, (k + 0.5) / 1e6) / 1e6;
		assert_near(mean, 1000, 1);
		assert_near(model_law_uptime_s(&l, 1e9), 1000, 1e-5);
		assert_near(model_law_survival(&l, model_law_draw_s(&l, 0.3)), 0.3, 1e-12);
		for (double t = 10; t < 3000; t *= 2) {
			assert_near(model_law_survival(&l, t) + model_law_failed(&l, t), 1, 1e-14);
			/* the density is the slope of failed, survival that of uptime */
			assert_near((model_law_failed(&l, t + h) - model_law_failed(&l, t - h)) /
					(2 * h),
				    model_law_density_hz(&l, t), 1e-8);
			assert_near(
			    (model_law_uptime_s(&l, t + 0.1) - model_law_uptime_s(&l, t - 0.1)) /
				0.2,
			    model_law_survival(&l, t), 1e-6);
		}
	}
}

static void live_vulnerability_is_time_times_space(void **state)
{
	double lvf, errors;
	struct error err;

	assert_int_equal(model_lvf(100, 4096, &lvf, NULL), HALE_OK);
	assert_near(lvf, 409600, 0);
	/* 1 Mbit for 10^9 hours at 1 FIT per Mbit: one error */
	assert_int_equal(model_lvf(3600e9, 131072, &lvf, NULL), HALE_OK);
	assert_int_equal(model_lvf_errors(lvf, 1, &errors, NULL), HALE_OK);
	assert_near(errors, 1, 1e-12);
	assert_int_equal(model_lvf(-1, 4096, &lvf, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "live range"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(quantities_are_read_in_every_unit),
	    cmocka_unit_test(garbage_is_refused_by_a_sentence_that_shows_it),
	    cmocka_unit_test(quantities_are_shown_for_people),
	    cmocka_unit_test(failure_laws_are_read),
	    cmocka_unit_test(laws_agree_with_themselves),
	    cmocka_unit_test(live_vulnerability_is_time_times_space),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
