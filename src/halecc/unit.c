/* SPDX-License-Identifier: BSD-3-Clause */
/* One source file through libclang: pragmas from its tokens (they are not in the tree), each bound
 * to the statement that follows it in the same compound statement. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

static enum CXChildVisitResult cursors_add(CXCursor c, CXCursor parent, CXClientData data)
{
	struct cursors *out = data;

	if (out->count == out->cap) {
		size_t cap = out->cap ? out->cap * 2 : 8;
		CXCursor *more = text_memory(cap * sizeof *more);
		if (out->count)
			memcpy(more, out->c, out->count * sizeof *more);
		free(out->c);
		out->c = more;
		out->cap = cap;
	}
	out->c[out->count++] = c;
	return CXChildVisit_Continue;
}

void cursors_of(CXCursor parent, struct cursors *out)
{
	memset(out, 0, sizeof *out);
	clang_visitChildren(parent, cursors_add, out);
}

static unsigned offset_of(CXSourceLocation l, CXFile *file)
{
	unsigned offset;

	clang_getExpansionLocation(l, file, NULL, NULL, &offset);
	return offset;
}

void unit_extent(CXCursor c, unsigned *from, unsigned *to)
{
	CXSourceRange r = clang_getCursorExtent(c);

	*from = offset_of(clang_getRangeStart(r), NULL);
	*to = offset_of(clang_getRangeEnd(r), NULL);
}

bool unit_declares(const struct unit *u, CXCursor decl, unsigned from, unsigned to)
{
	CXFile file;
	unsigned at = offset_of(clang_getRangeStart(clang_getCursorExtent(decl)), &file);

	return file && clang_File_isEqual(file, u->file) &&
	       clang_Cursor_getTranslationUnit(decl) == u->tu && at >= from && at < to;
}

char *cursor_name(CXCursor c)
{
	CXString s = clang_getCursorSpelling(c);
	char *copy = text_format("%s", clang_getCString(s));

	clang_disposeString(s);
	return copy;
}

static bool token_is(CXTranslationUnit tu, CXToken t, const char *what)
{
	CXString s = clang_getTokenSpelling(tu, t);
	bool same = strcmp(clang_getCString(s), what) == 0;

	clang_disposeString(s);
	return same;
}

/* An operand whose place is meant, not its value: what is read stands in an implicit cast. */
static bool is_place(CXCursor c)
{
	enum CXCursorKind kind = clang_getCursorKind(c);
	struct cursors kids;
	bool place;

	if (kind != CXCursor_ParenExpr)
		return kind == CXCursor_DeclRefExpr || kind == CXCursor_ArraySubscriptExpr ||
		       kind == CXCursor_MemberRefExpr || kind == CXCursor_UnaryOperator;
	cursors_of(c, &kids);
	place = kids.count == 1 && is_place(kids.c[0]);
	free(kids.c);
	return place;
}

/* The operator of an expression that a macro wrote, so that no token of this place is it. Of two
 * operands only an assignment takes the first one's place. */
static const char *operator_by_types(CXCursor c, const struct cursors *kids)
{
	CXType whole = clang_getCanonicalType(clang_getCursorType(c)), part;

	if (kids->count == 2)
		return is_place(kids->c[0]) ? "=" : "";
	if (kids->count != 1)
		return "";
	part = clang_getCanonicalType(clang_getCursorType(kids->c[0]));
	if (part.kind == CXType_Pointer && clang_equalTypes(clang_getPointeeType(part), whole))
		return "*";
	if (whole.kind == CXType_Pointer && clang_equalTypes(clang_getPointeeType(whole), part))
		return "&";
	return is_place(kids->c[0]) ? "++" : "";
}

const char *unit_operator(CXCursor c)
{
	CXTranslationUnit tu = clang_Cursor_getTranslationUnit(c);
	struct cursors kids;
	unsigned from, to, left = 0, right = 0, n, none;
	const char *found = "";
	CXToken *t;

	cursors_of(c, &kids);
	unit_extent(c, &from, &to);
	if (kids.count == 2) {
		unit_extent(kids.c[0], &none, &left);
		unit_extent(kids.c[1], &right, &none);
	} else if (kids.count == 1) { /* before or behind its operand */
		unit_extent(kids.c[0], &left, &right);
	}
	clang_tokenize(tu, clang_getCursorExtent(c), &t, &n);
	for (unsigned i = 0; i < n && !*found; i++) {
		unsigned at = offset_of(clang_getTokenLocation(tu, t[i]), NULL);
		bool between =
		    kids.count == 2 ? at >= left && at < right : at < left || at >= right;
		if (between && !token_is(tu, t[i], ")") && !token_is(tu, t[i], "(")) {
			CXString s = clang_getTokenSpelling(tu, t[i]);
			found = text_format("%s", clang_getCString(s));
			clang_disposeString(s);
		}
	}
	clang_disposeTokens(tu, t, n);
	if (!*found)
		found = operator_by_types(c, &kids);
	free(kids.c);
	return found;
}

static bool skipped(const struct unit *u, unsigned at)
{
	CXSourceRangeList *list = clang_getSkippedRanges(u->tu, u->file);
	bool inside = false;

	for (unsigned i = 0; i < list->count; i++) {
		unsigned from = offset_of(clang_getRangeStart(list->ranges[i]), NULL);
		unsigned to = offset_of(clang_getRangeEnd(list->ranges[i]), NULL);
		inside |= at >= from && at < to;
	}
	clang_disposeSourceRangeList(list);
	return inside;
}

/* The end of a logical line: its newline. */
static unsigned line_end(const struct source *s, unsigned at)
{
	while (at < s->len && !(s->text[at] == '\n' && s->text[at - 1] != '\\' &&
				!(at > 1 && s->text[at - 1] == '\r' && s->text[at - 2] == '\\')))
		at++;
	return at;
}

/* Only the preprocessor knows the place of _Pragma("hale protect …") and _Pragma("offload …"). */
static void operator_refuse(struct unit *u, CXToken text)
{
	CXString s = clang_getTokenSpelling(u->tu, text);
	unsigned at = offset_of(clang_getTokenLocation(u->tu, text), NULL);

	if (strstr(clang_getCString(s), "protect") && !skipped(u, at))
		source_error(
		    u->src, at,
		    "a region is marked by a line of its own: write '#pragma hale protect', "
		    "not _Pragma");
	if (strncmp(clang_getCString(s), "\"offload ", 9) == 0 && !skipped(u, at))
		source_error(u->src, at,
			     "an offloaded statement is marked by a line of its own: write "
			     "'#pragma offload', not _Pragma");
	clang_disposeString(s);
}

static void offload_add(struct unit *u, unsigned at, unsigned name)
{
	struct halecc_offload *o = &u->offload[u->offloads];

	if (skipped(u, at))
		return;
	if (u->offloads == OFFLOADS_MAX) {
		source_error(u->src, at, "more than %d offloaded statements in one file: divide it",
			     OFFLOADS_MAX);
		return;
	}
	*o = (struct halecc_offload){.at = at,
				     .words = name + (unsigned)strlen("offload"),
				     .end = line_end(u->src, at),
				     .line = source_line(u->src, at),
				     .number = u->offloads++};
}

static void pragmas_find(struct unit *u)
{
	CXToken *t;
	unsigned n;

	clang_tokenize(u->tu, clang_getCursorExtent(clang_getTranslationUnitCursor(u->tu)), &t, &n);
	for (unsigned i = 0; i + 2 < n; i++) {
		unsigned at, word;

		if (token_is(u->tu, t[i], "_Pragma"))
			operator_refuse(u, t[i + 2]);
		if (!token_is(u->tu, t[i], "#") || !token_is(u->tu, t[i + 1], "pragma"))
			continue;
		if (token_is(u->tu, t[i + 2], "offload")) {
			offload_add(u, offset_of(clang_getTokenLocation(u->tu, t[i]), NULL),
				    offset_of(clang_getTokenLocation(u->tu, t[i + 2]), NULL));
			continue;
		}
		word = i + 2 + (token_is(u->tu, t[i + 2], "hale") && i + 3 < n);
		at = offset_of(clang_getTokenLocation(u->tu, t[i]), NULL);
		if (word == i + 3 && !token_is(u->tu, t[word], "protect") && !skipped(u, at))
			source_warn(u->src, offset_of(clang_getTokenLocation(u->tu, t[word]), NULL),
				    "'#pragma hale' knows 'protect' only; this one is passed over");
		if (!token_is(u->tu, t[word], "protect") || skipped(u, at))
			continue;
		if (u->regions == REGIONS_MAX) {
			source_error(u->src, at, "more than %d regions in one file: divide it",
				     REGIONS_MAX);
			break;
		}
		struct halecc_region *r = &u->region[u->regions++];
		r->at = at;
		r->line = source_line(u->src, at);
		r->end = line_end(u->src, at);
		r->number = u->regions - 1;
		r->degree = 0;
	}
	clang_disposeTokens(u->tu, t, n);
}

/* Past spaces and comments. */
static unsigned skip_blank(const struct source *s, unsigned at)
{
	for (;;) {
		while (at < s->len && strchr(" \t\r\n\f\v", s->text[at]))
			at++;
		if (at + 1 < s->len && s->text[at] == '/' && s->text[at + 1] == '*') {
			const char *end = strstr(s->text + at + 2, "*/");
			at = end ? (unsigned)(end + 2 - s->text) : (unsigned)s->len;
		} else if (at + 1 < s->len && s->text[at] == '/' && s->text[at + 1] == '/')
			at = line_end(s, at);
		else
			return at;
	}
}

unsigned unit_skip_blank(const struct unit *u, unsigned at)
{
	return skip_blank(u->src, at);
}

unsigned unit_statement_end(const struct unit *u, unsigned to)
{
	unsigned at = skip_blank(u->src, to);

	return at < u->src->len && u->src->text[at] == ';' ? at + 1 : to;
}

struct bind {
	struct unit *u;
	CXCursor function;
};

/* A statement begins at `from` in the compound from `inner` to `outer`. Is it the first behind the
 * pragma from `at` to `end` in its compound, so far? `best`: where the first known one begins, ~0u:
 * none is known. */
static bool is_first_behind(unsigned at, unsigned end, unsigned best, unsigned from, unsigned inner,
			    unsigned outer)
{
	return from >= end && inner < at && outer > end && from < best;
}

static enum CXChildVisitResult statement_bind(CXCursor c, CXCursor parent, CXClientData data)
{
	struct bind *b = data;
	struct unit *u = b->u;
	unsigned from, to, inner, outer;
	enum CXCursorKind kind = clang_getCursorKind(c);

	if (kind == CXCursor_LambdaExpr)
		return CXChildVisit_Continue;
	if (clang_getCursorKind(parent) != CXCursor_CompoundStmt)
		return CXChildVisit_Recurse;
	unit_extent(c, &from, &to);
	unit_extent(parent, &inner, &outer);
	for (int i = 0; i < u->regions; i++) {
		struct halecc_region *r = &u->region[i];
		if (!is_first_behind(r->at, r->end, r->bound ? r->from : ~0u, from, inner, outer))
			continue;
		r->bound = true;
		r->statement = c;
		r->function = b->function;
		r->from = from;
		r->to = unit_statement_end(u, to);
		r->compound = parent;
		r->inner = inner + 1;
		r->outer = outer - 1;
	}
	for (int i = 0; i < u->offloads; i++) {
		struct halecc_offload *o = &u->offload[i];
		if (!is_first_behind(o->at, o->end, o->bound ? o->from : ~0u, from, inner, outer))
			continue;
		o->bound = true;
		o->statement = c;
		o->function = b->function;
		o->from = from;
		o->to = unit_statement_end(u, to);
	}
	return CXChildVisit_Recurse;
}

static enum CXChildVisitResult function_find(CXCursor c, CXCursor parent, CXClientData data)
{
	struct unit *u = data;
	enum CXCursorKind kind = clang_getCursorKind(c);
	struct bind b = {u, c};
	CXFile file;

	offset_of(clang_getCursorLocation(c), &file);
	if (kind == CXCursor_FunctionDecl || kind == CXCursor_CXXMethod ||
	    kind == CXCursor_Constructor || kind == CXCursor_MacroDefinition) {
		u->known = realloc(u->known, (u->known_count + 1) * sizeof *u->known);
		u->known[u->known_count++] = cursor_name(c);
		if (kind != CXCursor_MacroDefinition && clang_isCursorDefinition(c) && file &&
		    clang_File_isEqual(file, u->file)) {
			clang_visitChildren(c, statement_bind, &b);
			access_collect(u, c);
		}
		return CXChildVisit_Continue;
	}
	return kind == CXCursor_Namespace || kind == CXCursor_ClassDecl ||
		       kind == CXCursor_StructDecl || kind == CXCursor_LinkageSpec ||
		       kind == CXCursor_UnexposedDecl
		   ? CXChildVisit_Recurse
		   : CXChildVisit_Continue;
}

bool unit_knows(const struct unit *u, const char *name)
{
	for (size_t i = 0; i < u->known_count; i++)
		if (strcmp(u->known[i], name) == 0)
			return true;
	return false;
}

/* What libclang complains about as errors the compiler will say better; but then the tree is not to
 * be trusted. */
static bool tree_is_whole(struct unit *u)
{
	unsigned n = clang_getNumDiagnostics(u->tu);

	for (unsigned i = 0; i < n; i++) {
		CXDiagnostic d = clang_getDiagnostic(u->tu, i);
		enum CXDiagnosticSeverity how = clang_getDiagnosticSeverity(d);
		CXString s = clang_formatDiagnostic(d, clang_defaultDiagnosticDisplayOptions());

		if (how >= CXDiagnostic_Error) {
			log_warn("halecc: %s", clang_getCString(s));
			u->src->errors++;
		}
		clang_disposeString(s);
		clang_disposeDiagnostic(d);
	}
	return u->src->errors == 0;
}

/* Warns of pragmas in a header: only those of the source file are looked at. */
static void header_warn(CXFile file, CXSourceLocation *stack, unsigned depth, CXClientData data)
{
	struct unit *u = data;
	size_t size = 0;
	const char *text = clang_getFileContents(u->tu, file, &size);
	CXString name = clang_getFileName(file);
	unsigned line = 1;

	if (depth && text && !clang_Location_isInSystemHeader(clang_getLocation(u->tu, file, 1, 1)))
		for (const char *p = text, *to; p < text + size; p = to + 1, line++) {
			to = memchr(p, '\n', (size_t)(text + size - p));
			to = to ? to : text + size;
			p += strspn(p, " \t");
			if (*p++ != '#')
				continue;
			p += strspn(p, " \t");
			if (strncmp(p, "pragma", 6) != 0)
				continue;
			p += 6 + strspn(p + 6, " \t");
			p += strncmp(p, "hale ", 5) == 0 ? 5 : 0;
			if (strncmp(p, "protect", 7) == 0)
				log_warn("%s:%u: warning: regions of a header are not protected: "
					 "move the function into a source file",
					 clang_getCString(name), line);
			if (strncmp(p, "offload ", 8) == 0)
				log_warn("%s:%u: warning: statements of a header are not "
					 "offloaded: move the function into a source file",
					 clang_getCString(name), line);
		}
	clang_disposeString(name);
}

bool unit_open(struct unit *u, struct source *s, const char *const *args, int count)
{
	CXIndex index = clang_createIndex(0, 0);

	memset(u, 0, sizeof *u);
	u->src = s;
	u->value_of = clang_getNullCursor();
	if (clang_parseTranslationUnit2(index, s->path, args, count, NULL, 0,
					CXTranslationUnit_DetailedPreprocessingRecord,
					&u->tu) != CXError_Success) {
		log_warn("halecc: libclang can't read %s", s->path);
		s->errors++;
		return false;
	}
	if (!tree_is_whole(u))
		return false;
	for (int i = 0; i < s->others; i++)
		if (clang_parseTranslationUnit2(index, s->other[i], args, count, NULL, 0, 0,
						&u->other[u->others]) == CXError_Success)
			u->others++;
	u->file = clang_getFile(u->tu, s->path);
	pragmas_find(u);
	if (!s->quiet)
		clang_getInclusions(u->tu, header_warn, u);
	clang_visitChildren(clang_getTranslationUnitCursor(u->tu), function_find, u);
	for (int i = 0; i < u->regions; i++)
		clause_parse(u, &u->region[i]);
	offload_resolve(u);
	return true;
}

struct lookup {
	const struct unit *u;
	const struct halecc_region *r;
	const char *name;
	CXCursor found;
	unsigned found_at;
};

/* Of several the innermost: it is the last one before the pragma whose scope is still open. */
static enum CXChildVisitResult lookup_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct lookup *l = data;
	enum CXCursorKind kind = clang_getCursorKind(c);
	unsigned from, to, p_from, p_to;

	if (kind == CXCursor_VarDecl || kind == CXCursor_ParmDecl) {
		CXCursor scope = clang_getCursorSemanticParent(c);
		char *name = cursor_name(c);
		unit_extent(c, &from, &to);
		unit_extent(parent, &p_from, &p_to);
		if (strcmp(name, l->name) == 0 && from < l->r->at && from >= l->found_at &&
		    (clang_getCursorKind(scope) == CXCursor_TranslationUnit || p_to > l->r->at ||
		     clang_getCursorKind(parent) == CXCursor_DeclStmt)) {
			l->found = c;
			l->found_at = from;
		}
		free(name);
	}
	if (kind == CXCursor_CompoundStmt || kind == CXCursor_ForStmt) {
		unit_extent(c, &from, &to);
		if (from > l->r->at || to < l->r->at)
			return CXChildVisit_Continue;
	}
	return CXChildVisit_Recurse;
}

static enum CXChildVisitResult global_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct lookup *l = data;

	if (clang_getCursorKind(c) == CXCursor_VarDecl) {
		char *name = cursor_name(c);
		if (strcmp(name, l->name) == 0)
			l->found = c;
		free(name);
	}
	return CXChildVisit_Continue;
}

CXCursor unit_lookup(const struct unit *u, const struct halecc_region *r, const char *name)
{
	struct lookup l = {u, r, name, clang_getNullCursor(), 0};

	clang_visitChildren(r->function, lookup_visit, &l);
	if (clang_Cursor_isNull(l.found))
		clang_visitChildren(clang_getTranslationUnitCursor(u->tu), global_visit, &l);
	return clang_Cursor_isNull(l.found) ? l.found : clang_getCanonicalCursor(l.found);
}

void unit_close(struct unit *u)
{
	for (int i = 0; i < u->others; i++)
		clang_disposeTranslationUnit(u->other[i]);
	u->others = 0;
	if (u->tu)
		clang_disposeTranslationUnit(u->tu);
	u->tu = NULL;
}
