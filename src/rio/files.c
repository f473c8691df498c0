/* SPDX-License-Identifier: BSD-3-Clause */
#include "rio/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_below(int root, const char *path, int flags, bool confined)
{
	struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};

	if (!confined)
		return openat(root, path, flags | O_CLOEXEC);
	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* As a caller expects it: what is outside may not be reached. */
static int errno_of_open(void)
{
	return errno == EXDEV ? EACCES : errno;
}

int rio_file_read(struct rio_file *f, int root, const char *path)
{
	struct stat st;

	*f = (struct rio_file){.folder = -1};
	f->fd = open_below(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, true);
	if (f->fd < 0)
		return errno_of_open();
	if (fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	close(f->fd);
	f->fd = -1;
	return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
}

/* Parts path into the folder and the name in it. */
static int split_path(const char *path, char folder[RIO_PATH_MAX], char name[256])
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;

	if (strlen(path) >= RIO_PATH_MAX || strlen(last) > 200)
		return ENAMETOOLONG;
	if (!last[0])
		return EISDIR;
	if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
		return EISDIR;
	snprintf(name, 256, "%s", last);
	snprintf(folder, RIO_PATH_MAX, "%.*s", slash ? (int)(slash - path + 1) : 1,
		 slash ? path : ".");
	return 0;
}

static void temporary_name(struct rio_file *f)
{
	static atomic_uint number;

	snprintf(f->temporary, sizeof(f->temporary), ".rio-%d-%u.part", (int)getpid(),
		 atomic_fetch_add(&number, 1));
}

int rio_file_write(struct rio_file *f, int root, const char *path, mode_t mode, bool confined)
{
	char folder[RIO_PATH_MAX];
	struct stat st;
	int error;

	*f = (struct rio_file){.fd = -1, .folder = -1};
	error = split_path(path, folder, f->name);
	if (error)
		return error;
	f->folder = open_below(root, folder, O_PATH | O_DIRECTORY, confined);
	if (f->folder < 0)
		return errno_of_open();
	temporary_name(f);
	if (fstatat(f->folder, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		error = S_ISDIR(st.st_mode) ? EISDIR : EEXIST;
	else if (faccessat(f->folder, f->name, W_OK, AT_EACCESS) != 0 && errno != ENOENT)
		error = errno; /* what may not be written may not be replaced either */
	if (!error) {
		f->fd = openat(f->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
		f->named = f->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL);
	}
	if (f->named)
		f->fd =
		    openat(f->folder, f->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (!error && f->fd < 0)
		error = errno;
	if (!error && fchmod(f->fd, mode & 07777) != 0)
		error = errno;
	if (error)
		rio_file_close(f);
	return error;
}

int rio_file_keep(struct rio_file *f, bool sync)
{
	char self[64];

	if (sync && fsync(f->fd) != 0)
		return errno;
	if (!f->named) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
		unlinkat(f->folder, f->temporary, 0);
		if (linkat(AT_FDCWD, self, f->folder, f->temporary, AT_SYMLINK_FOLLOW) != 0)
			return errno;
		f->named = true;
	}
	if (renameat(f->folder, f->temporary, f->folder, f->name) != 0)
		return errno;
	f->named = false;
	if (sync) {
		int folder = openat(f->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (folder >= 0) {
			fsync(folder);
			close(folder);
		}
	}
	return 0;
}

void rio_file_close(struct rio_file *f)
{
	if (f->named && f->folder >= 0)
		unlinkat(f->folder, f->temporary, 0);
	f->named = false;
	if (f->fd >= 0)
		close(f->fd);
	if (f->folder >= 0)
		close(f->folder);
	f->fd = f->folder = -1;
}
