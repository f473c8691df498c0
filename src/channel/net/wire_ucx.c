// SPDX-License-Identifier: BSD-3-Clause
/* struct net_wire over UCX (UCP): active messages for datagrams, tag matching for bulk. Built as
 * libhale_net.so; its C library is not the program's (wire.h).
 *
 * UCX has a thread of its own for connections that come in. A checkpoint stops all threads but
 * one, and a process image holds no thread of ours, so this one must not be: the function that
 * UCX makes its event context with is defined here too, comes first in this namespace, and asks
 * for the mode in which the events are polled. wire_progress does that.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <ucs/async/async_fwd.h>
#include <unistd.h>
#include "channel/net/wire.h"

#define SHOWN __attribute__((visibility("default")))

enum { AM_ID = 1, EVENTS_MAX = 16, ROUNDS_PER_LOOK = 64, FORCED_CLOSE_NS = 1000000000 };

struct wire_ucx_peer {
	ucp_ep_h ep;
	void *closing; /* request of the close under way */
};

/* What a pending operation's request is for. */
struct pending {
	struct pending *next, *prev;
	void *cookie, *request;
	bool datagram, receiving;
	ucp_dt_iov_t iov[]; /* of a give */
};

static struct {
	struct wire_calls calls;
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_address_t *address;
	size_t address_bytes;
	struct wire_ucx_peer *peer;
	uint32_t npeers;
	struct pending pending; /* list head */
	ucs_async_context_t *events;
	int watched[EVENTS_MAX]; /* descriptors of the event context: listening sockets, devices */
	unsigned nwatched;
	unsigned rounds;
	bool look; /* in this round for sure */
	int efd;
} w;

/* ---- UCX's event context, polled ---- */

SHOWN ucs_status_t ucs_async_context_init(ucs_async_context_t *events, ucs_async_mode_t mode,
					  unsigned flags);

SHOWN ucs_status_t ucs_async_context_init(ucs_async_context_t *events, ucs_async_mode_t mode,
					  unsigned flags)
{
	ucs_status_t (*real)(ucs_async_context_t *, ucs_async_mode_t, unsigned);
	real = (__typeof__(real))dlsym(RTLD_NEXT, "ucs_async_context_init");
	w.events = events;
	return real(events, UCS_ASYNC_MODE_POLL, flags);
}

SHOWN ucs_status_t ucs_async_set_event_handler(ucs_async_mode_t mode, int fd,
					       ucs_event_set_types_t types, ucs_async_event_cb_t cb,
					       void *arg, ucs_async_context_t *events)
{
	ucs_status_t (*real)(ucs_async_mode_t, int, ucs_event_set_types_t, ucs_async_event_cb_t,
			     void *, ucs_async_context_t *);
	real = (__typeof__(real))dlsym(RTLD_NEXT, "ucs_async_set_event_handler");
	/* also those that are not to be looked at yet: UCX begins when nothing else uses them */
	if (events && events == w.events && w.nwatched < EVENTS_MAX)
		w.watched[w.nwatched++] = fd;
	return real(UCS_ASYNC_MODE_POLL, fd, types, cb, arg, events);
}

/* In that mode UCX looks at every descriptor in each round of progress, by a system call.
 * Connections come rarely: every so many rounds is enough, and before sleeping. */
SHOWN void ucs_async_poll(ucs_async_context_t *events)
{
	static void (*real)(ucs_async_context_t *);
	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "ucs_async_poll");
	if (w.look || ++w.rounds % ROUNDS_PER_LOOK == 0)
		real(events);
}

/* ---- a defect of UCX 1.13.1 (Debian 12) ---- */

/* A connection that is closed or breaks while its first messages (wireup) are still queued ends the
 * process by an assertion, which has forgotten two kinds of such messages; what comes behind the
 * assertion is right for all of them: they are freed. For us closing at any time is daily
 * business, so such a message is said to be of a kind that the assertion knows. */
enum { FF_VERSION = 1 << 16 | 13 << 8 | 1, FF_PROGRESS = 0xe0, FF_KIND = 0xa8, FF_KIND_ACK = 3 };

SHOWN void ucp_request_send_state_ff(void *request, ucs_status_t status);

SHOWN void ucp_request_send_state_ff(void *request, ucs_status_t status)
{
	static void (*real)(void *, ucs_status_t);
	static const void *wireup;
	if (!real) {
		unsigned major, minor, release;
		ucp_get_version(&major, &minor, &release);
		if ((major << 16 | minor << 8 | release) == FF_VERSION)
			wireup = dlsym(RTLD_NEXT, "ucp_wireup_msg_progress");
		real = (__typeof__(real))dlsym(RTLD_NEXT, "ucp_request_send_state_ff");
	}
	const void *progress;
	unsigned char *kind = (unsigned char *)request + FF_KIND;
	memcpy(&progress, (char *)request + FF_PROGRESS, sizeof(progress));
	if (wireup && progress == wireup && *kind < FF_KIND_ACK)
		*kind = FF_KIND_ACK;
	real(request, status);
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int wire_progress(void)
{
	return (int)ucp_worker_progress(w.worker);
}

static bool watched_readable(void)
{
	struct pollfd p[EVENTS_MAX];
	for (unsigned i = 0; i < w.nwatched; i++)
		p[i] = (struct pollfd){.fd = w.watched[i], .events = POLLIN};
	return w.nwatched && poll(p, w.nwatched, 0) > 0;
}

/* ---- what is pending ---- */

static struct pending *pending_make(void *cookie, size_t niov)
{
	struct pending *p = calloc(1, sizeof(*p) + niov * sizeof(p->iov[0]));
	if (!p)
		return NULL;
	p->cookie = cookie;
	p->next = &w.pending;
	p->prev = w.pending.prev;
	p->prev->next = p->next->prev = p;
	return p;
}

static void pending_drop(struct pending *p)
{
	p->prev->next = p->next;
	p->next->prev = p->prev;
	free(p);
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
	struct pending *p = arg;
	void *cookie = p->cookie;
	ucp_request_free(request);
	pending_drop(p);
	w.calls.sent(cookie);
}

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
			void *arg)
{
	struct pending *p = arg;
	void *cookie = p->cookie;
	ucp_request_free(request);
	pending_drop(p);
	w.calls.received(cookie, status == UCS_OK);
}

/* The outcome of a call that may have ended at once. */
static enum wire_sent outcome(struct pending *p, ucs_status_ptr_t request)
{
	if (UCS_PTR_IS_PTR(request)) {
		p->request = request;
		return WIRE_PENDING;
	}
	pending_drop(p);
	return UCS_PTR_IS_ERR(request) ? WIRE_FAILED : WIRE_SENT;
}

/* ---- open and close ---- */

/* This module has a C library of its own (wire.h). dlmopen gave it the program's environment, an
 * array that the program may change or free. So the module keeps a copy for UCX. */
__attribute__((constructor)) static void environment_copy(void)
{
	size_t n = 0;
	while (environ[n])
		n++;
	char **copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++)
		copy[i] = strdup(environ[i]);
	if (copy)
		environ = copy;
}

static ucs_status_t on_datagram(void *arg, const void *header, size_t header_bytes, void *data,
				size_t bytes, const ucp_am_recv_param_t *param)
{
	w.calls.came(WIRE_SOMEBODY, header, header_bytes, data, bytes, NULL);
	return UCS_OK;
}

static bool say(char *why, const char *what, ucs_status_t status)
{
	snprintf(why, WIRE_WHY, "%s: %s", what, ucs_status_string(status));
	return false;
}

/* Shared memory is the shm channel's, and between nodes there is none; what a process finds out
 * about its host for it would be wrong on the next one. */
static bool context_open(char *why)
{
	ucp_params_t params = {.field_mask =
				   UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
			       .features = UCP_FEATURE_AM | UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
			       .estimated_num_eps = w.npeers};
	ucp_config_t *config;
	ucs_status_t status = ucp_config_read(NULL, NULL, &config);
	if (status != UCS_OK)
		return say(why, "UCX can't read its settings (UCX_…)", status);
	if (!getenv("UCX_TLS"))
		ucp_config_modify(config, "TLS", "^sm,self");
	status = ucp_init(&params, config, &w.context);
	ucp_config_release(config);
	return status == UCS_OK || say(why, "UCX finds no network", status);
}

static bool worker_open(char *why)
{
	ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				      .thread_mode = UCS_THREAD_MODE_SERIALIZED};
	ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
							UCP_AM_HANDLER_PARAM_FIELD_CB,
					  .id = AM_ID,
					  .cb = on_datagram};
	ucs_status_t status = ucp_worker_create(w.context, &params, &w.worker);
	if (status != UCS_OK)
		return say(why, "UCX can't open a network device", status);
	status = ucp_worker_set_am_recv_handler(w.worker, &handler);
	if (status == UCS_OK)
		status = ucp_worker_get_efd(w.worker, &w.efd);
	if (status == UCS_OK)
		status = ucp_worker_get_address(w.worker, &w.address, &w.address_bytes);
	if (status == UCS_OK)
		return true;
	ucp_worker_destroy(w.worker);
	return say(why, "UCX can't use the network device", status);
}

static bool wire_open(const struct wire_self *self, const struct wire_calls *calls, char *why)
{
	if (self->encrypt) {
		snprintf(why, WIRE_WHY,
			 "UCX doesn't encrypt; say HALE_NET_WIRE=tcp, or leave out --net-security "
			 "encrypt");
		return false;
	}
	uint32_t npeers = self->npeers;
	memset(&w, 0, sizeof(w));
	w.calls = *calls;
	w.npeers = npeers;
	w.pending.next = w.pending.prev = &w.pending;
	w.peer = calloc(npeers, sizeof(*w.peer));
	if (!w.peer) {
		snprintf(why, WIRE_WHY, "no memory for %u peers", npeers);
		return false;
	}
	if (context_open(why)) {
		if (worker_open(why))
			return true;
		ucp_cleanup(w.context);
	}
	free(w.peer);
	w.peer = NULL;
	return false;
}

static const void *wire_address(size_t *bytes)
{
	*bytes = w.address_bytes;
	return w.address;
}

static unsigned wire_descriptors(int fd[WIRE_FDS])
{
	unsigned n = 0;
	fd[n++] = w.efd;
	for (unsigned i = 0; i < w.nwatched && n < WIRE_FDS; i++)
		fd[n++] = w.watched[i];
	return n;
}

static bool wire_arm(void)
{
	if (watched_readable()) {
		w.look = true;
		ucp_worker_progress(w.worker);
		w.look = false;
		return false;
	}
	return ucp_worker_arm(w.worker) == UCS_OK;
}

/* ---- connections ---- */

static void on_broken(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	w.calls.broke((uint32_t)(uintptr_t)arg, ucs_status_string(status));
}

static bool wire_connect(uint32_t peer, const void *address, size_t bytes, char *why)
{
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
						UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
						UCP_EP_PARAM_FIELD_ERR_HANDLER,
				  .address = address,
				  .err_mode = UCP_ERR_HANDLING_MODE_PEER,
				  .err_handler = {on_broken, (void *)(uintptr_t)peer}};
	ucs_status_t status = ucp_ep_create(w.worker, &params, &w.peer[peer].ep);
	if (status == UCS_OK) {
		w.calls.up(peer); /* UCX keeps what is sent until it has connected */
		return true;
	}
	w.peer[peer].ep = NULL;
	return say(why, "UCX can't connect", status);
}

static void ep_close(struct wire_ucx_peer *p, unsigned flags)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};
	ucs_status_ptr_t request = ucp_ep_close_nbx(p->ep, &param);
	p->ep = NULL;
	p->closing = UCS_PTR_IS_PTR(request) ? request : NULL;
}

static void wire_disconnect(uint32_t peer)
{
	if (w.peer[peer].ep)
		ep_close(&w.peer[peer], UCP_EP_CLOSE_FLAG_FORCE);
}

/* Has a close under way ended? */
static bool closed(struct wire_ucx_peer *p)
{
	if (p->closing && ucp_request_check_status(p->closing) != UCS_INPROGRESS) {
		ucp_request_free(p->closing);
		p->closing = NULL;
	}
	return !p->closing;
}

static enum wire_state wire_state(uint32_t peer)
{
	struct wire_ucx_peer *p = &w.peer[peer];
	if (p->ep)
		return WIRE_UP;
	return closed(p) ? WIRE_NONE : WIRE_ENDING;
}

static bool datagrams_gone(void)
{
	for (struct pending *p = w.pending.next; p != &w.pending; p = p->next)
		if (p->datagram)
			return false;
	return true;
}

static bool all_closed(void)
{
	bool all = true;
	for (uint32_t i = 0; i < w.npeers; i++)
		all &= closed(&w.peer[i]);
	return all;
}

static void progress_until(bool (*done)(void), uint64_t max_ns)
{
	uint64_t deadline = now_ns() + max_ns;
	while (!done() && now_ns() < deadline)
		ucp_worker_progress(w.worker);
}

static void pending_end_all(void)
{
	while (w.pending.next != &w.pending) {
		struct pending *p = w.pending.next;
		void *cookie = p->cookie;
		bool receiving = p->receiving;
		pending_drop(p);
		if (receiving)
			w.calls.received(cookie, false);
		else
			w.calls.sent(cookie);
	}
}

static void wire_close(uint64_t max_ns)
{
	progress_until(datagrams_gone, max_ns);
	for (struct pending *p = w.pending.next, *next; p != &w.pending; p = next) {
		next = p->next;
		if (p->receiving)
			ucp_request_cancel(w.worker, p->request);
	}
	/* by force, which ends what is pending: an orderly end would wait for peers that are
	 * closing, too */
	for (uint32_t i = 0; i < w.npeers; i++)
		if (w.peer[i].ep)
			ep_close(&w.peer[i], UCP_EP_CLOSE_FLAG_FORCE);
	progress_until(all_closed, FORCED_CLOSE_NS);
	ucp_worker_release_address(w.worker, w.address);
	ucp_worker_destroy(w.worker);
	ucp_cleanup(w.context);
	pending_end_all();
	free(w.peer);
	w.peer = NULL;
}

/* ---- data ---- */

static enum wire_sent wire_send(uint32_t peer, const void *header, size_t header_bytes,
				const void *payload, size_t bytes, const struct iovec *ahead,
				void *cookie)
{
	struct pending *p = pending_make(cookie, 0);
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS |
						     UCP_OP_ATTR_FIELD_CALLBACK |
						     UCP_OP_ATTR_FIELD_USER_DATA,
				     .flags = UCP_AM_SEND_FLAG_EAGER,
				     .cb.send = on_sent,
				     .user_data = p};
	if (!p)
		return WIRE_FAILED;
	p->datagram = true;
	return outcome(p, ucp_am_send_nbx(w.peer[peer].ep, AM_ID, header, header_bytes, payload,
					  bytes, &param));
}

static enum wire_sent wire_give(uint32_t peer, uint64_t token, const struct iovec *iov, size_t n,
				void *cookie)
{
	struct pending *p = pending_make(cookie, n);
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						     UCP_OP_ATTR_FIELD_USER_DATA |
						     UCP_OP_ATTR_FIELD_DATATYPE,
				     .cb.send = on_sent,
				     .datatype = n == 1 ? ucp_dt_make_contig(1) : UCP_DATATYPE_IOV,
				     .user_data = p};
	if (!p)
		return WIRE_FAILED;
	for (size_t i = 0; i < n; i++)
		p->iov[i] = (ucp_dt_iov_t){iov[i].iov_base, iov[i].iov_len};
	const void *buffer = n == 1 ? iov[0].iov_base : p->iov;
	size_t count = n == 1 ? iov[0].iov_len : n;
	return outcome(p, ucp_tag_send_nbx(w.peer[peer].ep, buffer, count, token, &param));
}

static bool wire_receive(uint32_t peer, uint64_t token, void *to, size_t bytes, void *cookie)
{
	struct pending *p = pending_make(cookie, 0);
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						     UCP_OP_ATTR_FIELD_USER_DATA |
						     UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
				     .cb.recv = on_received,
				     .user_data = p};
	if (!p)
		return false;
	p->receiving = true;
	return outcome(p, ucp_tag_recv_nbx(w.worker, to, bytes, token, UINT64_MAX, &param)) ==
	       WIRE_PENDING;
}

static void wire_receive_end(void *cookie)
{
	for (struct pending *p = w.pending.next; p != &w.pending; p = p->next)
		if (p->receiving && p->cookie == cookie) {
			ucp_request_cancel(w.worker, p->request);
			return;
		}
}

SHOWN const struct net_wire hale_net_wire = {
    .version = WIRE_VERSION,
    .name = "ucx",
    .open = wire_open,
    .address = wire_address,
    .descriptors = wire_descriptors,
    .arm = wire_arm,
    .progress = wire_progress,
    .connect = wire_connect,
    .disconnect = wire_disconnect,
    .state = wire_state,
    .send = wire_send,
    .give = wire_give,
    .receive = wire_receive,
    .receive_end = wire_receive_end,
    .close = wire_close,
};
