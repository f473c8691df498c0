/* SPDX-License-Identifier: BSD-3-Clause */
/* The static data of the code under test: what lies in .data and .bss of this program. Each
 * simulated process has a copy of its own, which is put in place while it runs. The simulator's own
 * static data lie in another section (OWN). Large arrays without a value to keep (scratch buffers
 * of more than GLOBAL_MAX bytes) are shared. */
#ifndef HALE_SIMULATE_GLOBALS_H
#define HALE_SIMULATE_GLOBALS_H

#include <stdbool.h>
#include <stddef.h>

#define OWN __attribute__((section("simulate_own")))

enum { GLOBAL_MAX = 8000 };

struct globals;

/* Once, before anything of the code under test has run. */
struct globals *globals_find(void);
/* Between two worlds: some have changed that had been taken for constant. They are as at the
 * beginning again, and are exchanged from now on; the world has to be run again. */
bool globals_learn(struct globals *g);
size_t globals_size(const struct globals *g);
const char *globals_pristine(const struct globals *g); /* as at the beginning of a program */
void globals_save(const struct globals *g, char *copy);
void globals_load(const struct globals *g, const char *copy);

#endif
