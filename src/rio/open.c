/* SPDX-License-Identifier: BSD-3-Clause */
/* rio_open and rio_close: a descriptor is the connection that its bytes take; beside it stands the
 * control connection of its file, in a table of this process. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cancel.h"
#include "hale/rio.h"
#include "rio/rio.h"
#include "rio/session.h"

enum { OPEN_MAX_RIO = 1024 };

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct open_stream {
	int fd, control;
	ino_t inode; /* of fd: after close(2) its number may be another file's */
	bool write;
} open_table[OPEN_MAX_RIO];
static unsigned open_count; /* entries in use, at the front */

static ino_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* Under the lock: forgets those whose descriptor was closed by close(2). */
static void drop_stale(void)
{
	for (unsigned i = 0; i < open_count;) {
		if (inode_of(open_table[i].fd) == open_table[i].inode) {
			i++;
			continue;
		}
		close(open_table[i].control);
		open_table[i] = open_table[--open_count];
	}
}

static bool remember(int fd, int control, bool write)
{
	UNCANCELLED;
	bool room;

	pthread_mutex_lock(&open_lock);
	drop_stale();
	room = open_count < OPEN_MAX_RIO;
	if (room)
		open_table[open_count++] = (struct open_stream){fd, control, inode_of(fd), write};
	pthread_mutex_unlock(&open_lock);
	return room;
}

/* A copy of fd's entry, which is dropped if it is to be taken. */
static bool find(int fd, bool take, struct open_stream *found)
{
	UNCANCELLED;
	bool there = false;

	pthread_mutex_lock(&open_lock);
	drop_stale();
	for (unsigned i = 0; i < open_count && !there; i++) {
		if (open_table[i].fd != fd)
			continue;
		there = true;
		*found = open_table[i];
		if (take)
			open_table[i] = open_table[--open_count];
	}
	pthread_mutex_unlock(&open_lock);
	return there;
}

int rio_open(const char *node, const char *path, int mode)
{
	bool write = mode & RIO_WRITE;
	unsigned flags = (write ? RIO_F_WRITE : 0) | (mode & RIO_WHOLE ? RIO_F_WHOLE : 0) |
			 (mode & RIO_SYNC ? RIO_F_SYNC : 0);
	struct rio_session s;
	mode_t mask;
	int fd, error;

	if (!node || !path || (mode & ~(RIO_READ | RIO_WRITE | RIO_WHOLE | RIO_SYNC)) ||
	    write == !!(mode & RIO_READ) || (!write && flags))
		return rio_fail(EINVAL, "rio_open takes a node, a path, and either RIO_READ or "
					"RIO_WRITE, this with RIO_WHOLE and RIO_SYNC if wanted");
	mask = umask(0);
	umask(mask);
	if (rio_session_open(&s, node, path, flags, 0666 & ~mask) != 0)
		return -1;
	fd = rio_session_join(&s, 0, RIO_REST);
	if (fd >= 0 && !remember(fd, s.control, write)) {
		close(fd);
		fd = rio_fail(EMFILE, "%d streams are open in this process", OPEN_MAX_RIO);
	}
	error = errno;
	if (fd < 0)
		close(s.control);
	else
		fcntl(fd, F_SETFD, 0);
	errno = error;
	return fd;
}

int rio_error(int fd)
{
	struct open_stream s;

	if (!find(fd, false, &s))
		return rio_fail(EBADF, "descriptor %d is none of rio_open", fd), EBADF;
	return rio_session_ask(s.control, RIO_ASK, 0, 0, NULL) == 0 ? 0 : errno;
}

int rio_close(int fd)
{
	struct open_stream s;
	int rc, error;

	if (!find(fd, true, &s))
		return rio_fail(EBADF, "descriptor %d is none of rio_open", fd);
	if (s.write)
		shutdown(fd, SHUT_WR); /* also where children have it */
	else
		shutdown(fd, SHUT_RDWR);
	rc = s.write ? rio_session_ask(s.control, RIO_FINISH, RIO_REST, 0, NULL) : 0;
	error = errno;
	close(fd);
	close(s.control);
	errno = error;
	return rc;
}
