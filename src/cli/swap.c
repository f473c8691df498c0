/* SPDX-License-Identifier: BSD-3-Clause */
/* hale swap, hale offload: device processes of a running program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "cli/cli.h"
#include "offload/control.h"

static int usage(const char *command)
{
	log_warn(
	    strcmp(command, "swap") == 0
		? "hale swap takes out PID [--dir DIR], or in PID DEVICE; `hale help swap` says "
		  "more"
		: "hale offload takes migrate PID DEVICE, or list PID; `hale help offload` says "
		  "more");
	return EXIT_USAGE;
}

/* The socket of the program: it, and nobody else, listens there. */
static int reach(long pid)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;
	socklen_t len = control_address(&at, (int)pid);
	struct ucred who = {0};
	socklen_t size = sizeof(who);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, len) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid())
		return fd;
	log_warn(
	    "process %ld has no device processes that can be asked: it is none of yours, or has "
	    "not started one, or runs with HALE_OFFLOAD_CONTROL=off",
	    pid);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Prints the answer; 1 if something failed. */
static int tell(long pid, const char *order)
{
	int fd = reach(pid), status = 1;
	char line[700];
	FILE *f;

	if (fd < 0)
		return 1;
	f = fdopen(fd, "r");
	if (!f || send(fd, order, strlen(order), MSG_NOSIGNAL) != (ssize_t)strlen(order)) {
		log_warn("process %ld does not answer", pid);
		return 1;
	}
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "ok ", 3) == 0) {
			puts(line + 3);
			status = status == 1 ? 0 : status;
		} else {
			log_warn("%s", line + (strncmp(line, "error ", 6) == 0 ? 6 : 0));
			status = 2;
		}
	}
	fclose(f);
	if (status == 1)
		log_warn("process %ld has ended before it answered", pid);
	return status ? 1 : 0;
}

/* Where snapshots go without --dir. */
static const char *usual_folder(char folder[4096])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, 4096, "%s/hale-swap-%u", tmp && tmp[0] == '/' ? tmp : "/tmp",
		 (unsigned)getuid());
	return folder;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

static int swap_out(int argc, char **argv, long pid)
{
	char folder[4096], whole[4096 * 2 + 2], here[4096], order[4096 * 2 + 16];
	const char *dir = argc == 5 ? argv[4] : usual_folder(folder);

	if (argc != 3 && (argc != 5 || strcmp(argv[3], "--dir") != 0))
		return usage("swap");
	if (dir[0] == '/' || !getcwd(here, sizeof(here)))
		snprintf(whole, sizeof(whole), "%s", dir);
	else
		snprintf(whole, sizeof(whole), "%s/%s", here, dir);
	snprintf(order, sizeof(order), "out %s\n", whole);
	return tell(pid, order);
}

static int with_device(const char *command, const char *word, int argc, char **argv, long pid)
{
	char order[64];
	long device;

	if (argc != 4 || !units_parse_int(argv[3], 0, 1 << 20, &device))
		return usage(command);
	snprintf(order, sizeof(order), "%s %ld\n", word, device);
	return tell(pid, order);
}

int cli_swap(int argc, char **argv)
{
	long pid;

	if (wants_help(argc, argv))
		return cli_help("swap");
	if (argc < 3 || !units_parse_int(argv[2], 1, 1 << 30, &pid))
		return usage("swap");
	if (strcmp(argv[1], "out") == 0)
		return swap_out(argc, argv, pid);
	if (strcmp(argv[1], "in") == 0)
		return with_device("swap", "in", argc, argv, pid);
	return usage("swap");
}

int cli_offload(int argc, char **argv)
{
	long pid;

	if (wants_help(argc, argv))
		return cli_help("offload");
	if (argc < 3 || !units_parse_int(argv[2], 1, 1 << 30, &pid))
		return usage("offload");
	if (strcmp(argv[1], "migrate") == 0)
		return with_device("offload", "migrate", argc, argv, pid);
	if (strcmp(argv[1], "list") == 0 && argc == 3)
		return tell(pid, "list\n");
	return usage("offload");
}
