// SPDX-License-Identifier: BSD-3-Clause
#include "deliver/tasklog.h"

#include <string.h>
#include <sys/mman.h>

enum { CHUNK_MIN = 256 << 10, ALIGNMENT = 64 };

/* A piece of a log's memory. */
struct tasklog_chunk {
	struct tasklog_chunk *next;
	size_t size, used;
	_Atomic uint32_t live; /* records that requests hold, and one for the log itself */
	char memory[] __attribute__((aligned(ALIGNMENT)));
};

struct tasklog_totals tasklog_totals;
size_t tasklog_max = (size_t)1 << 30;
__thread struct tasklog *tasklog_now __attribute__((tls_model("initial-exec")));
static __thread struct tasklog *spare __attribute__((tls_model("initial-exec")));

/* Not base/heap.h: below MPI_THREAD_MULTIPLE threads that execute tasks are not kept apart. */
static void *memory_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* ---- logs ---- */

struct tasklog *tasklog_open(void)
{
	struct tasklog *log = spare;

	if (LIKELY(log != NULL)) {
		spare = log->next;
		return log;
	}
	return memory_map(ALIGN_UP(sizeof(*log), HALE_PAGE));
}

void tasklog_again(struct tasklog *log)
{
	log->set_back = log->persistent != NULL;
	for (unsigned i = 0; log->used && i < TASKLOG_BUCKETS; i++)
		for (struct tasklog_channel *c = log->bucket[i]; c; c = c->next) {
			c->current = 0;
			c->at = c->first;
		}
}

static void chunk_leave(struct tasklog_chunk *k)
{
	if (atomic_fetch_sub(&k->live, 1) == 1)
		munmap(k, sizeof(*k) + k->size);
}

/* Chunks that only the log holds stay for the next task. */
static void chunks_reset(struct tasklog *log)
{
	struct tasklog_chunk **at = &log->chunks, *k;

	while ((k = *at)) {
		if (atomic_load(&k->live) == 1) {
			k->used = 0;
			at = &k->next;
			continue;
		}
		*at = k->next;
		chunk_leave(k);
	}
}

/* Records that requests hold no longer have a log. */
static void records_detach(struct tasklog *log)
{
	for (unsigned i = 0; i < TASKLOG_BUCKETS; i++)
		for (struct tasklog_channel *c = log->bucket[i]; c; c = c->next)
			for (struct tasklog_record *r = c->first; r; r = r->next)
				r->log = NULL;
}

void tasklog_close(struct tasklog *log)
{
	if (UNLIKELY(log->used)) {
		records_detach(log);
		chunks_reset(log);
		memset(log->bucket, 0, sizeof(log->bucket));
		atomic_fetch_sub(&tasklog_totals.held, log->bytes);
		log->bytes = 0;
		log->persistent = NULL;
		log->used = false;
	}
	log->lost = NULL;
	log->set_back = log->spoken = false;
	log->next = spare;
	spare = log;
}

/* ---- memory ---- */

static struct tasklog_chunk *chunk_make(struct tasklog *log, size_t size)
{
	size_t least = size > CHUNK_MIN ? size : CHUNK_MIN;
	size_t whole = ALIGN_UP(sizeof(struct tasklog_chunk) + least, HALE_PAGE);
	struct tasklog_chunk *k = memory_map(whole);

	if (!k)
		return NULL;
	k->size = whole - sizeof(*k);
	atomic_store(&k->live, 1);
	k->next = log->chunks;
	log->chunks = k;
	return k;
}

static void *chunks_take(struct tasklog *log, size_t size, struct tasklog_chunk **from)
{
	struct tasklog_chunk *k = log->chunks;
	void *p;

	size = ALIGN_UP(size, ALIGNMENT);
	while (k && k->size - k->used < size)
		k = k->next;
	if (!k && !(k = chunk_make(log, size))) {
		log->lost = "in a task for whose messages there was no memory";
		return NULL;
	}
	p = k->memory + k->used;
	k->used += size;
	*from = k;
	log->used = true;
	return p;
}

/* ---- channels ---- */

static unsigned bucket_of(enum tasklog_kind kind, uint32_t context, int32_t peer, int32_t tag)
{
	uint32_t h = (uint32_t)kind * 0x9e3779b1u;

	h = (h ^ context) * 0x85ebca6bu;
	h = (h ^ (uint32_t)peer) * 0xc2b2ae35u;
	h = (h ^ (uint32_t)tag) * 0x27d4eb2fu;
	return (h >> 16) % TASKLOG_BUCKETS;
}

struct tasklog_channel *tasklog_channel(struct tasklog *log, enum tasklog_kind kind,
					uint32_t context, int32_t peer, int32_t tag)
{
	struct tasklog_channel **b = &log->bucket[bucket_of(kind, context, peer, tag)], *c;
	struct tasklog_chunk *chunk;

	for (c = *b; c; c = c->next)
		if (c->kind == kind && c->context == context && c->peer == peer && c->tag == tag)
			return c;
	c = chunks_take(log, sizeof(*c), &chunk);
	if (!c)
		return NULL;
	*c = (struct tasklog_channel){
	    .next = *b, .kind = kind, .context = context, .peer = peer, .tag = tag};
	return *b = c;
}

struct tasklog_record *tasklog_replay(struct tasklog_channel *c)
{
	struct tasklog_record *r = c->at;

	c->current++;
	if (r)
		c->at = r->next;
	atomic_fetch_add_explicit(&tasklog_totals.replayed, 1, memory_order_relaxed);
	if (c->kind == TASKLOG_SEND)
		atomic_fetch_add_explicit(&tasklog_totals.skipped, 1, memory_order_relaxed);
	return r;
}

void tasklog_count(struct tasklog_channel *c)
{
	c->current++;
	c->committed = c->current;
}

/* ---- records ---- */

static void totals_add(struct tasklog *log, size_t bytes)
{
	uint64_t held = atomic_fetch_add(&tasklog_totals.held, bytes) + bytes;
	uint64_t peak = atomic_load(&tasklog_totals.peak);

	log->bytes += bytes;
	atomic_fetch_add(&tasklog_totals.bytes, bytes);
	while (held > peak && !atomic_compare_exchange_weak(&tasklog_totals.peak, &peak, held))
		;
}

struct tasklog_record *tasklog_record(struct tasklog *log, struct tasklog_channel *c, size_t size,
				      size_t payload)
{
	struct tasklog_chunk *chunk;
	struct tasklog_record *r;

	tasklog_count(c);
	if (atomic_load(&tasklog_totals.held) + payload > tasklog_max) {
		log->lost = "in a task whose messages are more than --tasks=log:… allows to keep";
		return NULL;
	}
	r = chunks_take(log, size, &chunk);
	if (!r)
		return NULL;
	memset(r, 0, size - payload);
	r->chunk = chunk;
	r->log = log;
	r->bytes = payload;
	if (c->last)
		c->last->next = r;
	else
		c->first = r;
	c->last = r;
	totals_add(log, payload);
	return r;
}

void tasklog_shrink(struct tasklog_record *r, size_t payload)
{
	size_t less = r->bytes > payload ? r->bytes - payload : 0;

	r->bytes -= less;
	if (!r->log)
		return;
	r->log->bytes -= less;
	atomic_fetch_sub(&tasklog_totals.held, less);
	atomic_fetch_sub(&tasklog_totals.bytes, less);
}

void tasklog_ref_add(struct tasklog_record *r)
{
	if (atomic_fetch_add(&r->refs, 1) == 0)
		atomic_fetch_add(&r->chunk->live, 1);
}

void tasklog_ref_drop(struct tasklog_record *r)
{
	struct tasklog_chunk *k = r->chunk;

	if (atomic_fetch_sub(&r->refs, 1) == 1)
		chunk_leave(k);
}
