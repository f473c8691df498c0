/* SPDX-License-Identifier: BSD-3-Clause */
/* hale top: becomes hale-top, which stands beside the libraries. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "cli/beside.h"
#include "cli/cli.h"
#include "node/job.h"

int cli_top(int argc, char **argv)
{
	char every[32] = "2s";
	const char *job = "";
	double seconds;

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
	return cli_become("hale-top",
			  "this Hale was built without ncurses (Debian: libncurses-dev); `hale ps "
			  "--watch` shows jobs, too",
			  job, every);
}
