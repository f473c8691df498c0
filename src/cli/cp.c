/* SPDX-License-Identifier: BSD-3-Clause */
/* hale cp: files to and from other nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "cli/cli.h"
#include "hale/rio.h"
#include "rio/rio.h"

static int usage(const char *what)
{
	log_warn("hale cp: %s; `hale help cp` says how", what);
	return EXIT_USAGE;
}

/* "NODE:PATH", "[ADDRESS]:PORT:PATH", "HOST:PORT:PATH": parted in place; NULL: a local path, as
 * whatever has a slash before its first colon. */
static char *split_node(char *word)
{
	char *colon = strchr(word[0] == '[' ? word + strcspn(word, "]") : word, ':');
	char *slash = strchr(word, '/');

	if (!colon || (slash && slash < colon))
		return NULL;
	size_t digits = strspn(colon + 1, "0123456789");
	if (digits > 0 && colon[1 + digits] == ':')
		colon += 1 + digits;
	*colon = 0;
	return colon + 1;
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool parse_option(struct rio_copy *c, int *i, int argc, char **argv)
{
	long number;

	if (strcmp(argv[*i], "--sync") == 0) {
		c->sync = true;
		return true;
	}
	if (strcmp(argv[*i], "--streams") != 0 || *i + 1 >= argc ||
	    !units_parse_int(argv[*i + 1], 1, RIO_STREAMS_MAX, &number))
		return false;
	c->streams = (unsigned)number;
	++*i;
	return true;
}

int cli_cp(int argc, char **argv)
{
	struct rio_copy c = {.streams = 2};
	char *word[2], near[4200], far[4200], *path[2];
	struct stat st;
	int words = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_help("cp");
		if (argv[i][0] == '-' && argv[i][1]) {
			if (!parse_option(&c, &i, argc, argv))
				return usage("it takes --streams 1…16 and --sync");
		} else if (words == 2) {
			return usage("it copies one file");
		} else {
			word[words++] = argv[i];
		}
	}
	if (words != 2)
		return usage("it takes the file and where it goes");
	path[0] = split_node(word[0]);
	path[1] = split_node(word[1]);
	if (!path[0] == !path[1])
		return usage("exactly one of both is NODE:PATH");
	c.to_node = path[1];
	c.node = c.to_node ? word[1] : word[0];
	snprintf(far, sizeof(far), "%s", c.to_node ? path[1] : path[0]);
	snprintf(near, sizeof(near), "%s", c.to_node ? word[0] : word[1]);
	if (c.to_node && (!far[0] || far[strlen(far) - 1] == '/'))
		snprintf(far + strlen(far), sizeof(far) - strlen(far), "%s", last_name(near));
	if (!c.to_node && stat(near, &st) == 0 && S_ISDIR(st.st_mode))
		snprintf(near + strlen(near), sizeof(near) - strlen(near), "/%s", last_name(far));
	c.near = near;
	c.far = far;
	if (rio_copy(&c) == 0)
		return 0;
	log_warn("hale cp: %s", rio_why());
	return 1;
}
