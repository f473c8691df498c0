/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of other nodes as plain descriptors. On the other node runs `hale device serve --root DIR`;
 * paths are below that folder. Link with -lhale_rio.
 *
 *     int fd = rio_open("node2", "results/state.bin", RIO_WRITE);
 *     write(fd, ...);                any library may do so
 *     if (rio_close(fd) != 0)        0: all of it is in the file
 *         fprintf(stderr, "%s\n", rio_why());
 *
 * After seed 000, section 2.6.1 (snapifyio_open). docs/rio.md tells how it works. */
#ifndef HALE_RIO_H
#define HALE_RIO_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
	RIO_READ = 1,
	RIO_WRITE = 2, /* a new file, or in place of one that is there */
	RIO_WHOLE = 4, /* with RIO_WRITE: the file appears when rio_close says so, and not before */
	RIO_SYNC = 8,  /* with RIO_WRITE: it is on the disk when rio_close returns */
};

/* Opens path (at most 1,023 bytes, relative) on node for reading or for writing; not for both.
 *
 * node is a name that HALE_DEVICES knows ("node2=10.0.0.2:7420,node3=…"), "host:port", or a host
 * whose daemon listens at port 7420. Returns a descriptor, which close(2), dup(2) and fork(2) treat
 * as any other; -1 with errno: what the file system there says (ENOENT, EACCES, ENOSPC, …), EACCES
 * for a path that leaves the folder, EHOSTUNREACH, ECONNREFUSED, ETIMEDOUT when the node does not
 * answer, EPERM when its daemon has another key.
 *
 * read() returns 0 only when the whole file has been read; when the node is lost or its disk fails,
 * it returns -1 (ECONNRESET or ETIMEDOUT) or the error. write() returns -1 (ECONNRESET, ETIMEDOUT,
 * EPIPE with SIGPIPE at the third time) when the other side has given up; rio_error() says why.
 * After close(2), without rio_close, the file is kept as it was written, as with a local one.
 *
 * Blocks until the file is open there. Any thread may call it. */
int rio_open(const char *node, const char *path, int mode);

/* Closes a descriptor of rio_open, and waits until the other side has written all of it. -1: errno
 * is the other side's (ENOSPC, EDQUOT, EIO, …), ECONNRESET or ETIMEDOUT when nobody can know, and
 * nothing has taken the place of the old file; EBADF: no descriptor of rio_open. */
int rio_close(int fd);

/* What the other side has to say of an open descriptor now: 0, or an errno. */
int rio_error(int fd);

/* A sentence about the last error of this thread in these functions; never NULL. */
const char *rio_why(void);

#ifdef __cplusplus
}
#endif
#endif
