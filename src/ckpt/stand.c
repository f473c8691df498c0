// SPDX-License-Identifier: BSD-3-Clause
/* HALE_SINK=stand: a process that is to become a rank's image, and does not know yet which. Its
 * program and libraries are mapped and relocated; here, before anything of them has run, it waits
 * on its stdin for an order of its supervisor (node/proto.h). Then it is as if it had just been
 * started. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ckpt/rank_private.h"
#include "ckpt/stand.h"
#include "node/proto.h"

enum { STREAMS = 3, DIGITS = 16 };

static const char oom_path[] = "/proc/self/oom_score_adj";

/* Whoever is needed least goes first when memory is short. Returns what it was before. */
static ssize_t oom_first(char before[DIGITS])
{
	static const char first[] = "1000";
	int fd = open(oom_path, O_RDWR | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, before, DIGITS) : -1;
	if (n > 0 && pwrite(fd, first, sizeof(first) - 1, 0) < 0)
		n = 0;
	if (fd >= 0)
		close(fd);
	return n;
}

static void oom_as(const char before[DIGITS], ssize_t n)
{
	int fd = n > 0 ? open(oom_path, O_WRONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && write(fd, before, (size_t)n) != n)
		log_info("oom_score_adj stays at 1000");
	if (fd >= 0)
		close(fd);
}

/* An order: strings of an environment, and what are to be 0, 1, 2. Its length; 0: the supervisor is
 * gone. */
static size_t hear(char *text, int fd[STREAMS])
{
	union {
		char bytes[CMSG_SPACE(STREAMS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = text, .iov_len = PROTO_STAND_MAX};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t n;
	do
		n = recvmsg(STDIN_FILENO, &m, 0);
	while (n < 0 && errno == EINTR);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(STREAMS * sizeof(int)) ||
	    text[n - 1])
		return 0;
	memcpy(fd, CMSG_DATA(c), STREAMS * sizeof(int));
	return (size_t)n;
}

/* The strings stay where they are. */
static bool environment_is(char *text, size_t len)
{
	size_t count = 0, i = 0;
	for (size_t at = 0; at < len; at += strlen(text + at) + 1)
		count++;
	char **list = mmap(NULL, (count + 1) * sizeof(*list), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (list == MAP_FAILED)
		return false;
	for (size_t at = 0; at < len; at += strlen(text + at) + 1)
		list[i++] = text + at;
	environ = list;
	return true;
}

/* They come as numbers above 2, since these are open. */
static bool streams_are(const int fd[STREAMS])
{
	bool good = true;
	for (int i = 0; i < STREAMS; i++) {
		good = dup2(fd[i], i) == i && good;
		close(fd[i]);
	}
	return good;
}

/* What ps shows: until then PROTO_STAND_NAME, by which it was started; the image brings all of it.
 */
static void call_it(char *argv0, const char *name)
{
	size_t len = strlen(argv0), n = strlen(name);
	prctl(PR_SET_NAME, name);
	memset(argv0, 0, len);
	memcpy(argv0, name, n < len ? n : len);
}

const char *stand_for_order(char *argv0)
{
	static const char ready = PROTO_STAND_READY, taken = PROTO_STAND_TAKEN;
	char before[DIGITS], name[DIGITS];
	int fd[STREAMS];
	char *text = mmap(NULL, PROTO_STAND_MAX, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (text == MAP_FAILED)
		_exit(1);
	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, PROTO_STAND_NAME);
	ssize_t n = oom_first(before);
	if (send(STDIN_FILENO, &ready, 1, MSG_NOSIGNAL) != 1)
		_exit(1);
	size_t len = hear(text, fd);
	int order = len ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STREAMS) : -1;
	if (order < 0)
		_exit(0);
	oom_as(before, n);
	call_it(argv0, name);
	if (!streams_are(fd) || !environment_is(text, len) ||
	    send(order, &taken, 1, MSG_NOSIGNAL) != 1)
		_exit(1);
	close(order);
	const char *spec = getenv("HALE_SINK");
	return spec ? spec : "";
}
