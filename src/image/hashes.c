// SPDX-License-Identifier: BSD-3-Clause
#include "image/hashes.h"

#include <string.h>
#include <sys/mman.h>

#include "image/hash.h"

enum { NEVER_SEEN = 0 };

/* Shared with the writing child, which fills it; no image contains it. */
struct hash_table {
	size_t bytes;
	size_t count;
	struct hashed {
		uint64_t start, end;
		size_t first; /* of sums */
	} map[];
};

/* The table of the newest tracked capture, and the one before it, until nobody compares with it. */
static struct hash_table *current, *before;

static void table_free(struct hash_table *t)
{
	if (!t)
		return;
	image_exclude_remove(t);
	sys(SYS_munmap, t, t->bytes);
}

void hashes_forget(void)
{
	if (current)
		image_exclude_remove(current);
	if (before)
		image_exclude_remove(before);
	current = before = NULL;
}

static uint64_t *sums(struct hash_table *t)
{
	return (uint64_t *)(t->map + t->count);
}

static bool is_hashed(const struct map *m)
{
	return !m->shared && !map_is_kernel(m) && !map_is_excluded(m->start, m->end);
}

static struct hash_table *table_create(const struct capture *c)
{
	size_t maps = 0, pages = 0;
	for (size_t i = 0; i < c->maps.count; i++) {
		const struct map *m = list_at(&c->maps, i);
		if (is_hashed(m)) {
			maps++;
			pages += (m->end - m->start) / HALE_PAGE;
		}
	}
	size_t bytes =
	    sizeof(struct hash_table) + maps * sizeof(struct hashed) + pages * sizeof(uint64_t);
	bytes = ALIGN_UP(bytes, HALE_PAGE);
	long p = sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_failed(p))
		return NULL;
	struct hash_table *t = (struct hash_table *)p;
	t->bytes = bytes;
	pages = 0;
	for (size_t i = 0; i < c->maps.count; i++) {
		const struct map *m = list_at(&c->maps, i);
		if (!is_hashed(m))
			continue;
		t->map[t->count++] = (struct hashed){m->start, m->end, pages};
		pages += (m->end - m->start) / HALE_PAGE;
	}
	image_exclude_add(t, bytes);
	return t;
}

void hashes_tidy(void)
{
	table_free(before);
	before = NULL;
}

void hashes_renew(struct capture *c)
{
	c->hashes_old = c->incremental ? current : NULL;
	if (!c->params.track)
		return;
	before = current;
	current = table_create(c);
	c->hashes_new = current;
}

static uint64_t *sum_of(struct hash_table *t, uint64_t addr)
{
	size_t low = 0, high = t ? t->count : 0;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (addr >= t->map[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	if (!t || low == t->count || addr < t->map[low].start)
		return NULL;
	return &sums(t)[t->map[low].first + (addr - t->map[low].start) / HALE_PAGE];
}

/* Notes the sums of all pages that a mapping has, and which of them are new. */
static bool compare_map(struct capture *c, const struct map *m, struct map_written *w)
{
	struct selection sel;
	bool ok = selection_init(&sel, &c->arena, false) && selection_open(&sel) &&
		  selection_add(&sel, m, NULL);
	if (ok && sel.pages && !(m->prot & PROT_READ))
		sys(SYS_mprotect, m->start, m->end - m->start, PROT_READ);
	w->whole = false;
	for (size_t i = 0; ok && i < sel.runs.count; i++) {
		const struct run *r = list_at(&sel.runs, i);
		if (r->unsafe) {
			w->whole = true;
			break;
		}
		for (uint64_t k = 0; k < r->pages; k++) {
			uint64_t addr = r->addr + k * HALE_PAGE;
			uint64_t sum = hash64((const void *)addr, HALE_PAGE);
			uint64_t *old = sum_of(c->hashes_old, addr);
			uint64_t *now = sum_of(c->hashes_new, addr);
			sum += sum == NEVER_SEEN;
			if (now)
				*now = sum;
			if (old && *old == sum)
				continue;
			struct range *range = list_add(&w->ranges);
			if (!range)
				return false;
			*range = (struct range){addr, addr + HALE_PAGE};
		}
	}
	selection_close(&sel);
	return ok;
}

bool hashes_compare(struct capture *c)
{
	for (size_t i = 0; i < c->written.count; i++) {
		const struct map *m = list_at(&c->maps, i);
		if (is_hashed(m) && !compare_map(c, m, list_at(&c->written, i)))
			return false;
	}
	return true;
}
