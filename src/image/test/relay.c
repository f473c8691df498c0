// SPDX-License-Identifier: BSD-3-Clause
#include "image/test/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "image/live/live_wire.h"

size_t relay_resign_at;
unsigned relay_packed;

enum { SLOW_BYTES = 2 }; /* in a microsecond: slower than any compressor, also beside other load */

struct relay {
	struct fixture *f;
	const struct relay_fault *fault;
	unsigned seen;
	bool runs; /* RUNS was passed on */
	char *buf;
};

static bool read_all(int fd, char *p, size_t len)
{
	for (ssize_t k; len; p += k, len -= (size_t)k)
		if ((k = read(fd, p, len)) <= 0)
			return false;
	return true;
}

bool relay_write(int fd, const char *p, size_t len)
{
	for (ssize_t k; len; p += k, len -= (size_t)k)
		if ((k = send(fd, p, len, MSG_NOSIGNAL)) <= 0)
			return false;
	return true;
}

static void end_one(pid_t pid, int *status)
{
	if (*status >= 0)
		return;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, status, 0), pid);
}

/* Another process of the job, to a file that it shares with the source. */
static void append(const struct fixture *f)
{
	char path[600];
	snprintf(path, sizeof(path), "%s/shared_log", f->dir);
	int fd = open(path, O_WRONLY | O_APPEND);
	assert_true(fd >= 0 && write(fd, "another\n", 8) == 8);
	close(fd);
}

static void resign(struct relay *r, size_t at)
{
	struct frame f;
	memcpy(&f, r->buf, sizeof(f));
	if (f.table_len)
		r->buf[sizeof(f) + at % f.table_len] ^= (char)(0x81 >> at % 7);
	live_sign(&f, r->buf + sizeof(f));
	memcpy(r->buf, &f, sizeof(f));
}

static bool do_deed(struct relay *r, const struct frame *frame)
{
	char *data = r->buf + sizeof(*frame) + frame->table_len;
	switch (r->fault->deed) {
	case KILL_SINK:
		end_one(r->f->sink, &r->f->sink_status);
		return false;
	case KILL_SOURCE:
		end_one(r->f->source, &r->f->source_status);
		return false;
	case SLOW:
		return true;
	case CUT:
	case SWALLOW:
		return false;
	case APPEND:
		append(r->f);
		return true;
	case FLIP_HEAD:
		r->buf[9] ^= 4;
		return true;
	case FLIP_TABLE:
		r->buf[sizeof(*frame) + frame->table_len / 2] ^= 4;
		return true;
	case RESIGN:
		resign(r, relay_resign_at);
		return true;
	case FLIP_DATA:
		data[frame->data_len / 2] ^= 4;
		return true;
	default:
		return true;
	}
}

/* One frame; false: this way is at its end. */
static bool pass_on(struct relay *r, int way)
{
	struct frame frame;
	int from = way == TO_SINK ? r->f->source_fd : r->f->sink_fd;
	int to = way == TO_SINK ? r->f->sink_fd : r->f->source_fd;
	if (!read_all(from, (char *)&frame, sizeof(frame)))
		return false;
	memcpy(r->buf, &frame, sizeof(frame));
	size_t len = sizeof(frame) + frame.table_len + frame.data_len;
	if (!read_all(from, r->buf + sizeof(frame), len - sizeof(frame)))
		return false;
	const struct relay_fault *x = r->fault;
	relay_packed += frame.kind == FRAME_PAGES && frame.compress != IMAGE_PLAIN;
	if (x->deed == SLOW && x->kind == frame.kind)
		usleep((unsigned)(frame.data_len / SLOW_BYTES));
	if (x->deed != PASS && x->way == way && x->kind == frame.kind && r->seen++ == x->nth) {
		bool on = do_deed(r, &frame);
		if (x->deed == SWALLOW)
			return true;
		if (!on)
			return false;
	}
	if (!relay_write(to, r->buf, len))
		return false;
	if (frame.kind == LIVE_RUNS)
		r->runs = true;
	return true;
}

void relay(struct fixture *f, const struct relay_fault *fault, bool tells)
{
	struct relay r = {.f = f, .fault = fault, .buf = malloc(80 << 20)};
	assert_non_null(r.buf);
	for (bool on = true; on;) {
		struct pollfd p[2] = {{.fd = f->source_fd, .events = POLLIN},
				      {.fd = f->sink_fd, .events = POLLIN}};
		assert_true(poll(p, 2, 60000) > 0);
		/* what the sink said last counts, although the source has gone */
		if (p[1].revents)
			on = pass_on(&r, TO_SOURCE);
		else if (p[0].revents)
			on = pass_on(&r, TO_SINK);
	}
	close(f->sink_fd);
	if (tells && !r.runs) {
		int status;
		/* it ends by itself, when nobody speaks to it any more */
		if (f->sink_status < 0 && waitpid(f->sink, &status, 0) == f->sink)
			f->sink_status = status;
		live_say(f->source_fd, LIVE_DEAD, HALE_OK, NULL);
	}
	close(f->source_fd);
	free(r.buf);
}
