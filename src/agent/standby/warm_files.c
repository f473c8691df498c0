/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/standby/warm_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "image/files.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum { WARM_PROGRAM = 1, WARM_CODE = 2, PIECE = 1 << 20, PAGE = 4096 };

/* In a list: this, then the path with its NUL. */
struct warm_files_record {
	uint64_t begin, end;
	struct file_stamp stamp;
	uint32_t flags, path_len;
};

struct warm_file {
	struct warm_files_record r;
	char *path;
	uint32_t users; /* processes that execute it */
};

struct files {
	struct warm_file *at;
	size_t count, last;
};

/* ---- writing ---- */

/* Mappings of one file stand behind one another, in all processes in the same order, mostly. */
static struct warm_file *find(struct files *l, const char *path)
{
	for (size_t i = 0; i < l->count; i++) {
		size_t k = (l->last + i) % l->count;

		if (strcmp(l->at[k].path, path) == 0) {
			l->last = k;
			return &l->at[k];
		}
	}
	return NULL;
}

static struct warm_file *find_or_add(struct files *l, const char *path)
{
	struct warm_file *f = find(l, path);
	char *copy;

	if (f || l->count == WARM_FILES_MAX)
		return f;
	copy = strdup(path);
	if (!copy)
		return NULL;
	l->last = l->count;
	f = &l->at[l->count++];
	*f = (struct warm_file){.path = copy, .r.begin = UINT64_MAX};
	return f;
}

static bool take_mapping(void *arg, const struct image_mapped *m)
{
	struct warm_file *f = find_or_add(arg, m->path);

	if (!f)
		return true;
	f->r.begin = m->begin < f->r.begin ? m->begin : f->r.begin;
	f->r.end = m->end > f->r.end ? m->end : f->r.end;
	f->r.flags |= m->code ? WARM_CODE : 0;
	return true;
}

static void take_program(struct files *l, pid_t pid)
{
	static const char deleted[] = " (deleted)";
	const size_t gone = sizeof(deleted) - 1;
	char link[64], path[PATH_MAX];
	struct warm_file *f;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	/* the file that has taken its place is what is executed from now on */
	if (n > (ssize_t)gone && strcmp(path + n - gone, deleted) == 0)
		path[n - (ssize_t)gone] = '\0';
	f = n > 0 ? find_or_add(l, path) : NULL;
	if (!f)
		return;
	f->users++;
	f->r.flags |= WARM_CODE;
	f->r.begin = 0;
}

/* One that has been replaced on the disk since is no use to anybody. */
static bool stamp(struct warm_file *f)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool good = fd >= 0 && image_file_stamp(fd, &f->r.stamp) == HALE_OK;

	if (fd >= 0)
		close(fd);
	return good;
}

static int rank_of(const struct warm_file *f)
{
	return f->r.flags & WARM_PROGRAM ? 0 : f->r.flags & WARM_CODE ? 1 : 2;
}

static int by_use(const void *a, const void *b)
{
	int x = rank_of(a), y = rank_of(b);

	return x != y ? x - y
		      : strcmp(((const struct warm_file *)a)->path,
			       ((const struct warm_file *)b)->path);
}

static void choose_program(struct files *l)
{
	struct warm_file *best = NULL;

	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].users > (best ? best->users : 0))
			best = &l->at[i];
	if (best)
		best->r.flags |= WARM_PROGRAM;
}

static unsigned char *write_list(struct files *l, size_t *len)
{
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, len);
	size_t used = 0;

	if (!out)
		return NULL;
	for (size_t i = 0; i < l->count; i++) {
		struct warm_file *f = &l->at[i];
		size_t path = strlen(f->path) + 1, size = sizeof(f->r) + path;

		if (!stamp(f) || used + size > WARM_LIST_MAX)
			continue;
		f->r.path_len = (uint32_t)path;
		fwrite(&f->r, sizeof(f->r), 1, out);
		fwrite(f->path, path, 1, out);
		used += size;
	}
	if (fclose(out) == 0 && *len > 0)
		return (unsigned char *)bytes;
	free(bytes);
	return NULL;
}

unsigned char *warm_files_list(const pid_t *pids, size_t count, size_t *len)
{
	struct files l = {.at = calloc(WARM_FILES_MAX, sizeof(*l.at))};
	unsigned char *list = NULL;

	*len = 0;
	if (!l.at)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (image_mapped_files(pids[i], take_mapping, &l, NULL) == HALE_OK)
			take_program(&l, pids[i]);
	if (l.count > 0) {
		choose_program(&l);
		qsort(l.at, l.count, sizeof(*l.at), by_use);
		list = write_list(&l, len);
	}
	for (size_t i = 0; i < l.count; i++)
		free(l.at[i].path);
	free(l.at);
	return list;
}

/* ---- reading ---- */

/* The next one of a list, which somebody else has written. False: there is none. */
static bool next(const unsigned char **at, size_t *left, struct warm_files_record *r,
		 const char **path)
{
	if (*left < sizeof(*r))
		return false;
	memcpy(r, *at, sizeof(*r));
	*path = (const char *)*at + sizeof(*r);
	if (r->path_len < 2 || r->path_len > PATH_MAX || r->path_len > *left - sizeof(*r) ||
	    strnlen(*path, r->path_len) != r->path_len - 1 || **path != '/' || r->begin > r->end ||
	    r->stamp.build_id_len > BUILD_ID_MAX)
		return false;
	*at += sizeof(*r) + r->path_len;
	*left -= sizeof(*r) + r->path_len;
	return true;
}

static void identify(uint64_t *hash, const struct stat *st)
{
	const uint64_t is[] = {st->st_dev,
			       st->st_ino,
			       (uint64_t)st->st_size,
			       (uint64_t)st->st_mtim.tv_sec,
			       (uint64_t)st->st_mtim.tv_nsec,
			       (uint64_t)st->st_ctim.tv_sec,
			       (uint64_t)st->st_ctim.tv_nsec};

	for (size_t i = 0; i < ARRAY_LEN(is); i++)
		for (int bit = 0; bit < 64; bit += 8)
			*hash = (*hash ^ (is[i] >> bit & 0xff)) * 1099511628211u;
}

/* The mapping only makes the kernel read, without a copy of what it has already; where it can't, a
 * read does. */
static bool bring(int fd, uint64_t at, size_t len)
{
	static char nowhere[PIECE];
	void *p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, (off_t)at);
	bool good = p != MAP_FAILED && madvise(p, len, MADV_POPULATE_READ) == 0;

	if (p != MAP_FAILED)
		munmap(p, len);
	return good || pread(fd, nowhere, len, (off_t)at) >= 0;
}

static void complain(struct warm_files_result *result, const char *path, const char *what)
{
	if (!result->text[0])
		snprintf(result->text, sizeof(result->text), "%.200s %s", path, what);
}

/* Bytes that came into memory. */
static uint64_t bring_file(int fd, const struct warm_files_record *r, uint64_t size, uint64_t most,
			   const char *path, struct warm_files_result *result)
{
	uint64_t end = r->end < size ? r->end : size, at = r->begin & ~(uint64_t)(PAGE - 1),
		 done = 0;

	while (at < end && done < most) {
		size_t len = end - at < PIECE ? (size_t)(end - at) : PIECE;

		if (!bring(fd, at, len)) {
			complain(result, path, "can't be read there");
			break;
		}
		at += len;
		done += len;
	}
	return done;
}

static bool read_one(const struct warm_files_record *r, const char *path, uint64_t most,
		     struct warm_files_result *result)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct file_stamp is;
	struct stat st;
	bool same;

	if (fd < 0) {
		complain(result, path,
			 errno == ENOENT ? "is missing there" : "can't be opened there");
		return false;
	}
	same = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && image_file_stamp(fd, &is) == HALE_OK &&
	       image_file_same(&is, &r->stamp);
	if (!same)
		complain(result, path, "is another version there than where the ranks run");
	if (same && r->flags & WARM_CODE)
		identify(&result->identity, &st);
	if (same)
		result->bytes += bring_file(fd, r, (uint64_t)st.st_size, most, path, result);
	close(fd);
	return same;
}

void warm_files_read(const unsigned char *list, size_t len, uint64_t bytes_max,
		     struct warm_files_result *result)
{
	struct warm_files_record r;
	const char *path;

	*result = (struct warm_files_result){.identity = 14695981039346656037u};
	while (next(&list, &len, &r, &path)) {
		uint64_t room = bytes_max > result->bytes ? bytes_max - result->bytes : 0;
		bool good = read_one(&r, path, room, result);

		if (r.flags & WARM_PROGRAM && good && !result->program[0])
			snprintf(result->program, sizeof(result->program), "%s", path);
	}
	result->good = len == 0 && result->program[0] && !result->text[0];
}
