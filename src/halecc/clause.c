/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a pragma:
 *
 *   pragma   = "protect" { "CR" [ "(" vars ")" ] | "Redundancy" [ "(" 2 | 3 ")" ] | "Check" list
 *              | "Recover" list | "Confirm" list | "Comm" [ "(" communicator ")" ] | "Continue" }
 *   list     = "(" call { "," call } ")"
 *   call     = name "(" var [ "," arguments ] ")"
 *   var      = expression that begins with a variable's name { "[" low ":" length "]" }
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

struct cursor {
	struct unit *u;
	unsigned at, end;
};

static const struct {
	const char *name, *same;
	bool reference;
} builtins[] = {
    {"sum", "HALE_SUM", true},
    {"hash", "HALE_HASH", true},
    {"sha256", "HALE_SHA256", true},
    {"Checker", "HALE_SUM", true},
    {"range", "hale_range", false},
    {"finite", "hale_finite", false},
    {"product", "hale_product", false},
    {"monotone", "hale_monotone", false},
    {"conserved", "hale_conserved", false},
    {"correct", "hale_correct", true},
    {"Correct", "hale_correct", true},
    {"restore", "hale_restore", true},
    {"Restore", "hale_restore", true},
};

unsigned clause_blank(const struct source *s, unsigned at, unsigned end)
{
	while (at < end && (isspace((unsigned char)s->text[at]) || s->text[at] == '\\'))
		at++;
	return at;
}

unsigned clause_word_end(const struct source *s, unsigned at, unsigned end)
{
	while (at < end && (isalnum((unsigned char)s->text[at]) || s->text[at] == '_'))
		at++;
	return at;
}

static void blank(struct cursor *c)
{
	c->at = clause_blank(c->u->src, c->at, c->end);
}

static char *word(struct cursor *c)
{
	const struct source *s = c->u->src;
	unsigned from;

	blank(c);
	from = c->at;
	c->at = clause_word_end(s, from, c->end);
	return text_cut(s->text + from, c->at - from);
}

unsigned clause_closing(const struct source *source, unsigned at, unsigned end)
{
	const char *s = source->text;
	int depth = 1;
	char quote = 0;

	for (; at < end; at++) {
		if (quote) {
			if (s[at] == '\\')
				at++;
			else if (s[at] == quote)
				quote = 0;
		} else if (s[at] == '"' || s[at] == '\'')
			quote = s[at];
		else if (strchr("([{", s[at]))
			depth++;
		else if (strchr(")]}", s[at]) && --depth == 0)
			return at;
	}
	return 0;
}

unsigned clause_element_end(const struct source *s, unsigned at, unsigned end)
{
	while (at < end && s->text[at] != ',') {
		if (strchr("([{", s->text[at])) {
			unsigned close = clause_closing(s, at + 1, end);
			at = close ? close : end - 1;
		}
		at++;
	}
	return at;
}

static bool inside(struct cursor *c, unsigned *from, unsigned *to)
{
	blank(c);
	if (c->at >= c->end || c->u->src->text[c->at] != '(')
		return false;
	*from = c->at + 1;
	*to = clause_closing(c->u->src, *from, c->end);
	if (!*to) {
		source_error(c->u->src, c->at, "this '(' has no ')'");
		*to = c->end;
	}
	c->at = *to < c->end ? *to + 1 : c->end;
	return true;
}

static void method_parse(struct cursor *c, unsigned from, unsigned to, bool call, struct method *m)
{
	const char *s = c->u->src->text;
	unsigned open, close;

	from = clause_blank(c->u->src, from, to);
	m->at = from;
	m->text = text_cut(s + from, to - from);
	open = from;
	if (call) {
		open = clause_word_end(c->u->src, open, to);
		m->func = text_cut(s + from, open - from);
		while (open < to && s[open] != '(')
			open++;
		close = open < to ? clause_closing(c->u->src, open + 1, c->end) : 0;
		if (!*m->func || !close) {
			source_error(c->u->src, from, "'%s' is no call: write name(variable)",
				     m->text);
			m->func = "";
			m->arg = m->var = "";
			return;
		}
		m->arg = text_cut(s + open + 1, close - open - 1);
	} else {
		m->func = "";
		m->arg = m->text;
	}
	const char *v = m->arg;
	while (*v && strchr("&*( ", *v))
		v++;
	size_t n = 0;
	while (isalnum((unsigned char)v[n]) || v[n] == '_')
		n++;
	m->var = text_cut(v, n);
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		if (call && strcmp(m->func, builtins[i].name) == 0 && !unit_knows(c->u, m->func)) {
			m->builtin = true;
			m->func = builtins[i].same;
			m->reference = builtins[i].reference;
		}
}

static int list_parse(struct cursor *c, bool call, struct method *out, int count)
{
	unsigned from, to;

	if (!inside(c, &from, &to)) {
		source_error(c->u->src, c->at < c->end ? c->at : c->end - 1,
			     "a list in parentheses is missing here");
		return count;
	}
	while (from < to) {
		unsigned end = clause_element_end(c->u->src, from, to);
		if (count == METHODS_MAX) {
			source_error(c->u->src, from, "more than %d methods in one region",
				     METHODS_MAX);
			break;
		}
		method_parse(c, from, end, call, &out[count]);
		count++;
		from = end + 1;
	}
	return count;
}

static void redundancy_parse(struct cursor *c, struct halecc_region *r)
{
	unsigned from, to;

	r->degree = 2;
	if (inside(c, &from, &to)) {
		const char *n = text_cut(c->u->src->text + from, to - from);
		if (strcmp(n, "2") != 0 && strcmp(n, "3") != 0)
			source_error(c->u->src, from, "Redundancy is 2 or 3, not '%s'", n);
		r->degree = n[0] == '3' ? 3 : 2;
	}
}

static void clause(struct cursor *c, struct halecc_region *r)
{
	unsigned at, from, to;
	char *w;

	blank(c);
	at = c->at;
	w = word(c);
	if (strcmp(w, "CR") == 0 || strcmp(w, "Redundancy") == 0) {
		if (r->how != PLAIN)
			source_error(c->u->src, at, "one of CR and Redundancy, once");
		r->how = *w == 'C' ? CR : REDUNDANCY;
		if (r->how == REDUNDANCY)
			redundancy_parse(c, r);
		else if (blank(c), c->at < c->end && c->u->src->text[c->at] == '(')
			r->copies = list_parse(c, false, r->copy, 0);
	} else if (strcmp(w, "Check") == 0)
		r->checks = list_parse(c, true, r->check, r->checks);
	else if (strcmp(w, "Recover") == 0)
		r->recovers = list_parse(c, true, r->recover, r->recovers);
	else if (strcmp(w, "Confirm") == 0)
		r->confirms = list_parse(c, true, r->confirm, r->confirms);
	else if (strcmp(w, "Comm") == 0) {
		r->comm = true;
		r->communicator = inside(c, &from, &to)
				      ? text_cut(c->u->src->text + from, to - from)
				      : "MPI_COMM_WORLD";
	} else if (strcmp(w, "Continue") == 0)
		r->go_on = true;
	else {
		source_error(
		    c->u->src, at,
		    "'%s' is unknown here; known are CR, Redundancy(2|3), Check(…), Recover(…), "
		    "Confirm(…), Comm, Continue",
		    *w ? w : text_cut(c->u->src->text + at, 1));
		c->at = c->end;
	}
	blank(c);
}

static bool array_like(CXType t)
{
	return t.kind == CXType_ConstantArray || t.kind == CXType_VariableArray;
}

/* Splits "A[0:n][0:m]" into "A" and its parts; false if there is no "[low:length]". */
static int parts_split(struct unit *u, const struct method *m, const char *arg, char **head,
		       char **low, char **length)
{
	size_t len = strlen(arg);
	int parts = 0;
	const char *open = strchr(arg, '[');

	*head = text_cut(arg, open ? (size_t)(open - arg) : len);
	while (open && *open == '[' && parts < 4) {
		int depth = 0;
		const char *colon = NULL, *p;
		for (p = open; *p; p++) {
			depth += *p == '[' || *p == '(';
			depth -= *p == ']' || *p == ')';
			if (depth == 0)
				break;
			if (depth == 1 && *p == ':' && !colon)
				colon = p;
		}
		if (!colon)
			return 0;
		low[parts] = text_cut(open + 1, (size_t)(colon - open - 1));
		length[parts] = text_cut(colon + 1, (size_t)(p - colon - 1));
		if (!*low[parts] || !*length[parts])
			source_error(u->src, m->at,
				     "the extent of '%s' is [low:length], both given", *head);
		parts++;
		open = *p ? p + 1 : NULL;
	}
	return parts;
}

void clause_extent_verify(struct unit *u, unsigned at, const char *var, CXType t, const char *low,
			  const char *length)
{
	char *end, *end2;
	long from = strtol(low, &end, 0), count = strtol(length, &end2, 0);

	if (*length && !*end2 && count <= 0)
		source_error(u->src, at, "the extent [%s:%s] of '%s' is empty", low, length, var);
	else if (*low && *length && !*end && !*end2 && t.kind == CXType_ConstantArray &&
		 (from < 0 || count > clang_getArraySize(t) - from))
		source_error(u->src, at, "[%s:%s] is outside of '%s', which has %lld elements", low,
			     length, var, clang_getArraySize(t));
}

/* The rows of an array of arrays lie together only if each is whole. The program itself verifies
 * lengths that are no numbers: *whole is the condition. */
static void rows_verify(struct unit *u, const struct method *m, CXType row, const char *low,
			const char *length, const char *element, const char **whole)
{
	char *end;
	long count = strtol(length, &end, 0);
	bool number = *length && !*end;

	if (strcmp(low, "0") != 0 ||
	    (number && row.kind == CXType_ConstantArray && count != clang_getArraySize(row)))
		source_error(u->src, m->at,
			     "[%s:%s] is a part of each row of '%s', and these parts lie apart: "
			     "protect whole rows",
			     low, length, m->var);
	else if (!number)
		*whole = text_format("%s(size_t)(%s) == sizeof(%s) / sizeof(*%s)",
				     *whole ? text_format("%s && ", *whole) : "", length, element,
				     element);
}

/* A product is computed in the type of sizes, so that n*n of two ints does not overflow. A factor
 * that is no whole number (0.5 * n) keeps its value. */
static char *length_text(const char *length)
{
	const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_. *";

	if (!strchr(length, '*') || strspn(length, allowed) != strlen(length))
		return text_format("(size_t)(%s)", length);
	return text_format("(size_t)((size_t)1 * %s)", length);
}

/* Expressions for the first byte and the number of bytes. */
static void extent_find(struct unit *u, struct method *m)
{
	char *low[4], *length[4], *head;
	const char *arg = m->arg;
	CXType t = clang_getCanonicalType(clang_getCursorType(m->decl));
	const char *element, *whole = NULL;
	int parts, deref = 0;
	size_t n = 0;

	for (int depth = 0; arg[n] && (depth || arg[n] != ','); n++) {
		depth += strchr("([{", arg[n]) != NULL;
		depth -= strchr(")]}", arg[n]) != NULL;
	}
	arg = text_cut(arg, n);
	parts = parts_split(u, m, arg, &head, low, length);
	if (!parts) {
		bool plain = strcmp(arg, m->var) == 0;
		if (plain && t.kind == CXType_Pointer)
			return;
		m->base =
		    plain && array_like(t) ? text_format("%s", arg) : text_format("&(%s)", arg);
		m->bytes = text_format("sizeof(%s)", arg);
		m->count = text_format("sizeof(%s) / sizeof(*(%s))", arg, arg);
		return;
	}
	if (strcmp(head, m->var) == 0) {
		clause_extent_verify(u, m->at, m->var, t, low[0], length[0]);
		element = head;
		for (; deref < parts && (array_like(t) || t.kind == CXType_Pointer); deref++) {
			if (deref > 0 && t.kind == CXType_Pointer) {
				source_error(u->src, m->at,
					     "the rows of '%s' lie apart: protect each row, or the "
					     "memory that "
					     "holds them all",
					     m->var);
				return;
			}
			if (deref > 0)
				rows_verify(u, m, t, low[deref], length[deref], element, &whole);
			t = clang_getCanonicalType(t.kind == CXType_Pointer
						       ? clang_getPointeeType(t)
						       : clang_getArrayElementType(t));
			element = text_format("*%s", element);
		}
	} else
		element = text_format("*(%s)", head);
	if (parts == 2) {
		m->length[0] = length[0];
		m->length[1] = length[1];
	}
	m->count = length_text(length[0]);
	for (int i = 1; i < parts; i++)
		m->count = text_format("%s * %s", m->count, length_text(length[i]));
	m->base = strcmp(low[0], "0") == 0 ? head : text_format("&(%s)[%s]", head, low[0]);
	m->bytes = text_format("%s * sizeof(%s)", m->count, element);
	if (whole) /* the library refuses (size_t)-1 bytes with a sentence */
		m->bytes = text_format("(%s ? %s : (size_t)-1)", whole, m->bytes);
}

static int arguments_of(const char *list)
{
	int depth = 0, count = 1;

	for (; *list; list++) {
		depth += strchr("([{", *list) != NULL;
		depth -= strchr(")]}", *list) != NULL;
		count += !depth && *list == ',';
	}
	return count;
}

static void method_resolve(struct unit *u, struct halecc_region *r, struct method *m, bool check)
{
	if (!m->var || !*m->var) {
		if (m->var && *m->func)
			source_error(u->src, m->at, "'%s' names no variable: write %s(variable)",
				     m->text, m->func);
		m->decl = clang_getNullCursor();
		return;
	}
	if (*m->func && !m->builtin && !unit_knows(u, m->func))
		source_error(u->src, m->at,
			     "'%s' is no function here, and none of the checks that Hale has: sum, "
			     "hash, sha256, "
			     "range, finite, monotone, conserved, product; correct, restore",
			     m->func);
	m->decl = unit_lookup(u, r, m->var);
	if (clang_Cursor_isNull(m->decl)) {
		source_error(u->src, m->at, "there is no variable '%s' here", m->var);
		return;
	}
	extent_find(u, m);
	if (m->builtin && strcmp(m->func, "hale_product") == 0 &&
	    (!m->length[1] || arguments_of(m->arg) != 4))
		source_error(u->src, m->at,
			     "product judges a matrix: product(C[0:m][0:n], A, B, k) for C = A B, "
			     "where A is m x k and B k x n");
	if (!m->bytes && (m->builtin || !*m->func) && check)
		source_error(u->src, m->at,
			     "'%s' is a pointer: say how much it points to, as in %s[0:n]", m->var,
			     m->var);
}

/* Only space, comments and other pragmas stand between a pragma's end and its statement. */
static bool begins_at_once(const struct unit *u, unsigned end, unsigned from)
{
	unsigned at = unit_skip_blank(u, end);

	while (at < from && u->src->text[at] == '#') {
		while (at < from && (u->src->text[at] != '\n' || u->src->text[at - 1] == '\\'))
			at++;
		at = unit_skip_blank(u, at);
	}
	return at == from;
}

bool clause_is_followed(struct unit *u, unsigned at, unsigned end, bool bound, unsigned from)
{
	if (!bound)
		source_error(u->src, at,
			     "no statement follows this pragma in the same block: put it before a "
			     "statement inside braces");
	else if (!begins_at_once(u, end, from))
		source_error(u->src, at,
			     "no statement of this block begins right behind this pragma (it may "
			     "be part of an if without braces, or of a label): put both into "
			     "braces");
	else
		return true;
	return false;
}

void clause_comments_blank(struct unit *u, unsigned at, unsigned end)
{
	char *s = u->src->text, quote = 0;

	for (unsigned i = at; i + 1 < end; i++) {
		if (quote) {
			i += s[i] == '\\';
			quote = s[i] == quote ? 0 : quote;
		} else if (s[i] == '"' || s[i] == '\'') {
			quote = s[i];
		} else if (s[i] == '/' && (s[i + 1] == '*' || s[i + 1] == '/')) {
			const char *to = s[i + 1] == '*' ? strstr(s + i + 2, "*/") : NULL;
			unsigned behind = to ? (unsigned)(to + 2 - s) : end;
			for (; i < behind && i < end; i++)
				s[i] = s[i] == '\n' ? '\n' : ' ';
			i--;
		}
	}
}

void clause_parse(struct unit *u, struct halecc_region *r)
{
	struct cursor c = {u, r->at, r->end};
	char *w;

	clause_comments_blank(u, r->at, r->end);
	c.at++; /* # */
	word(&c);
	w = word(&c);
	if (strcmp(w, "hale") == 0)
		word(&c);
	blank(&c);
	while (c.at < c.end)
		clause(&c, r);
	r->bound = clause_is_followed(u, r->at, r->end, r->bound, r->from);
	if (r->bound)
		clause_resolve(u, r);
}

/* A call may have its variable behind other arguments, as fread() and BLAS have: it is the first
 * argument that this region checks. */
static void method_aim(const struct halecc_region *r, struct method *m)
{
	const char *arg = m->arg;

	while (!m->builtin && arg && *arg) {
		int depth = 0;
		size_t n = 0;
		const char *next;

		arg += strspn(arg, "&*( \t");
		while (isalnum((unsigned char)arg[n]) || arg[n] == '_')
			n++;
		for (int k = 0; k < r->checks; k++)
			if (n && strlen(r->check[k].var) == n &&
			    strncmp(r->check[k].var, arg, n) == 0) {
				m->var = text_cut(arg, n);
				m->arg = arg;
				return;
			}
		for (next = arg; *next && (depth > 0 || *next != ','); next++) {
			depth += strchr("([{", *next) != NULL;
			depth -= strchr(")]}", *next) != NULL;
		}
		arg = *next ? next + 1 : NULL;
	}
}

/* A call that writes x once more, so that its note can be compared with itself. */
static void confirm_resolve(struct unit *u, struct halecc_region *r, struct method *m)
{
	bool noted = false;

	method_aim(r, m);
	method_resolve(u, r, m, false);
	for (int k = 0; k < r->checks; k++)
		noted |= r->check[k].reference && clang_equalCursors(r->check[k].decl, m->decl);
	if (!clang_Cursor_isNull(m->decl) && (!noted || m->builtin))
		source_error(
		    u->src, m->at,
		    "Confirm names a call that writes '%s' again, and this region has a sum, "
		    "hash or sha256 of it in Check",
		    m->var);
}

void clause_resolve(struct unit *u, struct halecc_region *r)
{
	for (int i = 0; i < r->checks; i++)
		method_resolve(u, r, &r->check[i], true);
	for (int i = 0; i < r->recovers; i++) {
		bool known = false;
		method_aim(r, &r->recover[i]);
		method_resolve(u, r, &r->recover[i], false);
		for (int k = 0; k < r->checks; k++)
			known |= clang_equalCursors(r->check[k].decl, r->recover[i].decl);
		if (!known && !clang_Cursor_isNull(r->recover[i].decl))
			source_error(u->src, r->recover[i].at,
				     "'%s' is recovered here, but this region has no Check of it",
				     r->recover[i].var);
	}
	for (int i = 0; i < r->confirms; i++)
		confirm_resolve(u, r, &r->confirm[i]);
	for (int i = 0; i < r->copies; i++)
		method_resolve(u, r, &r->copy[i], true);
}
