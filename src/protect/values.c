/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges of values, which need no reference. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "protect/protect.h"

bool hale_range(const double *x, size_t count, double low, double high)
{
	bool right = true;

	for (size_t i = 0; i < count; i++)
		right &= x[i] >= low && x[i] <= high;
	return right;
}

bool hale_rangef(const float *x, size_t count, double low, double high)
{
	bool right = true;

	for (size_t i = 0; i < count; i++)
		right &= (double)x[i] >= low && (double)x[i] <= high;
	return right;
}

bool hale_finite(const double *x, size_t count)
{
	return hale_range(x, count, -DBL_MAX, DBL_MAX);
}

bool hale_finitef(const float *x, size_t count)
{
	return hale_rangef(x, count, -(double)FLT_MAX, (double)FLT_MAX);
}

bool hale_monotone(const double *x, size_t count)
{
	bool right = count == 0 || x[0] == x[0];

	for (size_t i = 1; i < count; i++)
		right &= x[i - 1] <= x[i];
	return right;
}

bool hale_conserved(const double *x, size_t count, double total, double tolerance)
{
	double sum = 0, size = 0;

	for (size_t i = 0; i < count; i++) {
		sum += x[i];
		size += fabs(x[i]);
	}
	return fabs(sum - total) <= tolerance * size; /* NaN: false */
}
