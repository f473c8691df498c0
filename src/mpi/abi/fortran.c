/* SPDX-License-Identifier: BSD-3-Clause */
/* What Fortran programs and Debian's libmpi_mpifh.so.40 take from libmpi.so.40: the addresses of
 * the special values, the predefined attribute functions, strings, time. */
#include <stdlib.h>
#include <string.h>
#include "mpi/abi/abi.h"
#include "mpi/abi/fortran.h"

/* Common blocks: a Fortran executable defines them too, and then its copies count. Only their
 * addresses mean something. */
int mpi_fortran_bottom_, mpi_fortran_in_place_, mpi_fortran_errcodes_ignore_;
int mpi_fortran_unweighted_, mpi_fortran_weights_empty_;
char mpi_fortran_argv_null_, mpi_fortran_argvs_null_;
double mpi_fortran_status_ignore_, mpi_fortran_statuses_ignore_;

MPI_Fint *MPI_F_STATUS_IGNORE = (MPI_Fint *)&mpi_fortran_status_ignore_;
MPI_Fint *MPI_F_STATUSES_IGNORE = (MPI_Fint *)&mpi_fortran_statuses_ignore_;

/* NOLINTBEGIN(bugprone-macro-parentheses): names and types can't have them */
/* The four ways in which compilers spell a Fortran name in the symbol table. */
#define FORTRAN_NAMES(lower, UPPER)                                                                \
	extern __typeof(fortran_##lower) lower __attribute__((alias("fortran_" #lower)));          \
	extern __typeof(fortran_##lower) lower##_ __attribute__((alias("fortran_" #lower)));       \
	extern __typeof(fortran_##lower) lower##__ __attribute__((alias("fortran_" #lower)));      \
	extern __typeof(fortran_##lower) UPPER __attribute__((alias("fortran_" #lower)))

/* Attribute callbacks: INTEGER attributes in MPI-1's, address-sized ones in the others. */
#define DELETE_FN(lower, UPPER, value_t)                                                           \
	static void fortran_##lower(MPI_Fint *handle, MPI_Fint *keyval, value_t *value,            \
				    value_t *extra, MPI_Fint *ierr)                                \
	{                                                                                          \
		*ierr = MPI_SUCCESS;                                                               \
	}                                                                                          \
	FORTRAN_NAMES(lower, UPPER)

#define COPY_FN(lower, UPPER, value_t, copies)                                                     \
	static void fortran_##lower(MPI_Fint *handle, MPI_Fint *keyval, value_t *extra,            \
				    value_t *in, value_t *out, MPI_Fint *flag, MPI_Fint *ierr)     \
	{                                                                                          \
		*flag = copies;                                                                    \
		if (copies)                                                                        \
			*out = *in;                                                                \
		*ierr = MPI_SUCCESS;                                                               \
	}                                                                                          \
	FORTRAN_NAMES(lower, UPPER)

/* NOLINTEND(bugprone-macro-parentheses) */

/* mpi.h has macros of these names for C's functions. */
#undef MPI_NULL_DELETE_FN
#undef MPI_NULL_COPY_FN
#undef MPI_DUP_FN
#undef MPI_COMM_NULL_DELETE_FN
#undef MPI_COMM_NULL_COPY_FN
#undef MPI_COMM_DUP_FN
#undef MPI_TYPE_NULL_DELETE_FN
#undef MPI_TYPE_NULL_COPY_FN
#undef MPI_TYPE_DUP_FN
#undef MPI_WIN_NULL_DELETE_FN
#undef MPI_WIN_NULL_COPY_FN
#undef MPI_WIN_DUP_FN
#undef MPI_CONVERSION_FN_NULL

DELETE_FN(mpi_null_delete_fn, MPI_NULL_DELETE_FN, MPI_Fint);
DELETE_FN(mpi_comm_null_delete_fn, MPI_COMM_NULL_DELETE_FN, MPI_Aint);
DELETE_FN(mpi_type_null_delete_fn, MPI_TYPE_NULL_DELETE_FN, MPI_Aint);
DELETE_FN(mpi_win_null_delete_fn, MPI_WIN_NULL_DELETE_FN, MPI_Aint);
COPY_FN(mpi_null_copy_fn, MPI_NULL_COPY_FN, MPI_Fint, 0);
COPY_FN(mpi_comm_null_copy_fn, MPI_COMM_NULL_COPY_FN, MPI_Aint, 0);
COPY_FN(mpi_type_null_copy_fn, MPI_TYPE_NULL_COPY_FN, MPI_Aint, 0);
COPY_FN(mpi_win_null_copy_fn, MPI_WIN_NULL_COPY_FN, MPI_Aint, 0);
COPY_FN(mpi_dup_fn, MPI_DUP_FN, MPI_Fint, 1);
COPY_FN(mpi_comm_dup_fn, MPI_COMM_DUP_FN, MPI_Aint, 1);
COPY_FN(mpi_type_dup_fn, MPI_TYPE_DUP_FN, MPI_Aint, 1);
COPY_FN(mpi_win_dup_fn, MPI_WIN_DUP_FN, MPI_Aint, 1);

/* Never called: its address tells MPI_REGISTER_DATAREP that no conversion is wanted. */
static void fortran_mpi_conversion_fn_null(void *userbuf, MPI_Fint *type, MPI_Fint *count,
					   void *filebuf, MPI_Offset *position, MPI_Aint *extra,
					   MPI_Fint *ierr)
{
	*ierr = MPI_ERR_UNSUPPORTED_OPERATION;
}
FORTRAN_NAMES(mpi_conversion_fn_null, MPI_CONVERSION_FN_NULL);

static double fortran_mpi_wtime_f90(void)
{
	return PMPI_Wtime();
}
FORTRAN_NAMES(mpi_wtime_f90, MPI_WTIME_F90);

static double fortran_mpi_wtick_f90(void)
{
	return PMPI_Wtick();
}
FORTRAN_NAMES(mpi_wtick_f90, MPI_WTICK_F90);

static MPI_Aint fortran_mpi_aint_add_f90(MPI_Aint *base, MPI_Aint *displacement)
{
	return *base + *displacement;
}
FORTRAN_NAMES(mpi_aint_add_f90, MPI_AINT_ADD_F90);

static MPI_Aint fortran_mpi_aint_diff_f90(MPI_Aint *a, MPI_Aint *b)
{
	return *a - *b;
}
FORTRAN_NAMES(mpi_aint_diff_f90, MPI_AINT_DIFF_F90);

/* ---- strings: blank-padded without a terminator in Fortran. 0, or -2 for "out of memory" ---- */

enum { STRINGS_OK = 0, STRINGS_NO_MEMORY = -2 };

int ompi_fortran_string_f2c(char *fstr, int len, char **cstr)
{
	const char *begin = fstr, *end = fstr + (len > 0 ? len : 0);

	while (begin < end && *begin == ' ')
		begin++;
	while (end > begin && end[-1] == ' ')
		end--;
	*cstr = strndup(begin, (size_t)(end - begin));
	return *cstr ? STRINGS_OK : STRINGS_NO_MEMORY;
}

int ompi_fortran_string_c2f(char *cstr, char *fstr, int len)
{
	size_t have = strlen(cstr), room = len > 0 ? (size_t)len : 0;

	if (have > room)
		have = room;
	memcpy(fstr, cstr, have); /* NOLINT(bugprone-not-null-terminated-result): Fortran */
	memset(fstr + have, ' ', room - have);
	return STRINGS_OK;
}

static void argv_free(char **argv, int n)
{
	for (int i = 0; i < n; i++)
		free(argv[i]);
	free(argv);
}

/* At most max strings, `advance` bytes apart; a blank one ends them if `blank_ends`. The caller
 * frees them as opal_argv_free does: each string, then the array. */
static int argv_convert(char *array, int max, bool blank_ends, int len, int advance, char ***argv)
{
	char **list = NULL;
	int n = 0;

	*argv = NULL;
	for (; blank_ends || n < max; n++, array += advance) {
		char *one = NULL;
		char **more = realloc(list, (size_t)(n + 2) * sizeof(*list));
		if (more)
			list = more;
		if (!more || ompi_fortran_string_f2c(array, len, &one)) {
			argv_free(list, n);
			return STRINGS_NO_MEMORY;
		}
		list[n] = one;
		if (blank_ends && !*one) {
			free(one);
			break;
		}
	}
	if (list)
		list[n] = NULL;
	*argv = list;
	return STRINGS_OK;
}

int ompi_fortran_argv_blank_f2c(char *array, int len, int advance, char ***argv)
{
	return argv_convert(array, 0, true, len, advance, argv);
}

int ompi_fortran_argv_count_f2c(char *array, int count, int len, int advance, char ***argv)
{
	return argv_convert(array, count, false, len, advance, argv);
}

/* The strings of n argument lists lie interleaved: first those of all lists, then the seconds. */
int ompi_fortran_multiple_argvs_f2c(int n, char *array, int len, char ****argvs)
{
	char ***list = calloc((size_t)(n > 0 ? n : 1), sizeof(*list));
	int rc = list ? STRINGS_OK : STRINGS_NO_MEMORY;

	for (int i = 0; i < n && !rc; i++)
		rc = argv_convert(array + (ptrdiff_t)i * len, 0, true, len, len * n, &list[i]);
	if (rc) {
		free(list);
		return rc;
	}
	*argvs = list;
	return STRINGS_OK;
}
