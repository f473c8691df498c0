// SPDX-License-Identifier: BSD-3-Clause
/* The leader of a rank truncates, creates exclusively, and says where what is appended begins;
 * followers open the file as it is then. So an open that fails fails in all of them, and who
 * truncates late leaves no hole.
 *
 * What two ranks append to one file would be in an order that nobody decides. So who appends locks
 * a byte far behind all files, one for each process, and looks for other ranks' bytes. */
/* with it, lseek would be another name of lseek64, and both are defined here */
#undef _FILE_OFFSET_BITS
#include "ckpt/files.h"
#include "ckpt/files_replicas.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/guard.h"
#include "ckpt/mute.h"
#include "ckpt/libc_replay.h"
#include "ckpt/rank.h"
#include "image/image.h"
#include "image/sys.h"

#define API __attribute__((visibility("default")))

enum { APPENDED_MAX = 1024 };

bool files_replicated;
/* Inodes of descriptors that the program believes to append; they stand at the end of what it has
 * written. */
static uint64_t appended[APPENDED_MAX];

void files_replicas_init(void)
{
	files_replicated = getenv("HALE_REPLICAS") != NULL;
}

static uint64_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static int refuse(const char *path, const char *why)
{
	const char *rank = getenv("HALE_RANK");

	log_warn("rank %s can't append to '%s': this job has replicas, and %s; run it without "
		 "--replicas",
		 rank ? rank : "?", path, why);
	errno = ENOTSUP;
	return -1;
}

void files_replicas_forget(int fd)
{
	if (fd >= 0 && fd < APPENDED_MAX)
		appended[fd] = 0;
}

/* ---- appending ---- */

static long lock_call(int fd, int command, off_t at, off_t length, short *type)
{
	struct flock l = {.l_type = F_WRLCK,
			  .l_whence = SEEK_SET,
			  .l_start = (off_t)IMAGE_LOCKS_OURS + at,
			  .l_len = length};
	long rc = sys(SYS_fcntl, fd, command, &l);

	*type = l.l_type;
	return rc;
}

static bool others_append(int fd, off_t from, off_t to)
{
	short type = F_UNLCK;

	return to > from &&
	       (lock_call(fd, F_OFD_GETLK, from, to - from, &type) != 0 || type != F_UNLCK);
}

/* Bytes are ordered by rank, so all of another rank's are on one side. Our own may be locked by
 * another descriptor of this process, or by the one that it is a copy of. */
static bool another_rank_appends(int fd)
{
	const struct link *l = link_self();
	off_t first = (off_t)l->rank * l->degree, own = l->process / l->nranks;
	short type;

	lock_call(fd, F_OFD_SETLK, first + own, 1, &type);
	return others_append(fd, 0, first) ||
	       others_append(fd, first + l->degree, (off_t)l->nprocesses);
}

static int begin_appending(int fd, const char *path, off_t at)
{
	if (fd >= APPENDED_MAX || another_rank_appends(fd)) {
		close(fd);
		return refuse(path, "ranks that append to one file would write over each other");
	}
	lseek(fd, at, SEEK_SET);
	appended[fd] = inode_of(fd);
	return fd;
}

/* ---- opening ---- */

static int open_as_leader(int dir, const char *path, int flags, mode_t mode, files_open_t *plain)
{
	struct libc_replay_file f = {0};
	int fd = plain(dir, path, flags & ~O_APPEND, mode);

	files_replicas_forget(fd);
	if (fd < 0)
		f.error = errno;
	else if (flags & O_APPEND)
		f.offset = lseek(fd, 0, SEEK_END);
	if (fd >= 0)
		f.inode = inode_of(fd);
	libc_replay_hooks->file_tell(&f);
	if (fd >= 0 && flags & O_APPEND)
		return begin_appending(fd, path, f.offset);
	errno = f.error;
	return fd;
}

/* On another node it may be another file, which no leader has truncated. */
static int open_as_follower(int dir, const char *path, int flags, mode_t mode, files_open_t *plain,
			    const struct libc_replay_file *f)
{
	int fd = -1;
	bool same;

	errno = f->error;
	if (!f->error)
		fd = plain(dir, path, flags & ~(O_APPEND | O_TRUNC | O_EXCL), mode);
	files_replicas_forget(fd);
	if (fd < 0)
		return fd;
	same = inode_of(fd) == f->inode;
	if (!same && flags & O_TRUNC && ftruncate(fd, 0) != 0)
		log_warn("'%s' can't be truncated: %m", path);
	if (flags & O_APPEND) /* a shadow's file is another one, which stands for the same place */
		return begin_appending(fd, path, same || hale_mute_on ? f->offset : lseek(fd, 0, SEEK_END));
	return fd;
}

static int open_decided(int dir, const char *path, int flags, mode_t mode, files_open_t *plain)
{
	struct libc_replay_file f;
	int fd;

	guard_enter();
	fd = libc_replay_hooks->file_ask(&f) ? open_as_follower(dir, path, flags, mode, plain, &f)
					     : open_as_leader(dir, path, flags, mode, plain);
	int saved = errno;
	guard_leave();
	errno = saved;
	return fd;
}

static bool is_no_file(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, 0) == 0 && !S_ISREG(st.st_mode);
}

int files_replicas_open(int dir, const char *path, int flags, mode_t mode, files_open_t *plain)
{
	bool appends = (flags & O_APPEND) != 0;

	if (!path || !(flags & (O_APPEND | O_TRUNC | O_EXCL)) || is_no_file(dir, path))
		return plain(dir, path, flags, mode);
	if (appends && (flags & O_ACCMODE) == O_RDWR)
		return refuse(path, "a file that is read, too, can't be appended to");
	if (libc_replay_inside())
		return open_decided(dir, path, flags, mode, plain);
	if (appends)
		return refuse(path, "only the thread that has called MPI_Init may append, before "
				    "MPI_Finalize");
	return plain(dir, path, flags, mode);
}

/* ---- lseek ---- */

/* The end of a file that is appended to is where this replica has written to, however far others
 * are. */
API off_t lseek(int fd, off_t offset, int whence)
{
	if (UNLIKELY(files_replicated) && whence == SEEK_END && fd >= 0 && fd < APPENDED_MAX &&
	    appended[fd] && appended[fd] == inode_of(fd))
		whence = SEEK_CUR;
	files_seeks(fd, offset, whence);
	long rc = sys(SYS_lseek, fd, offset, whence);
	if (!sys_failed(rc))
		return rc;
	errno = (int)-rc;
	return -1;
}

API off64_t lseek64(int fd, off64_t offset, int whence)
{
	return lseek(fd, offset, whence);
}
