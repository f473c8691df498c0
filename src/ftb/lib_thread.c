/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's one thread, and the connection. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/packets.h"
#include "ftb/lib.h"

/* ---- the connection ---- */

/* A broker to which many come at once has a full queue for a moment. */
static int connect_soon(void)
{
	double end = clock_seconds() + WAIT_MS * 1e-3;
	int fd;

	while ((fd = ftb_connect(NULL)) < 0 && errno == EAGAIN && clock_seconds() < end)
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	return fd;
}

int lib_open(struct lib_client *c)
{
	uint8_t packet[PACKET_HEADER + 512];
	struct pollfd pfd = {.events = POLLIN};
	struct packet p;
	ssize_t n = -1;

	c->fd = pfd.fd = connect_soon();
	if (c->fd < 0)
		return FTB_ERR_NETWORK_NO_ROUTE;
	if (ftb_greet(c->fd, c->publisher) && poll(&pfd, 1, WAIT_MS) == 1)
		n = ftb_hear(c->fd, packet, sizeof(packet));
	if (n <= 0 || !ftb_packet_parse(packet, (size_t)n, &p) || p.kind != PACKET_WELCOME) {
		lib_close(c);
		return FTB_ERR_NETWORK_NO_ROUTE;
	}
	ftb_welcome_host(&p, c->host);
	c->welcome = true;
	return FTB_SUCCESS;
}

void lib_close(struct lib_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->welcome = false;
	c->retry_at = clock_seconds() + 0.02;
}

/* Events of WARNING and above in the queue are among those kept, and go to the next broker. */
static void lost_connection(struct lib_client *c)
{
	lib_close(c);
	kept_forget_old(&c->kept);
	c->lost_info += c->out.lost_info;
	c->lost_above += c->out.lost_above;
	outq_fini(&c->out);
	c->flush_ns = 0;
	c->told_info += c->now_info;
	c->told_above += c->now_above;
	c->now_info = c->now_above = 0;
	c->sync_done = c->sync_sent;
	pthread_cond_broadcast(&lib.news);
}

static enum out_result send_packet(void *to, const uint8_t *bytes, size_t len)
{
	const struct lib_client *c = to;

	return ftb_send(c->fd, bytes, len);
}

void lib_flush(struct lib_client *c)
{
	enum out_result r;

	c->flush_ns = 0;
	c->sent_ns = clock_ns();
	r = outq_flush(&c->out, send_packet, c);
	if (r == OUT_BROKEN)
		lost_connection(c);
	else if (r == OUT_BLOCKED)
		lib_wake(); /* so that the thread waits for room */
}

void lib_request(struct lib_client *c, enum packet_kind kind, uint32_t count, const void *body,
		 size_t len)
{
	uint8_t packet[PACKET_HEADER + FILTER_WIRE_MAX];

	ftb_packet_start(packet, kind, count);
	if (len)
		memcpy(packet + PACKET_HEADER, body, len);
	outq_control(&c->out, packet, PACKET_HEADER + len);
}

static void deadline(struct timespec *t, int ms)
{
	clock_gettime(CLOCK_REALTIME, t);
	t->tv_sec += ms / 1000;
	t->tv_nsec += ms % 1000 * 1000000L;
	if (t->tv_nsec >= 1000000000) {
		t->tv_sec++;
		t->tv_nsec -= 1000000000;
	}
}

void lib_sync(struct lib_client *c)
{
	FTB_client_handle_t handle = (FTB_client_handle_t)(uintptr_t)c->id;
	uint32_t want = ++c->sync_sent;
	struct timespec until;

	lib_request(c, PACKET_SYNC, want, NULL, 0);
	lib_flush(c);
	if (lib_in_thread()) /* the answer would have to be read by us */
		return;
	deadline(&until, WAIT_MS);
	while (lib_client(handle) == c && (int32_t)(c->sync_done - want) < 0)
		if (pthread_cond_timedwait(&lib.news, &lib.lock, &until) != 0)
			return;
}

/* ---- receiving ---- */

static void take_event(const struct ftb_event *e, const uint8_t *bytes, size_t len, void *arg)
{
	struct lib_client *c = arg;

	if (c->dead || (!ftb_event_info(e) && kept_seen(&c->kept, e)))
		return;
	subs_event(c, e, bytes, len);
}

static void take_welcome(struct lib_client *c, const struct packet *p)
{
	ftb_welcome_host(p, c->host);
	c->welcome = true;
	for (struct subscription *s = c->subs; s; s = s->next)
		subs_announce(c, s, true);
	c->out.blocked = true; /* gathers everything; the flush below lets it go */
	kept_resend(&c->kept, &c->out);
	lib_flush(c);
}

static void take_packet(struct lib_client *c, const struct packet *p)
{
	if (p->kind == PACKET_EVENTS) {
		ftb_events_each(p, take_event, c);
	} else if (p->kind == PACKET_WELCOME && !c->welcome) {
		take_welcome(c, p);
	} else if (p->kind == PACKET_SYNC) {
		c->sync_done = p->count;
		pthread_cond_broadcast(&lib.news);
	} else if (p->kind == PACKET_LOST && p->len == 16) {
		c->now_info = get_u64(p->body);
		c->now_above = get_u64(p->body + 8);
	}
}

static void receive(struct lib_client *c, uint8_t *buffer)
{
	for (int i = 0; i < 16 && c->fd >= 0 && !c->dead; i++) {
		ssize_t n = ftb_hear(c->fd, buffer, PACKET_MAX);
		struct packet p;

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			lost_connection(c);
		else if (ftb_packet_parse(buffer, (size_t)n, &p))
			take_packet(c, &p);
		if (n < PACKET_BATCH) /* poll tells if there is more */
			return;
	}
}

/* ---- the thread ---- */

static void find_again(struct lib_client *c)
{
	int fd;

	if (c->fd >= 0 || clock_seconds() < c->retry_at)
		return;
	fd = ftb_connect(NULL);
	if (fd >= 0 && ftb_greet(fd, c->publisher))
		c->fd = fd;
	else if (fd >= 0)
		close(fd);
	c->retry_at = clock_seconds() + 0.05;
}

/* Descriptors of all clients; how long the thread may sleep. */
static nfds_t gather(struct pollfd *p, struct lib_client **who, nfds_t cap, struct timespec *sleep)
{
	uint64_t now = clock_ns(), next = UINT64_MAX;
	nfds_t n = 1;

	p[0] = (struct pollfd){.fd = lib.wake, .events = POLLIN};
	for (struct lib_client *c = lib.clients; c; c = c->next) {
		if (c->dead)
			continue;
		find_again(c);
		if (c->flush_ns && c->flush_ns < next)
			next = c->flush_ns;
		/* in a stream nobody needs to wake the thread for what waits */
		if (c->sent_ns + COALESCE_NS > now && c->sent_ns + COALESCE_NS < next)
			next = c->sent_ns + COALESCE_NS;
		if (c->fd < 0 && now + 50000000 < next)
			next = now + 50000000;
		if (c->fd >= 0 && n < cap) {
			who[n] = c;
			p[n].fd = c->fd;
			p[n].events = POLLIN | (c->out.blocked ? POLLOUT : 0);
			p[n++].revents = 0;
		}
	}
	lib.sleeps_until = next;
	next = next > now ? next - now : 0;
	if (next > 3600000000000)
		next = 3600000000000;
	*sleep = (struct timespec){.tv_sec = (time_t)(next / 1000000000),
				   .tv_nsec = (long)(next % 1000000000)};
	return n;
}

static bool still_there(const struct lib_client *c)
{
	for (struct lib_client *o = lib.clients; o; o = o->next)
		if (o == c)
			return !o->dead;
	return false;
}

static void attend(struct lib_client *c, short events, uint8_t *buffer)
{
	c->busy = true;
	if (events & POLLOUT)
		lib_flush(c);
	if (events & (POLLIN | POLLHUP | POLLERR))
		receive(c, buffer);
	c->busy = false;
	if (c->orphaned)
		lib_client_gone(c);
	pthread_cond_broadcast(&lib.news);
}

void lib_flush_due(void)
{
	uint64_t now = clock_ns();

	for (struct lib_client *c = lib.clients; c; c = c->next)
		if (c->flush_ns && c->flush_ns <= now && c->fd >= 0)
			lib_flush(c);
}

static void *thread_main(void *arg)
{
	enum { FDS = 256 };
	static struct pollfd p[FDS];
	static struct lib_client *who[FDS];
	static uint8_t buffer[PACKET_MAX];
	struct timespec sleep;

	pthread_mutex_lock(&lib.lock);
	while (lib.clients) {
		nfds_t n = gather(p, who, FDS, &sleep);
		uint64_t count;

		pthread_mutex_unlock(&lib.lock);
		ppoll(p, n, &sleep, NULL);
		if ((p[0].revents & POLLIN) && read(lib.wake, &count, sizeof(count)) < 0)
			count = 0;
		pthread_mutex_lock(&lib.lock);
		lib.sleeps_until = 0;
		lib_flush_due();
		for (nfds_t i = 1; i < n; i++)
			if (p[i].revents && still_there(who[i]))
				attend(who[i], p[i].revents, buffer);
	}
	lib.running = false;
	pthread_cond_broadcast(&lib.news);
	pthread_mutex_unlock(&lib.lock);
	return NULL;
}

void lib_wake(void)
{
	uint64_t one = 1;

	if (lib.running && !lib_in_thread() && write(lib.wake, &one, sizeof(one)) < 0)
		log_debug("libftb: the wake counter is full");
}

/* ---- fork: the child has neither the thread nor the clients ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&lib.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lib.lock);
}

/* The parent's memory is left alone: nothing but closing is sure to work here. */
static void in_child(void)
{
	for (struct lib_client *c = lib.clients; c; c = c->next)
		if (c->fd >= 0)
			close(c->fd);
	if (lib.wake >= 0)
		close(lib.wake);
	lib.clients = NULL;
	lib.running = lib.joinable = lib.calling = false;
	lib.wake = -1;
	pthread_cond_init(&lib.news, NULL);
	pthread_mutex_unlock(&lib.lock); /* the thread that forked holds it */
}

bool lib_thread_start(void)
{
	static bool prepared;
	sigset_t all, old;
	bool ok;

	if (lib.running)
		return true;
	if (!prepared && pthread_atfork(before_fork, after_fork, in_child) != 0)
		return false;
	prepared = true;
	if (lib.joinable)
		pthread_join(lib.thread, NULL);
	lib.joinable = false;
	if (lib.wake < 0)
		lib.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lib.wake < 0)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all,
			&old); /* the program's signals are for its own threads */
	ok = pthread_create(&lib.thread, NULL, thread_main, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	lib.running = lib.joinable = ok;
	return ok;
}
