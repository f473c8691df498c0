/* SPDX-License-Identifier: BSD-3-Clause */
/* What waits for one receiver, in order, and which of it is lost first when there is too much. Used
 * by the broker for clients and other brokers, and by clients for the broker. */
#ifndef HALE_FTB_OUTQ_H
#define HALE_FTB_OUTQ_H

#include "ftb/ftb.h"

enum {
	OUTQ_SOFT = 4 << 20, /* bytes waiting for a receiver before INFO is lost … */
	OUTQ_HARD = 8 << 20, /* … and before anything is */
	CONTROL_MAX = 512,   /* answers or requests that nobody takes */
};

struct out_node {
	struct out_node *next;
	uint64_t ticket; /* in a queue: its order; of a held event: when it came, clock_ns() */
	uint32_t len;
	bool control; /* a whole packet; else an event */
	uint8_t bytes[];
};

struct out_list {
	struct out_node *head, *tail;
};

/* Order is kept by tickets over two lists, so that the oldest INFO event is found at once. */
struct outq {
	uint8_t *batch; /* events gathered for the next packet, or the one that would not go */
	size_t batch_len;
	uint32_t batch_count;
	bool blocked;
	struct out_list info, above;
	size_t bytes;
	unsigned controls;
	uint64_t ticket;
	uint64_t lost_info, lost_above;
};

/* Sends one packet or message; never waits. */
typedef enum out_result outq_send(void *to, const uint8_t *bytes, size_t len);

void outq_fini(struct outq *q);
/* False when the receiver is broken. Sends full batches through send. */
bool outq_event(struct outq *q, const struct ftb_event *e, const uint8_t *bytes, size_t len,
		outq_send *send, void *to);
/* False if too many answers wait already. */
bool outq_control(struct outq *q, const uint8_t *packet, size_t len);
void out_list_push(struct out_list *l, struct out_node *n);
struct out_node *out_list_pop(struct out_list *l); /* of one that is not empty */
void out_list_free(struct out_list *l);
enum out_result outq_flush(struct outq *q, outq_send *send, void *to);
static inline bool outq_empty(const struct outq *q)
{
	return q->batch_len == 0 && !q->info.head && !q->above.head;
}

#endif
