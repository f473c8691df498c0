// SPDX-License-Identifier: BSD-3-Clause
/* Standard streams: pipes to the agent, a terminal, whatever 0, 1 and 2 were when the program
 * began, and all duplicates of them. A restored process gets those of the process it was started
 * as. Streams that are redirected to regular files count as files. */
#include <string.h>

#include "image/fd/fd.h"

/* /dev/null as standard input is no stream: anybody can open it. */
static bool is_terminal(const struct fd_probe *p)
{
	return !strncmp(p->link, "/dev/pts/", 9) || !strncmp(p->link, "/dev/tty", 8) ||
	       !strcmp(p->link, "/dev/console");
}

/* What the program itself has put there before it executed another one: a document of a shell
 * script, or what a child writes. Then it is no stream from outside. */
static bool is_inside(const struct fd_table *t, const struct fd_probe *p)
{
	struct fd_unix u;
	if (S_ISFIFO(p->st.st_mode))
		return fd_pipe_is_inside(t, p);
	return S_ISSOCK(p->st.st_mode) && fd_unix_ask(p->st.st_ino, &u) && u.peer &&
	       fd_tree_has_socket(t, u.peer);
}

static int stream_of(const struct fd_table *t, const struct fd_probe *p)
{
	if (S_ISREG(p->st.st_mode) || S_ISDIR(p->st.st_mode) ||
	    (S_ISCHR(p->st.st_mode) && !is_terminal(p)))
		return -1;
	int found = -1;
	for (int i = 0; i < 3; i++) {
		if (!t->stream[i].inode || t->stream[i].inode != p->st.st_ino ||
		    t->stream[i].device != p->st.st_dev)
			continue;
		/* one terminal is often all three */
		if (i == p->fd)
			return i;
		if (found < 0)
			found = i;
	}
	return found;
}

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	return stream_of(t, p) >= 0 && !is_inside(t, p);
}

static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	r->a = (uint64_t)stream_of(t, p);
	return fd_add_text(t, r, p->link, strlen(p->link) + 1)
		   ? HALE_OK
		   : error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
}

static int open_stream(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	int fd = r->a < 3 ? f->stream[r->a] : -1;
	if (fd >= 0)
		return (int)sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, f->floor);
	long null = sys(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		error_set(err, HALE_ERR_SYSTEM, "can't open /dev/null");
	return (int)null;
}

const struct fd_ops fd_stream = {.kind = FD_STREAM,
				 .name = "standard stream",
				 .match = match,
				 .capture = capture,
				 .open = open_stream};
