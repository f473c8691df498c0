/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* Seed 000, figure 4.4: a region with CR; and one that updates its data in place. */
void compute(const double *x0, double *x1, int n);
void relax(double *u, int n);

void with_copies(double *x0, double *x1, double *u, int n)
{
#pragma hale protect CR Check(hash(x0[0:n]))
	compute(x0, x1, n);
#pragma hale protect CR(u[0:n]) Check(range(u[0:n], -1e6, 1e6))
	relax(u, n);
}
