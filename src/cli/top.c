/* SPDX-License-Identifier: BSD-3-Clause */
/* hale top: becomes hale-top, which stands beside the libraries. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "cli/cli.h"
#include "launch/environment.h"
#include "node/job.h"

static bool find_program(char path[PATH_MAX])
{
	char libdir[PATH_MAX];
	struct error err;

	if (environment_find_libdir(libdir, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return false;
	}
	if (snprintf(path, PATH_MAX, "%s/hale-top", libdir) < PATH_MAX && access(path, X_OK) == 0)
		return true;
	log_warn("%s is not there: this Hale was built without ncurses (Debian: libncurses-dev); "
		 "`hale ps --watch` shows jobs, too",
		 path);
	return false;
}

int cli_top(int argc, char **argv)
{
	char path[PATH_MAX], self[PATH_MAX], every[32] = "2s";
	const char *job = "";
	double seconds;
	ssize_t n;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_help("top");
		if (strcmp(argv[i], "--every") == 0 && i + 1 < argc &&
		    units_parse_seconds(argv[i + 1], &seconds) && seconds >= 0.1 &&
		    seconds <= 3600) {
			snprintf(every, sizeof(every), "%.31s", argv[++i]);
		} else if (argv[i][0] != '-' && !*job && strlen(argv[i]) < JOB_ID_MAX) {
			job = argv[i];
		} else {
			log_warn("hale top takes a job and --every TIME (0.1s to 1h); `hale help "
				 "top` says more");
			return EXIT_USAGE;
		}
	}
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		log_warn("hale top needs a terminal; for programs and files there is `hale ps "
			 "--json`, also with --watch");
		return EXIT_USAGE;
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0 || !find_program(path))
		return EXIT_USAGE;
	self[n] = '\0';
	execl(path, "hale-top", self, job, every, (char *)NULL);
	log_warn("cannot start %s: %s", path, strerror(errno));
	return EXIT_USAGE;
}
