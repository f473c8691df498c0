/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal/revert.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { ALIASES_OPEN = 256 };

/* What a record speaks of. */
struct revert_place {
	const char *path; /* whole */
	const char *name; /* its last part */
	int dir;	  /* the folder it is in; -1: that is not there */
	struct statx st;
	int seen; /* st is of it; 0: there is nothing */
};

void revert_trouble(struct reverting *r, const char *fmt, ...)
{
	va_list ap;

	if (r->troubles++)
		return;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}

static void failed(struct reverting *r, const struct revert_place *p)
{
	revert_trouble(r, "%s can't be set back (%s)", p->path, strerror(errno));
}

void revert_fini(struct reverting *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->aliases[i].fd >= 0)
			close(r->aliases[i].fd);
	free(r->aliases);
	free(r->makings);
	r->makings = NULL;
	r->aliases = NULL;
}

/* ---- places ---- */

/* The path had no symbolic links when it was written down. One that is there now may be another
 * user's, and is not followed. */
static int open_folder(const char *path, size_t len)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};
	char folder[JOURNAL_PATH];

	if (len >= sizeof(folder))
		return -1;
	memcpy(folder, path, len);
	folder[len] = '\0';
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, len ? folder : "/", &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* filtered, or before Linux 5.6 */
		fd = open(len ? folder : "/", (int)how.flags | O_NOFOLLOW);
	return fd;
}

static void place_look(struct revert_place *p)
{
	p->seen = p->dir >= 0 && statx(p->dir, p->name, AT_SYMLINK_NOFOLLOW,
				       STATX_BASIC_STATS | STATX_BTIME, &p->st) == 0;
}

static struct revert_place place_open(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct revert_place p = {.path = path, .name = slash + 1};

	p.dir = open_folder(path, (size_t)(slash - path));
	place_look(&p);
	return p;
}

static void place_close(struct revert_place *p)
{
	if (p->dir >= 0)
		close(p->dir);
}

static uint64_t born_ns(const struct statx *s)
{
	return s->stx_mask & STATX_BTIME
		   ? (uint64_t)s->stx_btime.tv_sec * 1000000000 + s->stx_btime.tv_nsec
		   : 0;
}

/* It is the record's file, or the one that came back for it. Devices have other numbers on other
 * hosts. */
static int is_the_file(const struct reverting *r, const struct revert_place *p,
		       const struct journal_record *c)
{
	uint64_t born;

	if (!p->seen)
		return 0;
	born = born_ns(&p->st);
	if (p->st.stx_ino == c->inode && (!born || !c->born_ns || born == c->born_ns))
		return 1;
	for (size_t i = 0; i < r->count; i++)
		if (r->aliases[i].old_inode == c->inode &&
		    r->aliases[i].old_born_ns == c->born_ns && r->aliases[i].inode == p->st.stx_ino)
			return 1;
	return 0;
}

/* The file that came back for that of the record. */
static const struct revert_alias *alias_of(const struct reverting *r,
					   const struct journal_record *c)
{
	for (size_t i = r->count; i-- > 0;)
		if (r->aliases[i].old_inode == c->inode && r->aliases[i].old_born_ns == c->born_ns)
			return &r->aliases[i];
	return NULL;
}

/* What is at p has come back for the record's file; it may even have got the same number. */
static void alias_add(struct reverting *r, const struct journal_record *c,
		      const struct revert_place *p)
{
	if (r->count == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;
		struct revert_alias *more = realloc(r->aliases, cap * sizeof(*more));
		if (!more)
			return;
		r->aliases = more;
		r->cap = cap;
	}
	bool kept = r->count < ALIASES_OPEN;
	r->aliases[r->count++] = (struct revert_alias){
	    c->inode, c->born_ns, p->st.stx_ino,
	    kept ? openat(p->dir, p->name, O_PATH | O_CLOEXEC | O_NOFOLLOW) : -1};
}

/* It is there now, made by this undoing or by one before it that was cut short. */
static void came_back(struct reverting *r, const struct revert_place *p,
		      const struct journal_record *c)
{
	if (p->seen && !is_the_file(r, p, c))
		alias_add(r, c, p);
}

/* Since the checkpoint: so it does not matter what was in it. The process that had made it wrote
 * nothing down when it cut it, or removed it; others did, which did not know. Both times are of the
 * kernel's clock for files. */
static int was_made_since(const struct reverting *r, const struct journal_record *c)
{
	return r->since_ns && (c->born_ns > r->since_ns || r->made);
}

/* ---- content ---- */

static int copy(int from, int to, uint64_t size)
{
	static char buf[1 << 16];
	loff_t in = 0, out = 0;

	if (size == 0 || ioctl(to, FICLONE, from) == 0)
		return 1;
	while ((uint64_t)in < size) {
		ssize_t n = copy_file_range(from, &in, to, &out, size - (uint64_t)in, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
	}
	while ((uint64_t)in < size) {
		ssize_t n = pread(from, buf, sizeof(buf), in);
		if (n <= 0 || pwrite(to, buf, (size_t)n, in) != n)
			return 0;
		in += n;
	}
	return 1;
}

static void time_set(int fd, const struct journal_record *c)
{
	struct timespec t[2] = {
	    {.tv_nsec = UTIME_OMIT},
	    {.tv_sec = c->modified_ns / 1000000000, .tv_nsec = c->modified_ns % 1000000000}};

	if (c->modified_ns >= 0)
		futimens(fd, t);
}

static void save_name(char name[96], const struct journal_record *c)
{
	snprintf(name, 96, JOURNAL_SAVE_NAME, (unsigned long)c->device, (unsigned long)c->inode,
		 (unsigned long)c->born_ns);
}

/* All that was saved, into the file behind fd. Another process may have saved it for an earlier
 * record, which follows. */
static int content_write(int fd, int saved)
{
	struct stat st;

	return fstat(saved, &st) == 0 && copy(saved, fd, (uint64_t)st.st_size) &&
	       ftruncate(fd, st.st_size) == 0;
}

/* The file has come back under another name: this is one more of it. */
static int link_again(struct revert_place *p, const struct revert_alias *a)
{
	char path[64];

	if (!a || a->fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", a->fd);
	if (linkat(AT_FDCWD, path, p->dir, p->name, AT_SYMLINK_FOLLOW) != 0)
		return 0;
	place_look(p);
	return 1;
}

/* A new file with what was saved. */
static void make_again(struct reverting *r, struct revert_place *p, const struct journal_record *c,
		       int saved)
{
	if (p->seen && unlinkat(p->dir, p->name, 0) != 0) {
		failed(r, p);
		return;
	}
	if (link_again(p, alias_of(r, c)))
		return;
	int fd = openat(p->dir, p->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || !content_write(fd, saved) || fchmod(fd, c->mode & 07777) != 0)
		failed(r, p);
	if (fd >= 0) {
		time_set(fd, c);
		close(fd);
	}
	place_look(p);
	if (p->seen)
		alias_add(r, c, p);
}

/* Is there a record of this file's content, and so of all that it had? */
static int is_saved(const struct journal_record *c, int folder)
{
	char name[96];

	save_name(name, c);
	return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void revert_size(struct reverting *r, struct revert_place *p, const struct journal_record *c,
			int folder)
{
	if (!is_the_file(r, p, c)) {
		revert_trouble(r, "%s is another file than the one that was written to", p->path);
		return;
	}
	if (p->st.stx_size < c->size && is_saved(c, folder))
		return;
	if (p->st.stx_size < c->size) {
		revert_trouble(r, "%s has lost some of what it had", p->path);
		return;
	}
	int fd = openat(p->dir, p->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || ftruncate(fd, (off_t)c->size) != 0)
		failed(r, p);
	if (fd >= 0) {
		time_set(fd, c);
		close(fd);
	}
}

static void revert_content(struct reverting *r, struct revert_place *p,
			   const struct journal_record *c, int saved)
{
	if (!is_the_file(r, p, c)) {
		make_again(r, p, c, saved);
		return;
	}
	int fd = openat(p->dir, p->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || !content_write(fd, saved))
		failed(r, p);
	if (fd >= 0) {
		time_set(fd, c);
		close(fd);
	}
}

/* Bytes that MPI-IO has overwritten. */
static void revert_range(struct reverting *r, struct revert_place *p,
			 const struct journal_record *c, const char *text, int folder)
{
	unsigned long offset, length, at, sum;
	char name[32];

	if (!is_the_file(r, p, c)) {
		revert_trouble(r, "%s is another file than the one that was written to", p->path);
		return;
	}
	if (sscanf(text, "%lx %lx %lx %lx %31s", &offset, &length, &at, &sum, name) != 5 ||
	    strchr(name, '/') || length > JOURNAL_RANGE_MAX) {
		revert_trouble(r, "a record of %s can't be read", p->path);
		return;
	}
	char *bytes = malloc(length + 1);
	int saved = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (!bytes || saved < 0 || pread(saved, bytes, length, (off_t)at) != (ssize_t)length ||
	    XXH3_64bits(bytes, length) != sum) {
		revert_trouble(r, "what %s had is not in the journal any more", p->path);
	} else {
		int fd = openat(p->dir, p->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0 || pwrite(fd, bytes, length, (off_t)offset) != (ssize_t)length)
			failed(r, p);
		if (fd >= 0)
			close(fd);
	}
	if (saved >= 0)
		close(saved);
	free(bytes);
}

static int zero(int fd, off_t at, off_t end)
{
	static const char zeros[1 << 16];

	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, end - at) == 0)
		return 1;
	while (at < end) { /* no holes on this file system */
		size_t n = end - at < (off_t)sizeof(zeros) ? (size_t)(end - at) : sizeof(zeros);
		if (pwrite(fd, zeros, n, at) != (ssize_t)n)
			return 0;
		at += (off_t)n;
	}
	return 1;
}

/* What has been written into the hole goes; one that was cut off is there again. */
static void revert_hole(struct reverting *r, struct revert_place *p, const struct journal_record *c,
			const char *text)
{
	unsigned long offset, length;

	if (!is_the_file(r, p, c)) {
		revert_trouble(r, "%s is another file than the one that was written to", p->path);
		return;
	}
	if (sscanf(text, JOURNAL_HOLE_TEXT, &offset, &length) != 2) {
		revert_trouble(r, "a record of %s can't be read", p->path);
		return;
	}
	off_t at = (off_t)offset, end = (off_t)(offset + length);
	struct stat st;
	int fd = openat(p->dir, p->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int good = fd >= 0 && fstat(fd, &st) == 0;
	if (good && st.st_size > at)
		good = zero(fd, at, st.st_size < end ? st.st_size : end);
	if (good && st.st_size < end)
		good = ftruncate(fd, end) == 0;
	if (!good)
		failed(r, p);
	if (fd >= 0)
		close(fd);
}

/* ---- names ---- */

static void revert_named(struct reverting *r, struct revert_place *p,
			 const struct journal_record *c, int folder, int saved)
{
	char name[96 + sizeof(JOURNAL_LINK_SUFFIX)];
	struct stat st;

	if (is_the_file(r, p, c))
		return;
	save_name(name, c);
	/* a copy is copied: a second undoing needs it as it is */
	if (fstat(saved, &st) != 0 || st.st_ino != c->inode) {
		strcat(name, JOURNAL_LINK_SUFFIX);
		if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != c->inode) {
			make_again(r, p, c, saved);
			return;
		}
	}
	if ((p->seen && unlinkat(p->dir, p->name, 0) != 0) ||
	    linkat(folder, name, p->dir, p->name, 0) != 0) {
		if (errno == EXDEV)
			make_again(r, p, c, saved);
		else
			failed(r, p);
	}
}

/* The folder of the record, or the one that came back for it. A process may have seen others at the
 * same path: with a root folder or mounts of its own. */
static int is_in_its_folder(const struct reverting *r, const struct revert_place *p,
			    const struct journal_record *c)
{
	struct revert_place folder = {.dir = p->dir, .name = ""};

	if (!c->inode) /* an older Hale's */
		return 1;
	folder.seen =
	    statx(p->dir, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &folder.st) == 0;
	return is_the_file(r, &folder, c);
}

/* It is older than all records, and has no other name: an undoing that was cut short has moved it
 * back here. */
static int is_back_already(const struct reverting *r, const struct revert_place *p)
{
	uint64_t born = born_ns(&p->st);

	for (size_t i = 0; i < r->count; i++) /* another one has come back in its place */
		if (r->aliases[i].old_inode == p->st.stx_ino && r->aliases[i].old_born_ns == born)
			return 0;
	return born && born < r->begin_ns && (S_ISDIR(p->st.stx_mode) || p->st.stx_nlink == 1);
}

static void revert_absent(struct reverting *r, struct revert_place *p,
			  const struct journal_record *c)
{
	if (p->seen && is_back_already(r, p))
		return;
	if (p->seen && !is_in_its_folder(r, p, c)) {
		revert_trouble(r, "%s is in another folder than the one that was written down",
			       p->path);
		return;
	}
	if (p->seen && revert_is_foreign(r, p->path, &p->st)) {
		revert_trouble(r, "%s has been made by another program meanwhile, and stays",
			       p->path);
		return;
	}
	if (p->seen && unlinkat(p->dir, p->name, S_ISDIR(p->st.stx_mode) ? AT_REMOVEDIR : 0) != 0)
		failed(r, p);
}

static void revert_symlink(struct reverting *r, struct revert_place *p,
			   const struct journal_record *c, const char *target)
{
	char now[JOURNAL_PATH];
	ssize_t n = p->seen ? readlinkat(p->dir, p->name, now, sizeof(now) - 1) : -1;

	if (n >= 0) {
		now[n] = '\0';
	}
	if ((n < 0 || strcmp(now, target) != 0) &&
	    ((p->seen && unlinkat(p->dir, p->name, 0) != 0) ||
	     symlinkat(target, p->dir, p->name) != 0)) {
		failed(r, p);
		return;
	}
	place_look(p);
	came_back(r, p, c);
}

static void revert_folder(struct reverting *r, struct revert_place *p,
			  const struct journal_record *c)
{
	bool there = p->seen && S_ISDIR(p->st.stx_mode);

	if (!there && (mkdirat(p->dir, p->name, 0700) != 0 ||
		       fchmodat(p->dir, p->name, c->mode & 07777, 0) != 0))
		failed(r, p);
	place_look(p);
	came_back(r, p, c);
}

/* What is in a pipe comes back with the processes that have it open. */
static void revert_node(struct reverting *r, struct revert_place *p, const struct journal_record *c)
{
	bool there = p->seen && ((p->st.stx_mode ^ c->mode) & S_IFMT) == 0;

	if (!there && ((p->seen && unlinkat(p->dir, p->name, 0) != 0) ||
		       mknodat(p->dir, p->name, (c->mode & S_IFMT) | 0600, 0) != 0 ||
		       fchmodat(p->dir, p->name, c->mode & 07777, 0) != 0)) {
		failed(r, p);
		return;
	}
	place_look(p);
	came_back(r, p, c);
}

/* What has gone on from other to elsewhere, or is no more, has come back by records after this. */
static void revert_renamed(struct reverting *r, struct revert_place *p,
			   const struct journal_record *c, const char *other)
{
	struct revert_place q = place_open(other);

	if (!is_the_file(r, &q, c)) {
		if (c->born_ns && !is_the_file(r, p, c) && !was_made_since(r, c))
			revert_trouble(r, "%s, which was renamed, is not there any more", p->path);
	} else if (syscall(SYS_renameat2, q.dir, q.name, p->dir, p->name,
			   c->kind == JOURNAL_EXCHANGED ? RENAME_EXCHANGE : 0) != 0) {
		failed(r, p);
	}
	place_close(&q);
}

/* ---- one record ---- */

static void revert_saved(struct reverting *r, struct revert_place *p,
			 const struct journal_record *c, int folder)
{
	char name[96];
	int saved;

	save_name(name, c);
	saved = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (saved < 0 && c->kind == JOURNAL_NAMED && is_the_file(r, p, c))
		return;
	if (saved < 0 && was_made_since(r, c))
		return;
	if (saved < 0) {
		revert_trouble(r, "what %s had is not in the journal any more", p->path);
		return;
	}
	if (c->kind == JOURNAL_NAMED)
		revert_named(r, p, c, folder, saved);
	else
		revert_content(r, p, c, saved);
	close(saved);
}

void revert(struct reverting *r, const struct journal_record *c, int folder)
{
	const char *path = (const char *)(c + 1), *other = path + c->path_len + 1;
	if (c->kind == JOURNAL_MADE) /* revert_made.c */
		return;
	if (c->kind == JOURNAL_IPC) {
		revert_kernel(r, c, path);
		return;
	}
	struct revert_place p = place_open(path);
	if (p.dir < 0) {
		if (c->kind != JOURNAL_ABSENT)
			failed(r, &p);
		return;
	}
	switch (c->kind) {
	case JOURNAL_ABSENT:
		revert_absent(r, &p, c);
		break;
	case JOURNAL_SIZE:
		if (!was_made_since(r, c))
			revert_size(r, &p, c, folder);
		break;
	case JOURNAL_RANGE:
		if (!was_made_since(r, c))
			revert_range(r, &p, c, other, folder);
		break;
	case JOURNAL_HOLE:
		if (!was_made_since(r, c))
			revert_hole(r, &p, c, other);
		break;
	case JOURNAL_CONTENT:
	case JOURNAL_NAMED:
		revert_saved(r, &p, c, folder);
		break;
	case JOURNAL_SYMLINK:
		revert_symlink(r, &p, c, other);
		break;
	case JOURNAL_FOLDER:
		revert_folder(r, &p, c);
		break;
	case JOURNAL_NODE:
		revert_node(r, &p, c);
		break;
	case JOURNAL_RENAMED:
	case JOURNAL_EXCHANGED:
		revert_renamed(r, &p, c, other);
		break;
	default:
		if (!was_made_since(r, c))
			revert_trouble(r, "what %s had could not be saved", p.path);
	}
	place_close(&p);
}
