/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's part: two connections that name one token become those of a server, which is
 * followed to its end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

/* The second connection is handed over to whoever waits for it, or will. */
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

/* The second connection; -1: it does not come. */
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

/* The server has the daemon's environment, which names the node's drivers; no layers of ours. */
static char **environment(void)
{
	static const char *const without[] = {
	    "OPENCL_LAYERS=", "LD_PRELOAD=", "HALE_RANK=", "HALE_AGENT="};
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
	const int from[] = {requests, data, life};
	posix_spawn_file_actions_t act;
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid = -1;

	if (!env)
		return -1;
	posix_spawn_file_actions_init(&act);
	/* all out of the way first: each may have another one's number */
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&act, from[i], 1000 + i);
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&act, 1000 + i, NET_FD_REQUESTS + i);
	posix_spawn_file_actions_addclosefrom_np(&act, NET_FD_DAEMON + 1);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	errno = posix_spawn(&pid, served.program, &act, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&act);
	free(env);
	return errno ? -1 : pid;
}

/* Until it has ended; it is made to when its relay hangs up. */
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

static void serve(int fd, int data)
{
	struct wire_head joined = {.op = NET_JOINED};
	int life[2]; /* the server sees the daemon's end at it */
	pid_t pid = -1;

	if (pipe2(life, O_CLOEXEC) != 0) {
		serve_refuse(fd, errno, "the node has no descriptors left: %s", strerror(errno));
		return;
	}
	/* first: behind it the server speaks */
	if (wire_say(fd, &joined, NULL, 0) == 0) {
		pid = spawn(fd, data, life[0]);
		if (pid < 0)
			log_warn("device: %.200s can't be started: %s", served.program,
				 strerror(errno));
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
