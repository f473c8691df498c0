/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/session/loop.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>
#include "base/base.h"

bool loop_init(struct loop *l)
{
	*l = (struct loop){.epoll = epoll_create1(EPOLL_CLOEXEC)};
	return l->epoll >= 0;
}

void loop_fini(struct loop *l)
{
	if (l->epoll >= 0)
		close(l->epoll);
	l->epoll = -1;
}

bool loop_add(struct loop *l, struct loop_source *s, int fd, uint32_t events,
	      void (*ready)(void *arg, uint32_t events), void *arg)
{
	struct epoll_event e = {.events = events, .data.ptr = s};

	*s = (struct loop_source){.fd = -1, .events = events, .ready = ready, .arg = arg};
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) != 0)
		return false;
	s->fd = fd;
	return true;
}

void loop_change(struct loop *l, struct loop_source *s, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = s};

	if (s->fd < 0 || s->events == events)
		return;
	s->events = events;
	epoll_ctl(l->epoll, EPOLL_CTL_MOD, s->fd, &e);
}

void loop_remove(struct loop *l, struct loop_source *s)
{
	if (s->fd >= 0)
		epoll_ctl(l->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	s->fd = -1;
}

void loop_timer_clear(struct loop *l, struct loop_timer *t)
{
	if (!t->armed)
		return;
	for (struct loop_timer **p = &l->timers; *p; p = &(*p)->next) {
		if (*p == t) {
			*p = t->next;
			break;
		}
	}
	t->armed = false;
}

void loop_timer_set(struct loop *l, struct loop_timer *t, double seconds, void (*fire)(void *arg),
		    void *arg)
{
	struct loop_timer **p = &l->timers;

	loop_timer_clear(l, t);
	*t = (struct loop_timer){
	    .armed = true, .at = clock_seconds() + seconds, .fire = fire, .arg = arg};
	while (*p && (*p)->at <= t->at)
		p = &(*p)->next;
	t->next = *p;
	*p = t;
}

static void fire_due(struct loop *l)
{
	double now = clock_seconds();

	while (!l->stop && l->timers && l->timers->at <= now) {
		struct loop_timer *t = l->timers;

		l->timers = t->next;
		t->armed = false;
		t->fire(t->arg);
		if (l->after)
			l->after(l->after_arg);
	}
}

static int milliseconds_to_next(const struct loop *l)
{
	if (!l->timers)
		return -1;
	/* rounded up: waking a little early would only spin */
	double left = (l->timers->at - clock_seconds()) * 1e3 + 0.999;
	return left <= 0 ? 0 : left > 3600e3 ? 3600000 : (int)left;
}

/* One event a turn: its handler may remove any other source, and free what it lies in. */
void loop_run(struct loop *l)
{
	while (!l->stop) {
		struct epoll_event e;
		int n = epoll_wait(l->epoll, &e, 1, milliseconds_to_next(l));

		if (n == 1) {
			struct loop_source *s = e.data.ptr;
			s->ready(s->arg, e.events);
			if (l->after)
				l->after(l->after_arg);
		}
		if (!l->stop)
			fire_due(l);
	}
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
