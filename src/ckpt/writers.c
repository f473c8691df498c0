// SPDX-License-Identifier: BSD-3-Clause
/* Files that ranks write by themselves, the ranks' side. Each image has such a file, or its size,
 * at the moment of its own rank. So who writes what another rank writes, too, stands still together
 * with that one for a checkpoint, and after a rollback nobody runs on before all have put back
 * their files (docs/coordinated-checkpoint.md, 'Files of several nodes'). */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ckpt/rank_private.h"
#include "image/sys.h"

enum { INODES_MAX = 512, ASK_MS = 1000, ASKS = 30 };

/* Inode numbers of files that this process has opened for writing, at places by a hash; in images,
 * too. */
static _Atomic uint64_t inodes[INODES_MAX];
static _Atomic bool many; /* there were more */

void writers_note(const struct link *l, uint64_t inode)
{
	if (!segment_inode_put(inodes, INODES_MAX, inode))
		atomic_store(&many, true);
	if (l && l->segment)
		segment_file_note(l->segment, l->process, inode);
}

bool writers_show(const struct link *l)
{
	for (uint32_t i = 0; i < INODES_MAX; i++)
		if (atomic_load(&inodes[i]))
			segment_file_note(l->segment, l->process, atomic_load(&inodes[i]));
	if (!atomic_load(&many) || l->degree > 1)
		return false;
	atomic_store(&l->segment->files_full, 1);
	return true;
}

static int agent_connect(const struct link_address *address)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	size_t n = strlen(address->agent);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(sa.sun_path + 1, address->agent, n);
	/* libc's is told to others, as the program's own (kernel_ipc.c) */
	if (fd >= 0 && sys(SYS_connect, fd, &sa, offsetof(struct sockaddr_un, sun_path) + 1 + n)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The agent's answer has come. It does not while some are not back, nor from an agent that has
 * ended meanwhile: the caller asks again. */
static bool is_answered(int fd, const struct proto_plain *ask)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct proto_plain answer;

	return send(fd, ask, sizeof(*ask), MSG_NOSIGNAL) == sizeof(*ask) &&
	       poll(&p, 1, ASK_MS) > 0 &&
	       sys(SYS_recvfrom, fd, &answer, sizeof(answer), MSG_DONTWAIT, NULL, NULL) > 0;
}

void writers_await_all(const struct link_address *address)
{
	struct proto_plain ask = {.type = PROTO_BACK};
	bool back = false;
	int saved = errno;

	memcpy(ask.text, address->token, sizeof(address->token));
	for (int i = 0; !back && i < ASKS; i++) {
		int fd = agent_connect(address);

		back = fd >= 0 && is_answered(fd, &ask);
		if (fd >= 0)
			close(fd);
		else /* the next agent of this node is not there yet */
			usleep(ASK_MS * 1000);
	}
	if (!back)
		log_warn("process %d, a child of a rank, goes on before its agent has said that "
			 "all ranks are back: what it writes into files that others write, too, "
			 "may be lost",
			 (int)getpid());
	errno = saved;
}
