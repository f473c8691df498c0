// SPDX-License-Identifier: BSD-3-Clause
/* Copies of what tasks will change. The memory belongs to threads, one piece for each depth of
 * executions on a stack, and only ever grows: the same few pieces, warm in the cache, serve all
 * tasks (seed 002 keeps one per task instead, for the same reason: no allocation while the program
 * runs). */
#include "task/task.h"

#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_FROM = 2 << 20 };

static _Atomic size_t bytes_held;

static bool keep_grow(struct task_keep *k, size_t size)
{
	size_t whole = ALIGN_UP(size + size / 4, HALE_PAGE);
	void *at = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return false;
	if (whole >= HUGE_FROM)
		madvise(at, whole, MADV_HUGEPAGE);
	if (k->at)
		munmap(k->at, k->size);
	atomic_fetch_add(&bytes_held, whole - k->size);
	k->at = at;
	k->size = whole;
	return true;
}

static bool is_kept(const struct task_range *r)
{
	return r->written && !r->discard;
}

static size_t kept_length(const struct task_range *r)
{
	return is_kept(r) ? ALIGN_UP(r->length, ALIGNMENT) : 0;
}

bool task_keep_take(struct task_keep *k, const struct task_record *r, uint64_t *copied)
{
	size_t need = 0, at = 0;

	for (uint32_t i = 0; i < r->count; i++)
		need += kept_length(&r->ranges[i]);
	if (UNLIKELY(need > k->size) && !keep_grow(k, need))
		return false;
	for (uint32_t i = 0; i < r->count; i++) {
		if (!is_kept(&r->ranges[i]))
			continue;
		memcpy(k->at + at, r->ranges[i].at, r->ranges[i].length);
		at += kept_length(&r->ranges[i]);
		*copied += r->ranges[i].length;
	}
	return true;
}

void task_keep_restore(const struct task_keep *k, const struct task_record *r)
{
	size_t at = 0;

	for (uint32_t i = 0; i < r->count; i++) {
		if (!is_kept(&r->ranges[i]))
			continue;
		memcpy(r->ranges[i].at, k->at + at, r->ranges[i].length);
		at += kept_length(&r->ranges[i]);
	}
}

const char *task_keep_of(const struct task_keep *k, const struct task_record *r, uint32_t i)
{
	size_t at = 0;

	if (!is_kept(&r->ranges[i]))
		return NULL;
	for (uint32_t n = 0; n < i; n++)
		at += kept_length(&r->ranges[n]);
	return k->at + at;
}

bool task_keep_is_ours(uintptr_t from, uintptr_t to)
{
	for (const struct task_thread *t = atomic_load(&task_threads); t; t = t->next) {
		if ((uintptr_t)t >= from && (uintptr_t)t < to)
			return true;
		for (unsigned i = 0; i < TASK_DEPTH && t->keeps[i].at; i++)
			if ((uintptr_t)t->keeps[i].at >= from && (uintptr_t)t->keeps[i].at < to)
				return true;
	}
	return false;
}

size_t task_keep_bytes(void)
{
	return atomic_load(&bytes_held);
}
