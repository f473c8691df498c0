/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing, what is kept for a broker to come, and the handles of events. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "ftb/lib.h"

/* ---- handles ---- */

/* Everything that FTB_receive_event_t tells of a client; its start time makes it unique. */
uint64_t token_base(const char *space, const char *client, const char *host, const char *start,
		    pid_t pid)
{
	uint64_t h = (uint64_t)pid;
	const char *text[] = {space, client, host, start};

	for (size_t i = 0; i < ARRAY_LEN(text); i++)
		h = XXH3_64bits_withSeed(text[i], strlen(text[i]), h);
	return h;
}

uint64_t token_of(uint64_t base, const char *name, uint16_t seqnum)
{
	uint64_t h = XXH3_64bits_withSeed(name, strlen(name), base + seqnum);

	return h ? h : 1;
}

int FTB_Get_event_handle(const FTB_receive_event_t e, FTB_event_handle_t *event_handle)
{
	uint64_t base;

	if (!event_handle)
		return FTB_ERR_NULL_POINTER;
	if (!e.event_space[0] || !e.event_name[0]) /* no event that anybody received */
		return FTB_FAILURE;
	base = token_base(e.event_space, e.client_name, e.incoming_src.hostname,
			  e.incoming_src.pid_starttime, e.incoming_src.pid);
	*event_handle = (FTB_event_handle_t)(uintptr_t)token_of(base, e.event_name, e.seqnum);
	return FTB_SUCCESS;
}

int FTB_Compare_event_handles(const FTB_event_handle_t event_handle1,
			      const FTB_event_handle_t event_handle2)
{
	if (!event_handle1 || !event_handle2)
		return FTB_ERR_INVALID_HANDLE;
	return event_handle1 == event_handle2 ? FTB_SUCCESS : FTB_FAILURE;
}

/* ---- publishing ---- */

static const struct declared *find_declared(struct lib_client *c, const char *name)
{
	if (c->declared_last < c->declared_count &&
	    strcasecmp(c->declared[c->declared_last].name, name) == 0)
		return &c->declared[c->declared_last];
	for (size_t i = 0; i < c->declared_count; i++)
		if (strcasecmp(c->declared[i].name, name) == 0) {
			c->declared_last = i;
			return &c->declared[i];
		}
	return NULL;
}

static void set_text(struct ftb_event *e, enum ftb_text t, const char *text)
{
	e->text[t] = text;
	e->text_len[t] = (uint8_t)strlen(text);
}

static bool behind(const struct lib_client *c)
{
	return c->fd >= 0 && c->out.blocked && c->out.bytes >= BACKLOG;
}

/* Holds the caller up while the broker is behind, for a while; NULL if somebody has ended the
 * client meanwhile. */
static struct lib_client *wait_for_room(FTB_client_handle_t handle, struct lib_client *c)
{
	for (int ms = 0; ms < PATIENCE_MS && c && behind(c); ms += 5) {
		struct pollfd p = {.fd = c->fd, .events = POLLOUT};

		lib_flush(c);
		if (!behind(c))
			break;
		pthread_mutex_unlock(&lib.lock);
		poll(&p, 1, 5);
		pthread_mutex_lock(&lib.lock);
		c = lib_client(handle);
	}
	return c;
}

static enum out_result send_later(void *to, const uint8_t *bytes, size_t len)
{
	return OUT_BLOCKED;
}

/* At once if the last packet is some time ago, else with others: sent by whoever publishes next, or
 * by the thread. */
static void send_event(struct lib_client *c, const struct ftb_event *e, const uint8_t *bytes,
		       size_t len)
{
	uint64_t now = clock_ns();

	outq_event(&c->out, e, bytes, len, send_later, NULL);
	if (c->out.batch_len >= PACKET_BATCH || now - c->sent_ns >= COALESCE_NS ||
	    (lib.calling && !lib_in_thread())) {
		lib_flush(c);
	} else if (!c->flush_ns) {
		c->flush_ns = c->sent_ns + COALESCE_NS;
		if (c->flush_ns < lib.sleeps_until)
			lib_wake();
	}
}

static int publish(FTB_client_handle_t handle, struct lib_client *c, const char *name, uint8_t type,
		   const void *payload, size_t length, FTB_event_handle_t *out)
{
	uint8_t bytes[EVENT_MAX];
	const struct declared *d = find_declared(c, name);
	struct ftb_event e = {.type = type,
			      .publisher = c->publisher,
			      .pid = (uint32_t)getpid(),
			      .payload = payload,
			      .payload_len = (uint16_t)length};
	size_t len;

	if (!d)
		return FTB_ERR_INVALID_EVENT_NAME;
	e.severity = (uint8_t)d->severity;
	if (behind(c)) {
		c = wait_for_room(handle, c);
		if (!c)
			return FTB_ERR_INVALID_HANDLE;
		if (behind(c) && (ftb_event_info(&e) || c->out.bytes >= OUTQ_SOFT))
			return FTB_ERR_NETWORK_GENERAL;
		d = find_declared(
		    c, name); /* others may have declared more: the table may have moved */
		if (!d)
			return FTB_ERR_INVALID_EVENT_NAME;
	}
	e.seq = ++c->seq;
	set_text(&e, TEXT_SPACE, c->info.event_space);
	set_text(&e, TEXT_NAME, d->name);
	set_text(&e, TEXT_JOB, c->info.client_jobid);
	set_text(&e, TEXT_CLIENT, c->info.client_name);
	set_text(&e, TEXT_HOST, c->host);
	set_text(&e, TEXT_START, c->start);
	len = ftb_event_size(&e);
	ftb_event_write(&e, bytes);
	if (out)
		*out = (FTB_event_handle_t)(uintptr_t)token_of(c->token_base, d->name,
							       (uint16_t)e.seq);
	if (!c->welcome || !ftb_event_info(&e))
		kept_add(&c->kept, &e, bytes, len);
	if (c->welcome)
		send_event(c, &e, bytes, len);
	return FTB_SUCCESS;
}

int HALE_FTB_Publish(FTB_client_handle_t client_handle, const char *event_name, uint8_t event_type,
		     const void *payload, size_t length, FTB_event_handle_t *event_handle)
{
	struct lib_client *c;
	int ret;

	if (!event_name || (length && !payload))
		return FTB_ERR_NULL_POINTER;
	if (length > HALE_FTB_MAX_PAYLOAD)
		return FTB_ERR_INVALID_PARAMETER;
	if (event_type != HALE_FTB_EVENT_NORMAL && event_type != HALE_FTB_EVENT_RESPONSE)
		return FTB_ERR_INVALID_EVENT_TYPE;
	pthread_mutex_lock(&lib.lock);
	c = lib_client(client_handle);
	ret = c ? publish(client_handle, c, event_name, event_type, payload, length, event_handle)
		: FTB_ERR_INVALID_HANDLE;
	pthread_mutex_unlock(&lib.lock);
	return ret;
}

int FTB_Publish(FTB_client_handle_t client_handle, const char *event_name,
		const FTB_event_properties_t *p, FTB_event_handle_t *event_handle)
{
	size_t length = p ? FTB_MAX_PAYLOAD_DATA : 0;

	if (!event_handle)
		return FTB_ERR_NULL_POINTER;
	while (length && p->event_payload[length - 1] == 0)
		length--;
	return HALE_FTB_Publish(client_handle, event_name,
				p ? p->event_type : HALE_FTB_EVENT_NORMAL,
				p ? p->event_payload : NULL, length, event_handle);
}
