// SPDX-License-Identifier: BSD-3-Clause
/* Large mappings of which little was written since the base: those pages are copied while the
 * process is stopped, and the fork leaves the mappings out. A fork costs the process time for every
 * page that it has, first to copy the page tables and then at its next write to each page; a
 * difference should cost what has changed.
 *
 * The child runs without these mappings, so nothing that it needs may lie in them: its thread's
 * storage, what the reporting function is given. */
#include <asm/prctl.h>
#include <string.h>
#include <sys/mman.h>

#include "image/capture.h"

enum { LOCK_WORDS = 10 }; /* of a mutex, as far as it may lie on two pages */

#define HUGE		(2ul << 20)
#define APART_MIN_LEN	(16ul << 20)
#define APART_SHARE	32u
#define APART_PAGES_MAX ((128ul << 20) / HALE_PAGE)

static uint64_t pages_in(const struct list *ranges)
{
	uint64_t pages = 0;
	for (size_t i = 0; i < ranges->count; i++) {
		const struct range *r = list_at(ranges, i);
		pages += (r->end - r->start) / HALE_PAGE;
	}
	return pages;
}

static bool holds(const struct map *m, uint64_t addr)
{
	return addr >= m->start && addr < m->end;
}

static bool child_needs(const struct capture *c, const struct map *m)
{
	uint64_t tls = 0;
	sys(SYS_arch_prctl, ARCH_GET_FS, &tls);
	return holds(m, tls) || holds(m, (uint64_t)&tls) || holds(m, (uint64_t)c->params.arg);
}

static bool is_worth_it(const struct capture *c, const struct map *m, const struct map_written *w,
			uint64_t budget)
{
	uint64_t pages = (m->end - m->start) / HALE_PAGE;
	if (w->whole || m->name[0] || m->inode || m->shared || !(m->prot & PROT_READ) ||
	    m->end - m->start < APART_MIN_LEN || map_is_excluded(m->start, m->end))
		return false;
	uint64_t written = pages_in(&w->ranges);
	return written <= pages / APART_SHARE && written <= budget && !child_needs(c, m);
}

static bool is_tid(const struct capture *c, uint32_t word)
{
	for (size_t i = 0; i < c->threads.count; i++)
		if ((uint32_t)((struct thread_record *)list_at(&c->threads, i))->tid == word)
			return true;
	return false;
}

/* A held lock might lie across the edge, and only half of it in the copy. */
static bool has_lock_at_edge(const struct capture *c, const struct run *r)
{
	const uint32_t *first = (const uint32_t *)r->addr;
	const uint32_t *last = (const uint32_t *)(r->addr + r->pages * HALE_PAGE) - LOCK_WORDS;
	for (int i = 0; i < LOCK_WORDS; i++)
		if (is_tid(c, first[i]) || is_tid(c, last[i]))
			return true;
	return false;
}

/* Gives the runs from `first` on a source of their own. */
static bool copy_runs(struct capture *c, size_t first)
{
	uint64_t pages = 0;
	for (size_t i = first; i < c->selection.runs.count; i++) {
		const struct run *r = list_at(&c->selection.runs, i);
		if (has_lock_at_edge(c, r))
			return false;
		pages += r->pages;
	}
	char *to = arena_pages(&c->arena, ALIGN_UP(pages * HALE_PAGE, HUGE) + HUGE);
	if (!to)
		return false;
	/* a page fault for every 2 MiB and not for every 4 KiB */
	to = (char *)ALIGN_UP((uint64_t)to, HUGE);
	sys(SYS_madvise, to, ALIGN_UP(pages * HALE_PAGE, HUGE), MADV_HUGEPAGE);
	for (size_t i = first; i < c->selection.runs.count; i++) {
		struct run *r = list_at(&c->selection.runs, i);
		memcpy(to, (const void *)r->source, r->pages * HALE_PAGE);
		r->source = (uint64_t)to;
		to += r->pages * HALE_PAGE;
	}
	return true;
}

static bool set_apart(struct capture *c, const struct map *m, struct map_written *w)
{
	struct selection *s = &c->selection, before = *s;
	if (selection_add(s, m, &w->ranges) && copy_runs(c, before.runs.count) &&
	    !sys(SYS_madvise, m->start, m->end - m->start, MADV_DONTFORK)) {
		w->apart = true;
		w->saved = s->pages - before.pages;
		return true;
	}
	/* the lists may have moved, but what was in them before is still there */
	s->runs.count = before.runs.count;
	s->drops.count = before.drops.count;
	s->pages = before.pages;
	return false;
}

void apart_begin(struct capture *c)
{
	uint64_t budget = APART_PAGES_MAX;
	if (!c->incremental || c->params.mode != IMAGE_FORKED || !selection_open(&c->selection))
		return;
	for (size_t i = 0; i < c->maps.count; i++) {
		const struct map *m = list_at(&c->maps, i);
		struct map_written *w = list_at(&c->written, i);
		if (is_worth_it(c, m, w, budget) && set_apart(c, m, w))
			budget -= w->saved;
	}
	selection_close(&c->selection);
}

void apart_end(struct capture *c)
{
	for (size_t i = 0; i < c->maps.count; i++) {
		const struct map *m = list_at(&c->maps, i);
		if (((struct map_written *)list_at(&c->written, i))->apart)
			sys(SYS_madvise, m->start, m->end - m->start, MADV_DOFORK);
	}
}
