// SPDX-License-Identifier: BSD-3-Clause
#undef _FILE_OFFSET_BITS
#include "ckpt/mute.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "image/image.h"
#include "image/sys.h"

enum { FDS_MAX = 1024 };

/* A descriptor of the program that is not what the program thinks. */
struct muted {
	struct muted *next;
	int fd;
	dev_t dev; /* of what it is instead */
	ino_t ino;
	int flags; /* as the program has opened it */
	char path[];
};

bool hale_mute_on;
static struct muted *muted;

void mute_init(void)
{
	const char *process = getenv("HALE_PROCESS"), *ranks = getenv("HALE_NRANKS");

	hale_mute_on = getenv("HALE_SHADOWS") && process && ranks &&
		       strtoul(process, NULL, 10) >= strtoul(ranks, NULL, 10);
}

static int raw_open(int dir, const char *path, int flags, mode_t mode)
{
	long fd = sys(SYS_openat, dir, path, flags | O_LARGEFILE, mode);

	return sys_failed(fd) ? -1 : (int)fd;
}

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY;
}

/* ---- the other file ---- */

static int other_make(void)
{
	int fd = raw_open(AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0600);

	return fd >= 0 ? fd : memfd_create("hale-shadow", 0);
}

/* As long as the real one, and with what it has where the program can read it. */
static void other_fill(int fd, int real, int flags, off_t size)
{
	char block[1 << 14];
	off_t at = 0;
	ssize_t n;

	if (ftruncate64(fd, size) != 0 || (flags & O_ACCMODE) != O_RDWR)
		return;
	while ((n = pread64(real, block, sizeof(block), at)) > 0 &&
	       pwrite64(fd, block, (size_t)n, at) == n)
		at += n;
}

static bool muted_note(int fd, int flags, const char *path)
{
	struct muted *m = heap_alloc(sizeof(*m) + strlen(path) + 1);
	struct stat st;

	if (!m || fstat(fd, &st) != 0) {
		heap_free(m);
		return false;
	}
	*m = (struct muted){muted, fd, st.st_dev, st.st_ino, flags};
	memcpy(m->path, path, strlen(path) + 1);
	muted = m;
	return true;
}

static bool path_make(int dir, const char *path, char out[PATH_MAX])
{
	char at[64];
	ssize_t n;

	if (*path == '/')
		return snprintf(out, PATH_MAX, "%s", path) < PATH_MAX;
	snprintf(at, sizeof(at), "/proc/self/fd/%d", dir);
	n = readlink(dir == AT_FDCWD ? "/proc/self/cwd" : at, out, PATH_MAX - 1);
	if (n <= 0)
		return false;
	return snprintf(out + n, (size_t)(PATH_MAX - n), "/%s", path) < PATH_MAX - n;
}

int mute_open(int dir, const char *path, int flags, mode_t mode)
{
	char full[PATH_MAX];
	struct stat st;
	bool there = path && fstatat(dir, path, &st, 0) == 0;
	int fd;

	if (!path || flags & (O_PATH | O_DIRECTORY) || !writes(flags) ||
	    (there ? !S_ISREG(st.st_mode) : !(flags & O_CREAT)) || !path_make(dir, path, full))
		return MUTE_NOT;
	fd = other_make();
	if (fd < 0)
		return -1;
	if (there && !(flags & O_TRUNC)) {
		int real = raw_open(AT_FDCWD, full, O_RDONLY | O_CLOEXEC, 0);

		other_fill(fd, real, flags, st.st_size);
		if (real >= 0)
			close(real);
	}
	if (flags & O_CLOEXEC)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (muted_note(fd, flags, full))
		return fd;
	close(fd);
	errno = ENOMEM;
	return -1;
}

/* ---- becoming a shadow, and none ---- */

static bool is_other(const struct muted *m)
{
	struct stat st;

	return fstat(m->fd, &st) == 0 && st.st_dev == m->dev && st.st_ino == m->ino;
}

/* Its offset, too; fd stays the number. */
static void replace(int fd, int by)
{
	off_t at = lseek64(fd, 0, SEEK_CUR);
	int keep = fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;

	if (at >= 0)
		lseek64(by, at, SEEK_SET);
	dup3(by, fd, keep);
	close(by);
}

static void descriptor_mute(int fd)
{
	char name[64], path[PATH_MAX];
	struct stat st;
	int flags = fcntl(fd, F_GETFL), other;
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (flags < 0 || !writes(flags) || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    st.st_nlink == 0)
		return;
	n = readlink(name, path, sizeof(path) - 1);
	other = n > 0 ? other_make() : -1;
	if (other < 0)
		return;
	path[n] = '\0';
	other_fill(other, fd, flags, st.st_size);
	replace(fd, other);
	muted_note(fd, flags, path);
}

void hale_mute_begin(void)
{
	int owned[FDS_MAX];
	size_t count = image_fds_owned(owned, FDS_MAX);

	if (hale_mute_on)
		return;
	hale_mute_on = true;
	for (int fd = 3; fd < FDS_MAX; fd++) {
		bool ours = false;

		for (size_t i = 0; i < count; i++)
			ours = ours || owned[i] == fd;
		if (!ours)
			descriptor_mute(fd);
	}
}

void hale_mute_end(void)
{
	hale_mute_on = false;
	while (muted) {
		struct muted *m = muted;
		int real;

		muted = m->next;
		if (is_other(m)) {
			real = raw_open(AT_FDCWD, m->path,
					(m->flags & ~(O_TRUNC | O_EXCL | O_CLOEXEC)) | O_CREAT, 0666);
			if (real >= 0)
				replace(m->fd, real);
			else
				log_warn("a promoted shadow can't write to '%s': what it would "
					 "write is lost",
					 m->path);
		}
		heap_free(m);
	}
}

void hale_mute_trim(void)
{
	for (struct muted **at = &muted; *at;) {
		struct muted *m = *at;
		off_t end = lseek64(m->fd, 0, SEEK_CUR);

		if (!is_other(m)) {
			*at = m->next;
			heap_free(m);
			continue;
		}
		if ((m->flags & O_ACCMODE) == O_WRONLY && end > 0)
			fallocate64(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end);
		at = &m->next;
	}
}
