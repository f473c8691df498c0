// SPDX-License-Identifier: BSD-3-Clause
/* The sink's side of pages that an older copy of the process has already: a shadow that is to jump.
 * It runs on; what is read of it is whatever it has at that moment. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/fmt.h"
#include "image/hash.h"
#include "image/live/live_offer.h"
#include "image/live/live_wire.h"

enum {
	ENTRIES = 512,	/* of pagemap, that are read at a time */
	AT_ONCE = 256,	/* pages that are copied at a time */
	OFFERED = 8192, /* fingerprints in a frame */
	RUNS = 1024,	/* runs in a frame */
};

/* Of an entry of pagemap: the process has the page, and it is not that of a file. */
#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_SWAPPED (1ull << 62)
#define ENTRY_FILE    (1ull << 61)

struct beside {
	struct sink *sink;
	int pid, pagemap;
	uint64_t entry[ENTRIES];
	uint64_t run[RUNS];
	struct fingerprint of[OFFERED];
	uint32_t runs;
	uint64_t pages, all;
	int failed; /* -errno of the stream */
};

static void offer_send(struct beside *b)
{
	if (!b->runs) /* the last one */
		b->run[0] = b->all;
	b->all += b->pages;
	struct frame f = {.kind = LIVE_OFFER,
			  .count = b->runs,
			  .table_len = (b->runs ? b->runs : 1) * sizeof(b->run[0]),
			  .data_len = b->pages * sizeof(b->of[0]),
			  .raw_len = b->pages * sizeof(b->of[0])};
	f.data_sum = hash64(b->of, f.data_len);
	live_sign(&f, b->run);
	struct iovec iov[3] = {{&f, sizeof(f)}, {b->run, f.table_len}, {b->of, f.data_len}};
	if (!b->failed)
		b->failed = live_write(b->sink->live_fd, iov, 3);
	b->runs = 0;
	b->pages = 0;
}

/* At most AT_ONCE pages. What can't be read any more is as in a fresh mapping again. */
static void pages_take(struct beside *b, uint64_t addr, char *to, uint64_t pages)
{
	struct iovec local = {to, pages * HALE_PAGE}, remote = {(void *)addr, pages * HALE_PAGE};
	long n = sys(SYS_process_vm_readv, b->pid, &local, 1, &remote, 1, 0);
	uint64_t got = n > 0 ? (uint64_t)n / HALE_PAGE : 0;
	if (got < pages)
		sys(SYS_madvise, to + got * HALE_PAGE, (pages - got) * HALE_PAGE, MADV_DONTNEED);
	if (!got)
		return;
	if (b->runs == RUNS || b->pages + got > OFFERED)
		offer_send(b);
	b->run[b->runs++] = run_make(addr, got);
	for (uint64_t i = 0; i < got; i++)
		b->of[b->pages++] = fingerprint_of(to + i * HALE_PAGE);
}

static bool is_there(uint64_t entry)
{
	return (entry & (ENTRY_PRESENT | ENTRY_SWAPPED)) && !(entry & ENTRY_FILE);
}

static bool map_take(struct beside *b, const struct map_record *m, uint64_t stage)
{
	for (uint64_t at = m->start; at < m->end && !b->failed;) {
		uint64_t pages = (m->end - at) / HALE_PAGE;
		if (pages > ENTRIES)
			pages = ENTRIES;
		long n = sys(SYS_pread64, b->pagemap, b->entry, pages * sizeof(b->entry[0]),
			     at / HALE_PAGE * sizeof(b->entry[0]));
		if (n < (long)sizeof(b->entry[0]))
			return false;
		pages = (uint64_t)n / sizeof(b->entry[0]);
		for (uint64_t i = 0, k; i < pages; i = k) {
			for (k = i + 1; k < pages && k - i < AT_ONCE &&
					is_there(b->entry[k]) == is_there(b->entry[i]);
			     k++)
				;
			if (is_there(b->entry[i]))
				pages_take(b, at + i * HALE_PAGE,
					   (char *)stage + (at - m->start) + i * HALE_PAGE, k - i);
		}
		at += pages * HALE_PAGE;
	}
	return true;
}

static bool may_equal(const struct map_record *m, uint64_t stage)
{
	return stage && m->pages && (m->kind == MAP_KIND_ANON || m->kind == MAP_KIND_FILE);
}

hale_status_t beside_offer(struct sink *s, int pid, struct error *err)
{
	struct beside *b = arena_pages(&s->arena, sizeof(*b));
	char path[64];
	if (!b)
		return error_set(err, HALE_ERR_MEMORY,
				 "no memory to build the copy of the process");
	memset(b, 0, offsetof(struct beside, entry));
	b->sink = s;
	b->pid = pid;
	b->runs = 0;
	b->pages = b->all = 0;
	b->failed = 0;
	fmt_print(path, sizeof(path), "/proc/%d/pagemap", pid);
	b->pagemap = (int)sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; b->pagemap >= 0 && i < s->t.map_count; i++)
		if (may_equal(&s->t.maps[i], s->stage[i]) &&
		    !map_take(b, &s->t.maps[i], s->stage[i]))
			break;
	if (b->pagemap >= 0)
		sys(SYS_close, b->pagemap);
	if (b->runs)
		offer_send(b);
	offer_send(b); /* no more */
	if (b->failed)
		return error_set(err, HALE_ERR_LINK,
				 "the process that was to be copied has gone, or the connection to "
				 "it has broken");
	return HALE_OK;
}
