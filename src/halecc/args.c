/* SPDX-License-Identifier: BSD-3-Clause */
/* What of cc's arguments matters here: sources, what is made of them, what the preprocessor needs.
 */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

/* Options whose value is the next argument. */
static const char *const with_value[] = {"-o",
					 "-x",
					 "-I",
					 "-D",
					 "-U",
					 "-include",
					 "-imacros",
					 "-isystem",
					 "-iquote",
					 "-L",
					 "-l",
					 "-MF",
					 "-MT",
					 "-MQ",
					 "-idirafter",
					 "-Xlinker",
					 "-Xassembler",
					 "-T",
					 "-u",
					 "-z",
					 "-A",
					 "--param",
					 "-aux-info",
					 "-iprefix",
					 "-e",
					 "-dumpbase",
					 "-dumpdir",
					 "-G",
					 "-Xpreprocessor",
					 "-isysroot",
					 "-target",
					 "-arch",
					 NULL};

/* Those that the preprocessor, and so libclang, needs. */
static const char *const for_clang[] = {"-I",	     "-D",	 "-U",	    "-include",
					"-imacros",  "-isystem", "-iquote", "-idirafter",
					"-isysroot", NULL};

static bool in(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(s, *list) == 0)
			return true;
	return false;
}

static bool joined(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (strncmp(s, *list, strlen(*list)) == 0)
			return true;
	return false;
}

bool args_has_value(const char *option)
{
	return in(option, with_value);
}

bool args_is_source(const char *path, const char *language)
{
	static const char *const endings[] = {".c", ".cc",  ".cpp", ".cxx",
					      ".C", ".c++", ".cp",  NULL};
	const char *dot = strrchr(path, '.');

	if (language && strcmp(language, "none") != 0)
		return strcmp(language, "c") == 0 || strcmp(language, "c++") == 0;
	return dot && in(dot, endings);
}

static void clang_add(struct command *c, const char *a)
{
	c->clang[c->clang_count++] = a;
}

static void compiler_add(struct command *c, const char *a)
{
	c->argv[c->argc++] = a;
}

/* The compiler reads a translated copy of the user's source, whose dependencies would name that
 * copy. So halecc takes these options away, and has the compiler write dependencies in a second
 * call. */
static bool depend_option(struct command *c, const char *a, const char *value)
{
	if (strcmp(a, "-MD") == 0 || strcmp(a, "-MMD") == 0) {
		c->depend = true;
		c->depend_user = a[2] == 'M';
	} else if (strcmp(a, "-MP") == 0)
		c->depend_phony = true;
	else if (strcmp(a, "-MF") == 0)
		c->depend_file = value;
	else if (strncmp(a, "-MF", 3) == 0)
		c->depend_file = a + 3;
	else if (strcmp(a, "-MT") == 0 || strcmp(a, "-MQ") == 0)
		c->depend_target = value;
	else if (strncmp(a, "-MT", 3) == 0 || strncmp(a, "-MQ", 3) == 0)
		c->depend_target = a + 3;
	else
		return false;
	return true;
}

static void option(struct command *c, const char *a, const char *value)
{
	if (strcmp(a, "-c") == 0 || strcmp(a, "-S") == 0 || strcmp(a, "-fsyntax-only") == 0)
		c->link = false;
	else if (strcmp(a, "-E") == 0) {
		c->link = false;
		c->only_preprocess = true;
	} else if (strcmp(a, "-w") == 0)
		c->quiet = true;
	else if (strncmp(a, "-fopenmp", 8) == 0)
		c->openmp = true;
	else if (strcmp(a, "-o") == 0)
		c->output = value;
	else if (strncmp(a, "-o", 2) == 0)
		c->output = a + 2;
	else if (strcmp(a, "-x") == 0)
		c->language = value;
	else if (strncmp(a, "-x", 2) == 0)
		c->language = a + 2;
	if (in(a, for_clang) && value) {
		clang_add(c, a);
		clang_add(c, value);
	} else if (joined(a, for_clang) || strncmp(a, "-std=", 5) == 0)
		clang_add(c, a);
}

int args_read(struct command *c, int argc, char **argv)
{
	memset(c, 0, sizeof *c);
	c->link = true;
	c->argv = text_memory(((size_t)argc + 64) * sizeof *c->argv);
	c->clang = text_memory(((size_t)argc + 256) * sizeof *c->clang);
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *value = NULL;

		if (strcmp(a, "--explain") == 0)
			c->explain = true;
		else if (strcmp(a, "--suggest") == 0)
			c->suggest = true;
		else if (strcmp(a, "--show") == 0)
			c->show = true;
		else if (a[0] != '-' || a[1] == '\0') {
			if (args_is_source(a, c->language)) {
				if (c->inputs == (int)ARRAY_LEN(c->input)) {
					log_warn("halecc: more than %zu sources in one call",
						 ARRAY_LEN(c->input));
					return 64;
				}
				c->input[c->inputs++] = c->argc;
			}
			compiler_add(c, a);
		} else {
			if (in(a, with_value)) {
				if (i + 1 == argc) {
					log_warn("halecc: '%s' needs a value", a);
					return 64;
				}
				value = argv[++i];
			}
			if (strcmp(a, "-M") == 0 || strcmp(a, "-MM") == 0)
				c->to_stop = true;
			if (depend_option(c, a, value) && !c->to_stop)
				continue;
			option(c, a, value);
			compiler_add(c, a);
			if (value)
				compiler_add(c, value);
		}
	}
	return 0;
}
