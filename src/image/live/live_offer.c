// SPDX-License-Identifier: BSD-3-Clause
/* The source's side of pages that the sink has already. Nothing that comes is believed: lengths,
 * addresses, order and checksums are looked at. */
#include "image/live/live_offer.h"

#include <errno.h>

#include "base/clock.h"
#include "image/hash.h"
#include "image/live/live_wire.h"

#define ADDRESS_END (1ull << 47)

struct fingerprint fingerprint_of(const void *page)
{
	XXH128_hash_t h = XXH3_128bits(page, HALE_PAGE);
	return (struct fingerprint){h.low64, h.high64};
}

/* ---- taking ---- */

static int refused(const struct frame *f, int fd, uint64_t deadline, struct error *err)
{
	struct live_word word;
	if (f->kind != LIVE_REFUSED || f->table_len != sizeof(word))
		return -EPROTO;
	int rc = live_read(fd, &word, sizeof(word), deadline);
	if (rc)
		return rc;
	word.text[LIVE_TEXT - 1] = 0;
	error_set(err, word.code ? (hale_status_t)word.code : HALE_ERR_PROCESS,
		  "there is no copy: %s", word.text);
	return -ECANCELED;
}

static int runs_add(struct offer *o, const uint64_t *run, uint32_t count,
		    const struct fingerprint *of, uint64_t pages)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct offer_run *before =
		    o->runs.count ? list_at(&o->runs, o->runs.count - 1) : NULL;
		uint64_t addr = run_addr(run[i]), n = run_pages(run[i]);
		if (addr >= ADDRESS_END || n > pages ||
		    (before && addr < before->addr + before->pages * HALE_PAGE))
			return -EPROTO;
		struct offer_run *r = list_add(&o->runs);
		if (!r)
			return -ENOMEM;
		*r = (struct offer_run){addr, n, of};
		of += n;
		pages -= n;
	}
	return pages ? -EPROTO : 0;
}

int offer_take(struct offer *o, int fd, struct arena *a, uint64_t wait_ns, struct error *err)
{
	uint64_t pages = 0;
	list_init(&o->runs, a, sizeof(struct offer_run));
	o->hint = 0;
	for (;;) {
		uint64_t deadline = clock_ns() + wait_ns;
		struct frame f;
		int rc = live_read(fd, &f, sizeof(f), deadline);
		if (rc)
			return rc;
		if (!live_head_good(&f))
			return -EPROTO;
		if (f.kind != LIVE_OFFER)
			return refused(&f, fd, deadline, err);
		if (f.table_len != (f.count ? f.count : 1) * sizeof(uint64_t) ||
		    f.data_len % sizeof(struct fingerprint))
			return -EPROTO;
		uint64_t *runs = arena_alloc(a, f.table_len + sizeof(*runs));
		char *data = arena_alloc(a, f.data_len + sizeof(struct fingerprint));
		if (!runs || !data)
			return -ENOMEM;
		rc = live_read(fd, runs, f.table_len, deadline);
		if (!rc)
			rc = live_read(fd, data, f.data_len, deadline);
		if (rc)
			return rc;
		if (hash64(runs, f.table_len) != f.table_sum ||
		    hash64(data, f.data_len) != f.data_sum)
			return -EPROTO;
		if (!f.count)
			return *runs == pages && !f.data_len ? 0 : -EPROTO;
		pages += f.data_len / sizeof(struct fingerprint);
		rc = runs_add(o, runs, f.count, (const struct fingerprint *)data,
			      f.data_len / sizeof(struct fingerprint));
		if (rc)
			return rc;
	}
}

/* ---- asking ---- */

static const struct offer_run *run_with(struct offer *o, uint64_t addr)
{
	size_t low = 0, high = o->runs.count;
	const struct offer_run *r = o->hint < high ? list_at(&o->runs, o->hint) : NULL;
	if (r && addr >= r->addr && addr < r->addr + r->pages * HALE_PAGE)
		return r;
	while (low < high) {
		size_t mid = (low + high) / 2;
		r = list_at(&o->runs, mid);
		if (addr >= r->addr + r->pages * HALE_PAGE)
			low = mid + 1;
		else
			high = mid;
	}
	o->hint = low;
	r = low < o->runs.count ? list_at(&o->runs, low) : NULL;
	return r && addr >= r->addr ? r : NULL;
}

bool offer_has(struct offer *o, uint64_t addr, const void *page)
{
	const struct offer_run *r = run_with(o, addr);
	if (!r)
		return false;
	struct fingerprint here = fingerprint_of(page);
	const struct fingerprint *there = &r->of[(addr - r->addr) / HALE_PAGE];
	return here.low == there->low && here.high == there->high;
}

static bool drop(struct list *drops, uint64_t from, uint64_t to)
{
	while (from < to) {
		uint64_t n = (to - from) / HALE_PAGE;
		uint64_t *d = list_add(drops);
		if (!d)
			return false;
		if (n > RUN_PAGES_MAX)
			n = RUN_PAGES_MAX;
		*d = run_make(from, n);
		from += n * HALE_PAGE;
	}
	return true;
}

bool offer_left(const struct offer *o, const struct run *runs, size_t count, struct list *drops)
{
	size_t k = 0;
	for (size_t i = 0; i < o->runs.count; i++) {
		const struct offer_run *r = list_at(&o->runs, i);
		uint64_t at = r->addr, end = r->addr + r->pages * HALE_PAGE;
		while (k > 0 && runs[k - 1].addr + runs[k - 1].pages * HALE_PAGE > at)
			k--;
		for (; at < end && k < count; k++) {
			uint64_t from = runs[k].addr, to = from + runs[k].pages * HALE_PAGE;
			if (to <= at)
				continue;
			if (from >= end)
				break;
			if (from > at && !drop(drops, at, from))
				return false;
			at = to;
		}
		if (at < end && !drop(drops, at, end))
			return false;
	}
	return true;
}
