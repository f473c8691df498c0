// SPDX-License-Identifier: BSD-3-Clause
/* The device's side of offload_eight.c: eight computations after table 2.5 of seed 000. Each function
 * does its part of a step and returns a number that depends on all that it has computed, so that
 * a step that is lost, repeated or done on old data shows in the checksum of the whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hale_offload.h"
#include "offload_eight.h"

static const struct eight_step *step_of(struct hale_call *c)
{
	return c->args;
}

static void part_of(const struct eight_step *s, unsigned all, unsigned *from, unsigned *to)
{
	*from = (unsigned)((unsigned long)all * s->part / s->parts);
	*to = (unsigned)((unsigned long)all * (s->part + 1) / s->parts);
}

static void give(struct hale_call *c, double value)
{
	memcpy(c->result, &value, sizeof(value));
}

/* The buffer that a step reads, and the one that it writes, change places with each step. */
static void *source(struct hale_call *c)
{
	return c->buffer[step_of(c)->step % 2];
}

static void *target(struct hale_call *c)
{
	return c->buffer[(step_of(c)->step + 1) % 2];
}

/* MD, molecular dynamics: n particles in a box, a softened Lennard-Jones force between all pairs. */
void md(struct hale_call *c)
{
	const struct eight_step *s = step_of(c);
	const double (*now)[6] = source(c);
	double (*next)[6] = target(c), energy = 0;
	unsigned from, to;

	part_of(s, s->n, &from, &to);
	for (unsigned i = from; i < to; i++) {
		double force[3] = {0};

		for (unsigned k = 0; k < s->n; k++) {
			double d[3], r2 = 0.05;

			for (int x = 0; x < 3; x++)
				d[x] = now[i][x] - now[k][x], r2 += d[x] * d[x];
			double r6 = 1 / (r2 * r2 * r2), f = k == i ? 0 : r6 * (r6 * 1e-6 - 1e-4);

			for (int x = 0; x < 3; x++)
				force[x] += f * d[x];
		}
		for (int x = 0; x < 3; x++) {
			next[i][3 + x] = now[i][3 + x] + 1e-4 * force[x];
			next[i][x] = now[i][x] + 1e-4 * next[i][3 + x];
			energy += next[i][3 + x] * next[i][3 + x];
		}
	}
	give(c, energy);
}

/* MC, Monte Carlo: points in the unit square. Each part's generator is private, on the heap. */
void mc(struct hale_call *c)
{
	static unsigned long *state[EIGHT_PARTS];
	const struct eight_step *s = step_of(c);
	unsigned from, to;
	long inside = 0;

	if (!state[s->part]) {
		state[s->part] = malloc(sizeof(*state[0]));
		*state[s->part] = 88172645463325252ul + s->part;
	}
	part_of(s, s->n, &from, &to);
	for (unsigned i = from; i < to; i++) {
		unsigned long x = *state[s->part];

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		*state[s->part] = x;
		double a = (double)(x >> 32) / 4294967296.0, b = (double)(x & 0xffffffff) / 4294967296.0;

		inside += a * a + b * b < 1;
	}
	give(c, (double)inside);
}

/* SG, a product of matrices in single precision: next = now × B / n. */
void sg(struct hale_call *c)
{
	const struct eight_step *s = step_of(c);
	const float *now = source(c), *b = c->buffer[2];
	float *next = target(c);
	unsigned from, to;
	double sum = 0;

	part_of(s, s->n, &from, &to);
	for (unsigned i = from; i < to; i++)
		for (unsigned k = 0; k < s->n; k++) {
			float x = 0;

			for (unsigned j = 0; j < s->n; j++)
				x += now[i * s->n + j] * b[j * s->n + k];
			sum += next[i * s->n + k] = 2 * x / (float)s->n;
		}
	give(c, sum);
}

/* SS, a search for strings in a large text: one pattern a step; each hit is marked in the text. */
void ss(struct hale_call *c)
{
	const struct eight_step *s = step_of(c);
	unsigned char *text = c->buffer[0];
	unsigned char pattern[2] = {(unsigned char)('a' + s->step % 16),
				    (unsigned char)('a' + s->step / 16 % 16)};
	unsigned from, to;
	double hits = 0;

	part_of(s, s->n, &from, &to);
	for (unsigned i = from; i + 1 < to; i++)
		if (text[i] == pattern[0] && text[i + 1] == pattern[1]) {
			hits += 1 + i % 97;
			text[i] = (unsigned char)('a' + (i + s->step) % 16);
		}
	give(c, hits);
}

/* KM, k-means of n points. Sums of each cluster go back; the program moves the centres. */
void km(struct hale_call *c)
{
	const struct eight_step *s = step_of(c);
	const double (*point)[2] = c->buffer[0];
	double sums[EIGHT_CLUSTERS][3] = {0};
	unsigned from, to;

	part_of(s, s->n, &from, &to);
	for (unsigned i = from; i < to; i++) {
		double best = INFINITY;
		int at = 0;

		for (int k = 0; k < EIGHT_CLUSTERS; k++) {
			double x = point[i][0] - s->centre[k][0], y = point[i][1] - s->centre[k][1];

			if (x * x + y * y < best)
				best = x * x + y * y, at = k;
		}
		sums[at][0] += point[i][0], sums[at][1] += point[i][1], sums[at][2]++;
	}
	memcpy(c->result, sums, sizeof(sums));
}

/* JZ: Jacobi's iteration in two dimensions, zones of rows. */
void jz(struct hale_call *c)
{
	const struct eight_step *s = step_of(c);
	const double *now = source(c);
	double *next = target(c), change = 0;
	unsigned from, to, n = s->n;

	part_of(s, n - 2, &from, &to);
	for (unsigned i = from + 1; i < to + 1; i++)
		for (unsigned k = 1; k < n - 1; k++) {
			unsigned at = i * n + k;

			next[at] = 0.25 * (now[at - 1] + now[at + 1] + now[at - n] + now[at + n]);
			change += fabs(next[at] - now[at]);
		}
	give(c, change);
}

/* GZ: Gauss-Seidel with over-relaxation in place; red points in even steps, black ones in odd. */
void gz(struct hale_call *c)
{
	const struct eight_step *s = step_of(c);
	double *u = c->buffer[0], change = 0;
	unsigned from, to, n = s->n;

	part_of(s, n - 2, &from, &to);
	for (unsigned i = from + 1; i < to + 1; i++)
		for (unsigned k = 1 + (i + s->step) % 2; k < n - 1; k += 2) {
			unsigned at = i * n + k;
			double d = 0.25 * (u[at - 1] + u[at + 1] + u[at - n] + u[at + n]) - u[at];

			u[at] += 1.7 * d;
			change += fabs(d);
		}
	give(c, change);
}

/* HZ: heat in three dimensions, zones of planes. */
void hz(struct hale_call *c)
{
	const struct eight_step *s = step_of(c);
	const double *now = source(c);
	double *next = target(c), sum = 0;
	unsigned from, to, n = s->n, plane = n * n;

	part_of(s, n - 2, &from, &to);
	for (unsigned i = from + 1; i < to + 1; i++)
		for (unsigned j = 1; j < n - 1; j++)
			for (unsigned k = 1; k < n - 1; k++) {
				unsigned at = i * plane + j * n + k;

				next[at] = now[at] + 0.1 * (now[at - 1] + now[at + 1] + now[at - n] +
							    now[at + n] + now[at - plane] +
							    now[at + plane] - 6 * now[at]);
				sum += next[at];
			}
	give(c, sum);
}
