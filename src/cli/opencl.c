/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/opencl.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/gather.h"
#include "cli/opencl_loader.h"
#include "launch/environment.h"
#include "node/job.h"
#include "report/report.h"
#include "launch/program.h"
#include "node/ocl_account.h"

/* ---- is it asked for? ---- */

/* The option at argv[at] is taken out; it was one of hale's if the program comes behind it. */
static bool is_option(int argc, char **argv, int at)
{
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct options o;
	struct error err;
	bool yes = false;

	if (!rest)
		return false;
	memcpy(rest, argv, (size_t)at * sizeof(*rest));
	memcpy(rest + at, argv + at + 1, (size_t)(argc - at - 1) * sizeof(*rest));
	/* what is wrong with the other options is said when they are parsed in earnest */
	if (options_parse(&o, OPTIONS_RUN, argc - 1, rest, &err) != HALE_OK || o.help || o.version)
		yes = true;
	else
		yes = o.program >= rest + at;
	options_fini(&o);
	free(rest);
	return yes;
}

bool cli_opencl_asked(int *argc, char **argv)
{
	for (int i = 1; i < *argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--opencl") != 0)
			continue;
		if (!is_option(*argc, argv, i))
			return false;
		memmove(argv + i, argv + i + 1, (size_t)(*argc - i) * sizeof(*argv));
		(*argc)--;
		return true;
	}
	return false;
}

/* ---- reports of the processes, as one ---- */

static void add_report(void *a, const struct json_value *v)
{
	account_add(a, v);
}

static void put_into(const char *report, const struct account *a)
{
	struct json_out j;

	json_out_init(&j);
	account_json(a, &j);
	gather_put(report, "opencl", &j);
	json_out_fini(&j);
}

/* A picture and text are of what the layer had to say; JSON is the job's report with that in it. */
static bool is_of_layer(const char *report)
{
	return account_is_picture(report) || account_is_text(report);
}

static void say_none(const struct options *o, const char *dir)
{
	if (gather_over_hosts(o))
		log_warn("--opencl: no report of the OpenCL layer has come to '%s': either no "
			 "process used OpenCL through it, or the hosts don't share that folder "
			 "(--ckpt-dir)",
			 dir);
	else
		log_warn("--opencl: no process of the job used OpenCL through the layer: either "
			 "there is none that uses OpenCL, or it brings an OpenCL loader of its own "
			 "that knows nothing of OPENCL_LAYERS, or there is no room in '%s'",
			 dir);
}

/* Removes the folder, too. */
static void gather(const struct options *o, char *dir, const char *report, int exit_status)
{
	struct account a = {0};
	const char *why;

	gather_folder(dir, add_report, &a);
	if (report && is_of_layer(report)) {
		why = account_write(&a, report);
		if (why)
			log_warn("the report '%s' could not be written: %s", report, why);
	} else if (report && strncmp(report, "/dev/", 5) != 0) {
		put_into(report, &a);
	}
	gather_leave(o, dir);
	if (a.processes == 0 && exit_status == 0)
		say_none(o, dir);
}

/* ---- running ---- */

static bool set_layer(const char *libdir)
{
	const char *others = getenv("OPENCL_LAYERS");
	char *list;

	if (asprintf(&list, "%s/libhale_opencl.so%s%s", libdir, others && *others ? ":" : "",
		     others ? others : "") < 0)
		return false;
	setenv("OPENCL_LAYERS", list, 1);
	free(list);
	return true;
}

/* HALE_OPENCL='… server=off …': the runtime stays in the program. The layer looks at what is
 * written there closely. */
static bool wants_server(void)
{
	const char *text = getenv("HALE_OPENCL"), *at = text ? strstr(text, "server=off") : NULL;

	return !at || (at != text && at[-1] != ' ');
}

/* The program's OpenCL loader is to find only our driver. The server's loader gets what the
 * program's would have found (ocl/remote/). */
static void set_server(const char *libdir)
{
	const char *vendors = getenv("OCL_ICD_VENDORS");
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/libhale_opencl_remote.so", libdir);
	if (!wants_server() || access(path, R_OK) != 0)
		return;
	setenv("HALE_OPENCL_VENDORS", vendors ? vendors : "", 1);
	setenv("OCL_ICD_VENDORS", path, 1);
	setenv("OCL_ICD_FILENAMES", path,
	       1); /* Khronos' loader takes only folders by the other one */
}

static int without_layer(const char *libdir)
{
	log_warn("--opencl: there is no '%s/libhale_opencl.so': hale was built without the OpenCL "
		 "headers (Debian: opencl-headers); install them and build again",
		 libdir);
	return EXIT_USAGE;
}

/* A program without MPI needs no --no-mpi when it is said to be one of OpenCL. */
static void guess_mpi(struct options *o)
{
	struct program *p = calloc(1, sizeof(*p));
	struct error err;
	int status;

	if (p && program_examine(o->program[0], o->wdir, p, &status, &err) == HALE_OK &&
	    p->mpi == PROGRAM_MPI_NONE)
		o->no_mpi = true;
	free(p);
}

int cli_opencl_run(struct options *o, int (*run)(struct options *))
{
	char libdir[PATH_MAX], path[PATH_MAX + 32], dir[PATH_MAX];
	const char *report;
	struct error err;
	int status;

	if (environment_find_libdir(libdir, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	if (strchr(libdir, ' ')) {
		log_warn(
		    "--opencl: hale's layer can't be preloaded from '%s', as that has a blank in "
		    "its name; set HALE_LIBDIR to a symbolic link to it",
		    libdir);
		return EXIT_USAGE;
	}
	snprintf(path, sizeof(path), "%s/libhale_opencl.so", libdir);
	if (access(path, R_OK) != 0 || !set_layer(libdir))
		return without_layer(libdir);
	if (!opencl_loader_set())
		return EXIT_USAGE;
	if (o->report && is_of_layer(o->report) && /* the head looks at its own */
	    report_probe("report", o->report, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	set_server(libdir);
	guess_mpi(o);
	if (!gather_make_folder(o, "opencl", dir)) {
		log_warn("--opencl: '%s': %s; set TMPDIR to a folder that can be written to", dir,
			 strerror(errno));
		return EXIT_USAGE;
	}
	setenv("HALE_OPENCL_REPORTS", dir, 1);
	report = o->report;
	if (report && is_of_layer(report))
		o->report = NULL; /* not the head's */
	status = run(o);
	o->report = report;
	gather(o, dir, report, status);
	return status;
}

/* ---- hale inject ecc ---- */

static int usage(void)
{
	log_warn("hale inject ecc takes a process: hale inject ecc PID [--epoch N] [--times N]");
	return EXIT_USAGE;
}

static int send_error(long pid, long epoch, long times)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "hale-opencl-%ld", pid);
	char text[64];
	int len = snprintf(text, sizeof(text), "ecc %ld %ld", epoch, times);
	ssize_t sent = -1;

	if (fd >= 0)
		sent = sendto(fd, text, (size_t)len, MSG_DONTWAIT, (struct sockaddr *)&a,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
	if (fd >= 0)
		close(fd);
	if (sent == len)
		return 0;
	log_warn(
	    "process %ld does not run OpenCL under hale's layer: start it by hale run --opencl",
	    pid);
	return 1;
}

int cli_opencl_inject(int argc, char **argv)
{
	long pid = 0, epoch = 1, times = 1;

	for (int i = 2; i < argc; i++) {
		bool value = i + 1 < argc;

		if (value && strcmp(argv[i], "--epoch") == 0) {
			if (!units_parse_int(argv[++i], 1, LONG_MAX, &epoch))
				return usage();
		} else if (value && strcmp(argv[i], "--times") == 0) {
			if (!units_parse_int(argv[++i], 1, LONG_MAX, &times))
				return usage();
		} else if (pid != 0 || !units_parse_int(argv[i], 1, INT_MAX, &pid)) {
			return usage();
		}
	}
	return pid == 0 ? usage() : send_error(pid, epoch, times);
}
