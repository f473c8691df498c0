/* SPDX-License-Identifier: BSD-3-Clause */
/* halecc/: a compiler driver that understands `#pragma hale protect` (docs/protect.md).
 *
 *   source --unit--> cursors --clause--> regions --access--> who reads and writes what, where
 *          --chain--> nests, producers --verify--> errors, warnings
 *          --emit--> plain C --cc--> object
 *
 * May call: base/, libclang. Called by nobody. The output is the user's text, unchanged, with text
 * of ours put between: all decisions are made on byte offsets of the source.
 *
 * Memory is never given back before the process ends: one file is a few hundred kilobytes.
 */
#ifndef HALE_HALECC_HALECC_H
#define HALE_HALECC_HALECC_H

#include <clang-c/Index.h>
#include <stdbool.h>
#include <stddef.h>

#define METHODS_MAX 16
#define REGIONS_MAX 256
#define CHAIN_MAX   32
#define KEEPS_MAX   64 /* scalars that a region changes */

/* text.c: strings that live until the end, growing ones, and complaints. */
char *text_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *text_cut(const char *from,
	       size_t len); /* without the spaces around it, continued lines joined */
struct text {
	char *s; /* NUL-terminated, NULL when empty */
	size_t len, cap;
};
void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_add_bytes(struct text *t, const char *s, size_t len);
void *text_memory(size_t bytes); /* zeroed; ends the process when there is none */

struct source {
	const char *path; /* as the user gave it */
	char *text;
	size_t len;
	int errors, warnings;
	bool quiet; /* -w */
	bool cxx;
	const char *other[256]; /* the other sources of the command line */
	int others;
};
bool source_read(struct source *s, const char *path);
unsigned source_line(const struct source *s, size_t offset);
/* "file:line:column: error: …", the line and a caret. */
void source_error(struct source *s, size_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void source_warn(struct source *s, size_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* What is done with the content of a variable: of a pointer's, what it points to. */
enum {
	ACCESS_READ = 1,
	ACCESS_WRITE = 2,
	ACCESS_ESCAPE = 4,
	ACCESS_ALIAS = 8,
	ACCESS_UPDATE = 16,
	ACCESS_REPOINT = 32, /* the pointer itself is set */
	ACCESS_MAYBE = 64,   /* a write that some runs don't make: in a loop or a branch */
	ACCESS_SOME = 128,   /* data say whether, or which element is written */
	ACCESS_DEEP = 256,   /* of a struct: what a pointer in it leads to */
	ACCESS_LATER = 512,  /* handed to what writes it later: a thread, MPI_Irecv */
	ACCESS_UNSEEN = 1024 /* handed to a function that is not seen */
};
struct access {
	CXCursor decl;
	const char *name;
	unsigned at;
	int how;
};
struct accesses {
	struct access *a;
	size_t count, cap;
};
/* q = A: what is written through q may be A's. */
struct alias {
	CXCursor a, b;
};

/* One element of Check or Recover: sum(A[0:n]). */
struct method {
	const char *text, *func, *arg; /* arg: all between the parentheses */
	const char *var;	       /* the name at the beginning of the first argument */
	const char *base, *bytes;      /* expressions; NULL when the extent is unknown */
	const char *count;	       /* elements */
	const char *length[2];	       /* of two dimensions; NULL when there are others */
	unsigned at;		       /* offset in the source */
	CXCursor decl;		       /* of var */
	bool builtin, reference;       /* reference: compares with a note */
};

typedef enum resilience { PLAIN, CR, REDUNDANCY } resilience_t;

struct halecc_region {
	unsigned at, end; /* the pragma */
	unsigned line;
	unsigned from, to;     /* the statement, with its semicolon */
	unsigned inner, outer; /* the compound statement around it: behind '{', at '}' */
	CXCursor statement, compound, function;
	bool bound;
	resilience_t how;
	int degree;
	bool comm, go_on;
	const char *communicator;
	struct method check[METHODS_MAX], recover[METHODS_MAX], copy[METHODS_MAX];
	struct method confirm[METHODS_MAX];
	int checks, recovers, copies, confirms;
	/* of chain.c */
	int number, chain, node;
	unsigned
	    from_check; /* a bit for each check that a later region of the chain makes instead */
};

/* A place in a chain: a region, or an if statement whose branches hold one each. */
struct halecc_node {
	int region[METHODS_MAX], regions;
	unsigned at, end;     /* with everything that belongs to it */
	int parent, leftmost; /* nodes; the loop of a node begins before its leftmost one */
};

/* A variable that a chain protects. */
struct guarded {
	const char *name, *object; /* "A", "hale_A" */
	CXCursor decl;
	const struct method *how; /* the check that tells kind and extent */
	unsigned note_at; /* offset behind the plain statement that last writes it; 0: none */
	bool early;	  /* note_at lies before the chain */
	bool expected;	  /* its place is known when the chain begins */
	bool copied;	  /* a region has CR for it */
	int producer;	  /* node that writes it before its check, -1: none */
	int checker;	  /* node of its check */
};

struct chain {
	struct halecc_node node[CHAIN_MAX];
	int nodes;
	struct guarded var[4 * METHODS_MAX];
	int vars;
	unsigned inner, outer;
	CXCursor function, compound;
	bool labels; /* behind its beginning: jumps may pass its declarations */
};

enum { OFFLOAD_PARTS_MAX = 48, OFFLOADS_MAX = 128 };
enum { PART_IN = 1, PART_OUT = 2 };

/* A variable that goes to a device, comes from it, or both. */
struct halecc_part {
	const char *name, *low, *length; /* low, length: NULL where no extent is given */
	unsigned at;
	int how;
	CXCursor decl;
	const char *declared;
	bool named;			/* by the pragma */
	bool global, pointer, constant; /* pointer: it is one in the device's function */
	bool large;			/* too large for a stack */
};

struct halecc_offload {
	unsigned at, words, end; /* the pragma; behind its name */
	unsigned line;
	unsigned from, to; /* the statement */
	CXCursor statement, function;
	bool bound;
	int number;
	const char *device;
	struct halecc_part part[OFFLOAD_PARTS_MAX];
	int parts;
};

struct unit {
	struct source *src;
	CXTranslationUnit tu;
	CXFile file;
	struct halecc_region region[REGIONS_MAX];
	int regions;
	struct halecc_offload offload[OFFLOADS_MAX];
	int offloads;
	struct chain chain[REGIONS_MAX];
	int chains;
	struct accesses accesses; /* in the order in which they happen */
	struct alias *alias;
	size_t aliases;
	unsigned *blind; /* offsets of calls of functions that are not seen: any variable of the
			    program that other files see may be written there */
	size_t blinds;
	unsigned
	    *wait; /* offsets of calls behind which others have written: pthread_join, MPI_Wait */
	size_t waits;
	/* around the expression that is walked; judgments: branches that data decide */
	int loops, branches, judgments;
	CXCursor value_of; /* while a value is walked: the variable that it goes to */
	struct effect *effects;
	CXTranslationUnit other[256]; /* of src->other, for what their functions do */
	int others;
	const char **known; /* functions and macros */
	size_t known_count;
};

/* unit.c */
bool unit_open(struct unit *u, struct source *s, const char *const *args, int count);
void unit_close(struct unit *u);
bool unit_knows(const struct unit *u, const char *name);
void unit_extent(CXCursor c, unsigned *from, unsigned *to);
/* Whether this file declares it between two offsets; offsets of headers mean nothing here. */
bool unit_declares(const struct unit *u, CXCursor decl, unsigned from, unsigned to);
/* Behind the semicolon of a statement whose extent ends at `to`, if it has one. */
unsigned unit_statement_end(const struct unit *u, unsigned to);
/* Past spaces and comments. */
unsigned unit_skip_blank(const struct unit *u, unsigned at);
/* The declaration that a name means at an offset; a null cursor if there is none. */
CXCursor unit_lookup(const struct unit *u, const struct halecc_region *r, const char *name);
struct cursors {
	CXCursor *c;
	size_t count, cap;
};
void cursors_of(CXCursor parent, struct cursors *out);
char *cursor_name(CXCursor c);
/* The operator of an expression of one or two operands; "" if unknown. */
const char *unit_operator(CXCursor c);

/* clause.c */
void clause_parse(struct unit *u, struct halecc_region *r);
void clause_resolve(struct unit *u, struct halecc_region *r);
/* A statement of the same block, from offset `from`, begins right behind the pragma; an error is
 * said otherwise. bound: a statement has been found. */
bool clause_is_followed(struct unit *u, unsigned at, unsigned end, bool bound, unsigned from);
/* Makes the comments of a pragma spaces: no pragma of ours is emitted. */
void clause_comments_blank(struct unit *u, unsigned at, unsigned end);
/* A constant array must have the elements of its extent; an error is said otherwise. */
void clause_extent_verify(struct unit *u, unsigned at, const char *var, CXType t, const char *low,
			  const char *length);
/* Behind spaces and the ends of continued lines; behind a word. */
unsigned clause_blank(const struct source *s, unsigned at, unsigned end);
unsigned clause_word_end(const struct source *s, unsigned at, unsigned end);
/* `at` lies behind an opening bracket: the offset of the bracket that closes it; 0: none. */
unsigned clause_closing(const struct source *s, unsigned at, unsigned end);
/* The end of an element of a list: a comma outside of brackets, or `end`. */
unsigned clause_element_end(const struct source *s, unsigned at, unsigned end);

/* access.c */
void access_collect(struct unit *u, CXCursor function);
void access_add(struct unit *u, CXCursor decl, unsigned at, int how);
/* Whether both may be names of the same memory. */
bool access_shared(const struct unit *u, CXCursor a, CXCursor b);
/* A region that reads what the variable held before it writes to it gives another result when it
 * runs again: the access that shows it, or NULL. */
const struct access *access_update(const struct unit *u, CXCursor decl, unsigned from, unsigned to);

/* effect.c: what a function does to its arguments and to variables of the file. */
struct effect *effect_of(struct unit *u, CXCursor call);
/* Of argument number i; ACCESS_ESCAPE when it is not known. */
int effect_argument(const struct effect *e, int i);
/* It waits for threads, messages or devices, which have written by then. */
bool effect_waits(const struct effect *e);
/* Adds what the function does to variables that outlive it, as accesses at offset `at`, which have
 * `how` besides. */
void effect_globals(struct unit *u, const struct effect *e, unsigned at, int how);
int access_of(const struct unit *u, CXCursor decl, unsigned from, unsigned to);
const struct access *access_last(const struct unit *u, CXCursor decl, unsigned from, unsigned to,
				 int how);

/* update.c: warns of what a region updates in place. */
void update_warn(struct unit *u, struct halecc_region *r);
bool update_is_checked(const struct halecc_region *r, CXCursor decl);

/* chain.c, verify.c, emit.c, explain.c, suggest.c */
void chain_build(struct unit *u);
struct guarded *chain_var(struct chain *c, CXCursor decl);
/* What stands between node i and the next one, as a region without a pragma (not bound). */
struct halecc_region chain_between(const struct chain *c, int i);

/* keep.c: the scalars that a region changes and reads; at most max. */
int keep_list(const struct unit *u, const struct halecc_region *r, const struct access **out,
	      int max);
/* May a later region of the chain have this one run again? */
bool keep_repeated(const struct chain *c, const struct halecc_region *r);
/* Declared before the chain, so that what it was can be kept there. */
bool keep_earlier(const struct unit *u, const struct chain *c, CXCursor decl);
/* Does a repeated region keep anything from before its first run? */
bool keep_any(const struct unit *u, const struct chain *c, const struct halecc_region *r);
/* The copies of repeated regions. */
void keep_declare_copies(const struct unit *u, const struct chain *c, struct text *t,
			 const char *in);
void keep_declare(const struct unit *u, const struct chain *c, struct text *t, const char *in);
/* Behind node i. */
void keep_between(const struct unit *u, const struct chain *c, int i, struct text *t,
		  const char *in);
/* What reads v between its note and its check by node `at`, and must run again when v was mended
 * there. */
bool chain_readers(const struct unit *u, const struct chain *c, const struct guarded *v, int at,
		   bool *again);
/* What runs again when a variable that node `producer` writes can't be mended in node `at`. */
void chain_reset(const struct unit *u, const struct chain *c, int producer, int at, bool *again);
void verify_regions(struct unit *u);
/* object: initializers of the shared object's bytes, for the program's side. */
char *emit_unit(struct unit *u, const char *object);
/* The source of the shared object; not whole: the functions behind the file's own text. */
char *emit_device(struct unit *u, bool whole);
void explain_unit(struct unit *u);
void suggest_unit(struct unit *u);

/* offload_words.c */
void offload_parse(struct unit *u, struct halecc_offload *o);
/* One more variable; past OFFLOAD_PARTS_MAX an error is said, and the last one is used again. */
struct halecc_part *offload_part_new(struct unit *u, struct halecc_offload *o, unsigned at);

/* offload.c */
void offload_resolve(struct unit *u);
/* The program's side: the call in front of the statement. */
char *offload_call(const struct halecc_offload *o);
/* The device's side. */
char *offload_function(const struct unit *u, const struct halecc_offload *o, const char *path);

/* args.c */
struct command {
	const char **argv; /* of the compiler */
	int argc;
	const char **clang; /* of libclang */
	int clang_count;
	int input[256], inputs; /* indexes of sources in argv */
	const char *output, *language;
	bool link, only_preprocess, explain, suggest, show, quiet, depend, openmp, to_stop;
	const char *depend_file, *depend_target;
	bool depend_user, depend_phony;
};
int args_read(struct command *c, int argc, char **argv);
bool args_is_source(const char *path, const char *language);
/* Whether its value is the next argument. */
bool args_has_value(const char *option);

#endif
