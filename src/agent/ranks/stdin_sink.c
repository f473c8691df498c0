/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/ranks/stdin_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"

void stdin_sink_init(struct stdin_sink *i, struct loop *loop)
{
	i->loop = loop;
	i->pipe.fd = -1;
	i->begin = i->end = 0;
	i->at_end = false;
}

void stdin_sink_close(struct stdin_sink *i)
{
	int fd = i->pipe.fd;

	loop_remove(i->loop, &i->pipe);
	i->begin = i->end = 0;
	if (fd < 0)
		return;
	close(fd);
	i->dropped(i->arg);
}

/* So many bytes are in the rank's pipe; what the stage has of the others is still here. */
static void count(struct stdin_sink *i, uint64_t moved)
{
	struct book_input *p = &i->book->input;
	struct mailbox *m = i->mailbox;

	p->moved = moved;
	atomic_store(&p->known, 1);
	atomic_store(&m->stream_taken[0], p->base + moved);
	if (atomic_load(&m->stream_lock) & 1)
		atomic_fetch_add(&m->stream_lock, 1);
	book_unstage(i->book->input_stage, NULL, book_staged(i->book->input_stage));
	*i->feeds = atomic_load(&p->number);
	i->begin += moved;
}

/* The lock is odd while bytes are neither here nor counted: see node/segment.h. They pass another
 * pipe: a successor knows by what is left in it how many have arrived. */
static ssize_t write_counted(struct stdin_sink *i)
{
	struct book_input *p = &i->book->input;
	ssize_t n, moved;
	int error;

	atomic_store(&p->number, 0);
	p->base = atomic_load(&i->mailbox->stream_taken[0]);
	atomic_store(&p->len, 0);
	atomic_store(&p->known, 0);
	atomic_store(&p->number, *i->feeds + 1);
	atomic_fetch_add(&i->mailbox->stream_lock, 1);
	n = write(i->book->input_stage[1], i->bytes + i->begin, i->end - i->begin);
	if (n > 0)
		atomic_store(&p->len, (uint64_t)n);
	moved = n > 0 ? splice(i->book->input_stage[0], NULL, i->pipe.fd, NULL, (size_t)n,
			       SPLICE_F_NONBLOCK)
		      : n;
	error = errno;
	count(i, moved > 0 ? (uint64_t)moved : 0);
	errno = error;
	return moved;
}

void stdin_sink_recover(struct stdin_sink *i)
{
	struct book_input *p = &i->book->input;
	uint64_t len = atomic_load(&p->len);

	if (!atomic_load(&p->known))
		p->moved = len > 0 ? len - book_staged(i->book->input_stage) : 0;
	count(i, p->moved);
	if (p->moved > 0)
		i->taken(i->arg, p->moved);
}

/* Once a turn: what has been moved is written down with it. */
static void pump(struct stdin_sink *i)
{
	if (i->begin < i->end) {
		ssize_t n = write_counted(i);

		if (n > 0) {
			i->taken(i->arg, (size_t)n);
		} else if (n < 0 && errno != EINTR && errno != EAGAIN) {
			stdin_sink_close(i);
			i->closed(i->arg);
			return;
		}
	}
	if (i->begin == i->end && i->at_end)
		stdin_sink_close(i);
	else if (i->begin == i->end)
		loop_change(i->loop, &i->pipe, 0);
}

static void pipe_ready(void *arg, uint32_t events)
{
	struct stdin_sink *i = arg;

	if ((events & EPOLLERR) && !(events & EPOLLOUT)) {
		stdin_sink_close(i);
		i->closed(i->arg);
	} else {
		pump(i);
	}
}

/* Room in the pipe is interesting only while there is something to put into it, or it is to be
 * closed. */
static void want_room(struct stdin_sink *i)
{
	loop_change(i->loop, &i->pipe, i->begin < i->end || i->at_end ? EPOLLOUT : 0);
}

bool stdin_sink_reopen(struct stdin_sink *i, int fd, struct mailbox *mailbox)
{
	i->mailbox = mailbox;
	if (!loop_add(i->loop, &i->pipe, fd, 0, pipe_ready, i)) {
		close(fd);
		return false;
	}
	want_room(i);
	return true;
}

bool stdin_sink_open(struct stdin_sink *i, int fd, struct mailbox *mailbox, uint64_t position)
{
	stdin_sink_close(i);
	i->at_end = false;
	atomic_store(&mailbox->stream_taken[0], position);
	return stdin_sink_reopen(i, fd, mailbox);
}

bool stdin_sink_put(struct stdin_sink *i, const void *bytes, size_t len)
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
	want_room(i);
	return true;
}

void stdin_sink_finish(struct stdin_sink *i)
{
	i->at_end = true;
	want_room(i);
}
