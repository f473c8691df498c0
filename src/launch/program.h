/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be known about a program before it is launched: where it is, whether it can run here,
 * which MPI it was built for. */
#ifndef HALE_LAUNCH_PROGRAM_H
#define HALE_LAUNCH_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include "base/error.h"

struct program {
	char path[PATH_MAX];	  /* absolute, what execve gets */
	bool elf;		  /* false: a script */
	bool wants_openmpi;	  /* libmpi.so.40 is among the libraries it is linked with */
	bool preload_mpi;	  /* a DT_RPATH would find another libmpi.so.40 first */
	char other_mpi[PATH_MAX]; /* that one */
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
