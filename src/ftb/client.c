/* SPDX-License-Identifier: BSD-3-Clause */
/* Local clients. Whoever sends what is no packet is cut off with a sentence; nobody else notices.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "ftb/broker_private.h"
#include <libftb.h>

/* ---- who may ---- */

static bool in_group(int fd, const struct broker *b, const struct ucred *who)
{
	gid_t groups[256];
	socklen_t len = sizeof(groups);

	if (!b->has_group)
		return false;
	if (who->gid == b->group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) != 0)
		return false;
	for (size_t i = 0; i < len / sizeof(gid_t); i++)
		if (groups[i] == b->group)
			return true;
	return false;
}

static bool may_connect(int fd, const struct broker *b, struct ucred *who)
{
	socklen_t len = sizeof(*who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &len) == 0 &&
	       (who->uid == geteuid() || who->uid == 0 || in_group(fd, b, who));
}

/* ---- sending ---- */

enum out_result client_send(void *to, const uint8_t *bytes, size_t len)
{
	struct client *c = to;

	if (c->broken || c->deaf)
		return OUT_SENT; /* to nobody */
	if (send(c->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
		return OUT_SENT;
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
		return OUT_BLOCKED;
	c->deaf = true;
	return OUT_SENT;
}

static void control(struct client *c, enum packet_kind kind, uint32_t count, const void *body,
		    size_t len)
{
	uint8_t packet[PACKET_HEADER + 512];

	if (len > sizeof(packet) - PACKET_HEADER)
		len = sizeof(packet) - PACKET_HEADER;
	ftb_packet_start(packet, kind, count);
	if (len)
		memcpy(packet + PACKET_HEADER, body, len);
	if (!outq_control(&c->r.q, packet, PACKET_HEADER + len))
		c->broken = true;
	c->r.dirty = true;
}

/* The last thing that a client hears. */
static void refuse(int fd, const char *why)
{
	uint8_t packet[PACKET_HEADER + 256];
	size_t len = strlen(why);

	ftb_packet_start(packet, PACKET_REFUSED, 0);
	memcpy(packet + PACKET_HEADER, why, len);
	if (send(fd, packet, PACKET_HEADER + len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("event broker: a client did not hear that it was refused");
}

static void cut_off(struct client *c, const char *why)
{
	if (c->broken)
		return;
	c->b->stats.malformed++;
	log_info("event broker: cut off a client of user %u: %s", (unsigned)c->uid, why);
	refuse(c->fd, why);
	c->broken = true;
}

static void tell_lost(struct client *c)
{
	uint8_t body[16];
	const struct outq *q = &c->r.q;

	if (q->lost_info == c->told_info && q->lost_above == c->told_above)
		return;
	put_u64(body, q->lost_info);
	put_u64(body + 8, q->lost_above);
	control(c, PACKET_LOST, 0, body, sizeof(body));
	c->told_info = q->lost_info;
	c->told_above = q->lost_above;
}

void client_flush(struct client *c)
{
	enum out_result r = outq_flush(&c->r.q, client_send, c);

	if (r == OUT_SENT) {
		tell_lost(c); /* once it takes something again */
		r = outq_flush(&c->r.q, client_send, c);
	}
	if (r == OUT_BROKEN)
		c->broken = true;
	c->r.dirty = false;
	if (c->watches_out != (r == OUT_BLOCKED)) {
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

		c->watches_out = r == OUT_BLOCKED;
		if (c->watches_out)
			e.events |= EPOLLOUT;
		epoll_ctl(c->b->epoll, EPOLL_CTL_MOD, c->fd, &e);
	}
}

/* ---- receiving ---- */

struct from {
	struct client *c;
	bool wrong;
};

static void take_event(const struct ftb_event *e, const uint8_t *bytes, size_t len, void *arg)
{
	struct from *f = arg;

	if (e->publisher != f->c->publisher)
		f->wrong = true;
	else if (!f->wrong)
		route_event(f->c->b, &f->c->r, e, bytes, len);
}

/* All of a packet is looked at before any of it counts: half a packet is nobody's. */
static void take_events(struct client *c, const struct packet *p)
{
	struct from f = {.c = c};

	if (!ftb_events_each(p, NULL, NULL)) {
		cut_off(c, "that was no packet of events");
		return;
	}
	ftb_events_each(p, take_event, &f);
	if (f.wrong)
		cut_off(c, "those were events in another client's name");
}

static void take_hello(struct client *c, const struct packet *p)
{
	struct broker *b = c->b;

	if (p->len != 8 || c->hello || get_u64(p->body) == 0) {
		cut_off(c, "that was no greeting");
		return;
	}
	c->publisher = get_u64(p->body);
	for (struct client *o = b->clients; o; o = o->next)
		if (o != c && o->hello && !o->broken && o->publisher == c->publisher) {
			cut_off(c, "another client has this number already");
			return;
		}
	c->hello = true;
	control(c, PACKET_WELCOME, 0, b->node, strlen(b->node));
}

static void take_subscribe(struct client *c, const struct packet *p)
{
	struct ftb_filter f;
	uint32_t id, age;

	if (ftb_filter_read(p->body, p->len, &f, &id, &age) != p->len || p->len == 0) {
		cut_off(c, "that was no subscription");
		return;
	}
	if (!interest_add(c->b, &c->r, &f, id, clock_seconds() - age * 1e-3)) {
		cut_off(c, "a client can have 256 subscriptions");
		return;
	}
	/* It had the subscription before: then it gets what happened since, which it may have seen.
	 */
	if (age)
		route_rescue(c->b, &c->r, &c->r.want[c->r.count - 1], 1, NULL);
}

static void take_status(struct client *c)
{
	char *text = broker_status_json(c->b);
	size_t len = text ? strlen(text) : 0;
	uint8_t *packet = malloc(PACKET_MAX);

	if (packet && len <= PACKET_MAX - PACKET_HEADER) {
		ftb_packet_start(packet, PACKET_STATUS, 0);
		for (size_t i = 0; i < len; i++)
			packet[PACKET_HEADER + i] = (uint8_t)text[i];
		if (!outq_control(&c->r.q, packet, PACKET_HEADER + len))
			c->broken = true;
		c->r.dirty = true;
	}
	free(packet);
	free(text);
}

static void take_packet(struct client *c, const struct packet *p)
{
	if (p->kind == PACKET_STATUS)
		take_status(c);
	else if (p->kind == PACKET_HELLO)
		take_hello(c, p);
	else if (!c->hello)
		cut_off(c, "a client greets first");
	else if (p->kind == PACKET_EVENTS)
		take_events(c, p);
	else if (p->kind == PACKET_SUBSCRIBE)
		take_subscribe(c, p);
	else if (p->kind == PACKET_UNSUBSCRIBE)
		interest_drop(c->b, &c->r, p->count);
	else if (p->kind == PACKET_SYNC)
		control(c, PACKET_SYNC, p->count, NULL, 0);
	else
		cut_off(c, "clients don't send that kind of packet");
}

static void client_read(struct client *c)
{
	for (int i = 0; i < PACKETS_A_TURN && !c->broken; i++) {
		ssize_t n = recv(c->fd, c->b->packet, PACKET_MAX, MSG_DONTWAIT | MSG_TRUNC);
		struct packet p;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0 &&
		    errno == ECONNRESET) { /* it closed without reading; its events come next */
			c->deaf = true;
			continue;
		}
		if (n <= 0)
			c->broken = true;
		else if (n > PACKET_MAX)
			cut_off(c, "a packet has at most 64 KiB");
		else if (!ftb_packet_parse(c->b->packet, (size_t)n, &p))
			cut_off(c, "that was no packet of the event backplane");
		else
			take_packet(c, &p);
		c->b->pace.packets++;
		if (n < PACKET_BATCH && !c->b->pace.on)
			return; /* not a client in a hurry: epoll tells if there is more */
	}
	c->b->pace.more = true;
}

void client_ready(struct client *c, uint32_t events)
{
	if (c->broken)
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		client_read(c);
	if (events & EPOLLOUT)
		c->r.dirty = true;
}

/* ---- coming and going ---- */

static void client_new(struct broker *b, int fd, uid_t uid)
{
	struct client *c = calloc(1, sizeof(*c));
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
	int room = 1 << 20;

	if (!c || !receiver_add(b, &c->r)) {
		free(c);
		close(fd);
		return;
	}
	c->b = b;
	c->fd = fd;
	c->uid = uid;
	c->next = b->clients;
	b->clients = c;
	b->stats.clients++;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e) != 0)
		c->broken = true;
}

/* There are no descriptors left. Who knocks is told so: left in the queue he would wait for ever,
 * and the listener be readable all the time. */
static void turn_one_away(struct broker *b)
{
	struct sockaddr_un from;
	socklen_t len = sizeof(from);
	int fd;

	close(b->reserve);
	fd = accept4(b->listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		refuse(fd, "this broker's process may have no more open files (ulimit -n)");
		close(fd);
	}
	b->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void client_accept(struct broker *b)
{
	for (int i = 0; i < 16; i++) {
		struct sockaddr_un from;
		socklen_t len = sizeof(from);
		int fd = accept4(b->listener, (struct sockaddr *)&from, &len,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct ucred who;

		if (fd < 0 && (errno == EMFILE || errno == ENFILE) && b->reserve >= 0)
			turn_one_away(b);
		if (fd < 0)
			return;
		if (!may_connect(fd, b, &who)) {
			b->stats.refused_users++;
			refuse(fd, "this broker serves its own user and the group it was told of");
			close(fd);
		} else if (b->stats.clients >= CLIENTS_MAX) {
			refuse(fd, "this broker has 1024 clients already");
			close(fd);
		} else {
			client_new(b, fd, who.uid);
		}
	}
}

void client_reap(struct broker *b)
{
	for (struct client **p = &b->clients; *p;) {
		struct client *c = *p;

		if (!c->broken) {
			p = &c->next;
			continue;
		}
		*p = c->next;
		close(c->fd);
		receiver_remove(b, &c->r);
		b->stats.clients--;
		free(c);
	}
}

void client_close_all(struct broker *b)
{
	for (struct client *c = b->clients; c; c = c->next) {
		client_flush(c);
		c->broken = true;
	}
	client_reap(b);
}

/* ---- the socket ---- */

/* False: it has none that we could make. */
static bool folder_of(const char *path, char folder[108])
{
	char *slash;

	snprintf(folder, 108, "%s", path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return false;
	*slash = 0;
	return true;
}

/* The default folder lies in /tmp: whoever made it before us would see our socket. */
static bool is_default(const char *folder)
{
	return strncmp(folder, "/tmp/hale-ftb-", 14) == 0;
}

static bool lets_in(const struct stat *st, gid_t group)
{
	return (st->st_mode & 001) || ((st->st_mode & 010) && st->st_gid == group);
}

/* Members of the group have to get through it, too. Only a folder that is ours is changed. */
static hale_status_t folder_check(const struct broker *b, const char *folder, bool made,
				  struct error *err)
{
	bool ours = made || is_default(folder), sound;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (ours ? O_NOFOLLOW : 0));
	struct stat st;

	if (fd < 0 && errno == EACCES && !ours) /* whoever may not read it may enter it, perhaps */
		return HALE_OK;
	sound = fd >= 0 && fstat(fd, &st) == 0;
	if (sound && ours && st.st_uid != geteuid()) {
		sound = false;
		errno = EPERM;
	}
	if (sound && ours && b->has_group && !lets_in(&st, b->group))
		sound = fchown(fd, (uid_t)-1, b->group) == 0 && fchmod(fd, 0750) == 0 &&
			fstat(fd, &st) == 0;
	if (fd >= 0)
		close(fd);
	if (!sound)
		return error_sys(err, HALE_ERR_SYSTEM,
				 "the folder of the event socket, %s, can't be made, or is another "
				 "user's",
				 folder);
	if (b->has_group && !lets_in(&st, b->group))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the members of the group can't enter the folder of the event "
				 "socket, %s; `chgrp` and `chmod g+x` it",
				 folder);
	return HALE_OK;
}

static hale_status_t folder_make(const struct broker *b, struct error *err)
{
	char folder[108];
	bool made;

	if (b->path[0] == '@' || !folder_of(b->path, folder))
		return HALE_OK;
	made = mkdir(folder, 0700) == 0;
	if (!made && errno != EEXIST)
		return error_sys(err, HALE_ERR_SYSTEM,
				 "the folder of the event socket, %s, can't be made", folder);
	return folder_check(b, folder, made, err);
}

/* Two that start at the same moment would both find nobody, and each remove the other's socket. A
 * lock that somebody keeps is not waited for long: it guards against accidents only. */
static int folder_lock(const struct broker *b)
{
	char folder[108];
	int fd = -1;

	if (b->path[0] != '@' && folder_of(b->path, folder))
		fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < 100 && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	return fd;
}

static bool somebody_listens(const struct sockaddr_un *a, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool yes =
	    fd >= 0 && (connect(fd, (const struct sockaddr *)a, len) == 0 || errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return yes;
}

static hale_status_t bind_to(struct broker *b, struct error *err)
{
	struct sockaddr_un a;
	socklen_t len = ftb_address(b->path, &a);
	bool file = b->path[0] != '@';

	if (somebody_listens(&a, len))
		return error_set(err, HALE_ERR_STATE,
				 "another event broker already serves %s; end it, or give this one "
				 "another socket (HALE_FTB)",
				 b->path);
	if (file)
		unlink(b->path); /* of one that was killed */
	if (bind(b->listener, (const struct sockaddr *)&a, len) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "can't make the event socket %s", b->path);
	if ((file && chmod(b->path, b->has_group ? 0660 : 0600) != 0) ||
	    (file && b->has_group && chown(b->path, (uid_t)-1, b->group) != 0) ||
	    listen(b->listener, CLIENTS_MAX) != 0) {
		error_sys(err, HALE_ERR_SYSTEM, "can't set up the event socket %s", b->path);
		if (file)
			unlink(b->path);
		return HALE_ERR_SYSTEM;
	}
	return HALE_OK;
}

hale_status_t client_listen(struct broker *b, struct error *err)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = &b->listener};
	hale_status_t st = folder_make(b, err);
	int lock;

	if (st != HALE_OK)
		return st;
	b->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (b->listener < 0)
		return error_sys(err, HALE_ERR_SYSTEM, "can't make a socket");
	lock = folder_lock(b);
	st = bind_to(b, err);
	if (lock >= 0)
		close(lock);
	if (st != HALE_OK) {
		b->path[0] = 0; /* not ours to remove */
		return st;
	}
	if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->listener, &e) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "can't watch the event socket");
	return HALE_OK;
}
