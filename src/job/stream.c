/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"

enum { READ_MAX = 65536 };
#define MOMENT_SECONDS 0.1

void stream_init(struct stream *s, struct loop *loop, struct outlet *outlet, uint32_t rank,
		 int which, bool tag, bool alone)
{
	*s = (struct stream){.loop = loop,
			     .fd = -1,
			     .source.fd = -1,
			     .outlet = outlet,
			     .rank = rank,
			     .which = which,
			     .tag = tag,
			     .alone = alone};
	history_init(&s->history, 0);
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
	loop_timer_clear(s->loop, &s->moment);
	history_fini(&s->history);
	free(s->line);
	s->line = NULL;
	s->line_len = s->line_cap = 0;
}

static void write_line(struct stream *s, const char *text, size_t len)
{
	char tag[32];
	int n = s->tag ? snprintf(tag, sizeof(tag), "[%u] ", s->rank) : 0;

	outlet_write(s->outlet, tag, (size_t)n);
	outlet_write(s->outlet, s->line, s->line_len);
	outlet_write(s->outlet, text, len);
	s->line_len = 0;
}

static void moment_over(void *arg)
{
	write_line(arg, NULL, 0);
}

static void keep_line(struct stream *s, const char *text, size_t len)
{
	if (s->line_len + len > s->line_cap) {
		size_t cap = s->line_len + len + 256;
		char *more = realloc(s->line, cap);
		if (!more) { /* better in two pieces than lost */
			write_line(s, text, len);
			return;
		}
		s->line = more;
		s->line_cap = cap;
	}
	memcpy(s->line + s->line_len, text, len);
	s->line_len += len;
	if (!s->tag)
		loop_timer_set(s->loop, &s->moment, MOMENT_SECONDS, moment_over, s);
}

/* Without tags there is nothing to put between lines: all whole ones at once. */
static size_t next_piece(const struct stream *s, const char *text, size_t len, bool *whole)
{
	const char *newline = s->tag ? memchr(text, '\n', len) : memrchr(text, '\n', len);

	*whole = newline != NULL;
	return newline ? (size_t)(newline - text) + 1 : len;
}

static void pass_on(struct stream *s, const char *text, size_t len)
{
	if (s->alone && !s->tag) {
		outlet_write(s->outlet, text, len);
		return;
	}
	while (len > 0) {
		bool whole;
		size_t n = next_piece(s, text, len, &whole);

		if (whole || s->line_len + n > STREAM_LINE_MAX) {
			loop_timer_clear(s->loop, &s->moment);
			write_line(s, text, n);
		} else {
			keep_line(s, text, n);
		}
		text += n;
		len -= n;
	}
}

static void take(struct stream *s, const char *text, size_t len)
{
	size_t again = history_take(&s->history, text, len);

	if (s->history.differs && !s->told) {
		s->told = true;
		s->differs(s->arg, s);
	}
	s->used = s->used || again < len;
	pass_on(s, text + again, len - again);
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

	if (outlet_full(s->outlet)) {
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
	/* while nothing was passed on there is nothing that could come twice: hale restart begins
	 * where the checkpoint says that was restored in the end */
	if (s->used) {
		history_rewind(&s->history, position);
	} else {
		history_fini(&s->history);
		history_init(&s->history, position);
	}
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

void stream_end(struct stream *s)
{
	loop_timer_clear(s->loop, &s->moment);
	if (s->line_len > 0)
		write_line(s, "\n", s->tag ? 1 : 0);
}
