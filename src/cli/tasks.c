/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/tasks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "cli/cli.h"
#include "cli/gather.h"
#include "node/job.h"
#include "launch/environment.h"
#include "launch/program.h"
#include "node/task_account.h"

__attribute__((format(printf, 3, 4))) static bool export(struct options *o, struct error *err,
							 const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return options_export(o, n < 0 ? NULL : text, err) == HALE_OK;
}

/* What the user has preloaded comes first, as without us; the ranks' environment is put together by
 * launch/environment.c, which puts libhale.so behind it. */
static const char *preloaded(const struct options *o)
{
	const char *found = getenv("LD_PRELOAD");

	for (size_t i = 0; i < o->export_count; i++)
		if (strncmp(o->exports[i], "LD_PRELOAD=", 11) == 0)
			found = o->exports[i] + 11;
	return found ? found : "";
}

static bool set_up(struct options *o, const char *library, const char *dir, struct error *err)
{
	const char *first = preloaded(o);

	return export(o, err, "LD_PRELOAD=%s%s%s", first, *first ? ":" : "", library) &&
	       export(o, err, "HALE_TASKS=%s", o->tasks) &&
	       export(o, err, "HALE_TASKS_REPORTS=%s", dir) &&
	       (!o->due || export(o, err, "HALE_TASKS_DUE=%s", o->due));
}

static void add_report(void *a, const struct json_value *v)
{
	task_account_add(a, v);
}

void cli_tasks_gather(const char *dir, const char *report)
{
	struct task_account a = {0};
	struct json_out j;

	gather_folder(dir, add_report, &a);
	if (!report || strncmp(report, "/dev/", 5) == 0)
		return;
	json_out_init(&j);
	task_account_json(&a, &j);
	gather_put(report, "tasks", &j);
	json_out_fini(&j);
}

/* A program without MPI needs no --no-mpi when it is said to be one of tasks. */
static void guess_mpi(struct options *o)
{
	struct program *p = calloc(1, sizeof(*p));
	struct error err;
	int status;

	if (p && program_examine(o->program[0], o->wdir, p, &status, &err) == HALE_OK && p->elf &&
	    p->mpi == PROGRAM_MPI_NONE)
		o->no_mpi = true;
	free(p);
}

int cli_tasks_run(struct options *o, int (*run)(struct options *))
{
	char libdir[PATH_MAX], library[PATH_MAX + 32], dir[PATH_MAX];
	struct error err;
	int status;

	if (environment_find_libdir(libdir, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	snprintf(library, sizeof(library), "%s/libhale_task.so", libdir);
	if (access(library, R_OK) != 0) {
		log_warn("--tasks: '%s': %s; install hale again", library, strerror(errno));
		return EXIT_USAGE;
	}
	guess_mpi(o);
	if (!gather_make_folder(o, "tasks", dir)) {
		log_warn("--tasks: '%s': %s; set TMPDIR to a folder that can be written to", dir,
			 strerror(errno));
		return EXIT_USAGE;
	}
	if (!set_up(o, library, dir, &err)) {
		log_warn("%s", err.text);
		rmdir(dir);
		return EXIT_USAGE;
	}
	status = run(o);
	if (status == EXIT_SUPERSEDED) /* the newest head gathers */
		return status;
	cli_tasks_gather(dir, o->report);
	gather_leave(o, dir);
	return status;
}
