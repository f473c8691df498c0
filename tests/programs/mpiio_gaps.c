// SPDX-License-Identifier: BSD-3-Clause
/* mpiio_gaps FILE [PIECES [other]]: all ranks write small pieces that lie between each other, with
 * gaps that nobody writes. Prints how many bytes are wrong, and how many system calls wrote. other:
 * rank 1 has the file open once more. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 16, GAP = 16 };

static long writes(void)
{
	char line[80];
	long n = 0;
	FILE *f = fopen("/proc/self/io", "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "syscw: %ld", &n);
	if (f)
		fclose(f);
	return n;
}

static char before(long at)
{
	return (char)(at * 7 + at / 251);
}

int main(int argc, char **argv)
{
	int rank, size;
	MPI_File f, g = MPI_FILE_NULL;
	MPI_Datatype piece, view;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	long pieces = argc > 2 ? atol(argv[2]) : 4096, step = PIECE + GAP, bytes = pieces * size * step - 2 * GAP;
	char *all = malloc(bytes + step), *mine = malloc(pieces * PIECE);
	for (long i = 0; i < bytes; i++)
		all[i] = before(i);
	memset(mine, 'a' + rank, pieces * PIECE);
	MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f);
	if (rank == 0)
		MPI_File_write_at(f, 0, all, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
	if (argc > 3 && rank == 1)
		MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &g);
	MPI_File_sync(f);
	MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
	MPI_Type_create_resized(piece, 0, step * size, &view);
	MPI_Type_commit(&view);
	MPI_File_set_view(f, rank * step, MPI_BYTE, view, "native", MPI_INFO_NULL);
	long n = writes(), total;
	MPI_File_write_at_all(f, 0, mine, (int)(pieces * PIECE), MPI_BYTE, MPI_STATUS_IGNORE);
	n = writes() - n;
	MPI_Reduce(&n, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_File_sync(f);
	MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
	if (rank == 0) {
		long wrong = 0, end = pieces * size * step - GAP; /* where the last piece ends */
		MPI_Offset there;
		MPI_File_get_size(f, &there);
		MPI_File_read_at(f, 0, all, (int)end, MPI_BYTE, MPI_STATUS_IGNORE);
		for (long i = 0; i < end; i++)
			wrong += all[i] != (i % step < PIECE ? (char)('a' + i / step % size)
						: i < bytes ? before(i) : 0);
		printf("%ld wrong, %ld writes\n", wrong + (there != end), total);
	}
	if (g != MPI_FILE_NULL)
		MPI_File_close(&g);
	MPI_File_close(&f);
	MPI_Finalize();
	return 0;
}
