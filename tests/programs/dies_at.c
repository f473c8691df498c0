/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded: an agent is killed before or after one of its system calls, counted from its first
 * one. Who is to die, as HALE_DIES says: "FOLDER". In FOLDER a file "N" stands for one death at
 * call N; the agent that comes there first takes it away, and dies. Calls count while there is a
 * file FOLDER/begin, which FOLDER/at-knock becomes when somebody connects to an agent, FOLDER/at-go
 * when a head is about to write down that ranks change their nodes. With HALE_DIES_HEAD in the
 * environment it is heads that die. While there is FOLDER/no-fork.PID that supervisor can't make
 * processes, while there is FOLDER/slow-fork those that heads make begin a second later. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t whose;
static int is_agent;
static long calls;

static int is_to_die(const char *folder, long at)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%ld", folder, at);
	return syscall(SYS_unlink, path) == 0;
}

static void tick(void)
{
	const char *folder = getenv("HALE_DIES");
	pid_t pid = (pid_t)syscall(SYS_getpid);
	char name[32] = "", begin[512];
	int error;

	if (!folder)
		return;
	if (pid != whose) {
		whose = pid;
		is_agent = 0;
		calls = 0;
	}
	if (!is_agent) {
		prctl(PR_GET_NAME, name);
		is_agent = strcmp(name, getenv("HALE_DIES_HEAD") ? "hale" : "hale-agent") == 0;
	}
	if (!is_agent)
		return;
	error = errno;
	snprintf(begin, sizeof(begin), "%s/begin", folder);
	calls = syscall(SYS_access, begin, F_OK) == 0 ? calls + 1 : 0;
	if (calls > 0 && is_to_die(folder, calls))
		syscall(SYS_kill, pid, SIGKILL);
	errno = error;
}

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	static int (*next)(int, struct sockaddr *, socklen_t *, int);
	const char *folder = getenv("HALE_DIES");
	char name[32] = "", from[512], to[512];
	int error, got;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "accept4");
	got = next(fd, address, len, flags);
	error = errno;
	prctl(PR_GET_NAME, name);
	if (folder && got >= 0 && strcmp(name, "hale-agent") == 0) {
		snprintf(from, sizeof(from), "%s/at-knock", folder);
		snprintf(to, sizeof(to), "%s/begin", folder);
		rename(from, to);
	}
	tick();
	errno = error;
	return got;
}

pid_t fork(void)
{
	static pid_t (*next)(void);
	const char *folder = getenv("HALE_DIES");
	char name[32] = "", path[512];
	pid_t pid;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "fork");
	prctl(PR_GET_NAME, name);
	snprintf(path, sizeof(path), "%s/no-fork.%d", folder ? folder : "", (int)getpid());
	if (folder && strcmp(name, "hale-supervisor") == 0 && access(path, F_OK) == 0) {
		errno = EAGAIN;
		return -1;
	}
	snprintf(path, sizeof(path), "%s/slow-fork", folder ? folder : "");
	if (!folder || strcmp(name, "hale") != 0 || access(path, F_OK) != 0)
		return next();
	pid = next();
	if (pid == 0)
		sleep(1);
	return pid;
}

static int has_move(const char *path)
{
	static char text[1 << 20];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : (ssize_t)syscall(SYS_read, fd, text, sizeof(text) - 1);

	if (fd >= 0)
		syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = '\0';
	return strstr(path, "/head.") && strstr(text, "\"move\"");
}

int rename(const char *from, const char *to)
{
	static int (*next)(const char *, const char *);
	const char *folder = getenv("HALE_DIES");
	char at_go[512], begin[512];
	int result;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "rename");
	snprintf(at_go, sizeof(at_go), "%s/at-go", folder ? folder : "");
	snprintf(begin, sizeof(begin), "%s/begin", folder ? folder : "");
	if (folder && access(at_go, F_OK) == 0 && has_move(from))
		next(at_go, begin);
	tick();
	result = next(from, to);
	tick();
	return result;
}

#define AROUND(type, name, parameters, arguments)                                                  \
	type name parameters                                                                       \
	{                                                                                          \
		static type(*next) parameters;                                                     \
		type result;                                                                       \
		if (!next)                                                                         \
			*(void **)&next = dlsym(RTLD_NEXT, #name);                                 \
		tick();                                                                            \
		result = next arguments;                                                           \
		tick();                                                                            \
		return result;                                                                     \
	}

AROUND(ssize_t, splice, (int a, off64_t *b, int c, off64_t *d, size_t e, unsigned f),
       (a, b, c, d, e, f))
AROUND(ssize_t, read, (int a, void *b, size_t c), (a, b, c))
AROUND(ssize_t, write, (int a, const void *b, size_t c), (a, b, c))
AROUND(ssize_t, recv, (int a, void *b, size_t c, int d), (a, b, c, d))
AROUND(ssize_t, sendmsg, (int a, const struct msghdr *b, int c), (a, b, c))
AROUND(ssize_t, recvmsg, (int a, struct msghdr *b, int c), (a, b, c))
AROUND(int, epoll_ctl, (int a, int b, int c, struct epoll_event *d), (a, b, c, d))
AROUND(int, epoll_wait, (int a, struct epoll_event *b, int c, int d), (a, b, c, d))
AROUND(int, kill, (pid_t a, int b), (a, b))
AROUND(int, link, (const char *a, const char *b), (a, b))
AROUND(int, close, (int a), (a))
AROUND(pid_t, waitpid, (pid_t a, int *b, int c), (a, b, c))
