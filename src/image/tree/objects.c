// SPDX-License-Identifier: BSD-3-Clause
#include "image/tree/objects.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/fmt.h"

enum { FLOOR = 64 };

static int control = -1;

int objects_control_fd(void)
{
	return control;
}

int objects_lift(int fd)
{
	if (fd < 0)
		return fd;
	int high = (int)sys(SYS_fcntl, fd, F_DUPFD, FLOOR);
	sys(SYS_close, fd);
	return high;
}

static hale_status_t add_image(struct objects *o, int32_t pid, struct image_file *f,
			       const struct image_tables *t, struct error *err)
{
	struct objects_image *i = &o->image[o->images++];
	struct content *contents = NULL;
	size_t count = 0;
	hale_status_t rc = sink_read_contents(f, &o->sink->arena, &contents, &count, err);
	*i = (struct objects_image){.pid = pid, .file = f, .t = *t};
	i->fds = (struct fd_restore){.arena = &o->sink->arena,
				     .record = t->fds,
				     .count = t->fd_count,
				     .text = t->fd_text,
				     .text_len = t->fd_text_len,
				     .content = contents,
				     .content_count = count,
				     .stream = {0, 1, 2},
				     .old_pid = pid};
	i->fds.temp = arena_alloc(&o->sink->arena, (t->fd_count + 1) * sizeof(*i->fds.temp));
	if (rc == HALE_OK && !i->fds.temp)
		return error_set(err, HALE_ERR_MEMORY, "no memory to rebuild child processes");
	for (size_t n = 0; i->fds.temp && n < t->fd_count; n++)
		i->fds.temp[n] = -1;
	return rc;
}

struct tree_sink *objects_init(struct objects *o, struct sink *s, struct error *err)
{
	struct tree_sink *t = NULL;
	*o = (struct objects){.sink = s};
	control = objects_lift((int)sys(SYS_memfd_create, "hale-tree", 0));
	long at = control < 0 ? control : sys(SYS_ftruncate, control, sizeof(*t));
	if (!at)
		at = sys(SYS_mmap, 0, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED, control, 0);
	if (sys_failed(at)) {
		error_set(err, HALE_ERR_MEMORY, "no memory to rebuild child processes");
		return NULL;
	}
	t = o->tree = (struct tree_sink *)at;
	t->magic = TREE_MAGIC;
	return add_image(o, s->t.process->pid, &s->file[0], &s->t, err) == HALE_OK ? t : NULL;
}

hale_status_t objects_take_image(struct objects *o, int32_t pid, int fd, struct error *err)
{
	struct image_file *f = arena_alloc(&o->sink->arena, sizeof(*f));
	char *path = arena_alloc(&o->sink->arena, 64);
	struct image_tables t;
	if (!f || !path)
		return error_set(err, HALE_ERR_MEMORY, "no memory to rebuild child processes");
	fmt_print(path, 64, "/proc/self/fd/%d", fd);
	hale_status_t rc = image_file_open(f, &o->sink->arena, path, err);
	if (rc == HALE_OK)
		rc = image_file_tables(f, &t, err);
	return rc == HALE_OK ? add_image(o, pid, f, &t, err) : rc;
}

const char *objects_program(const struct objects *o, int32_t pid)
{
	for (size_t i = 0; i < o->images; i++)
		if (o->image[i].pid == pid)
			return o->image[i].file->header.program;
	return "";
}

/* ---- making ---- */

struct tree_object *objects_find(struct objects *o, uint32_t kind, uint64_t device, uint64_t inode)
{
	for (uint32_t i = 0; i < o->tree->objects; i++) {
		struct tree_object *x = &o->tree->object[i];
		if (x->kind == kind && x->device == device && x->inode == inode)
			return x;
	}
	return NULL;
}

static inline struct tree_object *find(struct objects *o, uint32_t kind, uint64_t device,
				       uint64_t inode)
{
	return objects_find(o, kind, device, inode);
}

struct tree_object *objects_add(struct objects *o, uint32_t kind, uint64_t device, uint64_t inode,
				struct error *err)
{
	if (o->tree->objects == TREE_OBJECTS_MAX) {
		error_set(err, HALE_ERR_MEMORY, "child processes share more than %d things",
			  TREE_OBJECTS_MAX);
		return NULL;
	}
	struct tree_object *x = &o->tree->object[o->tree->objects++];
	*x = (struct tree_object){
	    .kind = kind, .fd = -1, .other = -1, .device = device, .inode = inode};
	return x;
}

/* Does an image after number i have a descriptor of that kind, too? */
static bool is_shared(const struct objects *o, size_t i, uint32_t kind, uint64_t device,
		      uint64_t inode)
{
	for (size_t k = i + 1; k < o->images; k++)
		for (size_t n = 0; n < o->image[k].t.fd_count; n++) {
			const struct fd_record *r = &o->image[k].t.fds[n];
			if (r->kind == kind && r->inode == inode && r->device == device)
				return true;
		}
	return false;
}

const struct content *objects_content(const struct objects *o, uint32_t kind, uint64_t inode,
				      const struct fd_restore **of)
{
	for (size_t i = 0; i < o->images; i++) {
		const struct fd_restore *f = &o->image[i].fds;
		if (of)
			*of = f;
		for (size_t c = 0; c < f->content_count; c++) {
			int32_t at = f->content[c].record.fd_index;
			if (at >= 0 && (size_t)at < f->count && f->record[at].kind == kind &&
			    f->record[at].inode == inode && f->content[c].len &&
			    !(f->record[at].truncates && kind != FD_FILE))
				return &f->content[c];
		}
	}
	return NULL;
}

static bool make_pipe(struct objects *o, const struct fd_record *r, struct error *err)
{
	struct tree_object *x = objects_add(o, TREE_PIPE, 0, r->inode, err);
	const struct fd_restore *of;
	const struct content *c = objects_content(o, FD_PIPE, r->inode, &of);
	int end[2] = {-1, -1};
	if (!x)
		return false;
	if (sys(SYS_pipe2, end, O_NONBLOCK)) {
		error_set(err, HALE_ERR_SYSTEM, "can't make a pipe between child processes");
		return false;
	}
	if (r->a)
		sys(SYS_fcntl, end[1], F_SETPIPE_SZ, r->a);
	x->fd = objects_lift(end[0]);
	x->other = objects_lift(end[1]);
	if (x->fd >= 0 && x->other >= 0 && (!c || fd_pipe_fill(x->other, of, c)))
		return true;
	error_set(err, HALE_ERR_SYSTEM, "can't fill a pipe between child processes again");
	return false;
}

static bool has_writers(const struct objects *o, const struct fd_record *r)
{
	for (size_t i = 0; i < o->images; i++)
		for (size_t n = 0; n < o->image[i].t.fd_count; n++) {
			const struct fd_record *w = &o->image[i].t.fds[n];
			if (fd_fifo_writes(w) && w->inode == r->inode && w->device == r->device)
				return true;
		}
	return false;
}

static bool make_fifo(struct objects *o, size_t i, const struct fd_record *r, struct error *err)
{
	struct tree_object *x = objects_add(o, TREE_FIFO, r->device, r->inode, err);
	const struct fd_restore *of = NULL;
	const struct content *c = NULL;
	if (!x)
		return false;
	for (size_t k = i; k < o->images && !c; k++) {
		of = &o->image[k].fds;
		c = fd_fifo_content(of, r);
	}
	x->fd = objects_lift(
	    fd_fifo_make(r, fd_text(&o->image[i].fds, r), has_writers(o, r), of, c, err));
	return x->fd >= 0;
}

/* Has it an open file of another process, and of which descriptor? */
static bool is_of_another(const struct fd_record *r, uint64_t *pid, uint64_t *fd)
{
	*pid = *fd = 0;
	if (r->kind == FD_FILE) {
		*pid = r->a;
		*fd = r->b;
	} else if (r->kind == FD_UNLINKED) {
		*pid = (uint64_t)r->interval_s;
		*fd = (uint64_t)r->interval_ns;
	} else if (r->kind == FD_EVENT || r->kind == FD_TIMER || r->kind == FD_INOTIFY) {
		*pid = r->offset;
		*fd = r->size;
	}
	return *pid != 0;
}

/* The open file of record `first` of an image; without a name, that file once more. */
static int open_shared(struct objects *o, struct objects_image *m, size_t first, struct error *err)
{
	const struct fd_record *r = &m->t.fds[first];
	if (r->kind != FD_UNLINKED)
		return fd_open_file(&m->fds, first, err);
	const struct tree_object *x = find(o, TREE_MEMORY, r->device, r->inode);
	int fd = x ? fd_nameless_again(&m->fds, x->fd, r) : -1;
	if (fd < 0)
		error_set(err, HALE_ERR_STORE,
			  "a file without a name that child processes share can't be opened again");
	return fd;
}

/* The open file that record r says it shares with descriptor `of` of process pid. */
static bool make_file(struct objects *o, const struct fd_record *r, uint64_t pid, uint64_t of,
		      struct error *err)
{
	for (size_t i = 0; i < o->images; i++) {
		struct objects_image *m = &o->image[i];
		for (size_t n = 0; m->pid == (int32_t)pid && n < m->t.fd_count; n++) {
			if (m->t.fds[n].kind != r->kind || m->t.fds[n].fd != (int32_t)of)
				continue;
			size_t first = m->t.fds[n].same_as >= 0 ? (size_t)m->t.fds[n].same_as : n;
			struct tree_object *x = objects_add(o, TREE_FILE, pid, of, err);
			x = x && first != n &&
				    !find(o, TREE_FILE, pid, (uint64_t)m->t.fds[first].fd)
				? objects_add(o, TREE_FILE, pid, (uint64_t)m->t.fds[first].fd, err)
				: x;
			int fd = x ? open_shared(o, m, first, err) : -1;
			if (fd < 0)
				return false;
			fd = objects_lift(fd);
			for (uint32_t k = 0; k < o->tree->objects; k++)
				if (o->tree->object[k].kind == TREE_FILE &&
				    o->tree->object[k].device == pid && o->tree->object[k].fd < 0)
					o->tree->object[k].fd = fd;
			return fd >= 0;
		}
	}
	error_set(err, HALE_ERR_STATE, "a file that child processes share is not in their images");
	return false;
}

/* Where is the content of a file without a name? In the image of the first process that has it. */
static bool nameless_find(struct objects *o, const struct fd_record *r, size_t *image,
			  size_t *index)
{
	bool found = false;
	for (size_t i = 0; i < o->images; i++) {
		const struct fd_restore *f = &o->image[i].fds;
		for (size_t n = 0; n < f->count; n++) {
			const struct fd_record *x = &f->record[n];
			if (x->kind != FD_UNLINKED || x->inode != r->inode ||
			    x->device != r->device || x->same_as >= 0)
				continue;
			bool filled = false;
			for (size_t c = 0; c < f->content_count && !filled; c++)
				filled = f->content[c].record.fd_index == (int32_t)n;
			if (!found || filled) {
				*image = i;
				*index = n;
				found = true;
			}
			if (filled)
				return true;
		}
	}
	return found;
}

static bool make_nameless(struct objects *o, const struct fd_record *r, struct error *err)
{
	size_t i = 0, n = 0;
	struct tree_object *x = objects_add(o, TREE_MEMORY, r->device, r->inode, err);
	if (!x || !nameless_find(o, r, &i, &n))
		return false;
	int fd = objects_lift(fd_open_file(&o->image[i].fds, n, err));
	struct tree_object *own = fd < 0 ? NULL
					 : objects_add(o, TREE_FILE, (uint64_t)o->image[i].pid,
						       (uint64_t)o->image[i].t.fds[n].fd, err);
	if (!own)
		return false;
	own->fd = fd;
	/* who maps it may want to write, as that descriptor need not */
	struct fd_record writes = {.open_flags = O_RDWR};
	x->fd = objects_lift(fd_nameless_again(&o->image[i].fds, fd, &writes));
	x->fd = x->fd < 0 ? fd : x->fd;
	return true;
}

static bool make_memory(struct objects *o, uint64_t device, uint64_t inode, uint64_t size,
			struct error *err)
{
	struct tree_object *x = find(o, TREE_MEMORY, device, inode);
	struct stat st = {0};
	if (!x && (x = objects_add(o, TREE_MEMORY, device, inode, err)))
		x->fd = objects_lift((int)sys(SYS_memfd_create, "shared", MFD_ALLOW_SEALING));
	if (!x)
		return false;
	if (x->fd >= 0 && !sys(SYS_fstat, x->fd, &st) &&
	    ((uint64_t)st.st_size >= size || !sys(SYS_ftruncate, x->fd, size)))
		return true;
	error_set(err, HALE_ERR_MEMORY, "no memory for what child processes share");
	return false;
}

static bool is_mapped(const struct objects_image *m, uint64_t device, uint64_t inode)
{
	for (size_t n = 0; n < m->t.map_count; n++) {
		const struct map_record *r = &m->t.maps[n];
		if (r->kind == MAP_KIND_SHARED_ANON && r->inode == inode && r->device == device)
			return true;
	}
	return false;
}

/* Does an image from that one on map it? */
static bool is_mapped_from(const struct objects *o, size_t from, uint64_t device, uint64_t inode)
{
	for (size_t k = from; k < o->images; k++)
		if (is_mapped(&o->image[k], device, inode))
			return true;
	return false;
}

static bool is_mapped_by_another(const struct objects *o, size_t i, uint64_t device, uint64_t inode)
{
	for (size_t k = 0; k < o->images; k++)
		if (k != i && is_mapped(&o->image[k], device, inode))
			return true;
	return false;
}

static bool make_of_maps(struct objects *o, size_t i, struct error *err)
{
	const struct objects_image *m = &o->image[i];
	for (size_t n = 0; n < m->t.map_count; n++) {
		const struct map_record *r = &m->t.maps[n];
		if (r->kind == MAP_KIND_SHARED_ANON &&
		    (is_mapped_from(o, i + 1, r->device, r->inode) ||
		     find(o, TREE_MEMORY, r->device, r->inode)) &&
		    !make_memory(o, r->device, r->inode, r->offset + r->end - r->start, err))
			return false;
	}
	return true;
}

/* Before all memory, since it may be such a file, and all open files. */
static bool make_all_nameless(struct objects *o, struct error *err)
{
	for (size_t i = 0; i < o->images; i++)
		for (size_t n = 0; n < o->image[i].t.fd_count; n++) {
			const struct fd_record *r = &o->image[i].t.fds[n];
			if (r->kind == FD_UNLINKED && S_ISREG(r->mode) && r->same_as < 0 &&
			    !find(o, TREE_MEMORY, r->device, r->inode) &&
			    (is_shared(o, i, FD_UNLINKED, r->device, r->inode) ||
			     is_mapped_by_another(o, i, r->device, r->inode)) &&
			    !make_nameless(o, r, err))
				return false;
		}
	return true;
}

static bool make_ended(struct objects *o, size_t i, size_t n, struct error *err)
{
	struct tree_object *x = objects_add(o, TREE_ENDED, 0, o->image[i].t.fds[n].inode, err);
	if (x)
		x->fd = objects_lift(fd_open_file(&o->image[i].fds, n, err));
	return x && x->fd >= 0;
}

static bool has_terminal(const struct objects *o, uint64_t number)
{
	for (uint32_t i = 0; i < o->tree->objects; i++)
		if (o->tree->object[i].kind == TREE_TERMINAL && o->tree->object[i].inode == number)
			return true;
	return false;
}

/* Of the master's record, whoever has it. */
static bool make_terminal(struct objects *o, uint64_t number, struct error *err)
{
	const struct fd_record *of = NULL;
	const struct image_tables *t = NULL;
	bool has_slave = false;
	int end[2];
	for (size_t i = 0; i < o->images; i++)
		for (size_t n = 0; n < o->image[i].t.fd_count; n++) {
			const struct fd_record *r = &o->image[i].t.fds[n];
			if (r->kind != FD_TERMINAL || r->a != number || r->same_as >= 0)
				continue;
			has_slave |= !r->b;
			if (!of || r->b) {
				of = r;
				t = &o->image[i].t;
			}
		}
	struct tree_object *x = of ? objects_add(o, TREE_TERMINAL, 0, number, err) : NULL;
	struct terminal_record is = {0};
	if (!x || !fd_terminal_make(t->fd_text, t->fd_text_len, of, end, err))
		return false;
	x->fd = objects_lift(end[0]);
	x->other = objects_lift(end[1]);
	if (fd_terminal_record(t->fd_text, t->fd_text_len, of, &is)) {
		x->reserved = is.session;
		x->device = (uint64_t)is.group;
	}
	fd_terminal_end(has_slave || is.session, &x->other);
	return x->fd >= 0;
}

static bool make_of_descriptors(struct objects *o, size_t i, struct error *err)
{
	const struct objects_image *m = &o->image[i];
	for (size_t n = 0; n < m->t.fd_count; n++) {
		const struct fd_record *r = &m->t.fds[n];
		uint64_t pid, fd;
		bool ok = true;
		if (r->same_as >= 0)
			continue;
		if (r->kind == FD_PIPE && !find(o, TREE_PIPE, 0, r->inode) &&
		    is_shared(o, i, FD_PIPE, r->device, r->inode))
			ok = make_pipe(o, r, err);
		if (r->kind == FD_FIFO && !(r->open_flags & O_PATH) &&
		    !find(o, TREE_FIFO, r->device, r->inode) &&
		    is_shared(o, i, FD_FIFO, r->device, r->inode))
			ok = make_fifo(o, i, r, err);
		if (r->kind == FD_SOCKETPAIR && !find(o, TREE_SOCKET, 0, r->inode) &&
		    (is_shared(o, i, FD_SOCKETPAIR, r->device, r->inode) ||
		     is_shared(o, i, FD_SOCKETPAIR, r->device, r->a)))
			ok = objects_make_pair(o, r, err);
		if (r->kind == FD_SOCKETPAIR)
			objects_set_flags(o, r);
		if (r->kind == FD_SOCKET && !find(o, TREE_SOCKET, 0, r->inode))
			ok = objects_make_connection(o, r, err);
		if (is_of_another(r, &pid, &fd) && !find(o, TREE_FILE, pid, fd))
			ok = make_file(o, r, pid, fd, err);
		if (r->kind == FD_TERMINAL && !has_terminal(o, r->a))
			ok = make_terminal(o, r->a, err);
		if (r->kind == FD_PID && !r->a && !find(o, TREE_ENDED, 0, r->inode) &&
		    is_shared(o, i, FD_PID, r->device, r->inode))
			ok = make_ended(o, i, n, err);
		if (!ok)
			return false;
	}
	return true;
}

int objects_way_open(struct objects *o, size_t i, size_t n, struct error *err)
{
	const struct objects_image *m = &o->image[i];
	size_t first = m->t.fds[n].same_as >= 0 ? (size_t)m->t.fds[n].same_as : n;
	const struct fd_record *r = &m->t.fds[first];
	uint64_t pid, of;
	struct tree_object *x;
	switch (r->kind) {
	case FD_PIPE:
		if (!find(o, TREE_PIPE, 0, r->inode) && !make_pipe(o, r, err))
			return -1;
		x = find(o, TREE_PIPE, 0, r->inode);
		return fd_pipe_open(r->b ? x->fd : x->other, r);
	case FD_FIFO:
		if (!find(o, TREE_FIFO, r->device, r->inode) && !make_fifo(o, i, r, err))
			return -1;
		return fd_fifo_open(find(o, TREE_FIFO, r->device, r->inode)->fd, r);
	case FD_SOCKETPAIR:
		if (!find(o, TREE_SOCKET, 0, r->inode) && !objects_make_pair(o, r, err))
			return -1;
		objects_set_flags(o, r);
		x = find(o, TREE_SOCKET, 0, r->inode);
		break;
	case FD_SOCKET:
		x = find(o, TREE_SOCKET, 0, r->inode);
		break;
	default:
		if (!is_of_another(r, &pid, &of)) {
			pid = (uint64_t)m->pid;
			of = (uint64_t)r->fd;
		}
		if (!find(o, TREE_FILE, pid, of) && !make_file(o, r, pid, of, err))
			return -1;
		x = find(o, TREE_FILE, pid, of);
	}
	return x ? (int)sys(SYS_fcntl, x->fd, F_DUPFD_CLOEXEC, 0) : -1;
}

hale_status_t objects_make(struct objects *o, struct error *err)
{
	bool made = make_all_nameless(o, err);
	for (size_t i = 0; made && i < o->images; i++)
		made = make_of_descriptors(o, i, err) && make_of_maps(o, i, err);
	made = made && objects_way_deliver(o, err) && objects_listen(o, err);
	if (!made && err->code == HALE_OK) /* nothing else fails without a sentence */
		error_set(err, HALE_ERR_SYSTEM,
			  "too few descriptors to rebuild child processes: raise `ulimit -n`");
	return made ? HALE_OK : err->code;
}
