/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/ranks/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "base/base.h"

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
	if (s->fd < 0)
		return;
	close(s->fd);
	s->fd = -1;
	if (s->closed)
		s->closed(s->arg, s);
}

void stream_fini(struct stream *s)
{
	close_pipe(s);
}

/* What lies in the book goes on its way. */
static void take(struct stream *s)
{
	const struct book_piece *p = &s->book->piece;
	size_t len = atomic_load(&p->len);

	s->window->out += len;
	s->send(s->arg, s, p->bytes, len);
	*s->pieces = atomic_load(&p->number);
	s->taken(s->arg);
}

/* The counter is set to what it is after the piece, whoever has done so before. */
static void count(struct stream *s)
{
	struct book_piece *p = &s->book->piece;
	struct mailbox *m = s->mailbox;

	atomic_store(&m->stream_taken[s->which], p->base + atomic_load(&p->len));
	if (atomic_load(&m->stream_lock) & 1)
		atomic_fetch_add(&m->stream_lock, 1);
}

/* From the pipe into the book. The lock is odd while bytes are neither in the pipe nor counted: see
 * node/segment.h. They pass another pipe, in which a successor finds what it doesn't find here. */
static ssize_t read_counted(struct stream *s)
{
	struct book_piece *p = &s->book->piece;
	struct mailbox *m = s->mailbox;
	ssize_t n;

	atomic_store(&p->number, 0);
	p->rank = s->rank;
	p->which = (uint32_t)s->which;
	p->base = atomic_load(&m->stream_taken[s->which]);
	atomic_store(&p->len, 0);
	atomic_store(&p->number, *s->pieces + 1);
	atomic_fetch_add(&m->stream_lock, 1);
	n = splice(s->fd, NULL, s->book->piece_stage[1], NULL, BOOK_PIECE, SPLICE_F_NONBLOCK);
	if (n > 0)
		atomic_store(&p->len, (uint64_t)n);
	count(s);
	if (n > 0)
		book_unstage(s->book->piece_stage, p->bytes, (size_t)n);
	else
		atomic_store(&p->number, 0);
	return n;
}

void stream_recover(struct stream *s)
{
	struct book_piece *p = &s->book->piece;
	size_t staged = book_staged(s->book->piece_stage);

	if (atomic_load(&p->len) == 0)
		atomic_store(&p->len, staged);
	count(s);
	book_unstage(s->book->piece_stage, p->bytes + atomic_load(&p->len) - staged, staged);
	if (atomic_load(&p->len) > 0)
		take(s);
}

static void ready(void *arg, uint32_t events)
{
	struct stream *s = arg;
	ssize_t n;

	if (stream_window_full(s->window)) {
		loop_remove(s->loop, &s->source);
		return;
	}
	n = read_counted(s);
	if (n > 0)
		take(s);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_pipe(s);
}

bool stream_reopen(struct stream *s, int fd, struct mailbox *mailbox)
{
	close_pipe(s);
	s->mailbox = mailbox;
	s->fd = fd;
	if (loop_add(s->loop, &s->source, s->fd, EPOLLIN, ready, s))
		return true;
	close_pipe(s);
	return false;
}

bool stream_open(struct stream *s, int fd, struct mailbox *mailbox, uint64_t position)
{
	if (!stream_reopen(s, fd, mailbox))
		return false;
	atomic_store(&mailbox->stream_taken[s->which], position);
	return true;
}

void stream_resume(struct stream *s)
{
	if (s->fd >= 0 && s->source.fd < 0)
		loop_add(s->loop, &s->source, s->fd, EPOLLIN, ready, s);
}

void stream_take(struct stream *s)
{
	while (s->fd >= 0 && !stream_window_full(s->window) && read_counted(s) > 0)
		take(s);
}

void stream_drain(struct stream *s)
{
	while (s->fd >= 0) {
		ssize_t n = read_counted(s);

		if (n > 0)
			take(s);
		else if (n == 0 || errno != EINTR)
			close_pipe(s);
	}
}
