// SPDX-License-Identifier: BSD-3-Clause
#include "ckpt/migrate_stream.h"
#include "node/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Memory of the program goes through it: nobody else's socket will do. */
static hale_status_t owner_check(int fd, const char *name, struct error *err)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || peer.uid != geteuid())
		return error_set(
		    err, HALE_ERR_LINK,
		    "%s belongs to another user: the program's memory isn't sent there", name);
	return HALE_OK;
}

static int connect_to(const char *name, struct error *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	size_t n = strlen(name + 1);
	if (n == 0 || n >= sizeof(sa.sun_path)) {
		error_set(err, HALE_ERR_ARGUMENT, "%s is no name of a socket", name);
		return -1;
	}
	memcpy(sa.sun_path + 1, name + 1, n);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || syscall(SYS_connect, fd, (struct sockaddr *)&sa,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n))) {
		error_sys(err, HALE_ERR_LINK, "can't connect to %s for the copy's stream", name);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (owner_check(fd, name, err) == HALE_OK)
		return fd;
	close(fd);
	return -1;
}

/* One byte and perhaps a descriptor with it. The stream, or -1; *byte is 0 if nobody says one. */
static int take_stream(int fd, char *byte)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t k;
	*byte = 0;
	do
		k = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (k < 0 && errno == EINTR);
	struct cmsghdr *c = k == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (k == 1 && *byte == MIGRATE_RELAY && !c)
		return fd;
	close(fd);
	if (k != 1 || (*byte != MIGRATE_DIRECT && *byte != MIGRATE_GIVEN) || !c ||
	    c->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int migrate_stream_source(const char *name, bool given, struct error *err)
{
	char byte = 0;
	if (name[0] == '@') {
		int fd = connect_to(name, err);
		if (fd >= 0 && given && (fd = take_stream(fd, &byte)) < 0)
			error_set(err, HALE_ERR_PROTOCOL, "%s has not given the copy's stream",
				  name);
		return fd;
	}
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		error_sys(err, errno == ENOSPC ? HALE_ERR_STORE_FULL : HALE_ERR_STORE,
			  "can't create %s for the copy's stream", name);
	return fd;
}

int migrate_stream_sink(const char *name, bool *direct, struct error *err)
{
	char byte;
	*direct = false;
	if (name[0] != '@') {
		int fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			error_sys(err, HALE_ERR_IMAGE_MISSING, "can't open the stream %s", name);
		return fd;
	}
	int fd = connect_to(name, err);
	if (fd < 0)
		return -1;
	fd = take_stream(fd, &byte);
	if (fd < 0)
		error_set(err, HALE_ERR_PROTOCOL, "%s has closed, or isn't a stream of a copy",
			  name);
	*direct = byte == MIGRATE_DIRECT;
	return fd;
}
