/* SPDX-License-Identifier: BSD-3-Clause */
/* A large block from one member to all by single copies that all of them make (scatter and
 * allgather). The block has a part for each member, counted from the root. The root writes part i
 * into the memory of the i-th reader, which has offered its buffer; each reader reads part 0 from
 * the root and the others from their owners as they come: n - 1 copies of the block, shared by n
 * processes. Hardly two of them work on one process's memory at a time, whose page tables have one
 * lock.
 *
 * Who comes late holds up nobody: after some patience the root says that it's over (what has no
 * owner then is read from itself), and who owns nothing reads everything from it. Only owners read
 * from each other, and wait for each other in the end.
 *
 *	root	  header address, offset = COLL_PARTS | over | owners (bit i: the i-th reader). It
 *		  only grows; no safe point before it's over
 *	reader	  header address of its buffer, if it comes before it's over; 0: of none
 */
#include "coll/cells/cells.h"

#include "base/yield.h"

/* The root waits for readers about as long as copying the block would take. */
enum { PATIENCE_BYTES_A_NS = 8, PART_ALIGN = 4096 };

static const uint64_t OVER = 1ull << 62, OWNERS = ((1ull << COLL_PARTS_MEMBERS) - 1) & ~1ull;
_Static_assert(COLL_PARTS_MEMBERS < 62, "bits of one word");

static int nth(const struct coll_home *h, int root, int i)
{
	return (root + i) % h->n;
}

struct cells_parts_part {
	size_t at, bytes;
};

static struct cells_parts_part part_of(const struct coll_home *h, size_t bytes, int i)
{
	size_t each = ALIGN_UP((bytes + (size_t)h->n - 1) / (size_t)h->n, (size_t)PART_ALIGN);
	size_t at = (size_t)i * each < bytes ? (size_t)i * each : bytes;
	return (struct cells_parts_part){at, bytes - at < each ? bytes - at : each};
}

/* Writes the parts of those that have offered their buffers since, and says so in *word. Have any
 * been settled, be it that they can't be written to? */
static bool write_parts(struct coll_home *h, uint64_t k, const char *p, size_t bytes,
			_Atomic uint64_t *word, uint64_t *settled, struct way_clock *clock)
{
	uint64_t before = *settled;
	for (int i = 1; i < h->n; i++) {
		int member = nth(h, h->rank, i);
		struct coll_header *d = cells_header(h, member, k);
		if (*settled & 1ull << i || !cells_reached(&d->seq, k))
			continue;
		*settled |= 1ull << i;
		struct cells_parts_part part = part_of(h, bytes, i);
		way_clock_start(clock);
		bool written = d->address && cells_write(h, member, d->address + part.at,
							 p + part.at, part.bytes);
		way_clock_stop(clock);
		if (!written)
			continue;
		atomic_fetch_or_explicit(word, 1ull << i, memory_order_seq_cst);
		cells_ring(h);
	}
	return *settled != before;
}

void cells_parts_give(struct coll_home *h, uint64_t k, const void *p, size_t bytes,
		      struct way_clock *clock)
{
	_Atomic uint64_t *word = &cells_header(h, h->rank, k)->offset;
	uint64_t all = ((1ull << h->n) - 1) & ~1ull, settled = h->mirror ? all : 0;
	uint64_t until = clock_ns() + bytes / PATIENCE_BYTES_A_NS;
	while (settled != all) {
		if (write_parts(h, k, p, bytes, word, &settled, clock))
			continue;
		if (clock_ns() > until)
			break;
		struct yields once = {0};
		if (!cells_crowded())
			cpu_relax();
		else if (!yield_core(&once))
			break;
	}
	atomic_fetch_or_explicit(word, OVER, memory_order_seq_cst);
	cells_ring(h);
}

/* ---- readers ---- */

struct taking {
	struct coll_home *h;
	uint64_t k;
	int root, own; /* own: which part would be this reader's */
	char *p;
	size_t bytes;
	struct way_clock *clock;
};

static int read_part(const struct taking *t, int member, struct cells_parts_part part)
{
	uint64_t from = cells_deposit_of(t->h, member, t->k)->address;
	way_clock_start(t->clock);
	int rc = cells_read(t->h, member, from + part.at, t->p + part.at, part.bytes);
	way_clock_stop(t->clock);
	return rc;
}

static uint64_t word_of(const struct taking *t)
{
	return atomic_load_explicit(&cells_deposit_of(t->h, t->root, t->k)->offset,
				    memory_order_acquire);
}

/* An owner reads the other owners' parts, the one after its own first, so that few come to the
 * same. Returns which parts it has. */
static uint64_t read_owned(const struct taking *t, uint64_t have, int *rc)
{
	for (;;) {
		uint64_t word = word_of(t), missing = word & OWNERS & ~have;
		if (missing) {
			uint64_t after = missing & ~((2ull << t->own) - 1);
			int i = __builtin_ctzll(after ? after : missing);
			int read = read_part(t, nth(t->h, t->root, i), part_of(t->h, t->bytes, i));
			*rc = *rc ? *rc : read;
			have |= 1ull << i;
		} else if (word & OVER) {
			return have;
		} else {
			cells_wait(&cells_deposit_of(t->h, t->root, t->k)->offset, word + 1);
		}
	}
}

/* Until this reader is an owner, or it's over. */
static bool owner_or_over(const struct taking *t)
{
	for (;;) {
		uint64_t word = word_of(t);
		if (word & 1ull << t->own)
			return true;
		if (word & OVER)
			return false;
		cells_wait(&cells_deposit_of(t->h, t->root, t->k)->offset, word + 1);
	}
}

static int take_as_owner(const struct taking *t)
{
	struct coll_home *h = t->h;
	int rc = MPI_SUCCESS;
	uint64_t have = read_owned(t, 1ull | 1ull << t->own, &rc);
	for (int i = 1; i < h->n; i++) {
		int read =
		    have & 1ull << i ? MPI_SUCCESS : read_part(t, t->root, part_of(h, t->bytes, i));
		rc = rc ? rc : read;
	}
	uint64_t owners = word_of(t) & OWNERS & ~(1ull << t->own);
	cells_finish_ring(h, t->k);
	for (int i = 1; i < h->n; i++)
		if (owners & 1ull << i)
			cells_wait(&h->cells[nth(h, t->root, i)]->progress, cells_done(t->k));
	return rc;
}

int cells_parts_take(struct coll_home *h, uint64_t k, int root, void *p, size_t bytes,
		     struct way_clock *clock)
{
	struct taking t = {h, k, root, (h->rank - root + h->n) % h->n, p, bytes, clock};
	struct cells_parts_part rest = {0, bytes};
	int rc = MPI_SUCCESS;
	if (!(word_of(&t) & OVER)) {
		cells_point(h, k, p, bytes, 0);
		cells_publish_ring(h, k);
		struct cells_parts_part first = part_of(h, bytes, 0);
		rc = read_part(&t, root, first);
		if (owner_or_over(&t)) {
			int others = take_as_owner(&t);
			return rc ? rc : others;
		}
		rest = (struct cells_parts_part){first.bytes, bytes - first.bytes};
	}
	int read = read_part(&t, root, rest);
	cells_finish_ring(h, k);
	return rc ? rc : read;
}
