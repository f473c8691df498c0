/* SPDX-License-Identifier: BSD-3-Clause */
/* The language of rules: a function for each line of this grammar.
 *
 *   rule    = [ "rule" NAME ] "when" names clause* "do" steps [ "else" steps ] tail*
 *   names   = NAME { ("," | "or") NAME }                      with * and ?
 *   clause  = "in" NAMESPACE | "severity" [">="] SEVERITY | "with" "PAYLOAD" | "at" NODE
 *           | COUNT "within" TIME | "until" names | "for" TIME
 *           | "on" ( "each" "node" | "all" "nodes" | COUNT "nodes" | COUNT "%" "of" "nodes" )
 *   step    = "checkpoint" | "migrate" | "clone" | "mark" ("unusable" | "usable") [ "by" REASON ]
 *           | "raise" "redundancy" [ "by" COUNT ] | ("run" | "webhook" | "mail") "TEXT"
 *   tail    = "instead" "of" step-name { "," step-name } | "every" TIME | "once" "in" TIME
 *
 * Line ends are blanks; # begins a comment.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "rules/scan.h"

/* Words that begin something, and so can't be the name of an event: a forgotten one is found where
 * it is missing. */
static bool keyword(const char *word)
{
	static const char *const words[] = {"rule",  "when", "in", "severity", "with", "at",
					    "until", "for",  "on", "do",       "else", "instead",
					    "every", "once", "or", "within"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

static bool parse_word(struct scan_parser *p, char *to, const char *what)
{
	if (p->kind != TOKEN_WORD || keyword(p->text))
		return scan_fail(p, "expected %s before '%.60s'", what, p->text);
	snprintf(to, RULES_WORD_MAX, "%.*s", RULES_WORD_MAX - 1, p->text);
	scan_next(p);
	return true;
}

static bool parse_seconds(struct scan_parser *p, double *seconds)
{
	if (p->kind != TOKEN_WORD || !units_parse_seconds(p->text, seconds) || *seconds <= 0)
		return scan_fail(p, "expected a time such as 30s or 5min before '%.60s'", p->text);
	scan_next(p);
	return true;
}

static bool parse_count(struct scan_parser *p, long max, int *count)
{
	long n;

	if (p->kind != TOKEN_WORD || !units_parse_int(p->text, 1, max, &n))
		return scan_fail(p, "expected a number from 1 to %ld before '%.60s'", max, p->text);
	*count = (int)n;
	scan_next(p);
	return true;
}

static bool parse_names(struct scan_parser *p, struct rules_names *names)
{
	do {
		if (names->count == RULES_NAMES_MAX)
			return scan_fail(p, "more than %d events in one list", RULES_NAMES_MAX);
		if (!parse_word(p, names->glob[names->count], "the name of an event"))
			return false;
		names->count++;
		if (!scan_at_mark(p, ",") && !scan_at_word(p, "or"))
			return true;
		scan_next(p);
	} while (true);
}

static bool parse_text(struct scan_parser *p, char **text, const char *what)
{
	if (p->kind != TOKEN_TEXT || !p->text[0])
		return scan_fail(p, "expected %s in double quotes", what);
	free(*text);
	*text = strdup(p->text);
	scan_next(p);
	return *text || scan_fail(p, "out of memory");
}

static bool parse_scope(struct scan_parser *p, struct rule *r)
{
	char *percent;

	if (scan_take(p, "each")) {
		r->scope = SCOPE_EACH;
		return scan_need(p, "node");
	}
	if (scan_take(p, "all")) {
		r->scope = SCOPE_PERCENT;
		r->need = 100;
		return scan_need(p, "nodes");
	}
	percent = p->kind == TOKEN_WORD ? strchr(p->text, '%') : NULL;
	if (percent && !percent[1]) {
		*percent = 0;
		r->scope = SCOPE_PERCENT;
		return parse_count(p, 100, &r->need) && scan_need(p, "of") && scan_need(p, "nodes");
	}
	r->scope = SCOPE_COUNT;
	return parse_count(p, 1000000, &r->need) && scan_need(p, "nodes");
}

static bool parse_clause(struct scan_parser *p, struct rule *r)
{
	if (scan_take(p, "in"))
		return parse_word(p, r->space, "a namespace");
	if (scan_take(p, "at"))
		return parse_word(p, r->node, "the name of a node");
	if (scan_take(p, "with"))
		return parse_text(p, &r->payload, "a payload");
	if (scan_take(p, "until"))
		return parse_names(p, &r->until);
	if (scan_take(p, "for"))
		return parse_seconds(p, &r->hold);
	if (scan_take(p, "on"))
		return parse_scope(p, r);
	if (scan_take(p, "severity")) {
		if (scan_at_mark(p, ">="))
			scan_next(p);
		if (p->kind != TOKEN_WORD || !rules_severity_parse(p->text, &r->severity))
			return scan_fail(p, "expected INFO, WARNING, ERROR or FATAL before '%.60s'",
					 p->text);
		scan_next(p);
		return true;
	}
	if (p->kind == TOKEN_WORD && isdigit((unsigned char)p->text[0]))
		return parse_count(p, RULES_COUNT_MAX, &r->count) && scan_need(p, "within") &&
		       parse_seconds(p, &r->within);
	if (scan_take(p, "within"))
		return parse_seconds(p, &r->within);
	return scan_fail(
	    p,
	    "expected 'do', or one of in, severity, with, at, until, for, on, or a number, "
	    "before '%.60s'",
	    p->text);
}

static bool parse_reason(struct scan_parser *p, int *reason)
{
	char word[RULES_WORD_MAX];
	struct rules *set = p->rules;

	if (!parse_word(p, word, "a reason"))
		return false;
	for (*reason = 0; *reason < set->reason_count; ++*reason)
		if (!strcmp(set->reasons[*reason], word))
			return true;
	if (set->reason_count == RULES_REASONS_MAX)
		return scan_fail(p, "more than %d different reasons", RULES_REASONS_MAX - 1);
	memcpy(set->reasons[set->reason_count++], word, sizeof(word));
	return true;
}

/* The words of an action without what may follow. */
static bool parse_do(struct scan_parser *p, rules_do_t *what)
{
	static const struct {
		const char *word;
		rules_do_t what;
	} simple[] = {
	    {"checkpoint", RULES_CHECKPOINT}, {"migrate", RULES_MIGRATE},
	    {"clone", RULES_CLONE},	      {"run", RULES_RUN},
	    {"webhook", RULES_WEBHOOK},	      {"mail", RULES_MAIL},
	};

	for (size_t i = 0; i < ARRAY_LEN(simple); i++) {
		if (scan_take(p, simple[i].word)) {
			*what = simple[i].what;
			return true;
		}
	}
	if (scan_take(p, "mark")) {
		*what = scan_at_word(p, "usable") ? RULES_MARK_USABLE : RULES_MARK_UNUSABLE;
		return scan_take(p, "usable") || scan_need(p, "unusable");
	}
	if (scan_take(p, "raise")) {
		*what = RULES_RAISE_REDUNDANCY;
		return scan_need(p, "redundancy");
	}
	return scan_fail(p,
			 "expected checkpoint, migrate, clone, mark unusable, mark usable, raise "
			 "redundancy, run, webhook or mail before '%.60s'",
			 p->text);
}

static bool parse_steps(struct scan_parser *p, struct rule *r, struct rules_step *steps, int *count)
{
	do {
		struct rules_step *s = &steps[*count];

		if (*count == RULES_ACTIONS_MAX)
			return scan_fail(p, "more than %d actions in one list", RULES_ACTIONS_MAX);
		if (!parse_do(p, &s->what))
			return false;
		++*count; /* from here on its argument is freed with the rule */
		s->amount = 1;
		if (rules_do_needs_node(s->what) && r->scope != SCOPE_EACH)
			return scan_fail(p,
					 "'%s' needs one node, and this rule is about several; "
					 "leave 'on … nodes' out, or act on the job",
					 rules_do_name(s->what));
		if (s->what == RULES_RUN && !parse_text(p, &s->argument, "a command"))
			return false;
		if (s->what == RULES_WEBHOOK && !parse_text(p, &s->argument, "a URL"))
			return false;
		if (s->what == RULES_MAIL && !parse_text(p, &s->argument, "an address"))
			return false;
		if (s->what == RULES_RAISE_REDUNDANCY && scan_take(p, "by") &&
		    !parse_count(p, 100, &s->amount))
			return false;
		if ((s->what == RULES_MARK_UNUSABLE || s->what == RULES_MARK_USABLE) &&
		    scan_take(p, "by") && !parse_reason(p, &s->reason))
			return false;
		if (!scan_at_mark(p, ","))
			return true;
		scan_next(p);
	} while (true);
}

static bool parse_tail(struct scan_parser *p, struct rule *r)
{
	rules_do_t what;

	if (scan_take(p, "every"))
		return parse_seconds(p, &r->every);
	if (scan_take(p, "once"))
		return scan_need(p, "in") && parse_seconds(p, &r->once);
	if (!scan_take(p, "instead"))
		return scan_fail(
		    p, "expected 'when', 'rule', 'every', 'once' or 'instead' before '%.60s'",
		    p->text);
	if (!scan_need(p, "of"))
		return false;
	do {
		if (!parse_do(p, &what))
			return false;
		r->instead |= 1u << what;
		if (!scan_at_mark(p, ","))
			return true;
		scan_next(p);
	} while (true);
}

/* What each clause allows for itself, but not beside the others. */
static bool check_clauses(struct scan_parser *p, const struct rule *r)
{
	bool moves = false;

	for (int i = 0; i < r->step_count; i++)
		moves |= rules_do_needs_spare(r->steps[i].what);
	for (int i = 0; i < r->otherwise_count; i++)
		if (rules_do_needs_spare(r->otherwise[i].what))
			return scan_fail(p,
					 "after 'else' there is no spare: '%s' can't be done there",
					 rules_do_name(r->otherwise[i].what));
	if (r->otherwise_count && !moves)
		return scan_fail(
		    p, "'else' says what to do when no spare is left; this rule needs none");
	if (r->every > 0 && r->every < 1)
		return scan_fail(p, "'every' is for times of 1s and more");
	if (!rule_latches(r)) {
		if (r->hold > 0)
			return scan_fail(p,
					 "'for' needs 'until': which event says that it is over?");
		if (r->every > 0)
			return scan_fail(
			    p, "'every' needs 'until': which event says that it is over?");
		if (r->instead)
			return scan_fail(
			    p, "'instead of' needs 'until': which event says that it is over?");
		if (r->scope != SCOPE_EACH && r->within <= 0)
			return scan_fail(p,
					 "events on several nodes belong together only for a time: "
					 "add 'until EVENT' or 'within TIME'");
	}
	return true;
}

/* Said with the line where the rule begins; the token is one of the next rule already. */
static bool check_rule(struct scan_parser *p, const struct rule *r)
{
	int line = p->line;
	bool good;

	p->line = r->line;
	good = check_clauses(p, r);
	p->line = line;
	return good;
}

static bool parse_rule(struct scan_parser *p, struct rule *r)
{
	*r = (struct rule){.line = p->line, .count = 1, .once = -1, .space = "*", .node = "*"};
	if (scan_take(p, "rule") && !parse_word(p, r->name, "the rule's name"))
		return false;
	if (!scan_need(p, "when") || !parse_names(p, &r->when))
		return false;
	while (!p->failed && !scan_take(p, "do"))
		if (!parse_clause(p, r))
			return false;
	if (!parse_steps(p, r, r->steps, &r->step_count))
		return false;
	if (scan_take(p, "else") && !parse_steps(p, r, r->otherwise, &r->otherwise_count))
		return false;
	while (!p->failed && p->kind != TOKEN_END && !scan_at_word(p, "when") &&
	       !scan_at_word(p, "rule"))
		if (!parse_tail(p, r))
			return false;
	if (r->once < 0)
		r->once = rule_latches(r) ? 0 : 10;
	return !p->failed && check_rule(p, r);
}

static struct rule *new_rule(struct scan_parser *p)
{
	struct rules *set = p->rules;

	if (set->count == RULES_MAX) {
		scan_fail(p, "more than %d rules", RULES_MAX);
		return NULL;
	}
	if (set->count == set->cap) {
		size_t cap = set->cap ? set->cap * 2 : 16;
		struct rule *v = realloc(set->v, cap * sizeof(*v));
		if (!v) {
			scan_fail(p, "out of memory");
			return NULL;
		}
		set->v = v;
		set->cap = cap;
	}
	return &set->v[set->count++];
}

hale_status_t rules_parse(const char *name, const char *text, size_t len, struct rules **rules,
			  struct error *err)
{
	struct scan_parser p = {
	    .name = name, .at = text, .end = text + len, .next_line = 1, .err = err};

	*rules = NULL;
	p.rules = calloc(1, sizeof(*p.rules));
	if (!p.rules)
		return error_set(err, HALE_ERR_MEMORY, "%s: out of memory", name);
	p.rules->reason_count = 1;
	scan_next(&p);
	while (!p.failed && p.kind != TOKEN_END) {
		struct rule *r = new_rule(&p);
		if (!r || !parse_rule(&p, r))
			break;
	}
	if (p.failed) {
		rules_destroy(p.rules);
		return HALE_ERR_ARGUMENT;
	}
	*rules = p.rules;
	return HALE_OK;
}

hale_status_t rules_load(const char *path, struct rules **rules, struct error *err)
{
	enum { FILE_MAX = 1 << 20 };
	hale_status_t status;
	FILE *f = fopen(path, "re");
	char *text;
	size_t len;

	*rules = NULL;
	if (!f)
		return error_sys(err, HALE_ERR_SYSTEM, "can't read the rules in '%s'", path);
	text = malloc(FILE_MAX + 1);
	if (!text) {
		fclose(f);
		return error_set(err, HALE_ERR_MEMORY, "%s: out of memory", path);
	}
	len = fread(text, 1, FILE_MAX + 1, f);
	if (ferror(f))
		status = error_sys(err, HALE_ERR_SYSTEM, "can't read the rules in '%s'", path);
	else if (len > FILE_MAX)
		status = error_set(err, HALE_ERR_ARGUMENT,
				   "'%s' is longer than 1 MiB: that is no file of rules", path);
	else
		status = rules_parse(path, text, len, rules, err);
	fclose(f);
	free(text);
	return status;
}

void rules_destroy(struct rules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->count; i++) {
		struct rule *r = &rules->v[i];
		free(r->payload);
		for (int k = 0; k < r->step_count; k++)
			free(r->steps[k].argument);
		for (int k = 0; k < r->otherwise_count; k++)
			free(r->otherwise[k].argument);
	}
	free(rules->v);
	free(rules);
}

static void each_of(const struct rule *r, const struct rules_names *names,
		    void (*each)(void *arg, const char *space, const char *event), void *arg)
{
	for (int i = 0; i < names->count; i++)
		each(arg, r->space, names->glob[i]);
}

void rules_each_event(const struct rules *rules,
		      void (*each)(void *arg, const char *space, const char *event), void *arg)
{
	for (size_t i = 0; i < rules->count; i++) {
		each_of(&rules->v[i], &rules->v[i].when, each, arg);
		each_of(&rules->v[i], &rules->v[i].until, each, arg);
	}
}

size_t rules_count(const struct rules *rules)
{
	return rules->count;
}
