/* SPDX-License-Identifier: BSD-3-Clause */
/* See carry.h. */
#include "channel/carry/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/exit_status.h"

enum { CARRY_FD_FLOOR = 900, ROOM_FIRST = 4096 };
#define CARRY_MAGIC 0x59525241434c4148ull /* "HALCARRY" */

void carry_begin(struct carry *c)
{
	*c = (struct carry){0};
}

void carry_drop(struct carry *c)
{
	heap_free(c->bytes);
	*c = (struct carry){0};
}

static bool carry_room(struct carry *c, size_t n)
{
	if (c->room - c->length >= n)
		return true;
	size_t room = c->room ? c->room : ROOM_FIRST;
	while (room - c->length < n)
		room *= 2;
	unsigned char *more = heap_alloc(room);
	if (!more)
		return false;
	if (c->length)
		memcpy(more, c->bytes, c->length);
	heap_free(c->bytes);
	c->bytes = more;
	c->room = room;
	return true;
}

void carry_bytes(struct carry *c, void *p, size_t n)
{
	if (c->loading) {
		c->failed |= c->length - c->at < n;
		if (c->failed) {
			memset(p, 0, n);
			return;
		}
		memcpy(p, c->bytes + c->at, n);
		c->at += n;
		return;
	}
	c->failed |= !carry_room(c, n);
	if (c->failed)
		return;
	memcpy(c->bytes + c->length, p, n);
	c->length += n;
}

/* ---- the file ---- */

static bool whole_write(int fd, const void *p, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t k = write(fd, (const char *)p + done, n - done);
		if (k <= 0 && errno != EINTR)
			return false;
		done += k > 0 ? (size_t)k : 0;
	}
	return true;
}

int carry_file(const struct carry *c)
{
	const uint64_t head[2] = {CARRY_MAGIC, c->length};
	int fd = memfd_create("hale-carry", MFD_CLOEXEC), high;
	if (fd < 0)
		return -1;
	/* programs expect the low numbers for themselves */
	high = fcntl(fd, F_DUPFD, CARRY_FD_FLOOR);
	if (high < 0)
		high = fcntl(fd, F_DUPFD, 3);
	close(fd);
	if (high >= 0 &&
	    (!whole_write(high, head, sizeof(head)) || !whole_write(high, c->bytes, c->length))) {
		close(high);
		return -1;
	}
	return high;
}

static struct carry arrived;

static bool whole_read(int fd, void *p, size_t n, off_t at)
{
	for (size_t done = 0; done < n;) {
		ssize_t k = pread(fd, (char *)p + done, n - done, at + (off_t)done);
		if (k == 0 || (k < 0 && errno != EINTR))
			return false;
		done += k > 0 ? (size_t)k : 0;
	}
	return true;
}

static bool carry_read(int fd, struct carry *c)
{
	uint64_t head[2];
	struct stat st;
	if (fstat(fd, &st) || !whole_read(fd, head, sizeof(head), 0) || head[0] != CARRY_MAGIC ||
	    head[1] != (uint64_t)st.st_size - sizeof(head))
		return false;
	carry_begin(c);
	if (!carry_room(c, head[1]) || !whole_read(fd, c->bytes, head[1], sizeof(head)))
		return false;
	c->length = head[1];
	c->loading = true;
	return true;
}

struct carry *carry_arrived(void)
{
	static bool looked;
	const char *text = looked ? NULL : getenv("HALE_CARRY");
	long fd;
	looked = true;
	if (text && (!units_parse_int(text, 0, INT32_MAX, &fd) || !carry_read((int)fd, &arrived))) {
		log_warn("internal error: what this process was before has handed nothing over to "
			 "it; please report");
		_exit(EXIT_UNRECOVERED);
	}
	if (text)
		close((int)fd);
	return arrived.loading ? &arrived : NULL;
}

void carry_end(void)
{
	carry_drop(&arrived);
}
