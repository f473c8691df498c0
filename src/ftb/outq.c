/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "ftb/outq.h"

void out_list_push(struct out_list *l, struct out_node *n)
{
	n->next = NULL;
	if (l->tail)
		l->tail->next = n;
	else
		l->head = n;
	l->tail = n;
}

struct out_node *out_list_pop(struct out_list *l)
{
	struct out_node *n = l->head;

	l->head = n->next;
	if (!l->head)
		l->tail = NULL;
	return n;
}

void out_list_free(struct out_list *l)
{
	while (l->head)
		free(out_list_pop(l));
}

void outq_fini(struct outq *q)
{
	out_list_free(&q->info);
	out_list_free(&q->above);
	free(q->batch);
	*q = (struct outq){0};
}

static void drop(struct outq *q, struct out_list *l, uint64_t *lost)
{
	struct out_node *n = out_list_pop(l);

	q->bytes -= n->len;
	(*lost)++;
	free(n);
}

/* Control packets stand in `above` and are not lost. */
static bool drop_oldest_above(struct outq *q)
{
	struct out_node *prev = NULL, *n = q->above.head;

	while (n && n->control) {
		prev = n;
		n = n->next;
	}
	if (!n)
		return false;
	if (prev)
		prev->next = n->next;
	else
		q->above.head = n->next;
	if (q->above.tail == n)
		q->above.tail = prev;
	q->bytes -= n->len;
	q->lost_above++;
	free(n);
	return true;
}

static struct out_node *node_new(struct outq *q, const uint8_t *bytes, size_t len, bool control)
{
	struct out_node *n = malloc(sizeof(*n) + len);

	if (!n)
		return NULL;
	*n = (struct out_node){.ticket = q->ticket++, .len = (uint32_t)len, .control = control};
	memcpy(n->bytes, bytes, len);
	q->bytes += len;
	return n;
}

static void enqueue(struct outq *q, bool info, const uint8_t *bytes, size_t len)
{
	struct out_node *n;

	while (q->bytes + len > OUTQ_SOFT && q->info.head)
		drop(q, &q->info, &q->lost_info);
	if (info && q->bytes + len > OUTQ_SOFT) {
		q->lost_info++;
		return;
	}
	while (q->bytes + len > OUTQ_HARD && drop_oldest_above(q))
		;
	n = node_new(q, bytes, len, false);
	if (n)
		out_list_push(info ? &q->info : &q->above, n);
	else
		(*(info ? &q->lost_info : &q->lost_above))++;
}

static bool batch_add(struct outq *q, const uint8_t *bytes, size_t len)
{
	if (!q->batch)
		q->batch = malloc(PACKET_MAX);
	if (!q->batch)
		return false;
	if (q->batch_len == 0)
		q->batch_len = PACKET_HEADER;
	memcpy(q->batch + q->batch_len, bytes, len);
	q->batch_len += len;
	q->batch_count++;
	return true;
}

bool outq_event(struct outq *q, const struct ftb_event *e, const uint8_t *bytes, size_t len,
		outq_send *send, void *to)
{
	if (q->blocked || q->info.head || q->above.head || !batch_add(q, bytes, len))
		enqueue(q, ftb_event_info(e), bytes, len);
	else if (q->batch_len >= PACKET_BATCH)
		return outq_flush(q, send, to) != OUT_BROKEN;
	return true;
}

bool outq_control(struct outq *q, const uint8_t *packet, size_t len)
{
	struct out_node *n;

	if (q->controls >= CONTROL_MAX)
		return false;
	n = node_new(q, packet, len, true);
	if (!n)
		return false;
	out_list_push(&q->above, n);
	q->controls++;
	return true;
}

/* The list whose head is next, or NULL. */
static struct out_list *next_list(struct outq *q)
{
	struct out_node *i = q->info.head, *a = q->above.head;

	if (i && (!a || i->ticket < a->ticket))
		return &q->info;
	return a ? &q->above : NULL;
}

static enum out_result send_batch(struct outq *q, outq_send *send, void *to)
{
	enum out_result r;

	ftb_packet_start(q->batch, PACKET_EVENTS, q->batch_count);
	r = send(to, q->batch, q->batch_len);
	if (r == OUT_SENT) {
		q->batch_len = 0;
		q->batch_count = 0;
	}
	return r;
}

/* Moves events from the lists to the batch; a control packet at the head of an empty batch goes by
 * itself. */
static enum out_result refill(struct outq *q, outq_send *send, void *to)
{
	struct out_list *l;

	while (q->batch_len < PACKET_BATCH && (l = next_list(q))) {
		struct out_node *n = l->head;

		if (n->control) {
			if (q->batch_len)
				break;
			enum out_result r = send(to, n->bytes, n->len);
			if (r != OUT_SENT)
				return r;
			q->controls--;
		} else if (!batch_add(q, n->bytes, n->len)) {
			return OUT_BLOCKED;
		}
		out_list_pop(l);
		q->bytes -= n->len;
		free(n);
	}
	return OUT_SENT;
}

enum out_result outq_flush(struct outq *q, outq_send *send, void *to)
{
	enum out_result r = OUT_SENT;

	while (r == OUT_SENT && !outq_empty(q)) {
		if (q->batch_len)
			r = send_batch(q, send, to);
		if (r == OUT_SENT)
			r = refill(q, send, to);
	}
	q->blocked = r == OUT_BLOCKED;
	return r;
}
