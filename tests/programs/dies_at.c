/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded: an agent is killed before or after one of its system calls, counted from its first
 * one. Who is to die, as HALE_DIES says: "FOLDER". In FOLDER a file "N" stands for one death at
 * call N; the agent that comes there first takes it away, and dies. Calls count from when there is
 * a file FOLDER/begin on. */
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
		is_agent = strcmp(name, "hale-agent") == 0;
	}
	if (!is_agent)
		return;
	error = errno;
	snprintf(begin, sizeof(begin), "%s/begin", folder);
	if (calls > 0 || syscall(SYS_access, begin, F_OK) == 0)
		calls++;
	if (calls > 0 && is_to_die(folder, calls))
		syscall(SYS_kill, pid, SIGKILL);
	errno = error;
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
AROUND(int, close, (int a), (a))
AROUND(pid_t, waitpid, (pid_t a, int *b, int c), (a, b, c))
