/* SPDX-License-Identifier: BSD-3-Clause */
/* For unit tests of mpi/: programs of a few ranks that call the library as users do. Started
 * without a job, such a program starts itself with `hale run`; rank 0 tells cmocka's story, and
 * what a rank finds wrong ends all of them. */
#ifndef HALE_MPI_TEST_RANKS_H
#define HALE_MPI_TEST_RANKS_H

#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

extern int me, ranks; /* in MPI_COMM_WORLD, which returns errors */

/* In any rank: ends the job with a sentence if the condition does not hold. */
#define REQUIRE(what)                                                                              \
	do {                                                                                       \
		if (!(what))                                                                       \
			ranks_fail(__FILE__, __LINE__, #what);                                     \
	} while (0)
void ranks_fail(const char *file, int line, const char *what) __attribute__((noreturn));

/* The call returns an error of this class. */
#define REQUIRE_CLASS(call, class) ranks_require_class(__FILE__, __LINE__, #call, call, class)
void ranks_require_class(const char *file, int line, const char *what, int rc, int class);

/* First in main: in the process that meson starts it does not return. hale is argv[1]. */
void ranks_start(int n, int *argc, char ***argv);
/* The same on so many nodes, all of them on this machine. */
void ranks_start_on(int n, int nodes, int *argc, char ***argv);
/* Last: the exit status. */
int ranks_run(const struct CMUnitTest *tests, size_t count);

#endif
