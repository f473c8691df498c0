/* SPDX-License-Identifier: BSD-3-Clause */
/* Conjugate gradients whose residual is measured from time to time.
 *
 * The method updates r = b - A x by r -= alpha A p. Without errors r stays with the measured
 * residual within what rounding adds in each step (Greenbaum 1997):
 *
 *     u [ (width + 4) norm (|alpha p| + |x|) + 4 |r| ]
 *
 * Errors in x, r or A p part the two by more than the sum of that: x goes back to the last place
 * where they agreed, and the search begins anew from there. An error in p or alpha alone only slows
 * the method down. The end is always decided by the measured residual.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "protect/abft.h"
#include "protect/protect.h"

struct cg {
	size_t n;
	hale_operator_t *apply;
	void *arg;
	double norm, width;
	const double *b;
	double *x, *r, *p, *q, *good; /* good: x where both residuals agreed */
	double reach; /* how far x may have come: at least its norm, also when x is damaged */
	double drift; /* by how much rounding may have parted them */
};

static double dot(const double *x, const double *y, size_t n)
{
	double s = 0;

	for (size_t i = 0; i < n; i++)
		s += x[i] * y[i];
	return s;
}

/* q = b - A x; its norm. */
static double measure(struct cg *g)
{
	g->apply(g->arg, g->x, g->q);
	for (size_t i = 0; i < g->n; i++)
		g->q[i] = g->b[i] - g->q[i];
	return sqrt(dot(g->q, g->q, g->n));
}

static double rounding_of_measure(const struct cg *g)
{
	return 0x1p-53 * ((g->width + 4) * g->norm * g->reach + 2 * sqrt(dot(g->b, g->b, g->n)));
}

/* The search begins at x. */
static double begin(struct cg *g)
{
	measure(g);
	memcpy(g->r, g->q, g->n * sizeof *g->r);
	memcpy(g->p, g->q, g->n * sizeof *g->p);
	g->reach = sqrt(dot(g->x, g->x, g->n));
	g->drift = 2 * rounding_of_measure(g);
	return dot(g->r, g->r, g->n);
}

/* One step; rr is r r before, and what it returns behind. NaN: p has no direction left. */
static double step(struct cg *g, double rr)
{
	double pq, alpha, next, far;

	g->apply(g->arg, g->p, g->q);
	pq = dot(g->p, g->q, g->n);
	if (!(pq > 0))
		return NAN;
	alpha = rr / pq;
	for (size_t i = 0; i < g->n; i++) {
		g->x[i] += alpha * g->p[i];
		g->r[i] -= alpha * g->q[i];
	}
	next = dot(g->r, g->r, g->n);
	far = fabs(alpha) * sqrt(dot(g->p, g->p, g->n));
	g->reach += far;
	g->drift += 0x1p-53 * ((g->width + 4) * g->norm * (far + g->reach) + 4 * sqrt(next));
	for (size_t i = 0; i < g->n; i++)
		g->p[i] = g->r[i] + next / rr * g->p[i];
	if (abft_step)
		abft_step(g->x, 1, g->n, g->n);
	return next;
}

/* Whether the updated residual is the measured one. */
static bool agrees(const struct cg *g)
{
	double apart = 0;

	for (size_t i = 0; i < g->n; i++)
		apart += (g->q[i] - g->r[i]) * (g->q[i] - g->r[i]);
	return within(sqrt(apart), 0, 2 * (g->drift + rounding_of_measure(g)));
}

bool hale_cg(size_t n, hale_operator_t *apply, void *arg, double norm, size_t width,
	     const double *b, double *x, double tolerance, size_t every, size_t *iterations,
	     struct hale_abft *done)
{
	double *space = abft_memory(4 * n), goal = tolerance * sqrt(dot(b, b, n)), rr, measured;
	struct cg g = {n, apply, arg,	    norm,	   (double)width, b,
		       x, space, space + n, space + 2 * n, space + 3 * n, 0,
		       0};
	size_t limit = iterations ? *iterations : 10 * n, made = 0, since = 0;
	struct hale_abft none = {0};
	bool right = false;

	done = done ? done : &none;
	every = every ? every : 32;
	memcpy(g.good, x, n * sizeof *x);
	rr = begin(&g);
	while (!right && made < limit) {
		bool near = sqrt(rr) <= goal;
		if (!near && rr == rr && since < every) {
			rr = step(&g, rr);
			made++;
			since++;
			continue;
		}
		measured = measure(&g);
		done->checks++;
		since = 0;
		right = measured <= goal;
		if (!right && !agrees(&g)) {
			done->detected++;
			done->recomputed++;
			memcpy(x, g.good, n * sizeof *x);
			rr = begin(&g);
		} else if (!right) {
			memcpy(g.good, x, n * sizeof *x);
			if (near || rr != rr) { /* rounding has used up the updated residual */
				rr = begin(&g);
				made++;
			}
		}
	}
	if (iterations)
		*iterations = made;
	right = right || measure(&g) <= goal;
	free(space);
	return right;
}
