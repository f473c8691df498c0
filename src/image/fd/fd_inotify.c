// SPDX-License-Identifier: BSD-3-Clause
/* inotify: what it watches, told by fdinfo:
 *
 *   inotify wd:1 ino:9e7e sdev:800013 mask:800afce ignored_mask:0 …
 *
 * The kernel tells the file, not its name. So each name that a watch is added by is noted, by the
 * number of its file (ckpt/kernel_ipc.c stands before libc's function); a watch without a name that
 * still leads to its file is refused.
 *
 * Events that nobody has read can't be looked at without taking them away. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { INFO_MAX = 256 << 10, NAMES = 2048, NAME = 248, GAP_MAX = 1 << 20 };
enum { KEPT = IN_ALL_EVENTS | IN_ONESHOT | IN_EXCL_UNLINK };

/* ---- names ---- */

/* The program's own memory: a child and a restored process know them, too. Untouched until the
 * first watch. */
static struct watch_name {
	uint64_t inode; /* 0: free */
	char path[NAME];
} names[NAMES];
static _Atomic uint32_t newest;

void image_watch_note(const char *path, uint32_t mask)
{
	char link[64], whole[NAME];
	struct stat st = {0};
	long fd = sys(SYS_openat, AT_FDCWD, path,
		      O_PATH | O_CLOEXEC | (mask & IN_DONT_FOLLOW ? O_NOFOLLOW : 0));
	if (fd < 0)
		return;
	fmt_print(link, sizeof(link), "/proc/thread-self/fd/%ld", fd);
	long n = sys(SYS_readlink, link, whole, sizeof(whole));
	bool good = n > 0 && n < (long)sizeof(whole) && !sys(SYS_fstat, fd, &st);
	sys(SYS_close, fd);
	if (!good)
		return;
	whole[n] = 0;
	size_t at = NAMES;
	for (size_t i = 0; i < NAMES && at == NAMES; i++)
		if (names[i].inode == st.st_ino && !strcmp(names[i].path, whole))
			return;
	at = newest++ % NAMES;
	names[at].inode = 0;
	memcpy(names[at].path, whole, (size_t)n + 1);
	names[at].inode = st.st_ino;
}

static bool leads_to(const char *path, uint64_t inode, uint64_t device, struct stat *st)
{
	if (sys(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW) || st->st_ino != inode)
		return false;
	/* as the kernel packs it in fdinfo; some file systems show another one to stat(2) */
	return device == ((uint64_t)major(st->st_dev) << 20 | minor(st->st_dev)) ||
	       major(st->st_dev) == 0;
}

static const char *name_of(uint64_t inode, uint64_t device, struct stat *st)
{
	for (size_t i = 0; i < NAMES; i++)
		if (names[i].inode == inode && leads_to(names[i].path, inode, device, st))
			return names[i].path;
	return NULL;
}

/* ---- capture ---- */

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	return fd_is_anon(p, "inotify") || fd_is_anon(p, "[inotify]");
}

static uint64_t number_behind(const char *at, const char *key, int base)
{
	const char *p = strstr(at, key);
	uint64_t v = 0;
	for (p = p ? p + strlen(key) : "";; p++) {
		int digit = *p >= '0' && *p <= '9'   ? *p - '0'
			    : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
						     : 99;
		if (digit >= base)
			return v;
		v = v * (uint64_t)base + (uint64_t)digit;
	}
}

/* A descriptor of the file, which leads to it where no name does. */
static const char *open_name(const struct fd_table *t, uint64_t inode, char buf[64])
{
	struct fd_dir dir;
	bool found = false;
	if (!fd_dir_open(&dir, t->proc))
		return NULL;
	for (int fd; !found && (fd = fd_dir_next(&dir)) >= 0;) {
		struct stat st = {0};
		found = !fd_table_is_own(t, fd) && !fd_way_has(t, fd) && !sys(SYS_fstat, fd, &st) &&
			st.st_ino == inode && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
		fmt_print(buf, 64, "/proc/self/fd/%d", fd);
	}
	fd_dir_close(&dir);
	return found ? buf : NULL;
}

static hale_status_t add_watch(struct fd_table *t, const struct fd_probe *p, const char *line,
			       struct error *err)
{
	struct stat st = {0};
	char buf[64];
	struct inotify_record w = {.watch = (int32_t)number_behind(line, "wd:", 16),
				   .mask = (uint32_t)number_behind(line, "mask:", 16) & KEPT};
	const char *path =
	    name_of(number_behind(line, "ino:", 16), number_behind(line, "sdev:", 16), &st);
	if (!path) {
		st.st_mode = 0;
		path = open_name(t, number_behind(line, "ino:", 16), buf);
	}
	if (!path)
		return fd_refuse(p, "an inotify watch of a file whose name is not known, or gone",
				 err);
	if (S_ISLNK(st.st_mode))
		w.mask |= IN_DONT_FOLLOW;
	w.path_len = (uint32_t)strlen(path) + 1;
	char *to = bytes_extend(&t->text, sizeof(w) + w.path_len);
	if (!to)
		return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	memcpy(to, &w, sizeof(w));
	memcpy(to + sizeof(w), path, w.path_len);
	return HALE_OK;
}

static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	int unread = 0;
	char path[64], *info = arena_alloc(t->arena, INFO_MAX);
	hale_status_t rc = HALE_OK;
	if (t->other)
		return HALE_OK;
	fmt_print(path, sizeof(path), "%s/fdinfo/%d", t->proc, p->fd);
	if (!info || sys_read_small(path, info, INFO_MAX) < 0)
		return error_set(err, HALE_ERR_SYSTEM, "can't read %s", path);
	if (!sys(SYS_ioctl, p->fd, FIONREAD, &unread) && unread)
		return fd_refuse_for_now(
		    p, "an inotify descriptor with events that nobody has read", err);
	size_t begin = t->text.len;
	for (const char *at = info; rc == HALE_OK && (at = strstr(at, "inotify wd:")) != NULL;
	     at += 8, r->a++)
		rc = add_watch(t, p, at, err);
	r->text_offset = (uint32_t)begin;
	r->text_len = (uint32_t)(t->text.len - begin);
	return rc;
}

/* ---- restore ---- */

static int open_inotify(struct fd_restore *f, size_t index, struct error *err)
{
	long fd = sys(SYS_inotify_init1, IN_CLOEXEC | (f->record[index].open_flags & O_NONBLOCK));
	if (fd < 0)
		error_set(err, HALE_ERR_SYSTEM,
			  "can't make an inotify descriptor again (error %ld)", -fd);
	return (int)fd;
}

/* The watch of the lowest number above that; NULL: there is none. */
static const char *next_watch(const struct fd_restore *f, const struct fd_record *r, int32_t above,
			      struct inotify_record *next)
{
	const char *at = fd_text(f, r), *found = NULL;
	size_t left = r->text_len;
	for (struct inotify_record w; left > sizeof(w);) {
		memcpy(&w, at, sizeof(w));
		if (!w.path_len || w.path_len > left - sizeof(w) || at[sizeof(w) + w.path_len - 1])
			return NULL;
		if (w.watch > above && (!found || w.watch < next->watch)) {
			*next = w;
			found = at + sizeof(w);
		}
		at += sizeof(w) + w.path_len;
		left -= sizeof(w) + w.path_len;
	}
	return found;
}

/* Numbers are given one after the other, also those of watches that went. */
static long watch_again(int fd, const char *path, const struct inotify_record *w)
{
	long got = -EINVAL;
	for (int i = 0; i < GAP_MAX; i++) {
		got = sys(SYS_inotify_add_watch, fd, path, w->mask);
		if (got < 0 || got >= w->watch)
			break;
		sys(SYS_inotify_rm_watch, fd, got);
	}
	return got < 0 ? got : got == w->watch ? 0 : -EEXIST;
}

/* What the kernel tells of watches that went to make room for a number. */
static void read_away(int fd)
{
	char events[4096];
	long flags = sys(SYS_fcntl, fd, F_GETFL);
	sys(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
	while (sys(SYS_read, fd, events, sizeof(events)) > 0)
		;
	sys(SYS_fcntl, fd, F_SETFL, flags);
}

/* When all files are what they were, or there would be events of that. */
static bool connect_inotify(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	struct inotify_record w = {0};
	int32_t above = 0;
	if (r->offset || r->text_offset > f->text_len || f->text_len - r->text_offset < r->text_len)
		return true; /* another process has it, too, and does this */
	for (const char *path; (path = next_watch(f, r, above, &w)); above = w.watch) {
		long rc = watch_again(fd_now(f, index), path, &w);
		if (!rc)
			continue;
		error_set(err, HALE_ERR_STORE, "%s can't be watched again (error %ld)", path, -rc);
		return false;
	}
	read_away(fd_now(f, index));
	return true;
}

const struct fd_ops fd_inotify = {.kind = FD_INOTIFY,
				  .name = "inotify",
				  .match = match,
				  .capture = capture,
				  .open = open_inotify,
				  .connect = connect_inotify};
