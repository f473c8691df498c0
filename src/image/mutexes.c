// SPDX-License-Identifier: BSD-3-Clause
#include "image/mutexes.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>

#include "image/sink.h"

/* pthread_mutex_t.__kind */
enum {
	KIND_TYPE = 0x3,
	KIND_RECURSIVE = 1,
	KIND_ERRORCHECK = 2,
	KIND_INHERIT = 0x20, /* the word has the owner's id, which the kernel reads */
	KIND_PROTECT = 0x40, /* the word has a priority above bit 18 */
	KIND_SHARED = 0x80,
	KIND_NO_ELISION = 0x200,
	MANY = 4096,
};
#define CEILING 0xfff80000u

/* What the kernel follows at a thread's end, and no further. */
enum { ROBUST_MAX = 2048 };

static bool word_is_locked(uint32_t word)
{
	return word == 1 || word == 2;
}

/* The words of one protocol, and a count where it has one. */
static bool mutex_fits(const struct mutex *m)
{
	uint32_t type = m->kind & KIND_TYPE;
	bool named = type == KIND_RECURSIVE || type == KIND_ERRORCHECK;
	bool counts = m->count && m->count <= MANY;

	switch (m->kind & (KIND_INHERIT | KIND_PROTECT)) {
	case KIND_INHERIT:
		return (m->lock & FUTEX_TID_MASK) == m->owner && counts;
	case KIND_PROTECT:
		return word_is_locked(m->lock & ~CEILING) && named && counts;
	case 0:
		return word_is_locked(m->lock) && named && counts == (type == KIND_RECURSIVE);
	default:
		return false;
	}
}

/* What is found by its looks is changed at a restart, and must not be somebody's numbers: so every
 * field has to fit. */
bool mutex_is_held(const struct mutex *m, uint32_t *flags)
{
	const uint32_t known =
	    KIND_TYPE | KIND_INHERIT | KIND_PROTECT | KIND_SHARED | KIND_NO_ELISION;

	*flags = m->kind & KIND_INHERIT ? LOCK_WORD : 0;
	return !(m->kind & ~known) && m->users > 0 && m->users <= MANY && !m->spins &&
	       !m->elision && !m->before && !m->after && mutex_fits(m);
}

/* ---- robust lists ---- */

/* Of the image's memory, while it is being built. */
static bool image_memory_read(const struct sink *s, uint64_t addr, void *to, size_t len)
{
	uint64_t end, at;
	size_t map;

	if (addr & 7 || !(at = sink_stage_of(s, addr, &end, &map)) || addr + len > end ||
	    !(s->t.maps[map].prot & PROT_READ))
		return false;
	memcpy(to, (const void *)at, len);
	return true;
}

static bool robust_lock_add(struct list *locks, uint64_t entry, int64_t offset, int32_t tid)
{
	struct lock_record *r = list_add(locks);

	if (r)
		*r = (struct lock_record){(entry & ~1ull) + (uint64_t)offset, tid, LOCK_WORD};
	return r != NULL;
}

static bool robust_list_add(const struct sink *s, const struct thread_record *t, struct list *locks)
{
	struct {
		uint64_t next;
		int64_t offset;
		uint64_t pending;
	} head;
	uint64_t next;
	bool ok = true;

	if (!t->robust || t->robust_len != sizeof(head) ||
	    !image_memory_read(s, t->robust, &head, sizeof(head)))
		return true;
	if (head.pending)
		ok = robust_lock_add(locks, head.pending, head.offset, t->tid);
	next = head.next;
	for (int i = 0; ok && i < ROBUST_MAX && (next & ~1ull) != t->robust; i++) {
		ok = robust_lock_add(locks, next, head.offset, t->tid);
		if (!image_memory_read(s, next & ~1ull, &next, sizeof(next)))
			break;
	}
	return ok;
}

bool mutexes_add_robust(const struct sink *s, struct list *locks)
{
	bool ok = true;

	for (size_t i = 0; ok && i < s->t.thread_count; i++)
		ok = robust_list_add(s, &s->t.threads[i], locks);
	return ok;
}

/* ---- afterwards ---- */

static bool mutex_is_owned(const struct lock_record *l)
{
	const volatile uint32_t *word = (const volatile uint32_t *)l->address;

	if (l->flags & LOCK_WORD)
		return (word[0] & FUTEX_TID_MASK) == (uint32_t)l->tid;
	return word[MUTEX_OWNER_AT] == (uint32_t)l->tid;
}

/* First all are looked at: an id may be a new one of one thread and an old one of another. A word
 * of the kernel's keeps its highest bits: that somebody waits, who asks the kernel again. */
void mutexes_correct(struct lock_record *locks, size_t count, int32_t (*new_tid)(int32_t old))
{
	for (size_t i = 0; i < count; i++)
		if (!mutex_is_owned(&locks[i]))
			locks[i].tid = 0;
	for (size_t i = 0; i < count; i++) {
		const struct lock_record *l = &locks[i];
		volatile uint32_t *word = (volatile uint32_t *)l->address;
		uint32_t tid = l->tid ? (uint32_t)new_tid(l->tid) : 0;

		if (!tid)
			continue;
		if (l->flags & LOCK_WORD)
			word[0] = (word[0] & ~(uint32_t)FUTEX_TID_MASK) | tid;
		if (word[MUTEX_OWNER_AT] == (uint32_t)l->tid)
			word[MUTEX_OWNER_AT] = tid;
	}
}
