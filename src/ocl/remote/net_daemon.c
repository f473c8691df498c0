/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's part: two connections with the same token become those of a server, which the daemon
 * starts, and ends when its relay hangs up. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "ocl/remote/net.h"
#include "rio/serve.h"

/* A first connection that waits for the second one with its token. */
struct net_pair {
	struct net_pair *next;
	unsigned char token[RIO_TOKEN];
	int data; /* -1: not there yet */
};

static struct {
	char program[4096];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct net_pair *waiting;
} served = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

void net_serve_begin(const char *program)
{
	snprintf(served.program, sizeof(served.program), "%s", program);
}

static struct timespec deadline(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += wire_timeout_ms() / 1000 + 1;
	return t;
}

/* Gives the second connection to the thread of the first one, which may still have to come. False:
 * there was none in time. */
static bool hand_over(int fd, const struct net_join *j)
{
	struct timespec until = deadline();
	struct net_pair *p;
	int rc = 0;

	pthread_mutex_lock(&served.lock);
	do {
		for (p = served.waiting; p; p = p->next)
			if (p->data < 0 && memcmp(p->token, j->token, RIO_TOKEN) == 0)
				break;
		if (!p)
			rc = pthread_cond_timedwait(&served.changed, &served.lock, &until);
	} while (!p && rc == 0);
	if (p)
		p->data = fd;
	pthread_cond_broadcast(&served.changed);
	pthread_mutex_unlock(&served.lock);
	return p != NULL;
}

/* Waits for the second connection. -1: it did not come in time. */
static int await_data(const struct net_join *j)
{
	struct timespec until = deadline();
	struct net_pair p = {.next = NULL, .data = -1}, **at;
	int rc = 0;

	memcpy(p.token, j->token, RIO_TOKEN);
	pthread_mutex_lock(&served.lock);
	p.next = served.waiting;
	served.waiting = &p;
	pthread_cond_broadcast(&served.changed);
	while (p.data < 0 && rc == 0)
		rc = pthread_cond_timedwait(&served.changed, &served.lock, &until);
	for (at = &served.waiting; *at != &p;)
		at = &(*at)->next;
	*at = p.next;
	pthread_mutex_unlock(&served.lock);
	return p.data;
}

/* The daemon's environment, which names the node's drivers, without layers and ranks of ours. NULL:
 * out of memory. The strings are the daemon's. */
static char **environment(void)
{
	static const char *const without[] = {
	    "OPENCL_LAYERS=", "LD_PRELOAD=", "HALE_RANK=", "HALE_AGENT=", "HALE_SINK="};
	size_t n = 0, kept = 0;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + 1, sizeof(*env));
	for (size_t i = 0; env && i < n; i++) {
		bool out = false;

		for (size_t k = 0; k < ARRAY_LEN(without); k++)
			out |= strncmp(environ[i], without[k], strlen(without[k])) == 0;
		if (!out)
			env[kept++] = environ[i];
	}
	return env;
}

static pid_t spawn(int requests, int data, int life)
{
	char *argv[] = {"hale-opencl-server", "--network", NULL}, **env = environment();
	const int fds[] = {requests, data, life}; /* NET_FD_REQUESTS, NET_FD_DATA, NET_FD_DAEMON */
	pid_t pid = env ? serve_spawn(served.program, argv, env, fds, ARRAY_LEN(fds)) : -1;

	free(env);
	return pid;
}

/* Waits until the server has ended, and ends it when its relay hangs up. */
static void follow(pid_t pid, int requests)
{
	struct pollfd f[2] = {{.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN},
			      {.fd = requests, .events = POLLRDHUP}};
	bool alone = false;
	int status = 0;

	while (f[0].fd >= 0 && !f[0].revents) {
		if (poll(f, 2, -1) < 0)
			f[0].revents = f[1].revents = 0;
		if (f[1].revents) {
			alone = true;
			f[1].fd = -1;
			f[1].revents = 0;
			kill(pid, SIGKILL);
		}
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (f[0].fd >= 0)
		close(f[0].fd);
	if (!alone && WIFSIGNALED(status))
		log_warn("device: the OpenCL server %d has ended with signal %d", (int)pid,
			 WTERMSIG(status));
}

/* In place of a server that could not be started. */
static void say_not_ready(int fd, int error)
{
	struct net_frame f = {.kind = NET_READY, .status = 2};
	char why[300];

	snprintf(why, sizeof(why), "can't start %.200s: %s", served.program, strerror(error));
	log_warn("device: this node %s", why);
	f.size = strlen(why);
	if (wire_say_bytes(fd, &f, sizeof(f)) == 0)
		wire_say_bytes(fd, why, f.size);
}

static void serve(int fd, int data)
{
	struct wire_head joined = {.op = NET_JOINED};
	int life[2]; /* the pipe closes with the daemon: then the server ends */
	pid_t pid = -1;

	if (pipe2(life, O_CLOEXEC) != 0) {
		serve_refuse(fd, errno, "the node has no descriptors left: %s", strerror(errno));
		return;
	}
	/* The daemon answers before it starts the server, whose first frame is behind that. */
	if (wire_say(fd, &joined, NULL, 0) == 0) {
		pid = spawn(fd, data, life[0]);
		if (pid < 0)
			say_not_ready(fd, errno);
	}
	close(life[0]);
	if (pid > 0)
		follow(pid, fd);
	close(life[1]);
}

bool net_serve(int fd, const struct wire_head *h, const void *payload)
{
	struct net_join j;
	int data;

	if (h->bytes != sizeof(j))
		return false;
	memcpy(&j, payload, sizeof(j));
	if (j.which > NET_DATA)
		return false;
	if (j.which == NET_DATA)
		return hand_over(fd, &j);
	if (!served.program[0]) {
		serve_refuse(fd, EOPNOTSUPP,
			     "hale was built there without OpenCL, so it has no OpenCL devices");
		return false;
	}
	data = await_data(&j);
	if (data < 0) {
		serve_refuse(fd, ETIMEDOUT, "the second connection did not come");
		return false;
	}
	serve(fd, data);
	close(data);
	return false;
}
