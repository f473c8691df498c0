/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of ranks, each with a field on its OpenCL device: steps on the device, then edges to the
 * neighbours by MPI. Rank 0 prints a checksum of all fields each step. ocl_mpi STEPS [FILE]: the
 * last hundred steps wait until there is FILE. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 1 << 14 };

#define OK(call)                                                                                   \
	do {                                                                                       \
		cl_int ok_ = (call);                                                               \
		if (ok_ != CL_SUCCESS) {                                                           \
			printf("failed: %d in line %d\n", ok_, __LINE__);                          \
			MPI_Abort(MPI_COMM_WORLD, 3);                                              \
		}                                                                                  \
	} while (0)

static const char source[] =
    "__kernel void advance(__global const float *in, __global float *out, int n) {\n"
    "  int i = get_global_id(0);\n"
    "  float l = in[i > 0 ? i - 1 : 0], r = in[i < n - 1 ? i + 1 : n - 1];\n"
    "  out[i] = 0.5f * in[i] + 0.25f * (l + r); }\n";

static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem field[2];

static void set_up(int rank)
{
	const char *text = source;
	cl_platform_id platform;
	cl_device_id device;
	static float host[N];
	cl_context context;
	cl_program p;
	cl_int e;

	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueue(context, device, 0, &e);
	OK(e);
	p = clCreateProgramWithSource(context, 1, &text, NULL, &e);
	OK(e);
	OK(clBuildProgram(p, 0, NULL, "", NULL, NULL));
	kernel = clCreateKernel(p, "advance", &e);
	OK(e);
	for (int i = 0; i < N; i++)
		host[i] = (float)((i * 7 + rank * 13) % 101) / 101;
	for (int i = 0; i < 2; i++) {
		field[i] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(host), host, &e);
		OK(e);
	}
}

/* So much that rank 0 reads it out of the others' memory. */
static void gather(int rank, int size)
{
	static float own[N];
	float *all = rank == 0 ? malloc((size_t)size * sizeof(own)) : NULL;

	MPI_Gather(own, N, MPI_FLOAT, all, N, MPI_FLOAT, 0, MPI_COMM_WORLD);
	free(all);
}

int main(int argc, char **argv)
{
	int rank, size, n = N, steps = argc > 1 ? atoi(argv[1]) : 100;
	size_t global = N;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	gather(rank, size);
	set_up(rank);
	gather(rank, size);
	for (int s = 0; s < steps; s++) {
		float edge[2], got[2], probe, all;
		cl_mem in = field[s % 2], out = field[1 - s % 2];

		while (argc > 2 && s == steps - 100 && access(argv[2], F_OK))
			usleep(1000);

		OK(clSetKernelArg(kernel, 0, sizeof(in), &in));
		OK(clSetKernelArg(kernel, 1, sizeof(out), &out));
		OK(clSetKernelArg(kernel, 2, sizeof(n), &n));
		OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
		OK(clEnqueueReadBuffer(queue, out, CL_FALSE, 0, 4, &edge[0], 0, NULL, NULL));
		OK(clEnqueueReadBuffer(queue, out, CL_FALSE, 4 * (N - 1), 4, &edge[1], 0, NULL,
				       NULL));
		OK(clEnqueueReadBuffer(queue, out, CL_TRUE, 4 * (size_t)(s % N), 4, &probe, 0, NULL,
				       NULL));
		MPI_Sendrecv(&edge[1], 1, MPI_FLOAT, (rank + 1) % size, 1, &got[0], 1, MPI_FLOAT,
			     (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Sendrecv(&edge[0], 1, MPI_FLOAT, (rank + size - 1) % size, 2, &got[1], 1,
			     MPI_FLOAT, (rank + 1) % size, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		OK(clEnqueueWriteBuffer(queue, out, CL_TRUE, 0, 4, &got[0], 0, NULL, NULL));
		OK(clEnqueueWriteBuffer(queue, out, CL_FALSE, 4 * (N - 1), 4, &got[1], 0, NULL,
					NULL));
		OK(clFinish(queue));
		MPI_Reduce(&probe, &all, 1, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
		if (rank == 0)
			printf("%d %a\n", s, all);
		if (rank == 0)
			fflush(stdout);
	}
	MPI_Finalize();
	return 0;
}
