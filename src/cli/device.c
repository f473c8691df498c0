/* SPDX-License-Identifier: BSD-3-Clause */
/* hale device serve: the daemon of a node. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "cli/cli.h"
#include "rio/rio.h"

static void say_ready(const char *address)
{
	printf("hale device: serving at %s\n", address);
	fflush(stdout);
}

static int serve(int argc, char **argv)
{
	struct rio_daemon d = {.root = ".", .listen = "127.0.0.1:7420", .ready = say_ready};
	int status;

	for (int i = 2; i < argc; i++) {
		if (i + 1 < argc && strcmp(argv[i], "--root") == 0)
			d.root = argv[++i];
		else if (i + 1 < argc && strcmp(argv[i], "--listen") == 0)
			d.listen = argv[++i];
		else if (strcmp(argv[i], "--verbose") == 0)
			log_set_level(LOG_INFO);
		else {
			log_warn("hale device serve takes --root DIR, --listen ADDRESS:PORT and "
				 "--verbose, and not '%s'; `hale help device` says more",
				 argv[i]);
			return EXIT_USAGE;
		}
	}
	signal(SIGPIPE, SIG_IGN);
	d.end = cli_end_signals();
	if (d.end < 0)
		return EXIT_UNRECOVERED;
	status = rio_serve(&d);
	_exit(status); /* threads still serve; what they have not kept is gone */
}

int cli_device(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_help("device");
	if (argc > 1 && strcmp(argv[1], "serve") == 0)
		return serve(argc, argv);
	log_warn("hale device takes serve; `hale help device` says how");
	return EXIT_USAGE;
}
