/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of a node: what lies in it, and what is removed from it. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/copier/copier.h"

typedef char path_t[PATH_MAX];

/* ---- what is there ---- */

static bool held_add(struct copies_image **all, size_t *count, const struct copies_image *one)
{
	struct copies_image *more = realloc(*all, (*count + 1) * sizeof(**all));

	if (!more)
		return false;
	*all = more;
	more[(*count)++] = *one;
	return true;
}

static void held_in(const char *folder, uint32_t id, struct copies_image **all, size_t *count)
{
	struct copies_image one = {.id = id};
	char name[64];
	path_t path;
	struct dirent *e;
	struct stat st;
	DIR *d;

	snprintf(path, sizeof(path), "%.*s/%u", STORE_FOLDER_MAX, folder, id);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, "rank-", 5) != 0)
			continue;
		one.rank = (uint32_t)strtoul(e->d_name + 5, NULL, 10);
		snprintf(name, sizeof(name), JOB_IMAGE_NAME, one.rank);
		if (strcmp(name, e->d_name) != 0 || fstatat(dirfd(d), e->d_name, &st, 0) != 0)
			continue;
		one.bytes = (uint64_t)st.st_size;
		if (!held_add(all, count, &one))
			break;
	}
	if (d)
		closedir(d);
}

struct copies_image *copier_held(const char *folder, size_t *count)
{
	struct copies_image *all = NULL;
	uint32_t *ids;
	size_t n = store_list(folder, &ids);

	*count = 0;
	for (size_t i = 0; i < n; i++)
		held_in(folder, ids[i], &all, count);
	free(ids);
	return all;
}

/* ---- what is left ---- */

static void sweep_one(const char *folder, uint32_t id)
{
	path_t path;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%.*s/%u", STORE_FOLDER_MAX, folder, id);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		const char *end = strstr(e->d_name, ".img.");

		if (end && end[5])
			unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

void copier_sweep(const char *folder)
{
	uint32_t *ids;
	size_t n = store_list(folder, &ids);

	for (size_t i = 0; i < n; i++)
		sweep_one(folder, ids[i]);
	free(ids);
}

/* ---- what is kept ---- */

static bool is_kept(const uint32_t *ids, size_t count, uint32_t id)
{
	uint32_t newest = 0;

	for (size_t i = 0; i < count; i++) {
		if (ids[i] == id)
			return true;
		if (ids[i] > newest)
			newest = ids[i];
	}
	return id > newest;
}

void copier_keep(const struct copier *c, const uint32_t *ids, size_t count)
{
	struct store s = {.sync = false};
	path_t path;
	uint32_t *there;
	size_t n = store_list(c->folder, &there);

	snprintf(s.job_folder, sizeof(s.job_folder), "%s", c->folder);
	for (size_t i = 0; i < n; i++)
		if (!is_kept(ids, count, there[i])) {
			store_remove(&s, there[i]);
		} else if (c->sync) { /* the images are synced by who wrote them, their names here
				       */
			copier_image_path(path, c->folder, there[i], 0);
			copier_sync_folder(path, NULL);
		}
	free(there);
	store_sweep(c->folder);
}
