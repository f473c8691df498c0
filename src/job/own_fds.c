// SPDX-License-Identifier: BSD-3-Clause
#include "job/own_fds.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fds {
	int *fd;
	size_t count, room;
};

static void add(struct fds *f, int fd)
{
	if (f->count == f->room) {
		size_t room = f->room ? 2 * f->room : 32;
		int *more = realloc(f->fd, room * sizeof(*more));
		if (!more)
			return;
		f->fd = more;
		f->room = room;
	}
	f->fd[f->count++] = fd;
}

static bool of_the_network(int dir, const char *name)
{
	static const char *const begins[] = {"socket:",
					     "anon_inode:[eventpoll]",
					     "anon_inode:[eventfd]",
					     "anon_inode:[timerfd]",
					     "anon_inode:[infinibandevent]",
					     "/dev/infiniband/"};
	char link[64];
	ssize_t n = readlinkat(dir, name, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (!strncmp(link, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static void add_network(struct fds *f, pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return;
	for (struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.' && of_the_network(dirfd(dir), e->d_name))
			add(f, atoi(e->d_name));
	closedir(dir);
}

int *own_fds(pid_t pid, const struct mailbox *m, size_t *count)
{
	struct fds f = {NULL, 0, 0};
	for (int i = 0; i < MAILBOX_OWN_FDS; i++)
		if (m->own_fd[i] >= 0)
			add(&f, m->own_fd[i]);
	if (atomic_load(&m->net_open))
		add_network(&f, pid);
	*count = f.count;
	return f.fd;
}
