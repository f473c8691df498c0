/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"

void intake_init(struct intake *i, struct loop *loop)
{
	i->loop = loop;
	i->pipe.fd = -1;
	i->begin = i->end = 0;
	i->at_end = false;
}

void intake_close(struct intake *i)
{
	int fd = i->pipe.fd;

	loop_remove(i->loop, &i->pipe);
	if (fd >= 0)
		close(fd);
	i->begin = i->end = 0;
}

/* The lock is odd while bytes are neither here nor counted: see job/segment.h. */
static ssize_t write_counted(struct intake *i)
{
	struct mailbox *m = i->mailbox;
	ssize_t n;

	atomic_fetch_add(&m->stream_lock, 1);
	n = write(i->pipe.fd, i->bytes + i->begin, i->end - i->begin);
	if (n > 0)
		atomic_fetch_add(&m->stream_taken[0], (uint64_t)n);
	atomic_fetch_add(&m->stream_lock, 1);
	return n;
}

static void pump(struct intake *i)
{
	while (i->pipe.fd >= 0 && i->begin < i->end) {
		ssize_t n = write_counted(i);

		if (n > 0) {
			i->begin += (size_t)n;
			i->taken(i->arg, (size_t)n);
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR) {
			intake_close(i);
			i->closed(i->arg);
		}
	}
	if (i->begin == i->end && i->at_end)
		intake_close(i);
	/* room in the pipe is interesting only while there is something to put into it */
	loop_change(i->loop, &i->pipe, i->begin < i->end ? EPOLLOUT : 0);
}

static void pipe_ready(void *arg, uint32_t events)
{
	struct intake *i = arg;

	if ((events & EPOLLERR) && !(events & EPOLLOUT)) {
		intake_close(i);
		i->closed(i->arg);
	} else {
		pump(i);
	}
}

int intake_open(struct intake *i, struct mailbox *mailbox, uint64_t position)
{
	int ends[2];

	intake_close(i);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	i->mailbox = mailbox;
	i->at_end = false;
	atomic_store(&mailbox->stream_taken[0], position);
	if (!loop_add(i->loop, &i->pipe, ends[1], 0, pipe_ready, i)) {
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	return ends[0];
}

bool intake_put(struct intake *i, const void *bytes, size_t len)
{
	if (i->pipe.fd < 0) /* closed meanwhile, and said so */
		return true;
	memmove(i->bytes, i->bytes + i->begin, i->end - i->begin);
	i->end -= i->begin;
	i->begin = 0;
	if (len > sizeof(i->bytes) - i->end)
		return false;
	memcpy(i->bytes + i->end, bytes, len);
	i->end += len;
	pump(i);
	return true;
}

void intake_finish(struct intake *i)
{
	i->at_end = true;
	pump(i);
}
