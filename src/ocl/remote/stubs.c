/* SPDX-License-Identifier: BSD-3-Clause */
/* What handles point to. They lie in one reserved range, so that any word can be told to be one. A
 * stub's place in it is the object's number. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

enum { STUBS_MAX = 1 << 22, STUB_BYTES = 384 };
_Static_assert(sizeof(struct stub) <= STUB_BYTES, "stubs have room");

static struct {
	pthread_mutex_t lock;
	char *base;
	uint32_t used; /* numbers given out so far; 0 is none */
	uint32_t contexts;
	struct stub *unused;
} arena = {.lock = PTHREAD_MUTEX_INITIALIZER, .used = 1};

static struct stub *at(uint32_t id)
{
	return (struct stub *)(arena.base + (size_t)id * STUB_BYTES);
}

/* Changed under the lock, looked at without it. */
static uint32_t count(uint32_t *n, uint32_t more)
{
	uint32_t now = *n + more;

	__atomic_store_n(n, now, __ATOMIC_RELAXED);
	return now;
}

static uint32_t look(const uint32_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

static struct stub *take(void)
{
	struct stub *s = arena.unused;

	if (!arena.base) {
		void *p = mmap(NULL, (size_t)STUBS_MAX * STUB_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return NULL;
		arena.base = p;
	}
	if (s)
		arena.unused = s->next_free;
	else if (arena.used < STUBS_MAX)
		s = at(count(&arena.used, 1) - 1);
	return s;
}

struct stub *stub_create(stub_kind_t kind, struct stub *context)
{
	struct stub *s;
	uint32_t id;

	pthread_mutex_lock(&arena.lock);
	s = take();
	if (s) {
		id = (uint32_t)(((char *)s - arena.base) / STUB_BYTES);
		memset(s, 0, sizeof(*s));
		s->dispatch = &remote_dispatch;
		s->id = id;
		s->refs = 1;
		s->context = context;
		s->kind = kind;
		if (context)
			count(&context->held, 1);
		if (kind == STUB_CONTEXT) {
			arena.contexts++;
			s->era = remote_era();
		}
	}
	pthread_mutex_unlock(&arena.lock);
	return s;
}

uint32_t stub_contexts(void)
{
	return arena.contexts;
}

static bool is_in_arena(const char *p)
{
	return p && arena.base && p >= arena.base &&
	       p < arena.base + (size_t)look(&arena.used) * STUB_BYTES &&
	       (size_t)(p - arena.base) % STUB_BYTES == 0;
}

bool stub_was(const void *p)
{
	return is_in_arena(p) && ((const struct stub *)p)->kind == STUB_FREE;
}

struct stub *stub_of(const void *handle, stub_kind_t kind)
{
	struct stub *s = (struct stub *)handle;

	if (!is_in_arena(handle))
		return NULL;
	/* released, but still what others are made of: the standard lets it be used, and retained
	 */
	return s->kind == kind && (look(&s->refs) > 0 || look(&s->held) > 0) ? s : NULL;
}

void stub_hold(struct stub *holder, struct stub *what)
{
	struct stub **more;

	if (!what)
		return;
	more = realloc(holder->holds, (holder->hold_count + 1) * sizeof(struct stub *));
	if (!more)
		return;
	pthread_mutex_lock(&arena.lock);
	count(&what->held, 1);
	pthread_mutex_unlock(&arena.lock);
	holder->holds = more;
	more[holder->hold_count++] = what;
}

cl_int stub_retain(void *handle, stub_kind_t kind, cl_int wrong)
{
	struct stub *s = stub_of(handle, kind);

	if (!s)
		return wrong;
	pthread_mutex_lock(&arena.lock);
	count(&s->refs, 1);
	pthread_mutex_unlock(&arena.lock);
	return CL_SUCCESS;
}

static void free_parts(struct stub *s)
{
	if (s->kind == STUB_MEM) {
		while (s->mem.destructors) {
			struct destructor *d = s->mem.destructors;
			s->mem.destructors = d->next;
			d->of_mem((cl_mem)s, d->data);
			free(d);
		}
		while (s->mem.maps) {
			struct mapping *m = s->mem.maps;
			s->mem.maps = m->next;
			free(m);
		}
		if (s->mem.window)
			munmap(s->mem.window, s->mem.size);
	}
	if (s->kind == STUB_CONTEXT) {
		while (s->of_context.destructors) {
			struct destructor *d = s->of_context.destructors;
			s->of_context.destructors = d->next;
			d->of_context((cl_context)s, d->data);
			free(d);
		}
		if (s->of_context.notify)
			notify_end(s->of_context.notify);
	}
	if (s->kind == STUB_DEVICE)
		devices_part_ends(s);
	if (s->kind == STUB_RECORDED)
		recorded_free(s);
	if (s->kind == STUB_KERNEL)
		free(s->kernel.arg_size);
	free(s->devices);
	free(s->list);
	free(s->holds);
}

static void end(struct stub *s);

/* Nobody knows it any more: neither the program nor another stub. */
static void drop(struct stub *s)
{
	bool last;

	if (!s)
		return;
	pthread_mutex_lock(&arena.lock);
	last = count(&s->held, -1u) == 0 && s->refs == 0;
	pthread_mutex_unlock(&arena.lock);
	if (last)
		end(s);
}

static void end_with(struct stub *s, bool tell)
{
	struct stub *context = s->context, **holds = s->holds;
	uint32_t count = s->hold_count;
	struct call c = {.era = era_of(s)};

	s->holds = NULL;
	free_parts(s);
	put(&c, s->id);
	/* in this order: the number may be used again at once */
	if (tell)
		remote_post(&c, OP_RELEASE);
	pthread_mutex_lock(&arena.lock);
	arena.contexts -= s->kind == STUB_CONTEXT;
	s->kind = STUB_FREE;
	s->next_free = arena.unused;
	arena.unused = s;
	pthread_mutex_unlock(&arena.lock);
	for (uint32_t i = 0; i < count; i++)
		drop(holds[i]);
	free(holds);
	drop(context);
}

static void end(struct stub *s)
{
	end_with(s, true);
}

void stub_discard(struct stub *s)
{
	end_with(s, false);
}

cl_int stub_release(void *handle, stub_kind_t kind, cl_int wrong)
{
	struct stub *s = stub_of(handle, kind);
	bool last, had;

	if (!s)
		return wrong;
	pthread_mutex_lock(&arena.lock);
	had = s->refs > 0;
	last = had && count(&s->refs, -1u) == 0 && s->held == 0;
	pthread_mutex_unlock(&arena.lock);
	if (last)
		end(s);
	return had ? CL_SUCCESS : wrong;
}

void stub_belongs(struct stub *s, struct stub *context)
{
	struct stub *old = s->context;

	pthread_mutex_lock(&arena.lock);
	count(&context->held, 1);
	s->context = context;
	pthread_mutex_unlock(&arena.lock);
	drop(old);
}

void *stub_list_copy(const void *list)
{
	const uint64_t *from = list;
	size_t n = 0;
	uint64_t *copy;

	if (!from)
		return NULL;
	while (from[n])
		n += 2;
	copy = malloc((n + 1) * sizeof(*copy));
	if (copy)
		memcpy(copy, from, (n + 1) * sizeof(*copy));
	return copy;
}
