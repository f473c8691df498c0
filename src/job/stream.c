/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "base/base.h"

enum { READ_MAX = 65536 };

void stream_init(struct stream *s, struct loop *loop, struct stream_window *window, uint32_t rank,
		 int which)
{
	*s = (struct stream){.loop = loop,
			     .fd = -1,
			     .source.fd = -1,
			     .window = window,
			     .rank = rank,
			     .which = which};
}

static void close_pipe(struct stream *s)
{
	loop_remove(s->loop, &s->source);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void stream_fini(struct stream *s)
{
	close_pipe(s);
}

static void take(struct stream *s, const void *bytes, size_t len)
{
	s->window->out += len;
	s->send(s->arg, s, bytes, len);
}

/* The lock is odd while bytes are neither in the pipe nor counted: see job/segment.h. */
static ssize_t read_counted(struct stream *s, char *buf, size_t cap)
{
	struct mailbox *m = s->mailbox;
	ssize_t n;

	atomic_fetch_add(&m->stream_lock, 1);
	n = read(s->fd, buf, cap);
	if (n > 0)
		atomic_fetch_add(&m->stream_taken[s->which], (uint64_t)n);
	atomic_fetch_add(&m->stream_lock, 1);
	return n;
}

static void ready(void *arg, uint32_t events)
{
	struct stream *s = arg;
	char buf[READ_MAX];
	ssize_t n;

	if (stream_window_full(s->window)) {
		loop_remove(s->loop, &s->source);
		return;
	}
	n = read_counted(s, buf, sizeof(buf));
	if (n > 0)
		take(s, buf, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_pipe(s);
}

int stream_open(struct stream *s, struct mailbox *mailbox, uint64_t position)
{
	int ends[2];

	close_pipe(s);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	s->mailbox = mailbox;
	atomic_store(&mailbox->stream_taken[s->which], position);
	s->fd = ends[0];
	if (!loop_add(s->loop, &s->source, s->fd, EPOLLIN, ready, s)) {
		close_pipe(s);
		close(ends[1]);
		return -1;
	}
	return ends[1];
}

void stream_resume(struct stream *s)
{
	if (s->fd >= 0 && s->source.fd < 0)
		loop_add(s->loop, &s->source, s->fd, EPOLLIN, ready, s);
}

void stream_drain(struct stream *s)
{
	char buf[READ_MAX];
	ssize_t n;

	while (s->fd >= 0) {
		n = read_counted(s, buf, sizeof(buf));
		if (n > 0)
			take(s, buf, (size_t)n);
		else if (n == 0 || errno != EINTR)
			close_pipe(s);
	}
}
