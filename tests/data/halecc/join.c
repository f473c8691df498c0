/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* Seed 000, figure 4.3 (b): independent computations, and one that uses all of their results. */
void compute(double *x, int which, int n);
double reduce(const double *x1, const double *x2, const double *x3, int n);

double join(double *x1, double *x2, double *x3, int n)
{
	double sum = 0;

#pragma hale protect Continue
	compute(x1, 1, n);
#pragma hale protect Continue
	compute(x2, 2, n);
#pragma hale protect Continue
	compute(x3, 3, n);
#pragma hale protect Check(sum(x1[0:n]), sum(x2[0:n]), sum(x3[0:n]))
	sum = reduce(x1, x2, x3, n);
	return sum;
}
