// SPDX-License-Identifier: BSD-3-Clause
#include "image/live/live_stage.h"

#include <string.h>
#include <sys/mman.h>

#define HUGE	      (2ul << 20)
#define ADDRESS_END   (1ul << 47)
#define GAP_MOST      (1ul << 45)
#define GAP_LEAST     (1ul << 36)
#define CLUSTER_REACH (1ul << 38) /* nearer mappings are neighbours */
#define CLUSTER_SLACK (1ul << 40) /* room to grow, on both sides */

struct cluster {
	uint64_t low, high; /* addresses of the source that it has room for */
	uint64_t stage;	    /* where low is staged */
};

struct piece {
	uint64_t start, end, stage;
	uint64_t file_at; /* of a file: what of it would be at address 0 */
	uint32_t kind;
	bool grows_down, huge;
	const char *path;
	struct file_stamp stamp;
};

static hale_status_t no_memory(struct error *err)
{
	return error_set(err, HALE_ERR_MEMORY, "no memory to build the copy of the process");
}

/* ---- places ---- */

hale_status_t live_stage_init(struct sink *s, struct live_stage *l, struct error *err)
{
	list_init(&l->clusters, &s->arena, sizeof(struct cluster));
	list_init(&l->pieces, &s->arena, sizeof(struct piece));
	/* the source's memory isn't known yet, and may go anywhere later */
	for (uint64_t len = GAP_MOST; len >= GAP_LEAST; len /= 2)
		if (sink_reserve_gap(s, len)) {
			l->free = s->gap + s->scratch.reserved;
			return HALE_OK;
		}
	return error_set(err, HALE_ERR_MEMORY,
			 "no room in the address space to build the copy: raise `ulimit -v`");
}

static hale_status_t no_room(const struct map_record *m, struct error *err)
{
	return error_set(err, HALE_ERR_AGAIN,
			 "the program has mapped memory at %lx, where there is no room for it in "
			 "the copy that is being built: try again",
			 (unsigned long)m->start);
}

/* Between other clusters, with room on both sides as far as there is some. */
static bool cluster_add(struct sink *s, struct live_stage *l, uint64_t start, uint64_t end)
{
	uint64_t limit = s->gap + s->gap_len - (PROCESS_REGIONS << 20);
	uint64_t low = 0, high = ADDRESS_END, slack = CLUSTER_SLACK;
	for (size_t i = 0; i < l->clusters.count; i++) {
		const struct cluster *c = list_at(&l->clusters, i);
		if (c->low < end && c->high > start)
			return false;
		if (c->high <= start && c->high > low)
			low = c->high;
		if (c->low >= end && c->low < high)
			high = c->low;
	}
	while (slack && end - start + 2 * slack + 2 * HUGE > limit - l->free)
		slack /= 2;
	low = start - low > slack ? (start - slack) & ~(HUGE - 1) : low;
	high = high - end > slack ? ALIGN_UP(end + slack, HUGE) : high;
	if (high - low + 2 * HUGE > limit - l->free)
		return false;
	struct cluster *c = list_add(&l->clusters);
	if (!c)
		return false;
	/* congruent modulo the size of a huge page: then whole page tables move */
	*c = (struct cluster){low, high, ALIGN_UP(l->free, HUGE) + low % HUGE};
	l->free = c->stage + (high - low);
	return true;
}

static uint64_t place_of(const struct live_stage *l, const struct map_record *m)
{
	for (size_t i = 0; i < l->clusters.count; i++) {
		const struct cluster *c = list_at(&l->clusters, i);
		if (m->start >= c->low && m->end <= c->high)
			return c->stage + (m->start - c->low);
	}
	return 0;
}

static hale_status_t place_all(struct sink *s, struct live_stage *l, struct error *err)
{
	const struct map_record *m = s->t.maps;
	for (size_t i = 0; i < s->t.map_count; i++) {
		if (m[i].start < s->gap + s->gap_len && m[i].end > s->gap)
			return no_room(&m[i], err);
		s->shared_fd[i] = -1;
		if ((s->stage[i] = place_of(l, &m[i])))
			continue;
		size_t last = i;
		while (last + 1 < s->t.map_count && !place_of(l, &m[last + 1]) &&
		       m[last + 1].start - m[last].end < CLUSTER_REACH)
			last++;
		if (!cluster_add(s, l, m[i].start, m[last].end) ||
		    !(s->stage[i] = place_of(l, &m[i])))
			return no_room(&m[i], err);
	}
	return HALE_OK;
}

/* ---- pieces ---- */

static bool is_shared(const struct map_record *m)
{
	return m->kind == MAP_KIND_SHARED_FILE || m->kind == MAP_KIND_SHARED_ANON;
}

static struct piece piece_of(const struct sink *s, const struct map_record *m, uint64_t stage)
{
	struct piece p = {.start = m->start,
			  .end = m->end,
			  .stage = stage,
			  .kind = m->kind,
			  .grows_down = m->flags & MAP_FLAG_GROWSDOWN};
	if (m->kind == MAP_KIND_FILE) {
		p.file_at = m->offset - m->start;
		p.path = s->t.map_text + m->path_offset;
		p.stamp = m->stamp;
	}
	return p;
}

static bool is_same(const struct piece *a, const struct piece *b)
{
	if (a->kind != b->kind || a->grows_down != b->grows_down)
		return false;
	return a->kind != MAP_KIND_FILE || (a->file_at == b->file_at && !strcmp(a->path, b->path) &&
					    file_stamp_same(&a->stamp, &b->stamp));
}

/* A part of a mapping for which nothing is staged, or something else. */
static hale_status_t stage_part(struct sink *s, struct list *pieces, size_t i, uint64_t start,
				uint64_t end, struct error *err)
{
	struct map_record part = s->t.maps[i];
	if (start == end)
		return HALE_OK;
	if (part.kind == MAP_KIND_FILE || is_shared(&part))
		part.offset += start - part.start;
	part.start = start;
	part.end = end;
	uint64_t at = s->stage[i] + (start - s->t.maps[i].start);
	hale_status_t rc = sink_stage_map(s, i, &part, at, err);
	struct piece *p = rc == HALE_OK ? list_add(pieces) : NULL;
	if (!p)
		return rc != HALE_OK ? rc : no_memory(err);
	*p = piece_of(s, &part, at);
	return HALE_OK;
}

/* Mapping number i: keeps what of it is staged, makes the rest. *next: the first old piece that
 * may reach into it. */
static hale_status_t stage_map(struct sink *s, const struct list *old, struct list *pieces,
			       size_t i, size_t *next, struct error *err)
{
	const struct map_record *m = &s->t.maps[i];
	struct piece wanted = piece_of(s, m, s->stage[i]);
	uint64_t done = m->start;
	while (*next < old->count && ((struct piece *)list_at(old, *next))->end <= m->start)
		(*next)++;
	for (size_t k = *next; k < old->count; k++) {
		const struct piece *o = list_at(old, k);
		if (o->start >= m->end)
			break;
		if (!is_same(o, &wanted))
			continue; /* what is staged there is mapped over */
		uint64_t start = o->start > m->start ? o->start : m->start;
		uint64_t end = o->end < m->end ? o->end : m->end;
		hale_status_t rc = stage_part(s, pieces, i, done, start, err);
		struct piece *p = rc == HALE_OK ? list_add(pieces) : NULL;
		if (!p)
			return rc != HALE_OK ? rc : no_memory(err);
		*p = *o;
		p->stage += start - o->start;
		p->start = start;
		p->end = end;
		done = end;
	}
	return stage_part(s, pieces, i, done, m->end, err);
}

/* What of the old pieces lies in no mapping any more. */
static void unstage_gaps(const struct sink *s, const struct list *old)
{
	size_t k = 0;
	for (size_t i = 0; i < old->count; i++) {
		const struct piece *o = list_at(old, i);
		uint64_t at = o->start;
		while (k < s->t.map_count && s->t.maps[k].end <= at)
			k++;
		for (size_t j = k; at < o->end; j++) {
			bool more = j < s->t.map_count && s->t.maps[j].start < o->end;
			uint64_t until = more ? s->t.maps[j].start : o->end;
			if (until > at)
				sys(SYS_munmap, o->stage + (at - o->start), until - at);
			at = more ? s->t.maps[j].end : o->end;
		}
	}
}

/* Pages come for a mapping of a file that the program can't write now; it could before. */
static void make_writable(const struct sink *s)
{
	for (size_t i = 0; i < s->t.map_count; i++) {
		const struct map_record *m = &s->t.maps[i];
		if (m->kind == MAP_KIND_FILE && m->pages)
			sys(SYS_mprotect, s->stage[i], m->end - m->start, PROT_READ | PROT_WRITE);
	}
}

hale_status_t live_stage_maps(struct sink *s, struct live_stage *l, bool last, struct error *err)
{
	struct list old = l->pieces, pieces;
	size_t count = s->t.map_count, next = 0;
	list_init(&pieces, &s->arena, sizeof(struct piece));
	s->stage = arena_alloc(&s->arena, (count + 1) * sizeof(*s->stage));
	s->shared_fd = arena_alloc(&s->arena, (count + 1) * sizeof(*s->shared_fd));
	if (!s->stage || !s->shared_fd)
		return no_memory(err);
	hale_status_t rc = place_all(s, l, err);
	if (rc == HALE_OK)
		unstage_gaps(s, &old);
	for (size_t i = 0; i < count && rc == HALE_OK; i++)
		if (!is_shared(&s->t.maps[i]) || last)
			rc = stage_map(s, &old, &pieces, i, &next, err);
		else
			s->stage[i] = 0; /* nothing is there that pages could be put into */
	l->pieces = pieces;
	if (rc == HALE_OK)
		make_writable(s);
	return rc;
}

void live_stage_clear(const struct live_stage *l)
{
	for (size_t i = 0; i < l->pieces.count; i++) {
		const struct piece *p = list_at(&l->pieces, i);
		sys(SYS_madvise, p->stage, p->end - p->start, MADV_DONTNEED);
	}
}
