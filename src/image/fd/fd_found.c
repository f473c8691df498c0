// SPDX-License-Identifier: BSD-3-Clause
/* Is what has a file's name now the file that was open at the checkpoint? Somebody else may have
 * given that another name since (a log that is rotated), and made a file of the old one, which is
 * not to be cut or written over. Known by inode number and time of birth; one that has come back
 * from the journal, or from a copy of another disk, has others, and is taken for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { UNDONE_SLACK_S = 2, LIST = 4096 };

static bool look(const char *path, int fd, struct statx *s)
{
	return !sys(SYS_statx, fd, path, *path ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH,
		    STATX_BASIC_STATS | STATX_BTIME, s) &&
	       s->stx_mask & STATX_BTIME;
}

void fd_found_note(struct fd_record *r, const struct fd_table *t, int fd)
{
	char path[64];
	struct statx s = {0};
	fmt_print(path, sizeof(path), "%s/fd/%d", t->proc, fd);
	if (sys(SYS_statx, AT_FDCWD, path, 0, STATX_BTIME, &s) || !(s.stx_mask & STATX_BTIME))
		return;
	r->interval_s = s.stx_btime.tv_sec;
	r->interval_ns = s.stx_btime.tv_nsec;
}

static bool is_it(const struct fd_record *r, const struct statx *s)
{
	return s->stx_ino == r->inode && s->stx_btime.tv_sec == r->interval_s &&
	       s->stx_btime.tv_nsec == r->interval_ns;
}

/* Made by whoever has undone the journal before this process was started. */
static bool came_back(const struct statx *s)
{
	const char *journal = getenv("HALE_JOURNAL");
	char path[IMAGE_PATH_MAX];
	struct stat st = {0};
	if (!journal)
		return false;
	fmt_print(path, sizeof(path), "%s/undone", journal);
	return !sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) &&
	       s->stx_btime.tv_sec >= st.st_mtim.tv_sec - UNDONE_SLACK_S;
}

bool fd_found_is_other(const struct fd_record *r, int fd)
{
	struct statx s = {0};
	struct stat st = {0};
	if (!r->interval_s || !r->truncates || sys(SYS_fstat, fd, &st) || st.st_dev != r->device ||
	    !look("", fd, &s) || is_it(r, &s))
		return false;
	bool newer = s.stx_btime.tv_sec > r->value_s ||
		     (s.stx_btime.tv_sec == r->value_s && s.stx_btime.tv_nsec > r->value_ns);
	/* one that was put back, and of which nothing is cut */
	bool stays = !r->has_content && s.stx_size == r->size;
	return newer && !stays && !came_back(&s);
}

struct found_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short len;
	unsigned char type;
	char name[];
};

int fd_found_elsewhere(const struct fd_record *r, const char *path, uint32_t flags)
{
	char folder[IMAGE_PATH_MAX], list[LIST];
	long dir, n, found = -ENOENT;
	if (!r->interval_s || !r->truncates)
		return -ENOENT;
	fmt_print(folder, sizeof(folder), "%s", path);
	char *slash = strrchr(folder, '/');
	if (!slash)
		return -ENOENT;
	slash[slash == folder] = 0;
	dir = sys(SYS_openat, AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (dir >= 0 && found < 0 && (n = sys(SYS_getdents64, dir, list, sizeof(list))) > 0)
		for (long at = 0; at < n && found < 0;) {
			const struct found_entry *e = (const struct found_entry *)(list + at);
			struct statx s = {0};
			at += e->len;
			if (e->inode == r->inode && look(e->name, (int)dir, &s) && is_it(r, &s))
				found = sys(SYS_openat, dir, e->name, flags | O_CLOEXEC);
		}
	if (dir >= 0)
		sys(SYS_close, dir);
	return (int)found;
}
