/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a tap's connection to its broker (tap.h):
 *
 *   CLOSED ── a socket answers ──▶ GREETED ── WELCOME ──▶ OPEN
 *      ▲                             │ refused, closed     │ closed
 *      └───── retry timer ───────────┴─────────────────────┘
 */
#include "ftb/tap.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "base/base.h"
#include "ftb/author.h"
#include "ftb/kept.h"
#include <libftb.h>

enum { RETRY_MS = 50, WELCOME_MS = 1000, PACKETS = 8 };

struct tap_subscription {
	struct ftb_filter filter;
	double since;
	void (*callback)(const struct broker_event *event, void *arg);
	void *arg;
};

struct tap {
	char path[108];
	int epoll, timer, fd; /* fd -1: no broker at the moment */
	bool open;	      /* it has said WELCOME */
	bool refused;	      /* … or the opposite: said once */
	char host[EVENT_TEXT_MAX + 1];
	struct ftb_author author;
	struct ftb_kept kept;
	struct outq out;
	bool watches_out;
	struct tap_subscription subs[TAP_SUBSCRIPTIONS];
	uint32_t count;
	uint8_t *packet;
};

/* ---- the connection ---- */

static void retry_later(struct tap *t)
{
	struct itimerspec when = {.it_value.tv_nsec = RETRY_MS * 1000000L};

	timerfd_settime(t->timer, 0, &when, NULL);
}

/* What waits in the queue of WARNING and above is among what is kept. */
static void lose(struct tap *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	t->open = t->watches_out = false;
	kept_forget_old(&t->kept);
	outq_fini(&t->out);
	retry_later(t);
}

static bool greet(struct tap *t)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = t};

	t->fd = ftb_connect(t->path);
	if (t->fd >= 0 && ftb_greet(t->fd, t->author.publisher) &&
	    epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->fd, &e) == 0)
		return true;
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	return false;
}

static enum out_result send_packet(void *to, const uint8_t *bytes, size_t len)
{
	const struct tap *t = to;

	return ftb_send(t->fd, bytes, len);
}

static void flush(struct tap *t)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = t};
	enum out_result r = outq_flush(&t->out, send_packet, t);

	if (r == OUT_BROKEN) {
		lose(t);
		return;
	}
	if (t->watches_out == (r == OUT_BLOCKED))
		return;
	t->watches_out = r == OUT_BLOCKED;
	if (t->watches_out)
		e.events |= EPOLLOUT;
	epoll_ctl(t->epoll, EPOLL_CTL_MOD, t->fd, &e);
}

static void announce(struct tap *t, uint32_t id)
{
	const struct tap_subscription *s = &t->subs[id];
	uint8_t packet[PACKET_HEADER + FILTER_WIRE_MAX];
	double age = (clock_seconds() - s->since) * 1e3;
	size_t len;

	ftb_packet_start(packet, PACKET_SUBSCRIBE, 0);
	len = ftb_filter_write(&s->filter, id + 1, age > 4e9 ? 4000000000u : (uint32_t)age,
			       packet + PACKET_HEADER);
	outq_control(&t->out, packet, PACKET_HEADER + len);
}

static void welcome(struct tap *t, const struct packet *p)
{
	ftb_welcome_host(p, t->host);
	t->open = true;
	t->refused = false;
	for (uint32_t i = 0; i < t->count; i++)
		announce(t, i);
	t->out.blocked = true; /* gathers everything; the flush lets it go */
	kept_resend(&t->kept, &t->out);
	flush(t);
}

/* ---- receiving ---- */

static bool given_already(const struct tap *t, uint32_t i, const struct ftb_event *e)
{
	for (uint32_t k = 0; k < i; k++)
		if (t->subs[k].callback == t->subs[i].callback &&
		    t->subs[k].arg == t->subs[i].arg && ftb_filter_match(&t->subs[k].filter, e))
			return true;
	return false;
}

static void show(struct tap *t, const struct ftb_event *e)
{
	struct ftb_shown s;
	bool written = false;

	for (uint32_t i = 0; i < t->count; i++) {
		if (!ftb_filter_match(&t->subs[i].filter, e) || given_already(t, i, e))
			continue;
		if (!written)
			ftb_event_show(e, &s);
		written = true;
		t->subs[i].callback(&s.event, t->subs[i].arg);
	}
}

static void take_event(const struct ftb_event *e, const uint8_t *bytes, size_t len, void *arg)
{
	struct tap *t = arg;

	if (e->publisher == t->author.publisher) /* shown when it was published */
		return;
	if (ftb_event_info(e) || !kept_seen(&t->kept, e))
		show(t, e);
}

static void take_packet(struct tap *t, const struct packet *p)
{
	if (p->kind == PACKET_EVENTS) {
		ftb_events_each(p, take_event, t);
	} else if (p->kind == PACKET_WELCOME && !t->open) {
		welcome(t, p);
	} else if (p->kind == PACKET_REFUSED && !t->refused) {
		t->refused = true;
		log_info("the event broker at %s refuses: %.*s", t->path, (int)p->len,
			 ftb_text_ok((const char *)p->body, p->len) ? (const char *)p->body : "");
	}
}

/* False when there is nothing more for now. */
static bool receive(struct tap *t)
{
	ssize_t n = ftb_hear(t->fd, t->packet, PACKET_MAX);
	struct packet p;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		lose(t);
		return false;
	}
	if (ftb_packet_parse(t->packet, (size_t)n, &p))
		take_packet(t, &p);
	return t->fd >= 0;
}

void tap_dispatch(struct tap *t)
{
	uint64_t ticks;

	if (t->fd < 0) {
		if (read(t->timer, &ticks, sizeof(ticks)) == sizeof(ticks) && !greet(t))
			retry_later(t);
		return;
	}
	if (t->watches_out)
		flush(t);
	for (int i = 0; i < PACKETS && t->fd >= 0 && receive(t); i++)
		;
}

/* ---- life ---- */

static bool set_up(struct tap *t)
{
	struct epoll_event e = {.events = EPOLLIN};

	t->packet = malloc(PACKET_MAX);
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return t->packet && t->epoll >= 0 && t->timer >= 0 &&
	       epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->timer, &e) == 0;
}

hale_status_t tap_create(const char *socket, struct tap **out, struct error *err)
{
	struct tap *t = calloc(1, sizeof(*t));
	struct pollfd p = {.events = POLLIN};
	hale_status_t st = HALE_OK;

	*out = NULL;
	if (!t)
		return error_set(err, HALE_ERR_MEMORY, "no memory for a client of the events");
	t->epoll = t->timer = t->fd = -1;
	ftb_author_init(&t->author);
	if (socket)
		snprintf(t->path, sizeof(t->path), "%s", socket);
	if ((!socket && !ftb_socket_path(t->path)) || !set_up(t))
		st = error_sys(err, HALE_ERR_SYSTEM, "can't set up a client of the events");
	else if (!greet(t))
		st = error_sys(err, HALE_ERR_NODE, "no event broker answers at '%s'", t->path);
	p.fd = t->fd;
	if (st == HALE_OK && poll(&p, 1, WELCOME_MS) == 1)
		receive(t);
	if (st == HALE_OK && !t->open)
		st = error_set(err, HALE_ERR_NODE,
			       t->refused ? "the event broker at '%s' refuses this user"
					  : "the event broker at '%s' does not answer",
			       t->path);
	if (st != HALE_OK) {
		tap_destroy(t);
		return st;
	}
	*out = t;
	return HALE_OK;
}

void tap_destroy(struct tap *t)
{
	if (!t)
		return;
	if (t->open)
		flush(t);
	for (size_t i = 0; i < 3; i++) {
		int fd = (int[]){t->fd, t->timer, t->epoll}[i];

		if (fd >= 0)
			close(fd);
	}
	outq_fini(&t->out);
	kept_fini(&t->kept);
	free(t->packet);
	free(t);
}

int tap_fd(const struct tap *t)
{
	return t->epoll;
}

/* ---- the owner ---- */

hale_status_t tap_publish(struct tap *t, const char *space, const char *name, int severity,
			  const char *jobid, const void *payload, size_t length, struct error *err)
{
	uint8_t bytes[EVENT_MAX];
	struct ftb_event e;
	hale_status_t st = ftb_author_event(&t->author, t->host, space, name, severity, jobid,
					    payload, length, bytes, &e, err);
	size_t len;

	if (st != HALE_OK)
		return st;
	len = ftb_event_size(&e);
	if (!t->open || !ftb_event_info(&e))
		kept_add(&t->kept, &e, bytes, len);
	if (t->open) {
		outq_event(&t->out, &e, bytes, len, send_packet, t);
		flush(t);
	}
	show(t, &e);
	return HALE_OK;
}

hale_status_t tap_subscribe(struct tap *t, const char *filter,
			    void (*callback)(const struct broker_event *event, void *arg),
			    void *arg, struct error *err)
{
	struct tap_subscription *s = &t->subs[t->count];

	if (t->count == TAP_SUBSCRIPTIONS)
		return error_set(err, HALE_ERR_MEMORY, "more than %d subscriptions",
				 TAP_SUBSCRIPTIONS);
	*s = (struct tap_subscription){.since = clock_seconds(), .callback = callback, .arg = arg};
	if (ftb_filter_parse(filter, &s->filter) != FTB_SUCCESS)
		return error_set(err, HALE_ERR_ARGUMENT, "'%s' is no filter for events", filter);
	t->count++;
	if (t->open) {
		announce(t, t->count - 1);
		flush(t);
	}
	return HALE_OK;
}
