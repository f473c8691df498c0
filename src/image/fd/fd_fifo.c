// SPDX-License-Identifier: BSD-3-Clause
/* Named pipes, also those whose name is gone, and what is in them.
 *
 * One that a process outside has open can't be captured: what that sends or takes can't be undone.
 * It is looked for from outside, before anything stops.
 *
 * One that several ranks have open, whose images are of the same moment, is in all of these images;
 * what is in it is in that of the rank with the smallest id. Each rank opens it by its name again,
 * and none runs on before all have.
 *
 * Whether a reader is told that all writers have left depends on what it has seen: one that was
 * opened before any writer came is not. So where the image has no writer, there is none either when
 * a reader is opened again. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"
#include "image/tree/tree.h"

/* Bits of fd_record.b: it has no name; its reader has been told that no writer is left; its bytes
 * are in the image of another rank. */
enum { NAMELESS = 1, LEFT = 2, ELSEWHERE = 4 };
enum { TRIES = 250, REOPENED = O_ACCMODE | O_NONBLOCK | O_DIRECT | O_APPEND | O_NOATIME };
#define PAUSE_NS 20000000

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	return S_ISFIFO(p->st.st_mode) && p->link[0] == '/';
}

static bool has_it(int pid, const struct stat *of, bool opened)
{
	char path[64];
	struct fd_dir dir;
	bool found = false;
	fmt_print(path, sizeof(path), "/proc/%d", pid);
	if (!fd_dir_open(&dir, path))
		return false;
	for (int fd; !found && (fd = fd_dir_next(&dir)) >= 0;) {
		struct stat st = {0};
		fmt_print(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		found = !sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) && st.st_ino == of->st_ino &&
			st.st_dev == of->st_dev;
		/* the link's mode says what it was opened for: of a mere name (O_PATH) nothing */
		if (found && opened)
			found = !sys(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) &&
				st.st_mode & (S_IRUSR | S_IWUSR);
	}
	fd_dir_close(&dir);
	return found;
}

static bool is_beside(const struct fd_table *t, int pid)
{
	for (size_t i = 0; i < t->beside_count; i++)
		if (t->beside[i] == pid)
			return true;
	return false;
}

/* Has another rank it open, with an id below this one? */
static bool beside_has(const struct fd_table *t, const struct fd_probe *p, int below)
{
	for (size_t i = 0; i < t->beside_count; i++)
		if (t->beside[i] < below && !fd_tree_holds(t, t->beside[i]) &&
		    has_it(t->beside[i], &p->st, true))
			return true;
	return false;
}

static int find_stranger(const struct fd_table *t, const struct fd_probe *p, bool ranks_too,
			 struct tree_process *stranger)
{
	struct fd_dir dir = {
	    .dir = (int)sys(SYS_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	int found = 0;
	if (dir.dir < 0)
		return 0;
	for (int pid; !found && (pid = fd_dir_next(&dir)) >= 0;)
		if (pid > 0 && !fd_tree_holds(t, pid) && (ranks_too || !is_beside(t, pid)) &&
		    has_it(pid, &p->st, false) && tree_look(pid, stranger))
			found = pid;
	fd_dir_close(&dir);
	return found;
}

int fd_find_stranger(const struct fd_table *t, const struct fd_probe *p,
		     struct tree_process *stranger)
{
	return find_stranger(t, p, true, stranger);
}

int fd_find_outsider(const struct fd_table *t, const struct fd_probe *p,
		     struct tree_process *stranger)
{
	return find_stranger(t, p, false, stranger);
}

/* From outside, before anything stops. A pipe without a name can't be met by ranks. */
static hale_status_t look_from_outside(const struct fd_table *t, const struct fd_probe *p,
				       struct error *err)
{
	struct tree_process stranger;
	if (find_stranger(t, p, p->deleted, &stranger))
		return error_set(
		    err, HALE_ERR_UNSUPPORTED,
		    "descriptor %d (%s) is a named pipe that process %d (%s) has open, "
		    "too, which is not captured with it; close it before the checkpoint",
		    p->fd, p->link, (int)stranger.pid, stranger.name);
	if (!p->deleted && t->shared && beside_has(t, p, INT32_MAX))
		*t->shared = true;
	return HALE_OK;
}

static bool is_same(const struct fd_record *a, const struct fd_record *b)
{
	return a->kind == FD_FIFO && b->kind == FD_FIFO && a->inode == b->inode &&
	       a->device == b->device;
}

static bool is_saved(const struct fd_table *t, const struct fd_record *r)
{
	for (size_t i = 0; i < t->records.count; i++) {
		const struct fd_record *o = list_at(&t->records, i);
		if (is_same(o, r) && o->has_content)
			return true;
	}
	return false;
}

/* By the descriptor itself where that reads; else by another one, for that moment. */
static hale_status_t save_content(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
				  struct error *err)
{
	int len = 0;
	char path[64];
	long fd = p->fd;
	if (sys(SYS_ioctl, p->fd, FIONREAD, &len) || len <= 0 || is_saved(t, r))
		return HALE_OK;
	if ((r->open_flags & O_ACCMODE) == O_WRONLY) {
		fmt_print(path, sizeof(path), "/proc/self/fd/%d", p->fd);
		fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return fd_refuse(p, "a named pipe that holds bytes and may not be read",
					 err);
	}
	r->has_content = 1;
	r->size = (uint64_t)len;
	hale_status_t rc = fd_pipe_save(t, p, (int)fd, (size_t)len, (int)r->a, r, err);
	if (fd != p->fd)
		sys(SYS_close, fd);
	return rc;
}

/* a: its capacity. */
static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	struct pollfd look = {.fd = p->fd, .events = POLLIN};
	const struct timespec now = {0, 0};
	if (!fd_add_text(t, r, p->link, strlen(p->link) + 1))
		return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	if (p->deleted && p->st.st_nlink)
		return fd_refuse(
		    p, "a named pipe that has lost the name it was opened by, and has others", err);
	if (p->deleted)
		r->b |= NAMELESS;
	if (r->open_flags & O_PATH)
		return p->deleted
			   ? fd_refuse(p, "a name (O_PATH) of a named pipe that is gone", err)
			   : HALE_OK;
	if (t->other)
		return look_from_outside(t, p, err);
	long capacity = sys(SYS_fcntl, p->fd, F_GETPIPE_SZ);
	r->a = capacity > 0 ? (uint64_t)capacity : 0;
	if ((r->open_flags & O_ACCMODE) == O_RDONLY &&
	    sys(SYS_ppoll, &look, 1, &now, NULL, 0) > 0 && look.revents & POLLHUP)
		r->b |= LEFT;
	if (!p->deleted && t->shared && beside_has(t, p, INT32_MAX))
		*t->shared = true;
	if (!p->deleted && beside_has(t, p, (int)sys(SYS_getpid)))
		r->b |= ELSEWHERE;
	return r->b & ELSEWHERE ? HALE_OK : save_content(t, p, r, err);
}

/* ---- restore ---- */

bool fd_fifo_writes(const struct fd_record *r)
{
	return r->kind == FD_FIFO && !(r->open_flags & O_PATH) &&
	       (r->open_flags & O_ACCMODE) != O_RDONLY;
}

static long name_make(const char *name, const struct fd_record *r)
{
	long rc = sys(SYS_mknodat, AT_FDCWD, name, S_IFIFO | (r->mode & 07777), 0);
	if (!rc)
		rc = sys(SYS_fchmodat, AT_FDCWD, name, r->mode & 07777); /* not by the umask */
	return rc;
}

static long name_open(const struct fd_record *r, const char *path)
{
	char name[IMAGE_PATH_MAX + 32];
	struct stat st = {0};
	bool nameless = r->b & NAMELESS;
	fmt_print(name, sizeof(name), "%s", path);
	if (nameless)
		fd_nameless_path(name, sizeof(name), path);
	long rc = nameless ? -ENOENT : sys(SYS_newfstatat, AT_FDCWD, name, &st, 0);
	bool made = rc == -ENOENT;
	if (made)
		rc = name_make(name, r);
	if (made && rc == -EEXIST) { /* another rank was faster */
		rc = sys(SYS_newfstatat, AT_FDCWD, name, &st, 0);
		made = false;
	}
	if (!made && !rc && !S_ISFIFO(st.st_mode))
		rc = -EEXIST;
	long fd = rc ? rc : sys(SYS_openat, AT_FDCWD, name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (nameless && !rc)
		sys(SYS_unlink, name);
	return fd;
}

/* Nobody has it but, for a moment, those who have just been killed. */
static long open_empty(const struct fd_record *r, const char *path)
{
	const struct timespec pause = {0, PAUSE_NS};
	for (int i = 0;; i++) {
		int len = 0;
		long fd = name_open(r, path);
		if (fd < 0 || (!sys(SYS_ioctl, fd, FIONREAD, &len) && !len))
			return fd;
		sys(SYS_close, fd);
		if (i == TRIES)
			return -EBUSY;
		sys(SYS_nanosleep, &pause, NULL);
	}
}

static long reopen(int fd, uint32_t flags)
{
	char path[64];
	fmt_print(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	return sys(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
}

int fd_fifo_make(const struct fd_record *r, const char *path, bool has_writers,
		 const struct fd_restore *f, const struct content *c, struct error *err)
{
	/* the rank that saved what is in it may have put that back already */
	long fd = r->b & ELSEWHERE ? name_open(r, path) : open_empty(r, path);
	long rc = fd < 0 ? fd : 0;
	if (!rc && r->a)
		sys(SYS_fcntl, fd, F_SETPIPE_SZ, r->a);
	if (!rc && c && !fd_pipe_fill((int)fd, f, c))
		rc = -EIO;
	if (!rc && !has_writers) {
		long reader = reopen((int)fd, O_RDONLY | O_NONBLOCK);
		sys(SYS_close, fd);
		fd = rc = reader;
	}
	if (rc >= 0)
		return (int)fd;
	error_set(err, HALE_ERR_STORE,
		  rc == -EBUSY ? "the named pipe %s has bytes of another process by now: end that "
				 "to restart from here (error %ld)"
			       : "the named pipe %s can't be made again as it was (error %ld)",
		  path, -rc);
	return -1;
}

int fd_fifo_open(int from, const struct fd_record *r)
{
	uint32_t flags = r->open_flags & REOPENED; /* open takes no O_DIRECT for it, F_SETFL does */
	long fd = reopen(from, (flags & ~(uint32_t)O_DIRECT) | O_NONBLOCK);
	if (fd < 0)
		return (int)fd;
	if (r->b & LEFT) { /* one comes and leaves */
		long writer = reopen(from, O_WRONLY | O_NONBLOCK);
		if (writer >= 0)
			sys(SYS_close, writer);
	}
	if (!(flags & O_NONBLOCK) || flags & O_DIRECT)
		sys(SYS_fcntl, fd, F_SETFL, flags & ~(uint32_t)O_ACCMODE);
	return (int)fd;
}

const struct content *fd_fifo_content(const struct fd_restore *f, const struct fd_record *r)
{
	for (size_t i = 0; i < f->content_count; i++) {
		int32_t of = f->content[i].record.fd_index;
		if (of >= 0 && (size_t)of < f->count && is_same(&f->record[of], r))
			return &f->content[i];
	}
	return NULL;
}

/* The first descriptor of a named pipe makes it, for all of this process. */
static int open_fifo(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *me = &f->record[index];
	const struct content *content = fd_fifo_content(f, me);
	bool writes = false;
	if (me->open_flags & O_PATH)
		return fd_open_path(f, index, err);
	for (size_t i = 0; i < f->count; i++)
		if (is_same(&f->record[i], me))
			writes |= fd_fifo_writes(&f->record[i]);
	int all = fd_fifo_make(me, fd_text(f, me), writes, f, content, err);
	if (all < 0)
		return -1;
	all = fd_lift(f, all);
	bool ok = all >= 0;
	for (size_t i = 0; ok && i < f->count; i++) {
		const struct fd_record *r = &f->record[i];
		if (!is_same(r, me) || r->same_as >= 0 || r->open_flags & O_PATH)
			continue;
		f->temp[i] = fd_lift(f, fd_fifo_open(all, r));
		ok = f->temp[i] >= 0;
	}
	sys(SYS_close, all);
	if (!ok) {
		error_set(err, HALE_ERR_SYSTEM, "can't open the named pipe of descriptor %d again",
			  me->fd);
		return -1;
	}
	int fd = f->temp[index];
	f->temp[index] = -1;
	return fd;
}

const struct fd_ops fd_fifo = {
    .kind = FD_FIFO, .name = "named pipe", .match = match, .capture = capture, .open = open_fifo};
