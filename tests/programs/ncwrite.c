// SPDX-License-Identifier: BSD-3-Clause
/* Collective writes through parallel netCDF-4: ncwrite FILE ROUNDS. Each round all ranks write every
 * so many'th row of a chunked array, and a record of an array that grows. What is written depends on
 * round and place only, so the file of any run has the same bytes. Prints a sum over what is read
 * back in the end. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 60, COLUMNS = 420, RECORD = 64 };

static void need(int rc, const char *what)
{
	if (rc == NC_NOERR)
		return;
	fprintf(stderr, "ncwrite: %s: %s\n", what, nc_strerror(rc));
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static double value(int round, long row, long column)
{
	return round * 1e6 + (double)row * 1000 + (double)column / 7;
}

static void rows_write(int file, int array, int round, int rank, int size)
{
	size_t n = (size_t)((ROWS - rank + size - 1) / size);
	size_t start[2] = {(size_t)rank, 0}, count[2] = {n, COLUMNS};
	ptrdiff_t stride[2] = {size, 1};
	double *data = malloc((n ? n : 1) * COLUMNS * sizeof(*data));
	for (size_t i = 0; i < n; i++)
		for (long k = 0; k < COLUMNS; k++)
			data[i * COLUMNS + (size_t)k] = value(round, (long)i * size + rank, k);
	need(nc_put_vars_double(file, array, start, count, stride, data), "writing rows");
	free(data);
}

static void record_write(int file, int array, int round, int rank)
{
	double data[RECORD];
	size_t start[2] = {(size_t)round, (size_t)rank * RECORD}, count[2] = {1, RECORD};
	for (long k = 0; k < RECORD; k++)
		data[k] = value(round, rank, k);
	need(nc_put_vara_double(file, array, start, count, data), "writing a record");
}

static double total(int file, int array, size_t n)
{
	double *data = malloc(n * sizeof(*data)), sum = 0;
	need(nc_get_var_double(file, array, data), "reading");
	for (size_t i = 0; i < n; i++)
		sum += data[i] * (double)(i % 13 + 1);
	free(data);
	return sum;
}

int main(int argc, char **argv)
{
	int rank, size, rounds = argc > 2 ? atoi(argv[2]) : 10;
	int file, rows, records, row[2], record[2];
	size_t chunk[2] = {7, 60};
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	need(nc_create_par(argv[1], NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "can't make the file");
	need(nc_def_dim(file, "row", ROWS, &row[0]), "row");
	need(nc_def_dim(file, "column", COLUMNS, &row[1]), "column");
	need(nc_def_dim(file, "time", NC_UNLIMITED, &record[0]), "time");
	need(nc_def_dim(file, "place", (size_t)size * RECORD, &record[1]), "place");
	need(nc_def_var(file, "rows", NC_DOUBLE, 2, row, &rows), "rows");
	need(nc_def_var_chunking(file, rows, NC_CHUNKED, chunk), "chunks");
	need(nc_def_var(file, "records", NC_DOUBLE, 2, record, &records), "records");
	need(nc_enddef(file), "the header");
	need(nc_var_par_access(file, rows, NC_COLLECTIVE), "collective access");
	need(nc_var_par_access(file, records, NC_COLLECTIVE), "collective access");
	for (int round = 0; round < rounds; round++) {
		rows_write(file, rows, round, rank, size);
		record_write(file, records, round, rank);
		if (round % 10 == 9)
			need(nc_sync(file), "syncing");
	}
	double sum = total(file, rows, ROWS * COLUMNS) +
		     total(file, records, (size_t)rounds * (size_t)size * RECORD);
	need(nc_close(file), "closing");
	if (rank == 0)
		printf("sum %.6f\n", sum);
	MPI_Finalize();
	return 0;
}
