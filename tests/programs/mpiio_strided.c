// SPDX-License-Identifier: BSD-3-Clause
/* mpiio_strided FILE [ROUNDS [HINT VALUE]]: each rank but the last writes small pieces with holes by
 * calls of its own, all at once; the last one fills some of the holes by a second handle, piece by
 * piece. Some bytes nobody writes. All is checked after each round. Prints how many bytes were
 * wrong, and by how many system calls a round's strided writes were made, at least. Ends after
 * ROUNDS, or when the file that STOP names is there. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 16, PIECES = 2048 };

static int rank, size;
static long step, bytes;

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

/* Of round 0: what was there before. */
static char value(long place, int who, long round)
{
	return (char)(who == size || round == 0 ? place * 7 + place / 251 : who * 37 + round * 11 + place / step);
}

static long check(MPI_File f, char *all, long round)
{
	long wrong = 0;
	memset(all, 0, bytes);
	MPI_File_read_at(f, 0, all, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
	for (long i = 0; i < bytes; i++)
		wrong += all[i] != value(i, (int)(i % step / PIECE), round);
	return wrong;
}

int main(int argc, char **argv)
{
	MPI_File f, own;
	MPI_Info info;
	MPI_Datatype piece, view;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	long rounds = argc > 2 ? atol(argv[2]) : 10, wrong = 0, least = 1 << 30;
	const char *stop = getenv("STOP");
	step = PIECE * (size + 1);
	bytes = step * PIECES;
	char *all = malloc(bytes), *mine = malloc(PIECES * PIECE);
	MPI_Info_create(&info);
	if (argc > 4)
		MPI_Info_set(info, argv[3], argv[4]);
	MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, info, &f);
	MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &own);
	for (long i = 0; i < bytes; i++)
		all[i] = value(i, 0, 0);
	if (rank == 0)
		MPI_File_write_at(own, 0, all, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
	MPI_Type_create_resized(piece, 0, step, &view);
	MPI_Type_commit(&view);
	MPI_File_set_view(f, rank * PIECE, MPI_BYTE, view, "native", info);
	int over = 0;
	for (long round = 1; round <= rounds && !over; round++) {
		for (long i = 0; i < PIECES * PIECE; i++)
			mine[i] = value(i / PIECE * step, rank, round);
		long n = writes();
		if (rank < size - 1) {
			MPI_File_write_at(f, 0, mine, PIECES * PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
			n = writes() - n;
		} else {
			for (long i = 0; i < PIECES; i++)
				MPI_File_write_at(own, i * step + rank * PIECE, mine + i * PIECE, PIECE, MPI_BYTE,
						  MPI_STATUS_IGNORE);
			n = 0;
		}
		long total;
		MPI_Allreduce(&n, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		least = total < least ? total : least;
		if (rank == 0) {
			wrong += check(own, all, round);
			over = stop && !access(stop, F_OK);
		}
		MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%ld wrong, %ld writes\n", wrong, least);
	MPI_File_close(&own);
	MPI_File_close(&f);
	MPI_Finalize();
	return 0;
}
