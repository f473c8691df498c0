// SPDX-License-Identifier: BSD-3-Clause
#include "image/live/live_wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "image/hash.h"

enum { NS_PER_MS = 1000000 };

/* A pipe without a reader raises SIGPIPE. All signals are blocked where we write, so it waits, and
 * must not meet the program later; one that waited before is the program's own. */
static long write_quietly(int fd, struct iovec *iov, int count)
{
	const sys_set_t pipe_bit = SYS_SET_BIT(SIGPIPE);
	const struct timespec at_once = {0};
	sys_set_t before = 0;
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)count};
	long k = sys(SYS_sendmsg, fd, &msg, MSG_NOSIGNAL);
	if (k != -ENOTSOCK)
		return k;
	sys(SYS_rt_sigpending, &before, sizeof(before));
	k = sys(SYS_writev, fd, iov, count);
	if (k == -EPIPE && !(before & pipe_bit))
		sys(SYS_rt_sigtimedwait, &pipe_bit, NULL, &at_once, sizeof(pipe_bit));
	return k;
}

static int wait_for(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd p = {.fd = fd, .events = events};
	for (;;) {
		long ms = -1;
		if (deadline_ns) {
			uint64_t now = clock_ns();
			if (now >= deadline_ns)
				return -ETIMEDOUT;
			ms = (long)((deadline_ns - now) / NS_PER_MS + 1);
		}
		long k = sys(SYS_poll, &p, 1, ms > 1 << 30 ? 1 << 30 : ms);
		if (k > 0)
			return 0;
		if (k < 0 && k != -EINTR)
			return (int)k;
	}
}

int live_write(int fd, struct iovec *iov, int count)
{
	while (count) {
		long k = write_quietly(fd, iov, count);
		if (k == -EINTR)
			continue;
		if (k == -EAGAIN && !wait_for(fd, POLLOUT, 0))
			continue;
		if (k < 0)
			return k == -ECONNRESET ? -EPIPE : (int)k;
		while (count && (size_t)k >= iov->iov_len) {
			k -= (long)iov->iov_len;
			iov++;
			count--;
		}
		if (count && k) {
			iov->iov_base = (char *)iov->iov_base + k;
			iov->iov_len -= (size_t)k;
		}
	}
	return 0;
}

bool live_answers(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);
	return !sys(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_STREAM;
}

void live_sign(struct frame *f, const void *table)
{
	f->magic = FRAME_MAGIC;
	f->table_sum = hash64(table, f->table_len);
	f->sum = hash64(f, offsetof(struct frame, sum));
}

bool live_head_good(const struct frame *f)
{
	bool known = (f->kind > FRAME_HEADER && f->kind < FRAME_KINDS) ||
		     (f->kind >= LIVE_BEGIN && f->kind < LIVE_KINDS_END);
	bool has_data = f->kind == FRAME_PAGES || f->kind == FRAME_CONTENT || f->kind == LIVE_OFFER;
	bool packed = f->kind == FRAME_PAGES && f->compress == IMAGE_LZ4;
	return f->magic == FRAME_MAGIC && f->sum == hash64(f, offsetof(struct frame, sum)) &&
	       known && (packed || f->compress == IMAGE_PLAIN) && !f->pad &&
	       f->table_len <= FRAME_TABLE_MAX && f->raw_len <= FRAME_DATA_MAX &&
	       (packed ? f->data_len < f->raw_len : f->data_len == f->raw_len) &&
	       (has_data || !f->data_len);
}

int live_send(int fd, enum live_kind kind, const void *table, size_t len)
{
	struct frame f = {.kind = (uint16_t)kind, .count = 1, .table_len = len};
	f.data_sum = hash64(NULL, 0);
	live_sign(&f, table);
	struct iovec iov[2] = {{&f, sizeof(f)}, {(void *)(uintptr_t)table, len}};
	return live_write(fd, iov, 2);
}

int live_say(int fd, enum live_kind kind, hale_status_t code, const char *text)
{
	struct live_word word = {.code = (int32_t)code};
	if (text)
		strncpy(word.text, text, sizeof(word.text) - 1);
	return live_send(fd, kind, &word, sizeof(word));
}

int live_read(int fd, void *buf, size_t len, uint64_t deadline_ns)
{
	char *p = buf;
	while (len) {
		int rc = deadline_ns ? wait_for(fd, POLLIN, deadline_ns) : 0;
		if (rc)
			return rc;
		long k = sys(SYS_read, fd, p, len);
		if (k == -EINTR)
			continue;
		if (k == -EAGAIN) {
			if ((rc = wait_for(fd, POLLIN, deadline_ns)))
				return rc;
			continue;
		}
		if (k == 0 || k == -ECONNRESET)
			return -EPIPE;
		if (k < 0)
			return (int)k;
		p += k;
		len -= (size_t)k;
	}
	return 0;
}

int live_listen(int fd, struct live_word *word, uint64_t deadline_ns)
{
	struct frame f = {0};
	int rc = live_read(fd, &f, sizeof(f), deadline_ns);
	if (rc)
		return rc;
	if (!live_head_good(&f) || f.kind < LIVE_COMMIT || f.table_len != sizeof(*word))
		return -EPROTO;
	rc = live_read(fd, word, sizeof(*word), deadline_ns);
	if (rc)
		return rc;
	word->text[LIVE_TEXT - 1] = 0;
	return hash64(word, sizeof(*word)) == f.table_sum ? (int)f.kind : -EPROTO;
}
