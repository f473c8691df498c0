// SPDX-License-Identifier: BSD-3-Clause
/* What ranks have sent each other (SCM_RIGHTS): ends of pipes and of connections, and counters.
 * Their images are of one moment.
 *
 * Of all ranks that have something of a pipe, a connection or a counter, the one with the smallest
 * id is its owner. The owner's image has all of it: ends that it lacks it takes from the others for
 * that moment (pidfd_getfd), and they become records as descriptors on their way do. The image of
 * another rank says whose it is (FD_BESIDE). After a rollback the owner hands it out (fd_hand.c).
 *
 * All ranks stand still, so all come to the same end. Only what is on its way, and so in nobody's
 * list, one rank may know and another not: then one of them refuses. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fmt.h"
#include "image/fd/fd.h"
#include "image/tree/tree.h"

enum { OPENED = 0100000 /* O_LARGEFILE: not made by pipe(2) */, LISTEN = 10 };

/* Of a descriptor of this process. */
struct fd_common {
	uint64_t inode; /* or 0: of a counter, which is known by its number */
	int fd;
	struct fd_seen first; /* of a counter: at its owner */
	int32_t owner;
};

/* What is looked at: all descriptors of one link in /proc, of the other ranks and of this one. */
struct common_look {
	struct fd_table *t;
	struct list other; /* struct fd_seen */
	struct list own;   /* likewise */
};

static hale_status_t no_memory(struct error *err)
{
	return error_set(err, HALE_ERR_MEMORY, "no memory for what ranks have together");
}

static hale_status_t common_refuse(int fd, const char *what, struct error *err)
{
	return error_set(err, HALE_ERR_UNSUPPORTED,
			 "descriptor %d is %s that another rank has, too, which can't be saved; "
			 "close it before the checkpoint",
			 fd, what);
}

static hale_status_t common_refuse_for_now(int fd, const char *what, struct error *err)
{
	return error_set(
	    err, HALE_ERR_AGAIN,
	    "descriptor %d is %s that another rank has, too, which can't be saved now; "
	    "the next checkpoint tries again",
	    fd, what);
}

static bool look_add(const struct fd_seen *seen, void *arg)
{
	struct fd_seen *at = list_add(arg);
	if (at)
		*at = (struct fd_seen){.pid = seen->pid, .fd = seen->fd};
	return at != NULL;
}

static bool look_at_link(struct common_look *l, struct fd_table *t, const char *link)
{
	l->t = t;
	list_init(&l->other, t->arena, sizeof(struct fd_seen));
	list_init(&l->own, t->arena, sizeof(struct fd_seen));
	return fd_beside_each(t, link, look_add, &l->other) &&
	       fd_own_each(t, link, look_add, &l->own);
}

static const struct fd_seen *seen_at(const struct list *l, size_t i)
{
	return list_at(l, i);
}

static int32_t smallest(const struct list *l, int32_t than)
{
	for (size_t i = 0; i < l->count; i++)
		than = seen_at(l, i)->pid < than ? seen_at(l, i)->pid : than;
	return than;
}

static bool is_one_process(const struct list *l)
{
	for (size_t i = 1; i < l->count; i++)
		if (seen_at(l, i)->pid != seen_at(l, 0)->pid)
			return false;
	return l->count > 0;
}

static bool taker_add(struct fd_table *t, int32_t pid)
{
	for (size_t i = 0; i < t->takers.count; i++)
		if (*(int32_t *)list_at(&t->takers, i) == pid)
			return true;
	int32_t *at = list_add(&t->takers);
	if (at)
		*at = pid;
	return at != NULL;
}

static bool takers_add(struct fd_table *t, const struct list *l)
{
	for (size_t i = 0; i < l->count; i++)
		if (!taker_add(t, seen_at(l, i)->pid))
			return false;
	return true;
}

static bool common_add(struct fd_table *t, const struct fd_common *is)
{
	struct fd_common *c = list_add(&t->commons);
	if (c)
		*c = *is;
	if (c && t->shared)
		*t->shared = true;
	return c != NULL;
}

static const struct fd_common *common_find(const struct fd_table *t, uint64_t inode, int fd)
{
	for (size_t i = 0; i < t->commons.count; i++) {
		const struct fd_common *c = list_at(&t->commons, i);
		if (inode ? c->inode == inode : !c->inode && c->fd == fd)
			return c;
	}
	return NULL;
}

static bool is_stream(const struct fd_table *t, const struct stat *st)
{
	for (int i = 0; i < 3; i++)
		if (t->stream[i].inode && t->stream[i].inode == st->st_ino &&
		    t->stream[i].device == st->st_dev)
			return true;
	return false;
}

/* Opens here what another rank has open. */
static hale_status_t common_borrow(struct fd_table *t, const struct fd_seen *of, const char *link,
				   struct error *err)
{
	char path[64], now[64];
	long handle = sys(SYS_pidfd_open, of->pid, 0);
	long fd = handle < 0 ? handle : sys(SYS_pidfd_getfd, handle, of->fd, 0);
	if (handle >= 0)
		sys(SYS_close, handle);
	if (fd < 0)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "descriptor %d of process %d, a rank, belongs to what this rank "
				 "has together with it, and can't be looked at (error %ld)",
				 of->fd, (int)of->pid, -fd);
	int *at = list_add(&t->way);
	if (!at) {
		sys(SYS_close, fd);
		return no_memory(err);
	}
	*at = (int)fd;
	fmt_print(path, sizeof(path), "/proc/thread-self/fd/%d", (int)fd);
	long n = sys(SYS_readlink, path, now, sizeof(now) - 1);
	now[n > 0 ? n : 0] = 0;
	return !strcmp(now, link)
		   ? HALE_OK
		   : common_refuse_for_now(of->fd, "one that has just changed,", err);
}

/* ---- pipes ---- */

static uint32_t flags_at(const struct fd_table *t, const struct fd_seen *s)
{
	char proc[32];
	fmt_print(proc, sizeof(proc), "/proc/%d", (int)s->pid);
	return fd_pipe_flags(s->pid ? proc : t->proc, s->fd);
}

/* One that reads, or writes; NULL: there is none. */
static const struct fd_seen *pipe_end(const struct fd_table *t, const struct list *l, bool reads,
				      bool *opened)
{
	const struct fd_seen *found = NULL;
	for (size_t i = 0; i < l->count; i++) {
		uint32_t flags = flags_at(t, seen_at(l, i));
		*opened |= (flags & OPENED) != 0;
		if (((flags & O_ACCMODE) == O_RDONLY) == reads)
			found = seen_at(l, i);
	}
	return found;
}

struct pipe_ends {
	const struct fd_seen *own[2], *other[2]; /* [1]: reads */
	bool opened;
};

static void pipe_ends_find(struct pipe_ends *e, const struct common_look *l)
{
	*e = (struct pipe_ends){0};
	for (int reads = 0; reads < 2; reads++) {
		e->own[reads] = pipe_end(l->t, &l->own, reads, &e->opened);
		e->other[reads] = pipe_end(l->t, &l->other, reads, &e->opened);
	}
}

/* With both ends. */
static bool pipe_is_whole(const struct pipe_ends *e)
{
	return (e->own[0] || e->other[0]) && (e->own[1] || e->other[1]);
}

static hale_status_t common_pipe(struct fd_table *t, int fd, const char *link,
				 const struct stat *st, struct error *err)
{
	struct common_look l;
	struct pipe_ends ends;
	int32_t self = (int32_t)sys(SYS_getpid);
	if (common_find(t, st->st_ino, fd))
		return HALE_OK;
	if (!look_at_link(&l, t, link))
		return no_memory(err);
	if (!l.other.count)
		return HALE_OK;
	pipe_ends_find(&ends, &l);
	/* a stream from outside the ranks, or another pipe to there: none that comes back */
	if (!pipe_is_whole(&ends) && (is_stream(t, st) || !fd_pipe_is_cut_off(t->proc, fd)))
		return HALE_OK;
	if (t->tree_count)
		return common_refuse_for_now(fd, "a pipe", err);
	if (ends.opened)
		return common_refuse(fd, "a pipe that was opened by its name in /proc, and", err);
	const struct fd_common is = {
	    .inode = st->st_ino, .fd = fd, .owner = smallest(&l.other, self)};
	if (!common_add(t, &is))
		return no_memory(err);
	if (is.owner != self)
		return HALE_OK;
	hale_status_t rc = takers_add(t, &l.other) ? HALE_OK : no_memory(err);
	for (int reads = 0; rc == HALE_OK && reads < 2; reads++)
		if (!ends.own[reads] && ends.other[reads])
			rc = common_borrow(t, ends.other[reads], link, err);
	return rc;
}

/* ---- sockets ---- */

struct common_socket {
	uint64_t peer; /* inode; 0: none */
	bool beside;   /* each makes its own end again, where nobody else has either */
};

static void socket_look(const struct fd_table *t, uint64_t inode, struct common_socket *s)
{
	struct fd_unix u, peer = {0};
	struct fd_tcp tcp, other = {0};
	*s = (struct common_socket){0};
	if (fd_unix_ask(inode, &u)) {
		bool has_peer = u.peer && fd_unix_ask(u.peer, &peer);
		bool named = u.name_len || peer.name_len;
		if (!has_peer || u.state == LISTEN ||
		    (u.type == SOCK_DGRAM && (peer.peer != inode || named)))
			return;
		s->peer = u.peer;
		s->beside = u.type == SOCK_STREAM && named && !u.shut && !peer.shut;
	} else if (fd_tcp_ask(t->proc, inode, &tcp) && tcp.state != LISTEN &&
		   fd_tcp_peer(t->proc, &tcp, &other)) {
		s->peer = other.inode;
		s->beside = true;
	}
}

static void socket_link(uint64_t inode, char link[64])
{
	fmt_print(link, 64, "socket:[%lu]", (unsigned long)inode);
}

/* Is it, or its other end, another rank's, and not just one connection of two ranks? */
static bool socket_is_common(const struct common_look *x, const struct common_look *y,
			     const struct common_socket *s)
{
	if (!x->other.count && !y->other.count)
		return false;
	return !s->beside || x->other.count || y->own.count || !is_one_process(&y->other);
}

static bool socket_look_at_both(struct fd_table *t, uint64_t inode, struct common_socket *s,
				struct common_look *x, struct common_look *y)
{
	char link[64];
	socket_look(t, inode, s);
	socket_link(inode, link);
	*y = (struct common_look){.t = t};
	if (!look_at_link(x, t, link))
		return false;
	socket_link(s->peer, link);
	return !s->peer || look_at_link(y, t, link);
}

static hale_status_t common_socket(struct fd_table *t, int fd, const struct stat *st,
				   struct error *err)
{
	struct common_look x, y;
	struct common_socket s;
	char link[64];
	int32_t self = (int32_t)sys(SYS_getpid);
	if (common_find(t, st->st_ino, fd))
		return HALE_OK;
	if (!socket_look_at_both(t, st->st_ino, &s, &x, &y))
		return no_memory(err);
	if (!socket_is_common(&x, &y, &s) || (is_stream(t, st) && !y.own.count && !y.other.count))
		return HALE_OK;
	if (t->tree_count)
		return common_refuse_for_now(fd, "a socket", err);
	struct fd_common is = {
	    .inode = st->st_ino, .fd = fd, .owner = smallest(&y.other, smallest(&x.other, self))};
	bool ok = common_add(t, &is);
	is.inode = s.peer;
	if (ok && s.peer && !common_find(t, s.peer, fd))
		ok = common_add(t, &is);
	if (ok && is.owner == self)
		ok = takers_add(t, &x.other) && takers_add(t, &y.other);
	if (!ok)
		return no_memory(err);
	if (is.owner != self || y.own.count || !y.other.count)
		return HALE_OK;
	socket_link(s.peer, link);
	return common_borrow(t, seen_at(&y.other, 0), link, err);
}

/* ---- counters, and what can't be handed out ---- */

static const struct {
	const char *link, *what; /* what: it is refused */
} one_each[] = {{"anon_inode:[eventfd]", NULL},
		{"anon_inode:[timerfd]", NULL},
		{"anon_inode:[eventpoll]", "an epoll"},
		{"anon_inode:inotify", "an inotify"},
		{"anon_inode:[signalfd]", "a signalfd"}};

/* Is it the same open file? Below 0: the kernel doesn't tell. */
static long is_same_file(int fd, const struct fd_seen *s)
{
	enum { KCMP_FILE = 0 };
	long rc = sys(SYS_kcmp, sys(SYS_getpid), s->pid, KCMP_FILE, fd, s->fd);
	return rc < 0 ? rc : !rc;
}

static hale_status_t common_counter(struct fd_table *t, int fd, const char *link, const char *what,
				    struct error *err)
{
	struct common_look l;
	int32_t self = (int32_t)sys(SYS_getpid);
	struct fd_common is = {.fd = fd, .owner = self};
	struct list same_file;
	list_init(&same_file, t->arena, sizeof(struct fd_seen));
	if (!look_at_link(&l, t, link))
		return no_memory(err);
	for (size_t i = 0; i < l.other.count; i++) {
		const struct fd_seen *s = seen_at(&l.other, i);
		long same = is_same_file(fd, s);
		if (same < 0)
			return error_set(err, HALE_ERR_UNSUPPORTED,
					 "descriptor %d can't be compared with those of process "
					 "%d, a rank (error %ld)",
					 fd, (int)s->pid, -same);
		if (same && s->pid < is.owner) {
			is.owner = s->pid;
			is.first = *s;
		}
		if (same && !look_add(s, &same_file))
			return no_memory(err);
	}
	if (!same_file.count)
		return HALE_OK;
	if (what)
		return common_refuse(fd, what, err);
	if (t->tree_count)
		return common_refuse_for_now(fd, "a counter", err);
	bool ok = common_add(t, &is) && (is.owner != self || takers_add(t, &same_file));
	return ok ? HALE_OK : no_memory(err);
}

/* Memory that both may have mapped. */
static hale_status_t common_memory(struct fd_table *t, int fd, const char *link,
				   const struct stat *st, struct error *err)
{
	struct common_look l;
	if (!look_at_link(&l, t, link))
		return no_memory(err);
	for (size_t i = 0; i < l.other.count; i++) {
		struct stat there = {0};
		char path[64];
		fmt_print(path, sizeof(path), "/proc/%d/fd/%d", (int)seen_at(&l.other, i)->pid,
			  seen_at(&l.other, i)->fd);
		if (!sys(SYS_newfstatat, AT_FDCWD, path, &there, 0) && there.st_ino == st->st_ino &&
		    there.st_dev == st->st_dev)
			return common_refuse(fd, "memory without a name (memfd)", err);
	}
	return HALE_OK;
}

/* ---- capture ---- */

static hale_status_t common_one(struct fd_table *t, int fd, struct error *err)
{
	char path[64], link[IMAGE_PATH_MAX];
	struct stat st = {0};
	fmt_print(path, sizeof(path), "%s/fd/%d", t->proc, fd);
	long n = sys(SYS_readlink, path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = 0;
	if (n <= 0 || sys(SYS_newfstatat, AT_FDCWD, path, &st, 0))
		return HALE_OK;
	if (!strncmp(link, "pipe:[", 6))
		return common_pipe(t, fd, link, &st, err);
	if (S_ISSOCK(st.st_mode))
		return common_socket(t, fd, &st, err);
	if (!strncmp(link, "/memfd:", 7))
		return common_memory(t, fd, link, &st, err);
	for (size_t i = 0; i < ARRAY_LEN(one_each); i++)
		if (!strcmp(link, one_each[i].link))
			return common_counter(t, fd, link, one_each[i].what, err);
	return HALE_OK;
}

hale_status_t fd_common_find(struct fd_table *t, struct error *err)
{
	struct fd_dir dir;
	struct list numbers;
	hale_status_t rc = HALE_OK;
	list_init(&t->commons, t->arena, sizeof(struct fd_common));
	list_init(&t->takers, t->arena, sizeof(int32_t));
	list_init(&numbers, t->arena, sizeof(int));
	t->borrowed = 0;
	if (t->other || !t->beside_count)
		return HALE_OK;
	if (!fd_dir_open(&dir, t->proc))
		return error_set(err, HALE_ERR_SYSTEM, "can't list %s/fd", t->proc);
	for (int fd; (fd = fd_dir_next(&dir)) >= 0;) {
		int *at = fd_table_is_own(t, fd) ? NULL : list_add(&numbers);
		if (at)
			*at = fd;
	}
	fd_dir_close(&dir);
	for (size_t i = 0; i < numbers.count && rc == HALE_OK; i++)
		rc = common_one(t, *(int *)list_at(&numbers, i), err);
	t->borrowed = t->way.count;
	return rc;
}

/* What is on its way to this process another rank may have as well, and does not know of this one.
 */
static hale_status_t common_way(struct fd_table *t, const struct fd_probe *p, struct error *err)
{
	struct common_look l;
	bool counts = strncmp(p->link, "anon_inode:", 11) != 0;
	if (p->link[0] == '/' || (counts && common_find(t, p->st.st_ino, p->fd)))
		return HALE_OK;
	if (!look_at_link(&l, t, p->link))
		return no_memory(err);
	for (size_t i = 0; i < l.other.count; i++)
		if (counts || is_same_file(p->fd, seen_at(&l.other, i)) != 0)
			return common_refuse_for_now(p->fd, "on its way, and something", err);
	return HALE_OK;
}

static bool stranger_has(const struct fd_table *t, const struct fd_probe *p, struct error *err)
{
	struct tree_process stranger;
	if (!fd_find_outsider(t, p, &stranger))
		return false;
	error_set(
	    err, HALE_ERR_UNSUPPORTED,
	    "descriptor %d (%s) is one that ranks have together with process %d (%s), which is "
	    "no rank of this node; close it before the checkpoint",
	    p->fd, p->link, (int)stranger.pid, stranger.name);
	return true;
}

/* Of another process, which runs: is it one for which it will look when it stands still? */
static bool common_outside(struct fd_table *t, const struct fd_probe *p)
{
	struct common_look x, y;
	struct common_socket s;
	struct pipe_ends ends;
	if (!strncmp(p->link, "pipe:[", 6)) {
		if (!look_at_link(&x, t, p->link) || !x.other.count)
			return false;
		pipe_ends_find(&ends, &x);
		return pipe_is_whole(&ends);
	}
	return S_ISSOCK(p->st.st_mode) && socket_look_at_both(t, p->st.st_ino, &s, &x, &y) &&
	       socket_is_common(&x, &y, &s) && (!s.peer || y.own.count || y.other.count);
}

hale_status_t fd_common_record(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			       struct error *err)
{
	const bool pipe = !strncmp(p->link, "pipe:[", 6);
	const bool has_inode = pipe || S_ISSOCK(p->st.st_mode);
	if (!t->beside_count || (t->on_way >= 0 && (size_t)t->on_way < t->borrowed))
		return HALE_OK;
	if (t->other) {
		if (!t->met || !common_outside(t, p))
			return HALE_OK;
		if (t->shared)
			*t->shared = true;
		r->kind = FD_BESIDE;
		return stranger_has(t, p, err) ? err->code : HALE_OK;
	}
	if (t->on_way >= 0)
		return common_way(t, p, err);
	const struct fd_common *c = common_find(t, has_inode ? p->st.st_ino : 0, p->fd);
	if (!c || c->owner == (int32_t)sys(SYS_getpid))
		return HALE_OK;
	r->kind = FD_BESIDE;
	r->a = (uint64_t)c->owner;
	r->b = c->first.pid ? (uint64_t)c->first.fd + 1 : 0;
	r->offset = pipe && (r->open_flags & O_ACCMODE) == O_RDONLY;
	return HALE_OK;
}

int fd_common_first(const struct fd_table *t)
{
	return t->commons.count ? ((struct fd_common *)list_at(&t->commons, 0))->fd : -1;
}

bool fd_common_is_taken(const struct fd_table *t, uint64_t inode)
{
	const struct fd_common *c = common_find(t, inode, -1);
	return c && c->owner != (int32_t)sys(SYS_getpid);
}

hale_status_t fd_common_end(struct fd_table *t, struct error *err)
{
	struct fd_record *r = t->takers.count ? list_add(&t->records) : NULL;
	if (r)
		*r = (struct fd_record){.kind = FD_BESIDE,
					.fd = FD_ON_WAY * 2,
					.same_as = -1,
					.a = (uint64_t)sys(SYS_getpid),
					.b = t->takers.count};
	return r || !t->takers.count ? HALE_OK : no_memory(err);
}

static bool no_match(const struct fd_table *t, const struct fd_probe *p)
{
	return false; /* fd_common_record has seen it */
}

static hale_status_t no_capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
				struct error *err)
{
	return HALE_OK;
}

static int no_open(struct fd_restore *f, size_t index, struct error *err)
{
	error_set(err, HALE_ERR_STATE, "what ranks have together is damaged in the image");
	return -1;
}

const struct fd_ops fd_common = {.kind = FD_BESIDE,
				 .name = "of another rank",
				 .match = no_match,
				 .capture = no_capture,
				 .open = no_open};
