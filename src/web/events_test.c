/* SPDX-License-Identifier: BSD-3-Clause */
/* With a script in the place of hale, which notes how often it was started for which job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "web/events.h"

static char folder[] = "/tmp/hale-web-XXXXXX", hale[64], started[64];

static int set_up(void **state)
{
	FILE *f;

	if (!mkdtemp(folder))
		return -1;
	snprintf(hale, sizeof(hale), "%s/hale", folder);
	snprintf(started, sizeof(started), "%s/started", folder);
	f = fopen(hale, "w");
	if (!f)
		return -1;
	fprintf(f,
		"#!/bin/sh\n"
		"echo \"$*\" >>%s\n"
		"echo 'hale: some trouble'\n"
		"echo '{\"other\":1}'\n"
		"echo '{\"name\":\"A\",\"job\":\"'$2'\"}'\n"
		"echo '{\"name\":\"B\"}'\n"
		"echo -n '{\"name\":\"C\"'\n"
		"exec sleep 1000\n",
		started);
	fclose(f);
	return chmod(hale, 0700);
}

static int tear_down(void **state)
{
	web_events_fini();
	unlink(hale);
	unlink(started);
	return rmdir(folder);
}

/* Asks until it says that. */
static void says(const char *job, const char *wanted)
{
	char *text = NULL;

	for (int tries = 0; tries < 6000; tries++) {
		text = web_events(hale, job);
		assert_non_null(text);
		if (strcmp(text, wanted) == 0)
			break;
		free(text);
		text = NULL;
		usleep(10000);
	}
	if (!text)
		fail_msg("job %s never says %s", job, wanted);
	free(text);
}

static int starts(const char *job)
{
	char line[256], wanted[256];
	FILE *f = fopen(started, "r");
	int n = 0;

	assert_non_null(f);
	snprintf(wanted, sizeof(wanted), "events %s --follow --json\n", job);
	while (fgets(line, sizeof(line), f))
		n += strcmp(line, wanted) == 0;
	fclose(f);
	return n;
}

/* Neither a sentence, nor other JSON, nor half a line is an event. */
static void whole_events_are_shown(void **state)
{
	says("j", "{\"events\":[{\"name\":\"A\",\"job\":\"j\"},{\"name\":\"B\"}]}");
}

static void a_job_is_listened_to_once(void **state)
{
	for (int i = 0; i < 3; i++)
		says("k", "{\"events\":[{\"name\":\"A\",\"job\":\"k\"},{\"name\":\"B\"}]}");
	assert_int_equal(starts("k"), 1);
}

/* Eight at a time: the one that nobody has asked for longest makes room. */
static void the_one_not_asked_for_longest_makes_room(void **state)
{
	char job[8], wanted[80];

	web_events_fini();
	for (int i = 0; i < 9; i++) {
		snprintf(job, sizeof(job), "m%d", i);
		snprintf(wanted, sizeof(wanted),
			 "{\"events\":[{\"name\":\"A\",\"job\":\"%s\"},{\"name\":\"B\"}]}", job);
		says(job, wanted);
		if (i == 7) /* now m1 is the one */
			says("m0",
			     "{\"events\":[{\"name\":\"A\",\"job\":\"m0\"},{\"name\":\"B\"}]}");
	}
	free(web_events(hale, "m0"));
	says("m1", "{\"events\":[{\"name\":\"A\",\"job\":\"m1\"},{\"name\":\"B\"}]}");
	assert_int_equal(starts("m0"), 1);
	assert_int_equal(starts("m1"), 2);
	assert_int_equal(starts("m8"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(whole_events_are_shown),
	    cmocka_unit_test(a_job_is_listened_to_once),
	    cmocka_unit_test(the_one_not_asked_for_longest_makes_room),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
