/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/env: what of MPI is about the process itself: its beginning and end, time, memory, names. */
#ifndef HALE_MPI_ENV_ENV_H
#define HALE_MPI_ENV_ENV_H

#include <stdbool.h>

/* The error of a function that may be called before MPI_Init and after MPI_Finalize too; there it
 * is only a sentence and a return code. Returns cls. */
int env_error(int cls, const char *function) __attribute__((cold));

/* The library is open while somebody holds it: MPI_Init until MPI_Finalize, each session. The first
 * one sets everything up. After an MPI_Finalize that nobody else outlived it can't be opened again.
 * required: the level of threads that is asked for; *provided: what is given. Outside the guard.
 * MPI_ERR_OTHER, with a sentence: it is over. */
int env_library_enter(int required, int *provided, const char *function);
void env_library_leave(void);

/* What MPI_Init and MPI_Finalize do more where processes are spawned; mpi/dynamic/, which stands on
 * mpi/env/, gives it before main. */
struct env_life {
	/* at the end of MPI_Init, inside the guard: a process in reserve sleeps here */
	void (*init_end)(void);
	/* is this a spawned process? Then MPI_Finalize leaves its channels open */
	bool (*stays)(void);
	/* has the first world ended? Then others may be gone, too */
	bool (*job_ends)(void);
	/* in MPI_Finalize of others: nobody will be spawned any more */
	void (*let_go)(void);
	/* of those that stay: exit() first waits until the first world has finalized */
	void (*rest_at_exit)(void);
};
void env_life_set(const struct env_life *life);

#endif
