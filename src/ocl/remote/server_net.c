/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of a program on another node. It exchanges frames with the relay beside the program,
 * where other servers use the ring and read the program's memory. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"
#include "ocl/remote/net.h"
#include "ocl/remote/server.h"

enum {
	OUT_MAX = 32 << 10, /* bytes of frames that wait for one that tells the program something */
	STORES_KNOWN = 64,
};
_Static_assert(sizeof(struct net_frame) + sizeof(struct net_reply) + WIRE_INLINE <= OUT_MAX,
	       "frames of two parts wait in memory");

static struct {
	bool used;
	struct net_stream requests, answers;
	pthread_mutex_t send_lock; /* of what follows, to `stored` */
	char *out;
	size_t filled;
	uint64_t stored;
	struct {
		uint64_t address, size;
	} store[STORES_KNOWN];	    /* the last ones */
	pthread_mutex_t fetch_lock; /* one question at a time */
	/* used by the thread that takes requests, and by no other */
	pthread_t taker;
	char *ahead;
	struct net_frame ahead_is; /* kind 0: there is none */
} net = {.send_lock = PTHREAD_MUTEX_INITIALIZER, .fetch_lock = PTHREAD_MUTEX_INITIALIZER};

bool net_is_used(void)
{
	return net.used;
}

/* The relay has gone, and the program's calls have failed: nobody is left to work for. Not by exit,
 * since the runtime's threads may be in the middle of something. */
static void leave(void)
{
	_exit(0);
}

static void leave_wrong(const char *what)
{
	log_warn("opencl: the relay has sent what is no %s; the OpenCL server ends", what);
	leave();
}

/* ---- sending ---- */

static void flush_locked(void)
{
	if (net.filled > 0 && !net_send(net.requests.fd, net.out, net.filled, NULL, 0))
		leave();
	net.filled = 0;
}

/* now: the frame tells the program something, and goes at once with those that wait. */
static void send_locked(const struct net_frame *f, const void *first, size_t first_size,
			const void *data, size_t size, bool now)
{
	size_t all = sizeof(*f) + first_size + size;

	if (net.filled + all > OUT_MAX)
		flush_locked();
	if (all > OUT_MAX) { /* such a frame has no first part */
		if (!net_send(net.requests.fd, f, sizeof(*f), data, size))
			leave();
		return;
	}
	memcpy(net.out + net.filled, f, sizeof(*f));
	if (first_size)
		memcpy(net.out + net.filled + sizeof(*f), first, first_size);
	if (size)
		memcpy(net.out + net.filled + sizeof(*f) + first_size, data, size);
	net.filled += all;
	if (now)
		flush_locked();
}

void net_reply(uint16_t slot)
{
	struct wire_reply *r = &wire->reply[slot];
	struct net_reply n = {.bytes = r->bytes};
	size_t size = r->bytes <= WIRE_INLINE ? r->bytes : 0;
	struct net_frame f = {
	    .kind = NET_REPLY, .slot = slot, .status = r->status, .size = sizeof(n) + size};

	memcpy(n.value, r->value, sizeof(n.value));
	pthread_mutex_lock(&net.send_lock);
	send_locked(&f, &n, sizeof(n), r->data, size, true);
	pthread_mutex_unlock(&net.send_lock);
}

void net_call_back(uint64_t cookie, int32_t status)
{
	struct net_frame f = {.kind = NET_CALLBACK, .address = cookie, .status = status};

	pthread_mutex_lock(&net.send_lock);
	send_locked(&f, NULL, 0, NULL, 0, true);
	pthread_mutex_unlock(&net.send_lock);
}

void net_say_ready(bool good)
{
	struct net_frame f = {.kind = NET_READY,
			      .status = good ? 1 : 2,
			      .address = wire->devices,
			      .size = good ? 0 : strlen(wire->trouble)};

	pthread_mutex_lock(&net.send_lock);
	send_locked(&f, NULL, 0, wire->trouble, f.size, true);
	pthread_mutex_unlock(&net.send_lock);
}

/* Always true. Where the program has no such memory the relay says so, and the next reply fails. */
bool net_store(uint64_t address, const void *from, size_t size)
{
	struct net_frame f = {.kind = NET_STORE, .address = address, .size = size};

	if (size == 0)
		return true;
	pthread_mutex_lock(&net.send_lock);
	net.store[net.stored % STORES_KNOWN].address = address;
	net.store[net.stored++ % STORES_KNOWN].size = size;
	send_locked(&f, NULL, 0, from, size, false);
	pthread_mutex_unlock(&net.send_lock);
	return true;
}

/* ---- the program's memory ---- */

/* Whether the data that went ahead are still those of the program's memory: the relay had carried
 * out each NET_STORE into it when it read them. */
static bool ahead_is_new(void)
{
	const struct net_frame *a = &net.ahead_is;
	bool is_new;

	pthread_mutex_lock(&net.send_lock);
	is_new = net.stored - a->seen <= STORES_KNOWN;
	for (uint64_t i = a->seen; is_new && i < net.stored; i++) {
		uint64_t at = net.store[i % STORES_KNOWN].address,
			 size = net.store[i % STORES_KNOWN].size;
		is_new = at >= a->address + a->size || a->address >= at + size;
	}
	pthread_mutex_unlock(&net.send_lock);
	return is_new;
}

static bool take_ahead(char *to, uint64_t address, size_t size, size_t rows, size_t pitch)
{
	const struct net_frame *a = &net.ahead_is;
	uint64_t all;

	if (!a->kind || !pthread_equal(pthread_self(), net.taker) || address < a->address ||
	    __builtin_mul_overflow(rows - 1, pitch, &all) ||
	    __builtin_add_overflow(all, size, &all) || all > a->size ||
	    address - a->address > a->size - all || !ahead_is_new())
		return false;
	for (size_t y = 0; y < rows; y++)
		memcpy(to + y * size, net.ahead + (address - a->address) + y * pitch, size);
	return true;
}

static bool ask(char *to, uint64_t address, size_t size, size_t rows, size_t pitch)
{
	struct net_frame f = {.kind = NET_FETCH,
			      .address = address,
			      .size = size * rows,
			      .rows = (uint32_t)rows,
			      .pitch = pitch},
			 answer;

	pthread_mutex_lock(&net.fetch_lock);
	pthread_mutex_lock(&net.send_lock);
	send_locked(&f, NULL, 0, NULL, 0, true);
	pthread_mutex_unlock(&net.send_lock);
	if (!net_stream_take(&net.answers, &answer, sizeof(answer), atomic_load(&wire->patience)))
		leave();
	if (answer.kind != NET_ANSWER || answer.size != (answer.status ? 0 : f.size))
		leave_wrong("answer");
	if (!net_stream_take(&net.answers, to, answer.size, 0))
		leave();
	pthread_mutex_unlock(&net.fetch_lock);
	errno = answer.status;
	return answer.status == 0;
}

/* One row that may be longer than an answer. */
static bool ask_long(char *to, uint64_t address, size_t size)
{
	while (size > 0) {
		size_t n = size < NET_ANSWER_MAX ? size : NET_ANSWER_MAX;

		if (!ask(to, address, n, 1, n))
			return false;
		to += n;
		address += n;
		size -= n;
	}
	return true;
}

bool net_fetch(void *to, uint64_t address, size_t size, size_t rows, size_t pitch)
{
	char *at = to;

	if (size == 0 || rows == 0 || take_ahead(to, address, size, rows, pitch))
		return true;
	for (size_t y = 0, n; y < rows; y += n, at += n * size) {
		bool good;

		n = size > NET_ANSWER_MAX ? 1 : NET_ANSWER_MAX / size;
		n = n < rows - y ? n : rows - y;
		good = n == 1 ? ask_long(at, address + y * pitch, size)
			      : ask(at, address + y * pitch, size, n, pitch);
		if (!good)
			return false;
	}
	return true;
}

/* ---- requests ---- */

/* The relay or the daemon ends: so does this process, also in the middle of a kernel. */
static void *watch(void *arg)
{
	struct pollfd p[2] = {{.fd = net.answers.fd, .events = POLLRDHUP},
			      {.fd = NET_FD_DAEMON, .events = POLLIN}};

	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	leave();
	return arg;
}

bool net_open(void)
{
	pthread_t t;

	/* What the runtime starts, a compiler, must not keep the connections open. */
	for (int fd = NET_FD_REQUESTS; fd <= NET_FD_DAEMON; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
			log_warn("hale-opencl-server --network is started by hale device serve");
			return false;
		}
	wire =
	    mmap(NULL, sizeof(*wire), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	net.out = malloc(OUT_MAX);
	net.ahead = malloc(NET_AHEAD_MAX);
	net.taker = pthread_self();
	net.used = true;
	net_may_stand_still(NET_FD_REQUESTS);
	if (wire != MAP_FAILED && net.out && net.ahead &&
	    net_stream_open(&net.requests, NET_FD_REQUESTS) &&
	    net_stream_open(&net.answers, NET_FD_DATA) &&
	    pthread_create(&t, NULL, watch, NULL) == 0)
		return pthread_detach(t) == 0;
	log_warn("opencl: no memory for an OpenCL server");
	return false;
}

static void take(void *to, size_t size)
{
	if (!net_stream_take(&net.requests, to, size, atomic_load(&wire->patience)))
		leave();
}

/* With what goes ahead of it. NULL: what has come is no request. */
static const struct wire_request *take_request(void)
{
	static _Alignas(8) char copy[REQUEST_MAX];
	struct wire_request *r = (struct wire_request *)copy;
	struct net_frame f;

	net.ahead_is.kind = 0;
	take(&f, sizeof(f));
	if (f.kind == NET_AHEAD && f.size <= NET_AHEAD_MAX) {
		take(net.ahead, f.size);
		net.ahead_is = f;
		take(&f, sizeof(f));
	}
	if (f.kind != NET_REQUEST || f.size < sizeof(*r) || f.size > REQUEST_MAX || f.size % 8)
		return NULL;
	take(copy, f.size);
	if (r->size != f.size)
		return NULL;
	atomic_store(&wire->several, f.slot);
	return r;
}

void net_run(void)
{
	const struct wire_request *r;

	while ((r = take_request()))
		carry_out(r);
	leave_wrong("request");
}
