/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/output/output_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "head/output/output_daemon.h"

#define AGAIN_SECONDS 0.05
#define FULL_SECONDS  1.0
#define FULL_AT_END   10.0

/* A terminal that polls as writable may have room for one byte; the rest would wait until somebody
 * looks at it again, however long a connection stands still. Its descriptor is shared with others
 * and so can't be made not to wait. Opened once more it is ours. */
static int open_own_terminal(int fd)
{
	char path[32];

	if (!isatty(fd))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void output_writer_init(struct output_writer *o, struct loop *loop, int fd, const char *name,
			void (*drained)(void *arg), void *arg)
{
	struct stat st;

	*o = (struct output_writer){
	    .fd = fd, .name = name, .loop = loop, .source.fd = -1, .drained = drained, .arg = arg};
	if (fstat(fd, &st) != 0)
		o->broken = true; /* closed from the start: that was somebody's wish */
	else
		o->plain_file = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
	o->pipe = !o->broken && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
	o->terminal = open_own_terminal(fd);
	if (o->terminal >= 0)
		o->fd = o->terminal;
}

void output_writer_fini(struct output_writer *o)
{
	loop_remove(o->loop, &o->source);
	loop_timer_clear(o->loop, &o->again);
	if (o->terminal >= 0)
		close(o->terminal);
	o->terminal = -1;
	free(o->bytes);
	o->bytes = NULL;
	o->begin = o->end = o->cap = 0;
}

static bool ends_job(const struct output_writer *o)
{
	return o->closed && (o->policy == CLOSED_END || (o->policy == CLOSED_DEFAULT && o->pipe));
}

static void give_up(struct output_writer *o)
{
	int error = errno;

	o->broken = true;
	o->begin = o->end = 0;
	o->full = false;
	o->lost = o->plain_file && o->policy != CLOSED_CONTINUE;
	if (ends_job(o))
		o->closed(o->arg, o);
	else if (o->lost)
		log_warn("the rest of the program's %s is lost: %s", o->name, strerror(error));
	else if (strcmp(o->name, "stderr") != 0)
		log_warn("nobody takes the program's %s any more (%s); the job goes on without it",
			 o->name, strerror(error));
}

/* A disk may have room again, and what is not written until then is missing for good. */
static bool waits_for_disk(struct output_writer *o)
{
	if ((errno != ENOSPC && errno != EDQUOT) || o->policy == CLOSED_CONTINUE)
		return false;
	if (!o->full)
		log_warn("no room for the program's %s (%s): the job waits for some", o->name,
			 strerror(errno));
	o->full = o->stuck = true;
	return true;
}

static bool has_room(const struct output_writer *o)
{
	struct pollfd p = {.fd = o->fd, .events = POLLOUT};

	return o->plain_file || (poll(&p, 1, 0) == 1 && (p.revents & ~POLLNVAL));
}

/* The descriptor is shared with others and so stays blocking. A pipe that polls as writable takes
 * PIPE_BUF bytes without blocking. */
static bool write_some(struct output_writer *o)
{
	size_t len = o->end - o->begin;
	ssize_t n;

	if (!o->plain_file && len > PIPE_BUF)
		len = PIPE_BUF;
	n = write(o->fd, o->bytes + o->begin, len);
	/* it polls as writable with room for one byte, and a newline takes two */
	o->stuck = n < 0 && errno == EAGAIN;
	if (n < 0 && errno != EINTR && errno != EAGAIN) {
		if (!waits_for_disk(o))
			give_up(o);
		return false;
	}
	if (n > 0) {
		o->begin += (size_t)n;
		o->full = false;
	}
	return n > 0;
}

/* True: a frame has gone. */
static bool send_frame(struct output_writer *o)
{
	struct output_writer_frame f;
	int sent;

	memcpy(&f, o->bytes + o->begin, sizeof(f));
	sent = output_daemon_send(o->output_daemon, o->which, f.rank, f.position,
				  o->bytes + o->begin + sizeof(f), f.len);
	if (sent > 0) {
		o->begin += sizeof(f) + f.len;
		o->passed(o->arg, o->which, f.rank, f.position);
	} else if (sent == OUTPUT_DAEMON_UNREAD) {
		o->closed(o->arg, o);
		o->begin += sizeof(f) + f.len; /* it would be dropped there */
	} else if (sent < 0) {
		loop_remove(o->loop, &o->source);
		o->output_daemon_gone(o->arg);
	}
	return sent > 0 || sent == OUTPUT_DAEMON_UNREAD;
}

static void pump(struct output_writer *o)
{
	o->stuck = false;
	while (o->begin < o->end)
		if (o->output_daemon ? !send_frame(o) : !has_room(o) || !write_some(o))
			break;
	if (o->begin == o->end)
		o->begin = o->end = 0;
	if (o->was_full && !output_writer_full(o)) {
		o->was_full = false;
		o->drained(o->arg);
	}
}

static void wait_for_room(struct output_writer *o);

static void ready(void *arg, uint32_t events)
{
	struct output_writer *o = arg;

	pump(o);
	wait_for_room(o);
}

static void ready_again(void *arg)
{
	ready(arg, 0);
}

static void wait_for_room(struct output_writer *o)
{
	if (o->begin == o->end || o->stuck)
		loop_remove(o->loop, &o->source);
	if (o->begin == o->end)
		return;
	if (o->stuck)
		loop_timer_set(o->loop, &o->again, o->full ? FULL_SECONDS : AGAIN_SECONDS,
			       ready_again, o);
	else if (o->source.fd < 0)
		loop_add(o->loop, &o->source,
			 o->output_daemon ? o->output_daemon->out[o->which - 1] : o->fd, EPOLLOUT,
			 ready, o);
}

static bool make_room(struct output_writer *o, size_t len)
{
	if (o->begin > 0 && (o->begin == o->end || o->cap - o->end < len)) {
		memmove(o->bytes, o->bytes + o->begin, o->end - o->begin);
		o->end -= o->begin;
		o->begin = 0;
	}
	if (o->cap - o->end < len) {
		size_t cap = o->cap ? o->cap : 65536;
		while (cap - o->end < len)
			cap *= 2;
		char *more = realloc(o->bytes, cap);
		if (!more)
			return false;
		o->bytes = more;
		o->cap = cap;
	}
	return true;
}

static void start(struct output_writer *o)
{
	pump(o);
	wait_for_room(o);
}

void output_writer_write(struct output_writer *o, const void *bytes, size_t len)
{
	if (o->broken || len == 0)
		return;
	if (!make_room(o, len)) {
		output_writer_flush(o);
		if (o->broken || !make_room(o, len))
			return;
	}
	memcpy(o->bytes + o->end, bytes, len);
	o->end += len;
	start(o);
}

void output_writer_write_of(struct output_writer *o, uint32_t rank, uint64_t position,
			    const void *bytes, size_t len)
{
	const char *at = bytes;

	if (!o->output_daemon) {
		output_writer_write(o, bytes, len);
		return;
	}
	while (len > 0 && make_room(o, sizeof(struct output_writer_frame) + OUTPUT_DAEMON_PIECE)) {
		uint32_t n = len < OUTPUT_DAEMON_PIECE ? (uint32_t)len : OUTPUT_DAEMON_PIECE;
		struct output_writer_frame f = {
		    .position = position - (len - n), .rank = rank, .len = n};

		memcpy(o->bytes + o->end, &f, sizeof(f));
		memcpy(o->bytes + o->end + sizeof(f), at, n);
		o->end += sizeof(f) + n;
		at += n;
		len -= n;
	}
	start(o);
}

void output_writer_keep(struct output_writer *o, struct output_daemon *output_daemon, int which)
{
	o->output_daemon = output_daemon;
	o->which = which;
	o->broken = false;
}

void output_writer_keep_on(struct output_writer *o)
{
	loop_remove(o->loop, &o->source);
	start(o);
}

bool output_writer_full(struct output_writer *o)
{
	bool full = o->end - o->begin > OUTLET_FULL;

	o->was_full = o->was_full || full;
	return full;
}

bool output_writer_empty(const struct output_writer *o)
{
	return o->begin == o->end;
}

void output_writer_flush(struct output_writer *o)
{
	double until = clock_seconds() + FULL_AT_END;

	while (o->begin < o->end && !o->broken) {
		struct pollfd p = {.fd = o->output_daemon ? o->output_daemon->out[o->which - 1]
							  : o->fd,
				   .events = POLLOUT};

		if (poll(&p, 1, -1) != 1)
			continue;
		if (!o->output_daemon && !write_some(o) && o->stuck)
			usleep((useconds_t)(AGAIN_SECONDS * 1e6));
		if (o->full && clock_seconds() > until) {
			errno = ENOSPC;
			o->plain_file = true;
			give_up(o);
		}
		if (o->output_daemon && !send_frame(o) &&
		    o->output_daemon->out[o->which - 1] < 0)
			break;
	}
	o->begin = o->end = 0;
}
