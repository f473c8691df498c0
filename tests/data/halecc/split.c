/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* Seed 000, figure 4.3 (c): a predicate selects who uses the result. */
void compute(double *x, int n);
void smooth(const double *x, double *y, int n);
void sharpen(const double *x, double *y, int n);
void copy(const double *x, double *y, int n);

void split(double *x, double *y, int n, int how)
{
#pragma hale protect Continue
	compute(x, n);
	if (how == 0) {
#pragma hale protect Check(sum(x[0:n])) Recover(correct(x))
		smooth(x, y, n);
	} else if (how == 1) {
#pragma hale protect Check(sum(x[0:n]))
		sharpen(x, y, n);
	} else {
#pragma hale protect Check(sum(x[0:n]))
		copy(x, y, n);
	}
}
