/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of whole files to and from a node: parts of the file side by side, each block with a hash
 * that both sides compute. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "hale/rio.h"
#include "rio/files.h"
#include "rio/rio.h"
#include "rio/session.h"

struct copy_part {
	const struct rio_copy *copy;
	const struct rio_session *session;
	pthread_t thread;
	int near; /* descriptor */
	uint64_t offset, size, sum;
	int error;
	char why[400];
};

static int part_fail(struct copy_part *p, const char *what)
{
	return rio_fail(errno, "%s: %s", what, strerror(errno));
}

static int part_send(struct copy_part *p, int fd, char *buffer)
{
	for (uint64_t done = 0; done < p->size;) {
		size_t len = p->size - done < RIO_BUFFER ? (size_t)(p->size - done) : RIO_BUFFER;

		for (size_t have = 0; have < len;) {
			ssize_t n = pread(p->near, buffer + have, len - have,
					  (off_t)(p->offset + done + have));

			if (n <= 0) {
				errno = n == 0 ? EIO : errno;
				return part_fail(p, n == 0 ? "the file has become shorter"
							   : p->copy->near);
			}
			have += (size_t)n;
		}
		p->sum += wire_sum(buffer, len, p->offset + done);
		if (wire_say_bytes(fd, buffer, len) != 0)
			return part_fail(p, "the node stopped taking the file");
		done += len;
	}
	shutdown(fd, SHUT_WR);
	return 0;
}

static int part_take(struct copy_part *p, int fd, char *buffer)
{
	for (uint64_t done = 0; done < p->size;) {
		size_t len = p->size - done < RIO_BUFFER ? (size_t)(p->size - done) : RIO_BUFFER;

		if (wire_hear_bytes(fd, buffer, len) != 0)
			return part_fail(p, "the node stopped sending the file");
		p->sum += wire_sum(buffer, len, p->offset + done);
		for (size_t put = 0; put < len;) {
			ssize_t n = pwrite(p->near, buffer + put, len - put,
					   (off_t)(p->offset + done + put));

			if (n < 0)
				return part_fail(p, p->copy->near);
			put += (size_t)n;
		}
		done += len;
	}
	return 0;
}

static int part_copy(struct copy_part *p)
{
	int rc = -1, error = 0, fd;
	char *buffer =
	    mmap(NULL, RIO_BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffer == MAP_FAILED)
		return part_fail(p, "no memory for a buffer");
	fd = rio_session_join(p->session, p->offset, p->size);
	if (fd >= 0)
		rc = p->copy->to_node ? part_send(p, fd, buffer) : part_take(p, fd, buffer);
	error = errno;
	if (fd >= 0)
		close(fd);
	munmap(buffer, RIO_BUFFER);
	errno = error;
	return rc;
}

static void *part_run(void *arg)
{
	struct copy_part *p = arg;

	if (part_copy(p) != 0) {
		p->error = errno;
		snprintf(p->why, sizeof(p->why), "%s", rio_why());
	}
	return NULL;
}

/* All parts, side by side; *sum: of all blocks' hashes. */
static int copy_parts(const struct rio_copy *c, const struct rio_session *s, int near,
		      uint64_t size, uint64_t *sum)
{
	struct copy_part part[RIO_STREAMS_MAX] = {0};
	uint64_t blocks = (size + RIO_BUFFER - 1) / RIO_BUFFER;
	unsigned n = blocks < c->streams ? (unsigned)blocks : c->streams, started = 0;
	int error = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t from = blocks * i / n * RIO_BUFFER, to = blocks * (i + 1) / n * RIO_BUFFER;

		part[i] = (struct copy_part){.copy = c, .session = s, .near = near, .offset = from};
		part[i].size = (to < size ? to : size) - from;
	}
	for (; started < n; started++)
		if (pthread_create(&part[started].thread, NULL, part_run, &part[started]) != 0) {
			error = rio_fail(EAGAIN, "no thread for another stream");
			break;
		}
	*sum = 0;
	for (unsigned i = 0; i < started; i++) {
		pthread_join(part[i].thread, NULL);
		*sum += part[i].sum;
		if (part[i].error && !error)
			error = rio_fail(part[i].error, "%s", part[i].why);
	}
	return error;
}

static int copy_to(struct rio_copy *c, int near, const struct stat *st)
{
	unsigned flags = RIO_F_WRITE | RIO_F_WHOLE | RIO_F_CHECKED | (c->sync ? RIO_F_SYNC : 0);
	struct rio_session s;
	uint64_t sum;
	int rc, error;

	c->bytes = (uint64_t)st->st_size;
	if (rio_session_open(&s, c->node, c->far, flags, st->st_mode & 0777) != 0)
		return -1;
	rc = copy_parts(c, &s, near, c->bytes, &sum);
	error = errno;
	if (rc == 0)
		rc = rio_session_ask(s.control, RIO_FINISH, c->bytes, sum, NULL);
	else if (rio_session_ask(s.control, RIO_ASK, 0, 0, NULL) == 0)
		errno = error; /* the node knows of nothing: the reason is on this side */
	error = errno;
	close(s.control);
	errno = error;
	return rc;
}

static int copy_from(struct rio_copy *c, struct rio_file *f)
{
	struct wire_head state;
	struct rio_session s;
	uint64_t sum;
	int rc, error;

	if (rio_session_open(&s, c->node, c->far, RIO_F_CHECKED, 0) != 0)
		return -1;
	c->bytes = s.size;
	rc = copy_parts(c, &s, f->fd, s.size, &sum);
	if (rc == 0)
		rc = rio_session_ask(s.control, RIO_ASK, 0, 0, &state);
	if (rc == 0 && (state.sum != sum || state.number != c->bytes))
		rc = rio_fail(EBADMSG, "what came is not what was sent");
	error = errno;
	close(s.control);
	errno = error;
	if (rc == 0 && (error = rio_file_keep(f, c->sync)) != 0)
		rc = rio_fail(error, "'%.200s': %s", c->near, strerror(error));
	return rc;
}

int rio_copy(struct rio_copy *c)
{
	struct rio_file f;
	struct stat st;
	int rc, error, near;

	if (!c->to_node) {
		mode_t mask = umask(0);

		umask(mask);
		error = rio_file_write(&f, AT_FDCWD, c->near, 0666 & ~mask, false);
		if (error)
			return rio_fail(error, "'%.200s': %s", c->near, strerror(error));
		rc = copy_from(c, &f);
		error = errno;
		rio_file_close(&f);
		errno = error;
		return rc;
	}
	near = open(c->near, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (near < 0 || fstat(near, &st) != 0)
		rc = rio_fail(errno, "'%.200s': %s", c->near, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = rio_fail(EINVAL, "'%.200s' is no regular file", c->near);
	else
		rc = copy_to(c, near, &st);
	error = errno;
	if (near >= 0)
		close(near);
	errno = error;
	return rc;
}
