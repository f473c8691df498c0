/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"
#include "base/fmt.h"
#include "protect/protect.h"

struct hale_reference *protect_live;

static void figure_add(const char *name, void (*add)(struct protect_figure *, size_t), size_t n)
{
	pthread_mutex_lock(&protect_lock);
	struct protect_figure *f = protect_figure(name);
	if (f)
		add(f, n);
	pthread_mutex_unlock(&protect_lock);
}

static void add_note(struct protect_figure *f, size_t bytes)
{
	f->notes++;
	f->bytes = bytes > f->bytes ? bytes : f->bytes;
}

/* The variable has other bytes now than when it was sealed. */
void protect_unseal(const void *base)
{
	pthread_mutex_lock(&protect_lock);
	for (struct hale_reference *ref = protect_live; ref; ref = ref->next)
		if (ref->base == base)
			ref->sealed = false;
	pthread_mutex_unlock(&protect_lock);
}

/* A wrong extent is a sentence here, where it would be a signal in the scan. */
static bool is_mapped(const char *base, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char in;

	for (int end = 0; end < 2 && bytes; end++) {
		uintptr_t at = (uintptr_t)base + (end ? bytes - 1 : 0);
		if (mincore((void *)(at & ~(page - 1)), 1, &in) != 0 && errno == ENOMEM)
			return false;
	}
	return true;
}

/* The variable's reference, made and put on the list of live ones if there is none. */
static struct hale_reference *reference_of(struct hale_var *v, const void *base, size_t bytes)
{
	struct hale_reference *ref = v->ref;

	protect_start();
	if (bytes > PTRDIFF_MAX)
		protect_die(HALE_EXIT_UNRECOVERABLE,
			    "variable '%s' is protected with a negative extent, with parts of rows, "
			    "or with more than memory holds: set its length before the region",
			    v->name);
	if (!base && bytes)
		protect_die(HALE_EXIT_UNRECOVERABLE,
			    "variable '%s' is protected with %zu bytes, but its pointer is NULL: "
			    "set it before the region",
			    v->name, bytes);
	if (!ref && !is_mapped(base, bytes))
		protect_die(HALE_EXIT_UNRECOVERABLE,
			    "variable '%s' is protected with %zu bytes, but the program has no "
			    "memory there: give the extent that it was allocated with",
			    v->name, bytes);
	if (!ref) {
		ref = calloc(1, sizeof *ref);
		if (!ref)
			protect_die(HALE_EXIT_UNRECOVERABLE, "no memory to protect variable '%s'",
				    v->name);
		fmt_print(ref->name, sizeof ref->name, "%s", v->name);
		v->ref = ref;
		ref->base = (char *)(uintptr_t)base;
		ref->bytes = bytes;
		ref->since = clock_seconds();
		pthread_mutex_lock(&protect_lock);
		ref->next = protect_live;
		ref->link = &protect_live;
		if (ref->next)
			ref->next->link = &ref->next;
		protect_live = ref;
		pthread_mutex_unlock(&protect_lock);
		return ref;
	}
	pthread_mutex_lock(&protect_lock); /* a thread that injects faults reads them */
	ref->base = (char *)(uintptr_t)base;
	ref->bytes = bytes;
	pthread_mutex_unlock(&protect_lock);
	return ref;
}

void hale_expect(struct hale_var *v, const void *base, size_t bytes)
{
	struct hale_reference *ref = reference_of(v, base, bytes);

	ref->noted = false;
	ref->since = clock_seconds();
}

void hale_seal(struct hale_var *v, const void *base, size_t bytes)
{
	struct hale_reference *ref = reference_of(v, base, bytes);

	ref->seal = sums_hash(base, bytes);
	ref->sealed = true;
}

static struct hash128 bytes_hash(const struct hale_reference *ref)
{
	return ref->kind == HALE_SUM || ref->kind == HALE_HASH ? ref->sums.of_bytes[0]
							       : sums_hash(ref->base, ref->bytes);
}

void protect_left(struct hale_var *v)
{
	struct hale_reference *ref = v->ref;

	if (!ref || !ref->noted || !ref->differs)
		return;
	ref->damaged = sums_hash(ref->base, ref->bytes);
	ref->left = true;
}

/* A region was taken to write the variable, and ran again for it. If it has written nothing, the
 * damaged bytes are still there, and must not become the reference. */
static void rewritten_verify(const struct hale_var *v, struct hash128 now)
{
	if (hash_same(now, v->ref->damaged))
		protect_die(HALE_EXIT_UNRECOVERABLE,
			    "unrecoverable: variable '%s' was damaged, and the region that ran again "
			    "for it does not write it. Run the program again, or add a Recover method",
			    v->name);
}

void hale_note(struct hale_var *v, hale_check_kind_t kind, const void *base, size_t bytes)
{
	struct hale_reference *ref = reference_of(v, base, bytes);
	bool fine = true, sealed = ref->sealed;

	ref->sealed = false;
	ref->written = 0;

	if (ref->noted)
		ref->since = clock_seconds();
	ref->kind = kind;
	if (kind == HALE_SHA256) {
		crypto_hash_sha256(ref->sha, base, bytes);
		memcpy(ref->sha_copy, ref->sha, sizeof ref->sha);
	} else if (kind != HALE_USER) {
		fine = sums_take(&ref->sums, base, bytes, kind == HALE_SUM);
	}
	if (!fine)
		protect_die(HALE_EXIT_UNRECOVERABLE,
			    "no memory for the checksums of variable '%s' (%zu bytes)", v->name,
			    bytes);
	if (sealed && (kind == HALE_SUM || kind == HALE_HASH))
		sums_refer(&ref->sums, ref->seal);
	if (ref->left)
		rewritten_verify(v, sealed ? ref->seal : bytes_hash(ref));
	ref->noted = true;
	ref->differs = ref->left = false;
	figure_add(v->name, add_note, bytes);
}

void hale_forget(struct hale_var *v)
{
	struct hale_reference *ref = v->ref;

	v->ref = NULL;
	if (!ref)
		return;
	pthread_mutex_lock(&protect_lock);
	*ref->link = ref->next;
	if (ref->next)
		ref->next->link = ref->link;
	pthread_mutex_unlock(&protect_lock);
	sums_fini(&ref->sums);
	free(ref);
}

static bool reference_right(const struct hale_reference *ref)
{
	uint8_t now[32];

	switch (ref->kind) {
	case HALE_SUM:
	case HALE_HASH:
		return sums_verify(&ref->sums, ref->base) == SUMS_RIGHT;
	case HALE_SHA256:
		if (memcmp(ref->sha, ref->sha_copy, sizeof now) != 0)
			return false;
		crypto_hash_sha256(now, (const unsigned char *)ref->base, ref->bytes);
		return memcmp(now, ref->sha, sizeof now) == 0;
	case HALE_USER:
		break;
	}
	return true;
}

bool hale_checked(struct hale_region *r, struct hale_var *v, bool right)
{
	struct hale_reference *ref = v->ref;
	double lived = 0;

	if (ref) {
		double now = clock_seconds();
		lived = right ? (now - ref->since) * (double)ref->bytes : 0;
		ref->since = right ? now : ref->since;
	}
	if (right && !v->wrong)
		v->misses = 0;
	v->wrong = !right;
	pthread_mutex_lock(&protect_lock);
	r->checks++;
	r->detected += !right;
	r->lvf += lived;
	struct protect_figure *f = protect_figure(v->name);
	if (f) {
		f->checks++;
		f->detected += !right;
		f->lvf += lived;
	}
	pthread_mutex_unlock(&protect_lock);
	return right;
}

bool hale_check(struct hale_region *r, struct hale_var *v)
{
	bool right;

	inject_at_check(r, v);
	right = !v->ref || !v->ref->noted || reference_right(v->ref);
	if (v->ref)
		v->ref->differs = !right;
	return hale_checked(r, v, right);
}

/* Of several places where an error is mended only these two know that it was. */
static void count_corrected(struct hale_region *r, struct hale_var *v)
{
	pthread_mutex_lock(&protect_lock);
	r->corrected++;
	inject_outcome(v->name, "corrected");
	struct protect_figure *f = protect_figure(v->name);
	if (f)
		f->corrected++;
	pthread_mutex_unlock(&protect_lock);
}

bool hale_tried(struct hale_region *r, struct hale_var *v, const char *method, bool right)
{
	log_info("region '%s' (%s:%d): variable '%s' was damaged; %s %s", r->name, r->file, r->line,
		 v->name, method, right ? "mended it" : "did not mend it");
	if (!right)
		return false;
	v->wrong = false;
	if (v->ref)
		v->ref->sealed = v->ref->differs = false; /* it has been written anew */
	if (++v->misses > PROTECT_MISSES_MAX)
		hale_unrecoverable(r, v, method);
	count_corrected(r, v);
	return true;
}

bool hale_confirmed(struct hale_var *v)
{
	struct hale_reference *ref = v->ref;
	int written;

	if (!ref || !ref->noted || ref->written++ == 0)
		return !ref || !ref->noted;
	if (reference_right(ref)) {
		ref->written = 0;
		return true;
	}
	log_info("variable '%s' was not the same when it was written again; once more", v->name);
	pthread_mutex_lock(&protect_lock);
	inject_outcome(v->name, "corrected");
	struct protect_figure *f = protect_figure(v->name);
	if (f) {
		f->detected++;
		f->corrected++;
	}
	pthread_mutex_unlock(&protect_lock);
	if (ref->written > PROTECT_MISSES_MAX)
		protect_die(HALE_EXIT_UNRECOVERABLE,
			    "unrecoverable: variable '%s' was another one each of the %d times that "
			    "it was written: Confirm needs a call that writes the same each time",
			    v->name, ref->written);
	written = ref->written;
	hale_note(v, ref->kind, ref->base, ref->bytes);
	ref->written = written;
	return false;
}

bool hale_correct(struct hale_region *r, struct hale_var *v)
{
	struct hale_reference *ref = v->ref;
	bool right;

	if (!ref || !ref->noted || ref->kind != HALE_SUM)
		right = ref && ref->noted && reference_right(ref);
	else
		right = sums_correct(&ref->sums, ref->base) >= 0;
	return hale_tried(r, v, "its checksums", right);
}
