/* SPDX-License-Identifier: BSD-3-Clause */
/* Which function reads and writes which variable, and where: one list for the file, in the order of
 * the text.
 *
 * An expression is walked with what is done to the value it stands for. `a[i] = *p + f(q)` writes
 * the content of a, reads i, and reads what p points to. f may write what q points to, unless its
 * parameter is a pointer to const. A pointer that is copied makes an alias, whose uses the list
 * can't follow. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

static void walk(struct unit *u, CXCursor c, int how, bool pointee);

void access_add(struct unit *u, CXCursor decl, unsigned at, int how)
{
	struct accesses *all = &u->accesses;

	if (all->count == all->cap) {
		size_t cap = all->cap ? all->cap * 2 : 256;
		all->a = realloc(all->a, cap * sizeof *all->a);
		if (!all->a)
			abort();
		all->cap = cap;
	}
	all->a[all->count++] = (struct access){decl, cursor_name(decl), at, how};
}

static void alias_add(struct unit *u, CXCursor a, CXCursor b)
{
	if (clang_equalCursors(a, b))
		return;
	u->alias = realloc(u->alias, (u->aliases + 1) * sizeof *u->alias);
	if (!u->alias)
		abort();
	u->alias[u->aliases++] = (struct alias){a, b};
}

static void record(struct unit *u, CXCursor ref, int how, bool pointee)
{
	CXCursor decl = clang_getCanonicalCursor(clang_getCursorReferenced(ref));
	enum CXCursorKind kind = clang_getCursorKind(decl);
	CXType type = clang_getCanonicalType(clang_getCursorType(decl));
	unsigned at, to;

	if (kind != CXCursor_VarDecl && kind != CXCursor_ParmDecl)
		return;
	/* reading a pointer itself reads no content */
	if (type.kind == CXType_Pointer && !pointee &&
	    !(how & (ACCESS_WRITE | ACCESS_ALIAS | ACCESS_ESCAPE)))
		return;
	if (type.kind == CXType_Pointer && !pointee && (how & ACCESS_WRITE))
		how |= ACCESS_REPOINT;
	unit_extent(ref, &at, &to);
	if ((how & (ACCESS_ALIAS | ACCESS_ESCAPE)) && !clang_Cursor_isNull(u->value_of))
		alias_add(u, decl, u->value_of);
	access_add(u, decl, at, how);
}

static bool is_pointer(CXCursor c)
{
	CXType t = clang_getCanonicalType(clang_getCursorType(c));

	return t.kind == CXType_Pointer || t.kind == CXType_ConstantArray ||
	       t.kind == CXType_IncompleteArray || t.kind == CXType_VariableArray;
}

static bool points_to_const(CXCursor c)
{
	CXType t = clang_getCanonicalType(clang_getCursorType(c));

	return t.kind == CXType_Pointer && clang_isConstQualifiedType(clang_getPointeeType(t));
}

static bool same_place(CXCursor a, CXCursor b)
{
	unsigned from, to, b_from, b_to;

	unit_extent(a, &from, &to);
	unit_extent(b, &b_from, &b_to);
	return from == b_from && to == b_to;
}

static void walk_call(struct unit *u, CXCursor c, const struct cursors *kids)
{
	int args = clang_Cursor_getNumArguments(c);
	CXType function = clang_getCursorType(clang_getCursorReferenced(c));
	int named = clang_getNumArgTypes(function);
	struct effect *e = effect_of(u, c);
	unsigned from, to;

	for (size_t i = 0; i < kids->count; i++) {
		CXCursor kid = kids->c[i];
		int which = -1;

		/* by place where they don't simply follow the function: in an initializer the
		 * cursors of one argument are not equal; in a macro all places are */
		if (args >= 0 && kids->count == (size_t)args + 1)
			which = (int)i - 1;
		for (int a = 0; a < args && kids->count != (size_t)args + 1; a++)
			if (same_place(clang_Cursor_getArgument(c, (unsigned)a), kid))
				which = a;
		if (which < 0)
			walk(u, kid, ACCESS_READ, false);
		else if (!is_pointer(kid))
			walk(u, kid, ACCESS_READ, false);
		else if (points_to_const(kid) || (named >= 0 && which >= named))
			walk(u, kid, ACCESS_READ, true);
		else
			walk(u, kid, effect_argument(e, which), true);
	}
	unit_extent(c, &from, &to);
	effect_globals(u, e, from);
}

/* The variable that an assignment's left side belongs to. */
static CXCursor base_of(CXCursor c)
{
	while (clang_getCursorKind(c) != CXCursor_DeclRefExpr) {
		struct cursors kids;
		cursors_of(c, &kids);
		if (!kids.count)
			return clang_getNullCursor();
		c = kids.c[0];
		free(kids.c);
	}
	return clang_getCanonicalCursor(clang_getCursorReferenced(c));
}

/* An expression whose value goes into a variable: a pointer in it gets a second name. */
static void walk_value(struct unit *u, CXCursor c, CXCursor to)
{
	CXCursor before = u->value_of;

	if (is_pointer(c) && !points_to_const(c)) {
		u->value_of = to;
		walk(u, c, ACCESS_ALIAS, false);
		u->value_of = before;
	} else
		walk(u, c, ACCESS_READ, false);
}

static void walk_operator(struct unit *u, CXCursor c, const struct cursors *kids, int how,
			  bool pointee)
{
	const char *op = unit_operator(c);

	if (kids->count == 2 && strcmp(op, "=") == 0) {
		walk_value(u, kids->c[1], base_of(kids->c[0]));
		walk(u, kids->c[0], ACCESS_WRITE, false);
	} else if (kids->count == 2) {
		for (int i = 0; i < 2; i++) /* p + 3 leads where p leads */
			if (pointee && is_pointer(kids->c[i]))
				walk(u, kids->c[i], how, true);
			else
				walk(u, kids->c[i], how & ~ACCESS_WRITE, pointee);
	} else if (strcmp(op, "++") == 0 || strcmp(op, "--") == 0)
		walk(u, kids->c[0], ACCESS_READ | ACCESS_WRITE | ACCESS_UPDATE, false);
	else if (strcmp(op, "&") == 0) /* &x handed on: as a pointer to it */
		walk(u, kids->c[0], pointee ? how : ACCESS_ALIAS, false);
	else if (strcmp(op, "*") == 0)
		walk(u, kids->c[0], how, true);
	else
		walk(u, kids->c[0], ACCESS_READ, false);
}

static void walk(struct unit *u, CXCursor c, int how, bool pointee)
{
	enum CXCursorKind kind = clang_getCursorKind(c);
	struct cursors kids;

	if (kind == CXCursor_DeclRefExpr) {
		record(u, c, how, pointee);
		return;
	}
	cursors_of(c, &kids);
	switch (kind) {
	case CXCursor_BinaryOperator:
	case CXCursor_UnaryOperator:
		if (kids.count == 1 || kids.count == 2)
			walk_operator(u, c, &kids, how, pointee);
		break;
	case CXCursor_CompoundAssignOperator:
		walk(u, kids.c[0], ACCESS_READ | ACCESS_WRITE | ACCESS_UPDATE, false);
		walk(u, kids.c[1], ACCESS_READ, false);
		break;
	case CXCursor_ArraySubscriptExpr:
		walk(u, kids.c[0], how, true);
		walk(u, kids.c[1], ACCESS_READ, false);
		break;
	case CXCursor_MemberRefExpr:
		if (kids.count)
			walk(u, kids.c[0], how, is_pointer(kids.c[0]) || pointee);
		break;
	case CXCursor_CallExpr:
		walk_call(u, c, &kids);
		break;
	case CXCursor_VarDecl:
		for (size_t i = 0; i < kids.count; i++)
			walk_value(u, kids.c[i], clang_getCanonicalCursor(c));
		if (kids.count && clang_isExpression(clang_getCursorKind(kids.c[kids.count - 1])))
			record(u, c, ACCESS_WRITE, false);
		break;
	case CXCursor_ParenExpr:
	case CXCursor_UnexposedExpr:
	case CXCursor_CStyleCastExpr:
	case CXCursor_ConditionalOperator:
		for (size_t i = 0; i < kids.count; i++)
			walk(u, kids.c[i], how, pointee);
		break;
	default:
		for (size_t i = 0; i < kids.count; i++)
			walk(u, kids.c[i], ACCESS_READ, false);
	}
	free(kids.c);
}

void access_collect(struct unit *u, CXCursor function)
{
	walk(u, function, ACCESS_READ, false);
}

/* Other files may write it, and functions that are not seen. */
static bool is_public(CXCursor decl)
{
	return clang_getCursorKind(clang_getCursorSemanticParent(decl)) ==
		   CXCursor_TranslationUnit &&
	       clang_getCursorLinkage(decl) == CXLinkage_External;
}

int access_of(const struct unit *u, CXCursor decl, unsigned from, unsigned to)
{
	int how = 0;

	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];
		if (a->at >= from && a->at < to && clang_equalCursors(a->decl, decl))
			how |= a->how;
	}
	for (size_t i = 0; i < u->blinds && is_public(decl); i++)
		if (u->blind[i] >= from && u->blind[i] < to)
			how |= ACCESS_ESCAPE;
	return how;
}

const struct access *access_last(const struct unit *u, CXCursor decl, unsigned from, unsigned to,
				 int how)
{
	static struct access blind;
	const struct access *last = NULL;

	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];
		if (a->at >= from && a->at < to && (a->how & how) &&
		    clang_equalCursors(a->decl, decl) && (!last || a->at >= last->at))
			last = a;
	}
	for (size_t i = 0; i < u->blinds && (how & ACCESS_ESCAPE) && is_public(decl); i++)
		if (u->blind[i] >= from && u->blind[i] < to && (!last || u->blind[i] > last->at)) {
			blind = (struct access){decl, "", u->blind[i], ACCESS_ESCAPE};
			last = &blind;
		}
	return last;
}

static bool shared_from(const struct unit *u, CXCursor a, CXCursor b, bool *seen)
{
	for (size_t i = 0; i < u->aliases; i++) {
		bool to_b = clang_equalCursors(u->alias[i].a, a);

		if (seen[i] || (!to_b && !clang_equalCursors(u->alias[i].b, a)))
			continue;
		seen[i] = true;
		CXCursor next = to_b ? u->alias[i].b : u->alias[i].a;
		if (clang_equalCursors(next, b) || shared_from(u, next, b, seen))
			return true;
	}
	return false;
}

bool access_shared(const struct unit *u, CXCursor a, CXCursor b)
{
	bool *seen, shared;

	if (clang_equalCursors(a, b))
		return true;
	if (!u->aliases)
		return false;
	seen = text_memory(u->aliases * sizeof *seen);
	shared = shared_from(u, a, b, seen);
	free(seen);
	return shared;
}

const struct access *access_update(const struct unit *u, CXCursor decl, unsigned from, unsigned to)
{
	const struct access *first = NULL;

	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];

		if (a->at < from || a->at >= to || !access_shared(u, decl, a->decl))
			continue;
		if (a->how & ACCESS_UPDATE)
			return a;
		/* a function that reads what it has set is a write */
		if ((a->how & ACCESS_WRITE) && !(a->how & ACCESS_REPOINT))
			return first;
		if ((a->how & ACCESS_READ) && !(a->how & ACCESS_ESCAPE) && !first)
			first = a;
	}
	return NULL;
}
