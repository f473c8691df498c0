// SPDX-License-Identifier: BSD-3-Clause
/* Collective writes through PnetCDF: pncwrite FILE ROUNDS. Each round all ranks write every so
 * many'th row of a fixed array, a record of an array that grows, and, as two nonblocking requests,
 * a column each of an array of records. What is written depends on round and place only, so the file
 * of any run has the same bytes. Prints a sum over what is read back in the end. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 60, COLUMNS = 420, RECORD = 64 };

static void need(int rc, const char *what)
{
	if (rc == NC_NOERR)
		return;
	fprintf(stderr, "pncwrite: %s: %s\n", what, ncmpi_strerror(rc));
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static double value(int round, long row, long column)
{
	return round * 1e6 + (double)row * 1000 + (double)column / 7;
}

static void rows_write(int file, int array, int round, int rank, int size)
{
	MPI_Offset n = (ROWS - rank + size - 1) / size;
	MPI_Offset start[2] = {rank, 0}, count[2] = {n, COLUMNS}, stride[2] = {size, 1};
	double *data = malloc((size_t)(n ? n : 1) * COLUMNS * sizeof(*data));
	for (long i = 0; i < n; i++)
		for (long k = 0; k < COLUMNS; k++)
			data[i * COLUMNS + k] = value(round, i * size + rank, k);
	need(ncmpi_put_vars_double_all(file, array, start, count, stride, data), "writing rows");
	free(data);
}

static void record_write(int file, int array, int round, int rank)
{
	double data[RECORD];
	MPI_Offset start[2] = {round, (MPI_Offset)rank * RECORD}, count[2] = {1, RECORD};
	for (long k = 0; k < RECORD; k++)
		data[k] = value(round, rank, k);
	need(ncmpi_put_vara_double_all(file, array, start, count, data), "writing a record");
}

static void columns_write(int file, int array, int round, int rank, int size)
{
	int requests[2], status[2], data[2];
	for (int half = 0; half < 2; half++) {
		MPI_Offset start[2] = {round, half * size + rank}, count[2] = {1, 1};
		data[half] = round * 1000 + half * size + rank;
		need(ncmpi_iput_vara_int(file, array, start, count, &data[half], &requests[half]), "a request");
	}
	need(ncmpi_wait_all(file, 2, requests, status), "waiting");
}

static double total(int file, int array, size_t n)
{
	double *data = malloc(n * sizeof(*data)), sum = 0;
	need(ncmpi_get_var_double_all(file, array, data), "reading");
	for (size_t i = 0; i < n; i++)
		sum += data[i] * (double)(i % 13 + 1);
	free(data);
	return sum;
}

int main(int argc, char **argv)
{
	int rank, size, rounds = argc > 2 ? atoi(argv[2]) : 10;
	int file, rows, records, columns, row[2], record[2], column[2];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	need(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "can't make the file");
	need(ncmpi_def_dim(file, "row", ROWS, &row[0]), "row");
	need(ncmpi_def_dim(file, "column", COLUMNS, &row[1]), "column");
	need(ncmpi_def_dim(file, "time", NC_UNLIMITED, &record[0]), "time");
	need(ncmpi_def_dim(file, "place", (MPI_Offset)size * RECORD, &record[1]), "place");
	need(ncmpi_def_dim(file, "pair", 2 * size, &column[1]), "pair");
	column[0] = record[0];
	need(ncmpi_def_var(file, "rows", NC_DOUBLE, 2, row, &rows), "rows");
	need(ncmpi_def_var(file, "records", NC_DOUBLE, 2, record, &records), "records");
	need(ncmpi_def_var(file, "columns", NC_INT, 2, column, &columns), "columns");
	need(ncmpi_enddef(file), "the header");
	for (int round = 0; round < rounds; round++) {
		rows_write(file, rows, round, rank, size);
		record_write(file, records, round, rank);
		columns_write(file, columns, round, rank, size);
		if (round % 10 == 9)
			need(ncmpi_sync(file), "syncing");
	}
	double sum = total(file, rows, ROWS * COLUMNS) +
		     total(file, records, (size_t)rounds * (size_t)size * RECORD) +
		     total(file, columns, (size_t)rounds * (size_t)size * 2);
	need(ncmpi_close(file), "closing");
	if (rank == 0)
		printf("sum %.6f\n", sum);
	MPI_Finalize();
	return 0;
}
