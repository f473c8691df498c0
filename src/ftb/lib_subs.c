/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscriptions: asking for events, waiting ones, callbacks. */
#include <stdlib.h>
#include <string.h>
#include "ftb/lib.h"

_Thread_local uint32_t ftb_event_age_ms;

static struct subscription *sub_find(FTB_subscribe_handle_t handle, struct lib_client **client)
{
	for (struct lib_client *c = lib.clients; c; c = c->next)
		for (struct subscription *s = c->dead ? NULL : c->subs; s; s = s->next)
			if (s->id == (uintptr_t)handle) {
				*client = c;
				return s;
			}
	return NULL;
}

/* ---- waiting events ---- */

static void push(struct lib_list *l, struct lib_event *e)
{
	if (l->tail)
		l->tail->next = e;
	else
		l->head = e;
	l->tail = e;
}

static struct lib_event *pop(struct lib_list *l)
{
	struct lib_event *e = l->head;

	l->head = e->next;
	if (!l->head)
		l->tail = NULL;
	return e;
}

static void take_out(struct lib_list *l, struct lib_event *e)
{
	struct lib_event *prev = NULL;

	for (struct lib_event *at = l->head; at != e; at = at->next)
		prev = at;
	if (!prev) {
		pop(l);
		return;
	}
	prev->next = e->next;
	if (l->tail == e)
		l->tail = prev;
}

static bool polls(const struct subscription *s)
{
	return !s->callback && !s->callback_long;
}

/* The one that asked first. */
static struct subscription *first_match(struct lib_client *c, const struct ftb_event *e,
					bool polling)
{
	struct subscription *first = NULL;

	for (struct subscription *s = c->subs; s; s = s->next)
		if (polls(s) == polling && ftb_filter_match(&s->filter, e))
			first = s;
	return first;
}

static void wait_for_poll(struct lib_client *c, bool info, const uint8_t *bytes, size_t len)
{
	struct lib_event *e;

	if (c->polled.count >= c->queue_len) {
		if (!c->polled.info.head && info) {
			c->lost_info++;
			return;
		}
		(*(c->polled.info.head ? &c->lost_info : &c->lost_above))++;
		free(pop(c->polled.info.head ? &c->polled.info : &c->polled.above));
		c->polled.count--;
	}
	e = malloc(sizeof(*e) + len);
	if (!e) {
		(*(info ? &c->lost_info : &c->lost_above))++;
		return;
	}
	*e = (struct lib_event){.ticket = c->polled.ticket++, .len = (uint32_t)len};
	memcpy(e->bytes, bytes, len);
	push(info ? &c->polled.info : &c->polled.above, e);
	c->polled.count++;
}

/* The oldest in the list that passes. */
static struct lib_event *oldest(const struct lib_list *l, const struct ftb_filter *f)
{
	struct ftb_event e;

	for (struct lib_event *w = l->head; w; w = w->next)
		if (ftb_event_parse(w->bytes, w->len, &e) && ftb_filter_match(f, &e))
			return w;
	return NULL;
}

/* After a subscription has ended: what nobody can poll any more. */
static void drop_unwanted(struct lib_client *c, struct lib_list *l)
{
	struct lib_event *next;
	struct ftb_event e;

	for (struct lib_event *w = l->head; w; w = next) {
		next = w->next;
		if (ftb_event_parse(w->bytes, w->len, &e) && first_match(c, &e, true))
			continue;
		take_out(l, w);
		free(w);
		c->polled.count--;
	}
}

void subs_free_all(struct lib_client *c)
{
	while (c->subs) {
		struct subscription *s = c->subs;

		c->subs = s->next;
		free(s);
	}
	while (c->polled.info.head)
		free(pop(&c->polled.info));
	while (c->polled.above.head)
		free(pop(&c->polled.above));
}

/* ---- giving ---- */

static void take_text(const struct ftb_event *e, enum ftb_text t, char *to)
{
	memcpy(to, e->text[t], e->text_len[t]);
	to[e->text_len[t]] = 0;
}

static void received(const struct ftb_event *e, FTB_receive_event_t *r)
{
	size_t n = e->payload_len < FTB_MAX_PAYLOAD_DATA ? e->payload_len : FTB_MAX_PAYLOAD_DATA;

	memset(r, 0, sizeof(*r));
	take_text(e, TEXT_SPACE, r->event_space);
	take_text(e, TEXT_NAME, r->event_name);
	take_text(e, TEXT_JOB, r->client_jobid);
	take_text(e, TEXT_CLIENT, r->client_name);
	take_text(e, TEXT_HOST, r->incoming_src.hostname);
	take_text(e, TEXT_START, r->incoming_src.pid_starttime);
	memcpy(r->severity, ftb_severity_names[e->severity],
	       strlen(ftb_severity_names[e->severity]));
	r->seqnum = (uint16_t)e->seq;
	r->incoming_src.pid = (pid_t)e->pid;
	r->event_type = e->type;
	if (n)
		memcpy(r->event_payload, e->payload, n);
}

/* The lock is open meanwhile: the callback may do anything, also end its own client. */
static void call(struct lib_client *c, const struct subscription *s, const struct ftb_event *e)
{
	int (*callback)(FTB_receive_event_t *, void *) = s->callback;
	lib_callback *callback_long = s->callback_long;
	void *arg = s->arg;
	FTB_receive_event_t r;

	received(e, &r);
	ftb_event_age_ms = e->age_ms;
	c->running = s->id;
	lib.calling = true;
	pthread_mutex_unlock(&lib.lock);
	if (callback_long)
		callback_long(&r, e->payload, e->payload_len, arg);
	else
		callback(&r, arg);
	pthread_mutex_lock(&lib.lock);
	c->running = 0;
	lib.calling = false;
	lib_flush_due(); /* what it has published */
	pthread_cond_broadcast(&lib.news);
}

void subs_event(struct lib_client *c, const struct ftb_event *e, const uint8_t *bytes, size_t len)
{
	struct subscription *s = first_match(c, e, false);

	if (s)
		call(c, s, e);
	else if (first_match(c, e, true))
		wait_for_poll(c, ftb_event_info(e), bytes, len);
}

/* ---- the calls ---- */

void subs_announce(struct lib_client *c, const struct subscription *s, bool again)
{
	uint8_t body[FILTER_WIRE_MAX];
	double age = again ? (clock_seconds() - s->since) * 1e3 + 1 : 0;

	if (again && age < 1) /* restarted on another machine, whose clock is younger */
		age = 1;
	lib_request(
	    c, PACKET_SUBSCRIBE, 0, body,
	    ftb_filter_write(&s->filter, s->id, age > 4e9 ? 4000000000u : (uint32_t)age, body));
}

static int subscribe(FTB_subscribe_handle_t *handle, FTB_client_handle_t client_handle,
		     const char *text, const struct subscription *wanted, bool history)
{
	unsigned style = polls(wanted) ? FTB_SUBSCRIPTION_POLLING : FTB_SUBSCRIPTION_NOTIFY;
	struct subscription *s;
	struct ftb_filter f;
	struct lib_client *c;
	int ret;

	if (!handle)
		return FTB_ERR_NULL_POINTER;
	ret = text ? ftb_filter_parse(text, &f) : FTB_ERR_SUBSCRIPTION_STR;
	pthread_mutex_lock(&lib.lock);
	c = lib_client(client_handle);
	if (!c)
		ret = FTB_ERR_INVALID_HANDLE;
	else if (!(c->style & style))
		ret = FTB_ERR_NOT_SUPPORTED;
	s = ret == FTB_SUCCESS ? malloc(sizeof(*s)) : NULL;
	if (ret == FTB_SUCCESS && !s)
		ret = FTB_ERR_GENERAL;
	if (s) {
		*s = *wanted;
		s->id = ++lib.next_id;
		s->filter = f;
		s->since = history ? 0 : clock_seconds();
		s->next = c->subs;
		c->subs = s;
		/* before it can be called: callbacks use the handle */
		*handle = (FTB_subscribe_handle_t)(uintptr_t)s->id;
		if (c->welcome) {
			subs_announce(c, s, history);
			lib_sync(c);
		}
	}
	pthread_mutex_unlock(&lib.lock);
	return ret;
}

int FTB_Subscribe(FTB_subscribe_handle_t *subscribe_handle, FTB_client_handle_t client_handle,
		  const char *subscription_str, int (*callback)(FTB_receive_event_t *, void *),
		  void *arg)
{
	struct subscription s = {.callback = callback, .arg = arg};

	return subscribe(subscribe_handle, client_handle, subscription_str, &s, false);
}

int HALE_FTB_Subscribe(FTB_subscribe_handle_t *subscribe_handle, FTB_client_handle_t client_handle,
		       const char *subscription_str, lib_callback *callback, void *arg)
{
	struct subscription s = {.callback_long = callback, .arg = arg};

	return callback ? subscribe(subscribe_handle, client_handle, subscription_str, &s, false)
			: FTB_ERR_NULL_POINTER;
}

int ftb_subscribe_history(FTB_subscribe_handle_t *handle, FTB_client_handle_t client,
			  const char *filter, lib_callback *callback, void *arg)
{
	struct subscription s = {.callback_long = callback, .arg = arg};

	return subscribe(handle, client, filter, &s, true);
}

int FTB_Unsubscribe(FTB_subscribe_handle_t *subscribe_handle)
{
	struct subscription *s;
	struct lib_client *c;
	uint32_t id;

	if (!subscribe_handle)
		return FTB_ERR_NULL_POINTER;
	pthread_mutex_lock(&lib.lock);
	s = sub_find(*subscribe_handle, &c);
	if (!s) {
		pthread_mutex_unlock(&lib.lock);
		return FTB_ERR_INVALID_HANDLE;
	}
	id = s->id;
	for (struct subscription **p = &c->subs; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
	if (polls(s)) {
		drop_unwanted(c, &c->polled.info);
		drop_unwanted(c, &c->polled.above);
	}
	free(s);
	if (c->welcome) {
		lib_request(c, PACKET_UNSUBSCRIBE, id, NULL, 0);
		lib_flush(c);
	}
	/* c may go while we wait */
	while (!lib_in_thread()) {
		bool runs = false;

		for (struct lib_client *o = lib.clients; o; o = o->next)
			runs |= o->running == id;
		if (!runs)
			break;
		pthread_cond_wait(&lib.news, &lib.lock);
	}
	*subscribe_handle = NULL;
	pthread_mutex_unlock(&lib.lock);
	return FTB_SUCCESS;
}

static int poll_event(FTB_subscribe_handle_t handle, FTB_receive_event_t *r, void *payload,
		      size_t capacity, size_t *length)
{
	struct lib_client *c;
	struct subscription *s = sub_find(handle, &c);
	struct lib_event *w, *above;
	struct ftb_event e;

	if (!s)
		return FTB_ERR_INVALID_HANDLE;
	if (!polls(s))
		return FTB_ERR_NOT_SUPPORTED;
	w = oldest(&c->polled.info, &s->filter);
	above = oldest(&c->polled.above, &s->filter);
	if (above && (!w || above->ticket < w->ticket))
		w = above;
	if (!w)
		return FTB_GOT_NO_EVENT;
	take_out(w == above ? &c->polled.above : &c->polled.info, w);
	c->polled.count--;
	ftb_event_parse(w->bytes, w->len, &e);
	received(&e, r);
	if (length)
		*length = e.payload_len;
	if (payload)
		memcpy(payload, e.payload, e.payload_len < capacity ? e.payload_len : capacity);
	free(w);
	return FTB_SUCCESS;
}

int HALE_FTB_Poll_event(FTB_subscribe_handle_t subscribe_handle, FTB_receive_event_t *receive_event,
			void *payload, size_t capacity, size_t *length)
{
	int ret;

	if (!receive_event)
		return FTB_ERR_NULL_POINTER;
	pthread_mutex_lock(&lib.lock);
	ret = poll_event(subscribe_handle, receive_event, payload, capacity, length);
	pthread_mutex_unlock(&lib.lock);
	return ret;
}

int FTB_Poll_event(FTB_subscribe_handle_t subscribe_handle, FTB_receive_event_t *receive_event)
{
	return HALE_FTB_Poll_event(subscribe_handle, receive_event, NULL, 0, NULL);
}
