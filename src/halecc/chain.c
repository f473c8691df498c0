/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions that `Continue` links become a chain: loops in loops, so that a region whose result is
 * found damaged later runs again (seed 000, figures 4.3 and 4.11).
 *
 *     sequential: 0 -> 1 -> 2          join: 0, 1 -> 2               split: 0 -> 1a | 1b
 *     while 2 {                        while 2 {                     while 1 {
 *       while 1 {                        while 0 { … }                 while 0 { … }
 *         while 0 { … }                  while 1 { … }                 if (…) { 1a } else { 1b }
 *         1                              2                           }
 *       }                              }
 *       2
 *     }
 *
 * The loop of a node stands in the loop of the first later node that uses what it wrote. What is
 * run again for a damaged variable is its producer, all between that has used what runs again, and,
 * since the loops are nested, what encloses these (the seed's figure 4.25 sets the producer's flag
 * only, which its loop would never look at). What is run again for a variable that its check has
 * mended are the regions in between that have read it damaged, and all that has used these. So the
 * loop of a check holds the variable's producer and all its readers. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

struct guarded *chain_var(struct chain *c, CXCursor decl)
{
	for (int i = 0; i < c->vars; i++)
		if (clang_equalCursors(c->var[i].decl, decl))
			return &c->var[i];
	return NULL;
}

static bool node_checks(const struct unit *u, const struct halecc_node *n, CXCursor decl)
{
	for (int i = 0; i < n->regions; i++) {
		const struct halecc_region *r = &u->region[n->region[i]];
		for (int k = 0; k < r->checks; k++)
			if (r->check[k].reference && clang_equalCursors(r->check[k].decl, decl))
				return true;
	}
	return false;
}

/* The node writes the variable: it does, and does not take it as an input that it checks. */
static bool node_writes(const struct unit *u, const struct halecc_node *n, CXCursor decl)
{
	return (access_of(u, decl, n->at, n->end) & (ACCESS_WRITE | ACCESS_ESCAPE)) &&
	       !node_checks(u, n, decl);
}

/* Node b uses something that node a has written. */
static bool node_uses(const struct unit *u, const struct halecc_node *b,
		      const struct halecc_node *a)
{
	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *w = &u->accesses.a[i];
		if (w->at < a->at || w->at >= a->end || !(w->how & (ACCESS_WRITE | ACCESS_ESCAPE)))
			continue;
		if (unit_declares(u, w->decl, a->at, a->end)) /* its own */
			continue;
		if (node_writes(u, a, w->decl) && access_of(u, w->decl, b->at, b->end) != 0)
			return true;
	}
	return false;
}

/* The first node whose rerun a check of v may ask for; its checker if there is none. */
static int first_again(const struct unit *u, const struct chain *c, const struct guarded *v)
{
	int i = v->producer < 0 ? 0 : v->producer;

	while (v->producer < 0 && i < v->checker &&
	       !access_of(u, v->decl, c->node[i].at, c->node[i].end))
		i++;
	return i;
}

static void enclose(const struct unit *u, struct chain *c)
{
	for (int k = 0; k < c->vars; k++) {
		const struct guarded *v = &c->var[k];

		for (int i = first_again(u, c, v); i < v->checker; i++)
			if (c->node[i].parent > v->checker)
				c->node[i].parent = v->checker;
	}
}

static void nest(struct unit *u, struct chain *c)
{
	int last = c->nodes - 1;
	bool changed = true;

	for (int i = 0; i < last; i++) {
		c->node[i].parent = last;
		for (int j = last; j > i; j--)
			if (node_uses(u, &c->node[j], &c->node[i]))
				c->node[i].parent = j;
	}
	enclose(u, c);
	c->node[last].parent = -1;
	while (
	    changed) { /* i1 < i2 < parent of i1 < parent of i2: i2 and that parent go together */
		changed = false;
		for (int a = 0; a < last; a++)
			for (int b = a + 1; b < last; b++) {
				struct halecc_node *n = c->node;
				int ja = n[a].parent, jb = n[b].parent;
				if (b < ja && ja < jb) {
					n[b].parent = ja;
					if (n[ja].parent > jb)
						n[ja].parent = jb;
					changed = true;
				}
			}
	}
	for (int i = 0; i < c->nodes; i++)
		c->node[i].leftmost = i;
	for (int i = 0; i < last; i++) {
		struct halecc_node *p = &c->node[c->node[i].parent];
		if (c->node[i].leftmost < p->leftmost)
			p->leftmost = c->node[i].leftmost;
	}
}

/* All before `at` that has used what runs again, and the loops around these. */
static void again_spread(const struct unit *u, const struct chain *c, int at, bool *again)
{
	for (int j = 1; j < at; j++)
		for (int i = 0; i < j; i++)
			if (again[i] && node_uses(u, &c->node[j], &c->node[i]))
				again[j] = true;
	for (int i = 0; i < at; i++)
		for (int p = c->node[i].parent; again[i] && p >= 0 && p < at; p = c->node[p].parent)
			again[p] = true;
}

void chain_reset(const struct unit *u, const struct chain *c, int producer, int at, bool *again)
{
	memset(again, 0, CHAIN_MAX * sizeof *again);
	again[producer] = true;
	again_spread(u, c, at, again);
}

bool chain_readers(const struct unit *u, const struct chain *c, const struct guarded *v, int at,
		   bool *again)
{
	bool any = false;

	memset(again, 0, CHAIN_MAX * sizeof *again);
	for (int i = v->producer + 1; i < at; i++)
		if (access_of(u, v->decl, c->node[i].at, c->node[i].end))
			any = again[i] = true;
	/* what stands behind a node runs again with it */
	for (int i = v->producer < 0 ? 0 : v->producer; i < at; i++) {
		unsigned from = c->node[i].end > v->note_at ? c->node[i].end : v->note_at;
		if (access_of(u, v->decl, from, c->node[i + 1].at) & ACCESS_READ)
			any = again[i] = true;
	}
	again_spread(u, c, at, again);
	return any;
}

/* The last write between two places by another name of the same memory. */
static const struct access *other_name(const struct unit *u, CXCursor decl, unsigned from,
				       unsigned to)
{
	const struct access *last = NULL;

	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];
		if (a->at >= from && a->at < to && (a->how & (ACCESS_WRITE | ACCESS_ESCAPE)) &&
		    !(a->how & ACCESS_REPOINT) && !clang_equalCursors(a->decl, decl) &&
		    access_shared(u, decl, a->decl) && (!last || a->at > last->at))
			last = a;
	}
	return last;
}

/* A region between the note and the check writes the variable by another name: neither is a
 * correction right then, nor is it clear which region runs again. */
static void other_names_refuse(struct unit *u, const struct chain *c, const struct guarded *v,
			       int at)
{
	for (int i = v->producer + 1; i < at; i++) {
		const struct access *a = other_name(u, v->decl, c->node[i].at, c->node[i].end);
		if (a && v->how->reference && !node_writes(u, &c->node[i], v->decl))
			source_error(
			    u->src, a->at,
			    "'%s' is another name of '%s', which is written here before it "
			    "is checked in line %u: use one name in the regions of a chain",
			    a->name, v->name, source_line(u->src, c->node[at].at));
	}
}

/* Tasks that the code before has made are through only behind the last of these pragmas of the same
 * compound: libclang hands them on as text. */
static unsigned omp_joined(const struct unit *u, const struct cursors *kids, unsigned at,
			   unsigned before)
{
	static const char *const joins[] = {"taskwait", "barrier", "taskgroup", NULL};
	const char *s = u->src->text;
	unsigned end = at;

	for (const char *p = s + at; (p = strstr(p, "omp")) && p < s + before; p += 3) {
		const char *word = p + 3 + strspn(p + 3, " \t"), *line = p, *to = strchr(p, '\n');
		bool joins_here = false, inside = false;

		while (line > s && line[-1] != '\n')
			line--;
		for (int i = 0; joins[i]; i++)
			joins_here |= strncmp(word, joins[i], strlen(joins[i])) == 0;
		for (size_t i = 0; i < kids->count; i++) {
			unsigned from, until;
			unit_extent(kids->c[i], &from, &until);
			inside |= p > s + from && p < s + until;
		}
		if (joins_here && !inside && to && to < s + before &&
		    line[strspn(line, " \t")] == '#')
			end = (unsigned)(to - s);
	}
	return end;
}

/* The last plain statement of the compound, outside of nodes, that writes the content before
 * `before`: the offset behind it, or 0. */
static unsigned written_until(const struct unit *u, const struct chain *c, CXCursor decl,
			      unsigned from, unsigned before)
{
	const struct access *a = access_last(u, decl, from, before, ACCESS_WRITE | ACCESS_ESCAPE);
	const struct access *other = other_name(u, decl, from, before);
	struct cursors kids;
	unsigned end = 0;

	if (!a || (other && other->at > a->at))
		a = other;
	if (!a)
		return 0;
	for (int i = 0; i < c->nodes; i++)
		if (a->at >= c->node[i].at && a->at < c->node[i].end)
			return 0;
	cursors_of(c->compound, &kids);
	for (size_t i = 0; i < kids.count && !end; i++) {
		unsigned at, to;
		unit_extent(kids.c[i], &at, &to);
		if (a->at >= at && a->at < to)
			end = unit_statement_end(u, to);
	}
	if (end)
		end = omp_joined(u, &kids, end, before);
	free(kids.c);
	return end < before ? end : 0;
}

/* The identifiers of an extent are declared, and not written, between two places. */
static bool extent_holds(struct unit *u, const struct halecc_region *r, CXCursor own,
			 const char *text, unsigned from, unsigned to)
{
	unsigned own_at, own_end;

	unit_extent(own, &own_at, &own_end);
	if (own_at >= from && own_at < to)
		return false;

	for (const char *p = text; *p;) {
		size_t n = 0;
		while (p[n] == '_' || (p[n] >= 'a' && p[n] <= 'z') ||
		       (p[n] >= 'A' && p[n] <= 'Z') || (n && p[n] >= '0' && p[n] <= '9'))
			n++;
		if (!n) {
			p++;
			continue;
		}
		char *name = text_cut(p, n);
		CXCursor d = unit_lookup(u, r, name);
		if (!clang_Cursor_isNull(d) && !clang_equalCursors(d, own)) {
			unsigned at, end;
			bool global = clang_getCursorKind(clang_getCursorSemanticParent(d)) ==
				      CXCursor_TranslationUnit;
			unit_extent(d, &at, &end);
			if (!global && at >= from)
				return false;
			CXType t = clang_getCanonicalType(clang_getCursorType(d));
			/* of an array its content counts where the extent looks into it */
			bool content = p[n] == '[' || (p[n] == '-' && p[n + 1] == '>');
			if (((t.kind != CXType_Pointer && t.kind != CXType_ConstantArray) ||
			     content) &&
			    access_of(u, d, from, to) & (ACCESS_WRITE | ACCESS_ESCAPE))
				return false;
		}
		p += n;
	}
	return true;
}

static const char *object_name(const struct unit *u, const char *name)
{
	const char *object = text_format("hale_%s", name);
	int again = 0;

	for (int i = 0; i < u->chains; i++)
		for (int k = 0; k < u->chain[i].vars; k++)
			again += strcmp(u->chain[i].var[k].name, name) == 0;
	return again ? text_format("%s_%d", object, again + 1) : object;
}

/* A chain has one note of a variable, so its checks must mean the same bytes. */
static void part_refuse(struct unit *u, const struct guarded *v, const struct method *m)
{
	if (v->how->reference && m->reference && v->how->base && m->base &&
	    strcmp(v->how->base, m->base) != 0)
		source_error(u->src, m->at,
			     "another part of '%s' is checked in line %u of the same chain: give "
			     "each part a pointer of its own, and check that",
			     m->var, source_line(u->src, v->how->at));
}

static void guard(struct unit *u, struct chain *c, int at, struct halecc_region *r, int which)
{
	struct method *m = &r->check[which];
	struct guarded *v;
	unsigned start = c->node[0].at;
	bool writes_here =
	    access_of(u, m->decl, c->node[at].at, c->node[at].end) & (ACCESS_WRITE | ACCESS_ESCAPE);

	if (clang_Cursor_isNull(m->decl))
		return;
	v = chain_var(c, m->decl);
	if (v) { /* a later check of the same: the last one counts */
		part_refuse(u, v, m);
		if (v->how->reference && m->reference && v->checker != at) {
			struct halecc_node *old = &c->node[v->checker];
			for (int i = 0; i < old->regions; i++) {
				struct halecc_region *o = &u->region[old->region[i]];
				for (int k = 0; k < o->checks; k++)
					if (o->check[k].reference &&
					    clang_equalCursors(o->check[k].decl, m->decl))
						o->from_check |= 1u << k;
			}
		}
	} else {
		if (c->vars == (int)ARRAY_LEN(c->var)) {
			source_error(u->src, m->at, "more than %zu variables in one chain",
				     ARRAY_LEN(c->var));
			return;
		}
		const char *object = object_name(u, m->var);
		v = &c->var[c->vars++];
		*v = (struct guarded){.name = m->var, .object = object, .decl = m->decl};
		v->how = m;
	}
	if (m->reference)
		v->how = m;
	v->checker = at;
	v->producer = -1;
	for (int i = 0; i < at; i++)
		if (node_writes(u, &c->node[i], m->decl))
			v->producer = i;
	unsigned from = v->producer >= 0 ? c->node[v->producer].end : c->inner;
	other_names_refuse(u, c, v, at);
	v->note_at = m->reference ? written_until(u, c, m->decl, from, c->node[at].at) : 0;
	v->early = v->note_at && v->note_at <= start;
	if (v->note_at &&
	    !extent_holds(u, r, m->decl, m->bytes ? m->bytes : "", v->note_at, c->node[at].at))
		v->note_at = 0;
	if (!v->note_at)
		v->early = false;
	v->expected = m->bytes && (v->producer >= 0 || (!m->reference && writes_here)) &&
		      extent_holds(u, r, m->decl, text_format("%s %s", m->base, m->bytes), start,
				   c->node[at].at) &&
		      !(access_of(u, m->decl, start, c->node[at].end) & ACCESS_REPOINT);
}

/* A region whose check can make a region with Comm run again must itself agree with the other
 * ranks. */
static void comm_spread(struct unit *u, struct chain *c)
{
	for (int v = 0; v < c->vars; v++) {
		struct halecc_node *n = &c->node[c->var[v].checker];
		bool again[CHAIN_MAX], readers[CHAIN_MAX];

		chain_readers(u, c, &c->var[v], c->var[v].checker, readers);
		if (c->var[v].producer >= 0)
			chain_reset(u, c, c->var[v].producer, c->var[v].checker, again);
		for (int i = 0; i < c->nodes; i++) {
			bool back = readers[i] || (c->var[v].producer >= 0 && again[i]);
			for (int k = 0; back && k < c->node[i].regions; k++) {
				const struct halecc_region *from = &u->region[c->node[i].region[k]];
				for (int g = 0; g < n->regions && from->comm; g++) {
					u->region[n->region[g]].comm = true;
					if (!u->region[n->region[g]].communicator)
						u->region[n->region[g]].communicator =
						    from->communicator;
				}
			}
		}
	}
}

struct labels {
	const struct chain *c;
	bool found;
};

static enum CXChildVisitResult labels_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct labels *l = data;
	unsigned from, to;

	unit_extent(c, &from, &to);
	if (clang_getCursorKind(c) == CXCursor_LabelStmt && from >= l->c->inner &&
	    from < l->c->outer)
		l->found = true;
	return CXChildVisit_Recurse;
}

/* A case behind the chain in the body of a switch is reached past the chain's declarations. */
static void cases_refuse(struct unit *u, const struct chain *c)
{
	struct cursors kids;
	unsigned from, to;

	cursors_of(c->compound, &kids);
	for (size_t i = 0; i < kids.count; i++) {
		enum CXCursorKind kind = clang_getCursorKind(kids.c[i]);
		unit_extent(kids.c[i], &from, &to);
		if ((kind == CXCursor_CaseStmt || kind == CXCursor_DefaultStmt) &&
		    from > c->node[0].at) {
			source_error(
			    u->src, c->node[0].at,
			    "a case of this switch stands behind this region in the same "
			    "block (line %u): put what is between the two cases into braces",
			    source_line(u->src, from));
			break;
		}
	}
	free(kids.c);
}

static void chain_finish(struct unit *u, struct chain *c)
{
	struct labels l = {c, false};

	clang_visitChildren(c->function, labels_visit, &l);
	c->labels = l.found;
	cases_refuse(u, c);
	for (int i = 0; i < c->nodes; i++)
		for (int k = 0; k < c->node[i].regions; k++) {
			struct halecc_region *r = &u->region[c->node[i].region[k]];
			r->chain = (int)(c - u->chain);
			r->node = i;
			for (int m = 0; m < r->checks; m++)
				guard(u, c, i, r, m);
		}
	for (int i = 0; i < c->nodes; i++)
		for (int k = 0; k < c->node[i].regions; k++) {
			struct halecc_region *r = &u->region[c->node[i].region[k]];
			for (int m = 0; m < c->vars && r->how == CR; m++)
				for (int n = 0; n < r->checks; n++)
					c->var[m].copied |=
					    r->check[n].reference && r->check[n].bytes &&
					    clang_equalCursors(c->var[m].decl, r->check[n].decl);
		}
	nest(u, c);
	comm_spread(u, c);
}

/* Region r stands alone in a branch of an if statement that is the next thing behind `after`. */
static int branch_nodes(struct unit *u, const struct halecc_region *prev, struct halecc_node *n,
			bool *used)
{
	struct cursors kids;
	unsigned from, to;

	n->regions = 0;
	for (int i = 0; i < u->regions; i++) {
		struct halecc_region *r = &u->region[i];
		if (used[i] || !r->bound || r->at < prev->to || r->at >= prev->outer)
			continue;
		/* the if statement: a child of the compound around prev that holds r */
		unsigned p = prev->to;
		const char *s = u->src->text;
		while (p < u->src->len && strchr(" \t\r\n", s[p]))
			p++;
		if (strncmp(s + p, "if", 2) != 0)
			break;
		CXCursor at = clang_getCursor(u->tu, clang_getLocationForOffset(u->tu, u->file, p));
		if (clang_getCursorKind(at) != CXCursor_IfStmt)
			break;
		unit_extent(at, &from, &to);
		if (r->at < from || r->at >= to)
			break;
		cursors_of(at, &kids);
		bool direct = false;
		CXCursor ladder = at;
		for (int guard_depth = 0; guard_depth < METHODS_MAX && !direct; guard_depth++) {
			CXCursor next = clang_getNullCursor();
			cursors_of(ladder, &kids);
			for (size_t k = 1; k < kids.count; k++) {
				unsigned kf, kt;
				unit_extent(kids.c[k], &kf, &kt);
				direct |= clang_getCursorKind(kids.c[k]) == CXCursor_CompoundStmt &&
					  kf + 1 == r->inner;
				if (clang_getCursorKind(kids.c[k]) == CXCursor_IfStmt)
					next = kids.c[k];
			}
			if (clang_Cursor_isNull(next))
				break;
			ladder = next;
		}
		if (!direct || n->regions == METHODS_MAX)
			continue;
		n->at = from;
		n->end = to;
		n->region[n->regions++] = i;
		used[i] = true;
	}
	return n->regions;
}

static void chain_from(struct unit *u, int first, bool *used)
{
	struct chain *c = &u->chain[u->chains];
	int at = first;

	memset(c, 0, sizeof *c);
	c->inner = u->region[first].inner;
	c->outer = u->region[first].outer;
	c->function = u->region[first].function;
	c->compound = u->region[first].compound;
	for (;;) {
		struct halecc_region *r = &u->region[at];
		struct halecc_node *n = &c->node[c->nodes++];
		int next = -1;

		used[at] = true;
		n->region[0] = at;
		n->regions = 1;
		n->at = r->at;
		n->end = r->to;
		if (!r->go_on)
			break;
		if (c->nodes == CHAIN_MAX) {
			source_error(u->src, r->at, "a chain of more than %d regions", CHAIN_MAX);
			break;
		}
		if (branch_nodes(u, r, &c->node[c->nodes], used)) {
			c->nodes++;
			break;
		}
		for (int i = 0; i < u->regions; i++)
			if (!used[i] && u->region[i].bound && u->region[i].inner == r->inner &&
			    u->region[i].at >= r->to &&
			    (next < 0 || u->region[i].at < u->region[next].at))
				next = i;
		if (next < 0) {
			source_warn(
			    u->src, r->at,
			    "Continue, but no region follows in this block: what this one writes "
			    "is checked nowhere");
			break;
		}
		at = next;
	}
	u->chains++;
	chain_finish(u, c);
}

void chain_build(struct unit *u)
{
	bool used[REGIONS_MAX] = {false};

	for (int i = 0; i < u->regions; i++)
		if (u->region[i].bound && !used[i])
			chain_from(u, i, used);
}

struct halecc_region chain_between(const struct chain *c, int i)
{
	return (struct halecc_region){
	    .at = c->node[i].end, .from = c->node[i].end, .to = c->node[i + 1].at};
}
