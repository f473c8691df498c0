// SPDX-License-Identifier: BSD-3-Clause
/* Functions of libc by which a program uses what the kernel keeps beside descriptors: System V
 * objects, names of POSIX message queues, watches of inotify. What an image needs to know of them
 * is noted here, since the kernel does not tell it later; and what is made since a checkpoint goes
 * into the journal, so that a rollback takes it away.
 *
 * Two ranks may meet by such an object, a connection or a named pipe, and part again, between the
 * images of a checkpoint, which nobody sees later. So each says before that it may. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdarg.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "ckpt/kernel_ipc.h"
#include "ckpt/rank.h"
#include "ckpt/rank_private.h"
#include "image/frame.h"
#include "image/image.h"
#include "ckpt/libc_result.h"
#include "image/sys.h"
#include "journal/journal.h"
#include "node/guest.h"

#define API __attribute__((visibility("default")))

static struct {
	mqd_t (*mq_open)(const char *, int, ...);
	int (*connect)(int, const struct sockaddr *, socklen_t);
} libc;

void kernel_ipc_init(void)
{
	void *f = dlsym(RTLD_NEXT, "mq_open");
	void *handle = f ? NULL : dlopen("librt.so.1", RTLD_LAZY | RTLD_NOLOAD);

	*(void **)&libc.mq_open = handle ? dlsym(handle, "mq_open") : f;
	*(void **)&libc.connect = dlsym(RTLD_NEXT, "connect");
}

/* ---- meeting other ranks ---- */

void kernel_ipc_opens(int dir, const char *path)
{
	struct stat st = {0};

	if (!link_may_share() && link_is_ours() && link_self()->segment->nhere > 1 &&
	    !sys(SYS_newfstatat, dir, path, &st, 0) && S_ISFIFO(st.st_mode))
		link_note_may_share();
}

/* A file that several ranks write is in the image of each: those have to be of one moment. */
void kernel_ipc_writes(int fd)
{
	struct stat st;

	if (!guard_inside && !guest_inside && !sys(SYS_fstat, fd, &st) && S_ISREG(st.st_mode))
		writers_note(link_is_ours() ? link_self() : NULL, st.st_ino);
}

/* The library's own connections are none of the program's. */
static void note_socket(int family)
{
	if (!guard_inside && !guest_inside &&
	    (family == AF_UNIX || family == AF_INET || family == AF_INET6))
		link_note_may_share();
}

/* ---- numbers of System V objects ---- */

static long get(int kind, int key, size_t size, int flags)
{
	return kind == IPC_MEMORY	? sys(SYS_shmget, key, size, flags)
	       : kind == IPC_SEMAPHORES ? sys(SYS_semget, key, size, flags)
					: sys(SYS_msgget, key, flags);
}

/* Whether a call has made an object or found it is not told: found first, then made alone. */
static long get_or_make(int kind, int key, size_t size, int flags, bool *made)
{
	const bool may_find = key != IPC_PRIVATE && (flags & (IPC_CREAT | IPC_EXCL)) == IPC_CREAT;
	long id;

	*made = key == IPC_PRIVATE || flags & IPC_CREAT;
	if (!may_find)
		return get(kind, key, size, flags);
	do {
		*made = false;
		id = get(kind, key, size, flags & ~IPC_CREAT);
		if (id != -ENOENT)
			break;
		*made = true;
		id = get(kind, key, size, flags | IPC_EXCL);
	} while (id == -EEXIST);
	return id;
}

static int get_noted(int kind, int key, size_t size, int flags)
{
	bool made;

	hale_guest_enter();
	link_note_may_share();
	long id = get_or_make(kind, key, size, flags, &made);
	if (!sys_failed(id)) {
		image_ipc_used(kind, (int)id);
		if (made && journal_on)
			journal_ipc_made(kind, (int)id, key);
	}
	hale_guest_leave();
	return (int)libc_result(id);
}

API int shmget(key_t key, size_t size, int flags)
{
	return get_noted(IPC_MEMORY, key, size, flags);
}

API int semget(key_t key, int count, int flags)
{
	return get_noted(IPC_SEMAPHORES, key, (size_t)count, flags);
}

API int msgget(key_t key, int flags)
{
	return get_noted(IPC_MESSAGES, key, 0, flags);
}

API int shmctl(int id, int command, struct shmid_ds *ds)
{
	long rc = sys(SYS_shmctl, id, command, ds);

	/* attached memory is there until the last one has detached it, and a map shows that */
	if (!rc && command == IPC_RMID)
		image_ipc_gone(IPC_MEMORY, id);
	return (int)libc_result(rc);
}

API int semctl(int id, int number, int command, ...)
{
	va_list ap;

	va_start(ap, command);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	long rc = sys(SYS_semctl, id, number, command, arg);
	if (!rc && command == IPC_RMID)
		image_ipc_gone(IPC_SEMAPHORES, id);
	if (!rc && (command == SETVAL || command == SETALL))
		image_ipc_set(id, command == SETVAL ? number : -1);
	return (int)libc_result(rc);
}

API int msgctl(int id, int command, struct msqid_ds *ds)
{
	long rc = sys(SYS_msgctl, id, command, ds);

	if (!rc && command == IPC_RMID)
		image_ipc_gone(IPC_MESSAGES, id);
	return (int)libc_result(rc);
}

static bool undoes(const struct sembuf *op, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (op[i].sem_flg & SEM_UNDO && op[i].sem_op)
			return true;
	return false;
}

/* Runs outside the guard, so that a checkpoint needn't wait for a call that waits. So a checkpoint
 * may fall between the operation and its note; that image lacks the note. */
static int operate(int id, struct sembuf *op, size_t count, const struct timespec *timeout)
{
	long rc = sys(SYS_semtimedop, id, op, count, timeout);

	if (!rc && undoes(op, count))
		for (size_t i = 0; i < count; i++)
			if (op[i].sem_flg & SEM_UNDO && op[i].sem_op)
				image_ipc_undo(id, op[i].sem_num, -op[i].sem_op);
	return (int)libc_result(rc);
}

API int semop(int id, struct sembuf *op, size_t count)
{
	return operate(id, op, count, NULL);
}

API int semtimedop(int id, struct sembuf *op, size_t count, const struct timespec *timeout)
{
	return operate(id, op, count, timeout);
}

/* ---- message queues ---- */

API mqd_t mq_open(const char *name, int flags, ...)
{
	mode_t mode = 0;
	struct mq_attr *attr = NULL;
	bool made = false;
	mqd_t q;

	if (flags & O_CREAT) {
		va_list ap;
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		attr = va_arg(ap, struct mq_attr *);
		va_end(ap);
	}
	if (!libc.mq_open) {
		errno = ENOSYS;
		return (mqd_t)-1;
	}
	if (!journal_on || !(flags & O_CREAT))
		return libc.mq_open(name, flags, mode, attr);
	hale_guest_enter();
	do {
		made = false;
		q = flags & O_EXCL ? (mqd_t)-1 : libc.mq_open(name, flags & ~O_CREAT);
		if (q != (mqd_t)-1 || (!(flags & O_EXCL) && errno != ENOENT))
			break;
		made = true;
		q = libc.mq_open(name, flags | O_EXCL, mode, attr);
	} while (q == (mqd_t)-1 && errno == EEXIST && !(flags & O_EXCL));
	if (q != (mqd_t)-1 && made)
		journal_queue_made(name);
	hale_guest_leave();
	return q;
}

/* ---- sockets ---- */

/* What connects before a checkpoint gets that of the socket that listens. Without it, its end would
 * keep the port from a restart for a minute. */
API int listen(int fd, int backlog)
{
	int family = 0, one = 1;
	unsigned len = sizeof(family);

	sys(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	note_socket(family);
	long rc = sys(SYS_listen, fd, backlog);
	if (!rc && journal_wanted() && family && family != AF_UNIX)
		sys(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return (int)libc_result(rc);
}

API int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	if (to && len >= sizeof(to->sa_family))
		note_socket(to->sa_family);
	return libc.connect ? libc.connect(fd, to, len)
			    : (int)libc_result(sys(SYS_connect, fd, to, len));
}

/* ---- inotify ---- */

API int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	long rc = sys(SYS_inotify_add_watch, fd, path, mask);

	if (!sys_failed(rc))
		image_watch_note(path, mask);
	return (int)libc_result(rc);
}
