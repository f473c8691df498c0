// SPDX-License-Identifier: BSD-3-Clause
/* Collective writes through parallel HDF5: h5write FILE ROUNDS. Each round all ranks write a contiguous
 * array by interleaved rows, a chunked array by blocks that cross chunks, and one more record of an
 * array that grows. What is written depends on round and place only, so the file of any run has the
 * same bytes. Prints a sum over what is read back in the end. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 96, COLUMNS = 500, CHUNK_ROWS = 13, CHUNK_COLUMNS = 70, RECORD = 256 };

static void need(long ok, const char *what)
{
	if (ok >= 0)
		return;
	fprintf(stderr, "h5write: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static double value(int round, long row, long column)
{
	return round * 1e6 + (double)row * 1000 + (double)column / 7;
}

static hid_t dataset(hid_t file, const char *name, int chunked, int grows)
{
	hsize_t size[2] = {grows ? 1 : ROWS, grows ? RECORD : COLUMNS};
	hsize_t most[2] = {grows ? H5S_UNLIMITED : ROWS, size[1]};
	hsize_t chunk[2] = {grows ? 4 : CHUNK_ROWS, grows ? RECORD / 2 : CHUNK_COLUMNS};
	hid_t space = H5Screate_simple(2, size, most), how = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_obj_track_times(how, 0);
	H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
	H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY);
	if (chunked)
		H5Pset_chunk(how, 2, chunk);
	hid_t d = H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
	need(d, name);
	H5Pclose(how);
	H5Sclose(space);
	return d;
}

/* Rows begin, begin + step, …, as many as n, of the dataset. */
static void rows_write(hid_t d, hid_t way, int round, hsize_t begin, hsize_t step, hsize_t n,
		       hsize_t columns)
{
	double *data = malloc((size_t)(n ? n : 1) * columns * sizeof(*data));
	hsize_t start[2] = {begin, 0}, stride[2] = {step, 1}, count[2] = {n, columns};
	hsize_t size[2] = {n ? n : 1, columns};
	hid_t there = H5Dget_space(d), here = H5Screate_simple(2, size, NULL);
	for (hsize_t i = 0; i < n; i++)
		for (hsize_t k = 0; k < columns; k++)
			data[i * columns + k] = value(round, (long)(begin + i * step), (long)k);
	if (n) {
		H5Sselect_hyperslab(there, H5S_SELECT_SET, start, stride, count, NULL);
	} else {
		H5Sselect_none(there);
		H5Sselect_none(here);
	}
	need(H5Dwrite(d, H5T_NATIVE_DOUBLE, here, there, way, data), "writing");
	H5Sclose(here);
	H5Sclose(there);
	free(data);
}

static double total(hid_t d, hid_t way)
{
	hid_t space = H5Dget_space(d);
	hssize_t n = H5Sget_simple_extent_npoints(space);
	double *data = malloc((size_t)n * sizeof(*data)), sum = 0;
	need(H5Dread(d, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, way, data), "reading");
	for (hssize_t i = 0; i < n; i++)
		sum += data[i] * (double)(i % 13 + 1);
	H5Sclose(space);
	free(data);
	return sum;
}

int main(int argc, char **argv)
{
	int rank, size, rounds = argc > 2 ? atoi(argv[2]) : 10;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	hid_t access = H5Pcreate(H5P_FILE_ACCESS), way = H5Pcreate(H5P_DATASET_XFER);
	H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
	H5Pset_dxpl_mpio(way, H5FD_MPIO_COLLECTIVE);
	hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
	need(file, "can't make the file");
	hid_t flat = dataset(file, "flat", 0, 0), chunked = dataset(file, "chunked", 1, 0),
	      grown = dataset(file, "grown", 1, 1);
	for (int round = 0; round < rounds; round++) {
		hsize_t mine = (hsize_t)((ROWS - rank + size - 1) / size);
		hsize_t from = (hsize_t)(ROWS * rank / size), to = (hsize_t)(ROWS * (rank + 1) / size);
		hsize_t length[2] = {(hsize_t)round + 1, RECORD};
		rows_write(flat, way, round, (hsize_t)rank, (hsize_t)size, mine, COLUMNS);
		rows_write(chunked, way, round, from, 1, to - from, COLUMNS);
		need(H5Dset_extent(grown, length), "growing");
		rows_write(grown, way, round, (hsize_t)round, 1, rank == round % size, RECORD);
		if (round % 10 == 9)
			need(H5Fflush(file, H5F_SCOPE_GLOBAL), "flushing");
	}
	double sum = total(flat, way) + total(chunked, way) + total(grown, way);
	if (rank == 0)
		printf("sum %.6f\n", sum);
	H5Dclose(flat);
	H5Dclose(chunked);
	H5Dclose(grown);
	H5Pclose(access);
	H5Pclose(way);
	need(H5Fclose(file), "closing");
	MPI_Finalize();
	return 0;
}
