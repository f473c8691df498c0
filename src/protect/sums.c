/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "protect/fetch.h"
#include "protect/sums.h"
#include "protect/team.h"

/* More damaged rows or columns than this are not one fault any more. */
#define BAD_MAX 32

struct bad {
	size_t at[BAD_MAX];
	uint64_t by[BAD_MAX]; /* sum now - sum then */
	size_t count;
};

static void shape(size_t bytes, size_t *width, size_t *rows)
{
	size_t words = (bytes + 7) / 8;
	size_t w = ALIGN_UP((size_t)sqrt((double)words), 8);

	w = w < 8 ? 8 : w > 8192 ? 8192 : w;
	*width = w;
	*rows = (words + w - 1) / w;
}

size_t sums_space(size_t bytes)
{
	size_t width, rows;

	shape(bytes, &width, &rows);
	return sizeof(struct sums) + (width + rows) * 8;
}

/* Bytes are read in parts of whole rows that fit into a core's own cache: the hash reads a part
 *from memory, the sums find it in the cache. Several workers may read parts at once. What the hash
 *of all is depends on the number of bytes alone: the hash of one part, or for more parts
 *
 *	h(1) = hash of parts' hashes 0 to 511,    h(k + 1) = hash of h(k) and the next 512
 */
#define PART_BYTES ((size_t)64 << 10)
#define FOLD	   512

struct sums_scan {
	const char *base;
	size_t bytes, width, rows, part_rows;
	size_t first;		  /* number of the part that `of` begins with */
	uint64_t *row;		  /* sums of rows; NULL: only the hash */
	uint64_t *columns, *more; /* worker 0's; more[(i - 1) * width] are worker i's */
	int workers;
	bool fetch; /* the pages are slow to touch */
	struct hash128 of[FOLD];
};

typedef uint64_t word_anywhere __attribute__((aligned(1), may_alias));

/* Adds four rows to the columns at once: half the memory operations of four times one. */
__attribute__((target_clones("avx2", "default"))) static void rows_add_4(uint64_t *restrict columns,
									 uint64_t *restrict sum,
									 const char *restrict from,
									 size_t width)
{
	const word_anywhere *r0 = (const void *)from, *r1 = r0 + width, *r2 = r1 + width,
			    *r3 = r2 + width;
	uint64_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

	for (size_t i = 0; i < width; i++) {
		columns[i] += (r0[i] + r1[i]) + (r2[i] + r3[i]);
		s0 += r0[i];
		s1 += r1[i];
		s2 += r2[i];
		s3 += r3[i];
	}
	sum[0] = s0;
	sum[1] = s1;
	sum[2] = s2;
	sum[3] = s3;
}

/* The last row may be short, and its last word, too: both count as filled with zeroes. */
static uint64_t row_add(uint64_t *columns, const char *from, size_t bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i * 8 < bytes; i++) {
		uint64_t word = 0;
		memcpy(&word, from + i * 8, bytes - i * 8 < 8 ? bytes - i * 8 : 8);
		columns[i] += word;
		sum += word;
	}
	return sum;
}

/* Adds the rows of a part, which are `bytes` long together, to the columns. */
static void part_add(const struct sums_scan *s, uint64_t *columns, uint64_t *row, const char *from,
		     size_t bytes)
{
	size_t row_bytes = s->width * 8;

	while (bytes) {
		size_t count = bytes >= 4 * row_bytes ? 4 : 1;
		size_t taken = bytes < row_bytes ? bytes : count * row_bytes;

		if (count == 4)
			rows_add_4(columns, row, from, s->width);
		else
			*row = row_add(columns, from, taken);
		row += count;
		from += taken;
		bytes -= taken;
	}
}

static void part_scan(void *arg, int worker, size_t part)
{
	struct sums_scan *s = arg;
	size_t row = (s->first + part) * s->part_rows, row_bytes = s->width * 8;
	size_t end = s->rows - row < s->part_rows ? s->rows : row + s->part_rows;
	size_t from = row * row_bytes, to = end * row_bytes < s->bytes ? end * row_bytes : s->bytes;
	struct fetch_window w = {s->base + from, -1};

	if (s->fetch)
		w = fetch_open(s->base + from, to - from);
	s->of[part] = hash_bytes(w.at, to - from);
	if (s->row)
		part_add(s, worker ? s->more + (size_t)(worker - 1) * s->width : s->columns,
			 s->row + row, w.at, to - from);
	fetch_close(w);
}

/* As many workers as there may be columns for. */
static void scan_share(struct sums_scan *s, int workers)
{
	if (workers > 1 && s->row)
		s->more = calloc((size_t)(workers - 1) * s->width, sizeof *s->more);
	s->workers = workers > 1 && s->row && !s->more ? 1 : workers;
}

/* Hashes all parts, and adds them up where s->row says where to. */
static struct hash128 scan_run(struct sums_scan *s)
{
	size_t parts = (s->rows + s->part_rows - 1) / s->part_rows;
	struct hash128 all = {0};

	if (parts < 2) {
		if (parts)
			part_scan(s, 0, 0);
		return parts ? s->of[0] : hash_bytes(NULL, 0);
	}
	s->fetch = fetch_pays(s->base, s->bytes);
	for (size_t done = 0; done < parts;) {
		size_t kept = done ? 1 : 0; /* the hash of what came before is the first of these */
		size_t now = parts - done < FOLD ? parts - done : FOLD;
		struct hash128 fold[FOLD + 1];

		s->first = done;
		team_run(s->workers, now, part_scan, s);
		fold[0] = all;
		memcpy(fold + kept, s->of, now * sizeof *fold);
		all = hash_bytes(fold, (kept + now) * sizeof *fold);
		done += now;
	}
	return all;
}

static void scan_init(struct sums_scan *s, const void *base, size_t bytes)
{
	s->base = base;
	s->bytes = bytes;
	s->first = 0;
	s->row = s->more = NULL;
	s->fetch = false;
	shape(bytes, &s->width, &s->rows);
	s->part_rows = PART_BYTES / (s->width * 8);
	s->part_rows = s->part_rows < 4 ? 4 : s->part_rows / 4 * 4;
}

static struct hash128 hash_of(const void *base, size_t bytes)
{
	struct sums_scan s;

	scan_init(&s, base, bytes);
	scan_share(&s, team_size(bytes));
	return scan_run(&s);
}

/* Row and column sums of the bytes into words, and their hash. */
static struct hash128 sums_of(const void *base, size_t bytes, uint64_t *words)
{
	struct hash128 h;
	struct sums_scan s;

	scan_init(&s, base, bytes);
	s.row = words;
	s.columns = words + s.rows;
	scan_share(&s, team_size(bytes));
	memset(s.columns, 0, s.width * sizeof *s.columns);
	h = scan_run(&s);
	for (size_t i = 0; i < (size_t)(s.workers - 1) * s.width; i++)
		s.columns[i % s.width] += s.more[i];
	free(s.more);
	return h;
}

bool sums_take(struct sums *s, const void *base, size_t bytes, bool with_words)
{
	if (s->bytes != bytes || (with_words && !s->words)) {
		free(s->words);
		s->words = NULL;
		s->bytes = bytes;
		shape(bytes, &s->width, &s->rows);
		if (with_words)
			s->words = malloc((s->rows + s->width) * sizeof *s->words);
		if (with_words && !s->words)
			return false;
	}
	if (s->words) {
		s->of_bytes[0] = sums_of(base, bytes, s->words);
		s->of_words = hash_of(s->words, (s->rows + s->width) * sizeof *s->words);
	} else {
		s->of_bytes[0] = hash_of(base, bytes);
	}
	s->of_bytes[1] = s->of_bytes[2] = s->of_bytes[0];
	return true;
}

struct hash128 sums_hash(const void *base, size_t bytes)
{
	return hash_of(base, bytes);
}

void sums_refer(struct sums *s, struct hash128 to)
{
	s->of_bytes[0] = s->of_bytes[1] = s->of_bytes[2] = to;
}

void sums_fini(struct sums *s)
{
	free(s->words);
	memset(s, 0, sizeof *s);
}

/* The hash that at least two of the three copies have. */
static bool hash_voted(const struct sums *s, struct hash128 *h)
{
	*h = s->of_bytes[0];
	if (hash_same(*h, s->of_bytes[1]) || hash_same(*h, s->of_bytes[2]))
		return true;
	*h = s->of_bytes[1];
	return hash_same(*h, s->of_bytes[2]);
}

sums_verdict_t sums_verify(const struct sums *s, const void *base)
{
	struct hash128 then;

	if (!hash_voted(s, &then))
		return SUMS_UNKNOWN;
	return hash_same(hash_of(base, s->bytes), then) ? SUMS_RIGHT : SUMS_WRONG;
}

static bool bad_find(struct bad *bad, const uint64_t *now, const uint64_t *then, size_t count)
{
	bad->count = 0;
	for (size_t i = 0; i < count; i++) {
		if (now[i] == then[i])
			continue;
		if (bad->count == BAD_MAX)
			return false;
		bad->at[bad->count] = i;
		bad->by[bad->count++] = now[i] - then[i];
	}
	return true;
}

/* Takes d from a word; an index behind the end of the bytes is passed over. */
static void word_mend(const struct sums *s, char *base, size_t row, size_t column, uint64_t d)
{
	size_t at = (row * s->width + column) * 8;
	size_t n;
	uint64_t word = 0;

	if (at >= s->bytes)
		return;
	n = s->bytes - at < 8 ? s->bytes - at : 8;
	memcpy(&word, base + at, n);
	word -= d;
	memcpy(base + at, &word, n);
}

/* Mends what rows and columns tell; returns the number of words. What it did wrong, the hash shows.
 */
static int bad_mend(const struct sums *s, char *base, const struct bad *rows,
		    const struct bad *cols, bool back)
{
	bool used[BAD_MAX] = {false};
	int mended = 0;

#define MEND(r, c, d) (word_mend(s, base, r, c, back ? -(d) : (d)), mended++)
	if (rows->count == 1) {
		for (size_t c = 0; c < cols->count; c++)
			MEND(rows->at[0], cols->at[c], cols->by[c]);
		return mended;
	}
	if (cols->count == 1) {
		for (size_t r = 0; r < rows->count; r++)
			MEND(rows->at[r], cols->at[0], rows->by[r]);
		return mended;
	}
	for (size_t r = 0; r < rows->count; r++)
		for (size_t c = 0; c < cols->count; c++)
			if (!used[c] && rows->by[r] == cols->by[c]) {
				used[c] = true;
				MEND(rows->at[r], cols->at[c], rows->by[r]);
				break;
			}
#undef MEND
	return mended;
}

int sums_correct(struct sums *s, void *base)
{
	size_t count = s->rows + s->width;
	struct hash128 then, now_hash;
	struct bad rows, cols;
	uint64_t *now;
	int mended = -1;

	if (!s->words || !hash_voted(s, &then))
		return -1;
	now = malloc(count * sizeof *now);
	if (!now)
		return -1;
	now_hash = sums_of(base, s->bytes, now);
	if (hash_same(now_hash, then)) { /* the data are right: the sums take their part */
		memcpy(s->words, now, count * sizeof *now);
		s->of_words = hash_of(now, count * sizeof *now);
		s->of_bytes[0] = s->of_bytes[1] = s->of_bytes[2] = then;
		mended = 0;
	} else if (hash_same(hash_of(s->words, count * sizeof *now), s->of_words) &&
		   bad_find(&rows, now, s->words, s->rows) &&
		   bad_find(&cols, now + s->rows, s->words + s->rows, s->width)) {
		mended = bad_mend(s, base, &rows, &cols, false);
		if (!hash_same(hash_of(base, s->bytes), then)) {
			bad_mend(s, base, &rows, &cols, true);
			mended = -1;
		}
	}
	free(now);
	return mended;
}
