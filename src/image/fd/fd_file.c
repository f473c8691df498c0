// SPDX-License-Identifier: BSD-3-Clause
/* Regular files, directories, and the devices that need no more than to be opened again.
 *
 *                                       restored by
 * read only                             path, offset
 * appended to                           path, offset, and cut to the size it had
 * written at its end                    the same; its content, too, if it is small
 * may be overwritten in place           the same, and its content is in the image
 * has no name any more                  a new file without a name, with the content
 *
 * Of a file with holes the content is what lies between them.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

/* A file that is written once more from its beginning again and again (a program's state) has other
 * content by the time of a restart, though this descriptor only writes at its end. Small ones are
 * saved; a large one may be an output of any size, and is not. */
#define SAVE_ALWAYS (1u << 20)

enum { BLOCK = 512, PUNCH = 3 /* FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE */ };

static bool writable(uint32_t flags)
{
	return (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
}

/* By the descriptor itself where that is open for reading; else by another one. */
static int read_content(struct fd_table *t, const struct fd_probe *p, const struct fd_record *r,
			void *data, size_t len, uint64_t at)
{
	char path[64];
	if ((r->open_flags & O_ACCMODE) == O_RDWR && !(r->open_flags & O_DIRECT))
		return sys_read_at(p->fd, data, len, at);
	fmt_print(path, sizeof(path), "/proc/self/fd/%d", p->fd);
	return fd_read_aside(t->arena, path, data, len, at);
}

static int save_piece(struct fd_table *t, const struct fd_probe *p, const struct fd_record *r,
		      uint64_t from, uint64_t to)
{
	char *data = fd_add_content(t, from, r->size, to - from);
	return data ? read_content(t, p, r, data, to - from, from) : -ENOMEM;
}

/* The offset of the descriptor moves, and is put back. */
static int save_pieces(struct fd_table *t, const struct fd_probe *p, const struct fd_record *r)
{
	uint64_t sum = 0;
	long at = 0;
	int rc = 0;
	while (!rc && (uint64_t)at < r->size) {
		long from = sys(SYS_lseek, p->fd, at, SEEK_DATA);
		if (from == -ENXIO) /* no more */
			break;
		if (from < 0)
			from = at;
		at = sys(SYS_lseek, p->fd, from, SEEK_HOLE);
		if (at <= from || (uint64_t)at > r->size)
			at = (long)r->size;
		sum += (uint64_t)(at - from);
		rc = sum > t->save_max ? -EFBIG : save_piece(t, p, r, (uint64_t)from, (uint64_t)at);
	}
	sys(SYS_lseek, p->fd, r->offset, SEEK_SET);
	return rc;
}

static hale_status_t save_content(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
				  struct error *err)
{
	uint64_t used = (uint64_t)p->st.st_blocks * BLOCK;
	bool has_holes = used < r->size;
	if ((has_holes ? used : r->size) > t->save_max)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "descriptor %d (%s) may be overwritten in place and has %lu MiB, "
				 "more than is saved with a checkpoint; raise HALE_FILE_SAVE_MAX",
				 p->fd, p->link,
				 (unsigned long)((has_holes ? used : r->size) >> 20));
	r->has_content = 1;
	if (t->other || !r->size)
		return HALE_OK;
	int rc = has_holes ? save_pieces(t, p, r) : save_piece(t, p, r, 0, r->size);
	if (rc == -EACCES || rc == -EPERM)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "descriptor %d (%s) may be overwritten in place, but can't be "
				 "read to save it: allow reading the file",
				 p->fd, p->link);
	if (rc)
		return error_set(err, HALE_ERR_SYSTEM, "can't save the content of %s (error %d)",
				 p->link, -rc);
	return HALE_OK;
}

static bool worth_saving(const struct fd_table *t, const struct fd_probe *p,
			 const struct fd_record *r)
{
	char path[64];
	if ((r->open_flags & O_APPEND) || r->size > SAVE_ALWAYS || r->size > t->save_max)
		return false;
	fmt_print(path, sizeof(path), "%s/fd/%d", t->proc, p->fd);
	return !sys(SYS_faccessat2, AT_FDCWD, path, R_OK, AT_EACCESS);
}

/* ---- with a name ---- */

/* When it was written: make and the like look at it. */
static void time_restore(int fd, const struct fd_record *r)
{
	const struct timespec times[2] = {{0, UTIME_OMIT}, {r->value_s, r->value_ns}};
	if (S_ISREG(r->mode))
		sys(SYS_utimensat, fd, NULL, times, 0);
}

static void time_note(struct fd_record *r, const struct stat *st)
{
	r->value_s = st->st_mtim.tv_sec;
	r->value_ns = st->st_mtim.tv_nsec;
}

static bool file_match(const struct fd_table *t, const struct fd_probe *p)
{
	/* a symbolic link can only be open by O_PATH */
	return (S_ISREG(p->st.st_mode) || S_ISDIR(p->st.st_mode) || S_ISLNK(p->st.st_mode)) &&
	       p->link[0] == '/' && !p->deleted;
}

static hale_status_t file_capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
				  struct error *err)
{
	if (!fd_add_text(t, r, p->link, strlen(p->link) + 1))
		return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	if (!S_ISREG(r->mode) || !writable(r->open_flags))
		return HALE_OK;
	r->truncates = 1;
	time_note(r, &p->st);
	fd_found_note(r, t, p->fd);
	bool in_place = !(r->open_flags & O_APPEND) &&
			((r->open_flags & O_ACCMODE) == O_RDWR || r->offset < r->size);
	return in_place || worth_saving(t, p, r) ? save_content(t, p, r, err) : HALE_OK;
}

/* A path below the old process's /proc/PID is one below the new one's. */
static const char *path_now(const struct fd_restore *f, const struct fd_record *r, char *buf,
			    size_t cap)
{
	const char *path = fd_text(f, r);
	char own[32];
	size_t n = fmt_print(own, sizeof(own), "/proc/%d/", f->old_pid);
	if (strncmp(path, own, n))
		return path;
	fmt_print(buf, cap, "/proc/self/%s", path + n);
	return buf;
}

/* Is the file's whole content in the image, with this descriptor or another one of it? */
static bool can_make(const struct fd_restore *f, const struct fd_record *r)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *o = &f->record[i];
		if (o->kind == FD_FILE && o->inode == r->inode && o->device == r->device &&
		    o->truncates && (o->has_content || !o->size))
			return true;
	}
	return false;
}

static int file_open(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	char buf[IMAGE_PATH_MAX];
	const char *path = path_now(f, r, buf, sizeof(buf));
	uint32_t flags = r->open_flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC);
	if ((flags & O_TMPFILE) == O_TMPFILE)
		flags &= ~(uint32_t)O_TMPFILE;
	long fd = sys(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
	if (fd == -ENOENT || (fd >= 0 && fd_found_is_other(r, (int)fd))) {
		long right = fd_found_elsewhere(r, path, flags);
		if (fd >= 0)
			sys(SYS_close, fd);
		if (fd >= 0 && right < 0) {
			error_set(err, HALE_ERR_STORE,
				  "%s is another file than the one that was open as descriptor %d "
				  "in the checkpoint, and was made since: move it away, %s",
				  path, r->fd,
				  can_make(f, r) ? "to restart from here"
						 : "and put that one back");
			return -1;
		}
		fd = right >= 0 ? right : -ENOENT;
	}
	if (fd == -ENOENT && can_make(f, r)) {
		fd = sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC,
			 r->mode & 07777);
		if (fd >= 0)
			sys(SYS_close, fd);
		fd = sys(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
	}
	if (fd < 0) {
		error_set(err, HALE_ERR_STORE,
			  fd == -ENOENT
			      ? "%s, open as descriptor %d in the checkpoint, no longer exists: "
				"put it back to restart from here"
			      : "%s, open as descriptor %d in the checkpoint, can't be opened: "
				"check its permissions",
			  path, r->fd);
		return -1;
	}
	struct stat st = {0};
	if (r->truncates && !r->has_content && !sys(SYS_fstat, fd, &st) &&
	    (uint64_t)st.st_size < r->size) {
		error_set(
		    err, HALE_ERR_STORE,
		    "%s had %lu bytes at the checkpoint and has only %lu now, and what it had "
		    "is not in the image: restart from another checkpoint",
		    path, (unsigned long)r->size, (unsigned long)st.st_size);
		sys(SYS_close, fd);
		return -1;
	}
	return (int)fd;
}

/* What has been written since where a hole was. */
static void make_holes(const struct fd_restore *f, size_t index)
{
	const struct fd_record *r = &f->record[index];
	uint64_t sum = 0;
	for (size_t i = 0; i < f->content_count; i++)
		if (f->content[i].record.fd_index == (int32_t)index)
			sum += f->content[i].len;
	if (sum < r->size && sys(SYS_fallocate, f->temp[index], PUNCH, 0, r->size))
		sys(SYS_ftruncate, f->temp[index], 0);
}

static bool file_settle(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	int fd = f->temp[index], rc = 0;
	if (r->has_content && r->truncates) {
		/* the bytes at its end need not be aligned */
		if (r->open_flags & O_DIRECT)
			sys(SYS_fcntl, fd, F_SETFL, r->open_flags & ~(uint32_t)O_DIRECT);
		make_holes(f, index);
		rc = fd_write_content(f, index, fd);
		if (r->open_flags & O_DIRECT)
			sys(SYS_fcntl, fd, F_SETFL, r->open_flags);
	}
	if (!rc && r->truncates && S_ISREG(r->mode))
		rc = (int)sys(SYS_ftruncate, fd, r->size);
	if (rc && rc != -EINVAL) { /* files of /proc have no size to set */
		error_set(err, rc == -ENOSPC ? HALE_ERR_STORE_FULL : HALE_ERR_STORE,
			  "%s can't be set back to what it was at the checkpoint (error %d)",
			  fd_text(f, r), -rc);
		return false;
	}
	if (r->truncates)
		time_restore(fd, r);
	sys(SYS_lseek, fd, r->offset, SEEK_SET);
	return true;
}

const struct fd_ops fd_file = {.kind = FD_FILE,
			       .name = "file",
			       .match = file_match,
			       .capture = file_capture,
			       .open = file_open,
			       .settle = file_settle};

/* ---- without a name ---- */

static bool unlinked_match(const struct fd_table *t, const struct fd_probe *p)
{
	return p->deleted &&
	       (S_ISREG(p->st.st_mode) || S_ISDIR(p->st.st_mode) || S_ISLNK(p->st.st_mode));
}

/* Where a symbolic link leads to; behind the path that it had. */
static hale_status_t save_target(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
				 struct error *err)
{
	char *text = arena_alloc(t->arena, 2 * IMAGE_PATH_MAX);
	size_t n = strlen(p->link) + 1;
	if (!text)
		return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	memcpy(text, p->link, n);
	long len = sys(SYS_readlinkat, p->fd, "", text + n, IMAGE_PATH_MAX - 1);
	if (len <= 0)
		return fd_refuse(p, "a symbolic link without a name", err);
	text[n + (size_t)len] = 0;
	return fd_add_text(t, r, text, n + (size_t)len + 1)
		   ? HALE_OK
		   : error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
}

void fd_nameless_link(const struct fd_probe *p, char link[IMAGE_PATH_MAX])
{
	fmt_print(link, IMAGE_PATH_MAX, "%s (deleted)", p->link);
}

struct earlier {
	const struct fd_table *t;
	int32_t self;
	uint64_t device, inode;
};

static bool is_of_earlier(const struct fd_seen *s, const void *arg)
{
	const struct earlier *e = arg;
	struct stat st = {0};
	char path[64];
	size_t at = 0;
	while (at < e->t->tree_count && e->t->tree[at] != s->pid && e->t->tree[at] != e->self)
		at++;
	if (!s->pid || at == e->t->tree_count || e->t->tree[at] == e->self)
		return false;
	fmt_print(path, sizeof(path), "%s/fd/%d", s->proc, s->fd);
	return !sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) && st.st_ino == e->inode &&
	       st.st_dev == e->device;
}

/* Does an earlier one of the processes that are captured together save the content? */
static bool is_saved_elsewhere(const struct fd_table *t, const struct fd_probe *p,
			       const struct fd_record *r)
{
	struct earlier e = {t, (int32_t)sys(SYS_getpid), r->device, r->inode};
	char link[IMAGE_PATH_MAX];
	if (t->other || !t->tree_count)
		return false;
	fd_nameless_link(p, link);
	return fd_tree_has(t, link, is_of_earlier, &e);
}

static hale_status_t unlinked_capture(struct fd_table *t, const struct fd_probe *p,
				      struct fd_record *r, struct error *err)
{
	if (!fd_add_text(t, r, p->link, strlen(p->link) + 1))
		return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	if (p->st.st_nlink)
		return fd_refuse(
		    p, "a file that has lost the name it was opened by, and has others", err);
	for (size_t i = 0; i < t->records.count; i++) {
		const struct fd_record *o = list_at(&t->records, i);
		if (o->kind == FD_UNLINKED && o->inode == r->inode && o->device == r->device)
			return HALE_OK; /* that one has the content */
	}
	if (S_ISDIR(r->mode)) /* nothing can be in it any more */
		return HALE_OK;
	if (S_ISLNK(r->mode))
		return t->other ? HALE_OK : save_target(t, p, r, err);
	time_note(r, &p->st);
	r->b = (uint64_t)p->st.st_uid << 32 | p->st.st_gid;
	long seals = t->other ? -1 : sys(SYS_fcntl, p->fd, F_GET_SEALS);
	r->a = seals > 0 ? (uint64_t)seals : 0;
	return is_saved_elsewhere(t, p, r) ? HALE_OK : save_content(t, p, r, err);
}

static long file_without_name(const struct fd_restore *f, const struct fd_record *r)
{
	static const char memfd[] = "/memfd:";
	char folder[IMAGE_PATH_MAX];
	const char *path = fd_text(f, r);
	if (strncmp(path, memfd, sizeof(memfd) - 1)) {
		fmt_print(folder, sizeof(folder), "%s", path);
		char *slash = strrchr(folder, '/');
		if (slash)
			slash[slash == folder] = 0;
		long fd = sys(SYS_openat, AT_FDCWD, folder, O_TMPFILE | O_RDWR | O_CLOEXEC,
			      r->mode & 07777);
		if (fd >= 0)
			sys(SYS_fchmod, fd, r->mode & 07777); /* the umask may have less */
		if (fd >= 0)
			return fd;
	}
	const char *name = strrchr(path, strncmp(path, memfd, sizeof(memfd) - 1) ? '/' : ':');
	long fd =
	    sys(SYS_memfd_create, name ? name + 1 : "unlinked", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0)
		sys(SYS_fchmod, fd, r->mode & 07777);
	return fd;
}

/* With the owner goes what is executed with its rights. */
static int owner_restore(int fd, const struct fd_record *r)
{
	struct stat st = {0};
	uint32_t uid = (uint32_t)(r->b >> 32), gid = (uint32_t)r->b;
	if (sys(SYS_fstat, fd, &st) || (st.st_uid == uid && st.st_gid == gid))
		return 0;
	long rc = sys(SYS_fchown, fd, uid, gid);
	return rc ? (int)rc : (int)sys(SYS_fchmod, fd, r->mode & 07777);
}

void fd_nameless_path(char *buf, size_t cap, const char *path)
{
	char folder[IMAGE_PATH_MAX];
	char *slash;
	fmt_print(folder, sizeof(folder), "%s", path);
	do { /* what it was in may be gone as well */
		slash = strrchr(folder, '/');
		if (slash)
			*slash = 0;
	} while (slash && *folder && sys(SYS_faccessat, AT_FDCWD, folder, F_OK));
	fmt_print(buf, cap, "%s/.hale-%d", folder, (int)sys(SYS_getpid));
}

/* A folder or a symbolic link that has no name any more gets one for a moment. */
static int nameless_open(const struct fd_restore *f, const struct fd_record *r, struct error *err)
{
	char path[IMAGE_PATH_MAX + 32];
	fd_nameless_path(path, sizeof(path), fd_text(f, r));
	bool folder = S_ISDIR(r->mode);
	size_t n = strlen(fd_text(f, r)) + 1;
	const char *target = n < r->text_len ? fd_text(f, r) + n : "";
	long rc = folder ? sys(SYS_mkdirat, AT_FDCWD, path, 0700)
			 : sys(SYS_symlinkat, target, AT_FDCWD, path);
	long fd = rc ? rc : sys(SYS_openat, AT_FDCWD, path, r->open_flags | O_CLOEXEC);
	if (!rc && folder)
		sys(SYS_fchmodat, AT_FDCWD, path, r->mode & 07777);
	if (!rc)
		sys(SYS_unlinkat, AT_FDCWD, path, folder ? AT_REMOVEDIR : 0);
	if (fd < 0)
		error_set(err, HALE_ERR_STORE,
			  "what was removed and is open as descriptor %d (%s) can't be made again "
			  "(error %ld)",
			  r->fd, fd_text(f, r), -fd);
	return (int)fd;
}

static uint32_t flags_again(const struct fd_record *r)
{
	uint32_t flags = r->open_flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC);
	return (flags & O_TMPFILE) == O_TMPFILE ? flags & ~(uint32_t)O_TMPFILE : flags;
}

int fd_nameless_again(const struct fd_restore *f, int of, const struct fd_record *r)
{
	char path[64];
	fmt_print(path, sizeof(path), "/proc/thread-self/fd/%d", of);
	int fd = fd_lift(f, (int)sys(SYS_openat, AT_FDCWD, path, flags_again(r) | O_CLOEXEC));
	if (fd >= 0)
		sys(SYS_lseek, fd, r->offset, SEEK_SET);
	return fd < 0 ? -1 : fd;
}

static int unlinked_open(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	if (!S_ISREG(r->mode))
		return nameless_open(f, r, err);
	char path[64];
	uint32_t flags = flags_again(r);
	long first = -1;
	for (size_t i = 0; i < index && first < 0; i++)
		if (f->record[i].kind == FD_UNLINKED && f->record[i].inode == r->inode &&
		    f->record[i].device == r->device)
			first = f->temp[i];
	long fresh = first < 0 ? file_without_name(f, r) : -1;
	fmt_print(path, sizeof(path), "/proc/thread-self/fd/%ld", first < 0 ? fresh : first);
	/* through /proc it gets an open file of its own, with the flags it had; but what was made
	 * as it is, open to be written, may be executed, which none opened so may */
	bool made = fresh >= 0 && (flags & O_ACCMODE) == O_RDWR;
	long fd = made ? sys(SYS_fcntl, fresh, F_DUPFD_CLOEXEC, 0)
		       : sys(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
	int rc = 0;
	if (fd >= 0 && first < 0) {
		rc = fd_write_fresh(f, index, (int)fresh);
		if (!rc)
			rc = (int)sys(SYS_ftruncate, fresh, r->size);
		if (!rc && made)
			rc = (int)sys(SYS_fcntl, fresh, F_SETFL, flags);
		if (!rc)
			rc = owner_restore((int)fresh, r);
	}
	if (fresh >= 0)
		sys(SYS_close, fresh);
	if (fd < 0 || rc) {
		error_set(err, HALE_ERR_STORE,
			  "the file without a name that descriptor %d was (%s) can't be made again "
			  "(error %ld)",
			  r->fd, fd_text(f, r), fd < 0 ? -fd : -(long)rc);
		return -1;
	}
	sys(SYS_lseek, fd, r->offset, SEEK_SET);
	return (int)fd;
}

/* When its content is there. What was made without leave to seal it has been sealed against seals.
 */
static bool unlinked_settle(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	time_restore(f->temp[index], r);
	long rc = r->a ? sys(SYS_fcntl, f->temp[index], F_ADD_SEALS, r->a) : 0;
	if (rc == -EPERM && sys(SYS_fcntl, f->temp[index], F_GET_SEALS) == (long)r->a)
		rc = 0;		 /* another process that has it has been faster */
	if (rc && rc != -EINVAL) /* of a file system without seals */
		error_set(err, HALE_ERR_SYSTEM, "%s can't be sealed as it was (error %ld)",
			  fd_text(f, r), -rc);
	return !rc || rc == -EINVAL;
}

const struct fd_ops fd_unlinked = {.kind = FD_UNLINKED,
				   .name = "unlinked file",
				   .match = unlinked_match,
				   .capture = unlinked_capture,
				   .open = unlinked_open,
				   .settle = unlinked_settle};

/* ---- devices ---- */

/* A namespace that the process is in: "net:[4026531840]". path: where it is opened again. */
static bool is_own_namespace(const struct fd_table *t, const struct fd_probe *p, char path[64])
{
	char here[64], link[64];
	size_t n = 0;
	while (n < 20 && ((p->link[n] >= 'a' && p->link[n] <= 'z') || p->link[n] == '_'))
		n++;
	if (!n || p->link[n] != ':' || p->link[n + 1] != '[')
		return false;
	fmt_print(here, sizeof(here), "%s/ns/%.*s", t->proc, (int)n, p->link);
	fmt_print(path, 64, "/proc/self/ns/%.*s", (int)n, p->link);
	long len = sys(SYS_readlink, here, link, sizeof(link) - 1);
	link[len > 0 ? len : 0] = 0;
	return len > 0 && !strcmp(link, p->link);
}

static bool device_match(const struct fd_table *t, const struct fd_probe *p)
{
	char path[64];
	if (is_own_namespace(t, p, path))
		return true;

	static const char *const plain[] = {"/dev/null",    "/dev/zero",   "/dev/full",
					    "/dev/urandom", "/dev/random", "/dev/tty"};
	if (!S_ISCHR(p->st.st_mode) || p->deleted)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (!strcmp(p->link, plain[i]))
			return true;
	return !strncmp(p->link, "/dev/pts/", 9);
}

static hale_status_t device_capture(struct fd_table *t, const struct fd_probe *p,
				    struct fd_record *r, struct error *err)
{
	char path[64];
	const char *text = is_own_namespace(t, p, path) ? path : p->link;
	return fd_add_text(t, r, text, strlen(text) + 1)
		   ? HALE_OK
		   : error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
}

int fd_open_path(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	long fd = sys(SYS_openat, AT_FDCWD, fd_text(f, r),
		      (r->open_flags & ~(uint32_t)O_CREAT) | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		error_set(err, HALE_ERR_SYSTEM,
			  "%s, descriptor %d in the checkpoint, can't be opened here (error %ld)",
			  fd_text(f, r), r->fd, -fd);
	return (int)fd;
}

const struct fd_ops fd_device = {.kind = FD_DEVICE,
				 .name = "device",
				 .match = device_match,
				 .capture = device_capture,
				 .open = fd_open_path};
