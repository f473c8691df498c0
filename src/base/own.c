/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"

enum { LINKS_MAX = 40 };

/* ---- paths ---- */

struct walk {
	char *real;	     /* so far; "" stands for the root */
	char rest[PATH_MAX]; /* what is still to be walked */
	int links;
	struct error *err;
};

static hale_status_t too_long(struct error *err)
{
	return error_set(err, HALE_ERR_ARGUMENT, "the path is too long, or has too many links");
}

static hale_status_t follow(struct walk *w, const struct stat *st, size_t before)
{
	char to[PATH_MAX], rest[PATH_MAX];
	ssize_t n;

	if (st->st_uid != geteuid() && st->st_uid != 0)
		return error_set(w->err, HALE_ERR_IMAGE_MISMATCH,
				 "the symbolic link '%s' is of another user (%u), and is not "
				 "followed: name the folder itself",
				 w->real, (unsigned)st->st_uid);
	n = readlink(w->real, to, sizeof(to) - 1);
	if (n < 0)
		return error_sys(w->err, HALE_ERR_IMAGE_MISSING, "the link '%s'", w->real);
	to[n] = '\0';
	if (++w->links > LINKS_MAX ||
	    snprintf(rest, sizeof(rest), "%s/%s", to, w->rest) >= (int)sizeof(rest))
		return too_long(w->err);
	memcpy(w->rest, rest, sizeof(rest));
	w->real[to[0] == '/' ? 0 : before] = '\0';
	return HALE_OK;
}

static hale_status_t step(struct walk *w, const char *name, size_t len)
{
	size_t before = strlen(w->real);
	struct stat st;

	if (len == 0 || (len == 1 && name[0] == '.'))
		return HALE_OK;
	if (len == 2 && memcmp(name, "..", 2) == 0) {
		char *slash = strrchr(w->real, '/');

		if (slash)
			*slash = '\0';
		return HALE_OK;
	}
	if (before + 1 + len >= PATH_MAX)
		return too_long(w->err);
	w->real[before] = '/';
	memcpy(w->real + before + 1, name, len);
	w->real[before + 1 + len] = '\0';
	if (lstat(w->real, &st) != 0)
		return error_sys(w->err, HALE_ERR_IMAGE_MISSING, "'%s'", w->real);
	return S_ISLNK(st.st_mode) ? follow(w, &st, before) : HALE_OK;
}

hale_status_t own_path(const char *path, char real[PATH_MAX], struct error *err)
{
	struct walk w = {.real = real, .err = err};
	hale_status_t status = HALE_OK;

	real[0] = '\0';
	if (path[0] != '/' && !getcwd(real, PATH_MAX))
		return error_sys(err, HALE_ERR_SYSTEM, "the working folder");
	if (snprintf(w.rest, sizeof(w.rest), "%s", path) >= (int)sizeof(w.rest))
		return too_long(err);
	if (strcmp(real, "/") == 0)
		real[0] = '\0';
	while (status == HALE_OK && w.rest[0]) {
		char name[PATH_MAX];
		size_t len = strcspn(w.rest, "/");

		memcpy(name, w.rest, len);
		memmove(w.rest, w.rest + len + (w.rest[len] == '/'),
			strlen(w.rest + len) + (w.rest[len] != '/'));
		status = step(&w, name, len);
	}
	if (status == HALE_OK && !real[0])
		memcpy(real, "/", 2);
	return status;
}

/* ---- files ---- */

static hale_status_t judge(const struct stat *st, const char *path, struct error *err)
{
	const struct passwd *owner;

	if (st->st_uid != geteuid()) {
		owner = getpwuid(st->st_uid);
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "'%.200s' belongs to user %s (%u), and not to you: nothing of it "
				 "is run. Whoever it belongs to can restart it; to take it over, "
				 "make a copy that is yours (docs/checkpoints.md, 'Whose it is')",
				 path, owner ? owner->pw_name : "?", (unsigned)st->st_uid);
	}
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "others may write '%.200s': nothing of it is run. If nobody has, "
				 "`chmod go-w` it",
				 path);
	return HALE_OK;
}

hale_status_t own_check(int fd, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return error_sys(err, HALE_ERR_IMAGE_MISSING, "'%s'", path);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return error_set(err, HALE_ERR_IMAGE_MISMATCH, "'%s' is no file", path);
	return judge(&st, path, err);
}

static hale_status_t cannot_open(const char *path, struct error *err)
{
	if (errno == ELOOP || errno == ENOTDIR)
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "'%s' is not followed: it is a symbolic link, or no folder", path);
	return error_sys(err, HALE_ERR_IMAGE_MISSING, "'%s'", path);
}

hale_status_t own_folder(const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	hale_status_t status;

	if (fd < 0)
		return cannot_open(path, err);
	status = own_check(fd, path, err);
	close(fd);
	return status;
}

int own_folder_open(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && own_check(fd, name, NULL) != HALE_OK) {
		close(fd);
		return -1;
	}
	return fd;
}

int own_open(const char *path, int flags, struct error *err)
{
	/* a FIFO in its place is not waited for */
	int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0) {
		cannot_open(path, err);
		return -1;
	}
	if (own_check(fd, path, err) == HALE_OK)
		return fd;
	close(fd);
	return -1;
}
