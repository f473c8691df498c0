/* SPDX-License-Identifier: BSD-3-Clause */
/* Is what has a name now a file that the job has made, or another program's? The job writes down
 * that there was nothing of the name before it makes a file, and afterwards which file that is. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "journal/revert.h"

struct revert_making {
	uint64_t inode, born_ns; /* 0: it was about to be made */
	uint64_t path;		 /* its hash */
};

static uint64_t hash_of(const char *path)
{
	return XXH3_64bits(path, strlen(path));
}

void revert_making_note(struct reverting *r, const struct journal_record *c)
{
	struct revert_making *m;

	if (c->kind != JOURNAL_ABSENT && c->kind != JOURNAL_MADE)
		return;
	if (r->making_count == r->making_cap) {
		size_t cap = r->making_cap ? 2 * r->making_cap : 256;
		m = realloc(r->makings, cap * sizeof(*m));
		if (!m) {
			r->makings_lost = 1;
			return;
		}
		r->makings = m;
		r->making_cap = cap;
	}
	m = &r->makings[r->making_count++];
	*m = (struct revert_making){.path = hash_of((const char *)(c + 1))};
	if (c->kind == JOURNAL_MADE) {
		m->inode = c->inode;
		m->born_ns = c->born_ns;
	}
}

static int by_inode(const void *a, const void *b)
{
	const struct revert_making *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return x->born_ns < y->born_ns ? -1 : x->born_ns > y->born_ns;
}

void revert_makings_end(struct reverting *r)
{
	if (r->making_count)
		qsort(r->makings, r->making_count, sizeof(*r->makings), by_inode);
}

/* Only where each making of that name has ended, and is known: a process may have died in one, and
 * one that another program makes for it (posix_spawn) is not known. */
int revert_is_foreign(const struct reverting *r, const char *path, const struct statx *now)
{
	const uint64_t born =
	    now->stx_mask & STATX_BTIME
		? (uint64_t)now->stx_btime.tv_sec * 1000000000 + now->stx_btime.tv_nsec
		: 0;
	const struct revert_making key = {.inode = now->stx_ino, .born_ns = born};
	const uint64_t hash = hash_of(path);
	size_t begun = 0, ended = 0;

	if (!born || born < r->begin_ns || !S_ISREG(now->stx_mode) || !r->making_count ||
	    r->makings_lost ||
	    bsearch(&key, r->makings, r->making_count, sizeof(key), by_inode) != NULL)
		return 0;
	for (size_t i = 0; i < r->count; i++) /* it has come back by this undoing */
		if (r->aliases[i].inode == now->stx_ino)
			return 0;
	for (size_t i = 0; i < r->making_count; i++) {
		begun += r->makings[i].path == hash && !r->makings[i].inode;
		ended += r->makings[i].path == hash && r->makings[i].inode;
	}
	return begun > 0 && begun == ended;
}
