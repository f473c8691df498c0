// SPDX-License-Identifier: BSD-3-Clause
/* What a file had, into the journal's folder. Its name there is the file's own: who comes second,
 * of all processes of the job, finds it saved. */
#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/fmt.h"
#include "image/sys.h"
#include "journal/private.h"

#define SAVE_MAX_DEFAULT (256ull << 20)

static uint64_t save_max(void)
{
	const char *text = getenv("HALE_FILE_SAVE_MAX");
	uint64_t bytes;

	return text && units_parse_bytes(text, &bytes) ? bytes : SAVE_MAX_DEFAULT;
}

static long copy_by_hand(int from, int to, uint64_t size)
{
	static char buf[1 << 16];

	for (uint64_t at = 0; at < size;) {
		size_t n = size - at < sizeof(buf) ? (size_t)(size - at) : sizeof(buf);
		int rc = sys_read_at(from, buf, n, at);
		if (!rc)
			rc = sys_write_at(to, buf, n, at);
		if (rc)
			return rc;
		at += n;
	}
	return 0;
}

/* A file system that can share blocks between files does; then the size doesn't matter. */
static long copy(int from, int to, uint64_t size)
{
	if (!size || !sys(SYS_ioctl, to, FICLONE, from))
		return 0;
	if (size > save_max())
		return -EFBIG;
	/* the program's position in its descriptor stays */
	uint64_t at = 0, put = 0;
	while (at < size) {
		long n = sys(SYS_copy_file_range, from, &at, to, &put, size - at, 0);
		if (n == -EINTR)
			continue;
		if (n < 0 && at == 0) /* not between these file systems */
			return copy_by_hand(from, to, size);
		if (n <= 0)
			return n ? n : -EIO;
	}
	return 0;
}

static void save_path(char *buf, size_t cap, const char *folder, const struct journal_file *f)
{
	fmt_print(buf, cap, "%s/" JOURNAL_SAVE_NAME, folder, (unsigned long)f->device,
		  (unsigned long)f->inode, (unsigned long)f->born_ns);
}

/* So that a name of the file can come back as a name of this file, whatever other names it has. */
static void link_beside(const char *path, const char *to)
{
	char beside[640 + sizeof(JOURNAL_LINK_SUFFIX)];

	fmt_print(beside, sizeof(beside), "%s" JOURNAL_LINK_SUFFIX, to);
	sys(SYS_linkat, AT_FDCWD, path, AT_FDCWD, beside, 0);
}

/* What has been saved is the file itself, which is about to change. */
static bool is_itself(const char *to, const struct journal_file *f)
{
	struct journal_file there;

	return !journal_look(AT_FDCWD, to, AT_SYMLINK_NOFOLLOW, &there) &&
	       there.inode == f->inode && there.device == f->device;
}

/* Under another name first, so that what has the right name is whole. Another process may remove
 * the file meanwhile, and save itself: then the copy takes its place. */
static long copy_into(int from, const char *to, const struct journal_file *f)
{
	char temporary[700];
	static uint32_t number;

	fmt_print(temporary, sizeof(temporary), "%s.%d-%u", to, (int)sys(SYS_gettid), ++number);
	long fd = sys(SYS_openat, AT_FDCWD, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fd;
	long rc = copy(from, (int)fd, f->size);
	sys(SYS_close, fd);
	if (!rc)
		rc = sys(SYS_linkat, AT_FDCWD, temporary, AT_FDCWD, to, 0);
	if (rc == -EEXIST && is_itself(to, f)) {
		link_beside(to, to);
		return sys(SYS_renameat, AT_FDCWD, temporary, AT_FDCWD, to);
	}
	sys(SYS_unlinkat, AT_FDCWD, temporary, 0);
	return rc == -EEXIST ? 0 : rc;
}

/* Closing any descriptor of a file gives up the process's POSIX locks of it: so one that is open
 * already is read, where that is possible. */
static bool can_read(int fd)
{
	long flags = fd >= 0 ? sys(SYS_fcntl, fd, F_GETFL) : -1;

	return flags >= 0 && (flags & O_ACCMODE) != O_WRONLY && !(flags & O_PATH);
}

struct saving {
	const char *to, *path;
	int open_fd;
	const struct journal_file *f;
};

static long save_here(void *arg)
{
	const struct saving *s = arg;

	if (s->f->size > journal_file_limit())
		return -EFBIG;
	if (can_read(s->open_fd))
		return copy_into(s->open_fd, s->to, s->f);
	long fd = sys(SYS_openat, AT_FDCWD, s->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	long rc = copy_into((int)fd, s->to, s->f);
	sys(SYS_close, fd);
	return rc;
}

long journal_save_content(const char *folder, const char *path, int open_fd,
			  const struct journal_file *f)
{
	char to[640];
	struct journal_file there;
	struct saving s = {to, path, open_fd, f};

	save_path(to, sizeof(to), folder, f);
	if (!journal_look(AT_FDCWD, to, AT_SYMLINK_NOFOLLOW, &there) && !is_itself(to, f))
		return 0;
	long rc = save_here(&s);
	if (rc == -EMFILE || (rc == -EFBIG && f->size > journal_file_limit()))
		rc = journal_elsewhere(save_here, &s, open_fd);
	return rc;
}

long journal_save_file(const char *folder, const char *path, const struct journal_file *f)
{
	struct journal_file there;
	char to[640];

	save_path(to, sizeof(to), folder, f);
	long rc = sys(SYS_linkat, AT_FDCWD, path, AT_FDCWD, to, 0);
	if (rc == -EEXIST && !journal_look(AT_FDCWD, to, AT_SYMLINK_NOFOLLOW, &there) &&
	    (there.inode != f->inode || there.device != f->device))
		link_beside(path, to);
	if (!rc || rc == -EEXIST)
		return 0;
	return journal_save_content(folder, path, -1, f);
}
