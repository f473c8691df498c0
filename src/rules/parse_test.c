/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/base.h"
#include "rules/private.h"

static struct rules *good(const char *text)
{
	struct error err = {0};
	struct rules *r = NULL;

	if (rules_parse("t", text, strlen(text), &r, &err) != HALE_OK)
		fail_msg("%s", err.text);
	return r;
}

static void bad(const char *text, const char *message)
{
	struct error err = {0};
	struct rules *r = NULL;

	assert_int_equal(rules_parse("t", text, strlen(text), &r, &err), HALE_ERR_ARGUMENT);
	assert_null(r);
	if (!strstr(err.text, message))
		fail_msg("'%s' does not say '%s'", err.text, message);
}

static void every_clause_is_read(void **state)
{
	struct rules *set =
	    good("# a comment\n"
		 "rule r1 when A*, B or C in FTB.X severity >= error\n"
		 "  with \"PORT:\\\"1\\\"*\" at node? 3 within 2min until D for 500ms\n"
		 "do mark unusable by heat, migrate, raise redundancy by 2,\n"
		 "   run \"echo\", webhook \"http://h/\", mail \"root\"\n"
		 "else checkpoint, mail \"me\"\n"
		 "instead of clone, mark usable every 1min once in 5s\n");
	const struct rule *r = &set->v[0];

	assert_int_equal(rules_count(set), 1);
	assert_string_equal(r->name, "r1");
	assert_int_equal(r->line, 2);
	assert_int_equal(r->when.count, 3);
	assert_string_equal(r->when.glob[2], "C");
	assert_string_equal(r->until.glob[0], "D");
	assert_string_equal(r->space, "FTB.X");
	assert_string_equal(r->node, "node?");
	assert_string_equal(r->payload, "PORT:\"1\"*");
	assert_int_equal(r->severity, RULES_ERROR);
	assert_int_equal(r->count, 3);
	assert_true(r->within == 120 && r->hold == 0.5 && r->every == 60 && r->once == 5);
	assert_int_equal(r->step_count, 6);
	assert_int_equal(r->steps[2].amount, 2);
	assert_string_equal(r->steps[3].argument, "echo");
	assert_string_equal(set->reasons[r->steps[0].reason], "heat");
	assert_int_equal(r->otherwise_count, 2);
	assert_int_equal(r->instead, 1u << RULES_CLONE | 1u << RULES_MARK_USABLE);
	rules_destroy(set);
}

static void scopes_and_defaults(void **state)
{
	struct rules *set = good("when A do checkpoint when A on each node do checkpoint\n"
				 "when A until B on all nodes do checkpoint\n"
				 "when A on 3 nodes within 10s do checkpoint\n"
				 "when A until B on 50% of nodes do checkpoint");

	assert_int_equal(rules_count(set), 5);
	assert_int_equal(set->v[0].scope, SCOPE_EACH);
	assert_true(set->v[1].line == 1 && set->v[2].line == 2 && set->v[4].line == 4);
	assert_true(set->v[0].once == 10 && set->v[0].count == 1 && set->v[2].once == 0);
	assert_string_equal(set->v[0].space, "*");
	assert_true(set->v[2].scope == SCOPE_PERCENT && set->v[2].need == 100);
	assert_true(set->v[3].scope == SCOPE_COUNT && set->v[3].need == 3);
	assert_true(set->v[4].scope == SCOPE_PERCENT && set->v[4].need == 50);
	rules_destroy(set);
	set = good(" \n# nothing");
	assert_int_equal(rules_count(set), 0);
	rules_destroy(set);
}

static void errors_name_the_line_and_what_was_expected(void **state)
{
	bad("when A do checkpoint\n\nwhen do migrate", "t:3: expected the name of an event");
	bad("when A\ndo jump", "t:2: expected checkpoint, migrate");
	bad("when A\n\n3 minutes do migrate", "t:3: expected 'within' before 'minutes'");
	bad("when A 0 within 3s do migrate", "t:1: expected a number from 1 to 1000");
	bad("when A 3 within soon do migrate", "expected a time such as 30s");
	bad("when A 3 within 0s do migrate", "expected a time");
	bad("when A on 101% of nodes within 1s do checkpoint", "a number from 1 to 100 before");
	bad("when A on each nodes do checkpoint", "expected 'node' before 'nodes'");
	bad("when for 3s do checkpoint", "expected the name of an event before 'for'");
	bad("rule when A do checkpoint", "expected the rule's name before 'when'");
	bad("when A in do checkpoint", "expected a namespace before 'do'");
	bad("when A do mark usable by, migrate", "expected a reason before ','");
	bad("when A do raise redundancy by 101", "expected a number from 1 to 100");
	bad("when A until B do checkpoint instead migrate", "expected 'of' before 'migrate'");
	bad("when A until B do checkpoint instead of B", "expected checkpoint, migrate");
	bad("when A do run \"\"", "expected a command in double quotes");
	bad("when A with \"x do checkpoint", "the quoted text is not closed");
	bad("when A do run \"x\ny\"", "t:1: the quoted text is not closed");
	bad("when A do run ls", "a command in double quotes");
	bad("when A do checkpoint\n; x", "t:2: ';' has no meaning here");
	bad("when A do checkpoint\n\x01", "t:2: a byte 0x01 has no meaning");
	bad("when A severity BAD do checkpoint", "expected INFO, WARNING");
	bad("when A do checkpoint,", "the end of the file");
	bad("when A", "before 'the end of the file'");
	bad("checkpoint", "expected 'when' before 'checkpoint'");
	bad("when A do mark broken", "expected 'unusable' before 'broken'");
	bad("when A do checkpoint sometimes", "t:1: expected 'when', 'rule'");
}

static void contradictions_are_refused(void **state)
{
	bad("when A for 3s do checkpoint", "'for' needs 'until'");
	bad("when A do checkpoint every 3s", "'every' needs 'until'");
	bad("when A do checkpoint instead of migrate", "'instead of' needs 'until'");
	bad("when A on all nodes do checkpoint", "add 'until EVENT' or 'within TIME'");
	bad("when A until B on all nodes do migrate", "'migrate' needs one node");
	bad("when A do checkpoint else mail \"x\"", "'else' says what to do when no spare");
	bad("when A do migrate else clone", "after 'else' there is no spare");
	bad("when A until B do checkpoint every 1ms", "'every' is for times of 1s");
}

static void sizes_are_bounded(void **state)
{
	char text[4096] = "when A do ";

	for (int i = 0; i < 9; i++)
		strcat(text, i ? ", checkpoint" : "checkpoint");
	bad(text, "more than 8 actions");
	bad("when A,B,C,D,E,F,G,H,I do checkpoint", "more than 8 events");
	strcpy(text, "when ");
	memset(text + 5, 'x', 200);
	strcpy(text + 205, " do checkpoint");
	bad(text, "a word has at most 127");
	strcpy(text, "when A do mail \"");
	memset(text + 16, 'x', 2000);
	strcpy(text + 2016, "\"");
	bad(text, "at most 1023 bytes");

	int n = sprintf(text, "when A do checkpoint");
	for (int i = 0; i < RULES_REASONS_MAX; i++)
		n += sprintf(text + n, "\nwhen A do mark usable by r%d", i);
	bad(text, "t:33: more than 31 different reasons");

	char *many = malloc(40 * 1100), *at = many;
	for (int i = 0; i < 1100; i++)
		at += sprintf(at, "when A%d do checkpoint\n", i);
	bad(many, "t:1001: more than 1000 rules");
	free(many);
}

static void write_down(void *arg, const char *space, const char *event)
{
	strcat(strcat(strcat(strcat(arg, space), " "), event), ";");
}

static void what_rules_listen_to(void **state)
{
	struct rules *r;
	struct error err;
	char out[200] = "";
	const char *text = "when A, B* until C in FTB.X do checkpoint when D do migrate";

	assert_int_equal(rules_parse("t", text, strlen(text), &r, &err), HALE_OK);
	rules_each_event(r, write_down, out);
	assert_string_equal(out, "FTB.X A;FTB.X B*;FTB.X C;* D;");
	rules_destroy(r);
}

static void load_says(const char *path, hale_status_t status, const char *message)
{
	struct error err = {0};
	struct rules *r = NULL;

	assert_int_equal(rules_load(path, &r, &err), status);
	assert_null(r);
	if (!strstr(err.text, message))
		fail_msg("'%s' does not say '%s'", err.text, message);
}

static void a_file_is_read_up_to_a_size(void **state)
{
	char path[] = "/tmp/rules-XXXXXX";
	struct error err = {0};
	struct rules *r = NULL;
	int fd = mkstemp(path);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

	assert_non_null(f);
	fputs("when A do checkpoint\nwhen B do migrate", f);
	fflush(f);
	assert_int_equal(rules_load(path, &r, &err), HALE_OK);
	assert_int_equal(rules_count(r), 2);
	rules_destroy(r);
	fputs("\nwhen", f);
	fflush(f);
	load_says(path, HALE_ERR_ARGUMENT, ":3: expected the name of an event");
	for (int i = 0; i < 1 << 20; i++)
		fputc(' ', f);
	fclose(f);
	load_says(path, HALE_ERR_ARGUMENT, "longer than 1 MiB");
	unlink(path);
	load_says(path, HALE_ERR_SYSTEM, "can't read the rules");
	load_says("/", HALE_ERR_SYSTEM, "can't read the rules");
}

static void globs(void **state)
{
	assert_true(rules_glob("*", "") && rules_glob("*", "abc") && rules_glob("a*c", "abbc"));
	assert_true(rules_glob("a?c", "abc") && rules_glob("*b*", "abc") && rules_glob("a*", "a"));
	assert_false(rules_glob("a*d", "abc") || rules_glob("", "a") || rules_glob("a?", "a"));
	assert_true(rules_glob("*ab*ab", "xababab") && !rules_glob("*ab*abc", "xababab"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_clause_is_read),
	    cmocka_unit_test(scopes_and_defaults),
	    cmocka_unit_test(errors_name_the_line_and_what_was_expected),
	    cmocka_unit_test(contradictions_are_refused),
	    cmocka_unit_test(sizes_are_bounded),
	    cmocka_unit_test(what_rules_listen_to),
	    cmocka_unit_test(a_file_is_read_up_to_a_size),
	    cmocka_unit_test(globs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
