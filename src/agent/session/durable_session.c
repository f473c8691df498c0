/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/session/durable_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"
#include "wire/session/session.h"

/* A ring gives memory back to the kernel in steps of at least this many bytes. */
enum { LARGE = 4 << 20 };

static void end(struct durable_session *t, const char *why)
{
	durable_session_close(t);
	t->over(t->arg, why);
}

/* Gives back the memory of the bytes before `until`. The recorded state refers to none of them, so
 * a successor will not read them either. */
static void shrink(struct book_ring *r, uint64_t *shrunk, uint64_t until)
{
	uint64_t from = ALIGN_UP(*shrunk, HALE_PAGE), to = until / HALE_PAGE * HALE_PAGE;

	if (until - *shrunk < LARGE || to <= from)
		return;
	madvise(book_ring_at(r, from), to - from, MADV_REMOVE);
	*shrunk = to;
}

/* ---- sending ---- */

/* Moves bytes from the ring into the stage (a pipe). The record has the length of the stage before.
 * From that a successor computes how many bytes were moved. */
static void load_stage(struct durable_session *t, uint64_t until)
{
	struct book *b = t->book;
	uint64_t begin = atomic_load(&b->out.begin);
	uint64_t len = until - begin < BOOK_PIECE ? until - begin : BOOK_PIECE;
	ssize_t n;

	b->out.moving_from = begin;
	b->out.moving_had = book_staged(b->out_stage);
	atomic_store(&b->out.moving, 1);
	n = write(b->out_stage[1], book_ring_at(&b->out, begin), len);
	if (n > 0)
		atomic_store(&b->out.begin, begin + (uint64_t)n);
	atomic_store(&b->out.moving, 0);
}

static void recover_stage(struct book *b)
{
	if (!atomic_load(&b->out.moving))
		return;
	atomic_store(&b->out.begin,
		     b->out.moving_from + (book_staged(b->out_stage) - b->out.moving_had));
	atomic_store(&b->out.moving, 0);
}

static bool waits(const struct durable_session *t)
{
	const struct book_state *s = book_now(t->book);

	return atomic_load(&t->book->out.begin) < s->out_tail ||
	       book_staged(t->book->out_stage) > 0;
}

/* splice() can't write to a terminal, so write() does. Nothing records how far a write came, and a
 * successor might repeat output. So this agent gets no successor (adopt = 0). */
static ssize_t unload(struct durable_session *t)
{
	struct book *b = t->book;
	ssize_t n = splice(b->out_stage[0], NULL, t->out_fd, NULL, BOOK_PIECE, SPLICE_F_NONBLOCK);
	unsigned char bytes[4096];
	ssize_t len;

	if (n >= 0 || errno != EINVAL)
		return n;
	atomic_store(&b->adopt, 0);
	len = read(b->out_stage[0], bytes, sizeof(bytes));
	for (ssize_t done = 0; done < len; done += n) {
		struct pollfd p = {.fd = t->out_fd, .events = POLLOUT};

		n = write(t->out_fd, bytes + done, (size_t)(len - done));
		if (n < 0 && (errno != EAGAIN || poll(&p, 1, -1) < 0) && errno != EINTR)
			return -1;
		n = n < 0 ? 0 : n;
	}
	return len;
}

static void write_some(struct durable_session *t)
{
	uint64_t until = book_now(t->book)->out_tail;

	while (!t->broken && t->out_fd >= 0) {
		ssize_t n;

		if (atomic_load(&t->book->out.begin) < until)
			load_stage(t, until);
		else if (book_staged(t->book->out_stage) == 0)
			return;
		n = unload(t);
		if (n == 0 || (n < 0 && errno == EAGAIN))
			return;
		if (n < 0 && errno != EINTR)
			t->broken = true; /* reading will tell that it is over */
	}
}

static void want_room(struct durable_session *t);

static void room(void *arg, uint32_t events)
{
	struct durable_session *t = arg;

	write_some(t);
	want_room(t);
}

/* in_fd and out_fd are never the same descriptor, though perhaps the same socket. */
static void want_room(struct durable_session *t)
{
	bool wanted = t->out_fd >= 0 && !t->broken && waits(t);

	if (wanted && t->out.fd < 0)
		loop_add(t->loop, &t->out, t->out_fd, EPOLLOUT, room, t);
	else if (!wanted)
		loop_remove(t->loop, &t->out);
}

void durable_session_push(struct durable_session *t)
{
	if (t->out_fd < 0)
		return;
	write_some(t);
	want_room(t);
	shrink(&t->book->out, &t->out_shrunk, atomic_load(&t->book->out.begin));
}

static void put(struct durable_session *t, const void *bytes, size_t len)
{
	struct book_ring *r = &t->book->out;

	if (t->tail + len - atomic_load(&r->begin) > r->size) {
		/* half a conversation is none */
		log_warn("no room for a message: the head has taken none for too long");
		t->broken = true;
		return;
	}
	memcpy(book_ring_at(r, t->tail), bytes, len);
	t->tail += len;
}

void durable_session_send(struct durable_session *t, const struct message *m)
{
	size_t size;
	unsigned char *frame;

	if (t->out_fd < 0 || t->broken)
		return;
	frame = session_frame(m, &size);
	t->broken = !frame;
	if (frame)
		put(t, frame, size);
	free(frame);
}

void durable_session_greet(struct durable_session *t)
{
	char line[SESSION_GREETING_MAX];
	int n = session_greeting(line);

	put(t, line, (size_t)n);
}

bool durable_session_flush(struct durable_session *t, double seconds)
{
	double until = clock_seconds() + seconds, left;

	write_some(t);
	while (t->out_fd >= 0 && !t->broken && waits(t) && (left = until - clock_seconds()) > 0) {
		struct pollfd p = {.fd = t->out_fd, .events = POLLOUT};

		if (poll(&p, 1, (int)(left * 1e3) + 1) == 1)
			write_some(t);
	}
	return t->out_fd >= 0 && !t->broken && !waits(t);
}

void durable_session_linger(struct durable_session *t, double seconds)
{
	double until = clock_seconds() + seconds, left;
	char bytes[4096];
	ssize_t n = 1;

	while (t->in_fd >= 0 && n != 0 && (left = until - clock_seconds()) > 0) {
		struct pollfd p = {.fd = t->in_fd, .events = POLLIN};

		if (poll(&p, 1, (int)(left * 1e3) + 1) != 1)
			continue;
		n = read(t->in_fd, bytes, sizeof(bytes));
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			n = 0;
	}
}

/* ---- receiving ---- */

/* The stage's contents come into the ring. */
static void unload_in(struct book *b, size_t staged)
{
	uint64_t tail = atomic_load(&b->in.tail), to = atomic_load(&b->in.to);

	book_unstage(b->in_stage, book_ring_at(&b->in, to - staged), staged);
	if (to > tail)
		atomic_store(&b->in.tail, to);
}

/* Bytes that were taken; 0: it is closed, -1: errno. */
static ssize_t take_in(struct durable_session *t)
{
	struct book *b = t->book;
	uint64_t tail = atomic_load(&b->in.tail);
	ssize_t n;

	n = splice(t->in_fd, NULL, b->in_stage[1], NULL, BOOK_PIECE, SPLICE_F_NONBLOCK);
	if (n < 0 && errno == EINVAL) {
		atomic_store(&b->adopt, 0);
		n = read(t->in_fd, book_ring_at(&b->in, tail), BOOK_PIECE);
		if (n > 0) {
			atomic_store(&b->in.to, tail + (uint64_t)n);
			atomic_store(&b->in.tail, tail + (uint64_t)n);
		}
		return n;
	}
	if (n > 0) {
		atomic_store(&b->in.to, tail + (uint64_t)n);
		unload_in(b, (size_t)n);
	}
	return n;
}

static void recover_in(struct book *b)
{
	size_t staged = book_staged(b->in_stage);
	uint64_t tail = atomic_load(&b->in.tail);

	if (atomic_load(&b->in.to) <= tail)
		atomic_store(&b->in.to, tail + staged);
	unload_in(b, staged);
}

/* One message, which is a turn of its own. False: there is none, or it is over. */
static bool take_one(struct durable_session *t)
{
	struct book_ring *r = &t->book->in;
	uint64_t left = atomic_load(&r->tail) - t->begin;
	const unsigned char *at = book_ring_at(r, t->begin);
	struct message m;
	uint32_t size;

	if (left < MESSAGE_HEADER)
		return false;
	memcpy(&size, at, sizeof(size));
	if (size > MESSAGE_MAX || size < sizeof(m.type)) {
		end(t, "it sent something that is no message");
		return false;
	}
	if (left - MESSAGE_HEADER < size)
		return false;
	if (!message_read(at + MESSAGE_HEADER, size, &m)) {
		end(t, "it sent something that is no message");
		return false;
	}
	t->message(t->arg, &m);
	if (!durable_session_is_open(t))
		return false;
	t->begin += MESSAGE_HEADER + size;
	t->taken(t->arg);
	return durable_session_is_open(t);
}

static void ready(void *arg, uint32_t events)
{
	struct durable_session *t = arg;
	ssize_t n = take_in(t);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		end(t, "the connection is closed");
		return;
	}
	while (!t->loop->stop && take_one(t))
		;
	if (durable_session_is_open(t))
		shrink(&t->book->in, &t->in_shrunk, t->begin);
}

/* ---- life ---- */

static bool begin(struct durable_session *t, struct loop *loop, struct book *book, int in_fd,
		  int out_fd)
{
	t->loop = loop;
	t->book = book;
	t->in_fd = in_fd;
	t->out_fd = out_fd;
	t->in.fd = t->out.fd = -1;
	t->broken = false;
	t->in_shrunk = t->begin;
	t->out_shrunk = atomic_load(&book->out.begin);
	fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
	fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
	return loop_add(loop, &t->in, in_fd, EPOLLIN, ready, t);
}

/* What was given up with a session may not be written down yet. */
static uint64_t begin_of_out(const struct book *b, const struct book_state *s)
{
	uint64_t given_up = atomic_load(&b->out.begin);

	return given_up > s->out_tail ? given_up : s->out_tail;
}

bool durable_session_open(struct durable_session *t, struct loop *loop, struct book *book,
			  int in_fd, int out_fd)
{
	t->begin = atomic_load(&book->in.tail);
	t->tail = begin_of_out(book, book_now(book));
	return begin(t, loop, book, in_fd, out_fd);
}

static void again(void *arg)
{
	struct durable_session *t = arg;

	while (durable_session_is_open(t) && !t->loop->stop && take_one(t))
		;
}

bool durable_session_reopen(struct durable_session *t, struct loop *loop, struct book *book,
			    int in_fd, int out_fd, const struct book_state *s)
{
	recover_in(book);
	recover_stage(book);
	t->begin = s->in_begin;
	t->tail = begin_of_out(book, s);
	if (!begin(t, loop, book, in_fd, out_fd))
		return false;
	loop_timer_set(loop, &t->later, 0, again, t);
	return true;
}

void durable_session_close(struct durable_session *t)
{
	struct book *b = t->book;

	if (!durable_session_is_open(t))
		return;
	loop_remove(t->loop, &t->in);
	loop_remove(t->loop, &t->out);
	loop_timer_clear(t->loop, &t->later);
	close(t->out_fd);
	close(t->in_fd);
	t->in_fd = t->out_fd = -1;
	/* of the one that is gone */
	book_unstage(b->in_stage, NULL, book_staged(b->in_stage));
	book_unstage(b->out_stage, NULL, book_staged(b->out_stage));
	t->begin = atomic_load(&b->in.tail);
	atomic_store(&b->out.begin, t->tail);
}
