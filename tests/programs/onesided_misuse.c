// SPDX-License-Identifier: BSD-3-Clause
/* onesided_misuse: erroneous one-sided calls give their class through the window's error handler,
 * and the window works afterwards. */
#include <mpi.h>
#include <stdio.h>

static int wrong, handled;

static void handler(MPI_Win *win, int *code, ...)
{
	(void)win;
	(void)code;
	handled++;
}

static void check(const char *what, int got, int wanted)
{
	int class = -1;
	MPI_Error_class(got, &class);
	if (class == wanted)
		return;
	wrong++;
	printf("%s gave class %d instead of %d\n", what, class, wanted);
}

int main(int argc, char **argv)
{
	int rank, n;
	long word = 5, old = 0, *base;
	double real = 1;
	MPI_Win win, dynamic;
	MPI_Errhandler e;
	MPI_Group all;
	MPI_Datatype mixed, raw;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	MPI_Win_allocate(10 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
			 &win);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
	MPI_Win_create_errhandler(handler, &e);
	MPI_Win_set_errhandler(win, e);
	MPI_Win_set_errhandler(dynamic, e);
	MPI_Win_get_group(win, &all);
	int to = (rank + 1) % n;

	check("put without an epoch", MPI_Put(&word, 1, MPI_LONG, to, 0, 1, MPI_LONG, win),
	      MPI_ERR_RMA_SYNC);
	check("unlock without a lock", MPI_Win_unlock(to, win), MPI_ERR_RMA_SYNC);
	check("unlock_all without lock_all", MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
	check("complete without start", MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
	check("wait without post", MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
	check("flush without a lock", MPI_Win_flush(to, win), MPI_ERR_RMA_SYNC);
	check("a lock of no type", MPI_Win_lock(77, to, 0, win), MPI_ERR_LOCKTYPE);
	check("a rank there isn't", MPI_Win_lock(MPI_LOCK_SHARED, n, 0, win), MPI_ERR_RANK);
	check("an assertion there isn't", MPI_Win_fence(1 << 20, win), MPI_ERR_ASSERT);
	check("attach to a window that isn't dynamic", MPI_Win_attach(win, base, 8),
	      MPI_ERR_RMA_FLAVOR);
	check("detach of what isn't attached", MPI_Win_detach(dynamic, base), MPI_ERR_BASE);

	MPI_Win_lock_all(0, win);
	check("a second lock", MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win), MPI_ERR_RMA_SYNC);
	check("fence inside lock_all", MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
	check("put behind the end", MPI_Put(&word, 1, MPI_LONG, to, 10, 1, MPI_LONG, win),
	      MPI_ERR_RMA_RANGE);
	check("parts of different lengths", MPI_Get(&word, 1, MPI_LONG, to, 9, 2, MPI_LONG, win),
	      MPI_ERR_TRUNCATE);
	check("put before the beginning", MPI_Put(&word, 1, MPI_LONG, to, -1, 1, MPI_LONG, win),
	      MPI_ERR_DISP);
	check("a count below zero", MPI_Put(&word, -1, MPI_LONG, to, 0, 1, MPI_LONG, win),
	      MPI_ERR_COUNT);
	MPI_Type_contiguous(2, MPI_LONG, &raw);
	check("a type that isn't committed", MPI_Put(&word, 1, MPI_LONG, to, 0, 1, raw, win),
	      MPI_ERR_TYPE);
	MPI_Type_free(&raw);
	MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8},
			       (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &mixed);
	MPI_Type_commit(&mixed);
	long pair[2] = {0, 0};
	check("a sum of mixed elements",
	      MPI_Accumulate(pair, 1, mixed, to, 0, 1, mixed, MPI_SUM, win), MPI_ERR_TYPE);
	MPI_Type_free(&mixed);
	check("MPI_NO_OP in accumulate",
	      MPI_Accumulate(&word, 1, MPI_LONG, to, 0, 1, MPI_LONG, MPI_NO_OP, win), MPI_ERR_OP);
	check("a bitwise operation on reals",
	      MPI_Accumulate(&real, 1, MPI_DOUBLE, to, 0, 1, MPI_DOUBLE, MPI_BXOR, win),
	      MPI_ERR_OP);
	check("compare_and_swap of reals",
	      MPI_Compare_and_swap(&real, &real, &real, MPI_DOUBLE, to, 0, win), MPI_ERR_TYPE);
	check("the window freed inside lock_all", MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
	MPI_Win_unlock_all(win);
	int seen = handled;

	/* and it works */
	base[0] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
	MPI_Fetch_and_op(&word, &old, MPI_LONG, to, 0, MPI_REPLACE, win);
	MPI_Win_unlock(to, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	if (base[0] != 5 || handled != seen)
		wrong++;
	MPI_Win_unlock(rank, win);
	MPI_Group_free(&all);
	MPI_Errhandler_free(&e);
	MPI_Win_free(&dynamic);
	MPI_Win_free(&win);
	MPI_Allreduce(&(int){wrong}, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d errors handled, %d wrong\n", seen, wrong);
	MPI_Finalize();
	return wrong != 0;
}
