/* SPDX-License-Identifier: BSD-3-Clause */
/* What protection found and cost: one line at the end, and a report as text, JSON or picture. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "node/ocl_account.h"
#include "ocl/epoch/epoch.h"
#include "ocl/ocl.h"

static struct account account(void)
{
	const struct ocl_report *r = &ocl.report;
	struct account a = {
	    .processes = 1,
	    .pid = ocl.pid,
	    .count = {r->syncs, r->epochs, r->commands, r->checks, r->checkpoints, r->errors,
		      r->recoveries, r->moves},
	    .bytes = {r->logged, r->saved, r->skipped, r->consolidated, r->restored},
	    .share = {r->log, r->check, r->checkpoint, r->consolidate, r->restore, r->replay},
	    .move = r->move,
	    .wall = clock_seconds() - r->started,
	};

	snprintf(a.device, sizeof(a.device), "%s", r->device);
	if (r->moves)
		snprintf(a.moved_to, sizeof(a.moved_to), "%s", r->moved_to);
	return a;
}

void ocl_report_init(void)
{
	ocl.report.started = clock_seconds();
}

static void say_line(const struct account *a)
{
	const struct ocl_report *r = &ocl.report;
	char moved[64] = "";

	if (r->moves)
		snprintf(moved, sizeof(moved), " (moved to another device in %.1f s)", r->move);
	log_warn("opencl: %lu errors in device memory, %lu recovered%s; %lu epochs, %lu "
		 "checkpoints; overhead %.2f %% of %.1f s",
		 (unsigned long)r->errors, (unsigned long)r->recoveries, moved,
		 (unsigned long)r->epochs, (unsigned long)r->checkpoints, account_overhead(a),
		 a->wall);
}

void ocl_report_end(void)
{
	const char *path = ocl.set.report, *dir = secure_getenv("HALE_OPENCL_REPORTS");
	struct account a;
	char name[PATH_MAX];
	const char *why;

	if (ocl.passive || ocl.pid != (int)getpid() || ocl.report.commands == 0)
		return;
	a = account();
	why = *path ? account_write(&a, path) : NULL;
	if (why)
		log_warn("opencl: the report '%s' could not be written: %s", path, why);
	if (dir && snprintf(name, sizeof(name), "%s/%d.json", dir, ocl.pid) < PATH_MAX)
		account_write(&a, name);
	say_line(&a);
}
