// SPDX-License-Identifier: BSD-3-Clause
#include "minimigrate.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "image/live/live_wire.h"

int outlet_of[2];

/* ---- output: through pipes, as an agent has it ---- */

static struct outlet {
	int to, pipe[2];
	pthread_t thread;
} outlets[2] = {{.to = 1}, {.to = 2}};

static void *outlet_run(void *arg)
{
	struct outlet *o = arg;
	char buf[4096];
	for (ssize_t k; (k = read(o->pipe[0], buf, sizeof(buf))) > 0;)
		if (write(o->to, buf, (size_t)k) != k)
			break;
	return NULL;
}

void outlets_open(void)
{
	for (int i = 0; i < 2; i++)
		if (pipe2(outlets[i].pipe, O_CLOEXEC) ||
		    pthread_create(&outlets[i].thread, NULL, outlet_run, &outlets[i]))
			die("pipe");
		else
			outlet_of[i] = outlets[i].pipe[1];
}

void outlets_close(void)
{
	for (int i = 0; i < 2; i++) {
		close(outlets[i].pipe[1]);
		pthread_join(outlets[i].thread, NULL);
	}
}

/* ---- the stream ---- */

struct pump {
	int source, sink;
};

static void *pump_run(void *arg)
{
	struct pump *p = arg;
	static char buf[1 << 20];
	for (;;) {
		struct pollfd f[2] = {{.fd = p->source, .events = POLLIN},
				      {.fd = p->sink, .events = POLLIN}};
		poll(f, 2, -1);
		int from = f[1].revents ? p->sink : p->source;
		ssize_t k = read(from, buf, sizeof(buf));
		if (k <= 0)
			break;
		for (ssize_t at = 0, w; at < k; at += w)
			if ((w = send(from == p->sink ? p->source : p->sink, buf + at,
				      (size_t)(k - at), MSG_NOSIGNAL)) <= 0)
				goto out;
	}
out:
	/* who relays says that the sink is dead when it has seen it; here: whoever closed has died,
	 * or has said why before */
	live_say(p->source, LIVE_DEAD, HALE_OK, NULL);
	close(p->source);
	close(p->sink);
	free(p);
	return NULL;
}

void hand_over(int source, int sink)
{
	char byte = relay ? 'R' : 'D';
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	if (!relay) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control);
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &source, sizeof(int));
	}
	sendmsg(sink, &h, MSG_NOSIGNAL);
	if (!relay) {
		close(source);
		close(sink);
		return;
	}
	struct pump *p = malloc(sizeof(*p));
	pthread_t thread;
	*p = (struct pump){source, sink};
	if (pthread_create(&thread, NULL, pump_run, p))
		die("thread");
	pthread_detach(thread);
}
