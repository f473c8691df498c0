/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank in a handler that blocks all signals, and one that has left such a handler by longjmp, so
 * that they stay blocked, for all that it has asked for; a third one has handlers for whatever
 * signal there is. Until the file "go" is there. */
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static jmp_buf out;

static void until_told(void)
{
	while (access("go", F_OK))
		usleep(20000);
}

static void stays(int sig)
{
	(void)sig;
	until_told();
}

static void leaves(int sig)
{
	(void)sig;
	longjmp(out, 1);
}

static void ignores(int sig)
{
	(void)sig;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = stays};
	int rank, n = 0, one = 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("ready\n");
	fflush(stdout);
	sigfillset(&sa.sa_mask);
	if (rank == 0) {
		sigaction(SIGUSR1, &sa, NULL);
		raise(SIGUSR1);
	} else if (rank == 1) {
		sa.sa_handler = leaves;
		sigaction(SIGUSR1, &sa, NULL);
		if (!setjmp(out))
			raise(SIGUSR1);
	} else {
		sa.sa_handler = ignores;
		for (int sig = 1; sig <= SIGRTMAX; sig++)
			sigaction(sig, &sa, NULL);
	}
	until_told();
	MPI_Allreduce(&one, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d\n", rank, n);
	MPI_Finalize();
	return 0;
}
