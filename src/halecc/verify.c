/* SPDX-License-Identifier: BSD-3-Clause */
/* What makes a region that runs twice wrong: jumps out of it, effects that can't be done twice, and
 * declarations that the loops around it would hide. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

struct look {
	struct unit *u;
	struct halecc_region *r;
	int loops, switches, tries; /* around the cursor, inside the region */
	int depth;		    /* of functions followed */
	bool opens;    /* the function that is looked into opens what it writes to and closes */
	CXCursor call; /* where the region called the function that is looked into */
	const char *who;
};

#define THIS_REGION	"this region"
#define BETWEEN_REGIONS "what stands between two regions of a chain runs again with them, and"

static bool one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

static void look(struct look *l, CXCursor c);

static unsigned at_of(const struct look *l, CXCursor c)
{
	unsigned from, to;

	unit_extent(l->depth ? l->call : c, &from, &to);
	return from;
}

static enum CXChildVisitResult opens_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	static const char *const opening[] = {"fopen",	"open",	  "creat", "fdopen",
					      "malloc", "calloc", "mmap",  NULL};

	if (clang_getCursorKind(c) == CXCursor_CallExpr) {
		char *name = cursor_name(c);
		*(bool *)data |= one_of(name, opening);
		free(name);
	}
	return CXChildVisit_Recurse;
}

/* exit(0); an error status is no result. */
static bool claims_success(CXCursor call)
{
	CXEvalResult value = clang_Cursor_Evaluate(clang_Cursor_getArgument(call, 0));
	bool zero = value && clang_EvalResult_getKind(value) == CXEval_Int &&
		    clang_EvalResult_getAsInt(value) == 0;

	if (value)
		clang_EvalResult_dispose(value);
	return zero;
}

static void look_call(struct look *l, CXCursor c)
{
	static const char *const output[] = {
	    "printf",  "puts",	  "putchar",  "fprintf",  "fputs",	"fwrite", "write", "fputc",
	    "perror",  "vprintf", "vfprintf", "dprintf",  "putc",	"writev", "send",  "sendto",
	    "sendmsg", "fputwc",  "wprintf",  "fwprintf", "operator<<", NULL};
	static const char *const twice[] = {"system", "popen", "fork",	"rename", "unlink",
					    "remove", "kill",  "raise", NULL};
	static const char *const input[] = {
	    "getchar", "scanf",	   "fgets",   "fscanf", "getline", "getdelim",	 "fread",
	    "read",    "readv",	   "getc",    "fgetc",	"fgetwc",  "vscanf",	 "vfscanf",
	    "recv",    "recvfrom", "recvmsg", "gets",	"readdir", "operator>>", NULL};
	static const char *const drawn[] = {
	    "rand",    "random",  "drand48",  "lrand48",      "mrand48",       "erand48",
	    "nrand48", "jrand48", "random_r", "getrandom",    "getentropy",    "arc4random",
	    "time",    "clock",	  "strtok",   "gettimeofday", "clock_gettime", NULL};
	static const char *const release[] = {"free",	"realloc", "reallocarray", "munmap",
					      "fclose", "close",   "pclose",	   NULL};
	static const char *const ends[] = {"pthread_exit", "thrd_exit", "execl",  "execlp",
					   "execle",	   "execv",	"execvp", "execve",
					   "execvpe",	   NULL};
	static const char *const finishes[] = {"exit", "_exit", "_Exit", "quick_exit", NULL};
	static const char *const jumps[] = {"longjmp", "siglongjmp", "_longjmp", NULL};
	static const char *const streams[] = {"printf", "puts",	   "putchar", "vprintf",
					      "scanf",	"getchar", NULL};
	CXCursor callee = clang_getCursorReferenced(c), body;
	char *name = cursor_name(callee);
	struct source *s = l->u->src;
	const char *through = l->depth ? " (in a function that it calls)" : "";

	if (one_of(name, jumps))
		source_error(s, at_of(l, c),
			     "%s jumps out by %s%s: its variables would never be checked", l->who,
			     name, through);
	else if (l->opens && !one_of(name, streams) &&
		 (one_of(name, release) || one_of(name, output) || one_of(name, input)))
		(void)0; /* from the beginning each time */
	else if (one_of(name, ends) || (one_of(name, finishes) && claims_success(c)))
		source_error(s, at_of(l, c),
			     "%s ends by %s%s before its variables are checked: set a variable "
			     "here and end behind the region",
			     l->who, name, through);
	else if (one_of(name, release))
		source_error(s, at_of(l, c),
			     "%s calls %s%s: when it runs again that is done twice. Do it "
			     "behind the "
			     "region",
			     l->who, name, through);
	else if (one_of(name, output))
		source_warn(s, at_of(l, c),
			    "%s writes by %s%s: when it runs again, that is written "
			    "twice. It is fine "
			    "where the same place is overwritten",
			    l->who, name, through);
	else if (one_of(name, twice))
		source_warn(s, at_of(l, c), "%s calls %s%s: when it runs again, that is done twice",
			    l->who, name, through);
	else if (one_of(name, drawn))
		source_warn(s, at_of(l, c),
			    "%s calls %s%s, which gives something else when the region "
			    "runs again: draw before the region",
			    l->who, name, through);
	else if (one_of(name, input))
		source_error(s, at_of(l, c),
			     "%s reads by %s%s: when it runs again, it reads what comes next. Read "
			     "before the region",
			     l->who, name, through);
	else if (strncmp(name, "MPI_", 4) == 0 && !l->r->comm &&
		 strncmp(name, "MPI_Comm_", 9) != 0 && strcmp(name, "MPI_Wtime") != 0)
		source_error(s, at_of(l, c),
			     "%s calls %s%s: other ranks must run again with it. Add Comm "
			     "to the pragma",
			     l->who, name, through);
	body = clang_getCursorDefinition(callee);
	if (!clang_Cursor_isNull(body) && l->depth < 8) {
		struct look inner = *l;
		struct cursors kids;
		if (!l->depth)
			inner.call = c;
		inner.depth++;
		inner.loops = inner.switches = 1;
		inner.opens = false;
		clang_visitChildren(body, opens_visit, &inner.opens);
		cursors_of(body, &kids);
		for (size_t i = 0; i < kids.count; i++)
			look(&inner, kids.c[i]);
		free(kids.c);
	}
	free(name);
}

struct jumps {
	struct unit *u;
	const struct halecc_region *r;
	unsigned label;
	bool found;
};

static enum CXChildVisitResult jumps_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct jumps *j = data;
	unsigned from, to, label;

	if (clang_getCursorKind(c) == CXCursor_LabelRef) {
		unit_extent(c, &from, &to);
		unit_extent(clang_getCursorReferenced(c), &label, &to);
		j->found |= (from < j->r->from || from >= j->r->to) && label == j->label;
	}
	return CXChildVisit_Recurse;
}

static bool jumped_to(struct unit *u, const struct halecc_region *r, CXCursor label)
{
	struct jumps j = {u, r, 0, false};
	unsigned to;

	unit_extent(label, &j.label, &to);
	clang_visitChildren(r->function, jumps_visit, &j);
	return j.found;
}

static void look_jump(struct look *l, CXCursor c, enum CXCursorKind kind)
{
	struct source *s = l->u->src;
	unsigned from, to, at = at_of(l, c);

	if (l->depth && kind != CXCursor_CXXThrowExpr && kind != CXCursor_CXXDeleteExpr)
		return;
	if (kind == CXCursor_ReturnStmt)
		source_error(s, at,
			     "return leaves the region before its variables are checked: set a "
			     "variable here and "
			     "return behind the region");
	else if (kind == CXCursor_BreakStmt && !l->loops && !l->switches)
		source_error(s, at, "break leaves the region before its variables are checked");
	else if (kind == CXCursor_ContinueStmt && !l->loops)
		source_error(s, at, "continue leaves the region before its variables are checked");
	else if (kind == CXCursor_LabelStmt && jumped_to(l->u, l->r, c))
		source_error(s, at,
			     "a goto outside of this region jumps to this label: the region would "
			     "begin in its middle");
	else if (kind == CXCursor_CXXThrowExpr && !l->tries)
		source_error(s, at,
			     "throw leaves the region before its variables are checked: catch it "
			     "in the region");
	else if (kind == CXCursor_CXXDeleteExpr)
		source_error(s, at,
			     "delete is done twice when the region runs again. Do it behind the "
			     "region");
	else if (kind == CXCursor_GotoStmt) {
		struct cursors kids;
		cursors_of(c, &kids);
		for (size_t i = 0; i < kids.count; i++) {
			unit_extent(clang_getCursorReferenced(kids.c[i]), &from, &to);
			if (from < l->r->from || from >= l->r->to)
				source_error(
				    s, at,
				    "goto leaves the region before its variables are checked");
		}
		free(kids.c);
	}
}

static void look(struct look *l, CXCursor c)
{
	enum CXCursorKind kind = clang_getCursorKind(c);
	bool loop = kind == CXCursor_ForStmt || kind == CXCursor_WhileStmt ||
		    kind == CXCursor_DoStmt || kind == CXCursor_CXXForRangeStmt;
	struct cursors kids;

	if (kind == CXCursor_CallExpr)
		look_call(l, c);
	look_jump(l, c, kind);
	l->loops += loop;
	l->switches += kind == CXCursor_SwitchStmt;
	l->tries += kind == CXCursor_CXXTryStmt;
	cursors_of(c, &kids);
	for (size_t i = 0; i < kids.count; i++)
		look(l, kids.c[i]);
	free(kids.c);
	l->loops -= loop;
	l->switches -= kind == CXCursor_SwitchStmt;
	l->tries -= kind == CXCursor_CXXTryStmt;
}

/* A note is compared with what the region leaves, so the region must leave it alone. */
static void own_verify(struct unit *u, struct halecc_region *r)
{
	for (int k = 0; k < r->checks; k++) {
		const struct method *m = &r->check[k];
		const struct access *a;

		if (!m->reference || clang_Cursor_isNull(m->decl))
			continue;
		a = access_last(u, m->decl, r->from, r->to, ACCESS_WRITE);
		if (a && !(a->how & ACCESS_REPOINT))
			source_error(
			    u->src, a->at,
			    "this region writes '%s', which it checks for being unchanged: "
			    "check it in the next region (Continue), or judge its values "
			    "here (range, finite, product, a function of yours)",
			    m->var);
	}
}

/* What a region changes is kept one by one. */
static void saves_verify(struct unit *u, const struct halecc_region *r)
{
	const struct access *saved[KEEPS_MAX + 1];

	if (keep_list(u, r, saved, KEEPS_MAX + 1) > KEEPS_MAX)
		source_error(
		    u->src, saved[KEEPS_MAX]->at,
		    "%s changes more than %d scalars that it reads, '%s' among them: put them "
		    "into a struct",
		    r->bound ? "this region" : "what stands between two regions of a chain",
		    KEEPS_MAX, saved[KEEPS_MAX]->name);
}

static void kept_verify(struct unit *u, struct halecc_region *r)
{
	if (r->how == REDUNDANCY && r->comm)
		source_error(u->src, r->at,
			     "Redundancy together with Comm is not offered yet: use CR, or Check "
			     "and Recover");
	for (int i = 0; i < r->recovers; i++)
		if (strcmp(r->recover[i].func, "hale_correct") == 0 && r->recover[i].builtin) {
			bool sums = false;
			for (int k = 0; k < r->checks; k++)
				sums |= clang_equalCursors(r->check[k].decl, r->recover[i].decl) &&
					strcmp(r->check[k].func, "HALE_SUM") == 0;
			if (!sums)
				source_error(u->src, r->recover[i].at,
					     "'%s' has no checksums to be corrected from: check it "
					     "by sum(…)",
					     r->recover[i].var);
		}
	for (int k = 0; k < r->checks; k++)
		for (int m = 0; m < k; m++)
			if (r->check[k].reference && r->check[m].reference &&
			    clang_equalCursors(r->check[k].decl, r->check[m].decl))
				source_error(u->src, r->check[k].at,
					     "'%s' is checked twice here (of a struct one part may "
					     "be checked: "
					     "give another part a pointer of its own)",
					     r->check[k].var);
}

/* A variable that is used again behind its last check, before anything else is written to it. */
static void last_use_verify(struct unit *u, struct halecc_region *r)
{
	const struct chain *c = &u->chain[r->chain];

	for (int k = 0; k < r->checks; k++) {
		const struct method *m = &r->check[k];
		const struct access *next = NULL;

		if (!m->reference || clang_Cursor_isNull(m->decl))
			continue;
		if (r->from_check & 1u << k) {
			source_warn(u->src, m->at,
				    "'%s' is used again in a later region of this chain, and "
				    "checked there: its "
				    "check here is left out",
				    m->var);
			continue;
		}
		for (size_t i = 0; i < u->accesses.count; i++) {
			const struct access *a = &u->accesses.a[i];
			if (a->at >= r->to && clang_equalCursors(a->decl, m->decl) &&
			    (!next || a->at < next->at))
				next = a;
		}
		if (!next || !(next->how & ACCESS_READ) || (next->how & ACCESS_ESCAPE))
			continue;
		bool later = false;
		for (int i = 0; i < u->regions; i++)
			later |= u->region[i].bound && u->region[i].from <= next->at &&
				 u->region[i].to > next->at &&
				 update_is_checked(&u->region[i], m->decl);
		if (!later && next->at < c->outer)
			source_warn(
			    u->src, m->at,
			    "'%s' is used again in line %u, behind this check: what strikes it "
			    "between is not noticed. Check it there",
			    m->var, source_line(u->src, next->at));
	}
}

/* Declarations between the regions of a chain end with the loops that the regions become. */
static void declarations_verify(struct unit *u, struct chain *c)
{
	for (size_t i = 0; i < u->accesses.count; i++) {
		const struct access *a = &u->accesses.a[i];
		unsigned from, to, closes = 0;

		unit_extent(a->decl, &from, &to);
		if (!unit_declares(u, a->decl, c->node[0].at, c->node[c->nodes - 1].end) ||
		    a->at < from)
			continue;
		bool in_node = false;
		for (int n = 0; n < c->nodes; n++) {
			unsigned begin = c->node[c->node[n].leftmost].at, end = c->node[n].end;
			in_node |= from >= c->node[n].at && from < end;
			if (from >= begin && from < end && (!closes || end < closes))
				closes = end;
		}
		if (!in_node && closes && a->at >= closes) {
			source_error(u->src, from,
				     "'%s' is declared between two regions of a chain and used "
				     "behind them, in "
				     "line %u: declare it before the first region (line %u)",
				     a->name, source_line(u->src, a->at),
				     source_line(u->src, c->node[0].at));
			return;
		}
	}
}

struct between_calls {
	struct unit *u;
	struct halecc_region *gap;
};

static enum CXChildVisitResult between_calls_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct between_calls *b = data;
	struct look l = {.u = b->u, .r = b->gap, .who = BETWEEN_REGIONS};
	unsigned from, to;

	unit_extent(c, &from, &to);
	if (clang_getCursorKind(c) == CXCursor_CallExpr && from >= b->gap->from &&
	    from < b->gap->to)
		look_call(&l, c);
	return CXChildVisit_Recurse;
}

static void between_verify(struct unit *u, struct chain *c)
{
	for (int i = 0; i < c->nodes - 1; i++) {
		struct halecc_region gap = chain_between(c, i);
		struct between_calls b = {u, &gap};

		for (int n = 0; n < c->nodes; n++)
			gap.comm |= u->region[c->node[n].region[0]].comm;
		gap.inner = u->region[c->node[i].region[0]].inner;
		gap.outer = u->region[c->node[i].region[0]].outer;
		clang_visitChildren(c->function, between_calls_visit, &b);
		update_warn(u, &gap);
		saves_verify(u, &gap);
	}
}

/* break and continue between regions would mean the loops that the regions become. */
struct between {
	struct unit *u;
	struct chain *c;
};

static enum CXChildVisitResult between_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct between *b = data;
	enum CXCursorKind kind = clang_getCursorKind(c);
	unsigned from, to;

	if (kind == CXCursor_ForStmt || kind == CXCursor_WhileStmt || kind == CXCursor_DoStmt ||
	    kind == CXCursor_SwitchStmt) {
		unit_extent(c, &from, &to);
		if (from > b->c->node[0].at)
			return CXChildVisit_Continue;
	}
	unit_extent(c, &from, &to);
	if ((kind == CXCursor_BreakStmt || kind == CXCursor_ContinueStmt) &&
	    from > b->c->node[0].at && from < b->c->node[b->c->nodes - 1].end) {
		for (int n = 0; n < b->c->nodes; n++)
			if (from >= b->c->node[n].at && from < b->c->node[n].end)
				return CXChildVisit_Continue;
		source_error(
		    b->u->src, from,
		    "%s between the regions of a chain: it would leave the loops that they become",
		    kind == CXCursor_BreakStmt ? "break" : "continue");
	}
	return CXChildVisit_Recurse;
}

void verify_regions(struct unit *u)
{
	for (int i = 0; i < u->regions; i++) {
		struct halecc_region *r = &u->region[i];
		struct look l = {.u = u, .r = r, .who = THIS_REGION};

		if (!r->bound)
			continue;
		if (clang_getCursorKind(r->statement) == CXCursor_DeclStmt)
			source_error(u->src, r->from,
				     "a region can't be a declaration: declare before the pragma, "
				     "and assign here");
		if (clang_getCursorKind(r->statement) == CXCursor_CaseStmt ||
		    clang_getCursorKind(r->statement) == CXCursor_DefaultStmt ||
		    clang_getCursorKind(r->statement) == CXCursor_LabelStmt)
			source_error(u->src, r->from, "a region can't begin with a label");
		look(&l, r->statement);
		kept_verify(u, r);
		saves_verify(u, r);
		update_warn(u, r);
		own_verify(u, r);
		last_use_verify(u, r);
	}
	for (int i = 0; i < u->chains; i++) {
		struct between b = {u, &u->chain[i]};
		clang_visitChildren(u->chain[i].function, between_visit, &b);
		declarations_verify(u, &u->chain[i]);
		between_verify(u, &u->chain[i]);
	}
}
