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

	unit_extent(ref, &at, &to);
	if (kind == CXCursor_FunctionDecl) /* handed on: somebody calls it, now or later */
		effect_globals(u, effect_of(u, ref), at, ACCESS_LATER);
	if (kind != CXCursor_VarDecl && kind != CXCursor_ParmDecl)
		return;
	/* reading a pointer itself reads no content */
	if (type.kind == CXType_Pointer && !pointee &&
	    !(how & (ACCESS_WRITE | ACCESS_ALIAS | ACCESS_ESCAPE)))
		return;
	if (type.kind == CXType_Pointer && !pointee && (how & ACCESS_WRITE))
		how |= ACCESS_REPOINT;
	if ((how & ACCESS_WRITE) && (u->loops || u->branches))
		how |= ACCESS_MAYBE;
	if ((how & ACCESS_WRITE) && u->judgments)
		how |= ACCESS_SOME;
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

static bool in_words(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(name, *words) == 0)
			return true;
	return false;
}

/* Functions of libraries that add to what they are given: y += a x. Those with a beta before their
 * output write it anew where beta is 0. */
static bool call_updates(const struct unit *u, CXCursor c)
{
	static const char *const ends[] = {"axpy", "axpby", "scal", "swap", "rot", "ger",
					   "geru", "gerc",  "syr",  "syr2", "her", "her2",
					   "trmm", "trsm",  "trmv", "trsv", NULL};
	static const char *const names[] = {"strcat", "strncat", "memmove", "wcscat", NULL};
	char *name = cursor_name(c);
	int args = clang_Cursor_getNumArguments(c);
	bool updates = in_words(name, names) || strncmp(name, "__sync_", 7) == 0 ||
		       strncmp(name, "__atomic_fetch", 14) == 0 ||
		       strncmp(name, "atomic_fetch", 12) == 0 || strncmp(name, "LAPACKE_", 8) == 0;
	unsigned from, to;

	if (strncmp(name, "cblas_", 6) == 0 && strlen(name) > 7) {
		updates = in_words(name + 7, ends);
		if (args > 10 && !updates) { /* gemm, gemv, symm, syrk */
			CXEvalResult beta =
			    clang_Cursor_Evaluate(clang_Cursor_getArgument(c, (unsigned)args - 3));
			CXEvalResultKind kind =
			    beta ? clang_EvalResult_getKind(beta) : CXEval_UnExposed;
			updates =
			    !(kind == CXEval_Int && clang_EvalResult_getAsInt(beta) == 0) &&
			    !(kind == CXEval_Float && clang_EvalResult_getAsDouble(beta) == 0);
			if (beta)
				clang_EvalResult_dispose(beta);
		}
	}
	unit_extent(c, &from, &to);
	if (strncmp(name, "MPI_", 4) == 0 && clang_Cursor_getTranslationUnit(c) == u->tu &&
	    to <= u->src->len && from < to) {
		char *text = text_cut(u->src->text + from, to - from);
		updates |= strstr(text, "MPI_IN_PLACE") != NULL;
		free(text);
	}
	free(name);
	return updates;
}

/* The function that a call names, not a pointer to one. */
static bool names_function(CXCursor c)
{
	return clang_getCursorKind(clang_getCursorReferenced(c)) == CXCursor_FunctionDecl;
}

static void walk_call(struct unit *u, CXCursor c, const struct cursors *kids)
{
	int update = call_updates(u, c) ? ACCESS_WRITE | ACCESS_UPDATE : 0;
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
		if (which < 0 && i == 0 && names_function(kid))
			continue;
		if (which < 0)
			walk(u, kid, ACCESS_READ, false);
		else if (!is_pointer(kid))
			walk(u, kid, ACCESS_READ, false);
		else if (points_to_const(kid) || (named >= 0 && which >= named))
			walk(u, kid, ACCESS_READ, true);
		else
			walk(u, kid, effect_argument(e, which) | update, true);
	}
	unit_extent(c, &from, &to);
	effect_globals(u, e, from, 0);
	if (effect_waits(e)) {
		u->wait = realloc(u->wait, (u->waits + 1) * sizeof *u->wait);
		if (!u->wait)
			abort();
		u->wait[u->waits++] = from;
	}
}

/* Does an index depend on an element? Then data say which place is written. */
static enum CXChildVisitResult element_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	enum CXCursorKind kind = clang_getCursorKind(c);

	*(bool *)data |= kind == CXCursor_ArraySubscriptExpr ||
			 (kind == CXCursor_UnaryOperator && strcmp(unit_operator(c), "*") == 0);
	return CXChildVisit_Recurse;
}

static bool has_element(CXCursor c)
{
	bool found = false;

	element_visit(c, c, &found);
	clang_visitChildren(c, element_visit, &found);
	return found;
}

/* A member that is a pointer leads out of the struct. */
static int member_how(CXCursor member, int how, bool pointee)
{
	CXType t = clang_getCanonicalType(clang_getCursorType(member));

	return pointee && t.kind == CXType_Pointer ? how | ACCESS_DEEP : how;
}

static enum CXChildVisitResult real_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	CXType t = clang_getCanonicalType(clang_getCursorType(c));

	*(bool *)data |= t.kind == CXType_Double || t.kind == CXType_Float;
	return CXChildVisit_Recurse;
}

/* Not whether an index is at the edge, but what was computed. */
static bool asks_data(CXCursor condition)
{
	bool real = false;

	real_visit(condition, condition, &real);
	clang_visitChildren(condition, real_visit, &real);
	return real || has_element(condition);
}

/* What a branch holds may not be done; its first child is what it asks. One of `then` and `else` is
 * taken for a place that is always written. */
static void walk_branch(struct unit *u, const struct cursors *kids, bool alone)
{
	bool judgment = alone && kids->count > 1 && asks_data(kids->c[0]);

	for (size_t i = 0; i < kids->count; i++) {
		u->branches += i > 0;
		u->judgments += i > 0 && judgment;
		walk(u, kids->c[i], ACCESS_READ, false);
		u->branches -= i > 0;
		u->judgments -= i > 0 && judgment;
	}
}

static void walk_loop(struct unit *u, const struct cursors *kids)
{
	u->loops++;
	for (size_t i = 0; i < kids->count; i++)
		walk(u, kids->c[i], ACCESS_READ, false);
	u->loops--;
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

	if (clang_getCursorKind(c) == CXCursor_InitListExpr) {
		struct cursors kids;
		cursors_of(c, &kids);
		for (size_t i = 0; i < kids.count; i++)
			walk_value(u, kids.c[i], to);
		free(kids.c);
	} else if (is_pointer(c) && !points_to_const(c)) {
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
	} else if (strcmp(op, "&&") == 0 || strcmp(op, "||") == 0) {
		walk_branch(u, kids, true);
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
	case CXCursor_IfStmt:
	case CXCursor_SwitchStmt:
		walk_branch(u, &kids, kids.count < 3);
		break;
	case CXCursor_ForStmt:
	case CXCursor_WhileStmt:
	case CXCursor_CXXForRangeStmt:
		walk_loop(u, &kids);
		break;
	case CXCursor_ArraySubscriptExpr:
		if ((how & ACCESS_WRITE) && kids.count > 1 && has_element(kids.c[1]))
			how |= ACCESS_SOME;
		walk(u, kids.c[0], how, true);
		walk(u, kids.c[1], ACCESS_READ, false);
		break;
	case CXCursor_MemberRefExpr:
		if (kids.count)
			walk(u, kids.c[0], member_how(c, how, pointee),
			     is_pointer(kids.c[0]) || pointee);
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
		for (size_t i = 0; i < kids.count; i++)
			walk(u, kids.c[i], how, pointee);
		break;
	case CXCursor_ConditionalOperator:
		for (size_t i = 0; i < kids.count; i++) {
			u->branches += i > 0;
			walk(u, kids.c[i], how, pointee);
			u->branches -= i > 0;
		}
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

/* What the offsets of `calls` between two places may have written: what was handed on before them
 * as `how` says. The last offset, or 0. */
static unsigned written_later(const struct unit *u, CXCursor decl, const unsigned *calls,
			      size_t count, int how, unsigned from, unsigned to)
{
	unsigned last = 0, begun = ~0u;

	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];
		if ((a->how & how) && a->at < begun && access_shared(u, decl, a->decl))
			begun = a->at;
	}
	for (size_t i = 0; i < count; i++)
		if (calls[i] >= from && calls[i] < to && calls[i] > begun && calls[i] > last)
			last = calls[i];
	return last;
}

/* The last place between two where others have written it, of whom only a call tells that they are
 * through. */
static unsigned waited_for(const struct unit *u, CXCursor decl, unsigned from, unsigned to)
{
	unsigned wait =
	    written_later(u, decl, u->wait, u->waits, ACCESS_LATER | ACCESS_UNSEEN, from, to);
	unsigned call = written_later(u, decl, u->blind, u->blinds, ACCESS_LATER, from, to);

	return wait > call ? wait : call;
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
	if (waited_for(u, decl, from, to))
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
	unsigned wait = how & ACCESS_ESCAPE ? waited_for(u, decl, from, to) : 0;
	if (wait && (!last || wait > last->at)) {
		blind = (struct access){decl, "", wait, ACCESS_ESCAPE};
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
