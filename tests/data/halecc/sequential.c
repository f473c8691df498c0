/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* Seed 000, figure 4.3 (a): a pipeline. */
void compute_1(const double *x0, double *x1, int n);
void compute_2(const double *x1, double *x2, int n);
void compute_3(const double *x2, double *x3, int n);

void pipeline(const double *x0, double *x1, double *x2, double *x3, int n)
{
#pragma hale protect Check(sum(x0[0:n])) Recover(correct(x0)) Continue
	compute_1(x0, x1, n);
#pragma hale protect Check(sum(x1[0:n])) Continue
	compute_2(x1, x2, n);
#pragma hale protect Check(hash(x2[0:n]))
	compute_3(x2, x3, n);
}
