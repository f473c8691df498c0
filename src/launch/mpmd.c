/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/mpmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wordexp.h>
#include "base/base.h"

/* One part of the command: program and arguments, up to a ':' or the end. */
struct mpmd_part {
	char *const *words;
	size_t count;
	long ranks;
};

int mpmd_is(char *const *program)
{
	for (char *const *a = program; *a; a++)
		if (!strcmp(*a, ":"))
			return 1;
	return 0;
}

static size_t part_length(char *const *words)
{
	size_t n = 0;
	while (words[n] && strcmp(words[n], ":") != 0)
		n++;
	return n;
}

static hale_status_t part_options(struct mpmd_part *p, struct error *err)
{
	static const char *const names[] = {"-n", "-np", "-c", "--n", "--np"};
	while (p->count && p->words[0][0] == '-') {
		bool known = false;
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			known |= !strcmp(p->words[0], names[i]);
		if (!strcmp(p->words[0], "--")) {
			p->words++;
			p->count--;
			break;
		}
		if (!known)
			return error_set(
			    err, HALE_ERR_ARGUMENT,
			    "%s: behind a ':' only -n is an option; what holds for the "
			    "whole job stands before the first program",
			    p->words[0]);
		if (p->count < 2 || !units_parse_int(p->words[1], 1, 1 << 20, &p->ranks))
			return error_set(err, HALE_ERR_ARGUMENT, "%s needs a number of ranks",
					 p->words[0]);
		p->words += 2;
		p->count -= 2;
	}
	return p->count ? HALE_OK
			: error_set(err, HALE_ERR_ARGUMENT,
				    "there is no program between two ':', or behind the last one");
}

static void put_quoted(FILE *f, const char *word)
{
	fputs(" '", f);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", f);
		else
			fputc(*word, f);
	fputc('\'', f);
}

/* The shell of rank r becomes the program whose ranks end above r. */
static void put_part(FILE *f, const struct mpmd_part *p, int which, long end)
{
	fprintf(f, "if [ \"$HALE_RANK\" -lt %ld ]; then HALE_APPNUM=%d; export HALE_APPNUM; exec",
		end, which);
	for (size_t i = 0; i < p->count; i++)
		put_quoted(f, p->words[i]);
	fputs("; fi; ", f);
}

hale_status_t mpmd_merge(char *const *program, long *ranks, char ***merged, struct error *err)
{
	char *script = NULL, **argv = calloc(5, sizeof(*argv));
	size_t size;
	FILE *f = argv ? open_memstream(&script, &size) : NULL;
	long all = 0;
	if (!f) {
		free(argv);
		return error_set(err, HALE_ERR_MEMORY, "no memory for the command");
	}
	hale_status_t status = HALE_OK;
	for (int which = 0; status == HALE_OK; which++) {
		struct mpmd_part p = {program, part_length(program), which ? 1 : *ranks};
		program += p.count;
		status = part_options(&p, err);
		all += p.ranks;
		if (status == HALE_OK)
			put_part(f, &p, which, all);
		if (!*program++)
			break;
	}
	bool written = fclose(f) == 0;
	if (status == HALE_OK && !written)
		status = error_set(err, HALE_ERR_MEMORY, "no memory for the command");
	if (status != HALE_OK) {
		free(script);
		free(argv);
		return status;
	}
	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = script;
	argv[3] = "hale-programs";
	*merged = argv;
	*ranks = all;
	return HALE_OK;
}

/* ---- a file of programs ---- */

void mpmd_words_free(char **words)
{
	for (char **w = words; w && *w; w++)
		free(*w);
	free(words);
}

static hale_status_t add_word(char ***words, size_t *count, const char *word, struct error *err)
{
	char **more = realloc(*words, (*count + 2) * sizeof(*more));
	char *copy = more ? strdup(word) : NULL;

	if (more)
		*words = more;
	if (!copy)
		return error_set(err, HALE_ERR_MEMORY, "no memory for the command");
	more[(*count)++] = copy;
	more[*count] = NULL;
	return HALE_OK;
}

static hale_status_t add_line(char ***words, size_t *count, const char *line, struct error *err)
{
	hale_status_t status = HALE_OK;
	wordexp_t w;

	if (wordexp(line, &w, WRDE_NOCMD | WRDE_UNDEF) != 0)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "these are no words as a shell has them: quote what is special to it");
	if (w.we_wordc && *count)
		status = add_word(words, count, ":", err);
	for (size_t i = 0; i < w.we_wordc && status == HALE_OK; i++)
		status = add_word(words, count, w.we_wordv[i], err);
	wordfree(&w);
	return status;
}

/* Where a line ends, or a word that begins with '#' outside quotes. */
static size_t comment_at(const char *line)
{
	char quote = 0;
	size_t i;

	for (i = 0; line[i] && line[i] != '\n'; i++) {
		if (line[i] == '\\' && quote != '\'' && line[i + 1])
			i++;
		else if (quote)
			quote = line[i] == quote ? 0 : quote;
		else if (line[i] == '\'' || line[i] == '"')
			quote = line[i];
		else if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
			break;
	}
	return i;
}

hale_status_t mpmd_read(const char *path, char ***words, struct error *err)
{
	hale_status_t status = HALE_OK;
	char *line = NULL;
	size_t cap = 0, count = 0, number = 0;
	FILE *f = fopen(path, "re");

	*words = NULL;
	if (!f)
		return error_set(err, HALE_ERR_ARGUMENT, "can't read the programs' file '%s': %s", path,
				 strerrordesc_np(errno));
	while (status == HALE_OK && getline(&line, &cap, f) > 0) {
		struct error why;

		number++;
		line[comment_at(line)] = '\0';
		status = add_line(words, &count, line, &why);
		if (status != HALE_OK)
			error_set(err, status, "%s:%zu: %s", path, number, why.text);
	}
	if (status == HALE_OK && count == 0)
		status = error_set(err, HALE_ERR_ARGUMENT,
				   "%s names no program; each line is like: -n 2 ./a x", path);
	free(line);
	fclose(f);
	if (status != HALE_OK) {
		mpmd_words_free(*words);
		*words = NULL;
	}
	return status;
}

/* ---- output into files ---- */

hale_status_t mpmd_into_files(char *const *program, const char *folder, char ***wrapped,
			      struct error *err)
{
	enum { OURS = 5 };
	size_t count = 0;
	char **argv;

	while (program[count])
		count++;
	argv = calloc(OURS + count + 1, sizeof(*argv));
	if (!argv || !(argv[4] = strdup(folder))) {
		free(argv);
		return error_set(err, HALE_ERR_MEMORY, "no memory for the command");
	}
	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = "d=$1/rank.$HALE_RANK; shift; mkdir -p \"$d\" && "
		  "exec >\"$d/stdout\" 2>\"$d/stderr\" && exec \"$@\"";
	argv[3] = "hale-output";
	for (size_t i = 0; i < count; i++)
		argv[OURS + i] = program[i];
	*wrapped = argv;
	return HALE_OK;
}
