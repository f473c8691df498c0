/* SPDX-License-Identifier: BSD-3-Clause */
/* What a region, or the code between two regions, changes and finds changed when it runs again:
 * kept at its first run, put back before the others. */
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

/* A later region of the chain may have this one run again, from what was before its first run. The
 * last region runs again for itself only, and puts things back when it says so. */
bool keep_repeated(const struct chain *c, const struct halecc_region *r)
{
	return r->node < c->nodes - 1;
}

/* Declared before the chain, so that what it was can be kept there. */
bool keep_earlier(const struct unit *u, const struct chain *c, CXCursor decl)
{
	unsigned from, to;

	unit_extent(decl, &from, &to);
	return clang_getCursorKind(clang_getCursorSemanticParent(decl)) ==
		   CXCursor_TranslationUnit ||
	       from < u->region[c->node[0].region[0]].at;
}

/* Objects that must not be copied: locks, streams. */
static bool is_handle(CXType t)
{
	CXString s = clang_getTypeSpelling(t);
	const char *name = clang_getCString(s);
	bool handle = strstr(name, "pthread_") || strstr(name, "_IO_FILE") ||
		      strstr(name, "omp_lock") || strstr(name, "omp_nest") ||
		      strstr(name, "__jmp_buf");

	clang_disposeString(s);
	return handle || clang_isConstQualifiedType(t) ||
	       (t.kind == CXType_Record && !clang_isPODType(t));
}

static bool is_hidden(const struct unit *u, CXCursor decl)
{
	return clang_Cursor_getStorageClass(decl) == CX_SC_Static &&
	       clang_getCursorKind(clang_getCursorSemanticParent(decl)) != CXCursor_TranslationUnit;
}

int keep_list(const struct unit *u, const struct halecc_region *r, const struct access **out,
	      int max)
{
	int n = 0;

	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];
		CXType t = clang_getCanonicalType(clang_getCursorType(a->decl));
		bool pointer = t.kind == CXType_Pointer, known = false;

		if (a->at < r->from || a->at >= r->to ||
		    !(a->how & (pointer ? ACCESS_REPOINT : ACCESS_WRITE | ACCESS_ESCAPE)) ||
		    is_handle(t) || is_hidden(u, a->decl) ||
		    unit_declares(u, a->decl, r->at, r->to) || t.kind == CXType_ConstantArray ||
		    t.kind == CXType_VariableArray || t.kind == CXType_IncompleteArray)
			continue;
		/* what each run writes before it reads anything starts from nothing */
		if (!(access_of(u, a->decl, r->from, r->to) &
		      (ACCESS_READ | ACCESS_UPDATE | ACCESS_MAYBE)))
			continue;
		for (int k = 0; k < n; k++)
			known |= clang_equalCursors(out[k]->decl, a->decl);
		if (!known && n < max)
			out[n++] = a;
	}
	return n;
}

/* Does it keep anything from before its first run? */
bool keep_any(const struct unit *u, const struct chain *c, const struct halecc_region *r)
{
	const struct access *saved[KEEPS_MAX];
	int saves = keep_list(u, r, saved, KEEPS_MAX);
	bool any = r->copies > 0;

	for (int i = 0; i < saves; i++)
		any |= keep_earlier(u, c, saved[i]->decl);
	for (int i = 0; i < r->checks && r->how == CR; i++)
		any |= r->check[i].reference;
	return any && keep_repeated(c, r);
}

/* What stands between node i and the next one runs again with the regions around it. */
static int between_list(const struct unit *u, const struct chain *c, int i,
			const struct access **out, int max)
{
	struct halecc_region gap = chain_between(c, i);
	int n = 0, all = keep_list(u, &gap, out, max);

	for (int k = 0; k < all; k++)
		if (keep_earlier(u, c, out[k]->decl))
			out[n++] = out[k];
	return n;
}

static void between_declare(const struct unit *u, const struct chain *c, int i, struct text *t,
			    const char *in)
{
	const struct access *saved[KEEPS_MAX];
	int saves = between_list(u, c, i, saved, KEEPS_MAX);

	for (int k = 0; k < saves; k++)
		text_add(t, "%s__typeof__(%s) hale_between%d_%s = %s;\n", in, saved[k]->name,
			 u->region[c->node[i].region[0]].number, saved[k]->name,
			 u->src->cxx ? "{}" : "{0}");
	if (saves)
		text_add(t, "%sbool hale_passed%d = false;\n", in,
			 u->region[c->node[i].region[0]].number);
}

void keep_between(const struct unit *u, const struct chain *c, int i, struct text *t,
		  const char *in)
{
	const struct access *saved[KEEPS_MAX];
	int saves = i < c->nodes - 1 ? between_list(u, c, i, saved, KEEPS_MAX) : 0;
	int number = u->region[c->node[i].region[0]].number;

	for (int k = 0; k < saves; k++)
		text_add(t,
			 "%sif (hale_passed%d)\n%s\t%s = "
			 "hale_between%d_%s;\n%selse\n%s\thale_between%d_%s = %s;\n",
			 in, number, in, saved[k]->name, number, saved[k]->name, in, in, number,
			 saved[k]->name, saved[k]->name);
	if (saves)
		text_add(t, "%shale_passed%d = true;\n", in, number);
}

static void region_declare(const struct unit *u, const struct chain *c,
			   const struct halecc_region *r, struct text *t, const char *in)
{
	const struct access *saved[KEEPS_MAX];
	int saves = keep_list(u, r, saved, KEEPS_MAX);

	if (!keep_repeated(c, r))
		return;
	for (int i = 0; i < saves; i++)
		if (keep_earlier(u, c, saved[i]->decl))
			text_add(t, "%s__typeof__(%s) hale_save%d_%s = %s;\n", in, saved[i]->name,
				 r->number, saved[i]->name, u->src->cxx ? "{}" : "{0}");
	if (keep_any(u, c, r))
		text_add(t, "%sbool hale_begun%d = false;\n", in, r->number);
}

void keep_declare_copies(const struct unit *u, const struct chain *c, struct text *t,
			 const char *in)
{
	for (int i = 0; i < c->nodes; i++)
		for (int k = 0; k < c->node[i].regions; k++) {
			const struct halecc_region *r = &u->region[c->node[i].region[k]];
			for (int n = 0; n < r->copies && keep_repeated(c, r); n++)
				text_add(
				    t,
				    "%shale_auto_copy struct hale_copy hale_copy%d_%s = {NULL};\n",
				    in, r->number, r->copy[n].var);
		}
}

void keep_declare(const struct unit *u, const struct chain *c, struct text *t, const char *in)
{
	for (int i = 0; i < c->nodes; i++) {
		for (int k = 0; k < c->node[i].regions; k++)
			region_declare(u, c, &u->region[c->node[i].region[k]], t, in);
		if (i < c->nodes - 1)
			between_declare(u, c, i, t, in);
	}
}
