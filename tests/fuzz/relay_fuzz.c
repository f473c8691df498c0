/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes to the relay beside an OpenCL program (docs/opencl.md, 'Devices of another node'):
 * what a node answers when it is asked for a server, and that server's frames. Whatever comes,
 * memory of the program is written only where a frame says, and as far as its bytes came; a
 * question gets one answer, of the length that was asked for; a reply fits into its slot; and what
 * is no frame ends the relay. What the program asks for goes out whole, with as much ahead of it as
 * is announced.
 *
 * An input is what the connection brings: pieces that stand for well-formed frames, or bytes. */
#include "fuzz.h"
#include <errno.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <unistd.h>
#include "base/base.h"

static jmp_buf end;
static _Noreturn void relay_end(int status)
{
	must(status == 1);
	longjmp(end, 1);
}

/* its functions are its own */
int relay_main(void);
#define main  relay_main
#define _exit relay_end
#include "ocl/remote/relay.c"
#undef main
#undef _exit

enum { PROGRAM = 1 << 16, PROGRAM_AT = 0x10000 };

static struct input in;
static char program[PROGRAM];
static struct remote_wire region;
struct remote_wire *wire = &region;
static struct net_frame now; /* that the relay was given last */
static uint64_t brought;     /* of the bytes behind it */
static uint64_t left;	     /* that are still to come */
static int answers, questions;

/* ---- the program ---- */

bool memory_read(void *to, uint64_t address, size_t size)
{
	if (address < PROGRAM_AT || size > PROGRAM || address - PROGRAM_AT > PROGRAM - size) {
		errno = EFAULT;
		return false;
	}
	memcpy(to, program + (address - PROGRAM_AT), size);
	return true;
}

bool memory_write(uint64_t address, const void *from, size_t size)
{
	must(now.kind == NET_STORE && address >= now.address &&
	     address - now.address + size == brought);
	if (address < PROGRAM_AT || size > PROGRAM || address - PROGRAM_AT > PROGRAM - size) {
		errno = EFAULT;
		return false;
	}
	memcpy(program + (address - PROGRAM_AT), from, size);
	return true;
}

void ring_reply_done(struct wire_reply *r)
{
	must(now.kind == NET_REPLY && r == &region.reply[now.slot]);
	must(brought == now.size && left == 0);
}

void ring_call_back(uint64_t cookie, int32_t status)
{
	must(now.kind == NET_CALLBACK && cookie == now.address && status == now.status);
}

void ring_ignore_signals(void)
{
}
bool ring_open(void)
{
	return true;
}
bool ring_watch(void)
{
	return true;
}
void ring_say_ready(bool good)
{
}
void ring_run(void (*carry_out)(const struct wire_request *r), void (*idle)(void))
{
}

/* ---- the connections ---- */

uint32_t net_patience(void)
{
	return 0;
}

void net_may_stand_still(int fd)
{
}

bool net_stream_open(struct net_stream *s, int fd)
{
	return true;
}

static bool gone(void)
{
	errno = ECONNRESET;
	return false;
}

static void frame_make(struct net_frame *f)
{
	static const uint32_t kinds[] = {NET_REPLY,    NET_STORE, NET_FETCH,
					 NET_CALLBACK, NET_READY, NET_ANSWER};

	*f = (struct net_frame){.kind = kinds[input_byte(&in) % ARRAY_LEN(kinds)],
				.slot = input_byte(&in) % (WIRE_SLOTS + 1),
				.rows = input_byte(&in),
				.address = PROGRAM_AT + input_byte(&in) * 300u,
				.size = input_byte(&in) * 16u,
				.pitch = input_byte(&in) * 8u};
	if (f->kind == NET_FETCH)
		f->size *= f->rows;
	if (f->kind == NET_REPLY)
		f->size += sizeof(struct net_reply);
}

/* A head when nothing is left of what the last one has announced. */
bool net_stream_take(struct net_stream *s, void *to, size_t size, uint32_t us)
{
	if (in.left == 0)
		return gone();
	if (left > 0) {
		must(size <= left);
		brought += size;
		left -= size;
		input_take(&in, to, size);
		return true;
	}
	if (size == 0)
		return true;
	must(size == sizeof(now));
	if (input_byte(&in) % 4)
		frame_make(to);
	else
		input_take(&in, to, sizeof(now));
	memcpy(&now, to, sizeof(now));
	brought = 0;
	if (now.kind == NET_STORE || now.kind == NET_REPLY || now.kind == NET_READY)
		left = now.size;
	must(answers == questions);
	questions += now.kind == NET_FETCH;
	return true;
}

bool net_send(int fd, const void *head, size_t head_size, const void *data, size_t size)
{
	const struct net_frame *f = head;
	const char *at = head;

	if (fd == relay.data) {
		must(now.kind == NET_FETCH && f->kind == NET_ANSWER && head_size == sizeof(*f));
		must(f->size == size && size == (f->status ? 0 : now.size) && f->status >= 0);
		answers++;
		return true;
	}
	while (head_size > 0) { /* requests, with what goes ahead of them */
		memcpy(&now, at, sizeof(now));
		must(now.kind == NET_REQUEST ||
		     (now.kind == NET_AHEAD && now.size <= NET_AHEAD_MAX));
		head_size -= sizeof(now);
		at += sizeof(now);
		if (size > 0) {
			must(head_size == 0 && size == now.size);
			break;
		}
		must(head_size >= now.size);
		head_size -= now.size;
		at += now.size;
	}
	return true;
}

/* ---- the node ---- */

const char *rio_node_name(unsigned i, char name[RIO_NODE_MAX])
{
	memcpy(name, "far", 4);
	return i < 2 ? name : NULL;
}

int rio_call(const char *node)
{
	left = 0;
	answers = questions = 0;
	return input_byte(&in) % 8 == 7 ? -1 : 1000;
}

const char *rio_why(void)
{
	return "nobody is there";
}

int wire_say(int fd, struct wire_head *h, const void *payload, size_t bytes)
{
	must(h->op == NET_JOIN && bytes == sizeof(struct net_join));
	return input_byte(&in) % 8 == 7 ? -1 : 0;
}

int wire_hear(int fd, struct wire_head *h, void *payload, size_t max)
{
	must(max == RIO_PAYLOAD_MAX);
	*h = (struct wire_head){.op = input_byte(&in) % 4 ? NET_JOINED : RIO_REFUSED,
				.bytes = input_byte(&in)};
	input_take(&in, payload, h->bytes);
	((char *)payload)[h->bytes] = 0;
	return input_byte(&in) % 8 == 7 ? -1 : 0;
}

/* ---- */

static void program_asks(void)
{
	_Alignas(8) char space[REQUEST_MAX];
	struct wire_request *r = (struct wire_request *)space;

	memset(space, 0, sizeof(space));
	input_take(&in, space, sizeof(*r) + 8 * (input_byte(&in) % 32u));
	if (input_byte(&in) % 2) {
		r->op = OP_BOX;
		r->word[BOX_FLAGS] |= BOX_WRITE;
		r->word[BOX_ADDRESS] = PROGRAM_AT + input_byte(&in);
		for (int i = 0; i < 3; i++)
			r->word[BOX_REGION + i] = input_byte(&in);
	}
	r->size = (uint32_t)(sizeof(*r) + 8 * (input_byte(&in) % (WIRE_WORDS + 1u)));
	forward(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	in = (struct input){data, size};
	if (!relay.out) {
		relay.out = malloc(OUT_MAX);
		relay.bounce = malloc(BOUNCE);
		relay.ahead = malloc(NET_AHEAD_MAX);
		must(relay.out && relay.bounce && relay.ahead);
	}
	log_set_level(LOG_QUIET);
	relay.filled = 0;
	relay.stored = relay.wrong = 0;
	memset(&region.trouble, 0, sizeof(region.trouble));
	region.devices = 0;
	brought = left = 0;
	now = (struct net_frame){0};
	answers = questions = 0;
	if (setjmp(end))
		return 0;
	if (!find_node()) {
		must(memchr(region.trouble, 0, sizeof(region.trouble)) && region.trouble[0]);
		return 0;
	}
	relay.data = 1001;
	left = 0;
	for (int i = input_byte(&in) % 4; i > 0; i--)
		program_asks();
	flush();
	now = (struct net_frame){0};
	take_all(NULL);
	return 0;
}
