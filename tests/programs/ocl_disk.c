/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into an OpenCL program: its checkpoints' disk fails. OCL_DISK=CALL:N[:ERRNO] lets the
 * N-th call of CALL fail, with ERRNO (EIO), and all later ones; CALL is open (of a file without a
 * name), pwrite, short (pwrite takes a part first), pread, fallocate or mkostemp. OCL_DISK_ONCE:
 * only that one. At the end it says on stderr how many calls there were. Only files of checkpoints
 * count, which are those that have no name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic long calls;

static int is_nameless(int fd)
{
	struct stat s;

	return fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_nlink == 0;
}

/* Whether this call, of what the rule calls `name`, is to fail; errno says how. */
static int fails(const char *name)
{
	const char *rule = getenv("OCL_DISK");
	size_t n = strlen(name);
	char *end;
	long at, now;

	if (!rule || strncmp(rule, name, n) != 0 || rule[n] != ':')
		return 0;
	at = strtol(rule + n + 1, &end, 10);
	now = ++calls;
	if (getenv("OCL_DISK_ONCE") ? now != at : now < at)
		return 0;
	errno = *end == ':' ? atoi(end + 1) : EIO;
	return 1;
}

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

int open64(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list a;

	va_start(a, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(a, mode_t);
	va_end(a);
	if ((flags & O_TMPFILE) == O_TMPFILE && fails("open"))
		return -1;
	return REAL(open64)(path, flags, mode);
}

int mkostemp64(char *path, int flags)
{
	return fails("mkostemp") ? -1 : REAL(mkostemp64)(path, flags);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
	if (is_nameless(fd)) {
		if (fails("pwrite"))
			return -1;
		if (size > 1 && fails("short"))
			size /= 2;
	}
	return REAL(pwrite64)(fd, data, size, at);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t at)
{
	if (is_nameless(fd) && fails("pread"))
		return -1;
	return REAL(pread64)(fd, data, size, at);
}

int fallocate64(int fd, int mode, off64_t at, off64_t size)
{
	if (is_nameless(fd) && fails("fallocate"))
		return -1;
	return REAL(fallocate64)(fd, mode, at, size);
}

__attribute__((destructor)) static void end(void)
{
	if (getenv("OCL_DISK"))
		fprintf(stderr, "calls %ld\n", (long)calls);
}
