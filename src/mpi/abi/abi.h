/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/abi: what makes this library a drop-in for Open MPI's libmpi.so.40 beyond the MPI functions:
 * Fortran handles, null objects, the entry points that Debian's Fortran and C++ libraries call, and
 * stubs for the functions that are not implemented. May call all of mpi/ and below. */
#ifndef HALE_MPI_ABI_ABI_H
#define HALE_MPI_ABI_ABI_H

#include "mpi/api.h"

/* Gives the predefined handles the integers that Open MPI's mpif.h names. Idempotent. */
int abi_init(void);

/* Whose error handler a function that is not implemented goes to. */
enum abi_scope { ABI_WORLD, ABI_COMM, ABI_WIN, ABI_FILE };

/* Raises MPI_ERR_UNSUPPORTED_OPERATION and says on stderr (once per function) which it was.
 * Returns the class, if the error handler returns. */
int abi_unsupported(enum abi_scope scope, const void *handle, const char *function)
    __attribute__((cold));

#endif
