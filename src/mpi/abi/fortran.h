/* SPDX-License-Identifier: BSD-3-Clause */
/* Entry points for Debian's libmpi_mpifh.so.40 and libmpi_cxx.so.40 (fortran.c, compat.c). */
#ifndef HALE_MPI_ABI_FORTRAN_H
#define HALE_MPI_ABI_FORTRAN_H

#include "mpi/api.h"

extern int mpi_fortran_bottom_, mpi_fortran_in_place_, mpi_fortran_errcodes_ignore_;
extern int mpi_fortran_unweighted_, mpi_fortran_weights_empty_;
extern char mpi_fortran_argv_null_, mpi_fortran_argvs_null_;
extern double mpi_fortran_status_ignore_, mpi_fortran_statuses_ignore_;

/* Strings: results are malloc'd. 0, or -2 without memory. */
int ompi_fortran_string_f2c(char *fstr, int len, char **cstr);
int ompi_fortran_string_c2f(char *cstr, char *fstr, int len);
int ompi_fortran_argv_blank_f2c(char *array, int len, int advance, char ***argv);
int ompi_fortran_argv_count_f2c(char *array, int count, int len, int advance, char ***argv);
int ompi_fortran_multiple_argvs_f2c(int n, char *array, int len, char ****argvs);

/* The predefined type of a class and size, by Open MPI's flags; MPI_DATATYPE_NULL: none. */
struct datatype *ompi_datatype_match_size(int size, uint16_t kind, uint16_t language);

/* The C++ bindings' operations: op's function is an interceptor that gets the user's as its last
 * argument. */
void ompi_op_set_cxx_callback(struct op *op, MPI_User_function *user);

extern int ompi_mpi_state;
extern _Bool ompi_mpi_param_check;
extern int ompi_errcode_intern_lastused;
extern char ompi_errcodes_intern[120];
extern char ompi_err_unknown[280];

#endif
