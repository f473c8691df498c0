// SPDX-License-Identifier: BSD-3-Clause
#include "image/sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <time.h>

int sys_read_at(int fd, void *buf, size_t len, uint64_t offset)
{
	char *p = buf;
	while (len) {
		long k = sys(SYS_pread64, fd, p, len > 1ul << 30 ? 1ul << 30 : len, offset);
		if (k == -EINTR)
			continue;
		if (k < 0)
			return (int)k;
		if (k == 0)
			return -EIO;
		p += k;
		len -= (size_t)k;
		offset += (uint64_t)k;
	}
	return 0;
}

int sys_writev_at(int fd, struct iovec *iov, int count, uint64_t offset)
{
	while (count) {
		long k = sys(SYS_pwritev, fd, iov, count, offset, 0);
		if (k == -EINTR)
			continue;
		if (k < 0)
			return (int)k;
		if (k == 0)
			return -ENOSPC;
		offset += (uint64_t)k;
		while (count && (size_t)k >= iov->iov_len) {
			k -= (long)iov->iov_len;
			iov++;
			count--;
		}
		if (count && k) {
			iov->iov_base = (char *)iov->iov_base + k;
			iov->iov_len -= (size_t)k;
		}
	}
	return 0;
}

int sys_write_at(int fd, const void *buf, size_t len, uint64_t offset)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	return len ? sys_writev_at(fd, &iov, 1, offset) : 0;
}

long sys_read_small(const char *path, char *buf, size_t cap)
{
	long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), n = 0, k = 0;
	if (fd < 0)
		return fd;
	while ((size_t)n < cap - 1 && (k = sys(SYS_read, fd, buf + n, cap - 1 - (size_t)n)) > 0)
		n += k;
	sys(SYS_close, fd);
	buf[n] = 0;
	return k < 0 ? k : n;
}

char sys_state(const char *path)
{
	char text[1024];
	if (sys_read_small(path, text, sizeof(text)) <= 0)
		return 0;
	const char *end = strrchr(text, ')'); /* of its name, which may have others */
	return end && end[1] == ' ' ? end[2] : 0;
}

int sys_futex_wait(const volatile uint32_t *word, uint32_t expected, const struct timespec *timeout)
{
	return (int)sys(SYS_futex, word, FUTEX_WAIT, expected, timeout);
}

void sys_futex_wake(const volatile uint32_t *word, int count)
{
	sys(SYS_futex, word, FUTEX_WAKE, count);
}
