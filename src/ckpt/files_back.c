// SPDX-License-Identifier: BSD-3-Clause
/* A file that is open for writing only and was written to its end is expected to grow, so an image
 * has no more of a large one than its size. A program that goes back in it, to write its head anew,
 * saves what it has before. */
#undef _FILE_OFFSET_BITS
#include "ckpt/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/guard.h"
#include "ckpt/rank_private.h"
#include "image/sys.h"
#include "journal/journal.h"
#include "node/guest.h"

#define API __attribute__((visibility("default")))

enum { FDS = 1024 };

/* One more than the epoch in which this was looked at, by descriptor. What has been opened since
 * then is in the journal. */
static _Atomic uint32_t seen[FDS];

static struct {
	int (*fseek)(FILE *, long, int);
	int (*fseeko)(FILE *, off64_t, int);
	void (*rewind)(FILE *);
	int (*fsetpos)(FILE *, const fpos_t *);
	ssize_t (*pwrite)(int, const void *, size_t, off64_t);
	ssize_t (*pwritev)(int, const struct iovec *, int, off64_t);
} libc;

void files_back_init(void)
{
	*(void **)&libc.fseek = files_find("fseek");
	*(void **)&libc.fseeko = files_find("fseeko64");
	*(void **)&libc.rewind = files_find("rewind");
	*(void **)&libc.fsetpos = files_find("fsetpos");
	*(void **)&libc.pwrite = files_find("pwrite64");
	*(void **)&libc.pwritev = files_find("pwritev64");
}

void files_goes_back(int fd)
{
	uint32_t epoch = journal_epoch_now();
	int saved = errno;

	/* MPI-IO says by itself what it overwrites */
	if (fd < 0 || guard_inside || guest_inside ||
	    (fd < FDS && epoch != JOURNAL_EPOCH_UNKNOWN && atomic_load(&seen[fd]) == epoch + 1))
		return;
	long flags = sys(SYS_fcntl, fd, F_GETFL);
	if (flags >= 0 && (flags & O_ACCMODE) == O_WRONLY && !(flags & (O_APPEND | O_PATH))) {
		hale_guest_enter();
		journal_truncating_fd(fd, 0);
		hale_guest_leave();
	}
	if (fd < FDS && epoch != JOURNAL_EPOCH_UNKNOWN)
		atomic_store(&seen[fd], epoch + 1);
	errno = saved;
}

/* Other constructors may come before ours. */
#define LIBC(name) (UNLIKELY(!libc.name) ? files_back_init() : (void)0, libc.name)

API int fseek(FILE *f, long at, int whence)
{
	files_seeks(fileno(f), at, whence);
	return LIBC(fseek)(f, at, whence);
}

API int fseeko(FILE *f, off_t at, int whence)
{
	files_seeks(fileno(f), at, whence);
	return LIBC(fseeko)(f, at, whence);
}

API int fseeko64(FILE *f, off64_t at, int whence)
{
	files_seeks(fileno(f), at, whence);
	return LIBC(fseeko)(f, at, whence);
}

API void rewind(FILE *f)
{
	files_seeks(fileno(f), 0, SEEK_SET);
	LIBC(rewind)(f);
}

API int fsetpos(FILE *f, const fpos_t *at)
{
	files_seeks(fileno(f), 0, SEEK_SET);
	return LIBC(fsetpos)(f, at);
}

API ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	files_seeks(fd, at, SEEK_SET);
	return LIBC(pwrite)(fd, data, len, at);
}

API ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
	files_seeks(fd, at, SEEK_SET);
	return LIBC(pwrite)(fd, data, len, at);
}

API ssize_t pwritev(int fd, const struct iovec *data, int count, off_t at)
{
	files_seeks(fd, at, SEEK_SET);
	return LIBC(pwritev)(fd, data, count, at);
}

API ssize_t pwritev64(int fd, const struct iovec *data, int count, off64_t at)
{
	files_seeks(fd, at, SEEK_SET);
	return LIBC(pwritev)(fd, data, count, at);
}
