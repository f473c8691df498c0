/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a rank: the user's own, what node/proto.h says, and the names by which
 * programs and scripts written for mpirun learn their rank. */
#ifndef HALE_LAUNCH_ENVIRONMENT_H
#define HALE_LAUNCH_ENVIRONMENT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct environment_params {
	char *const *inherited;	 /* environ */
	char *const *exports;	 /* VAR=VAL of -x; NULL: none */
	const char *libdir;	 /* where libhale.so and libmpi.so.40 are */
	const char *preload_mpi; /* a library of libdir; NULL or "": none */
	const char *agent, *token, *job;
	uint32_t rank, nranks;
	uint32_t process; /* rank, but in jobs with replicas (node/living.h) */
	uint32_t degree;  /* processes of each rank; HALE_REPLICAS where there are more than one */
	uint32_t local_rank, local_size; /* among the ranks of its node */
	bool no_mpi;
	const char *sink; /* HALE_SINK; NULL: a fresh start */
};

/* An array for execve; one allocation for each string. HALE_LAUNCH_PID is left to the child, who
 * knows it: its value is sixteen blanks to be overwritten in place. NULL: out of memory. */
char **environment_make(const struct environment_params *p);
void environment_free(char **env);

/* In the child: writes pid into HALE_LAUNCH_PID. Async-signal-safe. */
void environment_set_pid(char **env, int pid);

/* Finds the folder of libhale.so: $HALE_LIBDIR, beside this executable (a build tree), ../lib…/hale
 * (an installed tree that was moved), the compiled-in one. */
hale_status_t environment_find_libdir(char libdir[PATH_MAX], struct error *err);

#endif
