/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes: key values, the list each object carries, and the callbacks.
 *
 * A list holds its newest attribute first. Objects die with their attributes deleted in that order,
 * the reverse of setting (MPI-3.1 8.7.1 wants it for MPI_COMM_SELF; everything gets it), and
 * duplicates get theirs in the order of setting. Callbacks run outside the guard and may change any
 * list, so nothing is held across one but the object itself: walks go by sequence numbers.
 *
 * A key value lives until it is freed and no attribute has it any more.
 */
#include <stdlib.h>
#include "mpi/comm/comm.h"

struct keyval {
	int kind, index, flags;
	int refs; /* one for the user until it is freed, one for each attribute */
	bool freed;
	union {
		void *c;
		int (*comm_copy)(MPI_Comm, int, void *, void *, void *, int *);
		int (*type_copy)(MPI_Datatype, int, void *, void *, void *, int *);
		int (*win_copy)(MPI_Win, int, void *, void *, void *, int *);
		void (*fint_copy)(MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *,
				  MPI_Fint *, MPI_Fint *);
		void (*aint_copy)(MPI_Fint *, MPI_Fint *, MPI_Aint *, MPI_Aint *, MPI_Aint *,
				  MPI_Fint *, MPI_Fint *);
	} copy;
	union {
		void *c;
		int (*comm_delete)(MPI_Comm, int, void *, void *);
		int (*type_delete)(MPI_Datatype, int, void *, void *);
		int (*win_delete)(MPI_Win, int, void *, void *);
		void (*fint_delete)(MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *);
		void (*aint_delete)(MPI_Fint *, MPI_Fint *, MPI_Aint *, MPI_Aint *, MPI_Fint *);
	} del;
	union attr_value extra;
};

struct attribute {
	struct attribute *next;
	struct keyval *keyval;
	uint64_t sequence;
	enum attr_language language;
	union attr_value value;
};

struct attributes {
	struct attribute *first;
};

enum { KEYVAL_FIRST = MPI_WIN_MODEL + 1 }; /* below are the predefined ones */

static struct keyval **keyvals; /* by index - KEYVAL_FIRST; NULL: free */
static int keyval_cap;
static uint64_t last_sequence;
__thread enum attr_language attr_original;

/* What a communicator tells about its environment, by key value. C programs get its address. */
static MPI_Fint predefined[KEYVAL_FIRST] = {
    [MPI_TAG_UB] = API_TAG_UB, [MPI_HOST] = MPI_PROC_NULL, [MPI_IO] = MPI_ANY_SOURCE,
    [MPI_WTIME_IS_GLOBAL] = 0, [MPI_APPNUM] = 0,	   [MPI_LASTUSEDCODE] = MPI_ERR_LASTCODE,
};

/* What a window tells about itself stands in its list like any other attribute. */
static struct keyval window_keys[MPI_WIN_MODEL - MPI_WIN_BASE + 1];

static int window_key_delete(MPI_Win win, int keyval, void *value, void *extra)
{
	return MPI_SUCCESS;
}

static struct keyval *window_key(int index)
{
	struct keyval *k = &window_keys[index - MPI_WIN_BASE];
	k->kind = ATTR_WIN;
	k->index = index;
	k->refs = 1 << 30; /* never the last */
	k->del.win_delete = window_key_delete;
	return k;
}

void attr_last_used_code(int code)
{
	predefined[MPI_LASTUSEDCODE] = code;
}

/* ---- key values ---- */

static struct keyval *keyval_find(enum attr_kind kind, int index)
{
	int i = index - KEYVAL_FIRST;
	if (index < KEYVAL_FIRST || i >= keyval_cap || !keyvals[i] || keyvals[i]->kind != (int)kind)
		return NULL;
	return keyvals[i];
}

static void keyval_drop(struct keyval *k)
{
	if (--k->refs)
		return;
	keyvals[k->index - KEYVAL_FIRST] = NULL;
	heap_free(k);
}

static int keyval_slot(void)
{
	for (int i = 0; i < keyval_cap; i++)
		if (!keyvals[i])
			return i;
	int cap = keyval_cap ? 2 * keyval_cap : 32;
	struct keyval **grown = heap_realloc(keyvals, (size_t)cap * sizeof(struct keyval *));
	if (!grown)
		return -1;
	for (int i = keyval_cap; i < cap; i++)
		grown[i] = NULL;
	int slot = keyval_cap;
	keyvals = grown;
	keyval_cap = cap;
	return slot;
}

int attr_keyval_create(enum attr_kind kind, void *copy, void *del, int *keyval, void *extra,
		       int flags)
{
	int slot = keyval_slot();
	struct keyval *k = slot < 0 ? NULL : heap_calloc(1, sizeof(*k));
	if (!k)
		return MPI_ERR_NO_MEM;
	k->kind = (int)kind;
	k->index = slot + KEYVAL_FIRST;
	k->flags = flags;
	k->refs = 1;
	k->copy.c = copy;
	k->del.c = del;
	k->extra.pointer = extra;
	keyvals[slot] = k;
	*keyval = k->index;
	return MPI_SUCCESS;
}

void *attr_keyval_in_fortran(int keyval, void *copy, void *del)
{
	int i = keyval - KEYVAL_FIRST;
	struct keyval *k = i >= 0 && i < keyval_cap ? keyvals[i] : NULL;

	if (!k)
		return NULL;
	k->flags = ATTR_FORTRAN | ATTR_SAME_LANGUAGE;
	k->copy.c = copy;
	k->del.c = del;
	return k->extra.pointer;
}

/* An index that names no key value of that kind is MPI_ERR_OTHER in all of this file, as it is in
 * Open MPI. One that was freed may be freed again while an attribute has it, as in MPICH: copies of
 * the index are freed by delete functions, which are called for each attribute. */
int attr_keyval_free(enum attr_kind kind, int *keyval)
{
	struct keyval *k = keyval_find(kind, *keyval);
	if (!k)
		return MPI_ERR_OTHER;
	if (!k->freed) {
		k->freed = true;
		keyval_drop(k);
	}
	*keyval = MPI_KEYVAL_INVALID;
	return MPI_SUCCESS;
}

/* ---- values between languages (MPI-3.1 17.2.7) ---- */

static union attr_value translate(struct attribute *a, enum attr_language reader)
{
	union attr_value v = {.aint = 0};
	MPI_Aint number = a->language == ATTR_FORTRAN_INT ? a->value.fint : a->value.aint;
	if (reader == ATTR_FORTRAN_AINT)
		v.aint = number;
	else if (reader == ATTR_FORTRAN_INT)
		v.fint = (MPI_Fint)number;
	else if (a->language == ATTR_C)
		v.pointer = a->value.pointer;
	else
		v.pointer = &a->value; /* C gets the address of what Fortran stored */
	return v;
}

static enum attr_language callback_language(const struct keyval *k)
{
	if (!(k->flags & ATTR_FORTRAN))
		return ATTR_C;
	return k->flags & ATTR_FORTRAN_OLD ? ATTR_FORTRAN_INT : ATTR_FORTRAN_AINT;
}

static enum attr_language copy_language(const struct keyval *k, enum attr_language original)
{
	return k->flags & ATTR_SAME_LANGUAGE ? original : callback_language(k);
}

/* ---- callbacks ---- */

static int delete_c(struct keyval *k, void *object, void *value)
{
	switch ((enum attr_kind)k->kind) {
	case ATTR_COMM:
		return k->del.comm_delete(object, k->index, value, k->extra.pointer);
	case ATTR_TYPE:
		return k->del.type_delete(object, k->index, value, k->extra.pointer);
	case ATTR_WIN:
		return k->del.win_delete(object, k->index, value, k->extra.pointer);
	}
	return MPI_ERR_INTERN;
}

static int call_delete(struct keyval *k, void *object, struct attribute *a)
{
	enum attr_language language = callback_language(k);
	union attr_value value = translate(a, language);
	MPI_Fint handle = language == ATTR_C ? 0 : object_to_fortran(object), index = k->index;
	MPI_Fint ierr = MPI_SUCCESS;
	int rc;
	k->refs++;
	attr_original = a->language;
	guard_leave();
	if (language == ATTR_C)
		ierr = delete_c(k, object, value.pointer);
	else if (language == ATTR_FORTRAN_INT)
		k->del.fint_delete(&handle, &index, &value.fint, &k->extra.fint, &ierr);
	else
		k->del.aint_delete(&handle, &index, &value.aint, &k->extra.aint, &ierr);
	guard_enter();
	rc = ierr;
	keyval_drop(k);
	return rc;
}

static int copy_c(struct keyval *k, void *from, void *in, void *out, int *flag)
{
	switch ((enum attr_kind)k->kind) {
	case ATTR_COMM:
		return k->copy.comm_copy(from, k->index, k->extra.pointer, in, out, flag);
	case ATTR_TYPE:
		return k->copy.type_copy(from, k->index, k->extra.pointer, in, out, flag);
	case ATTR_WIN:
		return k->copy.win_copy(from, k->index, k->extra.pointer, in, out, flag);
	}
	return MPI_ERR_INTERN;
}

static int call_copy(struct keyval *k, void *from, struct attribute *a, union attr_value *out,
		     int *flag)
{
	enum attr_language language = callback_language(k);
	union attr_value in = translate(a, language);
	MPI_Fint handle = language == ATTR_C ? 0 : object_to_fortran(from), index = k->index;
	MPI_Fint ierr = MPI_SUCCESS, logical = 0;
	out->aint = 0;
	*flag = 0;
	attr_original = a->language;
	guard_leave();
	if (language == ATTR_C)
		ierr = copy_c(k, from, in.pointer, &out->pointer, flag);
	else if (language == ATTR_FORTRAN_INT)
		k->copy.fint_copy(&handle, &index, &k->extra.fint, &in.fint, &out->fint, &logical,
				  &ierr);
	else
		k->copy.aint_copy(&handle, &index, &k->extra.aint, &in.aint, &out->aint, &logical,
				  &ierr);
	guard_enter();
	*flag |= logical;
	return ierr;
}

/* ---- lists ---- */

static struct attribute *attribute_find(struct attributes *attrs, const struct keyval *k)
{
	struct attribute *a = attrs ? attrs->first : NULL;
	while (a && a->keyval != k)
		a = a->next;
	return a;
}

static void attribute_remove(struct attributes **attrs, const struct keyval *k)
{
	struct attribute **at = *attrs ? &(*attrs)->first : NULL;
	while (at && *at && (*at)->keyval != k)
		at = &(*at)->next;
	if (!at || !*at)
		return;
	struct attribute *a = *at;
	*at = a->next;
	keyval_drop(a->keyval);
	heap_free(a);
	if (!(*attrs)->first) {
		heap_free(*attrs);
		*attrs = NULL;
	}
}

static int attribute_add(struct attributes **attrs, struct keyval *k, enum attr_language language,
			 union attr_value value)
{
	struct attribute *a = heap_calloc(1, sizeof(*a));
	if (a && !*attrs)
		*attrs = heap_calloc(1, sizeof(**attrs));
	if (!a || !*attrs) {
		heap_free(a);
		return MPI_ERR_NO_MEM;
	}
	k->refs++;
	a->keyval = k;
	a->sequence = ++last_sequence;
	a->language = language;
	a->value = value;
	a->next = (*attrs)->first;
	(*attrs)->first = a;
	return MPI_SUCCESS;
}

static int attribute_end(struct keyval *k, void *object, struct attributes **attrs)
{
	struct attribute *a = attribute_find(*attrs, k);
	int rc = call_delete(k, object, a);
	if (rc == MPI_SUCCESS)
		attribute_remove(attrs, k);
	return rc;
}

int attr_set(enum attr_kind kind, void *object, struct attributes **attrs, int keyval,
	     enum attr_language language, union attr_value value)
{
	struct keyval *k = keyval_find(kind, keyval);
	if (!k)
		return MPI_ERR_OTHER;
	k->refs++; /* the old value's delete callback may free the key */
	int rc = attribute_find(*attrs, k) ? attribute_end(k, object, attrs) : MPI_SUCCESS;
	if (rc == MPI_SUCCESS)
		rc = attribute_add(attrs, k, language, value);
	keyval_drop(k);
	return rc;
}

int attr_window_put(struct attributes **attrs, int keyval, enum attr_language language,
		    union attr_value value)
{
	return attribute_add(attrs, window_key(keyval), language, value);
}

int attr_get(enum attr_kind kind, struct attributes *attrs, int keyval, enum attr_language language,
	     union attr_value *value, int *flag)
{
	*flag = 0;
	if (keyval >= 0 && keyval < KEYVAL_FIRST) {
		if (kind == ATTR_COMM && keyval <= MPI_UNIVERSE_SIZE) {
			const char *app = getenv("HALE_APPNUM"); /* launch/mpmd.c */
			/* but for who keeps count of the reserve (mpi/dynamic/keeper.c) */
			predefined[MPI_UNIVERSE_SIZE] =
			    (MPI_Fint)link_self()->nranks - (getenv("HALE_WORLD") != NULL);
			predefined[MPI_APPNUM] = app ? atoi(app) : 0;
			struct attribute a = {.language = ATTR_FORTRAN_INT,
					      .value.fint = predefined[keyval]};
			*value = translate(&a, language);
			if (language == ATTR_C)
				value->pointer = &predefined[keyval];
			*flag = 1;
		}
		struct attribute *own =
		    keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL
			? attribute_find(attrs, &window_keys[keyval - MPI_WIN_BASE])
			: NULL;
		if (own) {
			*value = translate(own, language);
			*flag = 1;
		}
		return MPI_SUCCESS;
	}
	if (keyval < 0 || keyval - KEYVAL_FIRST >= keyval_cap || !keyvals[keyval - KEYVAL_FIRST])
		return MPI_ERR_OTHER;
	struct attribute *a = attribute_find(attrs, keyvals[keyval - KEYVAL_FIRST]);
	if (a) {
		*value = translate(a, language);
		*flag = 1;
	}
	return MPI_SUCCESS;
}

int attr_delete(enum attr_kind kind, void *object, struct attributes **attrs, int keyval)
{
	struct keyval *k = keyval_find(kind, keyval);
	if (!k || !attribute_find(*attrs, k))
		return MPI_ERR_OTHER;
	k->refs++;
	int rc = attribute_end(k, object, attrs);
	keyval_drop(k);
	return rc;
}

int attr_delete_all(enum attr_kind kind, void *object, struct attributes **attrs)
{
	while (*attrs) {
		struct keyval *k = (*attrs)->first->keyval;
		k->refs++;
		int rc = attribute_end(k, object, attrs);
		keyval_drop(k);
		if (rc)
			return rc;
	}
	return MPI_SUCCESS;
}

/* The oldest attribute that is newer than sequence. */
static struct attribute *attribute_after(struct attributes *attrs, uint64_t sequence)
{
	struct attribute *oldest = NULL;
	for (struct attribute *a = attrs ? attrs->first : NULL; a && a->sequence > sequence;
	     a = a->next)
		oldest = a;
	return oldest;
}

int attr_copy_all(enum attr_kind kind, void *from, struct attributes *const *attrs, void *to,
		  struct attributes **copy)
{
	uint64_t seen = 0, end = last_sequence;
	struct attribute *a;
	while ((a = attribute_after(*attrs, seen)) && a->sequence <= end) {
		struct keyval *k = a->keyval;
		union attr_value value;
		enum attr_language language = a->language;
		int flag, rc;
		seen = a->sequence;
		k->refs++;
		rc = call_copy(k, from, a, &value, &flag);
		if (!rc && flag)
			rc = attribute_add(copy, k, copy_language(k, language), value);
		keyval_drop(k);
		if (rc)
			return rc;
	}
	return MPI_SUCCESS;
}
