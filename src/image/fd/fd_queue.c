// SPDX-License-Identifier: BSD-3-Clause
/* POSIX message queues (mq_open). Nobody can look into one, so its messages are received and sent
 * again while all processes that have it stand still: of those that are captured together the first
 * one does that. One that another process has open is refused, as named pipes are.
 *
 * A queue outlives its processes: after a rollback it is emptied, and filled with what there was.
 */
#include <errno.h>
#include <mqueue.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"
#include "image/tree/tree.h"

enum { MQUEUE_MAGIC = 0x19800202 };

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	struct statfs fs = {0};
	char path[64];
	if (!S_ISREG(p->st.st_mode))
		return false;
	fmt_print(path, sizeof(path), "%s/fd/%d", t->proc, p->fd);
	return !sys(SYS_statfs, path, &fs) && fs.f_type == MQUEUE_MAGIC;
}

/* ---- messages ---- */

static const struct timespec now_or_never = {0, 0};

static long queue_receive(int fd, char *to, size_t room, uint32_t *priority)
{
	long n;
	do
		n = sys(SYS_mq_timedreceive, fd, to, room, priority, &now_or_never);
	while (n == -EINTR);
	return n;
}

static long queue_send(int fd, const char *from, size_t len, uint32_t priority)
{
	long n;
	do
		n = sys(SYS_mq_timedsend, fd, from, len, priority, &now_or_never);
	while (n == -EINTR);
	return n;
}

static bool queue_fill(int fd, const char *at, size_t left)
{
	struct queue_message m;
	while (left >= sizeof(m)) {
		memcpy(&m, at, sizeof(m));
		if (m.len > left - sizeof(m) || queue_send(fd, at + sizeof(m), m.len, m.priority))
			return false;
		at += sizeof(m) + m.len;
		left -= sizeof(m) + m.len;
	}
	return !left;
}

/* Another descriptor of the queue, by which all can be done. */
static long queue_reopen(int fd, uint32_t flags)
{
	char path[64];
	fmt_print(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	return sys(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
}

/* ---- capture ---- */

static bool has_notice(const struct fd_probe *p, long fd)
{
	char text[256] = "";
	uint64_t at = 0;
	long n = sys(SYS_pread64, fd, text, sizeof(text) - 1, at);
	const char *pid = n > 0 ? strstr(text, "NOTIFY_PID:") : NULL;
	return pid && pid[11] != '0';
}

struct queue_seen {
	const struct fd_table *t;
	const struct stat *st;
	int32_t self;
};

/* Does a process that comes before this one have it? */
static bool is_of_earlier(const struct fd_seen *s, const void *arg)
{
	const struct queue_seen *q = arg;
	struct stat st = {0};
	char path[64];
	if (!s->pid || s->pid == q->self)
		return false;
	for (size_t i = 0; i < q->t->tree_count && q->t->tree[i] != q->self; i++)
		if (q->t->tree[i] == s->pid) {
			fmt_print(path, sizeof(path), "%s/fd/%d", s->proc, s->fd);
			return !sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) &&
			       st.st_ino == q->st->st_ino && st.st_dev == q->st->st_dev;
		}
	return false;
}

static bool is_of_any_other(const struct fd_seen *s, const void *arg)
{
	const struct queue_seen *q = arg;
	return s->pid && s->pid != q->self;
}

static bool is_held_here(const struct fd_table *t, const struct fd_record *r)
{
	for (size_t i = 0; i < t->records.count; i++) {
		const struct fd_record *o = list_at(&t->records, i);
		if (o->kind == FD_QUEUE && o->inode == r->inode && o->device == r->device)
			return true;
	}
	return false;
}

/* Receives all, and sends it again. */
static hale_status_t save_messages(struct fd_table *t, const struct fd_probe *p, long fd,
				   const struct mq_attr *a, struct fd_record *r, struct error *err)
{
	struct arena_bytes all;
	char *room = arena_pages(t->arena, (size_t)a->mq_msgsize + 1);
	long n = room ? 0 : -ENOMEM;
	bytes_init(&all, t->arena);
	while (n >= 0) {
		struct queue_message m = {0};
		n = queue_receive((int)fd, room, (size_t)a->mq_msgsize, &m.priority);
		if (n < 0)
			break;
		m.len = (uint32_t)n;
		char *to = bytes_extend(&all, sizeof(m) + m.len);
		if (!to) { /* this one would be lost */
			queue_send((int)fd, room, m.len, m.priority);
			n = -ENOMEM;
			break;
		}
		memcpy(to, &m, sizeof(m));
		memcpy(to + sizeof(m), room, m.len);
	}
	if (!queue_fill((int)fd, all.data, all.len))
		return error_set(err, HALE_ERR_SYSTEM,
				 "messages of the queue %s could not be put back: it has lost some",
				 p->link);
	if (n == -ENOMEM || all.len > FRAME_DATA_MAX)
		return fd_refuse(p, "a POSIX message queue with more than 4 MiB", err);
	char *data = fd_add_content(t, 0, all.len, all.len);
	if (!data)
		return error_set(err, HALE_ERR_MEMORY, "no memory for a message queue");
	memcpy(data, all.data, all.len);
	r->has_content = 1;
	return HALE_OK;
}

static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	struct tree_process stranger;
	struct mq_attr a = {0};
	const struct queue_seen seen = {t, &p->st, (int32_t)sys(SYS_getpid)};
	struct queue_record q = {.nameless = p->deleted};
	if (t->other)
		return fd_find_stranger(t, p, &stranger)
			   ? error_set(
				 err, HALE_ERR_UNSUPPORTED,
				 "descriptor %d (%s) is a POSIX message queue that process %d "
				 "(%s) has open, too, which is not captured with it; close it "
				 "before the checkpoint",
				 p->fd, p->link, (int)stranger.pid, stranger.name)
			   : HALE_OK;
	if (q.nameless && fd_tree_has(t, p->link, is_of_any_other, &seen))
		return fd_refuse(
		    p, "a POSIX message queue without a name, which another process has, too", err);
	if (t->on_way >= 0)
		return fd_refuse(p, "a POSIX message queue on its way through a socket", err);
	long fd = queue_reopen(p->fd, O_RDWR | O_NONBLOCK);
	if (fd < 0 || sys(SYS_mq_getsetattr, fd, NULL, &a))
		return fd_refuse(p, "a POSIX message queue that may not be both read and written",
				 err);
	q.max_messages = a.mq_maxmsg;
	q.message_size = a.mq_msgsize;
	q.holds = !is_held_here(t, r) && !fd_tree_has(t, p->link, is_of_earlier, &seen);
	hale_status_t rc = HALE_OK;
	if (has_notice(p, fd))
		rc = fd_refuse(
		    p, "a POSIX message queue that tells a process of messages (mq_notify)", err);
	if (rc == HALE_OK && q.holds)
		rc = save_messages(t, p, fd, &a, r, err);
	sys(SYS_close, fd);
	if (rc == HALE_OK && !fd_add_text(t, r, &q, sizeof(q)))
		rc = error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	size_t n = strlen(p->link) + 1;
	char *name = rc == HALE_OK ? bytes_extend(&t->text, n) : NULL;
	if (!name)
		return rc != HALE_OK ? rc
				     : error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	memcpy(name, p->link, n);
	r->text_len += (uint32_t)n;
	return HALE_OK;
}

/* ---- restore ---- */

static const char *queue_of(const struct fd_restore *f, const struct fd_record *r,
			    struct queue_record *q)
{
	const char *text = fd_text(f, r);
	if (r->text_len < sizeof(*q) + 2 || r->text_offset > f->text_len ||
	    f->text_len - r->text_offset < r->text_len || text[r->text_len - 1] ||
	    text[sizeof(*q)] != '/')
		return NULL;
	memcpy(q, text, sizeof(*q));
	return text + sizeof(*q) + 1; /* mq_open(2), unlike mq_open(3), wants no slash */
}

static long queue_open(const struct fd_record *r, const struct queue_record *q, const char *name)
{
	struct mq_attr a = {.mq_maxmsg = q->max_messages, .mq_msgsize = q->message_size}, is = {0};
	char own[64];
	if (q->nameless) {
		fmt_print(own, sizeof(own), "hale-%d-%lx", (int)sys(SYS_getpid),
			  (unsigned long)r->inode);
		name = own;
	}
	long fd =
	    sys(SYS_mq_open, name, O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, r->mode & 07777, &a);
	if (fd < 0)
		return fd;
	if (q->nameless)
		sys(SYS_mq_unlink, name);
	if (q->holds) /* not by the umask */
		sys(SYS_fchmod, fd, r->mode & 07777);
	if (!sys(SYS_mq_getsetattr, fd, NULL, &is) && is.mq_maxmsg == q->max_messages &&
	    is.mq_msgsize == q->message_size)
		return fd;
	sys(SYS_close, fd);
	return -EEXIST;
}

/* The first descriptor of a queue opens it for all of this process. */
static int open_queue(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *me = &f->record[index];
	struct queue_record q;
	const char *name = queue_of(f, me, &q);
	long all = name ? queue_open(me, &q, name) : -EINVAL;
	if (all < 0) {
		error_set(err, HALE_ERR_STORE,
			  "the message queue %s can't be had again as it was (error %ld)%s",
			  name ? name : "of a damaged image", -all,
			  all == -EEXIST ? ": another one has its name" : "");
		return -1;
	}
	all = fd_lift(f, (int)all);
	bool ok = all >= 0;
	for (size_t i = 0; i < f->count && ok; i++) {
		const struct fd_record *r = &f->record[i];
		if (r->kind != FD_QUEUE || r->inode != me->inode || r->device != me->device ||
		    r->same_as >= 0 || f->temp[i] >= 0)
			continue;
		f->temp[i] = fd_lift(
		    f, (int)queue_reopen((int)all, r->open_flags & (O_ACCMODE | O_NONBLOCK)));
		ok = f->temp[i] >= 0;
	}
	sys(SYS_close, all);
	int fd = f->temp[index];
	f->temp[index] = -1;
	if (!ok)
		error_set(err, HALE_ERR_SYSTEM, "the message queue %s can't be opened again", name);
	return ok ? fd : -1;
}

/* What came into it since goes. */
static bool settle_queue(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	struct queue_record q;
	const char *name = queue_of(f, r, &q);
	if (!name || !q.holds)
		return true;
	uint32_t priority;
	char *room = arena_pages(f->arena, (size_t)q.message_size + 1);
	long fd = room ? queue_reopen(f->temp[index], O_RDWR | O_NONBLOCK) : -ENOMEM, n = fd;
	while (fd >= 0 &&
	       (n = queue_receive((int)fd, room, (size_t)q.message_size, &priority)) >= 0)
		;
	bool ok = fd >= 0 && n != -EBADF;
	for (size_t i = 0; i < f->content_count && ok; i++)
		if (f->content[i].record.fd_index == (int32_t)index)
			ok = queue_fill((int)fd, f->content[i].data, f->content[i].len);
	if (fd >= 0)
		sys(SYS_close, fd);
	if (!ok)
		error_set(err, HALE_ERR_SYSTEM, "the messages of the queue %s can't be sent again",
			  name);
	return ok;
}

const struct fd_ops fd_queue = {.kind = FD_QUEUE,
				.name = "POSIX message queue",
				.match = match,
				.capture = capture,
				.open = open_queue,
				.settle = settle_queue};
