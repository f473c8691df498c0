/* SPDX-License-Identifier: BSD-3-Clause */
/* Shadows by handle (open addressing, linear probing), their counts and their end. */
#include <stdlib.h>
#include "base/base.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"
#include "ocl/ocl.h"

static size_t place(const void *key, size_t cap)
{
	uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15ull;
	return (size_t)(h >> 20) & (cap - 1);
}

/* Objects whose last release was put off are released by ocl_drop. */
static bool kept_for_log(ocl_kind_t kind)
{
	return kind == OCL_MEM || kind == OCL_SVM || kind == OCL_KERNEL || kind == OCL_SAMPLER ||
	       kind == OCL_RECORDED;
}

static bool is_alive(const struct ocl_object *o)
{
	return o->refs > 0 || o->kin > 0 ||
	       (o->kind == OCL_CONTEXT && ((const struct domain *)o)->live > 0);
}

/* The slot of this key and object, or, wanted NULL, of what the program has under this key. A moved
 * object stands in the table twice: under its handle and under its real one. */
static struct slot *lookup(const void *key, const struct ocl_object *wanted)
{
	struct table *t = &ocl.objects;
	struct slot *kept = NULL;

	if (t->cap == 0 || !key)
		return NULL;
	for (size_t i = place(key, t->cap);; i = (i + 1) & (t->cap - 1)) {
		struct slot *s = &t->slot[i];
		if (!s->key)
			return kept;
		if (s->key != key || !s->o)
			continue;
		if (wanted ? s->o == wanted : s->o->refs > 0)
			return s;
		if (!wanted && is_alive(s->o))
			kept = s;
	}
}

static void insert(struct slot *slot, size_t cap, const void *key, struct ocl_object *o)
{
	size_t i = place(key, cap);

	while (slot[i].o)
		i = (i + 1) & (cap - 1);
	slot[i] = (struct slot){key, o};
}

static bool grow(void)
{
	struct table *t = &ocl.objects;
	size_t cap = t->cap == 0 ? 256 : t->used * 4 > t->cap ? 2 * t->cap : t->cap;
	struct slot *slot = calloc(cap, sizeof(*slot));

	if (!slot)
		return false;
	for (size_t i = 0; i < t->cap; i++)
		if (t->slot[i].o)
			insert(slot, cap, t->slot[i].key, t->slot[i].o);
	free(t->slot);
	*t = (struct table){.slot = slot, .cap = cap, .used = t->used};
	return true;
}

void ocl_table_add(void *key, struct ocl_object *o)
{
	struct table *t = &ocl.objects;

	if ((t->used + t->dead + 1) * 2 > t->cap && !grow() && t->used + t->dead + 2 > t->cap)
		return;
	insert(t->slot, t->cap, key, o);
	t->used++;
}

void ocl_table_remove(void *key, const struct ocl_object *o)
{
	struct slot *s = lookup(key, o);

	if (s) {
		s->o = NULL;
		ocl.objects.used--;
		ocl.objects.dead++;
	}
}

void *ocl_find(const void *handle, ocl_kind_t kind)
{
	struct slot *s = lookup(handle, NULL);

	return s && s->o->kind == kind ? s->o : NULL;
}

void *ocl_find_any(const void *handle, ocl_kind_t kind)
{
	struct table *t = &ocl.objects;
	struct ocl_object *o = ocl_find(handle, kind);

	for (size_t i = place(handle, t->cap); !o && t->cap && t->slot[i].key;
	     i = (i + 1) & (t->cap - 1))
		if (t->slot[i].o && t->slot[i].key == handle && t->slot[i].o->kind == kind)
			o = t->slot[i].o;
	return o;
}

struct ocl_object *ocl_find_held(const void *handle)
{
	struct ocl_object *o = ocl_find_any(handle, OCL_MEM);

	o = o ? o : ocl_find_any(handle, OCL_SAMPLER);
	return o ? o : ocl_find(handle, OCL_QUEUE);
}

/* Of what the runtime has released, too, it says itself that it doesn't know it. */
bool ocl_is_ghost(const void *handle, ocl_kind_t kind)
{
	struct ocl_object *o;

	if (LIKELY(!ocl.dead) || kind == OCL_CONTEXT || kind == OCL_QUEUE)
		return false;
	o = ocl_find_any(handle, kind);
	if (!o || is_alive(o))
		return false;
	/* one that a callback will be given is still there */
	return kind != OCL_EVENT || (((struct event *)o)->ours_too && o->held == 1);
}

void *ocl_checked(void *handle, ocl_kind_t kind)
{
	bool ghost;

	if (LIKELY(!ocl.dead))
		return handle;
	ocl_lock();
	ghost = ocl_is_ghost(handle, kind);
	ocl_unlock();
	return ghost ? NULL : handle;
}

void *ocl_real(void *handle, ocl_kind_t kind)
{
	struct ocl_object *o;

	if (LIKELY(!ocl.moves && !ocl.dead))
		return handle;
	ocl_lock();
	o = ocl_find(handle, kind);
	handle = o ? o->real : ocl_is_ghost(handle, kind) ? NULL : handle;
	ocl_unlock();
	return handle;
}

static void runtime_retain(void *real, ocl_kind_t kind)
{
	if (kind == OCL_CONTEXT)
		NEXT->clRetainContext(real);
	else if (kind == OCL_QUEUE)
		NEXT->clRetainCommandQueue(real);
	else if (kind == OCL_MEM)
		NEXT->clRetainMemObject(real);
	else if (kind == OCL_SAMPLER)
		NEXT->clRetainSampler(real);
	else if (kind == OCL_PROGRAM)
		NEXT->clRetainProgram(real);
	else if (kind == OCL_KERNEL)
		NEXT->clRetainKernel(real);
	else if (kind == OCL_EVENT)
		NEXT->clRetainEvent(real);
}

void *ocl_real_kept(void *handle, ocl_kind_t kind, struct ocl_kept *kept)
{
	void *real;

	*kept = (struct ocl_kept){.kind = kind};
	if (LIKELY(!ocl.moves))
		return ocl_checked(handle, kind);
	ocl_lock();
	real = ocl_real(handle, kind);
	if (real && real != handle) { /* the handle itself is the program's */
		runtime_retain(real, kind);
		kept->real = real;
	}
	ocl_unlock();
	return real;
}

void ocl_let(struct ocl_kept *kept)
{
	if (UNLIKELY(kept->real))
		ocl_runtime_release(kept->real, kept->kind);
	kept->real = NULL;
}

void ocl_object_moves(struct ocl_object *o, void *real)
{
	if (o->real != o->handle) {
		ocl_table_remove(o->real, o);
		ocl_map_lends(o);
		ocl_runtime_release(o->real, o->kind);
	}
	o->real = real;
	ocl_table_add(real, o);
}

static bool in_ring(ocl_kind_t kind)
{
	return kind != OCL_EVENT && kind != OCL_CONTEXT;
}

void *ocl_object_create(size_t size, ocl_kind_t kind, void *handle, struct domain *d)
{
	struct ocl_object *o = calloc(1, size);

	if (!o) {
		log_warn("opencl: out of memory: an object goes unprotected");
		return NULL;
	}
	*o = (struct ocl_object){
	    .handle = handle, .real = handle, .kind = kind, .refs = 1, .domain = d};
	o->made_away = d && d->away;
	if (d && in_ring(kind)) {
		o->prev = d->objects.prev;
		o->next = &d->objects;
		o->prev->next = o;
		d->objects.prev = o;
		d->live++;
	}
	if (d)
		OBJ(d)->held++;
	ocl_table_add(handle, o);
	return o;
}

static void domain_end(struct domain *d)
{
	struct domain **at = &ocl.domains;

	while (*at && *at != d)
		at = &(*at)->next_domain;
	if (*at)
		*at = d->next_domain;
	ocl_store_close(d);
	ocl_table_remove(OBJ(d)->handle, OBJ(d));
	ocl_count_dead(-1u);
	if (OBJ(d)->real != OBJ(d)->handle) {
		/* it may have moved when the program had nothing left but an event */
		ocl_table_remove(OBJ(d)->real, OBJ(d));
		ocl_runtime_release(OBJ(d)->real, OCL_CONTEXT);
	}
	free(d->tried);
	free(d->svm);
	ranges_fini(&d->reading);
	free(d->properties);
	free(d->devices);
	free(d->program_devices);
	free(d);
}

/* What the program counts on having again: the log is not to keep any amount of it. */
static void count_put_off(struct ocl_object *o, bool put_off)
{
	struct mem *m = (struct mem *)o;

	if ((o->kind != OCL_MEM && o->kind != OCL_SVM) || m->root != m || m->put_off == put_off)
		return;
	m->put_off = put_off;
	o->domain->put_off += put_off ? m->size : -m->size;
}

static void object_end(struct ocl_object *o)
{
	struct domain *d = o->domain;

	if (o->kind == OCL_CONTEXT) {
		domain_end((struct domain *)o);
		return;
	}
	if (o->real != o->handle) {
		ocl_table_remove(o->real, o);
		ocl_runtime_release(o->real, o->kind);
	}
	ocl_table_remove(o->handle, o);
	ocl_count_dead(-1u);
	count_put_off(o, false);
	if (in_ring(o->kind)) {
		o->prev->next = o->next;
		o->next->prev = o->prev;
	}
	ocl_object_fini(o);
	free(o);
	ocl_drop(OBJ(d));
}

void ocl_hold(struct ocl_object *o)
{
	o->held++;
}

/* Whoever drops has held, and an object ends when nobody holds it. An object holds its domain once,
 * from ocl_object_create to object_end, so that the domain outlives it. The analyzer, which doesn't
 * count, follows an object_end that can't be. */
void ocl_drop(struct ocl_object *o)
{
	if (--o->held > 0 || o->refs > 0) /* NOLINT(clang-analyzer-unix.Malloc) */
		return;
	if (o->kind == OCL_SVM)
		NEXT->clSVMFree(OBJ(o->domain)->real, o->handle);
	else if (kept_for_log(o->kind))
		ocl_runtime_release(o->handle, o->kind);
	object_end(o);
}

static struct ocl_object *parent_of(struct ocl_object *o)
{
	if (o->kind == OCL_MEM && ((struct mem *)o)->parent)
		return OBJ(((struct mem *)o)->parent);
	if (o->kind == OCL_KERNEL && ((struct kernel *)o)->program)
		return OBJ(((struct kernel *)o)->program);
	return NULL;
}

void ocl_kin_add(struct ocl_object *parent)
{
	parent->kin++;
}

/* The program has o no longer. */
static void kin_gone(struct ocl_object *o)
{
	struct ocl_object *parent;

	for (; !is_alive(o) && (parent = parent_of(o)); o = parent)
		parent->kin--;
}

/* The program has retained what it had released: it was told of it by what keeps it alive. */
static void revive(struct ocl_object *o)
{
	ocl_count_dead(-1u);
	count_put_off(o, false);
	if (o->kind == OCL_CONTEXT)
		((struct domain *)o)->live++;
	else if (in_ring(o->kind))
		o->domain->live++;
	if (kept_for_log(o->kind)) /* our reference is the program's now */
		ocl_runtime_release(o->handle, o->kind);
}

cl_int ocl_retained(void *handle, ocl_kind_t kind, cl_int status)
{
	struct ocl_object *o;

	ocl_lock();
	o = status == CL_SUCCESS ? ocl_find_any(handle, kind) : NULL;
	if (o && o->refs++ == 0)
		revive(o);
	ocl_unlock();
	return status;
}

/* Nobody can see what is left in the domain. */
static void domain_unlive(struct domain *d)
{
	if (--d->live > 0)
		return;
	ocl_hold(OBJ(d));
	for (struct ocl_entry *e = d->first; e; e = e->next)
		e->gates = 0;
	ocl_log_clear(d);
	ocl_helpers_release(d);
	ocl_drop(OBJ(d));
}

static void context_gone(struct domain *d)
{
	if (OBJ(d)->real != OBJ(d)->handle)
		ocl_table_remove(OBJ(d)->real, OBJ(d));
	ocl_hold(OBJ(d));
	domain_unlive(d);
	ocl_drop(OBJ(d));
}

/* The program has given back its last reference. What nobody holds has no shadow from here on, and
 * only then does the runtime release it: an epoch that another thread closes meanwhile must not
 * find what is no longer there. */
static void last_gone(struct ocl_object *o, bool put_off)
{
	struct domain *d = o->domain;
	bool in = in_ring(o->kind);

	o->refs = 0;
	ocl_count_dead(1);
	kin_gone(o);
	if (o->kind == OCL_CONTEXT) {
		context_gone((struct domain *)o);
		return;
	}
	count_put_off(o, put_off);
	ocl_hold(OBJ(d));
	if (o->held == 0)
		object_end(o);
	if (in)
		domain_unlive(d); /* held above: NOLINT(clang-analyzer-unix.Malloc) */
	ocl_drop(OBJ(d));
}

cl_int ocl_release(void *handle, ocl_kind_t kind)
{
	struct ocl_object *o;
	bool put_off = false;

	ocl_lock();
	o = ocl_find(handle, kind);
	if (o && o->refs == 1) { /* the runtime may give the handle to somebody else soon */
		put_off = o->held > 0 && kept_for_log(kind);
		last_gone(o, put_off);
	} else if (o && o->refs > 0) {
		o->refs--;
	} else if (o ? kept_for_log(kind) : ocl_is_ghost(handle, kind)) {
		handle = NULL; /* released already: the reference is ours */
	}
	ocl_unlock();
	return put_off ? CL_SUCCESS : ocl_runtime_release(handle, kind);
}

cl_int ocl_runtime_release(void *real, ocl_kind_t kind)
{
	switch (kind) {
	case OCL_CONTEXT:
		return NEXT->clReleaseContext(real);
	case OCL_QUEUE:
		return NEXT->clReleaseCommandQueue(real);
	case OCL_MEM:
		return NEXT->clReleaseMemObject(real);
	case OCL_SAMPLER:
		return NEXT->clReleaseSampler(real);
	case OCL_PROGRAM:
		return NEXT->clReleaseProgram(real);
	case OCL_KERNEL:
		return NEXT->clReleaseKernel(real);
	case OCL_EVENT:
		return NEXT->clReleaseEvent(real);
	case OCL_RECORDED:
		return ocl_recorded_release(real);
	case OCL_SVM:
		break;
	}
	return CL_SUCCESS;
}
