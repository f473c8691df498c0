/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions as plain C: the user's text stays, with ours between, and #line before each of both. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

struct edit {
	unsigned at, remove;
	int order;
	char *text;
};

struct emit {
	struct unit *u;
	struct edit *edits;
	size_t count, cap;
};

static void edit_add(struct emit *e, unsigned at, unsigned remove, int order, const struct text *t)
{
	if (e->count == e->cap) {
		size_t cap = e->cap ? e->cap * 2 : 32;
		e->edits = realloc(e->edits, cap * sizeof *e->edits);
		if (!e->edits)
			abort();
		e->cap = cap;
	}
	e->edits[e->count++] =
	    (struct edit){at, remove, order, t->s ? t->s : text_format("%s", "")};
}

static int edit_compare(const void *a, const void *b)
{
	const struct edit *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->order - y->order;
}

static char *quoted(const char *s)
{
	struct text t = {0};

	text_add(&t, "\"");
	for (; *s; s++)
		text_add(&t, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	text_add(&t, "\"");
	return t.s;
}

static void line_mark(const struct emit *e, struct text *t, unsigned line)
{
	text_add(t, "#line %u %s\n", line, quoted(e->u->src->path));
}

/* The spaces that the line of an offset begins with. */
static char *indent_of(const struct emit *e, unsigned at)
{
	const char *s = e->u->src->text;
	unsigned from, to;

	while (at > 0 && s[at - 1] != '\n')
		at--;
	from = to = at;
	while (s[to] == ' ' || s[to] == '\t')
		to++;
	return text_format("%.*s", (int)(to - from), s + from);
}

static void note_add(struct text *t, const char *in, const struct guarded *v)
{
	text_add(t, "%shale_note(&%s, %s, %s, %s);\n", in, v->object, v->how->func, v->how->base,
		 v->how->bytes);
}

/* What wrote the variable writes it again until two notes are the same. */
static void confirm_add(struct emit *e, const struct chain *c, struct text *t, const char *in,
			const struct guarded *v)
{
	for (int n = 0; n < c->nodes; n++)
		for (int g = 0; g < c->node[n].regions; g++) {
			const struct halecc_region *r = &e->u->region[c->node[n].region[g]];
			for (int i = 0; i < r->confirms; i++)
				if (clang_equalCursors(r->confirm[i].decl, v->decl))
					text_add(t, "%swhile (!hale_confirmed(&%s))\n%s\t%s;\n", in,
						 v->object, in, r->confirm[i].text);
		}
}

static const char *copy_name(const struct guarded *v)
{
	return text_format("%s_copy", v->object);
}

/* Declares what is cleaned up when its scope ends, also by a jump past the regions. */
static void owned_declare(struct emit *e, const struct chain *c, struct text *t, const char *in,
			  bool early)
{
	for (int i = 0; i < c->vars; i++) {
		const struct guarded *v = &c->var[i];
		if (!v->early || early)
			text_add(t, "%shale_auto struct hale_var %s = HALE_VAR(\"%s\");\n", in,
				 v->object, v->name);
		if (v->copied)
			text_add(t, "%shale_auto_copy struct hale_copy %s = {NULL};\n", in,
				 copy_name(v));
	}
	keep_declare_copies(e->u, c, t, in);
}

/* What stands before the loops of a chain. */
static void prologue(struct emit *e, struct chain *c, struct text *t, const char *in)
{
	int number = (int)(c - e->u->chain);

	for (int i = 0; i < c->nodes; i++)
		for (int k = 0; k < c->node[i].regions; k++) {
			struct halecc_region *r = &e->u->region[c->node[i].region[k]];
			text_add(t,
				 "%sstatic struct hale_region hale_region%d = HALE_REGION(\"region "
				 "%d\", %s, %u);\n",
				 in, r->number, r->number, quoted(e->u->src->path), r->line);
		}
	if (!c->labels)
		owned_declare(e, c, t, in, false);
	keep_declare(e->u, c, t, in);
	for (int i = 0; i < c->vars; i++) {
		const struct guarded *v = &c->var[i];
		if (v->expected)
			text_add(t, "%shale_expect(&%s, %s, %s);\n", in, v->object, v->how->base,
				 v->how->bytes);
		else if (v->how->reference && !v->note_at && v->producer < 0) {
			note_add(t, in, v);
			confirm_add(e, c, t, in, v);
		}
	}
	text_add(t, "%sbool hale_completed%d[%d] = {false};\n", in, number, c->nodes);
}

static void loops_open(const struct chain *c, int number, int node, struct text *t, const char *in)
{
	for (int j = c->nodes - 1; j >= node; j--)
		if (c->node[j].leftmost == node)
			text_add(t, "%swhile (!hale_completed%d[%d]) {\n", in, number, j);
}

/* What the shadows compare: outputs with known extents, and scalars. */
static void shadow_lists(struct emit *e, const struct chain *c, const struct halecc_region *r,
			 struct text *t, const char *in, const struct access *const *saved,
			 int saves)
{
	int n = 0;

	text_add(t, "%svoid *const hale_bases%d[] = {", in, r->number);
	for (int i = 0; i < c->vars; i++)
		if (c->var[i].producer == r->node && c->var[i].how->bytes)
			text_add(t, "%s(void *)(%s)", n++ ? ", " : "", c->var[i].how->base);
	for (int i = 0; i < saves; i++)
		text_add(t, "%s(void *)&%s", n++ ? ", " : "", saved[i]->name);
	text_add(t, "};\n%sconst size_t hale_bytes%d[] = {", in, r->number);
	n = 0;
	for (int i = 0; i < c->vars; i++)
		if (c->var[i].producer == r->node && c->var[i].how->bytes)
			text_add(t, "%s%s", n++ ? ", " : "", c->var[i].how->bytes);
	for (int i = 0; i < saves; i++)
		text_add(t, "%ssizeof %s", n++ ? ", " : "", saved[i]->name);
	text_add(t, "};\n");
	if (!n)
		source_error(e->u->src, r->at,
			     "Redundancy, but nothing that this region writes has a known extent: "
			     "give it a Check "
			     "in a later region of the chain (Continue)");
}

static int checks_of(const struct halecc_region *r)
{
	int n = r->how == REDUNDANCY;

	for (int k = 0; k < r->checks; k++)
		n += !(r->from_check & 1u << k);
	return n;
}

/* What the region has changed is as before its first run. */
static void restore_add(const struct emit *e, const struct halecc_region *r, struct text *t,
			const char *in, bool first)
{
	const struct access *saved[KEEPS_MAX];
	int saves = keep_list(e->u, r, saved, KEEPS_MAX);

	for (int i = 0; i < saves; i++)
		text_add(t, "%s%s = hale_save%d_%s;\n", in, saved[i]->name, r->number,
			 saved[i]->name);
	for (int i = 0; i < r->copies; i++) {
		const char *again = first ? text_format("hale_again%d && ", r->number) : "";
		text_add(
		    t,
		    "%sif (%s!hale_restore(&hale_copy%d_%s))\n"
		    "%s\thale_unrecoverable(&hale_region%d, &hale_copied%d_%s, \"its copy\");\n",
		    in, again, r->number, r->copy[i].var, in, r->number, r->number, r->copy[i].var);
	}
}

/* Keeps what the region will change: at its first run, if it may be run again by another region. */
static void saves_add(struct emit *e, struct chain *c, const struct halecc_region *r,
		      struct text *t, const char *in)
{
	const struct access *saved[KEEPS_MAX];
	int saves = keep_list(e->u, r, saved, KEEPS_MAX);
	bool kept = keep_any(e->u, c, r), repeated = keep_repeated(c, r);
	const char *inner = kept ? text_format("%s\t", in) : in;

	for (int i = 0; i < saves; i++)
		if (!repeated || !keep_earlier(e->u, c, saved[i]->decl))
			text_add(t, "%sconst __typeof__(%s) hale_save%d_%s = %s;\n", in,
				 saved[i]->name, r->number, saved[i]->name, saved[i]->name);
	for (int i = 0; i < r->copies; i++)
		text_add(t, "%s%sstruct hale_var hale_copied%d_%s = HALE_VAR(\"%s\");\n",
			 repeated
			     ? ""
			     : text_format("%shale_auto_copy struct hale_copy hale_copy%d_%s = "
					   "{NULL};\n",
					   in, r->number, r->copy[i].var),
			 in, r->number, r->copy[i].var, r->copy[i].var);
	if (kept)
		text_add(t, "%sif (!hale_begun%d) {\n", in, r->number);
	for (int i = 0; i < saves; i++)
		if (repeated && keep_earlier(e->u, c, saved[i]->decl))
			text_add(t, "%shale_save%d_%s = %s;\n", inner, r->number, saved[i]->name,
				 saved[i]->name);
	for (int i = 0; i < r->copies; i++)
		text_add(t, "%shale_create_ckpt(&hale_copy%d_%s, %s, %s);\n", inner, r->number,
			 r->copy[i].var, r->copy[i].base, r->copy[i].bytes);
	for (int i = 0; i < r->checks && r->how == CR; i++) {
		const struct guarded *v = chain_var(c, r->check[i].decl);
		if (v && v->copied && r->check[i].reference)
			text_add(t, "%shale_create_ckpt(&%s, %s, %s);\n", inner, copy_name(v),
				 r->check[i].base, r->check[i].bytes);
	}
	if (kept)
		text_add(t, "%s}\n", in);
}

static void region_begin(struct emit *e, struct chain *c, struct halecc_region *r, struct text *t,
			 const char *in)
{
	const struct access *saved[KEEPS_MAX];
	int saves = keep_list(e->u, r, saved, KEEPS_MAX), checks = checks_of(r);
	bool kept = keep_any(e->u, c, r);

	if (checks)
		text_add(t, "%sbool hale_check%d[%d] = {false};\n", in, r->number, checks);
	saves_add(e, c, r, t, in);
	if (r->how == REDUNDANCY) {
		shadow_lists(e, c, r, t, in, saved, saves);
		text_add(t, "%shale_wake_up_shadow(&hale_region%d, %d);\n", in, r->number,
			 r->degree);
	}
	text_add(t, "%shale_enter(&hale_region%d", in, r->number);
	for (int i = 0; i < r->checks; i++)
		if (!(r->from_check & 1u << i) && chain_var(c, r->check[i].decl))
			text_add(t, ", &%s", chain_var(c, r->check[i].decl)->object);
	text_add(t, ", NULL);\n");
	if (r->copies)
		text_add(t, "%sbool hale_again%d = %s;\n", in, r->number,
			 kept ? text_format("hale_begun%d", r->number) : "false");
	if (kept)
		text_add(t, "%shale_begun%d = true;\n", in, r->number);
	text_add(t, "%sdo {\n", in);
	restore_add(e, r, t, text_format("%s\t", in), true);
	if (r->copies)
		text_add(t, "%s\thale_again%d = true;\n", in, r->number);
}

/* rest is ", A, B, k". */
static char *product_call(const struct method *m, const char *rest)
{
	const char *last = rest, *p;
	int depth = 0;

	for (p = rest; *p; p++) {
		depth += strchr("([{", *p) != NULL;
		depth -= strchr(")]}", *p) != NULL;
		if (!depth && *p == ',')
			last = p;
	}
	return text_format("hale_product(%s%.*s, (size_t)(%s), (size_t)(%s)%s)", m->base,
			   (int)(last - rest), rest, m->length[0], m->length[1], last);
}

/* The call that judges a variable; without hale_checked around it. */
static char *judge(const struct method *m)
{
	const char *rest = m->arg;
	int depth = 0;

	for (; *rest && (depth || *rest != ','); rest++) {
		depth += strchr("([{", *rest) != NULL;
		depth -= strchr(")]}", *rest) != NULL;
	}
	if (m->builtin && strcmp(m->func, "hale_product") == 0)
		return product_call(m, rest);
	if (m->builtin || (m->count && strchr(m->arg, ':'))) {
		CXType t = clang_getCanonicalType(clang_getCursorType(m->decl));
		while (t.kind == CXType_Pointer || t.kind == CXType_ConstantArray ||
		       t.kind == CXType_VariableArray)
			t = clang_getCanonicalType(t.kind == CXType_Pointer
						       ? clang_getPointeeType(t)
						       : clang_getArrayElementType(t));
		bool single =
		    m->builtin && t.kind == CXType_Float &&
		    (strcmp(m->func, "hale_range") == 0 || strcmp(m->func, "hale_finite") == 0);
		return text_format("%s%s(%s, %s%s)", m->func, single ? "f" : "", m->base, m->count,
				   rest);
	}
	return text_format("%s", m->text);
}

static char *check_call(const struct halecc_region *r, const struct guarded *v,
			const struct method *m)
{
	if (m->reference)
		return text_format("hale_check(&hale_region%d, &%s)", r->number, v->object);
	return text_format("hale_checked(&hale_region%d, &%s, %s)", r->number, v->object, judge(m));
}

static char *agreed(const struct halecc_region *r, char *what)
{
	return r->comm ? text_format("hale_comm_all(%s, %s)", r->communicator, what) : what;
}

/* Adds " && !method" for each way to mend v, and their names to `tried`. */
static void recovers_add(struct emit *e, struct chain *c, const struct halecc_region *r,
			 const struct guarded *v, const struct method *check, struct text *t,
			 struct text *tried, const char *in)
{
	for (int n = 0; n <= r->node; n++)
		for (int g = 0; g < c->node[n].regions; g++) {
			const struct halecc_region *from = &e->u->region[c->node[n].region[g]];
			if (n == r->node && from != r)
				continue;
			for (int i = 0; i < from->recovers; i++) {
				const struct method *m = &from->recover[i];
				char *what;
				if (!clang_equalCursors(m->decl, v->decl))
					continue;
				if (m->builtin && strcmp(m->func, "hale_correct") == 0)
					what = text_format("hale_correct(&hale_region%d, &%s)",
							   r->number, v->object);
				else if (m->builtin)
					what = text_format("hale_tried(&hale_region%d, &%s, \"its "
							   "copy\", hale_restore(&%s) && %s)",
							   r->number, v->object, copy_name(v),
							   check_call(r, v, check));
				else
					what = text_format(
					    "(%s, hale_tried(&hale_region%d, &%s, %s, %s))",
					    m->text, r->number, v->object, quoted(m->text),
					    check_call(r, v, check));
				text_add(t, " &&\n%s\t    !%s", in, agreed(r, what));
				text_add(tried, "%s%s", tried->len ? ", " : "", m->text);
			}
		}
	if (v->copied && check->reference) {
		char *what = text_format(
		    "hale_tried(&hale_region%d, &%s, \"its copy\", hale_restore(&%s) && %s)",
		    r->number, v->object, copy_name(v), check_call(r, v, check));
		text_add(t, " &&\n%s\t    !%s", in, agreed(r, what));
		text_add(tried, "%sits copy", tried->len ? ", " : "");
	}
}

/* The region ends its loop, and all marked ones run again, this one from what was before. */
static void reset_add(struct emit *e, const struct chain *c, const struct halecc_region *r,
		      const bool *again, struct text *t, const char *in)
{
	text_add(t, "%s", in);
	for (int i = 0; i < c->nodes; i++)
		if (again[i])
			text_add(t, "hale_completed%d[%d] = ", (int)(c - e->u->chain), i);
	text_add(t, "false;\n");
	restore_add(e, r, t, in, false);
	text_add(t, "%sbreak;\n", in);
}

/* What happens when no way has mended v. */
static void hopeless_add(struct emit *e, const struct chain *c, const struct halecc_region *r,
			 const struct guarded *v, const char *tried, struct text *t, const char *in)
{
	bool again[CHAIN_MAX];

	if (v->producer < 0) {
		text_add(t, ")\n%s\thale_unrecoverable(&hale_region%d, &%s, %s);\n", in, r->number,
			 v->object, quoted(tried));
		return;
	}
	chain_reset(e->u, c, v->producer, r->node, again);
	text_add(t, ") {\n%s\thale_recompute(&hale_region%d, &%s, \"region %d\");\n", in, r->number,
		 v->object, e->u->region[c->node[v->producer].region[0]].number);
	reset_add(e, c, r, again, t, text_format("%s\t", in));
	text_add(t, "%s}\n", in);
}

static void check_add(struct emit *e, struct chain *c, struct halecc_region *r,
		      const struct method *m, int which, struct text *t, const char *in)
{
	struct guarded *v = chain_var(c, m->decl);
	bool own = !m->reference &&
		   (access_of(e->u, m->decl, r->from, r->to) & (ACCESS_WRITE | ACCESS_ESCAPE));
	bool readers[CHAIN_MAX];
	struct text tried = {0}, ways = {0};

	if (!v)
		return;
	recovers_add(e, c, r, v, m, &ways, &tried, in);
	text_add(t, "%s\tif (!(hale_check%d[%d] = %s)", in, r->number, which,
		 agreed(r, check_call(r, v, m)));
	if (own) {
		text_add(t, "%s)\n%s\t\thale_recompute(&hale_region%d, &%s, \"this region\");\n",
			 ways.len ? ways.s : "", in, r->number, v->object);
		return;
	}
	if (ways.len && chain_readers(e->u, c, v, r->node, readers)) {
		const char *inner = text_format("%s\t\t", in);
		text_add(t, ") {\n%sif (%s", inner, strchr(ways.s, '!'));
		hopeless_add(e, c, r, v, tried.s, t, inner);
		reset_add(e, c, r, readers, t, inner);
		text_add(t, "%s\t}\n", in);
		return;
	}
	text_add(t, "%s", ways.len ? ways.s : "");
	hopeless_add(e, c, r, v, tried.s ? tried.s : "", t, text_format("%s\t", in));
}

/* Does the region itself look at what it wrote, before that is noted? */
static bool judged(struct emit *e, const struct halecc_region *r, const struct guarded *v)
{
	if (v->producer != r->node || v->note_at || !v->how->reference)
		return false;
	for (int k = 0; k < r->checks; k++)
		if (!r->check[k].reference && clang_equalCursors(r->check[k].decl, v->decl))
			return true;
	return r->how == REDUNDANCY &&
	       (access_of(e->u, v->decl, r->from, r->to) & (ACCESS_WRITE | ACCESS_ESCAPE));
}

static void region_end(struct emit *e, struct chain *c, struct halecc_region *r, struct text *t,
		       const char *in)
{
	int n = 0;

	for (int i = 0; i < c->vars; i++)
		if (judged(e, r, &c->var[i]))
			text_add(t, "%s\thale_seal(&%s, %s, %s);\n", in, c->var[i].object,
				 c->var[i].how->base, c->var[i].how->bytes);
	if (r->how == REDUNDANCY)
		text_add(t,
			 "%s\tif (!(hale_check%d[%d] = hale_agree(&hale_region%d, sizeof "
			 "hale_bytes%d / sizeof "
			 "*hale_bytes%d, hale_bases%d, hale_bytes%d)))\n%s\t\tcontinue;\n",
			 in, r->number, n++, r->number, r->number, r->number, r->number, r->number,
			 in);
	for (int k = 0; k < r->checks; k++)
		if (!(r->from_check & 1u << k))
			check_add(e, c, r, &r->check[k], n++, t, in);
	text_add(t, "%s} while (", in);
	for (int i = 0; i < n; i++)
		text_add(t, "%s!hale_check%d[%d]", i ? " || " : "", r->number, i);
	text_add(t, n ? ");\n" : "0);\n");
	if (r->how == REDUNDANCY)
		text_add(t, "%shale_sleep_shadow(&hale_region%d);\n", in, r->number);
}

static void confirm_refuse(struct emit *e, const struct chain *c, const struct guarded *v)
{
	for (int n = 0; n < c->nodes; n++)
		for (int g = 0; g < c->node[n].regions; g++) {
			const struct halecc_region *r = &e->u->region[c->node[n].region[g]];
			for (int i = 0; i < r->confirms; i++)
				if (clang_equalCursors(r->confirm[i].decl, v->decl))
					source_error(e->u->src, r->confirm[i].at,
						     "'%s' is written by a region of this chain: "
						     "Confirm is for what comes from elsewhere; "
						     "Redundancy compares what a region writes",
						     v->name);
		}
}

/* The node is complete unless one of the nodes in its loop has to run again. */
static void node_end(struct emit *e, struct chain *c, int i, struct text *t, const char *in)
{
	int number = (int)(c - e->u->chain), n = 0;

	text_add(t, "%shale_completed%d[%d] = ", in, number, i);
	for (int k = 0; k < i; k++)
		if (c->node[k].parent == i)
			text_add(t, "%shale_completed%d[%d]", n++ ? " && " : "", number, k);
	text_add(t, n ? ";\n" : "true;\n");
	for (int k = 0; k < c->vars; k++) {
		const struct guarded *v = &c->var[k];
		if (v->producer != i || v->note_at || !v->how->reference)
			continue;
		confirm_refuse(e, c, v);
		if (n)
			text_add(t, "%sif (hale_completed%d[%d])\n%s", in, number, i, "\t");
		note_add(t, in, v);
	}
	text_add(t, "%s}\n", in);
}

static void chain_emit(struct emit *e, struct chain *c)
{
	int number = (int)(c - e->u->chain);

	for (int i = 0; i < c->nodes; i++) {
		struct halecc_node *n = &c->node[i];
		bool split = n->at != e->u->region[n->region[0]].at;

		for (int k = 0; k < n->regions; k++) {
			struct halecc_region *r = &e->u->region[n->region[k]];
			char *in = indent_of(e, r->from);
			struct text begin = {0}, end = {0};

			line_mark(e, &begin, r->line);
			if (i == 0)
				prologue(e, c, &begin, in);
			if (!split)
				loops_open(c, number, i, &begin, in);
			region_begin(e, c, r, &begin, in);
			text_add(&begin, "#line %u %s", source_line(e->u->src, r->end) + 1,
				 quoted(e->u->src->path));
			edit_add(e, r->at, r->end - r->at, 0, &begin);
			text_add(&end, "\n");
			line_mark(e, &end, r->line);
			region_end(e, c, r, &end, in);
			if (!split) {
				node_end(e, c, i, &end, in);
				keep_between(e->u, c, i, &end, in);
			}
			line_mark(e, &end, source_line(e->u->src, r->to));
			edit_add(e, r->to, 0, -i, &end);
		}
		if (split) {
			char *in = indent_of(e, n->at);
			struct text begin = {0}, end = {0};
			loops_open(c, number, i, &begin, in);
			line_mark(e, &begin, source_line(e->u->src, n->at));
			edit_add(e, n->at - (unsigned)strlen(in), 0, 0, &begin);
			text_add(&end, "\n");
			line_mark(e, &end, source_line(e->u->src, n->at));
			node_end(e, c, i, &end, in);
			keep_between(e->u, c, i, &end, in);
			line_mark(e, &end, source_line(e->u->src, n->end));
			edit_add(e, n->end, 0, 1, &end);
		}
	}
	if (c->labels) {
		struct text t = {0};
		text_add(&t, "\n");
		owned_declare(e, c, &t, "\t", true);
		line_mark(e, &t, source_line(e->u->src, c->inner));
		edit_add(e, c->inner, 0, -1, &t);
	}
	for (int k = 0; k < c->vars; k++) {
		const struct guarded *v = &c->var[k];
		struct text t = {0};
		char *in;
		if (!v->note_at || !v->how->reference)
			continue;
		in = indent_of(e, v->note_at - 1);
		text_add(&t, "\n");
		line_mark(e, &t, source_line(e->u->src, v->note_at));
		if (v->early && !c->labels)
			text_add(&t, "%shale_auto struct hale_var %s = HALE_VAR(\"%s\");\n", in,
				 v->object, v->name);
		note_add(&t, in, v);
		confirm_add(e, c, &t, in, v);
		line_mark(e, &t, source_line(e->u->src, v->note_at));
		edit_add(e, v->note_at, 0, 2 + k, &t);
	}
}

/* Before the first function with a region that has Comm. */
static void comm_include(struct emit *e)
{
	unsigned from, to;
	struct text t = {0};

	for (int i = 0; i < e->u->regions; i++)
		if (e->u->region[i].comm && e->u->region[i].bound) {
			unit_extent(e->u->region[i].function, &from, &to);
			text_add(&t, "\n#include <hale/protect_mpi.h>\n");
			line_mark(e, &t, source_line(e->u->src, from));
			edit_add(e, from, 0, 0, &t);
			return;
		}
}

static char *apply(struct emit *e, struct text *out)
{
	struct unit *u = e->u;
	unsigned at = 0;

	if (e->count)
		qsort(e->edits, e->count, sizeof *e->edits, edit_compare);
	line_mark(e, out, 1);
	for (size_t i = 0; i < e->count; i++) {
		text_add_bytes(out, u->src->text + at, e->edits[i].at - at);
		text_add(out, "%s", e->edits[i].text);
		at = e->edits[i].at + e->edits[i].remove;
	}
	text_add_bytes(out, u->src->text + at, u->src->len - at);
	return out->s;
}

static void offloads_emit(struct emit *e)
{
	for (int i = 0; i < e->u->offloads; i++) {
		const struct halecc_offload *o = &e->u->offload[i];
		struct text t = {0}, brace = {0};

		text_add(&t, "%s", offload_call(o));
		/* the ends of a pragma's lines stay, so that the lines behind keep their numbers */
		for (unsigned at = o->at; at < o->end; at++)
			if (e->u->src->text[at] == '\n')
				text_add(&t, "\n");
		edit_add(e, o->at, o->end - o->at, 0, &t);
		text_add(&brace, "}");
		/* in front of what the end of a region adds there */
		edit_add(e, o->to, 0, -CHAIN_MAX, &brace);
	}
}

char *emit_unit(struct unit *u, const char *object)
{
	struct emit e = {.u = u};
	struct text out = {0};

	for (int i = 0; i < u->chains; i++)
		chain_emit(&e, &u->chain[i]);
	comm_include(&e);
	offloads_emit(&e);
	if (u->regions || !u->offloads)
		text_add(&out, "#include <hale/protect.h>\n");
	if (u->offloads)
		text_add(&out,
			 "#include <hale/offload_part.h>\n"
			 "static const unsigned char hale_offload_object[] = {%s};\n"
			 "static struct hale_offload_unit hale_offload_here = {%s, "
			 "hale_offload_object, sizeof hale_offload_object, 0};\n",
			 object, quoted(u->src->path));
	return apply(&e, &out);
}

char *emit_device(struct unit *u, bool whole)
{
	struct emit e = {.u = u};
	struct text out = {0};

	if (whole) {
		text_add(&out, "#define main hale_offload_main\n");
		apply(&e, &out);
		/* behind the user's text, which may define _GNU_SOURCE before its first header */
		text_add(&out, "\n#define HALE_OFFLOAD_DEVICE\n#include <hale/offload_part.h>\n");
	}
	for (int i = 0; i < u->offloads; i++)
		text_add(&out, "%s", offload_function(u, &u->offload[i], quoted(u->src->path)));
	return out.s;
}
