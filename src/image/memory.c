// SPDX-License-Identifier: BSD-3-Clause
/* Which pages an image needs. Runs in the frozen child, so it may take its time.
 *
 *            private, no file        private, of a file
 * present    yes                     yes, if it is a copy (it was written to)
 * swapped    yes                     yes
 * zero page  no                      no
 * absent     no                      no
 *
 * A difference holds of these the ones in ranges that were written; and it names, as drops, all
 * pages of a mapping that are absent now, since they may have been there in the base.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "image/engine.h"

enum { SCAN_REGIONS = 8192, PAGEMAP_ENTRIES = 4096 };

#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAP	(1ull << 62)
#define PAGEMAP_FILE	(1ull << 61)
#define PAGEMAP_GUARD	(1ull << 58)

bool selection_init(struct selection *s, struct arena *a, bool incremental)
{
	*s = (struct selection){.arena = a, .pagemap = -1, .incremental = incremental};
	list_init(&s->runs, a, sizeof(struct run));
	list_init(&s->drops, a, sizeof(uint64_t));
	list_init(&s->guards, a, sizeof(struct range));
	s->scan = arena_alloc(a, SCAN_REGIONS * sizeof(*s->scan));
	return s->scan != NULL;
}

bool selection_open(struct selection *s)
{
	s->pagemap =
	    (int)sys(SYS_openat, AT_FDCWD, "/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
	s->sees_guards = s->pagemap >= 0 && guards_can_be_seen(s->pagemap);
	return s->pagemap >= 0;
}

bool selection_find_guards(struct selection *s)
{
	return !s->sees_guards || guards_find(s->pagemap, 0, (1ull << 47) - HALE_PAGE, &s->guards);
}

void selection_close(struct selection *s)
{
	if (s->pagemap >= 0)
		sys(SYS_close, s->pagemap);
	s->pagemap = -1;
}

static bool add_run(struct selection *s, uint64_t start, uint64_t end, bool keep_zero, bool unsafe)
{
	struct run *last = s->runs.count ? list_at(&s->runs, s->runs.count - 1) : NULL;
	uint64_t pages = (end - start) / HALE_PAGE;
	s->pages += pages;
	if (last && last->addr + last->pages * HALE_PAGE == start && last->source == last->addr &&
	    last->keep_zero == keep_zero && last->unsafe == unsafe) {
		last->pages += pages;
		return true;
	}
	struct run *r = list_add(&s->runs);
	if (!r)
		return false;
	*r = (struct run){start, start, pages, keep_zero, unsafe};
	return true;
}

static bool add_drop(struct selection *s, uint64_t start, uint64_t end)
{
	while (start < end) {
		uint64_t pages = (end - start) / HALE_PAGE;
		if (pages > RUN_PAGES_MAX)
			pages = RUN_PAGES_MAX;
		uint64_t *run = list_add(&s->drops);
		if (!run)
			return false;
		*run = run_make(start, pages);
		start += pages * HALE_PAGE;
	}
	return true;
}

/* ---- walking over the pages that exist ---- */

/* Where a walk stands: everything before `done` has been dealt with. */
struct memory_walk {
	struct selection *s;
	const struct list *written; /* struct range; NULL: everything */
	size_t next;
	uint64_t done;
	bool keep_zero;
	bool no_file; /* no page can be one of a file */
};

/* Saves what of an existing range was written. */
static bool save_written(struct memory_walk *w, uint64_t start, uint64_t end)
{
	if (!w->written)
		return add_run(w->s, start, end, w->keep_zero, false);
	const struct range *r = w->written->items;
	size_t count = w->written->count;
	while (w->next < count && r[w->next].end <= start)
		w->next++;
	for (size_t i = w->next; i < count && r[i].start < end; i++) {
		uint64_t from = r[i].start > start ? r[i].start : start;
		uint64_t to = r[i].end < end ? r[i].end : end;
		if (!add_run(w->s, from, to, w->keep_zero, false))
			return false;
	}
	return true;
}

static bool existing(struct memory_walk *w, uint64_t start, uint64_t end)
{
	if (w->s->incremental && !add_drop(w->s, w->done, start))
		return false;
	w->done = end;
	return save_written(w, start, end);
}

/* To tell whether a page is one of a file the kernel looks at the page's own description, which
 * takes ten times as long as its table entry: not asked where the answer is known. */
static bool walk_by_scan(struct memory_walk *w, uint64_t start, uint64_t end)
{
	uint64_t without = SYS_PAGE_IS_PFNZERO | (w->no_file ? 0 : SYS_PAGE_IS_FILE) |
			   (w->s->sees_guards ? SYS_PAGE_IS_GUARD : 0);
	struct sys_pm_scan arg = {
	    .size = sizeof(arg),
	    .end = end,
	    .vec = (uint64_t)w->s->scan,
	    .vec_len = SCAN_REGIONS,
	    .category_mask = without,
	    .category_inverted = without,
	    .category_anyof_mask = SYS_PAGE_IS_PRESENT | SYS_PAGE_IS_SWAPPED,
	    .return_mask = SYS_PAGE_IS_PRESENT | SYS_PAGE_IS_SWAPPED,
	};
	uint64_t listed = start;
	for (arg.start = start; arg.start < end; arg.start = arg.walk_end) {
		long n = sys(SYS_ioctl, w->s->pagemap, SYS_PAGEMAP_SCAN, &arg);
		if (n < 0) {
			w->s->no_scan = true;
			return false;
		}
		for (long i = 0; i < n; i++)
			if (sys_page_region_new(&w->s->scan[i], &listed) &&
			    !existing(w, w->s->scan[i].start, w->s->scan[i].end))
				return false;
		if (arg.walk_end <= arg.start)
			return false;
	}
	return true;
}

/* Older kernels: one word a page. */
static bool walk_by_entries(struct memory_walk *w, uint64_t start, uint64_t end)
{
	uint64_t *entry = (uint64_t *)w->s->scan;
	for (uint64_t at = start; at < end;) {
		uint64_t n = (end - at) / HALE_PAGE;
		if (n > PAGEMAP_ENTRIES)
			n = PAGEMAP_ENTRIES;
		if (sys_read_at(w->s->pagemap, entry, n * sizeof(*entry),
				at / HALE_PAGE * sizeof(*entry)))
			return false;
		for (uint64_t i = 0; i < n; i++, at += HALE_PAGE)
			if (entry[i] & (PAGEMAP_PRESENT | PAGEMAP_SWAP) &&
			    !(entry[i] & (PAGEMAP_FILE | PAGEMAP_GUARD)) &&
			    !existing(w, at, at + HALE_PAGE))
				return false;
	}
	return true;
}

static bool selection_walk(struct selection *s, const struct map *m, const struct list *written)
{
	struct memory_walk w = {.s = s,
				.written = written,
				.done = m->start,
				.keep_zero = map_kind_of(m) == MAP_KIND_FILE,
				.no_file = !m->inode};
	bool ok = !s->no_scan && walk_by_scan(&w, m->start, m->end);
	if (!ok && s->no_scan)
		ok = walk_by_entries(&w, m->start, m->end);
	return ok && (!s->incremental || add_drop(s, w.done, m->end));
}

/* Every page counts, since not all of them show up as present: parts mapped from an image by a
 * lazy restart, and private mappings of files that have no name any more. */
static bool select_all(struct selection *s, const struct map *m, const struct list *written)
{
	const struct range whole = {m->start, m->end};
	bool unsafe = !map_is_own_source(m) || guards_in(&s->guards, m->start, m->end);
	for (size_t i = 0; i < (written ? written->count : 1); i++) {
		const struct range *r = written ? list_at(written, i) : &whole;
		/* in a difference a zero page has to be named, whatever lay there before */
		if (!add_run(s, r->start, r->end, false, unsafe))
			return false;
	}
	return true;
}

bool selection_add(struct selection *s, const struct map *m, const struct list *written)
{
	enum map_kind kind = map_kind_of(m);
	if (kind == MAP_KIND_SHARED_FILE || kind == MAP_KIND_SHARED_ANON || kind == MAP_KIND_SYSV)
		return true;
	if (kind == MAP_KIND_ANON && m->inode && strcmp(m->name, "/dev/zero"))
		return select_all(s, m, written);
	return selection_walk(s, m, written);
}

bool selection_add_copy(struct selection *s, uint64_t addr, const void *copy, uint64_t pages)
{
	struct run *r = list_add(&s->runs);
	if (!r)
		return false;
	*r = (struct run){addr, (uint64_t)copy, pages, false, false};
	s->pages += pages;
	return true;
}
