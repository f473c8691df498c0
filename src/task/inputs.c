// SPDX-License-Identifier: BSD-3-Clause
#include "task/inputs.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS = 8192, LEAST = 512 };

/* A range that tasks read. Entries stay where they are: a hash table by address and length. */
struct block {
	_Atomic(const char *) at;
	size_t length;
	char *copy;
	uint64_t epoch; /* in which the copy was made; 0: it does not hold */
};

_Atomic uint64_t task_inputs_epoch = 1;
static struct block blocks[BLOCKS];
static _Atomic unsigned used[BLOCKS]; /* places in blocks, in order of making */
static _Atomic unsigned nused;
static _Atomic size_t bytes_held;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int strangers; /* tasks that run without copies; under lock */
static _Atomic bool unseen;
static __thread volatile bool mine; /* this thread holds it while it copies; read by a signal */

static struct block *block_find(const struct task_range *r, bool make)
{
	uintptr_t h = ((uintptr_t)r->at >> 4) * 0x9e3779b97f4a7c15ull + r->length;
	unsigned at = (unsigned)(h >> 40) % BLOCKS;

	for (unsigned n = 0; n < BLOCKS; n++, at = (at + 1) % BLOCKS) {
		struct block *b = &blocks[at];

		if (b->at == r->at && b->length == r->length)
			return b;
		if (b->at)
			continue;
		if (!make || nused > BLOCKS / 2)
			return NULL;
		b->copy = mmap(NULL, ALIGN_UP(r->length, HALE_PAGE), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (b->copy == MAP_FAILED)
			return NULL;
		bytes_held += ALIGN_UP(r->length, HALE_PAGE);
		b->length = r->length;
		b->at = r->at;
		used[nused] = at;
		nused++;
		return b;
	}
	return NULL;
}

static void forget_written(const struct task_range *r)
{
	for (unsigned i = 0; i < nused; i++) {
		struct block *b = &blocks[used[i]];

		if (b->at < r->at + r->length && r->at < b->at + b->length)
			b->epoch = 0;
	}
}

static void writes(const struct task_record *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (r->ranges[i].written)
			forget_written(&r->ranges[i]);
}

/* Copies the blocks that r reads, or those that it writes. */
static void blocks_copy(const struct task_record *r, bool written, uint64_t epoch, uint64_t *copied)
{
	for (uint32_t i = 0; i < r->count; i++) {
		const struct task_range *g = &r->ranges[i];
		struct block *b;

		if (g->written != written || g->discard || g->length < LEAST)
			continue;
		b = block_find(g, true);
		if (!b || b->epoch == epoch)
			continue;
		memcpy(b->copy, g->at, b->length);
		b->epoch = epoch;
		*copied += b->length;
	}
}

static void lock_take(void)
{
	pthread_mutex_lock(&lock);
	mine = true;
}

static void lock_give(void)
{
	mine = false;
	pthread_mutex_unlock(&lock);
}

void task_inputs_begin(const struct task_record *r, uint64_t *copied)
{
	uint64_t epoch = atomic_load_explicit(&task_inputs_epoch, memory_order_acquire);

	pthread_mutex_lock(&lock);
	mine = true;
	blocks_copy(r, false, epoch, copied);
	mine = false;
	pthread_mutex_unlock(&lock);
}

void task_inputs_abandon(void)
{
	if (!mine)
		return;
	mine = false;
	pthread_mutex_unlock(&lock);
}

void task_inputs_taken(const struct task_record *r)
{
	pthread_mutex_lock(&lock);
	writes(r);
	pthread_mutex_unlock(&lock);
}

void task_inputs_end(const struct task_record *r, uint64_t *copied)
{
	uint64_t epoch = atomic_load_explicit(&task_inputs_epoch, memory_order_acquire);

	pthread_mutex_lock(&lock);
	mine = true;
	writes(r);
	blocks_copy(r, true, epoch, copied);
	mine = false;
	pthread_mutex_unlock(&lock);
}

/* On a thread that an error has interrupted, while it copied or in its task. */
const char *task_inputs_of(const struct task_record *r, uint32_t i)
{
	uint64_t epoch = atomic_load_explicit(&task_inputs_epoch, memory_order_acquire);
	const char *copy = NULL;
	struct block *b;

	if (!mine)
		pthread_mutex_lock(&lock);
	b = r->ranges[i].length >= LEAST ? block_find(&r->ranges[i], false) : NULL;
	if (b && b->epoch == epoch)
		copy = b->copy;
	if (!mine)
		pthread_mutex_unlock(&lock);
	return copy;
}

void task_inputs_stranger(int change)
{
	lock_take();
	strangers += change;
	lock_give();
}

void task_inputs_unseen(void)
{
	atomic_store(&unseen, true);
}

/* Whether this thread had the lock already, as it was copying when it met the page. */
static __thread bool had;

void task_inputs_hold(void (*put)(void *arg, const char *at, size_t length, const char *copy),
		      void *arg)
{
	uint64_t epoch;

	had = mine;
	if (!had)
		pthread_mutex_lock(&lock);
	epoch = atomic_load_explicit(&task_inputs_epoch, memory_order_acquire);
	if (strangers || unseen)
		return;
	for (unsigned i = 0; i < nused; i++) {
		const struct block *b = &blocks[used[i]];

		if (b->epoch == epoch)
			put(arg, b->at, b->length, b->copy);
	}
}

void task_inputs_release(void)
{
	if (!had)
		pthread_mutex_unlock(&lock);
}

void task_inputs_made(const struct task_record *r, uint64_t *copied)
{
	uint64_t epoch = atomic_load_explicit(&task_inputs_epoch, memory_order_acquire);

	lock_take();
	blocks_copy(r, false, epoch, copied);
	blocks_copy(r, true, epoch, copied);
	lock_give();
}

/* One byte of each line that memory may have lost. */
static void block_read(const struct task_record *r, uint64_t *which)
{
	const struct block *b = &blocks[used[*which]];

	(void)r;
	lock_take();
	if (b->epoch == atomic_load_explicit(&task_inputs_epoch, memory_order_acquire))
		for (size_t i = 0; i < b->length; i += CACHE_LINE)
			(void)*(const volatile char *)(b->at + i);
	lock_give();
}

void task_inputs_settled(void)
{
	if (!task_settings.keep_inputs) {
		task_inputs_changed();
		return;
	}
	for (uint64_t i = 0; i < nused; i++)
		task_try(NULL, block_read, &i);
	lock_take();
	task_inputs_changed();
	lock_give();
}

unsigned task_inputs_mend(const struct task_record *r)
{
	unsigned mended = 0;

	for (uint32_t i = 0; i < r->count; i++) {
		const char *copy = r->ranges[i].written ? NULL : task_inputs_of(r, i);

		if (!copy || memcmp(r->ranges[i].at, copy, r->ranges[i].length) == 0)
			continue;
		memcpy(r->ranges[i].at, copy, r->ranges[i].length);
		mended++;
	}
	return mended;
}

size_t task_inputs_bytes(void)
{
	return atomic_load(&bytes_held);
}
