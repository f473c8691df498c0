/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "launch/options.h"
#include "launch/pin.h"

/* Parses a NULL-terminated command line; the options are finished with. */
static hale_status_t parse(options_for_t which, struct options *o, struct error *err, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return options_parse(o, which, argc, argv, err);
}

#define RUN(o, err, ...) parse(OPTIONS_RUN, o, err, (char *[]){"run", __VA_ARGS__, NULL})
#define RESTART(o, err, ...)                                                                       \
	parse(OPTIONS_RESTART, o, err, (char *[]){"restart", __VA_ARGS__, NULL})

static void defaults_are_one_rank_and_automatic_checkpoints(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "prog"), HALE_OK);
	assert_int_equal(o.ranks, 1);
	assert_true(o.ckpt_every == 0 && o.ckpt_auto && o.ckpt_first == 30 && o.overhead == 0.01);
	assert_string_equal(o.ckpt_dir, "hale-ckpt");
	assert_int_equal(o.keep, 2);
	assert_int_equal(o.max_restarts, 10);
	assert_false(o.incremental);
	assert_string_equal(o.program[0], "prog");
	options_fini(&o);
}

static void options_end_at_the_program_or_at_two_dashes(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "-n", "4", "prog", "-n", "7"), HALE_OK);
	assert_int_equal(o.ranks, 4);
	assert_string_equal(o.program[1], "-n");
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "-np", "3", "--", "--odd", "x"), HALE_OK);
	assert_int_equal(o.ranks, 3);
	assert_string_equal(o.program[0], "--odd");
	options_fini(&o);
}

static void how_often_checkpoints_come_is_a_time_or_a_word(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "--ckpt-every", "off", "prog"), HALE_OK);
	assert_true(o.ckpt_every == 0 && !o.ckpt_auto);
	assert_int_equal(RUN(&o, &err, "--ckpt-every", "5s", "prog"), HALE_OK);
	assert_true(o.ckpt_every == 5 && !o.ckpt_auto);
	assert_int_equal(RUN(&o, &err, "--overhead", "0.5%", "--mtbf", "2h", "prog"), HALE_OK);
	assert_true(o.ckpt_auto && o.overhead == 0.005 && o.mtbf == 7200);
	assert_int_equal(RUN(&o, &err, "--overhead", "1", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--overhead", "1s%", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--overhead", "90%", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--ckpt-every", "never", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--ckpt-every", "off", "--mtbf", "1h", "prog"),
			 HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--ckpt-on-success", "maybe", "prog"), HALE_ERR_ARGUMENT);
}

static void checkpoints_may_stay_on_the_nodes(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "prog"), HALE_OK);
	assert_null(o.ckpt_local);
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--ckpt-local", "/l/%n/100%%", "prog"), HALE_OK);
	assert_string_equal(o.ckpt_local, "/l/%n/100%%");
	assert_int_equal(o.shared_every, 10);
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--ckpt-local", "/l/%h", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--ckpt-local", "/l/%", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--ckpt-shared-every", "3", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RESTART(&o, &err, "--ckpt-shared-every", "3", "ck"), HALE_OK);
	options_fini(&o);
}

static void values_may_follow_an_equals_sign(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "--ckpt-every=500ms", "--keep=5", "prog"), HALE_OK);
	assert_true(o.ckpt_every > 0.49 && o.ckpt_every < 0.51);
	assert_int_equal(o.keep, 5);
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--tag=yes", "prog"), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "--tag takes no value"));
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--net-security", "encrypt", "prog"), HALE_OK);
	assert_true(o.net_encrypt);
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--net-security=none", "prog"), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "--net-security takes auth"));
	options_fini(&o);
}

static void options_of_mpirun_are_passed_over(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "--oversubscribe", "--mca", "btl", "self,vader", "--map-by",
			     "core", "--allow-run-as-root", "--bind-to", "none", "-c", "2",
			     "--tag-output", "--use-hwthread-cpus", "prog"),
			 HALE_OK);
	assert_int_equal(o.ranks, 2);
	assert_int_equal(o.bind, BIND_NONE);
	assert_true(o.tag);
	options_fini(&o);
}

static void options_of_mpirun_and_mpiexec_do_what_they_say(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "-np", "4", "--map-by", "ppr:2:node", "--bind-to", "socket",
			     "--timeout", "90", "--stdin", "none", "--cpu-set", "0-3",
			     "--report-bindings", "--display-map", "--timestamp-output", "prog"),
			 HALE_OK);
	assert_int_equal(o.per_node, 2);
	assert_int_equal(o.bind, BIND_SOCKET);
	assert_true(o.timeout == 90 && o.no_stdin && o.report_bindings && o.display_map &&
		    o.timestamp);
	assert_string_equal(o.cpu_set, "0-3");
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "-n", "4", "-ppn", "2", "-genv", "A", "b c", "-env", "D",
			     "e", "-l", "-genvall", "prog"),
			 HALE_OK);
	assert_int_equal(o.per_node, 2);
	assert_true(o.tag);
	assert_string_equal(o.exports[0], "A=b c");
	assert_string_equal(o.exports[1], "D=e");
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "-f", "hosts", "prog"), HALE_OK);
	assert_string_equal(o.hosts, "hosts");
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--map-by", "ppr:2:socket", "prog"), HALE_OK);
	assert_int_equal(o.per_node, 2 * pin_objects(BIND_SOCKET));
	assert_int_equal(o.ranks, o.per_node);
	assert_int_equal(o.bind, BIND_SOCKET);
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--map-by", "ppr:2:none", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--map-by", "ppr::node", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--map-by", "ppr:2", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--bind-to", "node", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--bind-to", "board", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--stdin", "all", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--app", "file", "prog"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--app", "/no/file"), HALE_ERR_ARGUMENT);
	assert_int_equal(RUN(&o, &err, "--output-filename", "out", "prog", "x"), HALE_OK);
	assert_string_equal(o.program[4], "out");
	assert_string_equal(o.program[6], "x");
	assert_null(o.program[7]);
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "-genv", "HALE_X", "1", "prog"), HALE_ERR_ARGUMENT);
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--prefix", "/opt", "--rankfile", "r", "prog"), HALE_OK);
	assert_string_equal(o.without, "--prefix, --rankfile");
	options_fini(&o);
}

#define REFUSED(words, ...)                                                                        \
	do {                                                                                       \
		assert_int_equal(RUN(&o, &err, __VA_ARGS__), HALE_ERR_ARGUMENT);                   \
		assert_non_null(strstr(err.text, words));                                          \
		options_fini(&o);                                                                  \
	} while (0)

static void contradictions_are_refused(void **state)
{
	struct options o;
	struct error err;

	REFUSED("-n is given twice, as '2' and as '3'", "-n", "2", "-n", "3", "prog");
	REFUSED("is given twice", "-np", "2", "-n", "3", "prog");
	REFUSED("one of them", "--verbose", "--quiet", "prog");
	REFUSED("can't be compressed", "--compress", "lz4", "--restart", "lazy", "prog");
	REFUSED("--spares are nodes of several", "--spares", "1", "prog");
	REFUSED("one of them", "--timeout", "5", "--head-grace", "1h", "prog");
	assert_int_equal(RUN(&o, &err, "--ckpt-every", "5", "--head-grace=0", "--ckpt-wait", "2s",
			     "--keep", "3", "--quiet", "prog"),
			 HALE_OK);
	assert_string_equal(o.bare, "--ckpt-every 5s");
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--keep", "2", "--keep=3", "--quiet", "prog"), HALE_OK);
	assert_string_equal(o.twice, "--keep 3");
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "-n", "2", "-n", "2", "-x", "A=1", "-x", "B=2", "--mca", "a",
			     "b", "--mca", "c", "d", "--nodes", "2", "--spares", "1", "prog"),
			 HALE_OK);
	options_fini(&o);
}

static void what_was_meant_is_asked(void **state)
{
	struct options o;
	struct error err;

	REFUSED("did you mean --ckpt-every?", "--chkpt-every", "5s", "prog");
	REFUSED("did you mean --hosts?", "--host_s=x", "prog");
	REFUSED("did you mean --report?", "--repotr", "x", "prog");
	REFUSED("did you mean --ckpt-every?", "--checkpoint", "2s", "prog");
	REFUSED("did you mean --ckpt-every?", "--checkpoint-interval=2s", "prog");
	REFUSED("; `hale run --help` lists them", "--frobnicate", "prog");
	REFUSED("; `hale run --help` lists them", "-Q", "prog");
}

static void several_programs_become_a_shell_that_chooses(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "-n", "2", "a", "it's", ":", "-n", "3", "b"), HALE_OK);
	assert_int_equal(o.ranks, 5);
	assert_string_equal(o.program[2],
			    "if [ \"$HALE_RANK\" -lt 2 ]; then HALE_APPNUM=0; export HALE_APPNUM; "
			    "exec 'a' 'it'\\''s'; fi; "
			    "if [ \"$HALE_RANK\" -lt 5 ]; then HALE_APPNUM=1; export HALE_APPNUM; "
			    "exec 'b'; fi; ");
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "a", ":"), HALE_ERR_ARGUMENT);
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "a", ":", "--nodes", "2", "b"), HALE_ERR_ARGUMENT);
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "a", ":", "-n", "x", "b"), HALE_ERR_ARGUMENT);
	options_fini(&o);
}

static void hosts_are_a_file_or_a_list(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "-H", "a,b", "--spares", "1", "prog"), HALE_OK);
	assert_string_equal(o.host_list, "a,b");
	assert_int_equal(o.spares, 1);
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--hostfile", "f", "--launcher", "rsh %h %c", "prog"),
			 HALE_OK);
	assert_string_equal(o.hosts, "f");
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--hosts", "f", "--host", "a", "prog"), HALE_ERR_ARGUMENT);
	options_fini(&o);
}

static void bad_values_are_refused_naming_them(void **state)
{
	static char *const bad[][2] = {
	    {"-n", "0"},	   {"-n", "-3"},	  {"-n", "2x"},
	    {"-n", "99999999999"}, {"-n", "100000"},	  {"-n", ""},
	    {"--ckpt-every", "x"}, {"--keep", "0"},	  {"--max-restarts", "-1"},
	    {"--compress", "gz"},  {"--restart", "no"},	  {"--inject", "kill"},
	    {"-x", "1A=2"},	   {"-x", "HALE_RANK=3"}, {"--seed", "abc"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct options o;
		struct error err = {0};

		assert_int_equal(RUN(&o, &err, bad[i][0], bad[i][1], "prog"), HALE_ERR_ARGUMENT);
		assert_non_null(strstr(err.text, bad[i][1]));
		options_fini(&o);
	}
}

static void missing_things_are_said(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "-n"), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "-n needs a value"));
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "-n", "2"), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "no program"));
	options_fini(&o);
	assert_int_equal(RUN(&o, &err, "--wat", "prog"), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "--wat"));
	options_fini(&o);
}

static void exports_are_kept_in_order(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RUN(&o, &err, "-x", "A=1", "-x", "PATH", "-x", "B=", "prog"), HALE_OK);
	assert_int_equal(o.export_count, 2);
	assert_string_equal(o.exports[0], "A=1");
	assert_string_equal(o.exports[1], "B=");
	assert_null(o.exports[2]);
	options_fini(&o);
}

static void a_restart_takes_a_checkpoint_and_not_the_number_of_ranks(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RESTART(&o, &err, "--keep", "3", "dir/1"), HALE_OK);
	assert_true(o.given_keep);
	assert_false(o.given_every);
	options_fini(&o);
	assert_int_equal(RESTART(&o, &err, "-n", "3", "dir/1"), HALE_ERR_ARGUMENT);
	options_fini(&o);
	assert_int_equal(RESTART(&o, &err, "dir/1", "dir/2"), HALE_ERR_ARGUMENT);
	options_fini(&o);
}

static void options_of_a_restart_may_stand_behind_the_checkpoint(void **state)
{
	struct options o;
	struct error err;

	assert_int_equal(RESTART(&o, &err, "--keep", "3", "dir/1", "--hosts", "other", "--keep=4"),
			 HALE_OK);
	assert_int_equal(o.keep, 4);
	assert_string_equal(o.hosts, "other");
	assert_string_equal(o.program[0], "dir/1");
	assert_null(o.program[1]);
	options_fini(&o);
	assert_int_equal(RESTART(&o, &err, "dir/1", "--keep", "3", "dir/2"), HALE_ERR_ARGUMENT);
	options_fini(&o);
	assert_int_equal(RESTART(&o, &err, "dir/1", "--hosts"), HALE_ERR_ARGUMENT);
	options_fini(&o);
	assert_int_equal(RESTART(&o, &err, "--keep", "3", "--", "-dir"), HALE_OK);
	assert_string_equal(o.program[0], "-dir");
	options_fini(&o);
}

static void faults_say_who_dies_of_what_and_when(void **state)
{
	struct fault f;
	struct error err;

	assert_int_equal(options_parse_fault("kill:rank=1,after=3s", &f, &err), HALE_OK);
	assert_int_equal(f.rank, 1);
	assert_int_equal(f.signal, SIGKILL);
	assert_true(f.after == 3);
	assert_int_equal(options_parse_fault("kill:rank=any,after=1s-5s", &f, &err), HALE_OK);
	assert_int_equal(f.rank, -1);
	assert_true(f.after == 1 && f.after_max == 5);
	assert_int_equal(
	    options_parse_fault("kill:rank=0,at-call=MPI_Allreduce:100,signal=SEGV", &f, &err),
	    HALE_OK);
	assert_string_equal(f.call, "MPI_Allreduce");
	assert_int_equal(f.count, 100);
	assert_int_equal(f.signal, SIGSEGV);
	assert_int_equal(options_parse_fault("kill:rank=2,at-checkpoint=3", &f, &err), HALE_OK);
	assert_int_equal(f.at_checkpoint, 3);
}

static void what_is_no_fault_is_refused(void **state)
{
	static const char *const bad[] = {"",
					  "kill",
					  "kill:",
					  "kill:rank=1",
					  "kill:after=3s",
					  "kill:rank=1,after=3s,at-call=MPI_Send:1",
					  "kill:rank=1,after=",
					  "kill:rank=-1,after=3s",
					  "kill:rank=1,after=5s-1s",
					  "kill:rank=1,at-call=printf:3",
					  "kill:rank=1,at-call=MPI_Send:0",
					  "kill:rank=1,after=3s,signal=NOPE",
					  "kill:rank=1,when=now",
					  "stop:rank=1,after=3s"};
	struct fault f;
	struct error err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(options_parse_fault(bad[i], &f, &err), HALE_ERR_ARGUMENT);
}

static void signals_have_names_and_numbers(void **state)
{
	assert_int_equal(options_signal_number("KILL"), SIGKILL);
	assert_int_equal(options_signal_number("SIGSEGV"), SIGSEGV);
	assert_int_equal(options_signal_number("sigterm"), SIGTERM);
	assert_int_equal(options_signal_number("11"), SIGSEGV);
	assert_int_equal(options_signal_number("0"), 0);
	assert_int_equal(options_signal_number("nothing"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(defaults_are_one_rank_and_automatic_checkpoints),
	    cmocka_unit_test(options_end_at_the_program_or_at_two_dashes),
	    cmocka_unit_test(how_often_checkpoints_come_is_a_time_or_a_word),
	    cmocka_unit_test(checkpoints_may_stay_on_the_nodes),
	    cmocka_unit_test(values_may_follow_an_equals_sign),
	    cmocka_unit_test(options_of_mpirun_are_passed_over),
	    cmocka_unit_test(options_of_mpirun_and_mpiexec_do_what_they_say),
	    cmocka_unit_test(contradictions_are_refused),
	    cmocka_unit_test(what_was_meant_is_asked),
	    cmocka_unit_test(several_programs_become_a_shell_that_chooses),
	    cmocka_unit_test(hosts_are_a_file_or_a_list),
	    cmocka_unit_test(bad_values_are_refused_naming_them),
	    cmocka_unit_test(missing_things_are_said),
	    cmocka_unit_test(exports_are_kept_in_order),
	    cmocka_unit_test(a_restart_takes_a_checkpoint_and_not_the_number_of_ranks),
	    cmocka_unit_test(options_of_a_restart_may_stand_behind_the_checkpoint),
	    cmocka_unit_test(faults_say_who_dies_of_what_and_when),
	    cmocka_unit_test(what_is_no_fault_is_refused),
	    cmocka_unit_test(signals_have_names_and_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
