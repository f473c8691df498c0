// SPDX-License-Identifier: BSD-3-Clause
/* Where the standard streams stand: what the agent has moved, and what is still in the pipe. */
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "ckpt/rank_private.h"

static bool is_pipe(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* The agent may read just now: the sum is right only if its counters stood still meanwhile. */
void streams_position(uint64_t position[3])
{
	struct mailbox *m = link_self()->mailbox;
	uint32_t before, after;
	do {
		while ((before = atomic_load(&m->stream_lock)) & 1)
			sched_yield();
		for (int fd = 0; fd < 3; fd++) {
			int pending = 0;
			if (is_pipe(fd) && ioctl(fd, FIONREAD, &pending))
				pending = 0;
			uint64_t taken = atomic_load(&m->stream_taken[fd]);
			uint64_t there = (uint64_t)pending;
			if (fd == 0)
				position[fd] = taken > there ? taken - there : 0;
			else
				position[fd] = taken + there;
		}
		after = atomic_load(&m->stream_lock);
	} while (before != after);
}
