// SPDX-License-Identifier: BSD-3-Clause
/* Terminals that the program has made (/dev/ptmx), as Python's pty, script and expect do: the
 * master and what is open of the other side, in all processes that are captured together. One of
 * whose master nobody of them has is a stream from outside (fd_stream.c).
 *
 * The kernel gives the lowest free number, so those before it are taken until it comes. Bytes that
 * nobody has read can't be looked at, and are waited for; a line that is not finished yet is lost.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"
#include "image/tree/tree.h"

enum { TRIES = 250, TAKEN = 64 };
#define PAUSE_NS      20000000
#define GET_ATTRS     0x802c542aul /* TCGETS2, whose header libc's does not go with */
#define SET_ATTRS     0x402c542bul
#define GET_PACKET    _IOR('T', 0x38, int)
#define GET_LOCK      _IOR('T', 0x39, int)
#define GET_EXCLUSIVE _IOR('T', 0x40, int)
#define OPEN_PEER     _IO('T', 0x41)

static bool is_master(const char *link)
{
	return !strcmp(link, "/dev/ptmx") || !strcmp(link, "/dev/pts/ptmx");
}

static int64_t number_of(const char *text)
{
	int64_t v = 0;
	if (*text < '0' || *text > '9')
		return -1;
	for (; *text >= '0' && *text <= '9'; text++)
		v = v * 10 + (*text - '0');
	return v;
}

/* -1: it is no terminal that a program has made. */
static int64_t terminal_number(const struct fd_probe *p)
{
	static const char slave[] = "/dev/pts/", key[] = "tty-index:";
	const char *at;
	if (!S_ISCHR(p->st.st_mode))
		return -1;
	if (is_master(p->link)) {
		at = strstr(p->info, key);
		for (at = at ? at + sizeof(key) - 1 : ""; *at == ' ' || *at == '\t'; at++)
			;
		return number_of(at);
	}
	return strncmp(p->link, slave, sizeof(slave) - 1) ? -1
							  : number_of(p->link + sizeof(slave) - 1);
}

static bool is_master_of(const struct fd_seen *s, const void *arg)
{
	static const char key[] = "tty-index:";
	char path[64], info[1024];
	fmt_print(path, sizeof(path), "%s/fdinfo/%d", s->proc, s->fd);
	const char *at = sys_read_small(path, info, sizeof(info)) > 0 ? strstr(info, key) : NULL;
	for (at = at ? at + sizeof(key) - 1 : ""; *at == ' ' || *at == '\t'; at++)
		;
	return number_of(at) == *(const int64_t *)arg;
}

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	int64_t number = terminal_number(p);
	if (number < 0 || is_master(p->link))
		return number >= 0;
	return fd_tree_has(t, "/dev/ptmx", is_master_of, &number) ||
	       fd_tree_has(t, "/dev/pts/ptmx", is_master_of, &number);
}

/* ---- capture ---- */

static void slave_path(char path[64], uint64_t number)
{
	fmt_print(path, 64, "/dev/pts/%lu", (unsigned long)number);
}

static hale_status_t check_strangers(struct fd_table *t, const struct fd_probe *p, uint64_t number,
				     struct error *err)
{
	struct tree_process stranger;
	char path[64];
	struct fd_probe *slave = arena_alloc(t->arena, sizeof(*slave));
	if (!slave)
		return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	slave_path(path, number);
	if (sys(SYS_newfstatat, AT_FDCWD, path, &slave->st, 0) ||
	    !fd_find_stranger(t, slave, &stranger))
		return HALE_OK;
	return error_set(err, HALE_ERR_UNSUPPORTED,
			 "descriptor %d (%s) is a terminal that process %d (%s) has open, which is "
			 "not captured with it",
			 p->fd, p->link, (int)stranger.pid, stranger.name);
}

struct terminal_leader {
	int32_t pid, self;
};

static bool is_leaders(const struct fd_seen *s, const void *arg)
{
	const struct terminal_leader *l = arg;
	return (s->pid ? s->pid : l->self) == l->pid;
}

static int get(int fd, unsigned long request)
{
	int v = 0;
	return sys(SYS_ioctl, fd, request, &v) ? 0 : v;
}

/* What one side has written is on its way until a worker of the kernel has passed it to the other
 * one, which on a busy machine takes some 20 ms, and no ioctl counts it before. poll waits for that
 * worker. */
static bool has_unread(int fd, short *events)
{
	struct pollfd look = {.fd = fd, .events = POLLIN};
	const struct timespec now = {0, 0};
	sys(SYS_ppoll, &look, 1, &now, NULL, 0);
	*events = look.revents;
	return get(fd, FIONREAD) != 0;
}

static const char *look_at_master(const struct fd_table *t, const struct fd_probe *p,
				  const char *slave, struct terminal_record *x)
{
	const struct terminal_leader leader = {x->session, (int32_t)sys(SYS_getpid)};
	short events = 0;
	x->packet = get(p->fd, GET_PACKET) != 0;
	x->locked = get(p->fd, GET_LOCK) != 0;
	x->has_slave = fd_tree_has(t, slave, NULL, NULL);
	if (x->session && !(t->tree_count && fd_tree_holds(t, x->session)) &&
	    !fd_tree_has(t, slave, is_leaders, &leader))
		return "a terminal of a session whose leader is not there, or has closed it";
	/* the other side first: what arrives there is echoed to this one */
	if (x->has_slave) {
		long peer = sys(SYS_ioctl, p->fd, OPEN_PEER, O_RDONLY | O_NOCTTY | O_NONBLOCK);
		bool unread = peer >= 0 && has_unread((int)peer, &events);
		if (peer >= 0)
			sys(SYS_close, peer);
		if (unread)
			return "a terminal with input that nobody has read";
	}
	bool unread = has_unread(p->fd, &events);
	x->left = (events & POLLHUP) != 0;
	return unread ? "a terminal with output that nobody has read" : NULL;
}

/* a: its number, b: 1 for the master. */
static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	struct terminal_record x = {0};
	char slave[64];
	int sid = 0;
	r->a = (uint64_t)terminal_number(p);
	r->b = is_master(p->link);
	if (t->other)
		return r->b ? check_strangers(t, p, r->a, err) : HALE_OK;
	if (t->on_way >= 0)
		return fd_refuse(p, "a terminal on its way through a socket", err);
	slave_path(slave, r->a);
	if (sys(SYS_ioctl, p->fd, GET_ATTRS, x.attributes) ||
	    sys(SYS_ioctl, p->fd, TIOCGWINSZ, x.size))
		return fd_refuse(p, "a terminal that can't be asked for its settings", err);
	x.exclusive = get(p->fd, GET_EXCLUSIVE) != 0;
	if (!sys(SYS_ioctl, p->fd, TIOCGSID, &sid)) {
		x.session = sid;
		x.group = get(p->fd, TIOCGPGRP);
	}
	const char *why = r->b ? look_at_master(t, p, slave, &x) : NULL;
	if (why)
		return fd_refuse_for_now(p, why, err);
	return fd_add_text(t, r, &x, sizeof(x))
		   ? HALE_OK
		   : error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
}

/* ---- restore ---- */

bool fd_terminal_record(const char *text, size_t text_len, const struct fd_record *r,
			struct terminal_record *x)
{
	if (r->text_len != sizeof(*x) || r->text_offset > text_len ||
	    text_len - r->text_offset < r->text_len)
		return false;
	memcpy(x, text + r->text_offset, sizeof(*x));
	return true;
}

/* A master of that number; -EEXIST: something else has it. */
static long master_take(uint64_t number)
{
	int taken[TAKEN];
	int count = 0;
	long found = -EEXIST;
	while (count < TAKEN && found == -EEXIST) {
		unsigned is = 0;
		long fd = sys(SYS_openat, AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			found = fd;
		else if (!sys(SYS_ioctl, fd, TIOCGPTN, &is) && is == number)
			found = fd;
		else
			taken[count++] = (int)fd;
		if (fd >= 0 && is > number)
			break;
	}
	for (int i = 0; i < count; i++)
		sys(SYS_close, taken[i]);
	return found;
}

bool fd_terminal_make(const char *text, size_t text_len, const struct fd_record *r, int end[2],
		      struct error *err)
{
	const struct timespec pause = {0, PAUSE_NS};
	struct terminal_record x;
	int open = 0, locked, one = 1;
	long master = -EINVAL, slave = -1;
	bool known = fd_terminal_record(text, text_len, r, &x);
	for (int i = 0; known && i < TRIES; i++) {
		master = master_take(r->a);
		if (master != -EEXIST) /* else whoever had it has just been killed */
			break;
		sys(SYS_nanosleep, &pause, NULL);
	}
	if (master >= 0) {
		sys(SYS_ioctl, master, TIOCSPTLCK, &open);
		if (!r->b || x.has_slave || x.left || x.session)
			slave = sys(SYS_ioctl, master, OPEN_PEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	}
	bool wants = master >= 0 && (!r->b || x.has_slave || x.left || x.session);
	if (master < 0 || (wants && slave < 0)) {
		error_set(err, HALE_ERR_SYSTEM,
			  "the terminal /dev/pts/%lu can't be made again (error %ld)%s",
			  (unsigned long)r->a, master < 0 ? -master : -slave,
			  master == -EEXIST ? ": something else has that number" : "");
		return false;
	}
	locked = (int)x.locked;
	/* by the master they are set for the other side, too */
	sys(SYS_ioctl, wants ? slave : master, SET_ATTRS, x.attributes);
	sys(SYS_ioctl, master, TIOCSWINSZ, x.size);
	if (x.packet)
		sys(SYS_ioctl, master, TIOCPKT, &one);
	sys(SYS_ioctl, master, TIOCSPTLCK, &locked);
	end[0] = (int)master;
	end[1] = (int)slave;
	return true;
}

int fd_terminal_open(const int end[2], const struct fd_record *r)
{
	char path[64];
	long fd = -1;
	if (!r->b && (r->open_flags & O_ACCMODE) != O_RDWR) {
		slave_path(path, r->a);
		fd = sys(SYS_openat, AT_FDCWD, path,
			 (r->open_flags & (O_ACCMODE | O_NONBLOCK)) | O_NOCTTY | O_CLOEXEC);
	}
	if (fd < 0)
		fd = sys(SYS_fcntl, r->b ? end[0] : end[1], F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		sys(SYS_fcntl, fd, F_SETFL, r->open_flags & (O_NONBLOCK | O_APPEND));
	return (int)fd;
}

/* Of a process alone: the first descriptor makes it for all. Of the master's record what counts. */
static int open_terminal(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *me = &f->record[index], *of = me;
	int end[2];
	bool has_slave = false;
	for (size_t i = 0; i < f->count; i++)
		if (f->record[i].kind == FD_TERMINAL && f->record[i].a == me->a) {
			of = f->record[i].b && f->record[i].same_as < 0 ? &f->record[i] : of;
			has_slave |= !f->record[i].b;
		}
	if (!fd_terminal_make(f->text, f->text_len, of, end, err))
		return -1;
	end[0] = fd_lift(f, end[0]);
	end[1] = fd_lift(f, end[1]);
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *r = &f->record[i];
		if (r->kind == FD_TERMINAL && r->a == me->a && r->same_as < 0 && f->temp[i] < 0)
			f->temp[i] = fd_lift(f, fd_terminal_open(end, r));
	}
	fd_terminal_end(has_slave, &end[1]);
	sys(SYS_close, end[0]);
	if (end[1] >= 0)
		sys(SYS_close, end[1]);
	int fd = f->temp[index];
	f->temp[index] = -1;
	if (fd < 0)
		error_set(err, HALE_ERR_SYSTEM, "the terminal /dev/pts/%lu can't be opened again",
			  (unsigned long)me->a);
	return fd;
}

void fd_terminal_end(bool has_slave, int *slave)
{
	if (has_slave || *slave < 0)
		return;
	sys(SYS_close, *slave);
	*slave = -1;
}

/* Its session has it again before any process runs on. */
static bool settle_terminal(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	struct terminal_record x;
	if (r->b || !fd_terminal_record(f->text, f->text_len, r, &x) ||
	    x.session != (int32_t)sys(SYS_getpid))
		return true;
	int sid = 0;
	if (!sys(SYS_ioctl, f->temp[index], TIOCGSID, &sid)) /* by another of its descriptors */
		return true;
	long rc = sys(SYS_ioctl, f->temp[index], TIOCSCTTY, 0);
	if (rc)
		error_set(
		    err, HALE_ERR_SYSTEM,
		    "the terminal /dev/pts/%lu can't be that of its session again (error %ld)",
		    (unsigned long)r->a, -rc);
	return !rc;
}

static bool connect_terminal(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	struct terminal_record x;
	int one = 1;
	if (!fd_terminal_record(f->text, f->text_len, r, &x))
		return true;
	if (!r->b && x.session == (int32_t)sys(SYS_getpid) && x.group)
		sys(SYS_ioctl, r->fd, TIOCSPGRP, &x.group);
	if (x.exclusive)
		sys(SYS_ioctl, r->fd, TIOCEXCL, &one);
	return true;
}

const struct fd_ops fd_terminal = {.kind = FD_TERMINAL,
				   .name = "terminal",
				   .match = match,
				   .capture = capture,
				   .open = open_terminal,
				   .settle = settle_terminal,
				   .connect = connect_terminal};
