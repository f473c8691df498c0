// SPDX-License-Identifier: BSD-3-Clause
/* Of a file that is opened to be appended to only its size is written down. What else can be done
 * with such a descriptor saves its content first. */
#undef _FILE_OFFSET_BITS
#include "ckpt/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "node/guest.h"
#include "ckpt/libc_result.h"
#include "image/sys.h"
#include "journal/journal.h"

#define API __attribute__((visibility("default")))

static struct {
	int (*fcntl)(int, int, ...);
	int (*fallocate)(int, int, off64_t, off64_t);
	void *(*mmap)(void *, size_t, int, int, int, off64_t);
} libc;

void files_append_init(void)
{
	*(void **)&libc.fcntl = files_find("fcntl64");
	if (!libc.fcntl)
		*(void **)&libc.fcntl = files_find("fcntl");
	*(void **)&libc.fallocate = files_find("fallocate64");
	*(void **)&libc.mmap = files_find("mmap64");
}

static bool appends(int fd)
{
	long flags = sys(SYS_fcntl, fd, F_GETFL);

	return flags >= 0 && flags & O_APPEND && (flags & O_ACCMODE) != O_RDONLY;
}

static long fcntl_plain(int fd, int command, void *argument)
{
	if (libc.fcntl)
		return libc.fcntl(fd, command, argument);
	return libc_result(sys(SYS_fcntl, fd, command, argument));
}

/* call, after what is in the file has been written down as if it were cut to nothing */
#define SAVED_FIRST(fd, call)                                                                      \
	__extension__({                                                                            \
		hale_guest_enter();                                                                \
		journal_truncating_fd(fd, 0);                                                      \
		__typeof__(call) rc_ = (call);                                                     \
		int saved_ = errno;                                                                \
		hale_guest_leave();                                                                \
		errno = saved_;                                                                    \
		rc_;                                                                               \
	})

static int fcntl_any(int fd, int command, void *argument)
{
	if (UNLIKELY(journal_on) && command == F_SETFL && !((long)argument & O_APPEND) &&
	    appends(fd))
		return (int)SAVED_FIRST(fd, fcntl_plain(fd, command, argument));
	return (int)fcntl_plain(fd, command, argument);
}

#define ARGUMENT_AFTER(last)                                                                       \
	__extension__({                                                                            \
		va_list ap_;                                                                       \
		va_start(ap_, last);                                                               \
		void *argument_ = va_arg(ap_, void *);                                             \
		va_end(ap_);                                                                       \
		argument_;                                                                         \
	})

API int fcntl(int fd, int command, ...)
{
	return fcntl_any(fd, command, ARGUMENT_AFTER(command));
}

API int fcntl64(int fd, int command, ...)
{
	return fcntl_any(fd, command, ARGUMENT_AFTER(command));
}

static int fallocate_any(int fd, int mode, off64_t offset, off64_t length)
{
	if (UNLIKELY(journal_on) && mode & ~FALLOC_FL_KEEP_SIZE && appends(fd))
		return SAVED_FIRST(fd, libc.fallocate(fd, mode, offset, length));
	return libc.fallocate(fd, mode, offset, length);
}

API int fallocate(int fd, int mode, off_t offset, off_t length)
{
	return fallocate_any(fd, mode, offset, length);
}

API int fallocate64(int fd, int mode, off64_t offset, off64_t length)
{
	return fallocate_any(fd, mode, offset, length);
}

static void *mmap_plain(void *at, size_t len, int prot, int flags, int fd, off64_t offset)
{
	if (libc.mmap)
		return libc.mmap(at, len, prot, flags, fd, offset);
	return (void *)libc_result(sys(SYS_mmap, at, len, prot, flags, fd, offset));
}

/* Whatever prot says: mprotect may allow writing later. */
static inline void *mmap_any(void *at, size_t len, int prot, int flags, int fd, off64_t offset)
{
	if (UNLIKELY(journal_on) && fd >= 0 && !(flags & MAP_ANONYMOUS) &&
	    (flags & MAP_TYPE) != MAP_PRIVATE && appends(fd))
		return SAVED_FIRST(fd, mmap_plain(at, len, prot, flags, fd, offset));
	return mmap_plain(at, len, prot, flags, fd, offset);
}

API void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	return mmap_any(at, len, prot, flags, fd, offset);
}

API void *mmap64(void *at, size_t len, int prot, int flags, int fd, off64_t offset)
{
	return mmap_any(at, len, prot, flags, fd, offset);
}
