/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a broker in its owner's event loop: it has no thread, and only tap_create() waits. It
 * is for processes of Hale that have a loop; others use libftb.h, whose library has a thread.
 *
 *     loop_add(&loop, &source, tap_fd(t), EPOLLIN, ready, t);   // ready: tap_dispatch(arg)
 *
 * When the broker ends, the tap looks for the next one by itself, twenty times a second. It renews
 * its subscriptions there. It sends events of WARNING and above again that the old broker may have
 * lost, or that were published without a broker (the newest 256 KiB). Of INFO it sends only those
 * that were published without a broker (64 KiB). A subscriber gets no event twice. The owner sees
 * its own events at once, with or without a broker. Not thread-safe. */
#ifndef HALE_FTB_TAP_H
#define HALE_FTB_TAP_H

#include "ftb/broker.h"

struct tap; /* opaque */

/* Connects to the broker at a socket (NULL: ftb_socket_path()) and waits up to a second for its
 * welcome. NODE with a sentence if there is none, or it refuses. */
hale_status_t tap_create(const char *socket, struct tap **t, struct error *err);
/* Sends what goes at once, and forgets the rest. NULL is fine. */
void tap_destroy(struct tap *t);

/* Readable when tap_dispatch() has something to do. The tap's: don't close it. */
int tap_fd(const struct tap *t);
/* Deals with a bounded number of packets, so that the owner's loop gets its turn. */
void tap_dispatch(struct tap *t);

/* As broker_publish. */
hale_status_t tap_publish(struct tap *t, const char *space, const char *name, int severity,
			  const char *jobid, const void *payload, size_t length, struct error *err);
/* As broker_subscribe; for the tap's whole life, at most TAP_SUBSCRIPTIONS. The callback may
 * publish; it must not destroy the tap. */
enum { TAP_SUBSCRIPTIONS = 64 };
hale_status_t tap_subscribe(struct tap *t, const char *filter,
			    void (*callback)(const struct broker_event *event, void *arg),
			    void *arg, struct error *err);

#endif
