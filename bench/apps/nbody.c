// SPDX-License-Identifier: BSD-3-Clause
/* Bodies that attract each other: nbody BODIES STEPS BLOCK. Each rank has a share of them and moves
 * it by blocks; every step one task brings the others' positions. */
#include <math.h>
#include "app.h"

struct body {
	double x, y, z, mass;
};

struct motion {
	double vx, vy, vz, fx, fy, fz;
};

/* The pull of n bodies on those of a block. */
static void attract(struct motion *m, const struct body *on, long block, const struct body *by,
		    long n)
{
	for (long i = 0; i < block; i++) {
		double fx = 0, fy = 0, fz = 0;

		for (long k = 0; k < n; k++) {
			double dx = by[k].x - on[i].x, dy = by[k].y - on[i].y,
			       dz = by[k].z - on[i].z;
			double d2 = dx * dx + dy * dy + dz * dz + 1e-4,
			       f = by[k].mass / (d2 * sqrt(d2));

			fx += f * dx;
			fy += f * dy;
			fz += f * dz;
		}
		m[i].fx += fx;
		m[i].fy += fy;
		m[i].fz += fz;
	}
}

static void move(struct motion *m, struct body *b, long block)
{
	const double dt = 1e-3;

	for (long i = 0; i < block; i++) {
		m[i].vx += dt * m[i].fx;
		m[i].vy += dt * m[i].fy;
		m[i].vz += dt * m[i].fz;
		b[i].x += dt * m[i].vx;
		b[i].y += dt * m[i].vy;
		b[i].z += dt * m[i].vz;
		m[i].fx = m[i].fy = m[i].fz = 0;
	}
}

int main(int argc, char **argv)
{
	app_begin(&argc, &argv);
	long n = app_number(argc, argv, 1, 2048) / ranks, steps = app_number(argc, argv, 2, 4);
	long block = app_number(argc, argv, 3, 128), blocks = n / block;
	struct body *mine = app_memory((size_t)n * sizeof(*mine)), *others[1024];
	struct motion *m = app_memory((size_t)n * sizeof(*m));

	n = blocks * block;
	for (int r = 0; r < ranks; r++)
		others[r] = r == rank ? mine : app_memory((size_t)n * sizeof(*mine));
	do {
		memset(m, 0, (size_t)n * sizeof(*m));
		for (long i = 0; i < n; i++) {
			uint64_t k = (uint64_t)(rank * n + i) * 4;

			mine[i] = (struct body){app_noise(k), app_noise(k + 1), app_noise(k + 2),
						app_noise(k + 3) / 64};
		}
		double began = app_start();
#pragma omp parallel
#pragma omp single
		for (long s = 0; s < steps; s++) {
			/* positions of the others; tasks on our own need not wait for them */
			for (int d = 1; d < ranks; d++) {
				int to = (rank + d) % ranks, from = (rank + ranks - d) % ranks;
				struct body *there = others[from];
#pragma omp task depend(iterator(long i = 0                                                        \
				 : blocks),                                                        \
			in                                                                         \
			: mine[i * block]) depend(out                                              \
						  : there [0:n])
				MPI_Sendrecv(mine, (int)(n * 4), MPI_DOUBLE, to, 1, there,
					     (int)(n * 4), MPI_DOUBLE, from, 1, MPI_COMM_WORLD,
					     MPI_STATUS_IGNORE);
			}
			for (int d = 0; d < ranks; d++)
				for (long b = 0; b < blocks; b++) {
					struct body *by = others[(rank + d) % ranks],
						    *on = mine + b * block;
					struct motion *f = m + b * block;

					if (d == 0) {
#pragma omp task depend(iterator(long i = 0                                                        \
				 : blocks),                                                        \
			in                                                                         \
			: mine[i * block]) depend(inout                                            \
						  : f [0:block])
						attract(f, on, block, by, n);
					} else {
#pragma omp task depend(in : by [0:n], on [0:block]) depend(inout : f [0:block])
						attract(f, on, block, by, n);
					}
				}
			for (long b = 0; b < blocks; b++) {
				struct body *on = mine + b * block;
				struct motion *f = m + b * block;
#pragma omp task depend(inout : on [0:block], f [0:block])
				move(f, on, block);
			}
		}
		app_end("nbody", app_hash(mine, (size_t)n * sizeof(*mine)), MPI_Wtime() - began);
	} while (app_again());
	return 0;
}
