// SPDX-License-Identifier: BSD-3-Clause
/* Pipes with both ends in this process, and what is in them. */
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

static uint32_t flags_of(const char *proc, int fd)
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
	       is_read_end(flags_of(s->proc, s->fd)) != end->reads;
}

/* Is there a descriptor of the same pipe that goes the other way? */
static bool has_other_end(const struct fd_table *t, const struct fd_probe *p)
{
	const struct pipe_end end = {
	    p->fd, is_read_end((uint32_t)fd_info_number(p, "flags:", 8, 0))};
	return fd_tree_has(t, p->link, goes_other_way, &end);
}

/* Nobody has the other end any more, which only the kernel can tell. */
static bool is_cut_off(const struct fd_table *t, const struct fd_probe *p)
{
	char path[64];
	bool reads = is_read_end((uint32_t)fd_info_number(p, "flags:", 8, 0));
	struct pollfd look = {.events = POLLOUT};
	fmt_print(path, sizeof(path), "%s/fd/%d", t->proc, p->fd);
	look.fd = (int)sys(SYS_openat, AT_FDCWD, path,
			   (reads ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_CLOEXEC);
	if (look.fd < 0)
		return false;
	long n = sys(SYS_poll, &look, 1, 0);
	sys(SYS_close, look.fd);
	return n > 0 && look.revents & (reads ? POLLHUP : POLLERR);
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

/* tee() copies what is in a pipe without taking it out. */
static hale_status_t save_content(struct fd_table *t, const struct fd_probe *p, size_t len,
				  int capacity, struct error *err)
{
	int side[2] = {-1, -1};
	char *data = fd_add_content(t, 0, len, len);
	if (!data || sys(SYS_pipe2, side, O_CLOEXEC | O_NONBLOCK))
		return error_set(err, HALE_ERR_MEMORY, "no memory for the content of a pipe");
	sys(SYS_fcntl, side[1], F_SETPIPE_SZ, capacity);
	long n = sys(SYS_tee, p->fd, side[1], len, 2 /* SPLICE_F_NONBLOCK */);
	size_t got = 0;
	for (long k; n > 0 && got < len; got += (size_t)k)
		if ((k = sys(SYS_read, side[0], data + got, len - got)) <= 0)
			break;
	sys(SYS_close, side[0]);
	sys(SYS_close, side[1]);
	if (got != len)
		return error_set(err, HALE_ERR_SYSTEM,
				 "can't read what is in the pipe of descriptor %d", p->fd);
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
	return save_content(t, p, (size_t)len, (int)capacity, err);
}

/* The first descriptor of a pipe makes it, for all of its descriptors. */
static int open_pipe(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *me = &f->record[index];
	int end[2] = {-1, -1};
	/* more than it takes is an error, not a wait for ever */
	if (sys(SYS_pipe2, end, O_CLOEXEC | O_NONBLOCK) < 0) {
		error_set(err, HALE_ERR_SYSTEM, "can't make a pipe");
		return -1;
	}
	if (me->a)
		sys(SYS_fcntl, end[1], F_SETPIPE_SZ, me->a);
	end[0] = fd_lift(f, end[0]);
	end[1] = fd_lift(f, end[1]);
	int rc = 0;
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *r = &f->record[i];
		char path[64];
		if (r->kind != FD_PIPE || r->inode != me->inode || r->same_as >= 0)
			continue;
		fmt_print(path, sizeof(path), "/proc/thread-self/fd/%d", end[!r->b]);
		f->temp[i] =
		    (int)sys(SYS_openat, AT_FDCWD, path,
			     (r->open_flags & (O_ACCMODE | O_NONBLOCK | O_DIRECT)) | O_CLOEXEC);
		if (r->has_content)
			for (size_t c = 0; c < f->content_count; c++)
				if (f->content[c].record.fd_index == (int32_t)i &&
				    sys(SYS_write, end[1], f->content[c].data, f->content[c].len) !=
					(long)f->content[c].len)
					rc = -EIO;
	}
	sys(SYS_close, end[0]);
	sys(SYS_close, end[1]);
	if (rc || f->temp[index] < 0) {
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
