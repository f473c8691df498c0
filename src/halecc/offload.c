/* SPDX-License-Identifier: BSD-3-Clause */
/* #pragma offload target(hale:N) in(…) out(…) inout(…): the statement behind it becomes a function
 * of a shared object that is made of this file, too (docs/offload.md, 'A statement of a program').
 * The program's side stays the user's text with a call in front of the statement, which remains for
 * when there is no device. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

/* ---- the pragma's words ---- */

/* Behind '(' at `at`: the offset of its ')'; end: there is none. */
static unsigned closing(const struct source *s, unsigned at, unsigned end)
{
	int depth = 1;

	for (; at < end; at++) {
		depth += strchr("([{", s->text[at]) != NULL;
		if (strchr(")]}", s->text[at]) && --depth == 0)
			return at;
	}
	return end;
}

static unsigned blank(const struct source *s, unsigned at, unsigned end)
{
	while (at < end && (isspace((unsigned char)s->text[at]) || s->text[at] == '\\'))
		at++;
	return at;
}

static unsigned word_end(const struct source *s, unsigned at, unsigned end)
{
	while (at < end && (isalnum((unsigned char)s->text[at]) || s->text[at] == '_'))
		at++;
	return at;
}

static void target_parse(struct unit *u, struct halecc_offload *o, unsigned from, unsigned to)
{
	struct source *s = u->src;
	unsigned at = blank(s, from, to), end = word_end(s, at, to), colon = blank(s, end, to);
	char *rest;
	long number;

	if (strcmp(text_cut(s->text + at, end - at), "hale") != 0 || colon == to ||
	    s->text[colon] != ':') {
		source_error(s, at, "the target is hale:N, where N is the number of a device");
		return;
	}
	at = blank(s, colon + 1, to);
	o->device = text_cut(s->text + at, to - at);
	number = strtol(o->device, &rest, 0);
	if (!*o->device)
		source_error(s, colon, "the number of the device is missing: target(hale:0)");
	else if (!*rest && (number < 0 || number > 1023))
		source_error(s, at, "devices have numbers from 0 to 1023, and not %s", o->device);
}

static struct halecc_part *part_new(struct unit *u, struct halecc_offload *o, unsigned at)
{
	if (o->parts == OFFLOAD_PARTS_MAX) {
		source_error(u->src, at, "more than %d variables in one offloaded statement",
			     OFFLOAD_PARTS_MAX);
		o->parts--;
	}
	o->part[o->parts].at = at;
	return &o->part[o->parts++];
}

/* "A", "A[low:length]" */
static void part_parse(struct unit *u, struct halecc_offload *o, unsigned from, unsigned to,
		       int how)
{
	struct source *s = u->src;
	unsigned at = blank(s, from, to), name = word_end(s, at, to), open = blank(s, name, to);
	unsigned close, colon, depth = 0;
	struct halecc_part *p = part_new(u, o, at);

	p->how = how;
	p->name = text_cut(s->text + at, name - at);
	if (!*p->name || isdigit((unsigned char)*p->name)) {
		source_error(s, at < to ? at : from, "the name of a variable is missing here");
		p->name = "";
		return;
	}
	if (open == to)
		return;
	close = s->text[open] == '[' ? closing(s, open + 1, to) : to;
	for (colon = open + 1; colon < close; colon++) {
		depth += strchr("([{", s->text[colon]) != NULL;
		depth -= strchr(")]}", s->text[colon]) != NULL;
		if (!depth && s->text[colon] == ':')
			break;
	}
	if (close == to || colon >= close || blank(s, close + 1, to) != to) {
		source_error(s, open, "an extent is one [low:length], as in %s[0:n]", p->name);
		return;
	}
	p->low = text_cut(s->text + open + 1, colon - open - 1);
	p->length = text_cut(s->text + colon + 1, close - colon - 1);
	if (!*p->low || !*p->length)
		source_error(s, open, "the extent of '%s' is [low:length], both given", p->name);
}

static void list_parse(struct unit *u, struct halecc_offload *o, unsigned from, unsigned to,
		       int how)
{
	while (from < to) {
		unsigned end = from;

		while (end < to && u->src->text[end] != ',')
			end = strchr("([{", u->src->text[end]) ? closing(u->src, end + 1, to) + 1
							       : end + 1;
		end = end < to ? end : to;
		part_parse(u, o, from, end, how);
		from = end + 1;
	}
}

static void clauses_parse(struct unit *u, struct halecc_offload *o)
{
	struct source *s = u->src;
	unsigned at = blank(s, o->words, o->end);

	while (at < o->end) {
		unsigned end = word_end(s, at, o->end), open = blank(s, end, o->end), close;
		const char *word = text_cut(s->text + at, end - at);
		int how = strcmp(word, "in") == 0	? PART_IN
			  : strcmp(word, "out") == 0	? PART_OUT
			  : strcmp(word, "inout") == 0	? PART_IN | PART_OUT
			  : strcmp(word, "target") == 0 ? 0
							: -1;

		if (how < 0) {
			source_error(s, at,
				     "'%s' is unknown here; known are target(hale:N), in(…), "
				     "out(…), inout(…)",
				     *word ? word : text_cut(s->text + at, 1));
			return;
		}
		close =
		    open < o->end && s->text[open] == '(' ? closing(s, open + 1, o->end) : o->end;
		if (close == o->end) {
			source_error(s, at, "%s wants a list in parentheses", word);
			return;
		}
		if (how)
			list_parse(u, o, open + 1, close, how);
		else
			target_parse(u, o, open + 1, close);
		at = blank(s, close + 1, o->end);
	}
	if (!o->device && !s->errors)
		source_error(s, o->at, "the device is missing: target(hale:N)");
}

/* ---- types ---- */

static bool at_file_scope(CXType t)
{
	CXCursor d = clang_getTypeDeclaration(t), scope = clang_getCursorSemanticParent(d);

	return clang_getCursorKind(d) == CXCursor_NoDeclFound ||
	       clang_getCursorKind(scope) == CXCursor_TranslationUnit;
}

/* "double (*x)[4]" of the type and "(*x)"; NULL: it can't be said outside of its function. plain:
 * of a variable that is to be written to, const or not. */
static char *declare(CXType t, const char *name, bool plain)
{
	const char *spelt;
	CXString s;
	char *text;

	t = clang_getCanonicalType(t);
	if (t.kind == CXType_Pointer) {
		CXType to = clang_getCanonicalType(clang_getPointeeType(t));
		bool round = to.kind == CXType_ConstantArray;
		const char *is_const = clang_isConstQualifiedType(t) ? "const " : "";

		return declare(to, text_format(round ? "(*%s%s)" : "*%s%s", is_const, name), false);
	}
	if (t.kind == CXType_ConstantArray)
		return declare(clang_getArrayElementType(t),
			       text_format("%s[%lld]", name, clang_getArraySize(t)), plain);
	if (t.kind == CXType_VariableArray || t.kind == CXType_IncompleteArray ||
	    t.kind == CXType_FunctionProto || t.kind == CXType_FunctionNoProto || !at_file_scope(t))
		return NULL;
	s = clang_getTypeSpelling(t);
	spelt = clang_getCString(s);
	while (plain && (strncmp(spelt, "const ", 6) == 0 || strncmp(spelt, "volatile ", 9) == 0))
		spelt = strchr(spelt, ' ') + 1;
	text = strstr(spelt, "(unnamed") || strstr(spelt, "(anonymous")
		   ? NULL
		   : text_format("%s %s", spelt, name);
	clang_disposeString(s);
	return text;
}

struct holds {
	bool found;
	const char *name;
};

static bool holds_pointer(CXType t, const char **name);

static enum CXVisitorResult field_look(CXCursor c, CXClientData data)
{
	struct holds *h = data;

	if (holds_pointer(clang_getCursorType(c), &h->name)) {
		if (!h->found)
			h->name = cursor_name(c);
		h->found = true;
		return CXVisit_Break;
	}
	return CXVisit_Continue;
}

/* What is copied to another process must not lead back into this one. */
static bool holds_pointer(CXType t, const char **name)
{
	struct holds h = {false, ""};

	t = clang_getCanonicalType(t);
	if (t.kind == CXType_Pointer || t.kind == CXType_BlockPointer)
		return true;
	if (t.kind == CXType_ConstantArray || t.kind == CXType_VariableArray)
		return holds_pointer(clang_getArrayElementType(t), name);
	if (t.kind != CXType_Record)
		return false;
	clang_Type_visitFields(t, field_look, &h);
	*name = h.name;
	return h.found;
}

/* ---- what the statement uses ---- */

struct offload_walk {
	struct unit *u;
	struct halecc_offload *o;
	unsigned at; /* where a complaint goes: into the statement */
	bool inside; /* of the statement, not of a function that it calls */
	int loops, switches;
	CXCursor seen[256]; /* functions of this file that it calls */
	int seens;
};

static bool is_in(const struct halecc_offload *o, unsigned at)
{
	return at >= o->from && at < o->to;
}

static bool is_global(CXCursor decl)
{
	return clang_getCursorKind(clang_getCursorSemanticParent(decl)) == CXCursor_TranslationUnit;
}

static void variable_use(struct offload_walk *w, CXCursor ref, CXCursor decl)
{
	struct halecc_offload *o = w->o;
	CXType t = clang_getCanonicalType(clang_getCursorType(decl));
	const char *field = "";
	struct halecc_part *p;
	unsigned from, to;

	decl = clang_getCanonicalCursor(decl);
	unit_extent(decl, &from, &to);
	if (w->inside && !is_global(decl) && is_in(o, from))
		return; /* the statement's own */
	if (!w->inside && !is_global(decl))
		return;
	if (clang_Location_isInSystemHeader(clang_getCursorLocation(decl)))
		return; /* errno, stdout: the device has its own */
	for (int i = 0; i < o->parts; i++)
		if (clang_equalCursors(o->part[i].decl, decl))
			return;
	if (w->inside)
		unit_extent(ref, &w->at, &to);
	if (t.kind == CXType_Pointer) {
		source_error(w->u->src, w->at,
			     "'%s' is a pointer: say in the pragma how much it points to, as in "
			     "in(%s[0:n])%s",
			     cursor_name(decl), cursor_name(decl),
			     w->inside ? "" : "; a function that is called here uses it");
		p = part_new(w->u, o, w->at); /* said once */
		p->decl = decl;
		return;
	}
	if (holds_pointer(t, &field)) {
		source_error(w->u->src, w->at,
			     "'%s' holds a pointer ('%s'), which means nothing on a device: give "
			     "what it points to a pointer of its own in front of the statement",
			     cursor_name(decl), field);
	}
	if (t.kind == CXType_VariableArray || t.kind == CXType_IncompleteArray)
		source_error(w->u->src, w->at,
			     "the length of '%s' is not known to the compiler: say it in the "
			     "pragma, as in in(%s[0:n])",
			     cursor_name(decl), cursor_name(decl));
	if (is_global(decl) && clang_isConstQualifiedType(t))
		return; /* the device has it from this file */
	p = part_new(w->u, o, w->at);
	p->decl = decl;
	p->name = cursor_name(decl);
	p->how = clang_isConstQualifiedType(t) ? PART_IN : PART_IN | PART_OUT;
}

static enum CXChildVisitResult use_visit(CXCursor c, CXCursor parent, CXClientData data);

static void function_use(struct offload_walk *w, CXCursor ref, CXCursor f)
{
	CXCursor body = clang_getCursorDefinition(f);
	bool inside = w->inside;
	unsigned to;

	if (inside)
		unit_extent(ref, &w->at, &to);
	if (clang_Cursor_isNull(body)) {
		if (!clang_Location_isInSystemHeader(clang_getCursorLocation(f)))
			source_error(w->u->src, w->at,
				     "'%s' is not in this file, and the device gets what is in "
				     "this file: include it, or make it static inline in a header",
				     cursor_name(f));
		return;
	}
	for (int i = 0; i < w->seens; i++)
		if (clang_equalCursors(w->seen[i], body))
			return;
	if (clang_Location_isInSystemHeader(clang_getCursorLocation(body)) ||
	    w->seens == (int)ARRAY_LEN(w->seen))
		return;
	w->seen[w->seens++] = body;
	w->inside = false;
	clang_visitChildren(body, use_visit, w);
	w->inside = inside;
}

static void jump_refuse(struct offload_walk *w, CXCursor c, const char *what)
{
	unsigned at, to;

	unit_extent(c, &at, &to);
	source_error(w->u->src, at,
		     "%s leaves the offloaded statement: a device can't go on there. Note in a "
		     "variable that it is wanted, and do it behind the statement",
		     what);
}

static enum CXChildVisitResult label_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	*(CXCursor *)data = clang_getCursorReferenced(c);
	return CXChildVisit_Break;
}

/* Into the statement from outside, or out of it. */
static void goto_use(struct offload_walk *w, CXCursor c)
{
	CXCursor label = clang_getNullCursor();
	unsigned from, to, at, end;

	clang_visitChildren(c, label_visit, &label);
	unit_extent(c, &from, &to);
	unit_extent(label, &at, &end);
	if (clang_Cursor_isNull(label) || is_in(w->o, from) == is_in(w->o, at))
		return;
	if (is_in(w->o, from))
		jump_refuse(w, c, "goto");
	else
		source_error(w->u->src, from, "goto leads into the offloaded statement of line %u",
			     w->o->line);
}

static enum CXChildVisitResult use_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct offload_walk *w = data;
	enum CXCursorKind kind = clang_getCursorKind(c);
	bool loop =
	    kind == CXCursor_ForStmt || kind == CXCursor_WhileStmt || kind == CXCursor_DoStmt;
	CXCursor to = clang_getCursorReferenced(c);

	if (kind == CXCursor_DeclRefExpr && clang_getCursorKind(to) == CXCursor_FunctionDecl)
		function_use(w, c, to);
	else if (kind == CXCursor_DeclRefExpr && (clang_getCursorKind(to) == CXCursor_VarDecl ||
						  clang_getCursorKind(to) == CXCursor_ParmDecl))
		variable_use(w, c, to);
	else if (w->inside && kind == CXCursor_ReturnStmt)
		jump_refuse(w, c, "return");
	else if (w->inside && kind == CXCursor_GotoStmt)
		goto_use(w, c);
	else if (w->inside && kind == CXCursor_BreakStmt && !w->loops && !w->switches)
		jump_refuse(w, c, "break");
	else if (w->inside && kind == CXCursor_ContinueStmt && !w->loops)
		jump_refuse(w, c, "continue");
	w->loops += loop;
	w->switches += kind == CXCursor_SwitchStmt;
	clang_visitChildren(c, use_visit, w);
	w->loops -= loop;
	w->switches -= kind == CXCursor_SwitchStmt;
	return CXChildVisit_Continue;
}

static enum CXChildVisitResult goto_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct offload_walk *w = data;
	unsigned from, to;

	unit_extent(c, &from, &to);
	if (clang_getCursorKind(c) == CXCursor_GotoStmt && !is_in(w->o, from))
		goto_use(w, c);
	return CXChildVisit_Recurse;
}

/* ---- one statement ---- */

static bool is_array(CXType t)
{
	return t.kind == CXType_ConstantArray || t.kind == CXType_VariableArray ||
	       t.kind == CXType_IncompleteArray;
}

/* What is written in the pragma against what the variable is. */
static void part_verify(struct unit *u, struct halecc_offload *o, struct halecc_part *p)
{
	CXType t = clang_getCanonicalType(clang_getCursorType(p->decl)), to;
	int how = access_of(u, p->decl, o->from, o->to);
	char *end, *end2;
	long low, length;

	if (t.kind == CXType_Pointer && !p->length) {
		source_error(u->src, p->at,
			     "'%s' is a pointer: say how much it points to, as in %s[0:n]", p->name,
			     p->name);
		return;
	}
	if (p->length && t.kind != CXType_Pointer && !is_array(t)) {
		source_error(u->src, p->at,
			     "'%s' is neither a pointer nor an array, so it has no extent",
			     p->name);
		return;
	}
	to = p->length
		 ? clang_getCanonicalType(t.kind == CXType_Pointer ? clang_getPointeeType(t)
								   : clang_getArrayElementType(t))
		 : t;
	if (p->how & PART_OUT && clang_isConstQualifiedType(to))
		source_error(u->src, p->at, "'%s' is const, so nothing can come out: in(%s…)",
			     p->name, p->name);
	if (to.kind == CXType_Void || to.kind == CXType_FunctionProto)
		source_error(u->src, p->at,
			     "what '%s' points to has no size: give the pointer its type", p->name);
	const char *field = "";
	if (holds_pointer(to, &field))
		source_error(u->src, p->at,
			     "what '%s' has are pointers, which mean nothing on a device", p->name);
	if (t.kind == CXType_Pointer && how & ACCESS_REPOINT)
		source_error(u->src, p->at,
			     "the statement moves the pointer '%s' itself: let it move a copy",
			     p->name);
	else if (p->how == PART_IN && how & ACCESS_WRITE && !(how & ACCESS_REPOINT))
		source_warn(u->src, p->at,
			    "the statement writes '%s', and what it writes is lost: inout(%s…) "
			    "brings it back",
			    p->name, p->name);
	if (!p->length)
		return;
	low = strtol(p->low, &end, 0);
	length = strtol(p->length, &end2, 0);
	if (!*end2 && length <= 0)
		source_error(u->src, p->at, "the extent [%s:%s] of '%s' is empty", p->low,
			     p->length, p->name);
	else if (!*end && !*end2 && t.kind == CXType_ConstantArray &&
		 (low < 0 || low + length > clang_getArraySize(t)))
		source_error(u->src, p->at, "[%s:%s] is outside of '%s', which has %lld elements",
			     p->low, p->length, p->name, clang_getArraySize(t));
}

static void parts_resolve(struct unit *u, struct halecc_offload *o)
{
	struct halecc_region place = {.at = o->at, .function = o->function};

	for (int i = 0; i < o->parts; i++) {
		struct halecc_part *p = &o->part[i];

		p->decl = *p->name ? unit_lookup(u, &place, p->name) : clang_getNullCursor();
		if (*p->name && clang_Cursor_isNull(p->decl))
			source_error(u->src, p->at, "there is no variable '%s' here", p->name);
		else if (*p->name)
			part_verify(u, o, p);
		for (int k = 0; k < i; k++)
			if (*p->name && strcmp(o->part[k].name, p->name) == 0)
				source_error(u->src, p->at, "'%s' is named twice", p->name);
	}
}

/* How the device's function declares it: what has an extent becomes a pointer. */
static void part_declare(struct unit *u, struct halecc_part *p)
{
	CXType t = clang_getCanonicalType(clang_getCursorType(p->decl));
	CXType to = t.kind == CXType_Pointer ? clang_getPointeeType(t) : t;

	p->global = is_global(p->decl);
	p->constant = clang_isConstQualifiedType(t);
	p->large = clang_Type_getSizeOf(t) > 4096;
	p->pointer = p->length && (t.kind == CXType_Pointer || !p->global);
	if (p->length && is_array(t))
		to = clang_getArrayElementType(t);
	if (p->pointer && clang_getCanonicalType(to).kind == CXType_ConstantArray)
		p->declared = declare(to, text_format("(*%s)", p->name), false);
	else if (p->pointer)
		p->declared = declare(to, text_format("*%s", p->name), false);
	else
		p->declared = declare(to, p->name, true);
	if (!p->declared && !p->global && !u->src->errors)
		source_error(u->src, p->at,
			     "the type of '%s' is known inside of this function only: put it in "
			     "front of the function, and give arrays lengths that are constant",
			     p->name);
}

void offload_resolve(struct unit *u)
{
	for (int i = 0; i < u->offloads; i++) {
		struct halecc_offload *o = &u->offload[i];
		struct offload_walk w = {.u = u, .o = o, .inside = true};

		if (u->src->cxx) {
			source_error(u->src, o->at,
				     "#pragma offload is for C: C++ has no such copies");
			continue;
		}
		clauses_parse(u, o);
		if (!o->bound) {
			source_error(u->src, o->at,
				     "no statement follows this pragma in the same block: put it "
				     "before a statement inside braces");
			continue;
		}
		if (!clause_begins_at_once(u, o->end, o->from)) {
			source_error(u->src, o->at,
				     "no statement of this block begins right behind this pragma "
				     "(it may be part of an if without braces, or of a label): put "
				     "both into braces");
			continue;
		}
		if (clang_getCursorKind(o->statement) == CXCursor_DeclStmt) {
			source_error(u->src, o->from,
				     "a declaration can't run on a device: declare in front of the "
				     "pragma, and set it behind");
			continue;
		}
		parts_resolve(u, o);
		if (u->src->errors)
			continue;
		/* a statement is no child of itself */
		if (clang_getCursorKind(o->statement) == CXCursor_ReturnStmt)
			jump_refuse(&w, o->statement, "return");
		w.loops = clang_getCursorKind(o->statement) == CXCursor_ForStmt ||
			  clang_getCursorKind(o->statement) == CXCursor_WhileStmt ||
			  clang_getCursorKind(o->statement) == CXCursor_DoStmt;
		w.switches = clang_getCursorKind(o->statement) == CXCursor_SwitchStmt;
		clang_visitChildren(o->statement, use_visit, &w);
		clang_visitChildren(o->function, goto_visit, &w);
		for (int k = 0; k < o->parts && !u->src->errors; k++)
			part_declare(u, &o->part[k]);
	}
}

/* ---- both sides as text ---- */

static const char *how_name(int how)
{
	return how == PART_IN ? "HALE_IN" : how == PART_OUT ? "HALE_OUT" : "HALE_IN | HALE_OUT";
}

/* The call in front of the statement, on one line, so that the lines behind keep their numbers. */
char *offload_call(const struct halecc_offload *o)
{
	struct text t = {0};

	text_add(&t,
		 "if (hale_offload_run(&hale_offload_here, (%s), \"hale_offload_%d\", %u, %d, "
		 "(const struct hale_offload_part[]){",
		 o->device, o->number, o->line, o->parts);
	for (int i = 0; i < o->parts; i++) {
		const struct halecc_part *p = &o->part[i];

		text_add(&t, "%s{\"%s\", ", i ? ", " : "", p->name);
		if (p->length)
			text_add(&t,
				 "(void *)&(%s)[%s], (size_t)(%s) * sizeof(*(%s)), (long)(%s) * "
				 "(long)sizeof(*(%s))",
				 p->name, p->low, p->length, p->name, p->low, p->name);
		else
			text_add(&t, "(void *)&(%s), sizeof(%s), 0", p->name, p->name);
		text_add(&t, ", %s}", how_name(p->how));
	}
	text_add(&t, "%s}) != 0)", o->parts ? "" : "{\"\", (void *)0, 0, 0, 0}");
	return t.s;
}

/* Between the variable and what has been sent: before the statement, or behind it. */
static void part_copy(struct text *t, const struct halecc_part *p, int i, bool back)
{
	const char *here = p->length ? text_format("(char *)&%s + hale_offload_low(hale_c, %d)",
						   p->name, i)
				     : text_format("(void *)&%s", p->name),
		   *there = text_format("hale_offload_data(hale_c, %d)", i);

	text_add(t, "\t__builtin_memcpy(%s, %s, hale_offload_size(hale_c, %d));\n",
		 back ? there : here, back ? here : there, i);
}

static void part_begin(struct text *t, const struct halecc_part *p, int i)
{
	if (p->global && p->pointer)
		text_add(t,
			 "\t%s = (void *)((char *)hale_offload_data(hale_c, %d) - "
			 "hale_offload_low(hale_c, %d));\n",
			 p->name, i, i);
	else if (!p->pointer && !p->constant)
		part_copy(t, p, i, false);
	else if (!p->pointer && !p->global)
		part_copy(t, p, i, false); /* declared without its const */
}

/* The function of the device, which stands behind everything else in the file. One call at a time
 * is made of it, so that large arrays need not be on its stack. */
char *offload_function(const struct unit *u, const struct halecc_offload *o, const char *path)
{
	struct text t = {0};

	text_add(&t, "\nHALE_OFFLOAD_SHOWN void hale_offload_%d(struct hale_call *hale_c)\n{\n",
		 o->number);
	for (int i = 0; i < o->parts; i++) {
		const struct halecc_part *p = &o->part[i];

		if (p->global)
			continue;
		if (p->pointer)
			text_add(&t,
				 "\t%s = (void *)((char *)hale_offload_data(hale_c, %d) - "
				 "hale_offload_low(hale_c, %d));\n",
				 p->declared, i, i);
		else
			text_add(&t, "\t%s%s;\n", p->large ? "static " : "", p->declared);
	}
	text_add(&t, "\n\thale_offload_begin(hale_c);\n");
	for (int i = 0; i < o->parts; i++)
		part_begin(&t, &o->part[i], i);
	text_add(&t, "#line %u %s\n", source_line(u->src, o->from), path);
	text_add_bytes(&t, u->src->text + o->from, o->to - o->from);
	text_add(&t, "\n");
	for (int i = 0; i < o->parts; i++)
		if (!o->part[i].pointer && o->part[i].how & PART_OUT && !o->part[i].constant)
			part_copy(&t, &o->part[i], i, true);
	text_add(&t, "}\n");
	return t.s;
}
