/* SPDX-License-Identifier: BSD-3-Clause */
/* #pragma offload target(hale:N) in(…) out(…) inout(…): the statement behind it becomes a function
 * of a shared object that is made of this file, too (docs/offload.md, 'A statement of a program').
 * The program's side stays the user's text with a call in front of the statement. The statement
 * itself remains, and runs when the device can't run it. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"
#include "hale/offload_part.h"

_Static_assert((int)OFFLOAD_PARTS_MAX == (int)HALE_OFFLOAD_PARTS && (int)PART_IN == (int)HALE_IN &&
		   (int)PART_OUT == (int)HALE_OUT,
	       "as the library has them");

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

static bool is_array(CXType t)
{
	return t.kind == CXType_ConstantArray || t.kind == CXType_VariableArray ||
	       t.kind == CXType_IncompleteArray;
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
	if (is_array(t))
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

/* A variable of the statement itself, or of a function that it calls: the device has it. A static
 * one would keep a value there that this program never gets. */
static bool is_inner(struct offload_walk *w, CXCursor ref, CXCursor decl, CXType t)
{
	unsigned from, to;

	unit_extent(decl, &from, &to);
	if (is_global(decl) || (w->inside && !is_in(w->o, from)))
		return false;
	if (w->inside)
		unit_extent(ref, &w->at, &to);
	if (clang_Cursor_getStorageClass(decl) == CX_SC_Static && !clang_isConstQualifiedType(t))
		source_error(w->u->src, w->at,
			     "'%s' is static, and the device would keep another one%s: declare it "
			     "in front of the functions",
			     cursor_name(decl),
			     w->inside ? "" : " (a function that is called here uses it)");
	return true;
}

/* A use that can't change the variable: its value is taken, which the tree shows as a conversion
 * right around the name. An array is converted to a pointer there. */
static bool is_load(CXCursor parent, CXType t)
{
	return clang_getCursorKind(parent) == CXCursor_UnexposedExpr && !is_array(t);
}

static void variable_use(struct offload_walk *w, CXCursor ref, CXCursor decl, CXCursor parent)
{
	struct halecc_offload *o = w->o;
	CXType t = clang_getCanonicalType(clang_getCursorType(decl));
	int how = PART_IN | (is_load(parent, t) ? 0 : PART_OUT);
	const char *field = "";
	struct halecc_part *p;
	unsigned to;

	decl = clang_getCanonicalCursor(decl);
	if (is_inner(w, ref, decl, t))
		return;
	if (clang_Location_isInSystemHeader(clang_getCursorLocation(decl)))
		return; /* errno, stdout: the device has its own */
	for (int i = 0; i < o->parts; i++)
		if (clang_equalCursors(o->part[i].decl, decl)) {
			if (!o->part[i].named && !clang_isConstQualifiedType(t))
				o->part[i].how |= how;
			return;
		}
	if (w->inside)
		unit_extent(ref, &w->at, &to);
	if (t.kind == CXType_Pointer) {
		source_error(w->u->src, w->at,
			     "'%s' is a pointer: say in the pragma how much it points to, as in "
			     "in(%s[0:n])%s",
			     cursor_name(decl), cursor_name(decl),
			     w->inside ? "" : "; a function that is called here uses it");
		p = offload_part_new(w->u, o, w->at); /* said once */
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
	p = offload_part_new(w->u, o, w->at);
	p->decl = decl;
	p->name = cursor_name(decl);
	p->how = clang_isConstQualifiedType(t) ? PART_IN : how;
}

/* sizeof of an array whose length the compiler does not know: the device has a pointer instead. */
static void size_use(struct offload_walk *w, CXCursor c)
{
	struct cursors kids;
	unsigned at, to;
	CXType t;

	cursors_of(c, &kids);
	while (kids.count == 1 && clang_getCursorKind(kids.c[0]) == CXCursor_ParenExpr) {
		CXCursor inner = kids.c[0];
		free(kids.c);
		cursors_of(inner, &kids);
	}
	if (kids.count == 1 && clang_getCursorKind(kids.c[0]) == CXCursor_DeclRefExpr) {
		CXCursor decl = clang_getCursorReferenced(kids.c[0]);
		unsigned from;

		unit_extent(decl, &from, &to);
		unit_extent(c, &at, &to);
		t = clang_getCanonicalType(clang_getCursorType(decl));
		if (t.kind == CXType_VariableArray && !is_in(w->o, from))
			source_error(w->u->src, at,
				     "the device does not know the length of '%s': compute its "
				     "size in front of the pragma",
				     cursor_name(decl));
	}
	free(kids.c);
}

static enum CXChildVisitResult use_visit(CXCursor c, CXCursor parent, CXClientData data);

/* Functions of the C library that use what a process has of its own. */
static void library_use(struct offload_walk *w, CXCursor f)
{
	static const char *const own[] = {"printf",  "vprintf", "puts",	   "putchar", "perror",
					  "scanf",   "getchar", "rand",	   "srand",   "random",
					  "drand48", "lrand48", "srand48", "strtok",  NULL};
	char *name = cursor_name(f);

	for (int i = 0; own[i]; i++)
		if (strcmp(name, own[i]) == 0)
			source_warn(w->u->src, w->at,
				    "%s on a device uses the output, the input or the state of the "
				    "device process, and not those of this program",
				    name);
	free(name);
}

static void function_use(struct offload_walk *w, CXCursor ref, CXCursor f)
{
	CXCursor body = clang_getCursorDefinition(f);
	bool inside = w->inside;
	unsigned to;

	if (inside)
		unit_extent(ref, &w->at, &to);
	if (clang_Cursor_isNull(body)) {
		if (clang_Location_isInSystemHeader(clang_getCursorLocation(f)))
			library_use(w, f);
		else
			source_error(w->u->src, w->at,
				     "'%s' is not in this file, and the device gets what is in "
				     "this file: include it, or make it static inline in a header",
				     cursor_name(f));
		return;
	}
	for (int i = 0; i < w->seens; i++)
		if (clang_equalCursors(w->seen[i], body))
			return;
	if (clang_Location_isInSystemHeader(clang_getCursorLocation(body)))
		return;
	if (w->seens == (int)ARRAY_LEN(w->seen)) {
		source_error(w->u->src, w->at,
			     "an offloaded statement calls more than %zu functions",
			     ARRAY_LEN(w->seen));
		return;
	}
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
		variable_use(w, c, to, parent);
	else if (w->inside && kind == CXCursor_UnaryExpr)
		size_use(w, c);
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

/* What is written in the pragma against what the variable is. */
static void part_verify(struct unit *u, struct halecc_offload *o, struct halecc_part *p)
{
	CXType t = clang_getCanonicalType(clang_getCursorType(p->decl)), to;
	int how = access_of(u, p->decl, o->from, o->to);

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
	if (p->length)
		clause_extent_verify(u, p->at, p->name, t, p->low, p->length);
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

/* How the device's function declares a variable: as it is, but an array whose length the compiler
 * does not know as a pointer. So sizeof of an array with an extent stays what it is. */
static void part_declare(struct unit *u, struct halecc_part *p)
{
	CXType t = clang_getCanonicalType(clang_getCursorType(p->decl));
	CXType to = t.kind == CXType_Pointer ? clang_getPointeeType(t) : t;

	p->global = is_global(p->decl);
	p->constant = clang_isConstQualifiedType(t);
	p->large = clang_Type_getSizeOf(t) > 4096;
	p->pointer = p->length &&
		     (t.kind == CXType_Pointer || (!p->global && t.kind != CXType_ConstantArray));
	if (p->pointer && is_array(t))
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

/* What stands between the pragma and the end of its statement is compiled as it is for the device,
 * so a region there would not be protected. */
static bool holds_region(struct unit *u, const struct halecc_offload *o)
{
	for (int i = 0; i < u->regions; i++)
		if (u->region[i].at >= o->at && u->region[i].at < o->to) {
			source_error(u->src, u->region[i].at,
				     "no region is protected on a device: protect the offloaded "
				     "statement of line %u as a whole, in front of its pragma",
				     o->line);
			return true;
		}
	return false;
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
		clause_comments_blank(u, o->at, o->end);
		offload_parse(u, o);
		if (!clause_is_followed(u, o->at, o->end, o->bound, o->from) || holds_region(u, o))
			continue;
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

/* The call in front of the statement stands on one line, so that the lines behind keep their
 * numbers. emit.c closes its brace behind the statement. */
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
	text_add(&t, "%s}) != 0) {", o->parts ? "" : "{\"\", (void *)0, 0, 0, 0}");
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

/* The function of the device stands behind everything else in the file. It runs once at a time, so
 * its large arrays are static and not on a stack. Other pragmas between ours and the statement,
 * such as `omp parallel for`, belong to the statement. */
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
	text_add(&t, "#line %u %s", source_line(u->src, o->end) + 1, path);
	text_add_bytes(&t, u->src->text + o->end, o->to - o->end);
	text_add(&t, "\n");
	for (int i = 0; i < o->parts; i++)
		if (!o->part[i].pointer && o->part[i].how & PART_OUT && !o->part[i].constant)
			part_copy(&t, &o->part[i], i, true);
	text_add(&t, "}\n");
	return t.s;
}
