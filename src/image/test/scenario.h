/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs under test: functions in the test's own executable, run in a process of their own.
 * Each brings itself into some state, calls take(), and then checks that everything is as it was.
 * It runs on twice, in the captured process and in one rebuilt from the image, and has to exit
 * with 0 both times.
 */
#ifndef HALE_IMAGE_TEST_SCENARIO_H
#define HALE_IMAGE_TEST_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "image/image.h"

struct scenario {
	const char *name;
	void (*run)(void);
};

extern const struct scenario scenarios_memory[], scenarios_kernel[], scenarios_threads[],
    scenarios_rest[], scenarios_live[], scenarios_sockets[];

enum { PATH_LEN = 512 };

/* From the environment that the test has given to this process: the folder of this run, and words
 * that say how to do things. False: there is none, this is the test itself. */
extern char scenario_folder[PATH_LEN - 64];
extern const char *scenario_mode;
bool scenario_enter(void);
/* The one of that name in n lists: 0 when it has run, 2: there is none. */
int scenario_run(const struct scenario *const *all, size_t n, const char *name);

/* Captures; true in the restored process. Image n is DIR/n, complete when it returns. */
bool take(void);
uint32_t taken(void); /* how many in this life and the ones before it */
/* Of a live image (live_roles.c): called after each round but the last, with all threads running.
 */
extern void (*between)(unsigned round);
/* The folder of this run, for files. */
const char *folder(void);
const char *in_folder(const char *name);

/* Ends the scenario with a sentence. */
#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x);            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* ---- memory that can be told from other memory: words made from a seed ---- */

static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 29;
	return x;
}

static inline void fill(void *p, size_t len, uint64_t seed)
{
	uint64_t *w = p;
	for (size_t i = 0; i < len / 8; i++)
		w[i] = mix(seed + i);
}

static inline bool filled(const void *p, size_t len, uint64_t seed)
{
	const uint64_t *w = p;
	for (size_t i = 0; i < len / 8; i++)
		if (w[i] != mix(seed + i))
			return false;
	return true;
}

static inline bool zero(const void *p, size_t len)
{
	const char *c = p;
	for (size_t i = 0; i < len; i++)
		if (c[i])
			return false;
	return true;
}

#endif
