/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/base.h"
#include "base/own.h"
#include "store/seal.h"

static hale_status_t join(char out[PATH_MAX], const char *folder, const char *name,
			  struct error *err)
{
	if (snprintf(out, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
		return error_set(err, HALE_ERR_ARGUMENT, "the path '%s/%s' is too long", folder,
				 name);
	return HALE_OK;
}

static hale_status_t sync_folder(const char *folder, struct error *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int failed = fd < 0 || fsync(fd) != 0;

	/* some file systems can't sync a folder and say so; it is not our loss */
	if (failed && (errno == EINVAL || errno == ENOTSUP))
		failed = 0;
	if (failed)
		error_sys(err, HALE_ERR_STORE, "cannot sync the folder '%s'", folder);
	if (fd >= 0)
		close(fd);
	return failed ? HALE_ERR_STORE : HALE_OK;
}

static hale_status_t make_folder(const char *path, struct error *err)
{
	struct stat st;

	if (mkdir(path, 0700) == 0)
		return HALE_OK;
	if (errno != EEXIST)
		return error_sys(err, errno == ENOSPC ? HALE_ERR_STORE_FULL : HALE_ERR_STORE,
				 "cannot make the checkpoint folder '%s'", path);
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return error_set(err, HALE_ERR_STORE, "'%s' is in the way: it is no folder", path);
	return HALE_OK;
}

/* mkdir -p, so that --ckpt-dir can name a place that isn't there yet. */
hale_status_t store_make_folders(const char *path, struct error *err)
{
	char part[PATH_MAX];
	struct stat st;

	if (stat(path, &st) == 0)
		return make_folder(path, err);
	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		hale_status_t status = make_folder(part, err);
		if (status != HALE_OK)
			return status;
		*slash = '/';
	}
	return make_folder(path, err);
}

hale_status_t store_claim(const char *dir, const char *job, struct error *err)
{
	char path[PATH_MAX] = "";
	hale_status_t status = store_make_folders(dir, err);

	if (status == HALE_OK)
		status = join(path, dir, job, err);
	if (status != HALE_OK || mkdir(path, 0700) == 0)
		return status;
	if (errno == EEXIST)
		return error_set(err, HALE_ERR_STORE,
				 "another job of the same name keeps its checkpoints in '%s'; give "
				 "another folder with --ckpt-dir",
				 path);
	return error_sys(err, errno == ENOSPC ? HALE_ERR_STORE_FULL : HALE_ERR_STORE,
			 "cannot make the checkpoint folder '%s'", path);
}

/* The deepest on the way to dir that is there. */
static void nearest(const char *dir, char path[PATH_MAX])
{
	struct stat st;
	char *slash;

	snprintf(path, PATH_MAX, "%s", dir);
	while (stat(path, &st) != 0 && errno == ENOENT) {
		slash = strrchr(path, '/');
		if (!slash)
			snprintf(path, PATH_MAX, ".");
		else if (slash == path)
			path[1] = '\0';
		else
			*slash = '\0';
	}
}

int store_statvfs(const char *dir, struct statvfs *fs)
{
	char path[PATH_MAX];

	nearest(dir, path);
	return statvfs(path, fs);
}

size_t store_there(const char *dir)
{
	char path[PATH_MAX];

	nearest(dir, path);
	return strcmp(path, ".") == 0 && strncmp(dir, ".", 2) != 0 ? 0 : strlen(path);
}

void store_unmake_folders(const char *dir, size_t there)
{
	char path[PATH_MAX];
	size_t len;

	snprintf(path, sizeof(path), "%s", dir);
	while ((len = strlen(path)) > there) {
		char *slash = strrchr(path, '/');

		if (path[len - 1] != '/' && rmdir(path) != 0)
			return;
		if (!slash || slash == path)
			return;
		*slash = '\0';
	}
}

hale_status_t store_probe(const char *dir, const char *job, struct error *err)
{
	char wanted[PATH_MAX], path[PATH_MAX], probe[PATH_MAX + 32];
	struct stat st;

	if (join(wanted, dir, job, err) != HALE_OK)
		return err->code;
	nearest(wanted, path);
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		return error_set(
		    err, HALE_ERR_STORE,
		    "no checkpoints can be kept in '%s': '%s' is no folder; give another "
		    "one with --ckpt-dir",
		    dir, path);
	snprintf(probe, sizeof(probe), "%s/.hale.%d.XXXXXX", path, (int)getpid());
	if (mkdtemp(probe)) {
		rmdir(probe);
		return HALE_OK;
	}
	if (errno == ENOSPC || errno == EDQUOT)
		return HALE_OK;
	return error_set(
	    err, HALE_ERR_STORE,
	    "no checkpoints can be kept in '%s': cannot make a folder in '%s' (%s); give "
	    "another one with --ckpt-dir",
	    dir, path, strerror(errno));
}

static bool parse_id(const char *name, const char *suffix, uint32_t *id)
{
	char *end;
	unsigned long v;

	if (name[0] < '1' || name[0] > '9')
		return false;
	v = strtoul(name, &end, 10);
	*id = (uint32_t)v;
	return v <= UINT32_MAX && strcmp(end, suffix) == 0;
}

static DIR *open_ours(int at, const char *folder)
{
	int fd = own_folder_open(at, folder);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (fd >= 0 && !d)
		close(fd);
	return d;
}

/* A link that somebody has put there in its place leads nowhere. */
static void empty_folder(int at, const char *folder)
{
	DIR *d = open_ours(at, folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

void store_remove_folder(const char *folder)
{
	empty_folder(AT_FDCWD, folder);
	rmdir(folder);
}

static void remove_all(const char *job_folder, const char *suffix)
{
	DIR *d = open_ours(AT_FDCWD, job_folder);
	struct dirent *e;
	uint32_t id;

	while (d && (e = readdir(d))) {
		if (!parse_id(e->d_name, suffix, &id))
			continue;
		empty_folder(dirfd(d), e->d_name);
		unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

void store_sweep(const char *job_folder)
{
	remove_all(job_folder, ".old");
}

hale_status_t store_open(struct store *s, const char *dir, const char *job, bool sync,
			 struct error *err)
{
	char real[PATH_MAX];
	struct error why = {HALE_OK, ""};
	hale_status_t status;

	s->sync = sync;
	status = store_make_folders(dir, err);
	if (status != HALE_OK)
		return status;
	if (own_path(dir, real, &why) != HALE_OK)
		return error_set(err, HALE_ERR_STORE, "cannot use the checkpoint folder '%s': %s",
				 dir, why.text);
	status = join(s->job_folder, real, job, err);
	/* the mailboxes carry names of images, and lists of them have colons between */
	if (status == HALE_OK && (strlen(s->job_folder) >= STORE_FOLDER_MAX || strchr(real, ':')))
		status = error_set(
		    err, HALE_ERR_ARGUMENT,
		    "the checkpoint folder '%s' %s; give another one with --ckpt-dir",
		    s->job_folder,
		    strchr(real, ':') ? "has a colon in its name" : "has too long a name");
	if (status == HALE_OK)
		status = make_folder(s->job_folder, err);
	if (status == HALE_OK && own_folder(s->job_folder, &why) != HALE_OK)
		status = error_set(err, HALE_ERR_STORE, "cannot use the checkpoint folder: %s",
				   why.text);
	if (status == HALE_OK && access(s->job_folder, W_OK | X_OK) != 0)
		status = error_sys(err, HALE_ERR_STORE,
				   "cannot write to the checkpoint folder '%s/%s'", real, job);
	if (status == HALE_OK)
		store_finish(s->job_folder);
	return status;
}

void store_finish(const char *job_folder)
{
	remove_all(job_folder, ".tmp");
	store_sweep(job_folder);
}

/* A checkpoint that is half removed must not look complete, nor one that was given up like one that
 * ranks may still write into. */
static bool set_aside(const struct store *s, const char *path, uint32_t id)
{
	char aside[PATH_MAX];

	snprintf(aside, sizeof(aside), "%.*s/%u.old", STORE_FOLDER_MAX, s->job_folder, id);
	return rename(path, aside) == 0;
}

static void temporary_path(const struct store *s, uint32_t id, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.*s/%u.tmp", STORE_FOLDER_MAX, s->job_folder, id);
}

void store_path(const char *job_folder, uint32_t id, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.*s/%u", STORE_FOLDER_MAX, job_folder, id);
}

hale_status_t store_begin(struct store *s, uint32_t id, char *path, struct error *err)
{
	temporary_path(s, id, path);
	store_remove_folder(path);
	return make_folder(path, err);
}

static hale_status_t write_text(const struct store *s, const char *path, const char *text,
				struct error *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t left = strlen(text);
	bool good = fd >= 0;

	while (good && left > 0) {
		ssize_t n = write(fd, text, left);
		if (n < 0 && errno == EINTR)
			continue;
		good = n > 0;
		text += n;
		left -= (size_t)n;
	}
	good = good && (!s->sync || fsync(fd) == 0);
	if (!good)
		error_sys(err,
			  errno == ENOSPC || errno == EDQUOT ? HALE_ERR_STORE_FULL : HALE_ERR_STORE,
			  "cannot write '%s'", path);
	if (fd >= 0)
		close(fd);
	return good ? HALE_OK : HALE_ERR_STORE;
}

/* The order is what makes it safe: parts are synced by who wrote them, then the manifest, then
 * the folder that names them, then the rename, then the folder that holds the new name. */
static hale_status_t commit(struct store *s, const struct store_manifest *m, const char *text,
			    struct error *err)
{
	char from[PATH_MAX], to[PATH_MAX], path[PATH_MAX];
	hale_status_t status;

	temporary_path(s, m->id, from);
	store_path(s->job_folder, m->id, to);
	status = join(path, from, "manifest.json", err);
	if (status == HALE_OK)
		status = write_text(s, path, text, err);
	if (status == HALE_OK && s->sync)
		status = sync_folder(from, err);
	if (status == HALE_OK && rename(from, to) != 0)
		status = error_sys(err, HALE_ERR_STORE, "cannot give '%s' its final name", from);
	if (status == HALE_OK && s->sync)
		status = sync_folder(s->job_folder, err);
	return status;
}

static char *sealed_text(const struct store_manifest *m, struct error *err)
{
	char *plain = store_manifest_print(m), *text = plain ? store_seal_put(plain, err) : NULL;

	if (!plain)
		error_set(err, HALE_ERR_MEMORY, "out of memory for the manifest");
	free(plain);
	return text;
}

int store_level(const struct store_manifest *m)
{
	int level = 4;

	for (uint32_t r = 0; r < m->nranks; r++) {
		const struct store_part *p = &m->parts[r];

		if (!p->file[0] || !p->local)
			continue;
		if (p->copies < 2)
			return 1;
		level = 2;
	}
	return level;
}

hale_status_t store_rewrite(const char *job_folder, bool sync, const struct store_manifest *m,
			    struct error *err)
{
	struct store s = {.sync = sync};
	char folder[PATH_MAX], from[PATH_MAX], to[PATH_MAX];
	char *text = sealed_text(m, err);
	hale_status_t status = HALE_OK;

	if (!text)
		return HALE_ERR_STORE;
	store_path(job_folder, m->id, folder);
	if (join(from, folder, "manifest.json.new", err) != HALE_OK ||
	    join(to, folder, "manifest.json", err) != HALE_OK)
		status = HALE_ERR_ARGUMENT;
	if (status == HALE_OK) {
		unlink(from);
		status = write_text(&s, from, text, err);
	}
	if (status == HALE_OK && rename(from, to) != 0)
		status = error_sys(err, HALE_ERR_STORE, "cannot write '%s'", to);
	if (status == HALE_OK && sync)
		status = sync_folder(folder, err);
	else if (status != HALE_OK)
		unlink(from);
	free(text);
	return status;
}

hale_status_t store_commit(struct store *s, const struct store_manifest *m, struct error *err)
{
	char *text = sealed_text(m, err);
	hale_status_t status;

	if (!text) {
		store_abandon(s, m->id);
		return HALE_ERR_STORE;
	}
	status = commit(s, m, text, err);
	free(text);
	if (status != HALE_OK)
		store_abandon(s, m->id);
	return status;
}

void store_abandon(struct store *s, uint32_t id)
{
	char path[PATH_MAX];

	temporary_path(s, id, path);
	set_aside(s, path, id);
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

size_t store_list(const char *job_folder, uint32_t **ids)
{
	DIR *d = opendir(job_folder);
	struct dirent *e;
	size_t count = 0, cap = 0;
	uint32_t id;

	*ids = NULL;
	while (d && (e = readdir(d))) {
		if (!parse_id(e->d_name, "", &id))
			continue;
		if (count == cap) {
			cap = cap ? 2 * cap : 16;
			uint32_t *more = realloc(*ids, cap * sizeof(**ids));
			if (!more)
				break;
			*ids = more;
		}
		(*ids)[count++] = id;
	}
	if (d)
		closedir(d);
	if (count > 0)
		qsort(*ids, count, sizeof(**ids), compare_ids);
	return count;
}

hale_status_t store_chain(const char *job_folder, uint32_t id, uint32_t chain[STORE_CHAIN_MAX],
			  size_t *count, struct error *err)
{
	*count = 0;
	while (id != 0) {
		struct store_manifest m;
		char path[PATH_MAX];
		hale_status_t status;

		if (*count == STORE_CHAIN_MAX)
			return error_set(err, HALE_ERR_IMAGE_CORRUPT,
					 "checkpoint %u stands on more than %d others", chain[0],
					 STORE_CHAIN_MAX);
		store_path(job_folder, id, path);
		status = store_manifest_read(path, &m, err);
		if (status != HALE_OK)
			return status;
		chain[(*count)++] = id;
		id = m.base; /* smaller than the id, the parser sees to that: this ends */
		store_manifest_fini(&m);
	}
	return HALE_OK;
}

static bool contains(const uint32_t *ids, size_t count, uint32_t id)
{
	for (size_t i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return false;
}

bool store_remove(const struct store *s, uint32_t id)
{
	char path[PATH_MAX];

	store_path(s->job_folder, id, path);
	return set_aside(s, path, id);
}

void store_reject(struct store *s, uint32_t id)
{
	char path[PATH_MAX], bad[PATH_MAX];

	store_path(s->job_folder, id, path);
	snprintf(bad, sizeof(bad), "%.*s/%u.bad", STORE_FOLDER_MAX, s->job_folder, id);
	rename(path, bad);
}

bool store_prune(struct store *s, size_t keep)
{
	bool any = false;
	uint32_t *ids;
	size_t count = store_list(s->job_folder, &ids), needed_count = 0;
	uint32_t *needed = calloc((keep + 1) * STORE_CHAIN_MAX, sizeof(*needed));

	for (size_t i = 0; needed && i < count; i++) {
		uint32_t chain[STORE_CHAIN_MAX];
		size_t n;

		if (i + keep < count)
			continue;
		/* whatever could be read of a chain is kept */
		store_chain(s->job_folder, ids[i], chain, &n, NULL);
		memcpy(needed + needed_count, chain, n * sizeof(*chain));
		needed_count += n;
	}
	for (size_t i = 0; needed && i + keep < count; i++)
		if (!contains(needed, needed_count, ids[i]))
			any |= store_remove(s, ids[i]);
	free(needed);
	free(ids);
	return any;
}
