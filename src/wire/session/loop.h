/* SPDX-License-Identifier: BSD-3-Clause */
/* An event loop for one thread: descriptors through epoll, deadlines in a short list. */
#ifndef HALE_WIRE_SESSION_LOOP_H
#define HALE_WIRE_SESSION_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Embedded in its owner, who must remove it before it goes away. events: EPOLLIN, … */
struct loop_source {
	int fd; /* -1: not in the loop */
	uint32_t events;
	void (*ready)(void *arg, uint32_t events);
	void *arg;
};

struct loop_timer {
	bool armed;
	double at; /* clock_seconds() */
	void (*fire)(void *arg);
	void *arg;
	struct loop_timer *next;
};

struct loop {
	int epoll;
	bool stop;
	struct loop_timer *timers; /* the armed ones, soonest first */
	/* after each event and each deadline that was handled; NULL: nothing */
	void (*after)(void *arg);
	void *after_arg;
};

bool loop_init(struct loop *l);
void loop_fini(struct loop *l);

/* False with errno set; EPERM for regular files, which epoll does not take. */
bool loop_add(struct loop *l, struct loop_source *s, int fd, uint32_t events,
	      void (*ready)(void *arg, uint32_t events), void *arg);
/* events 0 keeps it in the loop but silent, except for hang-ups. */
void loop_change(struct loop *l, struct loop_source *s, uint32_t events);
void loop_remove(struct loop *l, struct loop_source *s); /* does not close the descriptor */

/* (Re)arms t to fire once, in so many seconds. */
void loop_timer_set(struct loop *l, struct loop_timer *t, double seconds, void (*fire)(void *arg),
		    void *arg);
void loop_timer_clear(struct loop *l, struct loop_timer *t);

/* Waits for the next events or deadline and handles them; runs until loop_stop. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

#endif
