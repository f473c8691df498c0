// SPDX-License-Identifier: BSD-3-Clause
/* Functions of libc that change files and their names, with the journal before them. Where no
 * checkpoint is wanted each costs a comparison more than libc's.
 *
 * A checkpoint that comes between the record and the call waits for the call: else the image would
 * be of a process that changes a file after it, with a record from before it. */
/* with it, open would be another name of open64, and both are defined here */
#undef _FILE_OFFSET_BITS
#include "ckpt/files.h"
#include "ckpt/files_replicas.h"
#include "ckpt/kernel_ipc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fmt.h"
#include "ckpt/mute.h"
#include "node/guest.h"
#include "ckpt/libc_result.h"
#include "image/sys.h"
#include "journal/journal.h"

#define API __attribute__((visibility("default")))

static struct {
	int (*openat)(int, const char *, int, ...);
	FILE *(*fopen)(const char *, const char *);
	FILE *(*freopen)(const char *, const char *, FILE *);
	int (*mkostemps)(char *, int, int);
	char *(*mkdtemp)(char *);
} libc;

void *files_find(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);
	void *handle = f ? NULL : dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	return handle ? dlsym(handle, name) : f;
}

void files_init(void)
{
	*(void **)&libc.openat = files_find("openat");
	*(void **)&libc.fopen = files_find("fopen");
	*(void **)&libc.freopen = files_find("freopen");
	*(void **)&libc.mkostemps = files_find("mkostemps");
	*(void **)&libc.mkdtemp = files_find("mkdtemp");
	files_append_init();
	files_back_init();
	files_names_init();
	files_spawn_init();
	files_replicas_init();
	mute_init();
}

/* ---- open ---- */

static int open_plain(int dir, const char *path, int flags, mode_t mode)
{
	if (UNLIKELY(!libc.openat))
		return libc_result(sys(SYS_openat, dir, path, flags, mode));
	return libc.openat(dir, path, flags, mode);
}

static int open_journaled(int dir, const char *path, int flags, mode_t mode)
{
	hale_guest_enter();
	bool plain = journal_opening(dir, path, flags);
	if (!plain) /* may wait for long */
		hale_guest_leave();
	int fd = open_plain(dir, path, flags, mode);
	if (plain) {
		int saved = errno;
		journal_opened(fd);
		hale_guest_leave();
		errno = saved;
	}
	return fd;
}

static int open_once(int dir, const char *path, int flags, mode_t mode)
{
	if (UNLIKELY(hale_mute_on) && files_change(flags)) {
		int fd = mute_open(dir, path, flags, mode);
		if (fd != MUTE_NOT)
			return fd;
	}
	return UNLIKELY(journal_on) && files_change(flags) ? open_journaled(dir, path, flags, mode)
							   : open_plain(dir, path, flags, mode);
}

static inline int open_any(int dir, const char *path, int flags, mode_t mode)
{
	if (UNLIKELY(files_replicated) && files_change(flags) &&
	    flags & (O_APPEND | O_TRUNC | O_EXCL))
		return files_replicas_open(dir, path, flags, mode, open_once);
	kernel_ipc_opens(dir, path);
	int fd = open_once(dir, path, flags, mode);
	if (UNLIKELY(files_replicated))
		files_replicas_forget(fd);
	if (fd >= 0 && files_change(flags))
		kernel_ipc_writes(fd);
	return fd;
}

#define MODE_AFTER(last, flags)                                                                    \
	__extension__({                                                                            \
		mode_t mode_ = 0;                                                                  \
		if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) {                         \
			va_list ap_;                                                               \
			va_start(ap_, last);                                                       \
			mode_ = va_arg(ap_, mode_t);                                               \
			va_end(ap_);                                                               \
		}                                                                                  \
		mode_;                                                                             \
	})

API int open(const char *path, int flags, ...)
{
	return open_any(AT_FDCWD, path, flags, MODE_AFTER(flags, flags));
}

API int open64(const char *path, int flags, ...)
{
	return open_any(AT_FDCWD, path, flags, MODE_AFTER(flags, flags));
}

API int openat(int dir, const char *path, int flags, ...)
{
	return open_any(dir, path, flags, MODE_AFTER(flags, flags));
}

API int openat64(int dir, const char *path, int flags, ...)
{
	return open_any(dir, path, flags, MODE_AFTER(flags, flags));
}

API int creat(const char *path, mode_t mode)
{
	return open_any(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

API int creat64(const char *path, mode_t mode)
{
	return open_any(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

/* Of programs that were built with _FORTIFY_SOURCE. */
API int __open_2(const char *path, int flags);
API int __open64_2(const char *path, int flags);
API int __openat_2(int dir, const char *path, int flags);
API int __openat64_2(int dir, const char *path, int flags);

API int __open_2(const char *path, int flags)
{
	return open_any(AT_FDCWD, path, flags, 0);
}

API int __open64_2(const char *path, int flags)
{
	return open_any(AT_FDCWD, path, flags, 0);
}

API int __openat_2(int dir, const char *path, int flags)
{
	return open_any(dir, path, flags, 0);
}

API int __openat64_2(int dir, const char *path, int flags)
{
	return open_any(dir, path, flags, 0);
}

/* ---- stdio ---- */

static int flags_of(const char *mode)
{
	int flags = mode[0] == 'w'   ? O_WRONLY | O_CREAT | O_TRUNC
		    : mode[0] == 'a' ? O_WRONLY | O_CREAT | O_APPEND
				     : O_RDONLY;

	for (const char *c = mode + 1; mode[0] && *c && *c != ','; c++) {
		if (*c == '+')
			flags = (flags & ~O_ACCMODE) | O_RDWR;
		else if (*c == 'x')
			flags |= O_EXCL;
		else if (*c == 'e')
			flags |= O_CLOEXEC;
	}
	return flags;
}

/* A stream of an open descriptor: it appends nothing by itself, and truncates nothing. */
static FILE *fopen_replicated(const char *path, const char *mode, int flags, FILE *again)
{
	char how[32];
	int fd = open_any(AT_FDCWD, path, flags, 0666);
	FILE *f = NULL;

	fmt_print(how, sizeof(how), "w%s", mode + 1);
	if (fd >= 0 && again) {
		if (fflush(again) == 0 && dup2(fd, fileno(again)) >= 0)
			f = again;
		close(fd);
	} else if (fd >= 0) {
		f = fdopen(fd, how);
	}
	if (!f && again)
		fclose(again);
	return f;
}

/* freopen(NULL, …) opens the stream's file again, which may empty it. NULL: it has no name. */
static const char *name_of(FILE *f, char *buf, size_t cap)
{
	char link[32];
	long n;

	fmt_print(link, sizeof(link), "/proc/self/fd/%d", fileno(f));
	n = sys(SYS_readlinkat, AT_FDCWD, link, buf, cap - 1);
	if (n <= 0 || buf[0] != '/')
		return NULL;
	buf[n] = 0;
	return access(buf, F_OK) == 0 ? buf : NULL;
}

static FILE *fopen_any(const char *path, const char *mode, FILE *again)
{
	char buf[PATH_MAX];
	const char *name = path || !again ? path : name_of(again, buf, sizeof(buf));
	int flags = (journal_on || files_replicated) && name && mode ? flags_of(mode) : O_RDONLY;

	if (UNLIKELY(files_replicated) && flags & (O_TRUNC | O_APPEND))
		return fopen_replicated(name, mode, flags, again);
	if (UNLIKELY(hale_mute_on) && files_change(flags) && !again) {
		int fd = mute_open(AT_FDCWD, path, flags, 0666);
		if (fd != MUTE_NOT)
			return fd < 0 ? NULL : fdopen(fd, mode);
	}
	if (!journal_on)
		flags = O_RDONLY;
	kernel_ipc_opens(AT_FDCWD, name);
	if (!files_change(flags)) {
		FILE *f = again ? libc.freopen(path, mode, again) : libc.fopen(path, mode);
		if (UNLIKELY(files_replicated) && f)
			files_replicas_forget(fileno(f));
		return f;
	}
	hale_guest_enter();
	bool plain = journal_opening(AT_FDCWD, name, flags);
	if (!plain)
		hale_guest_leave();
	FILE *f = again ? libc.freopen(path, mode, again) : libc.fopen(path, mode);
	if (plain) {
		int saved = errno;
		journal_opened(f ? fileno(f) : -1);
		hale_guest_leave();
		errno = saved;
	}
	if (f)
		kernel_ipc_writes(fileno(f));
	return f;
}

API FILE *fopen(const char *path, const char *mode)
{
	return fopen_any(path, mode, NULL);
}

API FILE *fopen64(const char *path, const char *mode)
{
	return fopen_any(path, mode, NULL);
}

API FILE *freopen(const char *path, const char *mode, FILE *f)
{
	return fopen_any(path, mode, f);
}

API FILE *freopen64(const char *path, const char *mode, FILE *f)
{
	return fopen_any(path, mode, f);
}

/* ---- names that libc chooses ---- */

/* Hale chooses names itself while there is a journal: the record that there was nothing of a name
 * has to be there before the name is. libc would tell the name only after it has made it, and a
 * process that dies in between would leave it behind a rollback. */
enum { CHOSEN = 6, CHOICES = 62 * 62 * 62 };

/* NULL: the template has no place for a name, which is EINVAL. */
static char *chosen_part(char *template, int suffix)
{
	size_t len = strlen(template);

	if (suffix >= 0 && len >= (size_t)suffix + CHOSEN &&
	    strspn(template + len - (size_t)suffix - CHOSEN, "X") >= CHOSEN)
		return template + len - suffix - CHOSEN;
	errno = EINVAL;
	return NULL;
}

static void choose(char *part)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	uint64_t v;

	if (sys(SYS_getrandom, &v, sizeof(v), 0) != (long)sizeof(v)) {
		struct timespec t = {0};
		sys(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
		v = (uint64_t)t.tv_nsec * 6364136223846793005u + (uint64_t)sys(SYS_gettid);
	}
	for (int i = 0; i < CHOSEN; i++, v /= sizeof(letters) - 1)
		part[i] = letters[v % (sizeof(letters) - 1)];
}

static int mkstemp_any(char *template, int suffix, int flags)
{
	char *part;
	int fd = -1;

	if (!journal_on)
		return libc.mkostemps(template, suffix, flags);
	part = chosen_part(template, suffix);
	for (int i = 0; part && fd < 0 && i < CHOICES; i++) {
		choose(part);
		fd = open_journaled(AT_FDCWD, template,
				    (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

API int mkstemp(char *template)
{
	return mkstemp_any(template, 0, 0);
}

API int mkstemp64(char *template)
{
	return mkstemp_any(template, 0, 0);
}

API int mkostemp(char *template, int flags)
{
	return mkstemp_any(template, 0, flags);
}

API int mkostemp64(char *template, int flags)
{
	return mkstemp_any(template, 0, flags);
}

API int mkstemps(char *template, int suffix)
{
	return mkstemp_any(template, suffix, 0);
}

API int mkstemps64(char *template, int suffix)
{
	return mkstemp_any(template, suffix, 0);
}

API int mkostemps(char *template, int suffix, int flags)
{
	return mkstemp_any(template, suffix, flags);
}

API int mkostemps64(char *template, int suffix, int flags)
{
	return mkstemp_any(template, suffix, flags);
}

API char *mkdtemp(char *template)
{
	char *part;

	if (!journal_on)
		return libc.mkdtemp(template);
	part = chosen_part(template, 0);
	for (int i = 0; part && i < CHOICES; i++) {
		choose(part);
		hale_guest_enter();
		journal_making(AT_FDCWD, template);
		int rc = libc_result(sys(SYS_mkdirat, AT_FDCWD, template, 0700)), saved = errno;
		hale_guest_leave();
		errno = saved;
		if (rc == 0)
			return template;
		if (errno != EEXIST)
			break;
	}
	return NULL;
}

/* ---- names, and sizes: these are system calls and no more ---- */

/* call, after before if there is a journal; nothing in a shadow, whose main has done it. */
#define JOURNALED(before, call) (UNLIKELY(hale_mute_on) ? 0 : JOURNALED_ALWAYS(before, call))

#define JOURNALED_ALWAYS(before, call)                                                             \
	__extension__({                                                                            \
		bool on_ = UNLIKELY(journal_on);                                                   \
		if (on_) {                                                                         \
			hale_guest_enter();                                                        \
			before;                                                                    \
		}                                                                                  \
		int rc_ = libc_result(call);                                                       \
		if (on_) {                                                                         \
			int saved_ = errno;                                                        \
			hale_guest_leave();                                                        \
			errno = saved_;                                                            \
		}                                                                                  \
		rc_;                                                                               \
	})

API int unlinkat(int dir, const char *path, int flags)
{
	return JOURNALED(journal_removing(dir, path), sys(SYS_unlinkat, dir, path, flags));
}

API int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

API int rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

API int remove(const char *path)
{
	int saved = errno;

	if (unlinkat(AT_FDCWD, path, 0) == 0)
		return 0;
	if (errno != EISDIR)
		return -1;
	errno = saved;
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

API int renameat2(int dir, const char *path, int other_dir, const char *other, unsigned flags)
{
	return JOURNALED(
	    journal_renaming(dir, path, other_dir, other, (flags & RENAME_EXCHANGE) != 0),
	    sys(SYS_renameat2, dir, path, other_dir, other, flags));
}

API int renameat(int dir, const char *path, int other_dir, const char *other)
{
	return JOURNALED(journal_renaming(dir, path, other_dir, other, false),
			 sys(SYS_renameat, dir, path, other_dir, other));
}

API int rename(const char *path, const char *other)
{
	return renameat(AT_FDCWD, path, AT_FDCWD, other);
}

API int mkdirat(int dir, const char *path, mode_t mode)
{
	return JOURNALED(journal_making(dir, path), sys(SYS_mkdirat, dir, path, mode));
}

API int mkdir(const char *path, mode_t mode)
{
	return mkdirat(AT_FDCWD, path, mode);
}

API int linkat(int dir, const char *path, int other_dir, const char *other, int flags)
{
	return JOURNALED(journal_making(other_dir, other),
			 sys(SYS_linkat, dir, path, other_dir, other, flags));
}

API int link(const char *path, const char *other)
{
	return linkat(AT_FDCWD, path, AT_FDCWD, other, 0);
}

API int symlinkat(const char *target, int dir, const char *path)
{
	return JOURNALED(journal_making(dir, path), sys(SYS_symlinkat, target, dir, path));
}

API int symlink(const char *target, const char *path)
{
	return symlinkat(target, AT_FDCWD, path);
}

API int mknodat(int dir, const char *path, mode_t mode, dev_t device)
{
	return JOURNALED(journal_making(dir, path), sys(SYS_mknodat, dir, path, mode, device));
}

API int mknod(const char *path, mode_t mode, dev_t device)
{
	return mknodat(AT_FDCWD, path, mode, device);
}

API int mkfifoat(int dir, const char *path, mode_t mode)
{
	return mknodat(dir, path, (mode & 07777) | S_IFIFO, 0);
}

API int mkfifo(const char *path, mode_t mode)
{
	return mkfifoat(AT_FDCWD, path, mode);
}

API int truncate(const char *path, off_t length)
{
	return JOURNALED(journal_truncating(path, (uint64_t)length),
			 sys(SYS_truncate, path, length));
}

API int truncate64(const char *path, off64_t length)
{
	return truncate(path, length);
}

API int ftruncate(int fd, off_t length)
{
	return JOURNALED_ALWAYS(journal_truncating_fd(fd, (uint64_t)length),
				sys(SYS_ftruncate, fd, length));
}

API int ftruncate64(int fd, off64_t length)
{
	return ftruncate(fd, length);
}
