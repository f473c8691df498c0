// SPDX-License-Identifier: BSD-3-Clause
/* farm TASKS: a master gives tasks to whichever worker answers first, by every call whose result
 * depends on time: receives from any source, probes, MPI_Waitany, MPI_Waitsome, MPI_Test*, the
 * clock. What it prints depends on all of these choices, so two replicas of the master that choose
 * differently print differently. The last line does not: it is the sum of all results.
 *
 * Workers draw how long a task takes from the time they see, so that no two runs are alike. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASK = 1, RESULT, STOP, NOTE, BIG = 30000 };

static int rank, ranks;
static uint64_t choices = 14695981039346656037ull;

static void choice(int64_t what)
{
	for (int i = 0; i < 8; i++)
		choices = (choices ^ ((uint64_t)what >> (8 * i) & 255)) * 1099511628211ull;
}

static uint64_t result_of(int task)
{
	uint64_t x = (uint64_t)task * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < 2000; i++)
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	return x;
}

static void worker(void)
{
	uint64_t answer[2 + BIG];
	memset(answer, 0, sizeof(answer));
	for (;;) {
		int task;
		MPI_Status s;
		MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
		if (s.MPI_TAG == STOP)
			return;
		double began = MPI_Wtime(), wait = (double)(task % 5) * 1e-4;
		while (MPI_Wtime() - began < wait)
			;
		answer[0] = (uint64_t)task;
		answer[1] = result_of(task);
		/* now and then a long one, now and then one that waits to be matched */
		int n = task % 16 == 0 ? BIG : 2;
		if (task % 7 == 0)
			MPI_Ssend(answer, n, MPI_UINT64_T, 0, RESULT, MPI_COMM_WORLD);
		else
			MPI_Send(answer, n, MPI_UINT64_T, 0, RESULT, MPI_COMM_WORLD);
		if (task % 3 == 0)
			MPI_Send(&task, 1, MPI_INT, 0, NOTE, MPI_COMM_WORLD);
	}
}

static void give(int to, int *next, int tasks, int *busy)
{
	if (*next >= tasks)
		return;
	MPI_Send(next, 1, MPI_INT, to, TASK, MPI_COMM_WORLD);
	++*next;
	++*busy;
}

/* One result, in one of five ways. */
static int take(int how, uint64_t *answer)
{
	MPI_Request r;
	MPI_Message m;
	MPI_Status s;
	int flag = 0, index, count;

	switch (how) {
	case 0:
		MPI_Recv(answer, BIG, MPI_UINT64_T, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &s);
		break;
	case 1:
		MPI_Irecv(answer, BIG, MPI_UINT64_T, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &r);
		while (!flag)
			MPI_Test(&r, &flag, &s);
		break;
	case 2:
		while (!flag)
			MPI_Iprobe(MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &flag, &s);
		MPI_Recv(answer, BIG, MPI_UINT64_T, s.MPI_SOURCE, RESULT, MPI_COMM_WORLD, &s);
		break;
	case 3:
		MPI_Mprobe(MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &m, &s);
		MPI_Mrecv(answer, BIG, MPI_UINT64_T, &m, &s);
		break;
	default:
		MPI_Irecv(answer, BIG, MPI_UINT64_T, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &r);
		do
			MPI_Testsome(1, &r, &count, &index, &s);
		while (count == 0);
	}
	return s.MPI_SOURCE;
}

static void master(int tasks)
{
	static uint64_t answer[BIG];
	int next = 0, busy = 0, notes = 0, note[2], told = 0;
	uint64_t sum = 0;
	MPI_Request pending[2];

	for (int i = 0; i < tasks; i++)
		notes += i % 3 == 0;
	for (int i = 0; i < 2; i++)
		MPI_Irecv(&note[i], 1, MPI_INT, MPI_ANY_SOURCE, NOTE, MPI_COMM_WORLD, &pending[i]);
	for (int w = 1; w < ranks; w++)
		give(w, &next, tasks, &busy);
	for (int done = 0; busy > 0; done++, busy--) {
		int from = take(done % 5, answer), index, flag;
		sum += answer[1];
		choice(from);
		choice((int64_t)answer[0]);
		choice((int64_t)(MPI_Wtime() * 1e9));
		MPI_Testany(2, pending, &index, &flag, MPI_STATUS_IGNORE);
		if (flag && index != MPI_UNDEFINED) {
			choice(note[index]);
			told++;
			MPI_Irecv(&note[index], 1, MPI_INT, MPI_ANY_SOURCE, NOTE, MPI_COMM_WORLD,
				  &pending[index]);
		}
		give(from, &next, tasks, &busy);
		if (done % 50 == 49) {
			printf("%d done: %016llx\n", done + 1, (unsigned long long)choices);
			fflush(stdout);
		}
	}
	while (told < notes) {
		int index;
		MPI_Waitany(2, pending, &index, MPI_STATUS_IGNORE);
		choice(note[index]);
		if (++told + 1 < notes)
			MPI_Irecv(&note[index], 1, MPI_INT, MPI_ANY_SOURCE, NOTE, MPI_COMM_WORLD,
				  &pending[index]);
	}
	for (int i = 0; i < 2; i++)
		if (pending[i] != MPI_REQUEST_NULL) {
			MPI_Cancel(&pending[i]);
			MPI_Wait(&pending[i], MPI_STATUS_IGNORE);
		}
	for (int w = 1; w < ranks; w++)
		MPI_Send(&next, 1, MPI_INT, w, STOP, MPI_COMM_WORLD);
	printf("choices %016llx\n", (unsigned long long)choices);
	printf("sum %016llx\n", (unsigned long long)sum);
}

int main(int argc, char **argv)
{
	int tasks = argc > 1 ? atoi(argv[1]) : 200;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank == 0)
		master(tasks);
	else
		worker();
	uint64_t mine = choices, all = 0;
	MPI_Request r;
	MPI_Iallreduce(&mine, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD, &r);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	if (rank == 1)
		printf("all %016llx\n", (unsigned long long)all);
	MPI_Finalize();
	return 0;
}
