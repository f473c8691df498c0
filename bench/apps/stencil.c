// SPDX-License-Identifier: BSD-3-Clause
/* Pressure by Jacobi's method on a grid with coefficients for each point, after the Himeno
 * benchmark: stencil PLANES ROWS COLUMNS ITERATIONS BLOCK SWEEPS. Ranks share the planes; a task
 * has a block of BLOCK planes and relaxes it SWEEPS times before it looks at its neighbours again
 * (1: plain Jacobi; more: block Jacobi).
 *
 * Two grids take turns: a task reads the old one and its coefficients, and writes the new one. With
 * -DHALE_TASKS it uses <hale/task.h>, where `out` needs no copy; else OpenMP. */
#include "app.h"
#ifdef HALE_TASKS
#include "hale/task.h"
#endif

enum { COEFFICIENTS = 12 };

static long planes, lines, columns, block, sweeps, plane;
static float *k[COEFFICIENTS]; /* as Himeno's a0-a3, b0-b2, c0-c2, bnd, wrk1 */

static float relax(const float *old, float *new, long at)
{
	long r = columns, p = plane;
	float s =
	    k[0][at] * old[at + p] + k[1][at] * old[at + r] + k[2][at] * old[at + 1] +
	    k[4][at] * (old[at + p + r] - old[at + p - r] - old[at - p + r] + old[at - p - r]) +
	    k[5][at] * (old[at + r + 1] - old[at - r + 1] - old[at + r - 1] + old[at - r - 1]) +
	    k[6][at] * (old[at + p + 1] - old[at - p + 1] - old[at + p - 1] + old[at - p - 1]) +
	    k[7][at] * old[at - p] + k[8][at] * old[at - r] + k[9][at] * old[at - 1] + k[11][at];
	float ss = (s * k[3][at] - old[at]) * k[10][at];

	new[at] = old[at] + 0.8f * ss;
	return ss * ss;
}

/* The points at the sides of a plane stay. */
static void sides(const float *old, float *new, long i)
{
	const float *o = old + i * plane;
	float *n = new + i *plane;

	memcpy(n, o, (size_t)columns * sizeof(float));
	memcpy(n + plane - columns, o + plane - columns, (size_t)columns * sizeof(float));
	for (long j = 1; j < lines - 1; j++) {
		n[j * columns] = o[j * columns];
		n[(j + 1) * columns - 1] = o[(j + 1) * columns - 1];
	}
}

/* Planes from … from + n of the new grid, whole; returns what changed. */
static double sweep(const float *old, float *new, long from, long n)
{
	double gosa = 0;

	for (long i = from; i < from + n; i++) {
		sides(old, new, i);
		for (long j = 1; j < lines - 1; j++) {
			float g = 0;
			for (long c = 1; c < columns - 1; c++)
				g += relax(old, new, i * plane + j * columns + c);
			gosa += (double)g;
		}
	}
	return gosa;
}

/* More sweeps: inside of the block, with scratch memory of this thread. */
static double block_run(const float *old, float *new, long from, long n)
{
	static _Thread_local float *scratch[2];
	double gosa;

	if (sweeps == 1)
		return sweep(old, new, from, n);
	for (int s = 0; s < 2 && !scratch[s]; s++)
		scratch[s] = app_memory((size_t)((block + 2) * plane) * sizeof(float));
	for (int s = 0; s < 2; s++)
		memcpy(scratch[s], old + (from - 1) * plane,
		       (size_t)((n + 2) * plane) * sizeof(float));
	for (long t = 0; t < sweeps; t++) {
		/* as if the scratch memory were the grid */
		const float *a = scratch[t % 2] - (from - 1) * plane;
		gosa = sweep(a, scratch[(t + 1) % 2] - (from - 1) * plane, from, n);
	}
	memcpy(new + from *plane, scratch[sweeps % 2] + plane, (size_t)(n * plane) * sizeof(float));
	return gosa;
}

/* The outermost planes of both neighbours. */
static void exchange(float *grid, long mine)
{
	int up = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL,
	    down = rank ? rank - 1 : MPI_PROC_NULL;
	MPI_Request q[4];

	MPI_Irecv(grid, (int)plane, MPI_FLOAT, down, 1, MPI_COMM_WORLD, &q[0]);
	MPI_Irecv(grid + (mine + 1) * plane, (int)plane, MPI_FLOAT, up, 2, MPI_COMM_WORLD, &q[1]);
	MPI_Isend(grid + mine * plane, (int)plane, MPI_FLOAT, up, 1, MPI_COMM_WORLD, &q[2]);
	MPI_Isend(grid + plane, (int)plane, MPI_FLOAT, down, 2, MPI_COMM_WORLD, &q[3]);
	MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
}

#ifdef HALE_TASKS

struct work {
	float *old, *new;
	double *gosa;
	long from, n, mine;
};

static void exchange_task(void *arg)
{
	struct work *w = arg;

	exchange(w->old, w->mine);
}

static void block_task(void *arg)
{
	struct work *w = arg;

	*w->gosa = block_run(w->old, w->new, w->from, w->n);
}

static void iterate(float *old, float *new, double *gosa, long mine)
{
	size_t bytes = (size_t)plane * sizeof(float);
	struct work w = {old, new, NULL, 0, 0, mine};
	struct hale_task_range ends[4] = {{old + plane, bytes, HALE_TASK_IN},
					  {old + mine * plane, bytes, HALE_TASK_IN},
					  {old, bytes, HALE_TASK_INOUT},
					  {old + (mine + 1) * plane, bytes, HALE_TASK_INOUT}};

	hale_task_submit(exchange_task, &w, sizeof(w), ends, 4);
	for (long b = 0; b * block < mine; b++) {
		w.from = 1 + b * block;
		w.n = mine - b * block < block ? mine - b * block : block;
		w.gosa = gosa + b;
		struct hale_task_range use[3] = {
		    {old + (w.from - 1) * plane, (size_t)(w.n + 2) * bytes, HALE_TASK_IN},
		    {new + w.from *plane, (size_t)w.n *bytes, HALE_TASK_OUT},
		    {w.gosa, sizeof(double), HALE_TASK_OUT}};
		hale_task_submit(block_task, &w, sizeof(w), use, 3);
	}
}

static void wait_all(void)
{
	hale_task_wait();
}

#else

/* OpenMP orders tasks by the first address of a dependence: a block is named by its first plane,
 * each halo by its own. */
static void iterate(float *old, float *new, double *gosa, long mine)
{
	long blocks = (mine + block - 1) / block, size = block * plane,
	     last = mine - (blocks - 1) * block;
	float *low = old, *high = old + (mine + 1) * plane;
	float *first = old + plane, *end = old + (1 + (blocks - 1) * block) * plane;

#pragma omp task depend(in                                                                         \
			: first [0:size]) depend(in                                                \
						 : end [0:last * plane])                           \
    depend(out                                                                                     \
	   : low [0:plane], high [0:plane])
	exchange(old, mine);
	for (long b = 0; b < blocks; b++) {
		long n = b == blocks - 1 ? last : block, from = 1 + b * block;
		float *below = b ? old + (from - block) * plane : low, *here = old + from * plane;
		float *above = b < blocks - 1 ? old + (from + block) * plane : high,
		      *to = new + from *plane;
		long nbelow = b ? size : plane, nabove = b < blocks - 2	   ? size
							 : b == blocks - 2 ? last * plane
									   : plane;
		double *g = gosa + b;
#pragma omp task depend(in                                                                         \
			: below [0:nbelow], here [0:n * plane], above [0:nabove])                  \
    depend(out                                                                                     \
	   : to [0:n * plane], g [0:1])
		*g = block_run(old, new, from, n);
	}
}

static void wait_all(void)
{
#pragma omp taskwait
}

#endif

int main(int argc, char **argv)
{
	app_begin(&argc, &argv);
	planes = app_number(argc, argv, 1, 64);
	lines = app_number(argc, argv, 2, 64);
	columns = app_number(argc, argv, 3, 128);
	long iterations = app_number(argc, argv, 4, 8);
	block = app_number(argc, argv, 5, 4);
	sweeps = app_number(argc, argv, 6, 1);
	plane = lines * columns;
	long mine = planes / ranks;
	size_t points = (size_t)((mine + 2) * plane), bytes = points * sizeof(float);
	float *grid[2] = {app_memory(bytes), app_memory(bytes)};
	double *gosa = app_memory((size_t)(mine + 1) * sizeof(double)), total = 0;

	for (int c = 0; c < COEFFICIENTS; c++) {
		k[c] = app_memory(bytes);
		for (size_t i = 0; i < points; i++)
			k[c][i] = c == 3 ? 1.0f / 6 : c == 11 || (c >= 4 && c <= 6) ? 0 : 1;
	}
	do {
		for (size_t i = 0; i < points; i++) {
			float z =
			    (float)((long)(i / (size_t)plane) + rank * mine - 1) / (float)planes;
			grid[0][i] = grid[1][i] = z * z;
		}
		double began = app_start();
#pragma omp parallel
#pragma omp single
		for (long i = 0; i < iterations; i++) {
			iterate(grid[i % 2], grid[(i + 1) % 2], gosa, mine);
			if (i % 4 == 3 || i == iterations - 1) { /* how much still changes */
				double s = 0;
				wait_all();
				for (long b = 0; b * block < mine; b++)
					s += gosa[b];
				MPI_Allreduce(&s, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
			}
		}
		double took = MPI_Wtime() - began;
		uint64_t bits;
		memcpy(&bits, &total, sizeof(bits));
		app_end(
		    "stencil",
		    app_hash(grid[iterations % 2] + plane, (size_t)(mine * plane) * sizeof(float)) ^
			bits,
		    took);
	} while (app_again());
	return 0;
}
