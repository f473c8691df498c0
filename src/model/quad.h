/* SPDX-License-Identifier: BSD-3-Clause */
/* Integrals and minima of functions of one variable. */
#ifndef HALE_MODEL_QUAD_H
#define HALE_MODEL_QUAD_H

typedef double (*model_function)(double x, const void *context);

/* ∫a..b f, to about 1e-10 of the result: Gauss-Legendre on pieces that halve towards both ends. So
 * f may change fast near a and near b, as probabilities of rare and of almost certain events do,
 * but must be smooth in between. 1,056 calls of f, none at the ends. 0 if a >= b. */
double model_integrate(model_function f, const void *context, double a, double b);

/* Where f is least in [a, b], ends included: the best of 33 places, then golden section around it.
 * Minima narrower than (b - a) / 32 may be missed. */
double model_minimise(model_function f, const void *context, double a, double b);

#endif
