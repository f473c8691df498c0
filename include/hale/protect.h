/* SPDX-License-Identifier: BSD-3-Clause */
/* Protected regions (docs/protect.md): what programs made by `halecc` call, and what programs may
 * call by themselves. Link with -lhale_protect.
 *
 * A variable is noted when it has been written: the library takes a reference of its bytes. It is
 * checked after its last use. What a check finds damaged is corrected from the reference, loaded
 * again by a function of the program, or computed again. Source: seed 000, chapter 4.
 *
 * All functions may be called by several threads at once, each with variables of its own. They
 * block for as long as it takes to read the variable. This header includes nothing that fixes
 * libc's feature macros, so that it can stand before everything else in a source file.
 */
#ifndef HALE_PROTECT_H
#define HALE_PROTECT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exit status of a program that has found an error and could not recover from it. */
#define HALE_EXIT_UNRECOVERABLE 72

/* How the content of a variable is remembered. */
typedef enum hale_check_kind {
	HALE_USER = 0, /* not at all: a function of the program says whether it is right */
	HALE_SUM,      /* row and column sums of its words, and a hash: detect, locate, correct */
	HALE_HASH,     /* XXH3, 128 bits: detect */
	HALE_SHA256,   /* detect, also what somebody does on purpose */
} hale_check_kind_t;

/* A protected region: one static object for each place in the program. The numbers are counted over
 * all runs and all threads. */
struct hale_region {
	const char *name, *file;
	int line;
	unsigned long long runs, checks, detected, corrected, recomputed, unrecoverable;
	double lvf; /* bytes x seconds in which its checked variables were live */
	struct hale_region *next;
};
#define HALE_REGION(name, file, line)                                                              \
	{                                                                                          \
		name, file, line, 0, 0, 0, 0, 0, 0, 0.0, NULL                                \
	}

/* A protected variable: an automatic object beside it. The library owns ref. */
struct hale_var {
	const char *name;
	struct hale_reference *ref;
	int misses; /* times in a row that it was found damaged and mended */
	bool wrong; /* found damaged, and not mended yet */
};
#define HALE_VAR(name)                                                                             \
	{                                                                                          \
		name, NULL, 0, false                                                               \
	}

/* Frees what the library keeps of a variable; for variables that leave their scope. */
void hale_forget(struct hale_var *v);
#define hale_auto __attribute__((cleanup(hale_forget)))

/* Remembers the bytes at base. Called again, it remembers them anew. Ends the program with a
 * sentence if base is NULL while bytes is not 0, or if there is no memory for the reference. */
void hale_note(struct hale_var *v, hale_check_kind_t kind, const void *base, size_t bytes);

/* The region has written these bytes, and judges will look at them, or other runs be compared with them:
 * the next hale_note() of them refers to the bytes of now. So what strikes behind a judge's back,
 * before the note has read it, is found at the variable's check. */
void hale_seal(struct hale_var *v, const void *base, size_t bytes);

/* For what is loaded: false until what was noted has been written a second time and was the same.
 * While it is false the caller writes the variable again. So a flip before the note has read it does
 * not become the reference. After 16 different ones the program ends with 72. */
bool hale_confirmed(struct hale_var *v);

/* A variable that a region is about to write: from now on it counts as live, and faults that are
 * injected may strike it. */
void hale_expect(struct hale_var *v, const void *base, size_t bytes);

/* A run of a region begins, with the variables that it will check (NULL ends the list). */
void hale_enter(struct hale_region *r, ...) __attribute__((sentinel));

/* Whether the bytes are those that were noted; true for what was never noted. */
bool hale_check(struct hale_region *r, struct hale_var *v);
/* The same by another judge: right is what a function of the program said. */
bool hale_checked(struct hale_region *r, struct hale_var *v, bool right);

/* Mends words from the sums. True if the bytes are then those that were noted: verified by the
 * hash, bit by bit. */
bool hale_correct(struct hale_region *r, struct hale_var *v);
/* After a method of the program has been tried: counts it, and passes right on. */
bool hale_tried(struct hale_region *r, struct hale_var *v, const char *method, bool right);

/* A region that wrote v will be run again. Ends the program when v has been found damaged too often
 * in a row. */
void hale_recompute(struct hale_region *r, struct hale_var *v, const char *producer);

/* Ends the program with 72 and a sentence that names region, variable and what was tried. */
void hale_unrecoverable(struct hale_region *r, struct hale_var *v, const char *tried)
    __attribute__((noreturn));

/* CR: copies of variables, in memory, or in a file of HALE_PROTECT=ckpt=DIR. A copy has a hash, so
 * that a damaged one is never restored. */
struct hale_copy {
	struct hale_kept *kept;
};
void hale_copy_forget(struct hale_copy *c);
#define hale_auto_copy __attribute__((cleanup(hale_copy_forget)))
void hale_create_ckpt(struct hale_copy *c, const void *base, size_t bytes);
bool hale_restore(struct hale_copy *c);

/* Redundancy: wakes degree - 1 shadow processes, which run the region, too. degree is 2 or 3. In
 * the shadow the following hale_agree ends the process. */
void hale_wake_up_shadow(struct hale_region *r, int degree);
/* Compares len variables with the shadows'. True if they agree, or if two of three do and this
 * process has now what these have. False: run the region again. */
bool hale_agree(struct hale_region *r, size_t count, void *const *bases, const size_t *bytes);
void hale_sleep_shadow(struct hale_region *r);

/* Judges of values. All are true for no elements. */
bool hale_range(const double *x, size_t count, double low, double high); /* NaN is outside */
bool hale_rangef(const float *x, size_t count, double low, double high);
bool hale_finite(const double *x, size_t count);
bool hale_finitef(const float *x, size_t count);
bool hale_monotone(const double *x, size_t count); /* never falls; NaN is false */
/* The sum of the elements is total, within tolerance times the sum of their absolute values. */
bool hale_conserved(const double *x, size_t count, double total, double tolerance);
/* C = A B, all row by row without gaps, m x n, m x k, k x n, within the rounding of any order of
 * summation: |C - AB| <= gamma |A||B|, by row and column sums. Detects any wrong element whose
 * error is larger than that of its row's and its column's rounding. */
bool hale_product(const double *C, const double *A, const double *B, size_t m, size_t n, size_t k);

/* Writes the report now; at exit it is written anyhow. */
void hale_protect_report(void);

#ifdef __cplusplus
}
#endif
#endif
