/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/env: what of MPI is about the process itself: its beginning and end, time, memory, names. */
#ifndef HALE_MPI_ENV_ENV_H
#define HALE_MPI_ENV_ENV_H

/* The error of a function that may be called before MPI_Init and after MPI_Finalize too; there it
 * is only a sentence and a return code. Returns cls. */
int env_error(int cls, const char *function) __attribute__((cold));

#endif
