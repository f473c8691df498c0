// SPDX-License-Identifier: BSD-3-Clause
/* Names that libc makes and removes by functions of other kinds: POSIX shared memory and
 * semaphores, which are files below /dev/shm, and sockets. */
#undef _FILE_OFFSET_BITS
#include "ckpt/files.h"
#include "ckpt/kernel_ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fmt.h"
#include "ckpt/mute.h"
#include "node/guest.h"
#include "ckpt/libc_result.h"
#include "image/sys.h"
#include "journal/journal.h"

#define API __attribute__((visibility("default")))

static struct {
	int (*shm_open)(const char *, int, mode_t);
	int (*shm_unlink)(const char *);
	sem_t *(*sem_open)(const char *, int, ...);
	int (*sem_unlink)(const char *);
} libc;

void files_names_init(void)
{
	*(void **)&libc.shm_open = files_find("shm_open");
	*(void **)&libc.shm_unlink = files_find("shm_unlink");
	*(void **)&libc.sem_open = files_find("sem_open");
	*(void **)&libc.sem_unlink = files_find("sem_unlink");
}

enum { NAME_PATH = NAME_MAX + 32 };

/* False: libc will say that this is no name. */
static bool path_of(char path[NAME_PATH], const char *kind, const char *name)
{
	if (!name)
		return false;
	name += strspn(name, "/");
	if (!*name || strchr(name, '/') || strlen(name) > NAME_MAX)
		return false;
	fmt_print(path, NAME_PATH, "/dev/shm/%s%s", kind, name);
	return true;
}

API int shm_open(const char *name, int flags, mode_t mode)
{
	char path[NAME_PATH];

	if (!journal_on || !files_change(flags) || !path_of(path, "", name))
		return libc.shm_open(name, flags, mode);
	hale_guest_enter();
	journal_opening(AT_FDCWD, path, flags | O_NOFOLLOW);
	int fd = libc.shm_open(name, flags, mode), saved = errno;
	journal_opened(fd);
	hale_guest_leave();
	if (fd >= 0)
		kernel_ipc_writes(fd);
	errno = saved;
	return fd;
}

static int unlink_any(int (*call)(const char *), const char *kind, const char *name)
{
	char path[NAME_PATH];

	if (!journal_on || !path_of(path, kind, name))
		return call(name);
	hale_guest_enter();
	journal_removing(AT_FDCWD, path);
	int rc = call(name), saved = errno;
	hale_guest_leave();
	errno = saved;
	return rc;
}

API int shm_unlink(const char *name)
{
	return unlink_any(libc.shm_unlink, "", name);
}

API int sem_unlink(const char *name)
{
	return unlink_any(libc.sem_unlink, "sem.", name);
}

/* One that is there is mapped, and changes. */
API sem_t *sem_open(const char *name, int flags, ...)
{
	char path[NAME_PATH];
	mode_t mode = 0;
	unsigned value = 0;

	if (flags & O_CREAT) {
		va_list ap;
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		value = va_arg(ap, unsigned);
		va_end(ap);
	}
	if (!journal_on || !path_of(path, "sem.", name))
		return libc.sem_open(name, flags, mode, value);
	hale_guest_enter();
	journal_opening(AT_FDCWD, path, (flags & (O_CREAT | O_EXCL)) | O_RDWR | O_NOFOLLOW);
	sem_t *s = libc.sem_open(name, flags, mode, value);
	int saved = errno;
	journal_opened(-1);
	hale_guest_leave();
	errno = saved;
	return s;
}

static int bind_plain(int fd, const struct sockaddr *address, socklen_t len)
{
	return (int)libc_result(sys(SYS_bind, fd, address, len));
}

API int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = "";
	const size_t begins = offsetof(struct sockaddr_un, sun_path);

	if (journal_on && address && len > begins && len <= sizeof(struct sockaddr_un) &&
	    address->sa_family == AF_UNIX)
		memcpy(path, (const char *)address + begins, len - begins);
	if (!path[0]) /* another kind, or without a name in a folder */
		return bind_plain(fd, address, len);
	hale_guest_enter();
	journal_making(AT_FDCWD, path);
	int rc = bind_plain(fd, address, len), saved = errno;
	hale_guest_leave();
	errno = saved;
	return rc;
}
