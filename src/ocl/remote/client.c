/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to the server, and their replies: posting, waiting. */
#include "ocl/remote/client.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/base.h"
#include "base/yield.h"

struct remote_client client = {.lock = PTHREAD_MUTEX_INITIALIZER};

void client_futex_wait(_Atomic uint32_t *word, uint32_t seen, long ns)
{
	struct timespec t = {0, ns};

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- posting ---- */

void put_blob(struct call *c, const void *data, size_t size)
{
	size_t words = (size + 7) / 8;
	bool fits = size <= WIRE_INLINE && c->words + 2 + words <= WIRE_WORDS;

	if (!fits && c->refs < WIRE_REFS)
		c->ref[c->refs++] = (uint16_t)(c->words + 1);
	put(c, size);
	put(c, fits ? 0 : (uint64_t)(uintptr_t)data);
	if (!fits || size == 0)
		return;
	c->word[c->words + words - 1] = 0;
	memcpy(&c->word[c->words], data, size);
	c->words += (uint32_t)words;
}

void put_handle(struct call *c, const void *handle, stub_kind_t kind)
{
	const struct stub *s = stub_of(handle, kind);

	put(c, s ? s->id : 0);
}

/* count, whether there is a list, its length, the list: up to the first that is wrong, since a
 * count may be wrong as well */
void put_handles(struct call *c, cl_uint count, const void *list, stub_kind_t kind)
{
	const void *const *at = list;
	uint32_t length = c->words + 2;
	cl_uint n = 0;

	put(c, count);
	put(c, list != NULL);
	put(c, 0);
	while (list && n < count && c->words <= WIRE_WORDS) {
		put_handle(c, at[n], kind);
		if (!stub_of(at[n++], kind))
			break;
	}
	if (length < WIRE_WORDS)
		c->word[length] = n;
}

void client_bell(struct remote_wire *w)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&w->sleeping, memory_order_relaxed))
		return;
	atomic_fetch_add(&w->bell, 1);
	futex_wake(&w->bell);
}

/* False: the server has ended. */
static bool wait_for_room(struct remote_wire *w, uint64_t head, size_t size)
{
	for (uint32_t i = 1; head + size - atomic_load(&w->tail) > WIRE_RING; i++) {
		client_bell(w);
		yield_or_nap();
		callbacks_make_room(w);
		if (i % 4096 == 0 && !client_server_lives())
			return false;
	}
	return true;
}

bool client_append(struct remote_wire *w, const struct call *c, wire_op_t op, uint16_t slot)
{
	uint32_t size = (uint32_t)(sizeof(struct wire_request) + c->words * 8);
	uint64_t head = atomic_load_explicit(&w->head, memory_order_relaxed);
	uint32_t left = WIRE_RING - (uint32_t)(head % WIRE_RING);
	struct wire_request *r = (struct wire_request *)(w->ring + head % WIRE_RING);

	if (left < size) {
		if (!wait_for_room(w, head, left))
			return false;
		r->size = left;
		r->op = OP_FILLER;
		head += left;
		r = (struct wire_request *)w->ring;
	}
	if (!wait_for_room(w, head, size))
		return false;
	r->size = size;
	r->op = (uint16_t)op;
	r->slot = slot;
	memcpy(r->ref, c->ref, sizeof(r->ref));
	memcpy(r->word, c->word, c->words * 8ul);
	atomic_store_explicit(&w->head, head + size, memory_order_release);
	return true;
}

/* WIRE_SLOTS: none is free. */
static uint16_t take_slot(struct remote_wire *w)
{
	for (int i = 0; i < WIRE_SLOTS; i++) {
		if (atomic_load_explicit(&w->reply[i].state, memory_order_acquire) != SLOT_FREE)
			continue;
		atomic_store_explicit(&w->reply[i].state, SLOT_WAITING, memory_order_relaxed);
		return (uint16_t)i;
	}
	return WIRE_SLOTS;
}

typedef enum posted { POSTED, SERVER_ENDED, FROM_BEFORE } posted_t;

/* Where a reply is: in the region of one server, which another one's takes the place of. */
struct client_place {
	uint16_t slot;
	uint32_t life;
};

/* place: for the reply; NULL: none is wanted. It is taken with the lock held under which another
 * server begins, so that all of this comes before it, or behind it. */
static posted_t post(const struct call *c, wire_op_t op, struct client_place *place)
{
	posted_t posted = FROM_BEFORE;
	uint16_t slot = WIRE_NO_REPLY;

	pthread_mutex_lock(&client.lock);
	while (place && (slot = take_slot(client.wire)) == WIRE_SLOTS) {
		pthread_mutex_unlock(&client.lock); /* who gives one back may need it */
		yield_or_nap();
		pthread_mutex_lock(&client.lock);
	}
	/* what another thread has put in the place of its server would not know it */
	if (LIKELY(!c->era || c->era == atomic_load(&client.era)))
		posted = client_append(client.wire, c, op, slot) ? POSTED : SERVER_ENDED;
	if (UNLIKELY(place && posted != POSTED))
		atomic_store(&client.wire->reply[slot].state, SLOT_FREE);
	if (place)
		*place = (struct client_place){slot, atomic_load(&client.life)};
	pthread_mutex_unlock(&client.lock);
	if (LIKELY(posted == POSTED))
		client_bell(client.wire);
	return posted;
}

/* False: the server has ended, or another one has taken its place since life. */
static bool wait_for_reply(struct wire_reply *r, uint32_t life)
{
	struct patience p = {.looks = client.spins, .us = atomic_load(&client.wire->patience)};

	do {
		if (atomic_load_explicit(&r->state, memory_order_acquire) == SLOT_DONE)
			return true;
	} while (patience_left(&p));
	for (;;) {
		uint32_t state = SLOT_WAITING;
		atomic_compare_exchange_strong(&r->state, &state, SLOT_SLEEPING);
		if (state == SLOT_DONE)
			return true;
		client_futex_wait(&r->state, SLOT_SLEEPING, CLIENT_LOOK_NS);
		if (atomic_load(&r->state) == SLOT_DONE)
			return true;
		if (atomic_load(&client.life) != life)
			return false;
		if (!client_server_lives())
			return atomic_load(&r->state) == SLOT_DONE;
		callbacks_make_room(client.wire);
	}
}

static cl_int server_gone(void)
{
	if (!client.dead && client.pid == getpid())
		log_warn("opencl: the process with the OpenCL runtime (pid %u) has ended; what it "
			 "wrote to stderr may say why",
			 client.wire ? atomic_load(&client.wire->server_pid) : 0);
	client.dead = true;
	return CL_DEVICE_NOT_AVAILABLE;
}

struct remote_wire *remote_wire(void)
{
	return client.wire;
}

uint32_t remote_era(void)
{
	return atomic_load(&client.era);
}

uint32_t remote_life(void)
{
	return atomic_load(&client.life);
}

bool remote_has_ended(uint32_t life)
{
	if (client.pid != getpid() || atomic_load(&client.life) != life)
		return client.pid == getpid();
	if (!client.dead && !client_server_lives())
		server_gone();
	return client.dead;
}

bool remote_is_ours(void)
{
	return client.pid == getpid();
}

/* In a child of fork, or when the server has ended, there is no device. */
static bool usable(void)
{
	return LIKELY(client.started && !client.dead) && client.pid == getpid();
}

static void take_reply(struct wire_reply *r, struct remote_answer *a)
{
	a->status = r->status;
	memcpy(a->value, r->value, sizeof(a->value));
	a->bytes = r->bytes;
	if (a->data && r->bytes <= WIRE_INLINE)
		memcpy(a->data, r->data, r->bytes < a->room ? r->bytes : a->room);
}

static void give_slot(struct wire_reply *r, uint32_t life)
{
	pthread_mutex_lock(&client.lock);
	if (atomic_load(&client.life) == life)
		atomic_store(&r->state, SLOT_FREE);
	pthread_mutex_unlock(&client.lock);
}

cl_int client_exchange(struct call *c, wire_op_t op, struct remote_answer *a)
{
	uint32_t done = SLOT_DONE;
	struct wire_reply *r;
	struct client_place at;
	posted_t posted;

	a->status = CL_OUT_OF_RESOURCES;
	if (c->words > WIRE_WORDS)
		return a->status;
	posted = post(c, op, &at);
	if (posted != POSTED)
		return a->status = posted == SERVER_ENDED ? server_gone() : CL_DEVICE_NOT_AVAILABLE;
	r = &client.wire->reply[at.slot];
	if (wait_for_reply(r, at.life)) {
		take_reply(r, a);
		atomic_compare_exchange_strong(&r->state, &done, SLOT_FREE);
	} else {
		if (atomic_load(&client.life) == at.life)
			server_gone();
		a->status = CL_DEVICE_NOT_AVAILABLE;
		give_slot(r, at.life);
	}
	if (atomic_load(&client.life) != at.life) /* what was taken may be of the next region */
		a->status = CL_DEVICE_NOT_AVAILABLE;
	return a->status;
}

/* Whether several threads call: for some time after another one has called. */
static void note_caller(void)
{
	static const double alone_after = 10; /* seconds */
	static __thread char here;
	const void *before = atomic_load_explicit(&client.caller, memory_order_relaxed);
	double changed = atomic_load_explicit(&client.changed, memory_order_relaxed);

	if (before == &here && changed == 0)
		return;
	if (before != &here) {
		atomic_store(&client.caller, &here);
		changed = before ? clock_seconds() : 0;
	} else if (clock_seconds() - changed > alone_after) {
		changed = 0;
	}
	atomic_store(&client.changed, changed);
	atomic_store(&client.wire->several, changed > 0);
}

cl_int remote_call(struct call *c, wire_op_t op, struct remote_answer *a)
{
	struct remote_answer unwanted = {0};
	cl_int status;

	if (!usable())
		return CL_DEVICE_NOT_AVAILABLE;
	remote_enter();
	note_caller();
	status = client_exchange(c, op, a ? a : &unwanted);
	remote_leave();
	return status;
}

cl_int remote_post(struct call *c, wire_op_t op)
{
	cl_int status = CL_SUCCESS;
	posted_t posted;

	if (c->refs > 0 || c->words > WIRE_WORDS)
		return remote_call(c, op, NULL);
	if (!usable())
		return CL_DEVICE_NOT_AVAILABLE;
	remote_enter();
	posted = post(c, op, NULL);
	if (UNLIKELY(posted != POSTED))
		status = posted == SERVER_ENDED ? server_gone() : CL_DEVICE_NOT_AVAILABLE;
	remote_leave();
	return status;
}
