// SPDX-License-Identifier: BSD-3-Clause
/* Bytes of open files that are about to be overwritten. Each is saved once since the checkpoint, if
 * the list of what has been saved still knows it: a second record does no harm, since the older one
 * is undone after it. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fmt.h"
#include "image/sys.h"
#include "journal/private.h"

enum {
	SAVED_MAX = 512,
	HOLE_LEAST = 64 << 10, /* in a shorter stretch nobody looks for holes: it is read */
};

/* Stretches of files that records have, of the newest epoch. */
static struct range_saved {
	uint64_t key, begin, end;
} saved[SAVED_MAX];
static unsigned saved_count;
static uint32_t saved_epoch;

static void range_note(uint64_t key, uint64_t begin, uint64_t end)
{
	for (unsigned i = 0; i < saved_count; i++) {
		struct range_saved *s = &saved[i];
		if (s->key != key || end < s->begin || begin > s->end)
			continue;
		s->begin = begin < s->begin ? begin : s->begin;
		s->end = end > s->end ? end : s->end;
		return;
	}
	if (saved_count == SAVED_MAX) /* the others are saved twice if they are written twice */
		saved_count = 0;
	saved[saved_count++] = (struct range_saved){key, begin, end};
}

/* The first stretch of [*begin, end) that no record has; false: all of it is saved. */
static bool range_next(uint64_t key, uint64_t *begin, uint64_t end, uint64_t *until)
{
	bool moved = true;
	*until = end;
	while (moved && *begin < end) {
		moved = false;
		*until = end;
		for (unsigned i = 0; i < saved_count; i++) {
			const struct range_saved *s = &saved[i];
			if (s->key != key || s->end <= *begin || s->begin >= *until)
				continue;
			if (s->begin <= *begin) {
				*begin = s->end;
				moved = true;
			} else {
				*until = s->begin;
			}
		}
	}
	return *begin < end;
}

/* A descriptor to read the file with; it may be the one that is there. */
static long range_reader(int fd)
{
	char path[64];
	long flags = sys(SYS_fcntl, fd, F_GETFL);

	if (flags >= 0 && (flags & O_ACCMODE) != O_WRONLY)
		return fd;
	fmt_print(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	return sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

struct range_put {
	int to;
	const char *bytes;
	uint64_t length, at;
};

static long range_put_here(void *arg)
{
	const struct range_put *p = arg;

	return p->at + p->length > journal_file_limit()
		   ? -EFBIG
		   : sys_write_at(p->to, p->bytes, p->length, p->at);
}

/* One record; 0 or -errno. buf has room for JOURNAL_RANGE_MAX. */
static long range_save(int from, int to, const char *path, const struct journal_file *f,
		       uint64_t offset, uint64_t length, char *buf)
{
	char text[160], name[32];
	struct stat st;
	long rc = sys_read_at(from, buf, length, offset);

	if (rc == 0)
		rc = sys(SYS_fstat, to, &st);
	if (rc)
		return rc;
	struct range_put put = {to, buf, length, (uint64_t)st.st_size};
	rc = range_put_here(&put);
	if (rc == -EFBIG)
		rc = journal_elsewhere(range_put_here, &put, to);
	if (rc)
		return rc;
	journal_range_name(name, sizeof(name));
	fmt_print(text, sizeof(text), JOURNAL_RANGE_TEXT, (unsigned long)offset,
		  (unsigned long)length, (unsigned long)st.st_size,
		  (unsigned long)XXH3_64bits(buf, length), name);
	return journal_write(JOURNAL_RANGE, path, text, f) ? 0 : -EIO;
}

/* Where the data, or the hole, at `at` ends. The descriptor is MPI-IO's own, or range_reader's:
 * nobody needs its position. A file system that knows of no holes says that all is data. */
static uint64_t stretch_end(int fd, uint64_t at, uint64_t until, bool *hole)
{
	*hole = false;
	if (until - at < HOLE_LEAST)
		return until;
	/* -ENXIO: nothing but a hole follows */
	long data = sys(SYS_lseek, fd, at, SEEK_DATA), end = until;
	*hole = data == -ENXIO || data > (long)at;
	if (data > (long)at)
		end = data;
	else if (data >= 0)
		end = sys(SYS_lseek, fd, at, SEEK_HOLE);
	return end > (long)at && end < (long)until ? (uint64_t)end : until;
}

static long hole_save(const char *path, const struct journal_file *f, uint64_t offset,
		      uint64_t length)
{
	char text[64];
	fmt_print(text, sizeof(text), JOURNAL_HOLE_TEXT, (unsigned long)offset,
		  (unsigned long)length);
	return journal_write(JOURNAL_HOLE, path, text, f) ? 0 : -EIO;
}

static long ranges_save(int fd, int to, const char *path, const struct journal_file *f,
			uint64_t begin, uint64_t end)
{
	uint64_t key = journal_file_key(f), until;
	long from = range_reader(fd);
	if (from < 0)
		return from;
	long at = sys(SYS_mmap, 0, JOURNAL_RANGE_MAX, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long rc = sys_failed(at) ? at : 0;
	while (!rc && range_next(key, &begin, end, &until)) {
		bool hole;
		until = stretch_end((int)from, begin, until, &hole);
		if (!hole && until - begin > JOURNAL_RANGE_MAX)
			until = begin + JOURNAL_RANGE_MAX;
		rc = hole ? hole_save(path, f, begin, until - begin)
			  : range_save((int)from, to, path, f, begin, until - begin, (char *)at);
		if (!rc)
			range_note(key, begin, until);
		begin = until;
	}
	if (!sys_failed(at))
		sys(SYS_munmap, at, JOURNAL_RANGE_MAX);
	if (from != fd)
		sys(SYS_close, from);
	return rc;
}

static void range_writing(int fd, const char *path, struct journal_file *f, uint64_t begin,
			  uint64_t end)
{
	char to[640], folder[600], name[32];
	uint64_t from = begin, until;

	if (!range_next(journal_file_key(f), &from, end, &until))
		return;
	journal_range_name(name, sizeof(name));
	long rc = journal_folder(folder, sizeof(folder)) ? 0 : -ENOENT;
	fmt_print(to, sizeof(to), "%s/%s", folder, name);
	long out =
	    rc ? rc
	       : sys(SYS_openat, AT_FDCWD, to, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	rc = out < 0 ? out : ranges_save(fd, (int)out, path, f, begin, end);
	if (out >= 0)
		sys(SYS_close, out);
	if (rc) {
		journal_unprotected(path, "what is overwritten can't be saved", rc);
		journal_write(JOURNAL_UNSAVED, path, NULL, f);
	}
}

void journal_writing(int fd, uint64_t size, uint64_t offset, uint64_t length)
{
	static char whole[JOURNAL_PATH];
	struct journal_file f;
	int saved_errno;

	if (!journal_begin("a file", &saved_errno))
		return;
	uint32_t epoch = journal_epoch();
	if (epoch != saved_epoch)
		saved_count = 0;
	saved_epoch = epoch;
	uint64_t end = offset + length < size ? offset + length : size;
	if (!journal_look(fd, "", AT_EMPTY_PATH, &f) && S_ISREG(f.mode) && f.links) {
		/* whoever has cut the file since has saved what was behind */
		end = end < f.size ? end : f.size;
		uint64_t key = journal_file_key(&f);
		unsigned known = known_get(key);
		bool named = !(known & (KNOWN_MADE | KNOWN_CONTENT)) &&
			     (!(known & KNOWN_SIZE) || offset < end) &&
			     journal_path_of_fd(fd, whole) && !journal_passes_over(whole);
		f.size = size;
		if (named && !(known & KNOWN_SIZE) && journal_write(JOURNAL_SIZE, whole, NULL, &f))
			known_add(key, KNOWN_SIZE);
		if (named && offset < end)
			range_writing(fd, whole, &f, offset, end);
	}
	journal_end(saved_errno);
}
