/* SPDX-License-Identifier: BSD-3-Clause */
/* hale monitor: watches a node, publishes what it sees. */
#include "cli/monitor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/base.h"
#include "cli/cli.h"
#include "cli/monitor_sink.h"
#include "node/job.h"
#include "monitor/monitor.h"

enum { MONITORS_MAX = 256 };

struct wanted {
	const char *kind;
	char *node;	  /* NULL: that of --node; owned */
	const char *from; /* BMC or file; NULL: this node's sensor */
	bool file;
};

struct monitor_args {
	struct wanted wanted[MONITORS_MAX];
	int count;
	struct monitor_options options; /* common to all */
	const char *to;
	bool once, readings, check;
};

const char cli_monitor_help[] =
    "hale monitor [--ipmi [[NODE=]BMC]] [--ib] [--memory] [--load] [options]\n"
    "\n"
    "Watches this node (or others, through their BMCs) and publishes events, until SIGTERM.\n"
    "\n"
    "  --ipmi                 fans and temperatures, of this node's BMC\n"
    "  --ipmi NODE=HOST[:PORT]\n"
    "                         of another's, over the network; repeatable\n"
    "  --ib                   InfiniBand adapters and ports\n"
    "  --memory               EDAC, rasdaemon, mcelog, the kernel's log, GPUs\n"
    "  --load                 pressure, out-of-memory kills, clock, and with:\n"
    "  --disk DIR             its file system, when it is nearly full; repeatable\n"
    "  --pid PID              this process, when it is stuck; repeatable\n"
    "  --ipmi-file [NODE=]FILE, --ib-file, --memory-file, --load-file\n"
    "                         readings from a file in place of the sensor: docs/monitors.md\n"
    "\n"
    "  --node NAME            what this node is called in events (the host name)\n"
    "  --every TIME           between two looks (ipmi 10s, ib 2s, memory and load 5s, files 0.5s)\n"
    "  --to FILE              events as lines of JSON at the end of FILE (- is stdout), instead "
    "of\n"
    "                         to the backplane\n"
    "  --once                 one look each, then end\n"
    "  --check                only say whether the options are right\n"
    "  --readings             print what the sensors say, in the form that --…-file takes\n"
    "\n"
    "  --ipmi-user NAME, --ipmi-password-file FILE\n"
    "  --ipmi-overtemp warning|critical   from which threshold on a node is too hot (warning)\n"
    "  --edac DIR, --rasdaemon FILE, --mcelog FILE, --kernel-log FILE\n"
    "                         when they are elsewhere; a log is read from its end on\n"
    "  --no-gpu               leave NVIDIA's management library alone\n"
    "  --disk-min PERCENT     that is to be free (5)\n"
    "  --stuck-after TIME     without a step or processor time (60s)\n"
    "  --pressure cpu|io|memory=PERCENT   of the last 10 s (cpu 90, io 50, memory 10)\n"
    "  --verbose              say each event on stderr too\n";

static int usage(const char *fmt, const char *what)
{
	char text[300];

	snprintf(text, sizeof(text), fmt, what);
	log_warn("%s; `hale help monitor` lists the options", text);
	return EXIT_USAGE;
}

/* "NODE=REST"; a path may have a '=' too, behind a slash. */
static int want(struct monitor_args *a, const char *kind, const char *from, bool file)
{
	struct wanted *w = &a->wanted[a->count];
	const char *equals = from ? strchr(from, '=') : NULL;

	if (a->count == MONITORS_MAX)
		return usage("more than 256 monitors in one process: start another%s", "");
	*w = (struct wanted){.kind = kind, .from = from, .file = file};
	if (equals && equals > from && !memchr(from, '/', (size_t)(equals - from))) {
		w->node = strndup(from, (size_t)(equals - from));
		w->from = equals + 1;
	}
	if (from && !*w->from) {
		free(w->node);
		w->node = NULL;
		return usage("--%s needs what is to be watched", kind);
	}
	a->count++;
	return 0;
}

static int parse_pressure(struct monitor_options *o, const char *text)
{
	static const char *const names[] = {"cpu=", "io=", "memory="};
	long percent;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);
		if (strncmp(text, names[i], n) == 0 &&
		    units_parse_int(text + n, 1, 100, &percent)) {
			o->pressure[i] = (double)percent;
			return 0;
		}
	}
	return usage("--pressure takes cpu, io or memory, = and 1 to 100, not '%s'", text);
}

/* Options with a text that is used as it is. */
static const char **text_option(struct monitor_args *a, const char *name)
{
	const struct {
		const char *name;
		const char **to;
	} texts[] = {
	    {"--node", &a->options.node},      {"--to", &a->to},
	    {"--ipmi-user", &a->options.user}, {"--ipmi-password-file", &a->options.password_file},
	    {"--edac", &a->options.edac},      {"--rasdaemon", &a->options.rasdaemon},
	    {"--mcelog", &a->options.mcelog},  {"--kernel-log", &a->options.kernel_log}};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (strcmp(texts[i].name, name) == 0)
			return texts[i].to;
	return NULL;
}

/* Options with a value that has to be understood. */
static int value_option(struct monitor_args *a, const char *name, const char *value)
{
	struct monitor_options *o = &a->options;
	struct statvfs fs;
	long n;

	if (strcmp(name, "--every") == 0)
		return units_parse_seconds(value, &o->every) && o->every >= 0.01
			   ? 0
			   : usage("--every takes a time of 10ms and more, not '%s'", value);
	if (strcmp(name, "--stuck-after") == 0)
		return units_parse_seconds(value, &o->stuck_after) && o->stuck_after > 0
			   ? 0
			   : usage("--stuck-after takes a time such as 60s, not '%s'", value);
	if (strcmp(name, "--disk-min") == 0) {
		if (!units_parse_int(value, 1, 90, &n))
			return usage("--disk-min takes percent from 1 to 90, not '%s'", value);
		o->disk_min = (double)n / 100;
		return 0;
	}
	if (strcmp(name, "--pid") == 0) {
		if (!units_parse_int(value, 1, 1 << 30, &n) || o->pid_count == MONITOR_PATHS_MAX)
			return usage("--pid takes a process id, at most 16 times, not '%s'", value);
		if (kill((pid_t)n, 0) != 0 && errno == ESRCH)
			return usage("there is no process %s to be watched", value);
		o->pids[o->pid_count++] = (int)n;
		return 0;
	}
	if (strcmp(name, "--disk") == 0) {
		if (o->disk_count == MONITOR_PATHS_MAX)
			return usage("--disk can be given 16 times, not for '%s' too", value);
		if (statvfs(value, &fs) != 0)
			return usage("--disk takes a folder that is there, not '%s'", value);
		o->disks[o->disk_count++] = value;
		return 0;
	}
	if (strcmp(name, "--pressure") == 0)
		return parse_pressure(o, value);
	if (strcmp(name, "--ipmi-overtemp") == 0) {
		o->critical_only = strcmp(value, "critical") == 0;
		return o->critical_only || strcmp(value, "warning") == 0
			   ? 0
			   : usage("--ipmi-overtemp takes warning or critical, not '%s'", value);
	}
	return usage("'%s' is no option of hale monitor", name);
}

static const char *file_option(const char *name)
{
	static const char *const options[] = {"--ipmi-file", "--ib-file", "--memory-file",
					      "--load-file"};
	static const char *const kinds[] = {"ipmi", "ib", "memory", "load"};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strcmp(options[i], name) == 0)
			return kinds[i];
	return NULL;
}

/* True when it was one of those without a value. */
static bool flag_option(struct monitor_args *a, const char *name, int *status)
{
	*status = 0;
	if (strcmp(name, "--ib") == 0 || strcmp(name, "--memory") == 0 ||
	    strcmp(name, "--load") == 0)
		*status = want(a, name + 2, NULL, false);
	else if (strcmp(name, "--once") == 0)
		a->once = true;
	else if (strcmp(name, "--readings") == 0)
		a->readings = true;
	else if (strcmp(name, "--check") == 0)
		a->check = true;
	else if (strcmp(name, "--no-gpu") == 0)
		a->options.no_gpu = true;
	else if (strcmp(name, "--verbose") == 0)
		log_set_level(LOG_INFO);
	else
		return false;
	return true;
}

static int parse(struct monitor_args *a, int argc, char **argv)
{
	for (int i = 1; i < argc && argv[i]; i++) {
		const char *name = argv[i], *kind = file_option(name);
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		const char **text = text_option(a, name);
		int status;

		if (flag_option(a, name, &status)) {
			if (status)
				return status;
			continue;
		}
		if (strcmp(name, "--ipmi") == 0) { /* its value may be left out */
			bool has = value && value[0] != '-';
			status = want(a, "ipmi", has ? value : NULL, false);
			i += has;
		} else if (strncmp(name, "--", 2) != 0) {
			return usage("'%s' is no option of hale monitor", name);
		} else if (!value) {
			return usage("%s needs a value, or is no option of hale monitor", name);
		} else {
			status = kind ? want(a, kind, value, true) : 0;
			if (!kind && text)
				*text = value;
			else if (!kind)
				status = value_option(a, name, value);
			i++;
		}
		if (status)
			return status;
	}
	if (a->count == 0)
		return usage("nothing to watch: say --ipmi, --ib, --memory or --load%s", "");
	return 0;
}

static struct monitor_options options_of(const struct monitor_args *a, const struct wanted *w)
{
	struct monitor_options o = a->options;

	if (w->node)
		o.node = w->node;
	if (w->file)
		o.file = w->from;
	else
		o.bmc = w->from;
	return o;
}

/* One kind, in this process: what its reader would write. */
static int print_readings(const struct monitor_args *a)
{
	struct error err;

	if (a->count != 1)
		return usage("--readings is for one monitor at a time%s", "");
	struct monitor_options o = options_of(a, &a->wanted[0]);
	if (monitor_read(a->wanted[0].kind, &o, STDOUT_FILENO, a->once, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return 1;
	}
	return 0;
}

static void watch(const struct monitor_args *a, struct monitor_set *set, int signals)
{
	struct pollfd p[2] = {{.fd = monitor_set_fd(set), .events = POLLIN},
			      {.fd = signals, .events = POLLIN}};

	while (!(a->once && monitor_set_ready(set)) && !monitor_set_over(set)) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		if (p[0].revents)
			monitor_set_work(set);
		if (p[1].revents)
			return;
	}
}

static int start(const struct monitor_args *a, int signals)
{
	struct monitor_sink *sink;
	struct monitor_set *set = NULL;
	struct error err;
	bool good;

	sink = monitor_sink_open(a->to, &err);
	good = sink && monitor_set_create(monitor_sink_publish, sink, &set, &err) == HALE_OK;
	for (int i = 0; good && i < a->count; i++) {
		struct monitor_options o = options_of(a, &a->wanted[i]);
		good = monitor_set_add(set, a->wanted[i].kind, &o, &err) == HALE_OK;
	}
	if (good)
		watch(a, set, signals);
	else
		log_warn("%s", err.text);
	monitor_set_destroy(set);
	monitor_sink_close(sink);
	return good ? 0 : 1;
}

int cli_monitor(int argc, char **argv)
{
	struct monitor_args *a;
	int status, signals;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return cli_help("monitor");
	a = calloc(1, sizeof(*a));
	if (!a) {
		log_warn("out of memory");
		return 1;
	}
	status = parse(a, argc, argv);
	if (status == 0 && a->readings) {
		status = print_readings(a);
	} else if (status == 0 && !a->check) {
		signals = cli_end_signals();
		status = signals >= 0 ? start(a, signals) : 1;
		if (signals >= 0)
			close(signals);
	}
	for (int i = 0; i < a->count; i++)
		free(a->wanted[i].node);
	free(a);
	return status;
}
