/* SPDX-License-Identifier: BSD-3-Clause */
/* Raw system calls: they return -errno, touch neither errno nor any other thread-local word, and
 * so may run in signal handlers, in helper threads without a TLS of their own, and while the
 * process's memory is being exchanged. And what the kernel offers that libc's headers lack. */
#ifndef HALE_IMAGE_SYS_H
#define HALE_IMAGE_SYS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>

/* The number is moved just in front of the instruction, where restart.c looks for it when a
 * checkpoint has interrupted the call. Moved by the compiler it may be elsewhere: of two calls that
 * differ by their number alone it made one, and a futex went on as a sleep. */
static inline long sys_call(long nr, long a, long b, long c, long d, long e, long f)
{
	long rc;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("mov %k1, %%eax\n\tsyscall"
			 : "=&a"(rc)
			 : "ri"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return rc;
}

#define SYS_ARGS(nr, a, b, c, d, e, f, ...)                                                        \
	sys_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* sys(SYS_close, fd): missing arguments are 0 */
#define sys(...) SYS_ARGS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

static inline bool sys_failed(long rc)
{
	return rc < 0 && rc > -4096;
}

/* A signal set and an action as the kernel has them. */
typedef uint64_t sys_set_t;
#define SYS_SET_BIT(sig) (1ull << ((sig)-1))
enum { SYS_SIGNALS = 64 };

struct sys_action {
	uint64_t handler, flags, restorer, mask;
};

/* ioctl(PAGEMAP_SCAN), Linux 6.7 */
struct sys_page_region {
	uint64_t start, end, categories;
};
struct sys_pm_scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SYS_PAGEMAP_SCAN      _IOWR('f', 16, struct sys_pm_scan)
#define SYS_PAGE_IS_WPALLOWED (1ull << 0)
#define SYS_PAGE_IS_WRITTEN   (1ull << 1)
#define SYS_PAGE_IS_FILE      (1ull << 2)
#define SYS_PAGE_IS_PRESENT   (1ull << 3)
#define SYS_PAGE_IS_SWAPPED   (1ull << 4)
#define SYS_PAGE_IS_PFNZERO   (1ull << 5)
#define SYS_PAGE_IS_GUARD     (1ull << 8) /* Linux 6.16 */
#define SYS_MADV_GUARD_INSTALL 102	  /* Linux 6.13 */
#define SYS_PM_WP_MATCHING    (1ull << 0)
#define SYS_PM_CHECK_WPASYNC  (1ull << 1)

#define SYS_UFFD_USER_MODE_ONLY 1
#define SYS_UFFD_WP_UNPOPULATED (1ull << 13)
#define SYS_UFFD_WP_ASYNC	(1ull << 15)

/* What of a region that PAGEMAP_SCAN lists wasn't listed before; false: nothing. *listed: where the
 * last one ended. With more than 512 regions Linux (seen on 6.18) may set walk_end to before some
 * that it has listed, so that the next call lists them again. */
static inline bool sys_page_region_new(struct sys_page_region *r, uint64_t *listed)
{
	if (r->start < *listed)
		r->start = *listed;
	if (r->start >= r->end)
		return false;
	*listed = r->end;
	return true;
}

/* Helpers that retry EINTR and short transfers; 0 or -errno (-EIO: the file ended early). */
int sys_read_at(int fd, void *buf, size_t len, uint64_t offset);
int sys_write_at(int fd, const void *buf, size_t len, uint64_t offset);
int sys_writev_at(int fd, struct iovec *iov, int count, uint64_t offset);

/* A small file (in /proc) read whole into buf, NUL-terminated; its length, or -errno. */
long sys_read_small(const char *path, char *buf, size_t cap);

/* The letter of proc(5) for the state of a process or thread, whose stat file that is; 0: gone. */
char sys_state(const char *path);

int sys_futex_wait(const volatile uint32_t *word, uint32_t expected,
		   const struct timespec *timeout);
void sys_futex_wake(const volatile uint32_t *word, int count);

#endif
