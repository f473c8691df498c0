/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/test/ranks.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECONDS = 60 }; /* a rank that still runs then is killed; that is a failure */

int me, ranks;

void ranks_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "rank %d: %s:%d: not true: %s\n", me, file, line, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

void ranks_require_class(const char *file, int line, const char *what, int rc, int class)
{
	char text[256];
	int found = MPI_SUCCESS;

	if (rc != MPI_SUCCESS)
		MPI_Error_class(rc, &found);
	if (found == class)
		return;
	snprintf(text, sizeof(text), "%.200s is %d (it is %d)", what, class, found);
	ranks_fail(file, line, text);
}

void ranks_start(int n, int *argc, char ***argv)
{
	ranks_start_on(n, 1, argc, argv);
}

void ranks_start_on(int n, int nodes, int *argc, char ***argv)
{
	char self[4096], number[16], on[16];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (!getenv("HALE_AGENT") && *argc > 1 && len > 0) {
		self[len] = '\0';
		snprintf(number, sizeof(number), "%d", n);
		snprintf(on, sizeof(on), "%d", nodes);
		execl((*argv)[1], "hale", "run", "-n", number, "--nodes", on, "--no-events", "--",
		      self, NULL);
		perror((*argv)[1]);
		_exit(1);
	}
	alarm(SECONDS);
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	REQUIRE(ranks == n);
}

int ranks_run(const struct CMUnitTest *tests, size_t count)
{
	int failed, quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (me != 0) { /* the story is told once, on either stream */
		setenv("CMOCKA_XML_FILE", "/dev/null", 1);
		dup2(quiet, 1);
	}
	close(quiet);
	failed = _cmocka_run_group_tests("ranks", tests, count, NULL, NULL);
	MPI_Finalize();
	return failed;
}
