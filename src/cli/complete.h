/* SPDX-License-Identifier: BSD-3-Clause */
/* Shell completion: what its files share. */
#ifndef HALE_CLI_COMPLETE_H
#define HALE_CLI_COMPLETE_H

#include <stddef.h>

enum { COMPLETE_OPTIONS_MAX = 128 };

struct complete_option {
	char name[40], value[64], about[96]; /* "": takes no value; nothing is said of it */
};

struct complete_options {
	struct complete_option at[COMPLETE_OPTIONS_MAX];
	size_t count;
};

/* Adds the options that a help text tells of. */
void complete_read_help(const char *text, struct complete_options *all);

/* What a shell has to read, once; NULL: no such shell. */
const char *complete_script(const char *shell);

extern const char cli_complete_help[];

#endif
