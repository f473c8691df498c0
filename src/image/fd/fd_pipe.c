// SPDX-License-Identifier: BSD-3-Clause
/* Pipes with both ends in this process, and what is in them. Each write to one with O_DIRECT is a
 * packet: the record's text has their lengths (uint32_t), behind the name of a named pipe. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

static bool is_read_end(uint32_t flags)
{
	return (flags & O_ACCMODE) == O_RDONLY;
}

uint32_t fd_pipe_flags(const char *proc, int fd)
{
	char path[64], info[1024];
	uint32_t value = 0;
	fmt_print(path, sizeof(path), "%s/fdinfo/%d", proc, fd);
	if (sys_read_small(path, info, sizeof(info)) <= 0)
		return 0;
	const char *flags = strstr(info, "flags:");
	for (flags = flags ? flags + 6 : ""; *flags == '\t' || *flags == ' '; flags++)
		;
	for (; *flags >= '0' && *flags <= '7'; flags++)
		value = value * 8 + (uint32_t)(*flags - '0');
	return value;
}

struct pipe_end {
	int fd;
	bool reads;
};

static bool goes_other_way(const struct fd_seen *s, const void *arg)
{
	const struct pipe_end *end = arg;
	return (s->pid || s->fd != end->fd) &&
	       is_read_end(fd_pipe_flags(s->proc, s->fd)) != end->reads;
}

/* Is there a descriptor of the same pipe that goes the other way? */
static bool has_other_end(const struct fd_table *t, const struct fd_probe *p)
{
	const struct pipe_end end = {p->fd,
				     is_read_end((uint32_t)fd_info_number(p, "flags:", 8, 0))};
	return fd_tree_has(t, p->link, goes_other_way, &end);
}

/* Nobody has the other end any more, which only the kernel can tell. */
bool fd_pipe_is_cut_off(const char *proc, int fd)
{
	char path[64];
	bool reads = is_read_end(fd_pipe_flags(proc, fd));
	struct pollfd look = {.events = POLLOUT};
	fmt_print(path, sizeof(path), "%s/fd/%d", proc, fd);
	look.fd = (int)sys(SYS_openat, AT_FDCWD, path,
			   (reads ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_CLOEXEC);
	if (look.fd < 0)
		return false;
	long n = sys(SYS_poll, &look, 1, 0);
	sys(SYS_close, look.fd);
	return n > 0 && look.revents & (reads ? POLLHUP : POLLERR);
}

static bool is_cut_off(const struct fd_table *t, const struct fd_probe *p)
{
	return fd_pipe_is_cut_off(t->proc, p->fd);
}

bool fd_pipe_is_inside(const struct fd_table *t, const struct fd_probe *p)
{
	return !strncmp(p->link, "pipe:[", 6) &&
	       (has_other_end(t, p) ||
		(is_read_end((uint32_t)fd_info_number(p, "flags:", 8, 0)) && is_cut_off(t, p)));
}

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	return S_ISFIFO(p->st.st_mode) && !strncmp(p->link, "pipe:[", 6) &&
	       (has_other_end(t, p) || is_cut_off(t, p));
}

static bool writes_packets(const struct fd_seen *s, const void *arg)
{
	uint32_t flags = fd_pipe_flags(s->proc, s->fd);
	return flags & O_DIRECT && !is_read_end(flags);
}

/* Copies what is in a pipe into another one, without taking it out. */
static bool copy_to(int side[2], int from, size_t len, int capacity)
{
	if (sys(SYS_pipe2, side, O_CLOEXEC | O_NONBLOCK))
		return false;
	sys(SYS_fcntl, side[1], F_SETPIPE_SZ, capacity);
	return sys(SYS_tee, from, side[1], len, 2 /* SPLICE_F_NONBLOCK */) > 0;
}

static void close_both(const int side[2])
{
	for (int i = 0; i < 2; i++)
		if (side[i] >= 0)
			sys(SYS_close, side[i]);
}

/* What could be read in one piece: the rest of a packet that is read in part is gone. */
static bool is_one_packet(const struct fd_table *t, const struct fd_probe *p, int from, size_t len,
			  int capacity)
{
	int side[2] = {-1, -1}, left = 0;
	char first;
	if (len == 1)
		return fd_tree_has(t, p->link, writes_packets, NULL);
	bool ok = copy_to(side, from, len, capacity) && sys(SYS_read, side[0], &first, 1) == 1 &&
		  !sys(SYS_ioctl, side[0], FIONREAD, &left);
	close_both(side);
	return ok && !left;
}

/* A packet that is copied stays one: each call reads one. */
hale_status_t fd_pipe_save(struct fd_table *t, const struct fd_probe *p, int from, size_t len,
			   int capacity, struct fd_record *r, struct error *err)
{
	int side[2] = {-1, -1};
	uint32_t begin = (uint32_t)t->text.len, piece;
	char *data = fd_add_content(t, 0, len, len), *to = NULL;
	bool ok = data && copy_to(side, from, len, capacity);
	size_t got = 0;
	for (long k; ok && got < len; got += (size_t)k) {
		if ((k = sys(SYS_read, side[0], data + got, len - got)) <= 0)
			break;
		piece = (uint32_t)k;
		if (!got && piece == len && !is_one_packet(t, p, from, len, capacity))
			continue;
		if (!(to = bytes_extend(&t->text, sizeof(piece))))
			break;
		memcpy(to, &piece, sizeof(piece));
	}
	close_both(side);
	if (got != len)
		return error_set(err, HALE_ERR_SYSTEM,
				 "can't read what is in the pipe of descriptor %d", p->fd);
	if (!r->text_len)
		r->text_offset = begin;
	r->text_len += (uint32_t)t->text.len - begin;
	return HALE_OK;
}

static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	int len = 0;
	if (t->other)
		return HALE_OK;
	long capacity = sys(SYS_fcntl, p->fd, F_GETPIPE_SZ);
	r->a = capacity > 0 ? (uint64_t)capacity : 0;
	r->b = is_read_end(r->open_flags);
	if (!r->b || sys(SYS_ioctl, p->fd, FIONREAD, &len) || len <= 0)
		return HALE_OK;
	for (size_t i = 0; i < t->records.count; i++) {
		const struct fd_record *o = list_at(&t->records, i);
		if (o->kind == FD_PIPE && o->inode == r->inode && o->b && o->has_content)
			return HALE_OK;
	}
	r->has_content = 1;
	r->size = (uint64_t)len;
	return fd_pipe_save(t, p, p->fd, (size_t)len, (int)capacity, r, err);
}

/* What pipe(2) has made is one open file in all processes that have it, which tells it from what
 * was opened by a path in /proc. */
int fd_pipe_open(int end, const struct fd_record *r)
{
	enum { OPENED = 0100000 /* O_LARGEFILE */ };
	char path[64];
	if (!(r->open_flags & OPENED)) {
		sys(SYS_fcntl, end, F_SETFL, r->open_flags & (O_NONBLOCK | O_DIRECT));
		return (int)sys(SYS_fcntl, end, F_DUPFD_CLOEXEC, 0);
	}
	fmt_print(path, sizeof(path), "/proc/thread-self/fd/%d", end);
	long fd =
	    sys(SYS_openat, AT_FDCWD, path, (r->open_flags & (O_ACCMODE | O_NONBLOCK)) | O_CLOEXEC);
	if (fd >= 0 && r->open_flags & O_DIRECT) /* which open does not take for a pipe */
		sys(SYS_fcntl, fd, F_SETFL, r->open_flags & (O_NONBLOCK | O_DIRECT));
	return (int)fd;
}

/* More than it takes is an error, not a wait for ever. */
bool fd_pipe_fill(int end, const struct fd_restore *f, const struct content *c)
{
	const struct fd_record *r = &f->record[c->record.fd_index];
	const char *text = fd_text(f, r), *data = c->data;
	size_t name = r->kind == FD_FIFO ? strlen(text) + 1 : 0, left = c->len;
	uint32_t piece;
	if (r->text_offset > f->text_len || f->text_len - r->text_offset < r->text_len)
		return false;
	if (r->text_len <= name)
		return sys(SYS_write, end, data, left) == (long)left;
	long flags = sys(SYS_fcntl, end, F_GETFL);
	bool ok = flags >= 0 && !sys(SYS_fcntl, end, F_SETFL, flags | O_DIRECT);
	for (size_t at = name; ok && at + sizeof(piece) <= r->text_len; at += sizeof(piece)) {
		memcpy(&piece, text + at, sizeof(piece));
		ok = piece <= left && sys(SYS_write, end, data, piece) == (long)piece;
		data += piece;
		left -= piece;
	}
	return ok && !left && !sys(SYS_fcntl, end, F_SETFL, flags);
}

static bool fill(const struct fd_restore *f, uint64_t inode, int end)
{
	for (size_t c = 0; c < f->content_count; c++) {
		const struct content *x = &f->content[c];
		int32_t i = x->record.fd_index;
		if (i >= 0 && (size_t)i < f->count && f->record[i].kind == FD_PIPE &&
		    f->record[i].inode == inode && !fd_pipe_fill(end, f, x))
			return false;
	}
	return true;
}

/* The first descriptor of a pipe makes it, for all of its descriptors. */
static int open_pipe(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *me = &f->record[index];
	int end[2] = {-1, -1};
	if (sys(SYS_pipe2, end, O_CLOEXEC | O_NONBLOCK) < 0) {
		error_set(err, HALE_ERR_SYSTEM, "can't make a pipe");
		return -1;
	}
	if (me->a)
		sys(SYS_fcntl, end[1], F_SETPIPE_SZ, me->a);
	end[0] = fd_lift(f, end[0]);
	end[1] = fd_lift(f, end[1]);
	bool ok = fill(f, me->inode, end[1]);
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *r = &f->record[i];
		if (r->kind != FD_PIPE || r->inode != me->inode || r->same_as >= 0)
			continue;
		f->temp[i] = fd_lift(f, fd_pipe_open(end[!r->b], r));
	}
	sys(SYS_close, end[0]);
	sys(SYS_close, end[1]);
	if (!ok || f->temp[index] < 0) {
		error_set(err, HALE_ERR_SYSTEM, "can't fill the pipe of descriptor %d again",
			  me->fd);
		return -1;
	}
	int fd = f->temp[index];
	f->temp[index] = -1;
	return fd;
}

const struct fd_ops fd_pipe = {
    .kind = FD_PIPE, .name = "pipe", .match = match, .capture = capture, .open = open_pipe};
