/* SPDX-License-Identifier: BSD-3-Clause */
/* hale complete: what may stand at a place of a command line, for shells. All of it is read from
 * the text that --help prints, and from the option tables of hale run: what these have is offered.
 */
#include "cli/complete.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "control/control.h"
#include "launch/options.h"
#include "node/job.h"

/* ---- options of a help text ---- */

static struct complete_option *known(struct complete_options *all, const char *name, size_t len)
{
	struct complete_option *o;

	for (size_t i = 0; i < all->count; i++)
		if (strlen(all->at[i].name) == len && memcmp(all->at[i].name, name, len) == 0)
			return &all->at[i];
	if (all->count == COMPLETE_OPTIONS_MAX || len >= sizeof(all->at[0].name))
		return NULL;
	o = &all->at[all->count++];
	*o = (struct complete_option){0};
	memcpy(o->name, name, len);
	return o;
}

/* "-x", "--name-of-it"; 0: none begins here. */
static size_t option_length(const char *at)
{
	size_t n = strspn(at, "-");

	if (n < 1 || n > 2 || !islower((unsigned char)at[n]))
		return 0;
	while (islower((unsigned char)at[n]) || (at[n] == '-' && islower((unsigned char)at[n + 1])))
		n++;
	return n;
}

static void set_value(struct complete_option *o, const char *text, size_t len)
{
	if (o && len > 0 && !o->value[0] && len < sizeof(o->value))
		memcpy(o->value, text, len);
}

/* What is said of it, up to the end of the line. */
static void set_about(struct complete_option *o, const char *text)
{
	size_t len;

	text += strspn(text, " ");
	len = strcspn(text, "\n");
	if (o && !o->about[0] && len > 0)
		snprintf(o->about, sizeof(o->about), "%.*s", (int)len, text);
}

/* "  -n, -np, -c N       number of ranks (1)", "  --nodes K, --ppn P  …": names, values, the text,
 * which may be on the next line. */
static void read_row(struct complete_options *all, const char *line)
{
	struct complete_option *row[8];
	size_t count = 0, n;
	const char *at = line + strspn(line, " ");

	while (count < ARRAY_LEN(row) && (n = option_length(at)) > 0) {
		row[count] = known(all, at, n);
		at += n;
		if (at[0] == ' ' && at[1] != ' ' && at[1] != '-' && at[1] != '\'') {
			n = strcspn(at + 1, " ,\n");
			set_value(row[count], at + 1, n);
			at += 1 + n;
		}
		count++;
		if (at[0] != ',')
			break;
		at += 1 + strspn(at + 1, " ");
	}
	at += strcspn(at, " \n");
	if (at[strspn(at, " ")] == '\n' && strspn(at + strspn(at, " ") + 1, " ") > 8)
		at += strspn(at, " ") + 1;
	for (size_t i = 0; i < count; i++)
		set_about(row[i], at);
}

/* Those within a line: of a synopsis, mostly. Not those in quotation marks, which are another
 * command's. */
static void read_line(struct complete_options *all, const char *line)
{
	const char *end = line + strcspn(line, "\n");

	for (const char *at = line; at < end; at++) {
		size_t n = at == line || strchr(" [(`", at[-1]) ? option_length(at) : 0;
		struct complete_option *o;

		if (*at == '\'' && at > line && strchr(" =", at[-1])) {
			const char *close = memchr(at + 1, '\'', (size_t)(end - at - 1));
			at = close ? close : at;
			continue;
		}
		if (n == 0)
			continue;
		o = known(all, at, n);
		at += n;
		if (at[0] == ' ' && isupper((unsigned char)at[1]))
			set_value(o, at + 1, strcspn(at + 1, " ]|,.:\n"));
		at--;
	}
}

void complete_read_help(const char *text, struct complete_options *all)
{
	static const char *const of_others[] = {"Options of mpirun that mean nothing",
						"Options are those of"};
	bool skip = false;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		skip = skip && *line != '\n';
		for (size_t i = 0; i < ARRAY_LEN(of_others); i++)
			skip = skip || strncmp(line, of_others[i], strlen(of_others[i])) == 0;
		if (skip)
			continue;
		if (strncmp(line, "  ", 2) == 0 && option_length(line + strspn(line, " ")) > 0)
			read_row(all, line);
		else
			read_line(all, line);
	}
	/* what rows mention besides */
	skip = false;
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		skip = skip && *line != '\n';
		for (size_t i = 0; i < ARRAY_LEN(of_others); i++)
			skip = skip || strncmp(line, of_others[i], strlen(of_others[i])) == 0;
		if (!skip)
			read_line(all, line);
	}
}

/* ---- candidates ---- */

static void offer(const char *current, const char *word, const char *about)
{
	if (strncmp(word, current, strlen(current)) == 0)
		printf("%s\t%s\n", word, about);
}

static void offer_options(const struct complete_options *all, const char *current, bool restart)
{
	for (size_t i = 0; i < all->count; i++)
		if (!restart ||
		    (options_offers(all->at[i].name) && !options_of_run_only(all->at[i].name)))
			offer(current, all->at[i].name, all->at[i].about);
	offer(current, "--help", "what there is");
}

/* Names of jobs, or of their nodes, or numbers of their ranks. */
static void offer_running(const char *current, const char *of)
{
	char(*jobs)[JOB_ID_MAX];
	size_t count = control_jobs(&jobs);
	struct json_value **answers = calloc(count + 1, sizeof(struct json_value *));
	hale_status_t *status = calloc(count + 1, sizeof(*status));

	if (answers && status)
		control_ask_each(jobs, count, "{\"op\":\"ps\"}", answers, status);
	for (size_t i = 0; answers && status && i < count; i++) {
		const struct json_value *list = json_get(answers[i], of);

		if (strcmp(of, "id") == 0)
			offer(current, jobs[i], json_text(json_get(answers[i], "program"), ""));
		for (size_t k = 0; k < json_count(list); k++) {
			const struct json_value *v = json_at(list, k);
			char rank[24];

			snprintf(rank, sizeof(rank), "%lld",
				 (long long)json_number_int(json_get(v, "rank"), -1));
			offer(current,
			      strcmp(of, "ranks") == 0 ? rank : json_text(json_get(v, "node"), ""),
			      jobs[i]);
		}
		json_free(answers[i]);
	}
	free(answers);
	free(status);
	free(jobs);
}

/* What a place that the help calls NAME takes. Lines with a colon tell the shell what to look for.
 */
static void offer_place(const char *name, const char *current)
{
	static const struct {
		const char *name, *line;
	} shell[] = {{"FILE", ":file"},	      {"PATH", ":file"},	 {"DIR", ":folder"},
		     {"FOLDER", ":folder"},   {"CHECKPOINT", ":folder"}, {"PROGRAM", ":program"},
		     {"COMMAND", ":program"}, {"program", ":program"}};

	for (size_t i = 0; i < ARRAY_LEN(shell); i++)
		if (strncmp(name, shell[i].name, strlen(shell[i].name)) == 0)
			puts(shell[i].line);
	if (strncmp(name, "JOB", 3) == 0)
		offer_running(current, "id");
	else if (strcmp(name, "NODE") == 0)
		offer_running(current, "nodes");
	else if (strcmp(name, "R") == 0)
		offer_running(current, "ranks");
}

/* "auto|TIME|off": the words; what is in capitals is a place. */
static void offer_value(const char *value, const char *current)
{
	char word[64];

	while (*value) {
		size_t n = strcspn(value, "|");

		snprintf(word, sizeof(word), "%.*s", (int)n, value);
		if (isupper((unsigned char)word[0]))
			offer_place(word, current);
		else if (value[n] == '|' || isalpha((unsigned char)word[0]))
			offer(current, word, "");
		value += n + (value[n] == '|');
	}
}

/* Words and places of the synopses: "hale ckpt list [DIR]", "hale rules check|try FILE". */
static void offer_synopsis(const char *command, const char *text, const char *second,
			   const char *current)
{
	char begin[64], places[256] = " ";
	size_t n = (size_t)snprintf(begin, sizeof(begin), "hale %s ", command);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *at = line + n;
		size_t len = strcspn(at, "\n");
		char word[64];

		if (strncmp(line, begin, n) != 0)
			continue;
		if (islower((unsigned char)*at) && strncmp(at, "program", 7) != 0) {
			snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, " \n"), at);
			if (!second)
				offer_value(word, current);
			if (!second || !strstr(word, second))
				continue;
		}
		/* up to what is said of it */
		for (size_t i = 0; i < len && strncmp(at + i, "   ", 3) != 0; i++) {
			bool begins = i == 0 || strchr(" [|", at[i - 1]);
			size_t k = 0;

			while (isupper((unsigned char)at[i + k]) && k < sizeof(word) - 3)
				k++;
			if (!begins || k < 3)
				continue;
			snprintf(word, sizeof(word), " %.*s ", (int)k, at + i);
			if (strstr(places, word) || strlen(places) + k + 2 > sizeof(places))
				continue;
			strcat(places, word + 1);
			word[k + 1] = '\0';
			offer_place(word + 1, current);
		}
	}
}

/* ---- the command line ---- */

/* hale run and hale restart: their tables know where the program begins. */
static void complete_run(int argc, char **argv, const struct complete_options *all)
{
	const char *current = argv[argc - 1];
	bool restart = strcmp(argv[0], "restart") == 0, ended = false;
	int i = 1;

	while (i < argc - 1 && argv[i][0] == '-' && !ended) {
		int values = strchr(argv[i], '=') ? 0 : options_values(argv[i]);

		ended = strcmp(argv[i], "--") == 0;
		if (i + values >= argc - 1 && values > 0) {
			for (size_t k = 0; k < all->count; k++)
				if (strcmp(all->at[k].name, argv[i]) == 0)
					offer_value(all->at[k].value, current);
			return;
		}
		i += 1 + (values > 0 ? values : 0);
	}
	if (i < argc - 1)
		puts(":file"); /* arguments of the program */
	else if (current[0] == '-' && !ended)
		offer_options(all, current, restart);
	else
		puts(restart ? ":folder" : ":program");
}

static void complete_other(int argc, char **argv, const char *text,
			   const struct complete_options *all)
{
	const char *current = argv[argc - 1], *before = argv[argc - 2];

	for (size_t i = 0; argc > 2 && i < all->count; i++) {
		if (strcmp(all->at[i].name, before) != 0 || !all->at[i].value[0])
			continue;
		offer_value(all->at[i].value, current);
		return;
	}
	if (current[0] == '-')
		offer_options(all, current, false);
	else
		offer_synopsis(argv[0], text, argc > 2 ? argv[1] : NULL, current);
}

static void complete_command(const char *current)
{
	char about[96];

	for (size_t i = 0; cli_help_name(i); i++)
		offer(current, cli_help_name(i), cli_help_about(cli_help_name(i), about));
	offer(current, "help", "more about one of them");
	offer(current, "--version", "");
}

static void complete_words(int argc, char **argv)
{
	static struct complete_options all;
	const char *text = argc > 1 ? cli_help_text(argv[0]) : NULL;

	if (argc == 1 || (argc == 2 && strcmp(argv[0], "help") == 0)) {
		complete_command(argv[argc - 1]);
		return;
	}
	if (!text)
		return;
	if (strcmp(argv[0], "restart") == 0)
		complete_read_help(cli_help_text("run"), &all);
	complete_read_help(text, &all);
	if (strcmp(argv[0], "run") == 0 || strcmp(argv[0], "restart") == 0)
		complete_run(argc, argv, &all);
	else
		complete_other(argc, argv, text, &all);
}

int cli_complete(int argc, char **argv)
{
	const char *script = argc == 2 ? complete_script(argv[1]) : NULL;

	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return cli_help("complete");
	if (script) {
		fputs(script, stdout);
		return 0;
	}
	if (argc < 3 || strcmp(argv[1], "--") != 0) {
		log_warn("hale complete takes the name of a shell: bash, zsh or fish; `hale help "
			 "complete` says more");
		return EXIT_USAGE;
	}
	complete_words(argc - 2, argv + 2);
	return 0;
}
