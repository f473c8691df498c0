/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "ocl/settings.h"

static struct ocl_settings good(const char *text)
{
	struct ocl_settings s;
	struct error err = {0};

	if (ocl_settings_parse(text, &s, &err) != HALE_OK)
		fail_msg("%s", err.text);
	return s;
}

static void nothing_given_means_defaults(void **state)
{
	struct ocl_settings s;

	setenv("TMPDIR", "/some/where", 1);
	s = good(NULL);
	assert_int_equal(s.check, OCL_CHECK_NVML);
	assert_int_equal(s.when, OCL_CKPT_AUTO);
	assert_int_equal(s.opt, OCL_OPT_ALL);
	assert_string_equal(s.dir, "/some/where");
	assert_int_equal(s.inject_epoch, 0);
	assert_string_equal(s.report, "");
	assert_true(s.server);
	unsetenv("TMPDIR");
	assert_string_equal(good("").dir, "/tmp");
}

static void every_key_is_understood(void **state)
{
	struct ocl_settings s = good("check=file:/a/b ckpt=seconds:1.5 opt=MOD,RO,HASH  dir=/x "
				     "inject=epoch:7:2 report=r.json");

	assert_int_equal(s.check, OCL_CHECK_FILE);
	assert_string_equal(s.file, "/a/b");
	assert_int_equal(s.when, OCL_CKPT_SECONDS);
	assert_true(s.every_seconds == 1.5);
	assert_int_equal(s.opt, OCL_OPT_MOD | OCL_OPT_RO | OCL_OPT_HASH);
	assert_string_equal(s.dir, "/x");
	assert_int_equal(s.inject_epoch, 7);
	assert_int_equal(s.inject_times, 2);
	assert_string_equal(s.report, "r.json");
	assert_int_equal(good("check=scrub").check, OCL_CHECK_SCRUB);
	assert_int_equal(good("check=none").check, OCL_CHECK_NONE);
	assert_int_equal(good("ckpt=off").when, OCL_CKPT_OFF);
	assert_int_equal(good("ckpt=epochs:12").every_epochs, 12);
	assert_int_equal(good("ckpt=every-epoch").every_epochs, 1);
	assert_int_equal(good("inject=epoch:3").inject_times, 1);
	assert_int_equal(good("inject=checkpoint:3").inject_at, OCL_AT_CHECKPOINT);
	assert_int_equal(good("inject=replay:2:5").inject_at, OCL_AT_REPLAY);
	assert_int_equal(good("inject=replay:2:5").inject_times, 5);
	assert_int_equal(good("log=64M").log_bytes, 64 << 20);
}

static void without_cs_every_epoch_is_saved_unless_told(void **state)
{
	struct ocl_settings s = good("opt=none");

	assert_int_equal(s.opt, 0);
	assert_int_equal(s.when, OCL_CKPT_EPOCHS);
	assert_int_equal(s.every_epochs, 1);
	assert_int_equal(good("opt=MOD ckpt=epochs:4").every_epochs, 4);
	assert_int_equal(good("opt=MOD,CS").when, OCL_CKPT_AUTO);
}

static void what_is_wrong_is_named(void **state)
{
	static const char *const wrong[] = {"check=",
					    "check=ecc",
					    "check=file:",
					    "ckpt=epochs:0",
					    "ckpt=epochs:x",
					    "ckpt=seconds:-1",
					    "ckpt=",
					    "opt=MOD,",
					    "opt=mod",
					    "opt=MOD,XX",
					    "opt=none,MOD",
					    "opt=MOD,all",
					    "dir=",
					    "inject=epoch:0",
					    "inject=7",
					    "inject=epoch:1:0",
					    "inject=epoch:1:",
					    "inject=checkpoint",
					    "inject=epochs:1",
					    "log=1k",
					    "log=much",
					    "report=",
					    "colour=red",
					    "check",
					    "=x"};
	struct ocl_settings s;
	struct error err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		memset(&err, 0, sizeof(err));
		if (ocl_settings_parse(wrong[i], &s, &err) != HALE_ERR_ARGUMENT)
			fail_msg("'%s' was taken", wrong[i]);
		assert_non_null(strstr(err.text, "HALE_OPENCL: "));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nothing_given_means_defaults),
	    cmocka_unit_test(every_key_is_understood),
	    cmocka_unit_test(without_cs_every_epoch_is_saved_unless_told),
	    cmocka_unit_test(what_is_wrong_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
