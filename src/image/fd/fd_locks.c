// SPDX-License-Identifier: BSD-3-Clause
/* Locks on files: flock(2)'s, POSIX ones (fcntl, lockf) and those of open files (F_OFD_SETLK); and
 * leases (F_SETLEASE). The kernel lists them in the fdinfo of the descriptor that they were taken
 * by:
 *
 *   lock:	1: POSIX  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
 *
 * The death of a process gives them up, and so does closing any descriptor of the file for POSIX
 * ones: so they are taken when nothing will be closed any more. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "image/image.h"
#include "image/fd/fd.h"

enum { TRIES = 250, WORDS = 8 };
#define PAUSE_NS 20000000

static bool text_is_word(const char *p, const char *word)
{
	size_t n = strlen(word);
	return !strncmp(p, word, n) && (p[n] == ' ' || p[n] == '\n' || !p[n]);
}

static uint64_t text_number(const char *p)
{
	uint64_t v = 0;
	if (text_is_word(p, "EOF"))
		return ~0ull;
	for (; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v;
}

/* number, kind, advisory, mode, process, file, start, end; false: the line has less */
static bool text_words(const char *line, const char *word[WORDS])
{
	for (int i = 0; i < WORDS; i++) {
		for (; *line == ' ' || *line == '\t'; line++)
			;
		if (!*line || *line == '\n')
			return false;
		word[i] = line;
		for (; *line && *line != ' ' && *line != '\t' && *line != '\n'; line++)
			;
	}
	return true;
}

static hale_status_t lock_take(struct fd_table *t, const struct fd_probe *p, const char *line,
			       struct error *err)
{
	const char *word[WORDS];
	uint32_t kind = 0;
	if (text_words(line, word))
		kind = text_is_word(word[1], "FLOCK")	 ? FILE_LOCK_FLOCK
		       : text_is_word(word[1], "POSIX")	 ? FILE_LOCK_POSIX
		       : text_is_word(word[1], "OFDLCK") ? FILE_LOCK_OFD
		       : text_is_word(word[1], "LEASE")	 ? FILE_LOCK_LEASE
							 : 0;
	if (!kind)
		return fd_refuse(p, "under a lock of a kind that Hale doesn't know", err);
	if (kind == FILE_LOCK_LEASE && !text_is_word(word[2], "ACTIVE"))
		return fd_refuse(p, "under a lease that another process is breaking", err);
	if (kind == FILE_LOCK_OFD && text_number(word[6]) >= IMAGE_LOCKS_OURS)
		return HALE_OK;
	struct file_lock_record *r = list_add(&t->locks);
	if (!r)
		return error_set(err, HALE_ERR_MEMORY, "no memory for locks on files");
	*r = (struct file_lock_record){.fd = p->fd,
				       .kind = kind,
				       .exclusive = text_is_word(word[3], "WRITE"),
				       .start = text_number(word[6]),
				       .end = text_number(word[7])};
	return HALE_OK;
}

hale_status_t fd_locks_capture(struct fd_table *t, const struct fd_probe *p, struct error *err)
{
	static const char key[] = "lock:";
	const char *at = strstr(p->info, key);
	hale_status_t rc = HALE_OK;
	if (at && strlen(p->info) == sizeof(p->info) - 1)
		return fd_refuse(p, "under more locks than Hale keeps", err);
	for (; at && rc == HALE_OK; at = strstr(at + 1, key))
		rc = lock_take(t, p, at + sizeof(key) - 1, err);
	return rc;
}

/* ---- afterwards ---- */

static long lock_again(const struct file_lock_record *r)
{
	struct flock l = {.l_type = (short)(r->exclusive ? F_WRLCK : F_RDLCK),
			  .l_whence = SEEK_SET,
			  .l_start = (off_t)r->start,
			  .l_len = r->end == ~0ull ? 0 : (off_t)(r->end - r->start + 1)};
	if (r->kind == FILE_LOCK_LEASE)
		return sys(SYS_fcntl, r->fd, F_SETLEASE, r->exclusive ? F_WRLCK : F_RDLCK);
	if (r->kind == FILE_LOCK_FLOCK)
		return sys(SYS_flock, r->fd, (r->exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
	return sys(SYS_fcntl, r->fd, r->kind == FILE_LOCK_OFD ? F_OFD_SETLK : F_SETLK, &l);
}

static const char *path_of(const struct fd_restore *f, int fd)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->record[i].fd == fd && f->record[i].text_len)
			return fd_text(f, &f->record[i]);
	return "a file";
}

/* Whoever had them before has just been killed, or is a stranger. */
bool fd_locks_restore(const struct fd_restore *f, struct error *err)
{
	const struct timespec pause = {0, PAUSE_NS};
	for (size_t i = 0; i < f->lock_count; i++) {
		const struct file_lock_record *r = &f->lock[i];
		long rc = lock_again(r);
		for (int n = 0; n < TRIES && (rc == -EAGAIN || rc == -EACCES || rc == -EINTR);
		     n++) {
			sys(SYS_nanosleep, &pause, NULL);
			rc = lock_again(r);
		}
		if (!rc)
			continue;
		error_set(err, HALE_ERR_STORE,
			  "the lock or lease on %s, which the program had at the checkpoint, can't "
			  "be taken "
			  "again (error %ld): %s",
			  path_of(f, r->fd), -rc,
			  rc == -EAGAIN || rc == -EACCES ? "another process has one, end that first"
							 : "does the file system have locks?");
		return false;
	}
	return true;
}

/* ---- reading a file without giving up locks on it ---- */

struct aside {
	const char *path;
	void *data;
	size_t len;
	uint64_t offset;
	volatile int rc;
};

enum { ASIDE_STACK = 16 << 10 };

static void aside_main(void *arg)
{
	struct aside *a = arg;
	long fd = sys(SYS_openat, AT_FDCWD, a->path, O_RDONLY | O_CLOEXEC);
	a->rc = fd < 0 ? (int)fd : sys_read_at((int)fd, a->data, a->len, a->offset);
	sys(SYS_exit_group, 0);
}

/* In a process with our memory and descriptors of its own: what that closes, POSIX locks don't
 * notice. */
int fd_read_aside(struct arena *arena, const char *path, void *data, size_t len, uint64_t offset)
{
	struct aside a = {path, data, len, offset, -ENOMEM};
	char *stack = arena_pages(arena, ASIDE_STACK);
	if (!stack)
		return -ENOMEM;
	long pid =
	    clone_run(CLONE_VM | CLONE_VFORK, stack + ASIDE_STACK, NULL, NULL, 0, aside_main, &a);
	if (pid < 0)
		return (int)pid;
	while (sys(SYS_wait4, pid, NULL, __WCLONE, NULL) == -EINTR)
		;
	return a.rc;
}
