// SPDX-License-Identifier: BSD-3-Clause
/* Sleeping until the bell rings or a descriptor can be read, whichever comes first.
 *
 * A futex and descriptors can't be waited for together, so while there are descriptors the bell
 * also comes as a datagram: this process binds a socket to a name that the kernel chooses, says it
 * in its mailbox, and whoever rings sends a byte there (mailbox_ring_slow). The bell's word stays
 * what decides, so a datagram too many only makes one more round of progress. */
#include <errno.h>
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

/* [0]: the datagram socket. Several threads may sleep here at once; none while it changes, which
 * happens inside the guard with the other threads parked or outside link_sleep's reach. */
static struct pollfd watched[1 + LINK_BELL_FDS];
static _Atomic unsigned nwatched, opened;

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
	for (unsigned i = 0; i < count; i++)
		watched[1 + i] = (struct pollfd){.fd = fd[i], .events = POLLIN};
	atomic_store(&link_self()->mailbox->bell_name, name);
	atomic_fetch_add(&opened, 1);
	atomic_store(&nwatched, 1 + count);
	return HALE_OK;
}

void link_bell_close(void)
{
	if (!atomic_exchange(&nwatched, 0))
		return;
	atomic_store(&link_self()->mailbox->bell_name, 0);
	close(watched[0].fd);
}

static void datagrams_take(int fd)
{
	char byte;
	while (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0)
		;
}

bool bell_sleep(uint32_t bell_seen, uint64_t max_ns)
{
	unsigned n = atomic_load(&nwatched), era = atomic_load(&opened);
	struct timespec t = {(time_t)(max_ns / 1000000000u), (long)(max_ns % 1000000000u)};
	struct pollfd p[1 + LINK_BELL_FDS];
	if (n == 0)
		return false;
	memcpy(p, watched, n * sizeof(*p));
	/* the name is in the mailbox for good: who rings after this look sends a datagram */
	if (atomic_load(&link_self()->mailbox->bell) != bell_seen)
		return true;
	/* by system call: ppoll of this library is the program's (masks.c). A checkpoint may
	 * interrupt it, and then these descriptors are others' */
	if (syscall(SYS_ppoll, p, n, &t, NULL, 0) > 0 && p[0].revents && nwatched &&
	    era == atomic_load(&opened))
		datagrams_take(p[0].fd);
	return true;
}
