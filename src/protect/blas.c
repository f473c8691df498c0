/* SPDX-License-Identifier: BSD-3-Clause */
/* The CBLAS that the program is linked with, found when it is needed: libhale_protect itself needs
 * none. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "protect/abft.h"
#include "protect/protect.h"

/* The numbers that all CBLAS headers give these names. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112, LOWER = 122, NON_UNIT = 131, UNIT = 132 };
enum { LEFT = 141, RIGHT = 142 };

static void (*gemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *A,
		    int lda, const double *B, int ldb, double beta, double *C, int ldc);
static void (*trsm)(int order, int side, int uplo, int trans, int diag, int m, int n, double alpha,
		    const double *A, int lda, double *B, int ldb);
static pthread_once_t found = PTHREAD_ONCE_INIT;

void (*abft_step)(double *x, size_t rows, size_t columns, size_t ld);

static void find_once(void)
{
	*(void **)&gemm = dlsym(RTLD_DEFAULT, "cblas_dgemm");
	*(void **)&trsm = dlsym(RTLD_DEFAULT, "cblas_dtrsm");
	if (!gemm || !trsm)
		protect_die(64, "the kernels of hale/abft.h stand on a CBLAS, and this program has "
				"none: link it with -lopenblas or another one");
}

void blas_gemm(size_t m, size_t n, size_t k, double alpha, const double *A, size_t lda,
	       const double *B, size_t ldb, double beta, double *C, size_t ldc)
{
	pthread_once(&found, find_once);
	if (m && n)
		gemm(ROW_MAJOR, NO_TRANS, NO_TRANS, (int)m, (int)n, (int)k, alpha, A, (int)lda, B,
		     (int)ldb, beta, C, (int)ldc);
	if (abft_step)
		abft_step(C, m, n, ldc);
}

void blas_trsm(bool left, bool unit, size_t m, size_t n, const double *T, size_t ldt, double *B,
	       size_t ldb)
{
	pthread_once(&found, find_once);
	if (m && n)
		trsm(ROW_MAJOR, left ? LEFT : RIGHT, LOWER, left ? NO_TRANS : TRANS,
		     unit ? UNIT : NON_UNIT, (int)m, (int)n, 1, T, (int)ldt, B, (int)ldb);
	if (abft_step)
		abft_step(B, m, n, ldb);
}

double *abft_memory(size_t doubles)
{
	double *p = calloc(doubles ? doubles : 1, sizeof *p);

	if (!p)
		protect_die(HALE_EXIT_UNRECOVERABLE, "no memory to check a result (%zu bytes)",
			    doubles * sizeof *p);
	return p;
}

void matrix_copy(const double *from, size_t ld_from, double *to, size_t ld_to, size_t rows,
		 size_t columns)
{
	for (size_t i = 0; i < rows; i++)
		memcpy(to + i * ld_to, from + i * ld_from, columns * sizeof *to);
}
