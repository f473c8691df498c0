/* SPDX-License-Identifier: BSD-3-Clause */
/* Who reads and writes which variable, where. One list for the file, in the order of the text.
 *
 * An expression is walked with what is done to the value it stands for. `a[i] = *p + f(q)` writes
 * the content of a, reads i, and reads what p points to; f may write what q points to unless its
 * parameter is a pointer to const. A pointer that is copied makes an alias, whose uses nobody can
 * follow. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

static void walk(struct unit *u, CXCursor c, int how, bool pointee);

static void record(struct unit *u, CXCursor ref, int how, bool pointee)
{
	CXCursor decl = clang_getCanonicalCursor(clang_getCursorReferenced(ref));
	enum CXCursorKind kind = clang_getCursorKind(decl);
	struct accesses *all = &u->accesses;
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
	if (all->count == all->cap) {
		size_t cap = all->cap ? all->cap * 2 : 256;
		all->a = realloc(all->a, cap * sizeof *all->a);
		if (!all->a)
			abort();
		all->cap = cap;
	}
	all->a[all->count++] = (struct access){decl, cursor_name(decl), at, how};
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

static void walk_call(struct unit *u, CXCursor c, const struct cursors *kids)
{
	int args = clang_Cursor_getNumArguments(c);
	CXType function = clang_getCursorType(clang_getCursorReferenced(c));
	int named = clang_getNumArgTypes(function);

	for (size_t i = 0; i < kids->count; i++) {
		CXCursor kid = kids->c[i];
		int which = -1;

		for (int a = 0; a < args; a++)
			if (clang_equalCursors(clang_Cursor_getArgument(c, (unsigned)a), kid))
				which = a;
		if (which < 0)
			walk(u, kid, ACCESS_READ, false);
		else if (!is_pointer(kid))
			walk(u, kid, ACCESS_READ, false);
		else if (points_to_const(kid) || (named >= 0 && which >= named))
			walk(u, kid, ACCESS_READ, true);
		else
			walk(u, kid, ACCESS_READ | ACCESS_ESCAPE, true);
	}
}

/* An expression whose value goes into a variable: a pointer in it gets a second name. */
static void walk_value(struct unit *u, CXCursor c)
{
	if (is_pointer(c) && !points_to_const(c))
		walk(u, c, ACCESS_ALIAS, false);
	else
		walk(u, c, ACCESS_READ, false);
}

static void walk_operator(struct unit *u, CXCursor c, const struct cursors *kids, int how,
			  bool pointee)
{
	const char *op = unit_operator(u, c);

	if (kids->count == 2 && strcmp(op, "=") == 0) {
		walk(u, kids->c[0], ACCESS_WRITE, false);
		walk_value(u, kids->c[1]);
	} else if (kids->count == 2) {
		walk(u, kids->c[0], how & ~ACCESS_WRITE, pointee);
		walk(u, kids->c[1], how & ~ACCESS_WRITE, pointee);
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
			walk_value(u, kids.c[i]);
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

int access_of(const struct unit *u, CXCursor decl, unsigned from, unsigned to)
{
	int how = 0;

	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];
		if (a->at >= from && a->at < to && clang_equalCursors(a->decl, decl))
			how |= a->how;
	}
	return how;
}

const struct access *access_last(const struct unit *u, CXCursor decl, unsigned from, unsigned to,
				 int how)
{
	const struct access *last = NULL;

	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];
		if (a->at >= from && a->at < to && (a->how & how) &&
		    clang_equalCursors(a->decl, decl) && (!last || a->at >= last->at))
			last = a;
	}
	return last;
}
