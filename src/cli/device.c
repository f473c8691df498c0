/* SPDX-License-Identifier: BSD-3-Clause */
/* hale device serve: the daemon of a node. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "cli/beside.h"
#include "cli/cli.h"
#include "ocl/remote/net.h"
#include "offload/offload.h"
#include "rio/rio.h"

static void say_ready(const char *address)
{
	printf("hale device: serving at %s\n", address);
	fflush(stdout);
}

static int serve(int argc, char **argv)
{
	static const struct rio_service services[] = {
	    {OFF_LIST, OFF_CREATE, offload_serve}, {NET_JOIN, NET_JOIN, net_serve}, {0, 0, NULL}};
	struct offload_service o = {.devices = 1, .memory = 1ul << 30};
	char program[4096], opencl[4096];
	struct rio_daemon d = {
	    .services = services, .root = ".", .listen = "127.0.0.1:7420", .ready = say_ready};
	int status;
	long number;

	for (int i = 2; i < argc; i++) {
		if (i + 1 < argc && strcmp(argv[i], "--root") == 0)
			d.root = argv[++i];
		else if (i + 1 < argc && strcmp(argv[i], "--listen") == 0)
			d.listen = argv[++i];
		else if (i + 1 < argc && strcmp(argv[i], "--devices") == 0 &&
			 units_parse_int(argv[i + 1], 0, OFFLOAD_DEVICES, &number) && ++i)
			o.devices = (unsigned)number;
		else if (i + 1 < argc && strcmp(argv[i], "--memory") == 0 &&
			 units_parse_bytes(argv[i + 1], &o.memory) && ++i)
			continue;
		else if (strcmp(argv[i], "--verbose") == 0)
			log_set_level(LOG_INFO);
		else {
			log_warn("hale device serve takes --devices N, --memory SIZE, --root DIR, "
				 "--listen ADDRESS:PORT and --verbose, and not '%s'; `hale help "
				 "device` says more",
				 argv[i]);
			return EXIT_USAGE;
		}
	}
	if (o.devices && !cli_beside_path("hale-offload", program, sizeof(program))) {
		log_warn(
		    "hale-offload, which device processes are, is not installed with this hale");
		return EXIT_UNRECOVERED;
	}
	o.program = program;
	if (cli_beside_path("hale-opencl-server", opencl, sizeof(opencl)))
		net_serve_begin(opencl);
	offload_serve_begin(&o);
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
