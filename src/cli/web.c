/* SPDX-License-Identifier: BSD-3-Clause */
/* hale web: becomes hale-web, which stands beside the libraries. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "cli/cli.h"
#include "cli/beside.h"
#include "node/job.h"

/* "8080", "127.0.0.1:8080", "0.0.0.0:0" */
static bool parse_address(const char *text, char host[64], char port[16])
{
	const char *colon = strrchr(text, ':');
	struct in_addr a;
	long number;

	snprintf(host, 64, "%.*s", colon ? (int)(colon - text) : 9, colon ? text : "127.0.0.1");
	if (strcmp(host, "localhost") == 0)
		strcpy(host, "127.0.0.1");
	snprintf(port, 16, "%.15s", colon ? colon + 1 : text);
	return inet_pton(AF_INET, host, &a) == 1 && units_parse_int(port, 0, 65535, &number);
}

int cli_web(int argc, char **argv)
{
	char host[64] = "127.0.0.1", port[16] = "0";

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_help("web");
		if (strcmp(argv[i], "--listen") == 0 && i + 1 < argc &&
		    parse_address(argv[i + 1], host, port)) {
			i++;
			continue;
		}
		log_warn(
		    "hale web takes --listen PORT or --listen ADDRESS:PORT, of IPv4; `hale help "
		    "web` says more");
		return EXIT_USAGE;
	}
	return cli_become("hale-web",
			  "this Hale was built without libmicrohttpd (Debian: libmicrohttpd-dev); "
			  "`hale report JOB --html` makes the page of one moment",
			  host, port);
}
