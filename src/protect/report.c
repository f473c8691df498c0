/* SPDX-License-Identifier: BSD-3-Clause */
/* HALE_PROTECT=report=FILE: what the regions did, as JSON. In the file's name %p is the process's
 * id. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/fmt.h"
#include "base/json.h"
#include "protect/protect.h"

static void path_of(const char *setting, char *path, size_t cap)
{
	const char *id = strstr(setting, "%p");

	if (id)
		fmt_print(path, cap, "%.*s%d%s", (int)(id - setting), setting, (int)getpid(),
			  id + 2);
	else
		fmt_print(path, cap, "%s", setting);
}

static void regions_to(struct json_out *j)
{
	json_open_array(j, "regions");
	for (const struct hale_region *r = protect_regions; r; r = r->next) {
		json_open_object(j, NULL);
		json_string(j, "name", r->name);
		json_string(j, "file", r->file);
		json_int(j, "line", r->line);
		json_uint(j, "runs", r->runs);
		json_uint(j, "checks", r->checks);
		json_uint(j, "detected", r->detected);
		json_uint(j, "corrected", r->corrected);
		json_uint(j, "recomputed", r->recomputed);
		json_uint(j, "unrecoverable", r->unrecoverable);
		json_double(j, "lvf", r->lvf);
		json_close_object(j);
	}
	json_close_array(j);
}

static void variables_to(struct json_out *j)
{
	json_open_array(j, "variables");
	for (const struct protect_figure *f = protect_figures; f; f = f->next) {
		json_open_object(j, NULL);
		json_string(j, "name", f->name);
		json_uint(j, "bytes", f->bytes);
		json_uint(j, "notes", f->notes);
		json_uint(j, "checks", f->checks);
		json_uint(j, "detected", f->detected);
		json_uint(j, "corrected", f->corrected);
		json_uint(j, "recomputed", f->recomputed);
		json_uint(j, "unrecoverable", f->unrecoverable);
		json_double(j, "lvf", f->lvf);
		json_close_object(j);
	}
	json_close_array(j);
}

void hale_protect_report(void)
{
	const char *setting = protect_setting("report=");
	char path[1024];
	struct json_out j;
	FILE *f;

	inject_stop();
	if (!setting)
		return;
	json_out_init(&j);
	json_open_object(&j, NULL);
	pthread_mutex_lock(&protect_lock);
	regions_to(&j);
	variables_to(&j);
	inject_report(&j);
	pthread_mutex_unlock(&protect_lock);
	json_close_object(&j);
	path_of(setting, path, sizeof path);
	f = fopen(path, "w");
	if (!f || fwrite(j.text, 1, j.len, f) != j.len || fputc('\n', f) == EOF || fclose(f) != 0)
		log_warn("can't write the report of protected regions to %s: %s", path,
			 strerror(errno));
	json_out_fini(&j);
}
