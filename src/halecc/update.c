/* SPDX-License-Identifier: BSD-3-Clause */
/* Data that a region changes so that its next run would start from what the last one left. */
#include "base/base.h"
#include "halecc/halecc.h"

static bool in_copies(const struct halecc_region *r, CXCursor decl)
{
	for (int i = 0; i < r->copies; i++)
		if (clang_equalCursors(r->copy[i].decl, decl))
			return true;
	for (int i = 0; i < r->checks; i++)
		if (r->how == CR && r->check[i].bytes && clang_equalCursors(r->check[i].decl, decl))
			return true;
	return false;
}

/* Where the declaration stands; false if it is in another file. */
static bool declared_here(const struct unit *u, CXCursor decl, unsigned *from)
{
	CXFile file;
	unsigned line, column;

	clang_getSpellingLocation(clang_getCursorLocation(decl), &file, &line, &column, from);
	return file && clang_File_isEqual(file, u->file) &&
	       clang_Cursor_getTranslationUnit(decl) == u->tu;
}

/* A variable that the region can't name, and that its next run would find changed. */
static void hidden_refuse(struct unit *u, const struct halecc_region *r, const struct access *a)
{
	bool local =
	    clang_getCursorKind(clang_getCursorSemanticParent(a->decl)) != CXCursor_TranslationUnit;
	unsigned from;
	bool here = declared_here(u, a->decl, &from);

	if ((local && here && from > r->inner && from < r->outer) || (!local && here))
		return;
	source_error(u->src, a->at,
		     "what is called here changes '%s', which this region can't put back: its next "
		     "run would start from what the first one left. Hand the variable on as an "
		     "argument",
		     a->name);
}

/* The first write to what `decl` leads to, if data say which places it writes: a run with damaged
 * data may have written others, which nobody puts back. */
static const struct access *scattered(const struct unit *u, CXCursor decl, unsigned from,
				      unsigned to)
{
	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];

		if (a->at < from || a->at >= to || (a->how & ACCESS_REPOINT) ||
		    !(a->how & (ACCESS_WRITE | ACCESS_ESCAPE)) || !access_shared(u, decl, a->decl))
			continue;
		return a->how & ACCESS_SOME ? a : NULL;
	}
	return NULL;
}

/* Whether the region writes what a pointer in this struct leads to. */
static bool writes_deep(const struct unit *u, CXCursor decl, unsigned from, unsigned to)
{
	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];
		if (a->at >= from && a->at < to && (a->how & ACCESS_WRITE) &&
		    (a->how & ACCESS_DEEP) && clang_equalCursors(a->decl, decl))
			return true;
	}
	return false;
}

/* What the region updates in place: arrays and what pointers point to need CR, scalars are put back
 * unless they are out of sight. */
static void in_place_warn(struct unit *u, struct halecc_region *r)
{
	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i], *shows, *elsewhere;
		CXType t = clang_getCanonicalType(clang_getCursorType(a->decl));
		unsigned from;
		bool known = false;

		if (a->at < r->from || a->at >= r->to || !(a->how & ACCESS_WRITE) ||
		    in_copies(r, a->decl))
			continue;
		for (size_t k = 0; k < i; k++)
			known |= u->accesses.a[k].at >= r->from && u->accesses.a[k].at < r->to &&
				 (u->accesses.a[k].how & ACCESS_WRITE) &&
				 clang_equalCursors(u->accesses.a[k].decl, a->decl);
		if (known || (declared_here(u, a->decl, &from) && from >= r->from && from < r->to))
			continue;
		bool many = t.kind == CXType_Pointer || t.kind == CXType_ConstantArray ||
			    t.kind == CXType_VariableArray ||
			    writes_deep(u, a->decl, r->from, r->to);
		shows = access_update(u, a->decl, r->from, r->to);
		elsewhere = shows || !many ? NULL : scattered(u, a->decl, r->from, r->to);
		if (elsewhere)
			source_warn(
			    u->src, elsewhere->at,
			    "data decide where '%s' is written: what a run with damaged "
			    "data has written elsewhere stays. %s CR(%s[0:n]) to the pragma",
			    a->name, r->bound ? "Add" : "Make it a region of the chain, and add",
			    a->name);
		if (!shows)
			continue;
		if (clang_Cursor_getStorageClass(a->decl) == CX_SC_Static ||
		    clang_Cursor_getTranslationUnit(a->decl) != u->tu)
			hidden_refuse(u, r, a);
		if (many)
			source_warn(u->src, shows->at,
				    "'%s' is updated in place: a second run would start from what "
				    "the first one left. %s CR(%s[0:n]) to the pragma",
				    a->name,
				    r->bound ? "Add" : "Make it a region of the chain, and add",
				    a->name);
	}
}

bool update_is_checked(const struct halecc_region *r, CXCursor decl)
{
	for (int k = 0; k < r->checks; k++)
		if (clang_equalCursors(r->check[k].decl, decl))
			return true;
	return false;
}

/* Functions that are not seen are taken to write their outputs anew. Of what had a value before
 * the region that may be wrong. */
static void unseen_warn(struct unit *u, struct halecc_region *r)
{
	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];
		CXType t = clang_getCanonicalType(clang_getCursorType(a->decl));
		bool before = false, set = false;

		if (a->at < r->from || a->at >= r->to || !(a->how & ACCESS_UNSEEN) ||
		    (t.kind != CXType_Pointer && t.kind != CXType_ConstantArray &&
		     t.kind != CXType_VariableArray) ||
		    in_copies(r, a->decl) || update_is_checked(r, a->decl))
			continue;
		for (size_t k = 0; k < u->accesses.count && !set; k++) {
			const struct access *b = &u->accesses.a[k];
			bool writes = (b->how & (ACCESS_WRITE | ACCESS_ESCAPE)) &&
				      !(b->how & ACCESS_REPOINT) &&
				      clang_equalCursors(b->decl, a->decl);
			before |= writes && b->at < r->at;
			set |= writes && b->at >= r->from && b->at < a->at;
		}
		if (before && !set)
			source_warn(u->src, a->at,
				    "the function that is called here is not seen: if it updates "
				    "'%s' in place, a second run would start from what the first "
				    "one left. Then add CR(%s[0:n]) to the pragma, or else name "
				    "its source on the command line",
				    a->name, a->name);
	}
}

void update_warn(struct unit *u, struct halecc_region *r)
{
	in_place_warn(u, r);
	unseen_warn(u, r);
}
