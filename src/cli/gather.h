/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of a job's processes on what the head doesn't know. Each process leaves a JSON object as
 * a file in a folder. `hale run` adds them up and puts the sum into the job's report. */
#ifndef HALE_CLI_GATHER_H
#define HALE_CLI_GATHER_H

#include <limits.h>
#include <stdbool.h>
#include "base/json.h"
#include "launch/options.h"

/* Over hosts the folder must be one that all of them see, as that of checkpoints. */
bool gather_over_hosts(const struct options *o);
/* Where processes leave their reports; its path into dir, also when it can't be made. */
bool gather_make_folder(const struct options *o, const char *name, char dir[PATH_MAX]);
/* Hands each report to add(arg, report), then removes it, and the folder. */
void gather_folder(const char *dir, void (*add)(void *arg, const struct json_value *report),
		   void *arg);
/* Afterwards: dir becomes the folder above, which is removed, if it was made for this. */
void gather_leave(const struct options *o, char *dir);
/* value, one JSON value, becomes the last member of the object in the file report. */
void gather_put(const char *report, const char *key, const struct json_out *value);

#endif
