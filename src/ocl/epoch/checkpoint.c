/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoints of a domain: what is saved, how it becomes valid, and the way back. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"
#include "ocl/ocl.h"

static bool opt(unsigned bit)
{
	return ocl.set.opt & bit;
}

bool ocl_content_is_alive(const struct domain *d, const struct mem *m)
{
	if (OBJ(m)->refs > 0)
		return true;
	for (const struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next)
		if (o->kind == OCL_MEM && o->refs > 0 && ((const struct mem *)o)->root == m)
			return true;
	return false;
}

static size_t bytes_of(const struct mem *m, size_t i)
{
	size_t at = i * m->chunk_size;

	return m->size - at < m->chunk_size ? m->size - at : m->chunk_size;
}

static off_t place_of(const struct mem *m, size_t chunk, int slot)
{
	return m->at + slot * m->span + (off_t)(chunk * m->chunk_size);
}

static bool has_place(struct domain *d, struct mem *m)
{
	if (m->at < 0)
		m->at = ocl_store_take(d, 2 * m->span);
	return m->at >= 0;
}

/* Chunks of an object may be visited by several threads at a time (copy.c). */
static void count(uint64_t *sum, size_t n)
{
	__atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}

/* ---- saving from the device ---- */

static bool save_chunk(void *arg, struct mem *m, size_t i, void *data, size_t size)
{
	struct domain *d = arg;
	struct chunk *c = &m->chunks[i];
	bool hashes = opt(OCL_OPT_HASH) || ocl.set.check == OCL_CHECK_SCRUB;

	if (hashes)
		ocl_hash(data, size, c->next_hash);
	if (opt(OCL_OPT_HASH) && c->slot >= 0 && c->hashed &&
	    memcmp(c->hash, c->next_hash, sizeof(c->hash)) == 0) {
		count(&ocl.report.skipped, size);
		return true;
	}
	c->next = c->slot == 0 ? 1 : 0;
	if (!ocl_store_write(d, place_of(m, i, c->next), data, size))
		return false;
	count(&ocl.report.saved, size);
	count(&d->checkpoint_bytes, size);
	return true;
}

static bool shares(struct domain *d)
{
	struct queue *q = ocl_any_queue(d);
	cl_bool unified = CL_FALSE;

	if (q)
		NEXT->clGetDeviceInfo(q->device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(unified),
				      &unified, NULL);
	return unified && !ocl.staged;
}

/* Which chunks changed, by hashes that the device computes where they lie. NULL: not known. */
static bool *changed_chunks(struct domain *d, struct mem *m)
{
	uint64_t(*hash)[2];
	bool *want;

	if (!opt(OCL_OPT_HASH) || shares(d) || !m->saved)
		return NULL;
	hash = calloc(m->chunk_count, sizeof(*hash));
	want = malloc(m->chunk_count * sizeof(*want));
	if (!hash || !want || !ocl_hash_on_device(d, m, hash)) {
		free(hash);
		free(want);
		return NULL;
	}
	for (size_t i = 0; i < m->chunk_count; i++) {
		struct chunk *c = &m->chunks[i];
		want[i] =
		    c->slot < 0 || !c->hashed || memcmp(c->hash, hash[i], sizeof(c->hash)) != 0;
		if (!want[i])
			ocl.report.skipped += bytes_of(m, i);
	}
	free(hash);
	return want;
}

static bool save_object(struct domain *d, struct mem *m)
{
	bool *want;
	bool good;

	if (!has_place(d, m))
		return false;
	want = changed_chunks(d, m);
	good = ocl_copy_out(d, m, want, save_chunk, d);
	free(want);
	return good;
}

/* ---- consolidation: what only the host wrote is known from the log (VOCL-FT 5.1.3) ---- */

static bool put_bytes(struct domain *d, struct mem *m, size_t at, const char *data, size_t size)
{
	while (size > 0) {
		size_t i = at / m->chunk_size, inside = at % m->chunk_size;
		size_t n = m->chunk_size - inside < size ? m->chunk_size - inside : size;
		struct chunk *c = &m->chunks[i];

		if (i >= m->chunk_count)
			return true; /* can't be: the runtime took it */
		if (c->slot < 0)
			c->slot = 0;
		c->hashed = false;
		if (!ocl_store_write(d, place_of(m, i, c->slot) + (off_t)inside, data, n))
			return false;
		ocl.report.consolidated += n;
		at += n;
		data += n;
		size -= n;
	}
	return true;
}

static bool put_rect(struct domain *d, struct mem *m, const struct ocl_entry *e, const char *data)
{
	size_t row = e->pitch[0] ? e->pitch[0] : e->region[0];
	size_t slice = e->pitch[1] ? e->pitch[1] : row * e->region[1];
	size_t host_row = e->pitch[2] ? e->pitch[2] : e->region[0];
	size_t host_slice = e->pitch[3] ? e->pitch[3] : host_row * e->region[1];

	for (size_t z = 0; z < e->region[2]; z++)
		for (size_t y = 0; y < e->region[1]; y++)
			if (!put_bytes(d, m,
				       e->dst->offset + (e->a[2] + z) * slice +
					   (e->a[1] + y) * row + e->a[0],
				       data + (e->b[2] + z) * host_slice +
					   (e->b[1] + y) * host_row + e->b[0],
				       e->region[0]))
				return false;
	return true;
}

/* Read-only by its flags, but a kernel got it without const; or by a pointer to const, which can be
 * cast away: its hash is looked at, to be sure. A scrub does that itself. */
static bool is_suspect(const struct mem *m)
{
	return opt(OCL_OPT_HASH) &&
	       (m->writes_seen || (m->promised && ocl.set.check != OCL_CHECK_SCRUB));
}

/* Objects of which the log has every write. Images are saved from the device. */
static bool consolidates(const struct mem *m)
{
	if (is_suspect(m))
		return false;
	/* where nobody has written, anything may be beside what somebody has: a scrub is to know */
	if (m->modified == (OCL_FRESH | OCL_BY_HOST) && ocl.set.check == OCL_CHECK_SCRUB)
		return false;
	return opt(OCL_OPT_MOD) && m->modified && !(m->modified & OCL_BY_DEVICE) &&
	       m->type == CL_MEM_OBJECT_BUFFER && OBJ(m)->kind == OCL_MEM;
}

void ocl_content_unlogged(struct domain *d)
{
	for
		EACH_CONTENT(d, m)
	m->modified |= OCL_BY_DEVICE;
}

/* The object that e is to be put into; NULL: none. */
static struct mem *consolidated_by(struct domain *d, const struct ocl_entry *e)
{
	struct mem *m = e->dst ? e->dst->root : NULL;

	return m && ocl_entry_consolidates(e) && consolidates(m) && !ocl_scratch_is_over(m) &&
		       ocl_content_is_alive(d, m)
		   ? m
		   : NULL;
}

/* Of what overwrites an object as a whole only the last has to be put there, and what is behind. */
static void find_last_whole(struct domain *d)
{
	for
		EACH_CONTENT(d, m)
	m->whole = 0;
	for (struct ocl_entry *e = d->has_writes ? d->first : NULL; e; e = e->next) {
		struct mem *m = consolidated_by(d, e);

		if (m && (e->op == OP_INIT || (e->op == OP_WRITE && e->dst->offset + e->a[0] == 0 &&
					       e->region[0] == m->size)))
			m->whole = e->order;
	}
}

static bool consolidate_entry(struct domain *d, struct ocl_entry *e)
{
	struct mem *m = consolidated_by(d, e);
	void *owned;
	const char *data;
	bool good = false;

	if (!m || e->order < m->whole)
		return true;
	data = ocl_log_data(d, e, &owned);
	if (!data || !has_place(d, m))
		m->modified |= OCL_BY_DEVICE;
	else if (e->op == OP_WRITE_RECT)
		good = put_rect(d, m, e, data);
	else
		good = put_bytes(d, m, e->op == OP_INIT ? 0 : e->dst->offset + e->a[0], data,
				 e->region[0]);
	free(owned);
	return good;
}

static bool consolidate(struct domain *d)
{
	double start = clock_seconds();
	bool good = true;

	find_last_whole(d);
	for (struct ocl_entry *e = d->has_writes ? d->first : NULL; e && good; e = e->next)
		good = consolidate_entry(d, e);
	for
		EACH_CONTENT(d, m)
	if (consolidates(m) && !ocl_scratch_is_over(m) && ocl_content_is_alive(d, m) &&
	    has_place(d, m))
		for (size_t i = 0; i < m->chunk_count; i++)
			if (m->chunks[i].slot < 0)
				m->chunks[i].slot = 0;
	ocl.report.consolidate += clock_seconds() - start;
	return good;
}

/* ---- a checkpoint ---- */

static bool needs_saving(const struct mem *m)
{
	if (!opt(OCL_OPT_MOD))
		return true;
	if (consolidates(m))
		return false;
	return m->modified || !m->saved || is_suspect(m);
}

static bool is_to_save(const struct mem *m)
{
	return !ocl_scratch_is_over(m) && needs_saving(m) &&
	       ocl_content_is_alive(OBJ(m)->domain, m);
}

static bool save_all(struct domain *d)
{
	bool good = ocl_content_show(d, false, is_to_save);

	d->checkpoint_bytes = 0;
	for
		EACH_CONTENT(d, m)
	if (good && is_to_save(m))
		good = save_object(d, m);
	return ocl_content_hide(d) && good;
}

static void discard(struct domain *d)
{
	for
		EACH_CONTENT(d, m)
	for (size_t i = 0; i < m->chunk_count; i++)
		m->chunks[i].next = -1;
}

static void warn_of_writes(struct mem *m)
{
	if (m->promised)
		log_warn("opencl: a kernel casts const away and writes to an object of %lu bytes; "
			 "it is saved like the others from now on",
			 (unsigned long)m->size);
	else
		log_warn("opencl: a kernel wrote to an object that was made CL_MEM_READ_ONLY or "
			 "told to be read-only; it is saved like the others from now on");
	m->distrusted |= m->promised;
	m->read_only = m->told_read_only = m->writes_seen = false;
}

static void commit_object(struct mem *m)
{
	bool hashes = opt(OCL_OPT_HASH) || ocl.set.check == OCL_CHECK_SCRUB;
	bool knew = m->saved && m->modified == OCL_CLEAN && is_suspect(m);
	bool changed = false;

	for (size_t i = 0; i < m->chunk_count; i++) {
		struct chunk *c = &m->chunks[i];
		if (c->next < 0)
			continue;
		changed |= c->hashed;
		c->slot = c->next;
		c->next = -1;
		c->hashed = hashes;
		memcpy(c->hash, c->next_hash, sizeof(c->hash));
	}
	if (knew && changed)
		warn_of_writes(m);
}

static void commit(struct domain *d)
{
	bool consolidated;

	for
		EACH_CONTENT(d, m)
	commit_object(m);
	consolidated = consolidate(d);
	if (!consolidated && !d->unprotected)
		log_warn("opencl: what the program wrote could not be added to a checkpoint; an "
			 "error before the next one can't be mended");
	d->unprotected = !consolidated;
	d->dropped = false;
	for
		EACH_CONTENT(d, m)
		{
			m->saved = !ocl_scratch_is_over(m) && consolidated;
			m->filled |= m->modified & (OCL_BY_HOST | OCL_BY_DEVICE) || m->writes_seen;
			m->modified = OCL_CLEAN;
			m->writes_seen = m->promised = false;
		}
	ocl_log_clear(d);
}

ocl_saved_t ocl_checkpoint_save(struct domain *d)
{
	double start = clock_seconds();
	bool saved;

	if (!ocl_store_open(d)) {
		ocl_log_capture_all(d);
		return OCL_SAVE_FAILED;
	}
	ocl_scratch_look(d);
	saved = save_all(d);
	ocl.report.checkpoint += clock_seconds() - start;
	if (!saved) { /* the one before it and the log still serve */
		if (!d->store.told && !ocl_store_is_gone(&d->store))
			log_warn(
			    "opencl: a checkpoint could not be taken: the runtime does not "
			    "give the content of some object; the log of commands serves instead");
		d->store.told |= !ocl_store_is_gone(&d->store);
		discard(d);
		ocl_log_capture_all(d);
		return OCL_SAVE_FAILED;
	}
	if (ocl_detect_errors(d, OCL_AT_CHECKPOINT, clock_seconds())) {
		discard(d);
		return OCL_SAVE_ERRORS;
	}
	commit(d);
	ocl.report.checkpoints++;
	return OCL_SAVED;
}

/* ---- back ---- */

static bool load_chunk(void *arg, struct mem *m, size_t i, void *data, size_t size)
{
	count(&ocl.report.restored, size);
	if (m->chunks[i].slot < 0) {
		memset(data, 0, size);
		return true;
	}
	return ocl_store_read(arg, place_of(m, i, m->chunks[i].slot), data, size);
}

static bool is_saved(const struct mem *m)
{
	return m->saved;
}

bool ocl_checkpoint_restore(struct domain *d)
{
	double start = clock_seconds();
	bool good = ocl_content_show(d, true, is_saved);

	for
		EACH_CONTENT(d, m)
	if (good && m->saved)
		good = ocl_copy_in(d, m, load_chunk, d);
	good = ocl_content_hide(d) && good;
	ocl.report.restore += clock_seconds() - start;
	return good;
}

static bool damage_chunk(void *arg, struct mem *m, size_t i, void *data, size_t size)
{
	memset(data, 0xa5, size);
	return true;
}

/* A pretended error that left memory as it was would show nothing. */
void ocl_checkpoint_damage(struct domain *d)
{
	for
		EACH_CONTENT(d, m)
	if (!(m->flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) || OBJ(m)->kind != OCL_SVM)
		ocl_copy_in(d, m, damage_chunk, NULL);
}

/* ---- scrubbing ---- */

struct scrub {
	struct domain *d;
	bool wrong;
};

static bool file_hash(struct domain *d, struct mem *m, size_t i)
{
	struct chunk *c = &m->chunks[i];
	size_t size = bytes_of(m, i);
	void *data = malloc(size ? size : 1);

	c->hashed = data && c->slot >= 0 && ocl_store_read(d, place_of(m, i, c->slot), data, size);
	if (c->hashed)
		ocl_hash(data, size, c->hash);
	free(data);
	return c->hashed;
}

static bool scrub_chunk(void *arg, struct mem *m, size_t i, void *data, size_t size)
{
	struct scrub *s = arg;
	struct chunk *c = &m->chunks[i];
	uint64_t h[2];

	if (!c->hashed && !file_hash(s->d, m, i))
		return true;
	ocl_hash(data, size, h);
	if (memcmp(h, c->hash, sizeof(h)) != 0)
		__atomic_store_n(&s->wrong, true, __ATOMIC_RELAXED);
	return true;
}

/* Until it is unmapped nothing is known of what the program writes there. */
static bool may_be_written(const struct domain *d, const struct mem *m)
{
	for (const struct ocl_map *r = d->maps; r; r = r->next)
		if (r->mem->root == m && (r->op == OP_SVM_MAP || ocl_map_may_be_written(r)))
			return true;
	return false;
}

bool ocl_checkpoint_scrub(struct domain *d)
{
	bool errors = false;

	for
		EACH_CONTENT(d, m)
		{
			struct scrub s = {.d = d};

			if (!m->saved || !m->filled || m->modified || m->writes_seen ||
			    ocl_scratch_is_over(m) || !ocl_content_is_alive(d, m) ||
			    may_be_written(d, m))
				continue;
			if (!ocl_copy_out(d, m, NULL, scrub_chunk, &s) || !s.wrong)
				continue;
			log_info(
			    "opencl: %lu bytes of device memory changed without being written to",
			    (unsigned long)m->size);
			errors = true;
		}
	return errors;
}
