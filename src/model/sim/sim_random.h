/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers for the simulator: xoshiro256++ (Blackman and Vigna), one generator per seed, run
 * and purpose, keyed through splitmix64. So a run's numbers depend on nothing but these three:
 * neither on which thread plays it nor on what was played before. */
#ifndef HALE_MODEL_SIM_RANDOM_H
#define HALE_MODEL_SIM_RANDOM_H

#include <math.h>
#include <stdint.h>

struct sim_random {
	uint64_t s[4];
};

static inline uint64_t sim_random_mix(uint64_t *x)
{
	uint64_t z = *x += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline void sim_random_init(struct sim_random *r, uint64_t seed, uint64_t run,
				   uint64_t purpose)
{
	uint64_t x = seed;

	/* each word passes through the mixer, so that neighbours share nothing */
	x = sim_random_mix(&x) ^ run;
	x = sim_random_mix(&x) ^ purpose;
	for (int i = 0; i < 4; i++)
		r->s[i] = sim_random_mix(&x);
}

static inline uint64_t sim_random_bits(struct sim_random *r)
{
	uint64_t *s = r->s, sum = s[0] + s[3], t = s[1] << 17;
	uint64_t bits = ((sum << 23) | (sum >> 41)) + s[0];

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return bits;
}

/* In (0, 1]: 2^53 values, never 0, so that its logarithm is finite. */
static inline double sim_random_unit(struct sim_random *r)
{
	return (double)((sim_random_bits(r) >> 11) + 1) * 0x1p-53;
}

/* Exponential with mean 1. */
static inline double sim_random_exp(struct sim_random *r)
{
	return -log(sim_random_unit(r));
}

/* Uniform in [0, n), without bias (Lemire's multiply and reject). */
static inline uint32_t sim_random_below(struct sim_random *r, uint32_t n)
{
	uint64_t m = (sim_random_bits(r) >> 32) * n;

	if ((uint32_t)m < n)
		for (uint32_t least = -n % n; (uint32_t)m < least;)
			m = (sim_random_bits(r) >> 32) * n;
	return (uint32_t)(m >> 32);
}

#endif
