/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"
#include "top/top.h"

/* A shell that waits for input, with these words behind its script. */
static pid_t start_shell(char *const words[2], int ends[2])
{
	pid_t pid;
	int ready[2];
	char byte;

	assert_int_equal(pipe(ends) | pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[0], 0);
		dup2(ready[1], 1);
		close(ends[1]);
		execl("/bin/sh", "sh", "-c", "echo; read word", "name", words[0], words[1], NULL);
		_exit(127);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	close(ends[0]);
	return pid;
}

static void a_process_is_described_with_its_command(void **state)
{
	static char longest[2000];
	char *words[] = {(char *)"", longest}, wanted[2100], *text;
	int ends[2];
	pid_t pid;

	memset(longest, 'x', sizeof(longest) - 1);
	pid = start_shell(words, ends);
	text = top_local_describe(pid);
	close(ends[1]);
	waitpid(pid, NULL, 0);
	assert_non_null(strstr(text, "State:\t"));
	assert_non_null(strstr(text, "\nThreads:\t1\n"));
	assert_non_null(strstr(text, "\nnonvoluntary_ctxt_switches:\t"));
	assert_null(strstr(text, "Uid:"));
	/* an empty argument ends nothing; the longest is cut, and nothing comes behind it */
	snprintf(wanted, sizeof(wanted), "command:\tsh -c echo; read word name  %s", longest);
	wanted[strlen("command:\t") + 1023] = '\0';
	strcat(wanted, "\n");
	assert_string_equal(strstr(text, "command:"), wanted);
	free(text);
	text = top_local_describe(pid);
	assert_string_equal(text, "There is no such process on this machine.\n");
	free(text);
}

static void processors_and_memory_are_of_the_time_between_two_looks(void **state)
{
	struct top_rank ranks[] = {{.local = true, .pid = getpid(), .cpu = -1},
				   {.local = false, .pid = getpid(), .cpu = -1},
				   {.local = true, .pid = 0, .cpu = -1}};
	struct top_job job = {.ranks = ranks, .rank_count = 3};
	double begun = clock_seconds(), before;

	top_local_read(&job);
	assert_true(ranks[0].cpu < 0 && ranks[0].kernel == 'R' && ranks[0].memory > 4096);
	before = ranks[0].cpu_seconds;
	while (ranks[0].cpu_seconds < before + 0.05 && clock_seconds() < begun + 60)
		top_local_read(&job);
	assert_true(ranks[0].cpu >= 0 && ranks[0].cpu_seconds >= before + 0.05);
	assert_true(ranks[1].kernel == 0 && ranks[1].cpu < 0 && ranks[2].kernel == 0);
}

static void what_an_agent_says_counts_for_other_machines(void **state)
{
	struct top_rank r = {.cpu = -1, .state = "running"}, here = {.local = true, .cpu = -1};

	top_told(&r, "MPI_Recv", 5, 77);
	assert_true(r.cpu < 0 && r.memory == 77 && r.kernel == '?');
	assert_string_equal(top_does(&r), "MPI_Recv");
	r.cpu_at -= 10;
	top_told(&r, "", 10, 78);
	assert_true(r.cpu > 0.49 && r.cpu <= 0.5 && r.memory == 78);
	r.cpu_at -= 10;
	top_told(&r, "", 1, 78); /* another process: it has used less */
	assert_true(r.cpu > 0.49);
	top_told(&here, "MPI_Send", 5, 77);
	assert_true(here.memory == 0 && here.kernel == 0);
	assert_string_equal(here.inside, "MPI_Send");
}

static const char *does(char kernel, double cpu, const char *inside)
{
	static struct top_rank r;

	r = (struct top_rank){.state = "running", .kernel = kernel, .cpu = cpu};
	snprintf(r.inside, sizeof(r.inside), "%s", inside);
	return top_does(&r);
}

static void a_rank_does_what_the_kernel_says(void **state)
{
	struct top_rank r = {.state = "checkpointing", .kernel = 'R'};

	assert_string_equal(top_does(&r), "checkpointing");
	assert_string_equal(does(0, 1, ""), "running");
	assert_string_equal(does('T', 1, "MPI_Recv"), "stopped");
	assert_string_equal(does('t', 1, ""), "stopped");
	assert_string_equal(does('D', 1, ""), "waits for a disk");
	assert_string_equal(does('Z', 1, ""), "has died");
	assert_string_equal(does('S', 1, "MPI_Recv"), "MPI_Recv");
	assert_string_equal(does('S', 0.5, ""), "computes");
	assert_string_equal(does('R', 0.4, ""), "waits");
	assert_string_equal(does('R', -1, ""), "computes");
	assert_string_equal(does('S', -1, ""), "waits");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_process_is_described_with_its_command),
	    cmocka_unit_test(processors_and_memory_are_of_the_time_between_two_looks),
	    cmocka_unit_test(what_an_agent_says_counts_for_other_machines),
	    cmocka_unit_test(a_rank_does_what_the_kernel_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
