/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "control/follow.h"

void follow_init(struct follow *c)
{
	*c = (struct follow){.fd = -1};
}

void follow_end(struct follow *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (c->pid > 0) {
		kill(c->pid, SIGTERM);
		waitpid(c->pid, NULL, 0);
	}
	c->pid = 0;
}

bool follow_start(struct follow *c, char *const argv[])
{
	int ends[2];

	follow_end(c);
	follow_init(c);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	c->pid = fork();
	if (c->pid == 0) {
		int nothing = open("/dev/null", O_RDONLY);

		sigset_t none;

		prctl(PR_SET_PDEATHSIG, SIGTERM);
		sigemptyset(&none); /* a server waits for its signals, and ignores some: not this one */
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		dup2(nothing, STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		execvp(argv[0], argv);
		dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	close(ends[1]);
	if (c->pid < 0) {
		c->pid = 0;
		close(ends[0]);
		return false;
	}
	c->fd = ends[0];
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	return true;
}

/* The older half makes room. */
static void make_room(struct follow *c)
{
	if (c->len < sizeof(c->text) - 1024)
		return;
	memmove(c->text, c->text + c->len / 2, c->len - c->len / 2);
	c->len -= c->len / 2;
}

bool follow_read(struct follow *c)
{
	ssize_t n;

	if (c->fd < 0)
		return false;
	make_room(c);
	n = read(c->fd, c->text + c->len, sizeof(c->text) - 1 - c->len);
	if (n < 0)
		return false;
	c->len += (size_t)n;
	c->text[c->len] = '\0';
	if (n > 0)
		return true;
	close(c->fd);
	c->fd = -1;
	waitpid(c->pid, &c->status, 0);
	c->pid = 0;
	c->ended = true;
	return true;
}

const char *follow_last(const struct follow *c, size_t n)
{
	size_t at = c->len;

	if (at > 0 && c->text[at - 1] == '\n')
		at--;
	for (; at > 0; at--)
		if (c->text[at - 1] == '\n' && --n == 0)
			break;
	return c->text + at;
}
