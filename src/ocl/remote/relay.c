/* SPDX-License-Identifier: BSD-3-Clause */
/* hale-opencl-relay: stands beside a program for its OpenCL server on another node. The main thread
 * sends the ring's requests there, a second one carries out what the server sends, a third one sees
 * the connection for data end. The process ends with the program, and when the node is lost.
 * docs/opencl.md, 'Devices of another node'. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/base.h"
#include "hale/rio.h"
#include "ocl/remote/net.h"
#include "ocl/remote/ring.h"
#include "rio/rio.h"

enum {
	OUT_MAX = 64 << 10, /* bytes of requests that go at once */
	BOUNCE = 1 << 20,
	/* for all nodes: the program waits a minute, and a runtime may compile before it begins */
	READY_S = 50,
};
_Static_assert((int)BOUNCE >= (int)NET_ANSWER_MAX, "an answer is made there");

static struct {
	char node[RIO_NODE_MAX];
	int data;
	struct net_stream in;
	char *out;
	size_t filled;
	double until;		 /* by clock_seconds: then a server must be ready */
	_Atomic uint64_t stored; /* NET_STORE frames that have been carried out */
	char *bounce;		 /* BOUNCE bytes, of the thread that takes frames */
	char *ahead;		 /* NET_AHEAD_MAX bytes, of the main thread */
	int32_t wrong;		 /* what the next reply says, since a store has failed */
} relay;

static void lost(void)
{
	log_warn("opencl: node '%.100s', whose devices this program uses, is lost: %s", relay.node,
		 strerror(errno));
	_exit(1);
}

/* ---- requests ---- */

static void flush(void)
{
	if (relay.filled > 0 && !net_send(relay.in.fd, relay.out, relay.filled, NULL, 0))
		lost();
	relay.filled = 0;
}

static void add(const struct net_frame *f, const void *data)
{
	if (relay.filled + sizeof(*f) + f->size > OUT_MAX)
		flush();
	if (sizeof(*f) + f->size > OUT_MAX) {
		if (!net_send(relay.in.fd, f, sizeof(*f), data, f->size))
			lost();
		return;
	}
	memcpy(relay.out + relay.filled, f, sizeof(*f));
	memcpy(relay.out + relay.filled + sizeof(*f), data, f->size);
	relay.filled += sizeof(*f) + f->size;
}

/* How many bytes of the program's memory a write reads, with the gaps between its rows. 0: r is no
 * write, or it is too long to go ahead. */
static uint64_t written(const struct wire_request *r)
{
	const uint64_t *w = r->word, *region = w + BOX_REGION;
	uint64_t bytes, rows, planes;

	if ((r->op != OP_BOX && r->op != OP_BOX_IMAGE) ||
	    r->size < sizeof(*r) + (BOX_ELEMENT + 1) * 8 || !(w[BOX_FLAGS] & BOX_WRITE) ||
	    !w[BOX_ADDRESS])
		return 0;
	if (!region[0] || !region[1] || !region[2] ||
	    __builtin_mul_overflow(region[0], r->op == OP_BOX_IMAGE ? w[BOX_ELEMENT] : 1, &bytes) ||
	    __builtin_mul_overflow(region[1] - 1, w[BOX_ROW_PITCH], &rows) ||
	    __builtin_mul_overflow(region[2] - 1, w[BOX_PLANE_PITCH], &planes) ||
	    __builtin_add_overflow(bytes, rows, &bytes) ||
	    __builtin_add_overflow(bytes, planes, &bytes))
		return 0;
	return bytes <= NET_AHEAD_MAX ? bytes : 0;
}

static void forward(const struct wire_request *r)
{
	struct net_frame f = {.kind = NET_REQUEST,
			      .slot = atomic_load(&wire->several),
			      .size = r->size},
			 ahead = {.kind = NET_AHEAD, .size = written(r)};

	if (ahead.size > 0) {
		ahead.address = r->word[BOX_ADDRESS];
		/* counted before the memory is read: a store in between counts as not seen */
		ahead.seen = atomic_load(&relay.stored);
		/* where a gap is no memory the server asks for the rows */
		if (memory_read(relay.ahead, ahead.address, ahead.size))
			add(&ahead, relay.ahead);
	}
	add(&f, r);
}

/* ---- frames of the server ---- */

static void take(void *to, size_t size)
{
	if (!net_stream_take(&relay.in, to, size, atomic_load(&wire->patience)))
		lost();
}

static void take_store(const struct net_frame *f)
{
	int error = 0;

	for (uint64_t done = 0; done < f->size;) {
		size_t n = f->size - done < BOUNCE ? (size_t)(f->size - done) : BOUNCE;

		take(relay.bounce, n);
		if (!error && !memory_write(f->address + done, relay.bounce, n))
			error = errno;
		done += n;
	}
	atomic_fetch_add(&relay.stored, 1);
	if (!error || error == ESRCH) /* the program has ended */
		return;
	log_warn("opencl: the program's memory at %#lx can't be written to",
		 (unsigned long)f->address);
	relay.wrong = -30; /* CL_INVALID_VALUE */
}

static bool read_rows(const struct net_frame *f)
{
	size_t size = f->size / f->rows;

	for (uint32_t y = 0; y < f->rows; y++)
		if (!memory_read(relay.bounce + y * size, f->address + y * f->pitch, size))
			return false;
	return true;
}

static void take_fetch(const struct net_frame *f)
{
	struct net_frame answer = {.kind = NET_ANSWER, .size = f->size};

	if (!f->rows || !f->size || f->size > NET_ANSWER_MAX || f->size % f->rows) {
		errno = EPROTO;
		lost();
	}
	if (!read_rows(f)) {
		answer.status = errno ? errno : EFAULT;
		answer.size = 0;
	}
	if (!net_send(relay.data, &answer, sizeof(answer), relay.bounce, answer.size))
		lost();
}

static void take_reply(const struct net_frame *f)
{
	struct wire_reply *r = &wire->reply[f->slot % WIRE_SLOTS];
	struct net_reply n;
	size_t size = f->size - sizeof(n);

	if (f->slot >= WIRE_SLOTS || f->size < sizeof(n) || size > WIRE_INLINE) {
		errno = EPROTO;
		lost();
	}
	take(&n, sizeof(n));
	take(r->data, size);
	r->status = f->status == 0 ? relay.wrong : f->status;
	relay.wrong = 0;
	memcpy(r->value, n.value, sizeof(r->value));
	r->bytes = n.bytes;
	ring_reply_done(r);
}

static void *take_all(void *arg)
{
	struct net_frame f;

	for (;;) {
		take(&f, sizeof(f));
		switch (f.kind) {
		case NET_REPLY:
			take_reply(&f);
			break;
		case NET_STORE:
			take_store(&f);
			break;
		case NET_FETCH:
			take_fetch(&f);
			break;
		case NET_CALLBACK:
			ring_call_back(f.address, f.status);
			break;
		default:
			errno = EPROTO;
			lost();
		}
	}
	return arg;
}

/* The connection for requests may stand still while a kernel or a build keeps the server busy. The
 * one for data never does, so that its end is the loss of the node. */
static void *watch_data(void *arg)
{
	struct pollfd p = {.fd = relay.data, .events = POLLRDHUP};
	socklen_t len = sizeof(errno);

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	if (getsockopt(relay.data, SOL_SOCKET, SO_ERROR, &errno, &len) != 0 || !errno)
		errno = ECONNRESET;
	lost();
	return arg;
}

/* ---- finding a node ---- */

static bool fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(wire->trouble, sizeof(wire->trouble), fmt, ap);
	va_end(ap);
	return false;
}

static int join(const unsigned char token[RIO_TOKEN], uint32_t which)
{
	struct net_join j = {.which = which};
	struct wire_head h = {.op = NET_JOIN};
	int fd = rio_call(relay.node);

	if (fd < 0) {
		fail("%.250s", rio_why());
		return -1;
	}
	memcpy(j.token, token, RIO_TOKEN);
	if (wire_say(fd, &h, &j, sizeof(j)) == 0)
		return fd;
	fail("node '%.80s' went away: %s", relay.node, strerror(errno));
	close(fd);
	return -1;
}

static void limit(int fd, long seconds)
{
	struct timeval t = {seconds, 0};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

/* Hears the daemon's answer, then the server's. */
static bool await_server(void)
{
	char text[RIO_PAYLOAD_MAX + 1];
	struct net_frame f;
	struct wire_head h;

	if (wire_hear(relay.in.fd, &h, text, RIO_PAYLOAD_MAX) != 0)
		return fail("node '%.80s' went away: %s", relay.node, strerror(errno));
	if (h.op != NET_JOINED)
		return fail("node '%.80s': %.150s", relay.node, text);
	if (!net_stream_take(&relay.in, &f, sizeof(f), 0) || f.kind != NET_READY ||
	    f.size >= sizeof(text) || !net_stream_take(&relay.in, text, f.size, 0))
		return fail("the OpenCL server of node '%.80s' was not ready: %s", relay.node,
			    errno == ETIMEDOUT ? "it takes too long" : "it has ended");
	text[f.size] = 0;
	if (f.status != 1)
		return fail("node '%.80s' %.150s", relay.node, text);
	if (wire->devices && wire->devices != f.address)
		return fail("node '%.80s' has other OpenCL devices than the one that was lost",
			    relay.node);
	wire->devices = f.address;
	return true;
}

static bool connect_node(void)
{
	long left = (long)(relay.until - clock_seconds());
	unsigned char token[RIO_TOKEN];
	int requests;

	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		return fail("no random numbers: %s", strerror(errno));
	requests = join(token, NET_REQUESTS);
	if (requests < 0)
		return false;
	relay.data = join(token, NET_DATA);
	if (relay.data >= 0) {
		relay.in.fd = requests;
		relay.in.from = relay.in.to = 0;
		limit(requests, left > 1 ? left : 1);
		if (await_server()) {
			limit(requests, 0);
			net_may_stand_still(requests);
			return true;
		}
		close(relay.data);
	}
	close(requests);
	return false;
}

static bool find_node(void)
{
	unsigned n = 0;

	relay.until = clock_seconds() + READY_S;
	while (rio_node_name(n, relay.node))
		n++;
	if (n == 0)
		return fail("finds no node: HALE_OFFLOAD is set, and HALE_DEVICES "
			    "(NAME=HOST:PORT,…) names none");
	for (unsigned i = 0; i < n; i++) {
		unsigned at = (wire->node + i) % n;

		rio_node_name(at, relay.node);
		if (connect_node()) {
			wire->node = at;
			return true;
		}
		if (i + 1 < n)
			log_warn("opencl: %s; the next node is tried", wire->trouble);
	}
	return false;
}

int main(void)
{
	pthread_t t;
	bool good;

	ring_ignore_signals();
	log_init_from_env();
	if (!ring_open()) {
		log_warn("hale-opencl-relay is started by OpenCL programs under hale run --opencl");
		return 64;
	}
	atomic_store(&wire->server_pid, (uint32_t)getpid());
	wire->svm_bytes = 0; /* no memory is shared with another node */
	relay.out = malloc(OUT_MAX);
	relay.bounce = malloc(BOUNCE);
	relay.ahead = malloc(NET_AHEAD_MAX);
	good = relay.out && relay.bounce && relay.ahead && net_stream_open(&relay.in, -1) &&
	       ring_watch();
	if (!good)
		fail("can't watch the program: %s", strerror(errno));
	good = good && find_node();
	atomic_store(&wire->patience, net_patience());
	if (good && (pthread_create(&t, NULL, take_all, NULL) != 0 ||
		     pthread_create(&t, NULL, watch_data, NULL) != 0))
		good = fail("can't start a thread: %s", strerror(errno));
	if (good)
		log_info("opencl: the devices are those of node '%s'", relay.node);
	ring_say_ready(good);
	if (good)
		ring_run(forward, flush);
	return 1;
}
