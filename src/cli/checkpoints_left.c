/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/checkpoints.h"
#include "control/control.h"
#include "journal/undo.h"
#include "store/store.h"

/* ---- looking ---- */

static uint64_t bytes_at(int at, const char *name, int depth)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	uint64_t bytes = 0;
	struct dirent *e;
	struct stat st;

	if (!d && fd >= 0)
		close(fd);
	while (d && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		bytes += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth > 0)
			bytes += bytes_at(dirfd(d), e->d_name, depth - 1);
	}
	if (d)
		closedir(d);
	return bytes;
}

uint64_t left_bytes(const char *folder)
{
	return bytes_at(AT_FDCWD, folder, 4);
}

/* One line of the record: who began it, and whether it has ended since. */
static void take_line(struct left *l, const char *line, size_t len, bool *ended)
{
	struct json_value *v = json_parse(line, len);
	const char *event = json_text(json_get(v, "event"), "");

	if (strcmp(event, "ended") == 0) {
		*ended = true;
		l->exit_status = (int)json_number_int(json_get(v, "exit"), -1);
	} else if (strcmp(event, "launched") == 0 || strcmp(event, "restarted") == 0) {
		*ended = false;
		snprintf(l->node, sizeof(l->node), "%s", json_text(json_get(v, "node"), ""));
	}
	json_free(v);
}

static void read_record(struct left *l, bool *ended)
{
	char path[PATH_MAX + 16], *line = NULL;
	struct error err;
	size_t cap = 0;
	ssize_t len;
	int fd;
	FILE *f;

	snprintf(path, sizeof(path), "%s/record.jsonl", l->folder);
	fd = own_open(path, O_RDONLY, &err);
	f = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!f && fd >= 0)
		close(fd);
	while (f && (len = getline(&line, &cap, f)) > 0)
		take_line(l, line, (size_t)len, ended);
	free(line);
	if (f)
		fclose(f);
}

static left_state_t judge(const struct left *l, bool ended)
{
	char here[64] = "";
	int fd = control_connect(l->job);

	if (fd >= 0) {
		close(fd);
		return LEFT_RUNNING;
	}
	if (ended)
		return LEFT_ENDED;
	gethostname(here, sizeof(here) - 1);
	return strcmp(here, l->node) == 0 ? LEFT_KILLED : LEFT_UNKNOWN;
}

/* What else than a job's folder has a record, or checkpoints with manifests? */
static bool is_of_a_job(const struct left *l)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/record.jsonl", l->folder);
	if (access(path, F_OK) == 0)
		return true;
	for (size_t i = 0; i < l->count; i++) {
		store_path(l->folder, l->ids[i], path);
		strncat(path, "/manifest.json", sizeof(path) - strlen(path) - 1);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

static double newest(const struct left *l)
{
	char path[PATH_MAX];
	struct stat st;

	if (l->count > 0)
		store_path(l->folder, l->ids[l->count - 1], path);
	else
		snprintf(path, sizeof(path), "%s", l->folder);
	return stat(path, &st) == 0 ? (double)st.st_mtim.tv_sec : 0;
}

hale_status_t left_look(const char *folder, struct left *l, struct error *err)
{
	hale_status_t status;
	bool ended = false;

	*l = (struct left){.exit_status = -1};
	status = own_path(folder, l->folder, err);
	if (status == HALE_OK)
		status = own_folder(l->folder, err);
	if (status != HALE_OK)
		return status;
	snprintf(l->job, sizeof(l->job), "%.*s", (int)sizeof(l->job) - 1,
		 strrchr(l->folder, '/') + 1);
	l->count = store_list(l->folder, &l->ids);
	if (!is_of_a_job(l)) {
		left_fini(l);
		return error_set(err, HALE_ERR_IMAGE_MISSING,
				 "'%s' is no folder of a job's checkpoints", folder);
	}
	read_record(l, &ended);
	l->state = judge(l, ended);
	l->bytes = left_bytes(l->folder);
	l->newest_at = newest(l);
	return HALE_OK;
}

void left_fini(struct left *l)
{
	free(l->ids);
	l->ids = NULL;
	l->count = 0;
}

/* ---- removing ---- */

/* What a head that another one may follow leaves there: head.N.json, stdin.spool. */
static void remove_heads(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	unsigned epoch;
	int end;

	while (d && (e = readdir(d))) {
		end = 0;
		if (strcmp(e->d_name, "record.jsonl") == 0 ||
		    strcmp(e->d_name, "stdin.spool") == 0 ||
		    (sscanf(e->d_name, "head.%u.json%n", &epoch, &end) == 1 && end > 0))
			unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d)
		closedir(d);
}

static void open_store(const struct left *l, struct store *s)
{
	*s = (struct store){0};
	snprintf(s->job_folder, sizeof(s->job_folder), "%s", l->folder);
}

hale_status_t left_remove(const struct left *l, struct error *err)
{
	char path[PATH_MAX + 16];
	struct store s;

	open_store(l, &s);
	for (size_t i = 0; i < l->count; i++)
		store_remove(&s, l->ids[i]);
	store_finish(s.job_folder);
	for (uint32_t id = 1; l->count > 0 && id <= l->ids[l->count - 1]; id++) {
		snprintf(path, sizeof(path), "%.*s/%u.bad", STORE_FOLDER_MAX, l->folder, id);
		store_remove_folder(path);
	}
	journal_remove(l->folder);
	remove_heads(l->folder);
	if (rmdir(l->folder) == 0)
		return HALE_OK;
	return error_sys(err, HALE_ERR_STORE, "something else is in '%s', and stays", l->folder);
}

hale_status_t left_remove_one(const struct left *l, uint32_t id, struct error *err)
{
	struct store s;
	bool there = false;

	for (size_t i = 0; i < l->count; i++) {
		uint32_t chain[STORE_CHAIN_MAX];
		size_t n = 0;

		there = there || l->ids[i] == id;
		if (l->ids[i] <= id)
			continue;
		store_chain(l->folder, l->ids[i], chain, &n, NULL);
		for (size_t k = 0; k < n; k++)
			if (chain[k] == id)
				return error_set(err, HALE_ERR_STATE,
						 "checkpoint %u is a difference to %u, which so is "
						 "needed; remove %u first, or the whole job",
						 l->ids[i], id, l->ids[i]);
	}
	if (!there)
		return error_set(err, HALE_ERR_IMAGE_MISSING, "'%s' has no checkpoint %u",
				 l->folder, id);
	open_store(l, &s);
	if (!store_remove(&s, id))
		return error_sys(err, HALE_ERR_STORE, "cannot remove checkpoint %u in '%s'", id,
				 l->folder);
	store_sweep(l->folder);
	return HALE_OK;
}
