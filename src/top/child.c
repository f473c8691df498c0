/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "top/top.h"

void top_child_init(struct top_child *c)
{
	*c = (struct top_child){.fd = -1};
}

void top_child_end(struct top_child *c)
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

bool top_child_start(struct top_child *c, char *const argv[])
{
	int ends[2];

	top_child_end(c);
	top_child_init(c);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	c->pid = fork();
	if (c->pid == 0) {
		int nothing = open("/dev/null", O_RDONLY);

		prctl(PR_SET_PDEATHSIG, SIGTERM);
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
static void make_room(struct top_child *c)
{
	if (c->len < sizeof(c->text) - 1024)
		return;
	memmove(c->text, c->text + c->len / 2, c->len - c->len / 2);
	c->len -= c->len / 2;
}

bool top_child_read(struct top_child *c)
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

const char *top_child_last(const struct top_child *c, size_t n)
{
	size_t at = c->len;

	if (at > 0 && c->text[at - 1] == '\n')
		at--;
	for (; at > 0; at--)
		if (c->text[at - 1] == '\n' && --n == 0)
			break;
	return c->text + at;
}
