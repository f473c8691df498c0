/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a broker in its owner's event loop: no thread, and nothing in it ever waits. For
 * processes of Hale that have a loop; others use libftb.h, whose library has a thread.
 *
 *     loop_add(&loop, &source, tap_fd(t), EPOLLIN, ready, t);   // ready: tap_dispatch(arg)
 *
 * When the broker ends, the tap looks for the next one by itself, twenty times a second.
 * Subscriptions are renewed then, and events of WARNING and above that were published meanwhile, or
 * might have been lost with it, are sent again (the newest 256 KiB; of INFO, 64 KiB). None comes
 * twice. What the owner publishes it also sees, at once, with or without a broker. Not thread-safe.
 */
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
/* Takes a bounded number of packets. */
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
