// SPDX-License-Identifier: BSD-3-Clause
/* corners: what users of the standard's corners rely on. Shared windows lie side by side without
 * gaps; columns of a matrix are reduced by an own operation, although they interleave in memory; a
 * view for reading may have pieces that overlap. Prints how much was wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;
static int rows; /* of the matrix that is reduced */

static int shared_windows_wrong(void)
{
	int *mine, wrong = 0;
	MPI_Win w;

	MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &w);
	MPI_Win_fence(0, w);
	*mine = 100 + rank;
	MPI_Win_fence(0, w);
	for (int i = 0; rank == 0 && i < ranks; i++)
		wrong += mine[i] != 100 + i;
	MPI_Win_fence(0, w);
	MPI_Win_free(&w);
	return wrong;
}

static void columns_add(void *in, void *inout, int *n, MPI_Datatype *t)
{
	double *x = in, *y = inout;

	for (int c = 0; c < *n; c++)
		for (long r = 0; r < rows; r++)
			y[c + r * rows] += x[c + r * rows];
}

static long columns_wrong(int size)
{
	long elements = (long)size * size, wrong = 0;
	double *in = malloc((size_t)elements * 8), *out = malloc((size_t)elements * 8);
	double to_all = ranks * (ranks + 1) / 2., to_me = (rank + 1) * (rank + 2) / 2.;
	MPI_Datatype column, packed;
	MPI_Op add;

	rows = size;
	MPI_Op_create(columns_add, 1, &add);
	MPI_Type_vector(size, 1, size, MPI_DOUBLE, &column);
	MPI_Type_create_resized(column, 0, sizeof(double), &packed);
	MPI_Type_commit(&packed);
	for (int how = 0; how < 4; how++) {
		double factor = how == 2 ? to_me : to_all;

		for (long i = 0; i < elements; i++) {
			in[i] = (rank + 1) * (double)(i + 1);
			out[i] = how == 3 ? in[i] : -1;
		}
		if (how == 0)
			MPI_Allreduce(in, out, size, packed, add, MPI_COMM_WORLD);
		else if (how == 1)
			MPI_Reduce(in, out, size, packed, add, ranks - 1, MPI_COMM_WORLD);
		else if (how == 2)
			MPI_Scan(in, out, size, packed, add, MPI_COMM_WORLD);
		else
			MPI_Allreduce(MPI_IN_PLACE, out, size, packed, add, MPI_COMM_WORLD);
		for (long i = 0; (how != 1 || rank == ranks - 1) && i < elements; i++)
			wrong += out[i] != factor * (double)(i + 1);
	}
	MPI_Type_free(&column);
	MPI_Type_free(&packed);
	MPI_Op_free(&add);
	free(in);
	free(out);
	return wrong;
}

static int view_wrong(const char *path)
{
	enum { SIZE = 4000, TILES = 10, TILE = 200, FIRST = 100, INSIDE = 50, AGAIN = 10 };
	int lengths[] = {FIRST, AGAIN}, places[] = {0, INSIDE}, wrong = 0, n, k = 0;
	unsigned char data[SIZE], got[TILES * (FIRST + AGAIN)];
	MPI_Datatype pieces, tile;
	MPI_Status st;
	MPI_File f;

	for (int i = 0; i < SIZE; i++)
		data[i] = (unsigned char)(i * 7);
	MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f);
	MPI_File_write(f, data, SIZE, MPI_BYTE, &st);
	MPI_File_close(&f);
	MPI_Type_indexed(2, lengths, places, MPI_BYTE, &pieces);
	MPI_Type_create_resized(pieces, 0, TILE, &tile);
	MPI_Type_commit(&tile);
	MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
	MPI_File_set_view(f, 0, MPI_BYTE, tile, "native", MPI_INFO_NULL);
	MPI_File_read(f, got, sizeof(got), MPI_BYTE, &st);
	MPI_Get_count(&st, MPI_BYTE, &n);
	wrong = n != (int)sizeof(got);
	for (int t = 0; t < TILES; t++) {
		for (int i = 0; i < FIRST; i++)
			wrong += got[k++] != data[t * TILE + i];
		for (int i = 0; i < AGAIN; i++)
			wrong += got[k++] != data[t * TILE + INSIDE + i];
	}
	MPI_File_close(&f);
	MPI_Type_free(&pieces);
	MPI_Type_free(&tile);
	return wrong;
}

int main(int argc, char **argv)
{
	long wrong[3] = {0}, all[3];
	char path[32];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 2) /* members of a shared window are on one node */
		wrong[0] = shared_windows_wrong();
	for (int size = 8; size <= 300; size = size * 3 / 2)
		wrong[1] += columns_wrong(size);
	snprintf(path, sizeof(path), "view.%d", rank);
	wrong[2] = view_wrong(path);
	MPI_Reduce(wrong, all, 3, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("windows %ld, columns %ld, views %ld wrong\n", all[0], all[1], all[2]);
	MPI_Finalize();
	return 0;
}
