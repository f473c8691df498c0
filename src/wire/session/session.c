/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"

enum { READ_MIN = 65536, NOISE_MAX = 65536 };

static const char greeting[] = "hale-agent ";

static void session_end(struct session *s, const char *why)
{
	void (*over)(void *arg, const char *why) = s->over;

	session_close(s);
	over(s->arg, why);
}

void session_close(struct session *s)
{
	loop_remove(s->loop, &s->in);
	loop_remove(s->loop, &s->out);
	if (s->out_fd >= 0 && s->out_fd != s->in_fd)
		close(s->out_fd);
	if (s->in_fd >= 0)
		close(s->in_fd);
	s->in_fd = s->out_fd = -1;
	free(s->got);
	free(s->waiting);
	s->got = s->waiting = NULL;
	s->got_len = s->got_cap = s->begin = s->end = s->cap = 0;
}

/* ---- sending ---- */

static void write_some(struct session *s)
{
	while (s->begin < s->end && !s->broken) {
		ssize_t n = write(s->out_fd, s->waiting + s->begin, s->end - s->begin);

		if (n > 0)
			s->begin += (size_t)n;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			s->broken = true; /* reading will tell that it is over */
	}
	s->begin = s->end = 0;
}

static void want_room(struct session *s);

static void room(void *arg, uint32_t events)
{
	struct session *s = arg;

	write_some(s);
	want_room(s);
}

/* One descriptor for both ways can be in the loop once only. */
static void want_room(struct session *s)
{
	bool wanted = s->begin < s->end && !s->broken;

	if (s->in_fd == s->out_fd)
		loop_change(s->loop, &s->in, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
	else if (wanted && s->out.fd < 0)
		loop_add(s->loop, &s->out, s->out_fd, EPOLLOUT, room, s);
	else if (!wanted)
		loop_remove(s->loop, &s->out);
}

static bool reserve(unsigned char **bytes, size_t *cap, size_t need)
{
	size_t size = *cap ? *cap : READ_MIN;
	unsigned char *more;

	if (need <= *cap)
		return true;
	while (size < need)
		size *= 2;
	more = realloc(*bytes, size);
	if (!more)
		return false;
	*bytes = more;
	*cap = size;
	return true;
}

static void send_bytes(struct session *s, const void *bytes, size_t len)
{
	if (s->out_fd < 0 || s->broken)
		return;
	if (s->begin > 0 && s->cap - s->end < len) {
		memmove(s->waiting, s->waiting + s->begin, s->end - s->begin);
		s->end -= s->begin;
		s->begin = 0;
	}
	if (!reserve(&s->waiting, &s->cap, s->end + len)) {
		/* half a conversation is none */
		log_warn("out of memory for a message");
		s->broken = true;
		return;
	}
	memcpy(s->waiting + s->end, bytes, len);
	s->end += len;
	write_some(s);
	want_room(s);
}

unsigned char *session_frame(const struct message *m, size_t *size)
{
	unsigned char *frame = message_write(m, size);

	if (!frame)
		log_warn("cannot send a message (%s): it is too long, or there is no memory",
			 message_name(m->type));
	return frame;
}

void session_send(struct session *s, const struct message *m)
{
	size_t size;
	unsigned char *frame;

	if (s->out_fd < 0 || s->broken)
		return;
	frame = session_frame(m, &size);
	s->broken = !frame;
	if (frame)
		send_bytes(s, frame, size);
	free(frame);
}

void session_flush(struct session *s, double seconds)
{
	double until = clock_seconds() + seconds, left;

	while (s->begin < s->end && !s->broken && (left = until - clock_seconds()) > 0) {
		struct pollfd p = {.fd = s->out_fd, .events = POLLOUT};

		if (poll(&p, 1, (int)(left * 1e3) + 1) == 1)
			write_some(s);
	}
}

/* ---- receiving ---- */

/* Takes whole frames from [at, len): what is left over. -1: the session is over. */
static ssize_t take_frames(struct session *s, const unsigned char *at, size_t len)
{
	size_t done = 0;

	while (len - done >= MESSAGE_HEADER) {
		struct message m;
		uint32_t size;

		memcpy(&size, at + done, sizeof(size));
		if (size > MESSAGE_MAX || size < sizeof(m.type)) {
			session_end(s, "it sent something that is no message");
			return -1;
		}
		if (len - done - MESSAGE_HEADER < size)
			break;
		if (!message_read(at + done + MESSAGE_HEADER, size, &m)) {
			session_end(s, "it sent something that is no message");
			return -1;
		}
		done += MESSAGE_HEADER + size;
		s->message(s->arg, &m);
		if (!session_is_open(s))
			return -1;
	}
	return (ssize_t)done;
}

/* The greeting is a line; what stands before it is a login shell's. */
static ssize_t take_greeting(struct session *s, const unsigned char *at, size_t len)
{
	const unsigned char *line = memmem(at, len, greeting, sizeof(greeting) - 1);
	const unsigned char *newline = line ? memchr(line, '\n', len - (size_t)(line - at)) : NULL;
	char wanted[SESSION_GREETING_MAX], why[2 * SESSION_GREETING_MAX];

	if (!newline) {
		if (len <= NOISE_MAX)
			return 0;
		session_end(s, "what answers there is no agent of hale");
		return -1;
	}
	snprintf(wanted, sizeof(wanted), "%s%d %s", greeting, MESSAGE_VERSION, HALE_VERSION);
	if ((size_t)(newline - line) != strlen(wanted) ||
	    memcmp(line, wanted, strlen(wanted)) != 0) {
		snprintf(why, sizeof(why), "it has another version of hale: '%.*s', not '%s'",
			 (int)(newline - line < SESSION_GREETING_MAX ? newline - line
								     : SESSION_GREETING_MAX),
			 (const char *)line, wanted);
		session_end(s, why);
		return -1;
	}
	s->greeted = true;
	return newline + 1 - at;
}

/* Handlers may close the session: what they look at is ours until they are through. */
static void take_all(struct session *s)
{
	unsigned char *bytes = s->got;
	size_t len = s->got_len, cap = s->got_cap, done = 0;
	ssize_t n = 0;

	s->got = NULL;
	s->got_len = s->got_cap = 0;
	if (!s->greeted)
		n = take_greeting(s, bytes, len);
	if (n >= 0 && s->greeted) {
		done = (size_t)n;
		n = take_frames(s, bytes + done, len - done);
	}
	if (n < 0) {
		free(bytes);
		return;
	}
	done += (size_t)n;
	memmove(bytes, bytes + done, len - done);
	s->got = bytes;
	s->got_cap = cap;
	s->got_len = len - done;
}

static void ready(void *arg, uint32_t events)
{
	struct session *s = arg;
	ssize_t n;

	if (events & EPOLLOUT)
		room(s, events);
	if (!(events & ~(uint32_t)EPOLLOUT))
		return;
	if (!reserve(&s->got, &s->got_cap, s->got_len + READ_MIN)) {
		session_end(s, "there is no memory for what it sends");
		return;
	}
	n = read(s->in_fd, s->got + s->got_len, s->got_cap - s->got_len);
	if (n > 0) {
		s->got_len += (size_t)n;
		take_all(s);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		s->by_peer = n == 0 || errno == ECONNRESET;
		session_end(s, "the connection is closed");
	}
}

/* ---- life ---- */

bool session_open(struct session *s, struct loop *loop, int in_fd, int out_fd)
{
	s->loop = loop;
	s->in_fd = in_fd;
	s->out_fd = out_fd;
	s->in.fd = s->out.fd = -1;
	s->greeted = true;
	s->broken = s->by_peer = false;
	fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
	fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
	return loop_add(loop, &s->in, in_fd, EPOLLIN, ready, s);
}

void session_greet(struct session *s)
{
	char line[SESSION_GREETING_MAX];
	int n = session_greeting(line);

	send_bytes(s, line, (size_t)n);
}

int session_greeting(char *line)
{
	return snprintf(line, SESSION_GREETING_MAX, "%s%d %s\n", greeting, MESSAGE_VERSION,
			HALE_VERSION);
}

void session_expect_greeting(struct session *s)
{
	s->greeted = false;
}
