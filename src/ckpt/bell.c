// SPDX-License-Identifier: BSD-3-Clause
/* Sleeping until the bell rings or a descriptor can be read, whichever comes first.
 *
 * A futex and descriptors can't be waited for together. So while there are descriptors the bell
 * also comes as a datagram: this process binds a socket to a name that the kernel chooses, and
 * writes the name into its mailbox. Whoever rings sends a byte there (mailbox_ring_slow). The
 * bell's word decides; a datagram too many only makes one more round of progress.
 *
 * A byte wakes one thread. So only one thread sleeps on the descriptors, and the others on the word. A
 * thread that wakes while none is at the descriptors wakes another one, which sleeps there if it finds
 * nothing. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "ckpt/rank_private.h"

enum { NAME_LENGTH = 5 };

/* [0]: the datagram socket. The kernel reads it at the beginning of each sleep, and once more when
 * a checkpoint has interrupted one, which may have changed it: so it is this very array that
 * threads sleep on, and never a copy. Descriptors below 0 are left out. What the kernel writes back
 * nobody looks at. */
static struct pollfd watched[1 + LINK_BELL_FDS];
static _Atomic bool open_now;
static _Atomic bool watching;	/* a thread sleeps on descriptors */
static _Atomic uint32_t inside; /* threads in bell_sleep */

static hale_status_t name_read(int fd, uint64_t *name, struct error *err)
{
	struct sockaddr_un sa = {0};
	socklen_t len = sizeof(sa);
	if (getsockname(fd, (struct sockaddr *)&sa, &len))
		return error_sys(err, HALE_ERR_SYSTEM, "can't read the name of the bell's socket");
	if (len != offsetof(struct sockaddr_un, sun_path) + 1 + NAME_LENGTH)
		return error_set(err, HALE_ERR_SYSTEM,
				 "the kernel gave the bell's socket a name of %u bytes",
				 (unsigned)len);
	*name = 0;
	memcpy(name, sa.sun_path + 1, NAME_LENGTH);
	return HALE_OK;
}

hale_status_t link_bell_open(const int *fd, unsigned count, struct error *err)
{
	struct sockaddr_un any = {.sun_family = AF_UNIX};
	uint64_t name;
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return error_sys(err, HALE_ERR_SYSTEM, "can't make a socket for the bell");
	hale_status_t rc = HALE_OK;
	if (bind(s, (struct sockaddr *)&any, sizeof(any.sun_family)))
		rc = error_sys(err, HALE_ERR_SYSTEM, "can't bind the bell's socket");
	else
		rc = name_read(s, &name, err);
	if (rc != HALE_OK) {
		close(s);
		return rc;
	}
	watched[0] = (struct pollfd){.fd = s, .events = POLLIN};
	for (unsigned i = 0; i < LINK_BELL_FDS; i++)
		watched[1 + i] = (struct pollfd){.fd = i < count ? fd[i] : -1, .events = POLLIN};
	atomic_store(&link_self()->mailbox->bell_name, name);
	mailbox_ring_from(s);
	atomic_store(&open_now, true);
	return HALE_OK;
}

void link_bell_close(void)
{
	if (!atomic_exchange(&open_now, false))
		return;
	atomic_store(&link_self()->mailbox->bell_name, 0);
	mailbox_ring_from(-1);
	close(watched[0].fd);
	for (unsigned i = 0; i < ARRAY_LEN(watched); i++)
		watched[i].fd = -1;
}

static void datagrams_take(void)
{
	char byte;
	while (atomic_load(&open_now) && recv(watched[0].fd, &byte, 1, MSG_DONTWAIT) >= 0)
		;
}

/* The name is in the mailbox for good: who rings after this look at the word sends a datagram, and
 * only who watches takes it. */
static void watch(const _Atomic uint32_t *bell, uint32_t bell_seen, const struct timespec *t)
{
	/* by system call: ppoll of this library is the program's (masks.c) */
	if (atomic_load(bell) == bell_seen &&
	    syscall(SYS_ppoll, watched, ARRAY_LEN(watched), t, NULL, 0) > 0)
		datagrams_take();
	atomic_store(&watching, false);
}

/* A thread that wakes may leave the library for good, with no thread at the descriptors: then another
 * one has to come there. The word changes for threads that found the descriptors taken, and don't
 * sleep yet. */
static void bell_leave(_Atomic uint32_t *bell)
{
	if (atomic_fetch_sub(&inside, 1) == 1 || atomic_load(&watching))
		return;
	atomic_fetch_add(bell, 1);
	syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool bell_sleep(uint32_t bell_seen, uint64_t max_ns)
{
	struct timespec t = {(time_t)(max_ns / 1000000000u), (long)(max_ns % 1000000000u)};
	_Atomic uint32_t *bell = &link_self()->mailbox->bell;

	if (!atomic_load(&open_now))
		return false;
	atomic_fetch_add(&inside, 1);
	if (atomic_exchange(&watching, true))
		syscall(SYS_futex, bell, FUTEX_WAIT, bell_seen, &t, NULL, 0);
	else
		watch(bell, bell_seen, &t);
	bell_leave(&link_self()->mailbox->bell); /* may be another one after a checkpoint */
	return true;
}
