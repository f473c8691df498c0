/* SPDX-License-Identifier: BSD-3-Clause */
/* What a function does: to what its parameters point to, and to variables that outlive the call.
 * Its body is walked once; functions that it calls are followed. A body is looked for in this file,
 * in the headers that it includes and in the other sources of the command line.
 *
 * Of a function that is not seen anything is assumed of what it is given without const
 * (ACCESS_ESCAPE), and that it may write variables of the program that other files see, unless a
 * header of the system declares it. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

#define ARGUMENTS_MAX 32

struct effect {
	struct effect *next;
	CXCursor function; /* the definition, or the declaration of what is not seen */
	bool busy, seen, blind;
	bool nothing; /* free: neither reads nor writes */
	bool waits;   /* for what others write */
	bool later;   /* hands what it is given to what writes it later */
	int arguments, argument[ARGUMENTS_MAX];
	struct accesses outside;
};

struct effect_search {
	const char *name;
	CXCursor found;
};

static enum CXChildVisitResult definition_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct effect_search *s = data;
	char *name;

	if (clang_getCursorKind(c) == CXCursor_FunctionDecl && clang_isCursorDefinition(c) &&
	    clang_getCursorLinkage(c) == CXLinkage_External) {
		name = cursor_name(c);
		if (strcmp(name, s->name) == 0)
			s->found = c;
		free(name);
	}
	return CXChildVisit_Continue;
}

static CXCursor definition_of(const struct unit *u, CXCursor callee)
{
	struct effect_search s = {cursor_name(callee), clang_getCursorDefinition(callee)};

	for (int i = 0; i < u->others && clang_Cursor_isNull(s.found) &&
			clang_getCursorLinkage(callee) == CXLinkage_External;
	     i++)
		clang_visitChildren(clang_getTranslationUnitCursor(u->other[i]), definition_visit,
				    &s);
	return s.found;
}

/* What a function does to one variable, in the order of its accesses. */
static int effect_on(const struct accesses *all, CXCursor decl)
{
	int how = 0;

	for (size_t i = 0; i < all->count; i++) {
		int next = all->a[i].how;
		if (!clang_equalCursors(all->a[i].decl, decl))
			continue;
		if (next & ACCESS_ALIAS) /* a second name: nobody follows it */
			next |= ACCESS_ESCAPE | ACCESS_READ;
		if ((next & ACCESS_WRITE) && !(next & ACCESS_REPOINT) && (how & ACCESS_READ) &&
		    !(how & ACCESS_WRITE))
			next |= ACCESS_UPDATE;
		if ((next & ACCESS_UPDATE) && (how & ACCESS_WRITE) && !(how & ACCESS_UPDATE))
			next &= ~ACCESS_UPDATE; /* it was set first */
		if ((how & ACCESS_WRITE) && !(how & ACCESS_SOME))
			next &= ~ACCESS_SOME; /* all of it was */
		how |= next & ~(ACCESS_REPOINT | ACCESS_ALIAS);
	}
	return how;
}

static bool outlives(CXCursor decl)
{
	return clang_getCursorKind(clang_getCursorSemanticParent(decl)) ==
		   CXCursor_TranslationUnit ||
	       clang_Cursor_getStorageClass(decl) == CX_SC_Static;
}

static void effect_find(struct unit *u, struct effect *e)
{
	struct accesses kept = u->accesses, mine;
	struct alias *alias_kept = u->alias;
	size_t aliases_kept = u->aliases, blinds_kept = u->blinds, waits_kept = u->waits;
	int loops_kept = u->loops, branches_kept = u->branches, judgments_kept = u->judgments;
	CXCursor value_kept = u->value_of;

	e->busy = true;
	memset(&u->accesses, 0, sizeof u->accesses);
	u->alias = NULL;
	u->aliases = 0;
	u->value_of = clang_getNullCursor();
	u->loops = u->branches = u->judgments = 0;
	access_collect(u, e->function);
	mine = u->accesses;
	free(u->alias);
	u->accesses = kept;
	u->alias = alias_kept;
	u->aliases = aliases_kept;
	u->value_of = value_kept;
	e->blind = u->blinds > blinds_kept;
	u->blinds = blinds_kept;
	e->waits = u->waits > waits_kept;
	u->waits = waits_kept;
	u->loops = loops_kept;
	u->branches = branches_kept;
	u->judgments = judgments_kept;
	e->arguments = clang_Cursor_getNumArguments(e->function);
	for (int i = 0; i < e->arguments && i < ARGUMENTS_MAX; i++)
		e->argument[i] = effect_on(&mine, clang_getCanonicalCursor(clang_Cursor_getArgument(
						      e->function, (unsigned)i)));
	memset(&u->accesses, 0, sizeof u->accesses);
	for (size_t i = 0; i < mine.count; i++) {
		bool again = false;
		for (size_t k = 0; k < i; k++)
			again |= clang_equalCursors(mine.a[k].decl, mine.a[i].decl);
		if (!again && outlives(mine.a[i].decl))
			access_add(u, mine.a[i].decl, 0, effect_on(&mine, mine.a[i].decl));
	}
	e->outside = u->accesses;
	u->accesses = kept;
	free(mine.a);
	e->busy = false;
}

/* Functions that start something (a thread, a message) that writes their arguments later; functions
 * that wait for it. */
static const char *const starting[] = {
    "pthread_create", "thrd_create", "MPI_I*",	   "MPI_*_init", "MPI_File_i*", "MPI_Win_create*",
    "aio_read",	      "lio_listio",  "clEnqueue*", "cuda*Async", "io_uring_*",	NULL};
static const char *const not_starting[] = {"MPI_Init*",	  "MPI_Info*", "MPI_Inter*", "MPI_Iprobe",
					   "MPI_Improbe", "MPI_Is_*",  NULL};
static const char *const waiting[] = {"pthread_*join_np",
				      "pthread_join",
				      "pthread_barrier_wait",
				      "pthread_cond_*wait",
				      "pthread_mutex_lock",
				      "thrd_join",
				      "cnd_*wait",
				      "mtx_lock",
				      "sem_*wait",
				      "MPI_Wait*",
				      "MPI_Test*",
				      "MPI_Start*",
				      "MPI_Win_*",
				      "MPI_Barrier",
				      "MPI_Recv",
				      "MPI_Request_free",
				      "aio_suspend",
				      "aio_error",
				      "aio_return",
				      "cl*",
				      "cuda*",
				      "io_uring_*",
				      "sleep",
				      "usleep",
				      "nanosleep",
				      "thrd_sleep",
				      "sched_yield",
				      NULL};

/* Of a pattern with one '*' or none. */
static bool fits(const char *name, const char *pattern)
{
	const char *star = strchr(pattern, '*');
	size_t head = star ? (size_t)(star - pattern) : strlen(pattern);
	size_t tail = star ? strlen(star + 1) : 0, len = strlen(name);

	if (strncmp(name, pattern, head) != 0 || len < head + tail || (!star && len != head))
		return false;
	return !star || strcmp(name + len - tail, star + 1) == 0;
}

static bool named_as(const char *name, const char *const *patterns)
{
	for (; *patterns; patterns++)
		if (fits(name, *patterns))
			return true;
	return false;
}

struct effect *effect_of(struct unit *u, CXCursor call)
{
	CXCursor callee = clang_getCursorReferenced(call), body;
	struct effect *e;

	if (clang_getCursorKind(callee) != CXCursor_FunctionDecl)
		callee = clang_getNullCursor();
	body = clang_Cursor_isNull(callee) ? callee : definition_of(u, callee);
	if (!clang_Cursor_isNull(body))
		callee = body;
	for (e = u->effects; e; e = e->next)
		if (clang_equalCursors(e->function, callee))
			return e;
	e = text_memory(sizeof *e);
	e->next = u->effects;
	u->effects = e;
	e->function = callee;
	e->seen = !clang_Cursor_isNull(body);
	if (e->seen)
		effect_find(u, e);
	else {
		char *name = cursor_name(callee);
		e->nothing = strcmp(name, "free") == 0;
		e->waits = named_as(name, waiting);
		e->later = named_as(name, starting) && !named_as(name, not_starting);
		free(name);
		e->blind = clang_Cursor_isNull(callee) ||
			   !clang_Location_isInSystemHeader(clang_getCursorLocation(callee));
	}
	return e;
}

int effect_argument(const struct effect *e, int i)
{
	if (e->nothing)
		return 0;
	if (!e->seen || e->busy || i >= e->arguments || i >= ARGUMENTS_MAX)
		return ACCESS_READ | ACCESS_ESCAPE | (e->later ? ACCESS_LATER : 0) |
		       (e->blind ? ACCESS_UNSEEN : 0);
	return e->argument[i];
}

bool effect_waits(const struct effect *e)
{
	return e->waits && !e->busy;
}

struct named {
	const char *name;
	CXCursor found;
};

static enum CXChildVisitResult named_visit(CXCursor c, CXCursor parent, CXClientData data)
{
	struct named *n = data;
	char *name;

	if (clang_getCursorKind(c) == CXCursor_VarDecl &&
	    clang_getCursorLinkage(c) == CXLinkage_External) {
		name = cursor_name(c);
		if (strcmp(name, n->name) == 0)
			n->found = clang_getCanonicalCursor(c);
		free(name);
	}
	return CXChildVisit_Continue;
}

/* A variable of another source as this one knows it; itself when this one doesn't. */
static CXCursor here(const struct unit *u, CXCursor decl)
{
	struct named n = {cursor_name(decl), decl};

	if (clang_Cursor_getTranslationUnit(decl) != u->tu &&
	    clang_getCursorLinkage(decl) == CXLinkage_External)
		clang_visitChildren(clang_getTranslationUnitCursor(u->tu), named_visit, &n);
	return n.found;
}

void effect_globals(struct unit *u, const struct effect *e, unsigned at, int how)
{
	for (size_t i = 0; i < e->outside.count && !e->busy; i++)
		access_add(u, here(u, e->outside.a[i].decl), at, e->outside.a[i].how | how);
	if (!e->blind && !e->busy)
		return;
	u->blind = realloc(u->blind, (u->blinds + 1) * sizeof *u->blind);
	if (!u->blind)
		abort();
	u->blind[u->blinds++] = at;
}
