// SPDX-License-Identifier: BSD-3-Clause
#include "image/fd/fd.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fmt.h"
#include "image/tree/tree.h"

enum { LOOKS = 4 };

/* struct linux_dirent64: where its length and its name stand */
enum { DIRENT_LEN = 16, DIRENT_NAME = 19 };

static const struct fd_ops *const kinds[] = {
    &fd_terminal, &fd_queue,  &fd_stream, &fd_file,  &fd_unlinked, &fd_device,
    &fd_pipe,	  &fd_event,  &fd_signal, &fd_timer, &fd_epoll,	   &fd_socketpair,
    &fd_broker,	  &fd_socket, &fd_pid,	  &fd_fifo,  &fd_inotify,  &fd_common,
};

static const struct fd_ops *kind_ops(uint32_t kind)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i]->kind == kind)
			return kinds[i];
	return NULL;
}

const struct fd_ops *fd_kind_at(size_t i)
{
	return i < ARRAY_LEN(kinds) ? kinds[i] : NULL;
}

bool fd_dir_open(struct fd_dir *d, const char *proc)
{
	char path[64];
	*d = (struct fd_dir){0};
	fmt_print(path, sizeof(path), "%s/fd", proc);
	d->dir = (int)sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d->own = !strcmp(proc, "/proc/thread-self");
	return d->dir >= 0;
}

int fd_dir_next(struct fd_dir *d)
{
	for (;;) {
		if (d->at == d->len) {
			d->at = 0;
			d->len = sys(SYS_getdents64, d->dir, d->buf, sizeof(d->buf));
			if (d->len <= 0)
				return -1;
		}
		const char *entry = d->buf + d->at;
		uint16_t len;
		int fd = 0;
		memcpy(&len, entry + DIRENT_LEN, sizeof(len));
		d->at += len;
		if (entry[DIRENT_NAME] == '.')
			continue;
		for (const char *c = entry + DIRENT_NAME; *c >= '0' && *c <= '9'; c++)
			fd = fd * 10 + (*c - '0');
		if (!d->own || fd != d->dir)
			return fd;
	}
}

void fd_dir_close(struct fd_dir *d)
{
	sys(SYS_close, d->dir);
}

bool fd_tree_holds(const struct fd_table *t, int32_t pid)
{
	for (size_t i = 0; i < t->tree_count; i++)
		if (t->tree[i] == pid)
			return true;
	/* or that whose table it is */
	char proc[32];
	fmt_print(proc, sizeof(proc), "/proc/%d", (int)pid);
	return t->other ? !strcmp(t->proc, proc) : pid == (int32_t)sys(SYS_getpid);
}

bool fd_tree_has_socket(const struct fd_table *t, uint64_t inode)
{
	char wanted[64];
	fmt_print(wanted, sizeof(wanted), "socket:[%lu]", (unsigned long)inode);
	return fd_tree_has(t, wanted, NULL, NULL);
}

bool fd_beside_has_socket(const struct fd_table *t, uint64_t inode)
{
	char wanted[64], proc[32], path[64], link[64];
	struct fd_dir dir;
	bool found = false;
	fmt_print(wanted, sizeof(wanted), "socket:[%lu]", (unsigned long)inode);
	for (size_t i = 0; i < t->beside_count && !found; i++) {
		fmt_print(proc, sizeof(proc), "/proc/%d", (int)t->beside[i]);
		if (!fd_dir_open(&dir, proc))
			continue;
		for (int fd; !found && (fd = fd_dir_next(&dir)) >= 0;) {
			fmt_print(path, sizeof(path), "%s/fd/%d", proc, fd);
			long n = sys(SYS_readlink, path, link, sizeof(link) - 1);
			link[n > 0 ? n : 0] = 0;
			found = !strcmp(link, wanted);
		}
		fd_dir_close(&dir);
	}
	if (found && t->shared)
		*t->shared = true;
	return found;
}

/* ---- for the kinds ---- */

uint64_t fd_info_number(const struct fd_probe *p, const char *key, int base, uint64_t fallback)
{
	const char *at = strstr(p->info, key);
	if (!at)
		return fallback;
	at += strlen(key);
	while (*at == ' ' || *at == '\t' || *at == '(')
		at++;
	uint64_t v = 0;
	for (;; at++) {
		int digit = *at >= '0' && *at <= '9'   ? *at - '0'
			    : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10
						       : 99;
		if (digit >= base)
			return v;
		v = v * (uint64_t)base + (uint64_t)digit;
	}
}

bool fd_is_anon(const struct fd_probe *p, const char *name)
{
	static const char prefix[] = "anon_inode:";
	return !strncmp(p->link, prefix, sizeof(prefix) - 1) &&
	       !strcmp(p->link + sizeof(prefix) - 1, name);
}

hale_status_t fd_refuse(const struct fd_probe *p, const char *what, struct error *err)
{
	return error_set(err, HALE_ERR_UNSUPPORTED,
			 "descriptor %d (%s) is %s, which can't be saved; close it before the "
			 "checkpoint",
			 p->fd, p->link, what);
}

hale_status_t fd_refuse_for_now(const struct fd_probe *p, const char *what, struct error *err)
{
	return error_set(err, HALE_ERR_AGAIN,
			 "descriptor %d (%s) is %s, which can't be saved now; the next checkpoint "
			 "tries again",
			 p->fd, p->link, what);
}

bool fd_add_text(struct fd_table *t, struct fd_record *r, const void *text, size_t len)
{
	char *to = bytes_extend(&t->text, len);
	if (!to)
		return false;
	memcpy(to, text, len);
	r->text_offset = (uint32_t)(t->text.len - len);
	r->text_len = (uint32_t)len;
	return true;
}

void *fd_add_content(struct fd_table *t, uint64_t offset, uint64_t total, size_t len)
{
	char *data = arena_pages(t->arena, len ? len : 1);
	struct content *c = data ? list_add(&t->contents) : NULL;
	if (!c)
		return NULL;
	*c = (struct content){{(int32_t)t->records.count, -1, offset, total}, data, len};
	return data;
}

bool fd_add_stream(struct fd_table *t, const char *data, size_t len)
{
	for (size_t at = 0, n; at < len; at += n) {
		n = len - at < FRAME_DATA_MAX ? len - at : FRAME_DATA_MAX;
		char *to = fd_add_content(t, at, len, n);
		if (!to)
			return false;
		memcpy(to, data + at, n);
	}
	return true;
}

const char *fd_text(const struct fd_restore *f, const struct fd_record *r)
{
	return f->text + r->text_offset;
}

int fd_write_content(const struct fd_restore *f, size_t index, int fd)
{
	for (size_t i = 0; i < f->content_count; i++) {
		const struct content *c = &f->content[i];
		if (c->record.fd_index != (int32_t)index)
			continue;
		int rc = sys_write_at(fd, c->data, c->len, c->record.offset);
		if (rc)
			return rc;
	}
	return 0;
}

static bool is_zero(const char *p, size_t len)
{
	return len == 0 || (!p[0] && !memcmp(p, p + 1, len - 1));
}

int fd_write_fresh(const struct fd_restore *f, size_t index, int fd)
{
	for (size_t i = 0; i < f->content_count; i++) {
		const struct content *c = &f->content[i];
		if (c->record.fd_index != (int32_t)index)
			continue;
		for (size_t at = 0, n; at < c->len; at += n) {
			n = c->len - at < HALE_PAGE ? c->len - at : HALE_PAGE;
			const char *p = (const char *)c->data + at;
			int rc = is_zero(p, n) ? 0 : sys_write_at(fd, p, n, c->record.offset + at);
			if (rc)
				return rc;
		}
	}
	return 0;
}

int fd_lift(const struct fd_restore *f, int fd)
{
	if (fd < 0 || fd >= f->floor)
		return fd;
	int high = (int)sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, f->floor);
	sys(SYS_close, fd);
	return high;
}

/* ---- capture ---- */

bool fd_table_is_own(const struct fd_table *t, int fd)
{
	for (size_t i = 0; i < t->own_count; i++)
		if (t->own[i] == fd)
			return true;
	return false;
}

/* What has lost the name that it was opened by may have another one, mostly beside it. */
static void find_other_name(struct fd_probe *p)
{
	char entries[1024], *slash = strrchr(p->link, '/');
	struct stat st = {0};
	if (!p->deleted || !S_ISREG(p->st.st_mode) || !p->st.st_nlink || !slash)
		return;
	size_t room = sizeof(p->link) - (size_t)(slash + 1 - p->link);
	char kept = slash[1];
	slash[1] = 0;
	long n, folder = sys(SYS_openat, AT_FDCWD, p->link, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	slash[1] = kept;
	while (folder >= 0 && p->deleted &&
	       (n = sys(SYS_getdents64, folder, entries, sizeof(entries))) > 0)
		for (long at = 0; at < n && p->deleted;) {
			const char *entry = entries + at, *name = entry + DIRENT_NAME;
			uint16_t len;
			uint64_t inode;
			memcpy(&inode, entry, sizeof(inode));
			memcpy(&len, entry + DIRENT_LEN, sizeof(len));
			at += len;
			if (inode != p->st.st_ino || strlen(name) >= room ||
			    sys(SYS_newfstatat, folder, name, &st, AT_SYMLINK_NOFOLLOW) ||
			    st.st_ino != p->st.st_ino || st.st_dev != p->st.st_dev)
				continue;
			memcpy(slash + 1, name, strlen(name) + 1);
			p->deleted = false;
			p->renamed = true;
		}
	if (folder >= 0)
		sys(SYS_close, folder);
}

/* 1: all is there to see; 0: there is no such descriptor; below 0: the error. */
static long probe_fill(const struct fd_table *t, struct fd_probe *p, int fd)
{
	static const char deleted[] = " (deleted)";
	char path[64];
	p->fd = fd;
	p->deleted = p->renamed = false;
	fmt_print(path, sizeof(path), "%s/fd/%d", t->proc, fd);
	long n = sys(SYS_readlink, path, p->link, sizeof(p->link) - 1);
	if (n < 0)
		return n == -ENOENT ? 0 : n;
	p->link[n] = 0;
	size_t suffix = sizeof(deleted) - 1;
	if ((size_t)n > suffix && !memcmp(p->link + n - suffix, deleted, suffix)) {
		p->link[(size_t)n - suffix] = 0;
		p->deleted = true;
	}
	memset(&p->st, 0, sizeof(p->st));
	sys(SYS_newfstatat, AT_FDCWD, path, &p->st, 0);
	find_other_name(p);
	fmt_print(path, sizeof(path), "%s/fdinfo/%d", t->proc, fd);
	n = sys_read_small(path, p->info, sizeof(p->info));
	return n > 0 ? 1 : n == -ENOENT ? 0 : n < 0 ? n : -EIO;
}

/* Does another descriptor share its open file (and so its offset)? Its record is the next one. */
static int find_same(struct fd_table *t, const struct fd_record *r, int fd)
{
	uint64_t key = r->device;
	key = fd_mix(fd_mix(fd_mix(key, r->inode), r->open_flags), r->kind);
	int next = (int)t->records.count;
	int first = fd_same_put(&t->same, key, (int32_t)sys(SYS_getpid), fd, next);
	if (first >= 0)
		return first == next ? -1 : first;
	/* where kcmp isn't allowed: one place in one file, by all that can be seen */
	for (int i = 0; i < next; i++) {
		const struct fd_record *o = list_at(&t->records, (size_t)i);
		if (o->same_as < 0 && o->kind == r->kind && o->device == r->device && o->inode &&
		    o->inode == r->inode && o->open_flags == r->open_flags &&
		    o->offset == r->offset && o->a == r->a && r->kind <= FD_PIPE)
			return i;
	}
	return -1;
}

/* What a descriptor is that none of the kinds wants. */
static const char *refusal(const struct fd_probe *p)
{
	static const struct {
		const char *begins, *what;
	} known[] = {{"/dev/nvidia", "a GPU"},
		     {"/dev/dri/", "a GPU"},
		     {"/dev/kfd", "a GPU"},
		     {"/dev/infiniband/", "an InfiniBand device"},
		     {"anon_inode:inotify", "an inotify watch"},
		     {"anon_inode:[io_uring]", "an io_uring"},
		     {"anon_inode:[perf_event]", "a performance counter"},
		     {"anon_inode:[userfaultfd]", "a userfaultfd"}};
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strncmp(p->link, known[i].begins, strlen(known[i].begins)))
			return known[i].what;
	return S_ISSOCK(p->st.st_mode)	 ? "a socket to outside its processes"
	       : S_ISCHR(p->st.st_mode)	 ? "a device"
	       : S_ISBLK(p->st.st_mode)	 ? "a block device"
	       : S_ISFIFO(p->st.st_mode) ? "a pipe to another process"
					 : "of a kind that Hale doesn't know";
}

static bool is_of_another(const struct fd_seen *s, const void *arg)
{
	return s->pid && s->pid != *(const int32_t *)arg;
}

/* A file without a name that another process has, too, is one file again afterwards. */
static hale_status_t look_at_nameless(const struct fd_table *t, const struct fd_probe *p,
				      struct fd_record *r, struct error *err)
{
	int32_t self = (int32_t)sys(SYS_getpid);
	char link[IMAGE_PATH_MAX];
	struct fd_seen first;
	fd_nameless_link(p, link);
	if (!S_ISREG(r->mode))
		return fd_tree_has(t, link, is_of_another, &self)
			   ? fd_refuse(p,
				       "a folder or link without a name that another process "
				       "has, too",
				       err)
			   : HALE_OK;
	if (fd_tree_first(t, p->fd, link, &first)) {
		r->interval_s = first.pid;
		r->interval_ns = first.fd;
	}
	return HALE_OK;
}

/* What it has together with processes that are captured with it. The first of them has it; of the
 * others' open files a and b say which that is. */
static hale_status_t look_at_tree(const struct fd_table *t, const struct fd_probe *p,
				  struct fd_record *r, struct error *err)
{
	struct fd_seen first;
	char path[64], link[IMAGE_PATH_MAX];
	if (!t->tree_count || t->other)
		return HALE_OK;
	if (r->kind == FD_UNLINKED)
		return look_at_nameless(t, p, r, err);
	bool counts = p->link[0] != '/' && fd_may_be_common(p->link);
	if (counts && fd_tree_first(t, p->fd, p->link, &first)) {
		r->offset = (uint64_t)first.pid;
		r->size = (uint64_t)first.fd;
		return HALE_OK;
	}
	if (r->kind != FD_FILE)
		return HALE_OK;
	fmt_print(path, sizeof(path), "%s/fd/%d", t->proc, p->fd);
	long n = p->renamed ? sys(SYS_readlink, path, link, sizeof(link) - 1) : 0;
	link[n > 0 ? n : 0] = 0;
	if (fd_tree_first(t, p->fd, p->renamed ? link : p->link, &first)) {
		r->a = (uint64_t)first.pid;
		r->b = (uint64_t)first.fd;
	}
	return HALE_OK;
}

/* What counts for a number that the process has can't be given to one on its way. */
static hale_status_t look_at_way(const struct fd_table *t, const struct fd_probe *p,
				 const struct fd_record *r, size_t locks, size_t owners,
				 struct error *err)
{
	if (t->on_way < 0 || r->same_as >= 0)
		return HALE_OK;
	if (t->tree_count && (r->kind == FD_EPOLL || r->kind == FD_INOTIFY))
		return fd_refuse(p, "on its way through a socket", err);
	return t->locks.count > locks || t->owners.count > owners
		   ? fd_refuse(p, "on its way through a socket with a lock, or with F_SETOWN", err)
		   : HALE_OK;
}

/* The other end of it may be on its way to one of these processes, which only that can see. */
static bool may_be_on_way(const struct fd_table *t, const struct fd_probe *p)
{
	return t->other && (S_ISSOCK(p->st.st_mode) || S_ISFIFO(p->st.st_mode)) &&
	       fd_way_is_likely(t);
}

/* What is in the image of another rank. */
static hale_status_t add_common(struct fd_table *t, struct fd_record *r, int fd, struct error *err)
{
	r->same_as = t->other ? -1 : find_same(t, r, fd);
	struct fd_record *added = list_add(&t->records);
	if (!added)
		return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	*added = *r;
	return HALE_OK;
}

static hale_status_t scan_one(struct fd_table *t, struct error *err)
{
	const struct fd_probe *p = t->probe;
	size_t locks = t->locks.count, owners = t->owners.count;
	struct fd_record r = {.fd = t->on_way < 0 ? p->fd : FD_ON_WAY + t->on_way,
			      .same_as = -1,
			      .device = p->st.st_dev,
			      .inode = p->st.st_ino,
			      .mode = p->st.st_mode,
			      .size = (uint64_t)p->st.st_size};
	r.open_flags = (uint32_t)fd_info_number(p, "flags:", 8, 0);
	r.offset = fd_info_number(p, "pos:", 10, 0);
	if (r.open_flags & O_CLOEXEC)
		r.fd_flags = FD_CLOEXEC;
	r.open_flags &= ~(uint32_t)O_CLOEXEC;
	if (S_ISSOCK(p->st.st_mode) && fd_info_number(p, "scm_fds:", 10, 0))
		t->sees_way = true;
	hale_status_t known = fd_common_record(t, p, &r, err);
	if (known != HALE_OK || r.kind)
		return known == HALE_OK ? add_common(t, &r, p->fd, err) : known;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!kinds[i]->match(t, p))
			continue;
		r.kind = kinds[i]->kind;
		r.same_as = t->other ? -1 : find_same(t, &r, p->fd);
		hale_status_t rc = r.same_as >= 0 ? HALE_OK : kinds[i]->capture(t, p, &r, err);
		if (rc == HALE_OK && r.same_as < 0)
			rc = fd_locks_capture(t, p, err);
		if (rc == HALE_OK && r.same_as < 0)
			rc = fd_owner_capture(t, p, r.open_flags, err);
		if (rc == HALE_OK && r.same_as < 0)
			rc = look_at_tree(t, p, &r, err);
		if (rc == HALE_OK)
			rc = look_at_way(t, p, &r, locks, owners, err);
		if (rc != HALE_OK)
			return rc;
		struct fd_record *added = list_add(&t->records);
		if (!added)
			return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
		*added = r;
		return HALE_OK;
	}
	const char *what = refusal(p);
	if (may_be_on_way(t, p))
		return HALE_OK;
	bool sent = S_ISSOCK(p->st.st_mode) || S_ISFIFO(p->st.st_mode);
	return sent && fd_way_to_rank(t) ? fd_refuse_for_now(p, what, err)
					 : fd_refuse(p, what, err);
}

/* Another process's, which goes on: its descriptors come and go while they are looked at, and what
 * was read of one may be of two. Only what is still the same after the look counts. */
static bool is_still(const struct fd_table *t, const struct fd_probe *p, struct fd_probe *now)
{
	return probe_fill(t, now, p->fd) > 0 && !strcmp(now->link, p->link) &&
	       now->deleted == p->deleted && now->st.st_ino == p->st.st_ino &&
	       now->st.st_dev == p->st.st_dev && now->st.st_mode == p->st.st_mode;
}

static hale_status_t scan_number(struct fd_table *t, int fd, struct error *err)
{
	hale_status_t rc = HALE_OK;
	if (fd_table_is_own(t, fd) || (t->on_way < 0 && fd_way_has(t, fd)))
		return HALE_OK;
	for (int i = 0; i < LOOKS; i++) {
		long seen = probe_fill(t, t->probe, fd);
		if (seen < 0 && !t->other) /* an image without it would be wrong */
			return error_set(err, HALE_ERR_SYSTEM,
					 "can't look at descriptor %d (error %ld)%s", fd, -seen,
					 seen == -EMFILE || seen == -ENFILE
					     ? ": no number is free to do so; raise `ulimit -n`"
					     : "");
		if (seen <= 0 || (t->passed && t->passed(t->probe->link)))
			return HALE_OK;
		rc = scan_one(t, err);
		if (rc == HALE_OK || !t->other || is_still(t, t->probe, t->probe + 1))
			return rc;
	}
	return rc;
}

static hale_status_t scan_all(struct fd_table *t, struct error *err)
{
	struct fd_dir dir;
	t->on_way = -1;
	list_init(&t->records, t->arena, sizeof(struct fd_record));
	list_init(&t->contents, t->arena, sizeof(struct content));
	list_init(&t->locks, t->arena, sizeof(struct file_lock_record));
	list_init(&t->owners, t->arena, sizeof(struct owner_record));
	bytes_init(&t->text, t->arena);
	fd_same_init(&t->same, t->arena);
	t->index = fd_index_create(t->arena);
	t->probe = arena_alloc(t->arena, 2 * sizeof(*t->probe));
	if (!t->probe || !t->index)
		return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	if (!fd_dir_open(&dir, t->proc))
		return error_set(err, HALE_ERR_SYSTEM,
				 "can't list %s/fd: is /proc mounted, and is the process yours?",
				 t->proc);
	hale_status_t rc = HALE_OK;
	for (int fd; rc == HALE_OK && (fd = fd_dir_next(&dir)) >= 0;)
		rc = scan_number(t, fd, err);
	fd_dir_close(&dir);
	for (size_t i = 0; rc == HALE_OK && i < t->way.count; i++) {
		t->on_way = (int)i;
		rc = scan_number(t, *(int *)list_at(&t->way, i), err);
	}
	t->on_way = -1;
	return rc;
}

static hale_status_t scan_with_way(struct fd_table *t, struct error *err)
{
	hale_status_t rc = scan_all(t, err);
	if (t->other || (rc == HALE_OK && !t->sees_way))
		return rc;
	struct error why = {HALE_OK, ""};
	hale_status_t found = fd_way_find(t, &why);
	if (found != HALE_OK) {
		*err = why;
		rc = found;
	} else if (t->way.count) {
		rc = scan_all(t, err);
	}
	return rc;
}

/* Looking for descriptors on their way costs a program nothing that has none: it is done when a
 * socket says that it has some, or when something can't be explained without them. */
hale_status_t fd_table_scan(struct fd_table *t, struct error *err)
{
	list_init(&t->way, t->arena, sizeof(int));
	list_init(&t->parcels, t->arena, sizeof(struct fd_parcel));
	hale_status_t rc = fd_common_find(t, err);
	if (rc == HALE_OK)
		rc = scan_with_way(t, err);
	if (rc == HALE_OK)
		rc = fd_common_end(t, err);
	fd_way_close(t);
	return rc;
}

/* ---- restore ---- */

static bool out_of_numbers(struct error *err)
{
	error_set(err, HALE_ERR_SYSTEM,
		  "too few descriptors to rebuild the process: raise `ulimit -n`");
	return false;
}

static bool streams_lift(struct fd_restore *f)
{
	for (int i = 0; i < 3; i++) {
		f->stream[i] = (int)sys(SYS_fcntl, i, F_DUPFD_CLOEXEC, f->floor);
		if (f->stream[i] < 0 && f->stream[i] != -EBADF)
			return false;
	}
	return true;
}

int fd_open_file(struct fd_restore *f, size_t index, struct error *err)
{
	return kind_ops(f->record[index].kind)->open(f, index, err);
}

bool fd_restore_open(struct fd_restore *f, struct error *err)
{
	int highest = 2;
	struct rlimit64 limit = {0};
	for (size_t i = 0; i < f->count; i++)
		if (f->record[i].fd > highest && f->record[i].fd < FD_ON_WAY)
			highest = f->record[i].fd;
	f->floor = highest + 1;
	if (!sys(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL);
	}
	f->temp = arena_alloc(f->arena, (f->count + 1) * sizeof(*f->temp));
	f->sender = arena_alloc(f->arena, (f->count + 1) * sizeof(*f->sender));
	if (!f->temp || !f->sender || !streams_lift(f))
		return out_of_numbers(err);
	for (size_t i = 0; i < f->count; i++)
		f->temp[i] = f->sender[i] = -1;
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *r = &f->record[i];
		const struct fd_ops *ops = kind_ops(r->kind);
		int fd = f->temp[i];
		if (r->kind == FD_BESIDE)
			continue;
		if (fd < 0 && r->same_as >= 0)
			fd = (int)sys(SYS_fcntl, f->temp[r->same_as], F_DUPFD_CLOEXEC, f->floor);
		else if (fd < 0)
			fd = tree_object_open(f, r);
		if (fd < 0 && r->same_as < 0 && (fd = ops->open(f, i, err)) < 0)
			return false;
		f->temp[i] = fd_lift(f, fd);
		if (f->temp[i] < 0)
			return out_of_numbers(err);
	}
	return fd_hand_all(f, err) && fd_way_deliver(f, err);
}

bool fd_restore_settle(struct fd_restore *f, struct error *err)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_ops *ops = kind_ops(f->record[i].kind);
		if (f->record[i].same_as < 0 && ops->settle && !ops->settle(f, i, err))
			return false;
	}
	return fd_owners_restore(f, err);
}

static bool is_wanted(const struct fd_restore *f, int fd, const int *keep, size_t keep_count)
{
	for (size_t i = 0; i < keep_count; i++)
		if (keep[i] == fd)
			return true;
	for (size_t i = 0; i < f->count; i++)
		if (f->temp[i] == fd)
			return true;
	return false;
}

/* Closes all but the wanted ones. */
static void close_others(struct fd_restore *f, const int *keep, size_t keep_count)
{
	struct fd_dir dir;
	if (!fd_dir_open(&dir, "/proc/thread-self"))
		return;
	for (int fd; (fd = fd_dir_next(&dir)) >= 0;)
		if (!is_wanted(f, fd, keep, keep_count))
			sys(SYS_close, fd);
	fd_dir_close(&dir);
}

bool fd_restore_place(struct fd_restore *f, const int *keep, size_t keep_count, struct error *err)
{
	for (size_t i = 0; i < keep_count; i++)
		for (size_t k = 0; k < f->count; k++)
			if (keep[i] == f->record[k].fd) {
				error_set(err, HALE_ERR_STATE,
					  "descriptor %d is the library's own in this process and "
					  "the program's in the image",
					  keep[i]);
				return false;
			}
	close_others(f, keep, keep_count);
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *r = &f->record[i];
		if (r->fd >= FD_ON_WAY)
			continue;
		long rc =
		    sys(SYS_dup3, f->temp[i], r->fd, r->fd_flags & FD_CLOEXEC ? O_CLOEXEC : 0);
		if (rc < 0)
			return out_of_numbers(err);
		sys(SYS_close, f->temp[i]);
	}
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_ops *ops = kind_ops(f->record[i].kind);
		if (f->record[i].same_as < 0 && ops->connect && !ops->connect(f, i, err))
			return false;
	}
	for (size_t i = 0; i < f->count; i++)
		if (f->record[i].fd >= FD_ON_WAY)
			sys(SYS_close, f->temp[i]);
	return fd_locks_restore(f, err);
}
