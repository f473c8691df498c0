/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/gather.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"

static char *read_all(const char *path, size_t *len)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t cap = 0;
	ssize_t n;

	*len = 0;
	if (!f)
		return NULL;
	n = getdelim(&text, &cap, '\0', f);
	fclose(f);
	if (n < 0) {
		free(text);
		return NULL;
	}
	*len = (size_t)n;
	return text;
}

bool gather_over_hosts(const struct options *o)
{
	return o->hosts || o->host_list || getenv("SLURM_JOB_NODELIST");
}

bool gather_make_folder(const struct options *o, const char *name, char dir[PATH_MAX])
{
	const char *tmp = getenv("TMPDIR");
	char *shared = NULL;
	bool made = false;

	if (gather_over_hosts(o)) {
		mkdir(o->ckpt_dir, 0700);
		shared = realpath(o->ckpt_dir, NULL);
	}
	if (shared)
		made = snprintf(dir, PATH_MAX, "%s/.%s.XXXXXX", shared, name) < PATH_MAX &&
		       mkdtemp(dir);
	free(shared);
	if (made)
		return true;
	snprintf(dir, PATH_MAX, "%s/hale-%s.XXXXXX", tmp && *tmp ? tmp : "/tmp", name);
	return mkdtemp(dir);
}

void gather_folder(const char *dir, void (*add)(void *arg, const struct json_value *report),
		   void *arg)
{
	DIR *d = opendir(dir);
	char path[PATH_MAX];

	for (struct dirent *e; d && (e = readdir(d));) {
		struct json_value *v;
		size_t len;
		char *text;

		if (e->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= PATH_MAX)
			continue;
		text = read_all(path, &len);
		v = text ? json_parse(text, len) : NULL;
		if (v)
			add(arg, v);
		json_free(v);
		free(text);
		unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

void gather_leave(const struct options *o, char *dir)
{
	*strrchr(dir, '/') = '\0';
	if (gather_over_hosts(o))
		rmdir(dir); /* if nothing else is in it */
}

void gather_put(const char *report, const char *key, const struct json_out *value)
{
	char temporary[PATH_MAX];
	size_t len;
	char *text = read_all(report, &len);
	char *end = text ? strrchr(text, '}') : NULL;
	FILE *f;

	snprintf(temporary, sizeof(temporary), "%s.%d.tmp", report, (int)getpid());
	f = end && value->text ? fopen(temporary, "we") : NULL;
	if (f) {
		bool good =
		    fprintf(f, "%.*s,\"%s\":%s}\n", (int)(end - text), text, key, value->text) > 0;
		if (fclose(f) != 0 || !good || rename(temporary, report) != 0) {
			log_warn("the report '%s' lacks its \"%s\": %s", report, key,
				 strerror(errno));
			unlink(temporary);
		}
	}
	free(text);
}
