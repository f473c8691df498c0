// SPDX-License-Identifier: BSD-3-Clause
/* Programs that block, wait for or handle "all signals" must not thereby block or eat the two that
 * Hale needs. These definitions stand before libc's, since libhale.so is preloaded; each takes
 * Hale's signals out of the set and makes the same system call. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/image.h"
#include "ckpt/libc_result.h"
#include "image/sys.h"
#include "node/proto.h"

/* What the kernel calls a signal set: one 64-bit word. glibc keeps 32 and 33 for itself. */
typedef uint64_t kernel_set_t;
#define BIT(sig)       (1ull << ((sig)-1))
#define GLIBC_INTERNAL (BIT(32) | BIT(33))
#define API	       __attribute__((visibility("default")))

static kernel_set_t ours(void)
{
	return BIT(PROTO_CKPT_SIGNAL) | BIT(image_park_signal()) | BIT(SIGURG);
}

/* libc's signal, by another of its names. */
sighandler_t libc_signal(int sig, sighandler_t handler) __asm__("ssignal");

static kernel_set_t without_ours(const sigset_t *set)
{
	kernel_set_t k;
	memcpy(&k, set, sizeof(k));
	return k & ~(ours() | GLIBC_INTERNAL);
}

static int mask_change(int how, const sigset_t *set, sigset_t *old)
{
	kernel_set_t k = 0, before = 0;
	if (set) {
		k = without_ours(set);
		if (how == SIG_UNBLOCK)
			memcpy(&k, set, sizeof(k));
	}
	long rc = syscall(SYS_rt_sigprocmask, how, set ? &k : NULL, &before, sizeof(k));
	if (rc == 0 && old) {
		memset(old, 0, sizeof(*old));
		memcpy(old, &before, sizeof(before));
	}
	return (int)rc;
}

API int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	int saved = errno;
	int rc = mask_change(how, set, old) ? errno : 0;
	errno = saved;
	return rc;
}

API int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return mask_change(how, set, old);
}

static bool is_ours(int sig)
{
	return sig == PROTO_CKPT_SIGNAL || sig == image_park_signal();
}

/* A handler may run for long, or leave by longjmp: then what it blocks stays blocked. */
API int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction a;
	if (is_ours(sig)) {
		if (old)
			memset(old, 0, sizeof(*old));
		return 0;
	}
	if (act) {
		a = *act;
		sigdelset(&a.sa_mask, PROTO_CKPT_SIGNAL);
		sigdelset(&a.sa_mask, image_park_signal());
	}
	return image_sigaction(sig, act ? &a : NULL, old);
}

API sighandler_t signal(int sig, sighandler_t handler)
{
	return is_ours(sig) ? SIG_DFL : libc_signal(sig, handler);
}

/* Calls that wait are made by sys(), not by libc's syscall: there image/restart.c finds which call
 * a checkpoint has interrupted, and it goes on. */

API int sigsuspend(const sigset_t *set)
{
	kernel_set_t k = without_ours(set);
	return (int)libc_result(sys(SYS_rt_sigsuspend, &k, sizeof(k)));
}

API int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *set)
{
	kernel_set_t k = set ? without_ours(set) : 0;
	struct timespec t; /* the kernel writes the rest back; the caller's is const */
	if (timeout)
		t = *timeout;
	return (int)libc_result(
	    sys(SYS_ppoll, fds, n, timeout ? &t : NULL, set ? &k : NULL, sizeof(k)));
}

API int pselect(int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *timeout,
		const sigset_t *set)
{
	kernel_set_t k = set ? without_ours(set) : 0;
	struct {
		const void *set;
		size_t size;
	} arg = {set ? &k : NULL, sizeof(k)};
	struct timespec t;
	if (timeout)
		t = *timeout;
	return (int)libc_result(sys(SYS_pselect6, n, r, w, e, timeout ? &t : NULL, &arg));
}

API int epoll_pwait(int ep, struct epoll_event *events, int max, int timeout, const sigset_t *set)
{
	kernel_set_t k = set ? without_ours(set) : 0;
	return (int)libc_result(
	    sys(SYS_epoll_pwait, ep, events, max, timeout, set ? &k : NULL, sizeof(k)));
}

API int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	kernel_set_t k = without_ours(set);
	return (int)libc_result(sys(SYS_rt_sigtimedwait, &k, info, timeout, sizeof(k)));
}

API int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return sigtimedwait(set, info, NULL);
}

API int sigwait(const sigset_t *set, int *sig)
{
	int rc, saved = errno;
	do
		rc = sigtimedwait(set, NULL, NULL);
	while (rc < 0 && errno == EINTR);
	int error = rc < 0 ? errno : 0;
	errno = saved;
	if (!error)
		*sig = rc;
	return error;
}

API int signalfd(int fd, const sigset_t *set, int flags)
{
	kernel_set_t k = without_ours(set);
	return (int)syscall(SYS_signalfd4, fd, &k, sizeof(k), flags);
}
