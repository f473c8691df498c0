/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* Seed 000, figure 4.5: a region that runs in two processes. */
void compute(const double *x0, double *x1, int n);
double use(const double *x1, int n);

double twice(const double *x0, double *x1, int n)
{
	double y;

#pragma hale protect Redundancy(2) Check(sum(x0[0:n])) Recover(correct(x0)) Continue
	compute(x0, x1, n);
#pragma hale protect Check(sum(x1[0:n])) Recover(correct(x1))
	y = use(x1, n);
	return y;
}
