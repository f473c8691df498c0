/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "model/quad.h"

/* Pieces towards each end; the last ones are 2^-44 of the whole. */
#define PIECES 44

/* Where a minimum is looked for first. */
#define PLACES 32

/* Abscissas and weights of 12 points on [-1, 1]; the other half is their mirror image. */
static const double gauss[6][2] = {
    {0.12523340851146891, 0.24914704581340278}, {0.36783149899818019, 0.23349253653835480},
    {0.58731795428661744, 0.20316742672306592}, {0.76990267419430468, 0.16007832854334622},
    {0.90411725637047485, 0.10693932599531843}, {0.98156063424671925, 0.04717533638651182},
};

static double piece(model_function f, const void *context, double a, double b)
{
	double middle = (a + b) / 2, half = (b - a) / 2, sum = 0;

	for (int i = 0; i < 6; i++)
		sum += gauss[i][1] * (f(middle - half * gauss[i][0], context) +
				      f(middle + half * gauss[i][0], context));
	return sum * half;
}

double model_integrate(model_function f, const void *context, double a, double b)
{
	double sum = 0, width = (b - a) / 2;

	if (!(b > a))
		return 0;
	for (int i = 0; i < PIECES; i++, width /= 2) {
		double inner = i + 1 < PIECES ? width / 2 : 0;

		sum += piece(f, context, a + inner, a + width);
		sum += piece(f, context, b - width, b - inner);
	}
	return sum;
}

/* Golden section; one minimum between a and b. */
static double descend(model_function f, const void *context, double a, double b)
{
	const double golden = 0.6180339887498949;
	double low = a, high = b, x = high - golden * (high - low), y = low + golden * (high - low),
	       fx = f(x, context), fy = f(y, context);

	for (int i = 0; i < 100 && high - low > 1e-10 * (fabs(low) + fabs(high)) + 1e-14; i++) {
		if (fx <= fy) {
			high = y, y = x, fy = fx;
			x = high - golden * (high - low), fx = f(x, context);
		} else {
			low = x, x = y, fx = fy;
			y = low + golden * (high - low), fy = f(y, context);
		}
	}
	return (low + high) / 2;
}

double model_minimise(model_function f, const void *context, double a, double b)
{
	double step = (b - a) / PLACES, at = a, least = f(a, context), found;

	for (int i = 1; i <= PLACES; i++) {
		double x = i < PLACES ? a + i * step : b, v = f(x, context);

		if (v < least) {
			at = x;
			least = v;
		}
	}
	found = descend(f, context, fmax(a, at - step), fmin(b, at + step));
	return f(found, context) < least ? found : at;
}
