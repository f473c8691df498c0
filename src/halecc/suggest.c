/* SPDX-License-Identifier: BSD-3-Clause */
/* --suggest: the variables worth protecting, by live range times bytes, and the pragmas for them.
 *
 * For each function the statements of its body are weighed: a loop nest of depth d counts 32^d,
 * also in functions that are called; a function that is not seen counts as a nest of two, of a
 * library only when it is handed arrays of numbers. A variable lives from the statement that first
 * writes it to the one that last reads it; its weight is that of the statements in between, times
 * its bytes. Where the compiler can't know these (a pointer), they count as a megabyte. What has a
 * thousandth of the heaviest one's weight is suggested, and what a statement of such a weight has
 * written: to compute it again would cost as much. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

enum { STATEMENTS_MAX = 512, CANDIDATES_MAX = 256, UNKNOWN_BYTES = 1 << 20, DEPTH_MAX = 8 };

struct statement {
	unsigned from, to;
	double weight;
};

struct candidate {
	CXCursor decl;
	const char *name, *extent; /* as a Check wants it: "A[0:n]"; NULL: not known */
	double bytes, weight;
	int first, last; /* statements that write it first, read it last */
	int writer;	 /* the last one that writes it */
	bool written_there;
};

struct suggest {
	struct unit *u;
	CXCursor function;
	struct statement statement[STATEMENTS_MAX];
	int statements;
	struct candidate candidate[CANDIDATES_MAX];
	int candidates;
};

static bool is_loop(enum CXCursorKind k)
{
	return k == CXCursor_ForStmt || k == CXCursor_WhileStmt || k == CXCursor_DoStmt ||
	       k == CXCursor_CXXForRangeStmt;
}

/* Arrays, and what pointers to numbers and to structs of the program point to. */
static bool is_data(CXCursor decl)
{
	CXType t = clang_getCanonicalType(clang_getCursorType(decl));

	if (t.kind != CXType_Pointer && t.kind != CXType_IncompleteArray)
		return clang_Type_getSizeOf(t) > 16 && !clang_isConstQualifiedType(t);
	t = t.kind == CXType_Pointer ? clang_getPointeeType(t) : clang_getArrayElementType(t);
	t = clang_getCanonicalType(t);
	if (t.kind == CXType_Pointer || t.kind == CXType_Void || t.kind == CXType_FunctionProto ||
	    (clang_isConstQualifiedType(t) && t.kind == CXType_Char_S))
		return false;
	return t.kind != CXType_Record || !clang_Location_isInSystemHeader(
					      clang_getCursorLocation(clang_getTypeDeclaration(t)));
}

/* A function of a library that is handed arrays of numbers: it computes. */
static bool takes_numbers(CXCursor function)
{
	CXType type = clang_getCursorType(function);

	for (int i = 0; i < clang_getNumArgTypes(type); i++) {
		CXType t = clang_getCanonicalType(clang_getArgType(type, (unsigned)i));
		if (t.kind != CXType_Pointer)
			continue;
		t = clang_getCanonicalType(clang_getPointeeType(t));
		if (t.kind == CXType_Double || t.kind == CXType_Float)
			return true;
	}
	return false;
}

/* Depth of the deepest loop nest, through the functions that are called. */
static int nest_depth(CXCursor c, int calls)
{
	enum CXCursorKind kind = clang_getCursorKind(c);
	struct cursors kids;
	int most = 0, own = is_loop(kind);

	if (kind == CXCursor_CallExpr) {
		CXCursor callee = clang_getCursorReferenced(c);
		CXCursor body =
		    clang_Cursor_isNull(callee) ? callee : clang_getCursorDefinition(callee);
		if (!clang_Cursor_isNull(body) && calls < DEPTH_MAX)
			most = nest_depth(body, calls + 1);
		else if (!clang_Cursor_isNull(callee) &&
			 (takes_numbers(callee) ||
			  !clang_Location_isInSystemHeader(clang_getCursorLocation(callee))))
			most = 2;
	}
	cursors_of(c, &kids);
	for (size_t i = 0; i < kids.count; i++) {
		int depth = nest_depth(kids.c[i], calls);
		most = depth > most ? depth : most;
	}
	free(kids.c);
	return own + most;
}

static void statements_weigh(struct suggest *s)
{
	struct cursors kids, body = {0};

	cursors_of(s->function, &kids);
	for (size_t i = 0; i < kids.count; i++)
		if (clang_getCursorKind(kids.c[i]) == CXCursor_CompoundStmt)
			cursors_of(kids.c[i], &body);
	for (size_t i = 0; i < body.count && s->statements < STATEMENTS_MAX; i++) {
		struct statement *t = &s->statement[s->statements++];
		int depth = nest_depth(body.c[i], 0);
		unit_extent(body.c[i], &t->from, &t->to);
		t->to = unit_statement_end(s->u, t->to);
		for (t->weight = 1; depth > 0; depth--)
			t->weight *= 32;
	}
	free(body.c);
	free(kids.c);
}

static int statement_at(const struct suggest *s, unsigned at)
{
	for (int i = 0; i < s->statements; i++)
		if (at >= s->statement[i].from && at < s->statement[i].to)
			return i;
	return -1;
}

/* "X" of p = malloc(X), "(X) * (Y)" of p = calloc(X, Y), behind the name at an offset. */
static char *allocated(const struct unit *u, unsigned at)
{
	const char *s = u->src->text + at, *call, *open, *end;
	size_t to_end = strcspn(s, ";{");
	int depth = 0;

	s += strcspn(s, "=;,");
	call = *s == '=' ? strstr(s, "alloc(") : NULL;
	if (!call || call > u->src->text + at + to_end || strcspn(s, ",") < (size_t)(call - s))
		return NULL;
	open = call + 6;
	for (end = open; *end && (depth || *end != ')'); end++) {
		depth += *end == '(';
		depth -= *end == ')';
	}
	if (call[-1] == 'm')
		return text_cut(open, (size_t)(end - open));
	if (call[-1] != 'c')
		return NULL;
	const char *comma = open;
	for (depth = 0; comma < end && (depth || *comma != ','); comma++) {
		depth += *comma == '(';
		depth -= *comma == ')';
	}
	return comma < end ? text_format("(%.*s) * (%s)", (int)(comma - open), open,
					 text_cut(comma + 1, (size_t)(end - comma - 1)))
			   : NULL;
}

static void extent_guess(struct suggest *s, struct candidate *c)
{
	CXType t = clang_getCanonicalType(clang_getCursorType(c->decl));
	const struct accesses *all = &s->u->accesses;

	if (t.kind != CXType_Pointer && t.kind != CXType_IncompleteArray &&
	    t.kind != CXType_VariableArray) {
		long long bytes = clang_Type_getSizeOf(t);
		c->bytes = bytes > 0 ? (double)bytes : UNKNOWN_BYTES;
		c->extent = c->name;
		return;
	}
	c->bytes = UNKNOWN_BYTES;
	if (t.kind == CXType_VariableArray)
		c->extent = c->name;
	for (size_t i = 0; i < all->count && !c->extent; i++)
		if (clang_equalCursors(all->a[i].decl, c->decl) && (all->a[i].how & ACCESS_WRITE)) {
			char *bytes = allocated(s->u, all->a[i].at);
			if (bytes)
				c->extent =
				    text_format("%s[0:(%s) / sizeof *%s]", c->name, bytes, c->name);
		}
}

static struct candidate *candidate_of(struct suggest *s, const struct access *a)
{
	struct candidate *c;

	for (int i = 0; i < s->candidates; i++)
		if (clang_equalCursors(s->candidate[i].decl, a->decl))
			return &s->candidate[i];
	if (s->candidates == CANDIDATES_MAX || !is_data(a->decl))
		return NULL;
	c = &s->candidate[s->candidates++];
	*c = (struct candidate){
	    .decl = a->decl, .name = a->name, .first = -1, .last = -1, .writer = -1};
	extent_guess(s, c);
	return c;
}

static bool from_outside(const struct candidate *c)
{
	return clang_getCursorKind(c->decl) == CXCursor_ParmDecl ||
	       clang_getCursorKind(clang_getCursorSemanticParent(c->decl)) ==
		   CXCursor_TranslationUnit;
}

/* What is handed to a function that is not seen may be read there, too, if it was set before. */
static void access_take(struct candidate *c, const struct access *a, int at)
{
	if (a->how & ACCESS_REPOINT)
		return;
	if ((a->how & ACCESS_READ) && (c->first >= 0 || from_outside(c)) &&
	    (c->first < at || from_outside(c) || !(a->how & ACCESS_ESCAPE)) && at > c->last)
		c->last = at;
	if ((a->how & (ACCESS_WRITE | ACCESS_ESCAPE)) && c->first < 0 && c->last < 0)
		c->first = at;
	if (a->how & (ACCESS_WRITE | ACCESS_ESCAPE))
		c->writer = at;
}

static void lives_find(struct suggest *s)
{
	const struct accesses *all = &s->u->accesses;

	for (size_t i = 0; i < all->count; i++) {
		int at = statement_at(s, all->a[i].at);
		struct candidate *c = at < 0 ? NULL : candidate_of(s, &all->a[i]);
		if (c)
			access_take(c, &all->a[i], at);
	}
	for (int i = 0; i < s->candidates; i++) {
		struct candidate *c = &s->candidate[i];
		const struct statement *last = &s->statement[c->last < 0 ? 0 : c->last];
		for (int k = c->first + 1; k <= c->last; k++)
			c->weight += s->statement[k].weight;
		c->weight *= c->bytes;
		c->written_there = c->last >= 0 && (access_of(s->u, c->decl, last->from, last->to) &
						    (ACCESS_WRITE | ACCESS_ESCAPE));
	}
}

/* The heaviest first, then what heavy statements have written; how many. */
static int worth_count(struct suggest *s)
{
	double heaviest = 0, work = 0;
	int count = 0;

	for (int i = 0; i < s->candidates; i++)
		heaviest = s->candidate[i].weight > heaviest ? s->candidate[i].weight : heaviest;
	for (int k = 0; k < s->statements; k++)
		work = s->statement[k].weight > work ? s->statement[k].weight : work;
	for (int i = 0; i < s->candidates; i++) {
		struct candidate c = s->candidate[i];
		if (c.last < 0 || c.weight <= 0 ||
		    (c.weight < heaviest / 1000 &&
		     (c.writer < 0 || s->statement[c.writer].weight < work / 1000)))
			continue;
		s->candidate[i] = s->candidate[count];
		s->candidate[count++] = c;
	}
	return count;
}

static int heavier(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->weight > y->weight ? -1 : x->weight < y->weight;
}

/* Whether a suggested variable is written in statement k and read behind it. */
static bool goes_on(const struct suggest *s, int k, int count)
{
	for (int i = 0; i < count; i++) {
		const struct candidate *c = &s->candidate[i];
		if (c->last > k &&
		    access_of(s->u, c->decl, s->statement[k].from, s->statement[k].to) &
			(ACCESS_WRITE | ACCESS_ESCAPE))
			return true;
	}
	return false;
}

static const char *extent_of(const struct candidate *c)
{
	return c->extent ? c->extent : text_format("%s[0:…]", c->name);
}

static void pragma_print(const struct suggest *s, int k, int count)
{
	struct text check = {0}, recover = {0}, copy = {0};

	for (int i = 0; i < count; i++) {
		const struct candidate *c = &s->candidate[i];
		if (c->last != k)
			continue;
		if (c->written_there) {
			text_add(&copy, "%s%s", copy.len ? ", " : "", extent_of(c));
			continue;
		}
		text_add(&check, "%ssum(%s)", check.len ? ", " : "", extent_of(c));
		text_add(&recover, "%scorrect(%s)", recover.len ? ", " : "", c->name);
	}
	if (!check.len && !copy.len)
		return;
	printf("%s:%u:\n#pragma protect", s->u->src->path,
	       source_line(s->u->src, s->statement[k].from));
	if (copy.len)
		printf(" CR(%s)", copy.s);
	if (check.len)
		printf(" Check(%s) Recover(%s)", check.s, recover.s);
	printf("%s\n", goes_on(s, k, count) ? " Continue" : "");
}

static void function_suggest(struct unit *u, CXCursor function)
{
	struct suggest *s = text_memory(sizeof *s);
	char *name = cursor_name(function);
	int count = 0, heavy = 0;

	s->u = u;
	s->function = function;
	statements_weigh(s);
	lives_find(s);
	count = worth_count(s);
	qsort(s->candidate, (size_t)count, sizeof *s->candidate, heavier);
	for (int k = 0; k < s->statements; k++)
		heavy += s->statement[k].weight > 1;
	if (count && heavy > 1) { /* a single one is a region of who calls it */
		printf("%s: %s\n%-14s %-34s %-8s %-9s %s\n", u->src->path, name, "variable",
		       "extent", "written", "last use", "share of live bytes");
		double all = 0;
		for (int i = 0; i < count; i++)
			all += s->candidate[i].weight;
		for (int i = 0; i < count; i++) {
			const struct candidate *c = &s->candidate[i];
			char at[16] = "before";
			if (c->first >= 0)
				snprintf(at, sizeof at, "%u",
					 source_line(u->src, s->statement[c->first].from));
			printf("%-14s %-34s %-8s %-9u %.1f %%\n", c->name,
			       c->extent ? c->extent : "to be given", at,
			       source_line(u->src, s->statement[c->last].from),
			       100 * c->weight / all);
		}
		for (int k = 0; k < s->statements; k++)
			pragma_print(s, k, count);
		printf("\n");
	}
	free(name);
}

struct functions {
	struct unit *u;
};

static enum CXChildVisitResult function_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct functions *f = data;
	enum CXCursorKind kind = clang_getCursorKind(c);
	CXFile file;

	clang_getSpellingLocation(clang_getCursorLocation(c), &file, NULL, NULL, NULL);
	if (kind == CXCursor_FunctionDecl || kind == CXCursor_CXXMethod) {
		if (clang_isCursorDefinition(c) && file && clang_File_isEqual(file, f->u->file))
			function_suggest(f->u, c);
		return CXChildVisit_Continue;
	}
	return kind == CXCursor_Namespace || kind == CXCursor_LinkageSpec ? CXChildVisit_Recurse
									  : CXChildVisit_Continue;
}

void suggest_unit(struct unit *u)
{
	struct functions f = {u};

	clang_visitChildren(clang_getTranslationUnitCursor(u->tu), function_visit, &f);
}
