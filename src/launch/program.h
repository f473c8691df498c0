/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be known about a program before it is launched: where it is, whether it can run here,
 * which MPI it was built for. */
#ifndef HALE_LAUNCH_PROGRAM_H
#define HALE_LAUNCH_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include "base/error.h"

/* The ABIs that hale has a library for. */
typedef enum program_mpi {
	PROGRAM_MPI_NONE,
	PROGRAM_MPI_OPEN,     /* libmpi.so.40 */
	PROGRAM_MPI_MPICH,    /* libmpich.so.12, libmpi.so.12 */
	PROGRAM_MPI_STANDARD, /* libmpi_abi.so.1, libmpi_abi.so.0 */
} program_mpi_t;

/* The file of hale's library; "" for PROGRAM_MPI_NONE and what is none of these. */
const char *program_mpi_library(program_mpi_t mpi);

struct program {
	char path[PATH_MAX];	  /* absolute, what execve gets */
	bool elf;		  /* false: a script */
	program_mpi_t mpi;	  /* what it is linked with */
	program_mpi_t preload_mpi; /* that, where a DT_RPATH would find another library first */
	char other_mpi[PATH_MAX]; /* that one */
	bool spawns;		  /* it calls MPI_Comm_spawn by itself */
	char runtime[PATH_MAX];	  /* a sanitizer's, which has to be loaded first; "" */
	/* Why nothing of it can be saved, known before it runs: "'prog' is linked statically, …,
	 * and what to do about it". "": nothing is known. */
	char unprotected[PATH_MAX + 256];
};

/* Finds name as a shell would (PATH, or wdir for a name with a slash), and looks into it.
 * *exit_status gets 127 (not found), 126 (not executable) or 64 (built for another MPI, with a
 * sentence in err) when the result is not HALE_OK. */
hale_status_t program_examine(const char *name, const char *wdir, struct program *p,
			      int *exit_status, struct error *err);

#endif
