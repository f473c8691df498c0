/* SPDX-License-Identifier: BSD-3-Clause */
/* Warm standbys: processes of the program that wait to become a rank, so that a rank that comes to
 * this node need not be started (docs/nodes.md, 'Spares are warm'). They know nothing of any rank.
 * The supervisor orders one where it would have launched a process that becomes an image. It
 * launches a process after all when no standby is there, or the one that it has ordered is late.
 *
 *   STARTED ─ says READY ─▶ READY ─ order ─▶ ORDERED ─ says TAKEN ─▶ a rank's process
 *      └──── dies ─▶ gone ◀─ dies ─┘            └─ late, or dies ─▶ killed; a process is launched
 *
 * A standby that was sent SIGKILL executes nothing of the program any more. So no two processes
 * become one rank. */
#include <errno.h>
#include <poll.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/packets.h"
#include "agent/supervisor/supervisor_private.h"
#include "launch/launch.h"
#include "launch/environment.h"
#include "node/proto.h"

enum { TAKEN_MS = 200, REAP_MS = 1000 };

static void forget(struct ward *w, size_t i)
{
	close(w->sinks[i].fd);
	w->sinks[i] = w->sinks[--w->sink_count];
	atomic_store(&w->book->standing, (uint32_t)w->sink_count);
}

static void end_one(struct ward *w, size_t i)
{
	kill(w->sinks[i].pid, SIGKILL);
	forget(w, i);
}

void ward_stand_end(struct ward *w)
{
	while (w->sink_count > 0)
		end_one(w, w->sink_count - 1);
}

void ward_stand_finish(struct ward *w)
{
	bool any = w->sink_count > 0;

	ward_stand_end(w);
	for (int ms = 0; any && ms < REAP_MS && waitpid(-1, NULL, WNOHANG) >= 0; ms++)
		poll(NULL, 0, 1);
	free(w->sinks);
	w->sinks = NULL;
	w->sink_cap = 0;
}

bool ward_stand_ended(struct ward *w, pid_t pid)
{
	for (size_t i = 0; i < w->sink_count; i++) {
		if (w->sinks[i].pid == pid) {
			forget(w, i);
			return true;
		}
	}
	return false;
}

/* ---- starting ---- */

static bool add(struct ward *w, pid_t pid, int fd)
{
	if (w->sink_count == w->sink_cap) {
		size_t cap = w->sink_cap ? 2 * w->sink_cap : 16;
		struct ward_sink *more = realloc(w->sinks, cap * sizeof(*more));

		if (!more)
			return false;
		w->sinks = more;
		w->sink_cap = cap;
	}
	w->sinks[w->sink_count++] = (struct ward_sink){.pid = pid, .fd = fd};
	atomic_store(&w->book->standing, (uint32_t)w->sink_count);
	return true;
}

void ward_stand_start(struct ward *w, struct launch *l)
{
	int ends[2] = {-1, -1}, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct error err;
	pid_t pid = 0;

	if (null >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
		l->fd[0] = ends[1];
		l->fd[1] = l->fd[2] = null;
		if (launch_process(l, &pid, &err) != HALE_OK)
			log_info("no process stands ready: %s", err.text);
		close(ends[1]);
	}
	if (null >= 0)
		close(null);
	if (pid > 0 && add(w, pid, ends[0]))
		return;
	if (pid > 0)
		kill(pid, SIGKILL);
	if (ends[0] >= 0)
		close(ends[0]);
}

/* ---- using ---- */

/* It has come to where it waits, and its program has not been replaced since. */
static bool is_ready(const struct ward_sink *s, const char *path)
{
	char link[64], is[PATH_MAX], said = 0;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)s->pid);
	n = readlink(link, is, sizeof(is) - 1);
	is[n > 0 ? n : 0] = '\0';
	return strcmp(is, path) == 0 && packet_recv(s->fd, &said, 1, MSG_DONTWAIT) == 1 &&
	       said == PROTO_STAND_READY;
}

static size_t texts_of(char *const *env, char *to, size_t cap)
{
	size_t len = 0;

	for (char *const *e = env; *e; e++) {
		size_t n = strlen(*e) + 1;

		if (n > cap - len)
			return 0;
		memcpy(to + len, *e, n);
		len += n;
	}
	return len;
}

static bool order(int fd, const struct launch *l)
{
	union {
		char bytes[CMSG_SPACE(sizeof(l->fd))];
		struct cmsghdr align;
	} control = {0};
	char *text = malloc(PROTO_STAND_MAX);
	struct iovec iov = {.iov_base = text};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	bool sent;

	iov.iov_len = text ? texts_of(l->env, text, PROTO_STAND_MAX) : 0;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(l->fd));
	memcpy(CMSG_DATA(c), l->fd, sizeof(l->fd));
	sent =
	    iov.iov_len > 0 && sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)iov.iov_len;
	free(text);
	return sent;
}

static bool taken(struct ward *w, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char said = 0;

	if (poll(&p, 1, TAKEN_MS) <= 0) {
		ward_look_at_lease(w);
		return false;
	}
	return packet_recv(fd, &said, 1, MSG_DONTWAIT) == 1 && said == PROTO_STAND_TAKEN;
}

/* It is announced as a launched one announces itself, before it can do anything, and then the lease
 * is looked at. */
static bool use(struct ward *w, size_t i, const struct launch *l)
{
	const struct ward_sink s = w->sinks[i];

	if (l->cpus && sched_setaffinity(s.pid, sizeof(*l->cpus), l->cpus) != 0)
		return false;
	environment_set_pid(l->env, s.pid);
	atomic_store(l->group, s.pid);
	if (atomic_load(l->over) || !order(s.fd, l) || !taken(w, s.fd)) {
		kill(s.pid, SIGKILL);
		atomic_store(l->group, 0);
		return false;
	}
	return true;
}

bool ward_stand_take(struct ward *w, const struct launch *l, pid_t *pid)
{
	for (size_t i = w->sink_count; i-- > 0;) {
		if (!is_ready(&w->sinks[i], l->path))
			continue;
		if (!use(w, i, l)) { /* the others would be as late */
			ward_stand_end(w);
			return false;
		}
		*pid = w->sinks[i].pid;
		forget(w, i);
		return true;
	}
	return false;
}
