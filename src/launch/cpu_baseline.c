/* SPDX-License-Identifier: BSD-3-Clause */
/* --cpu-baseline: what libraries that choose functions by the processor read from the environment,
 * so that they choose none that another processor of the cluster lacks. A program that asks the
 * processor by itself is not reached. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "launch/options_private.h"

/* Names as glibc.cpu.hwcaps, OPENBLAS_CORETYPE and NPY_DISABLE_CPU_FEATURES have them. RTM: libc's
 * variants for it can't run where it is not. */
#define ABOVE_V4 "-RTM"
#define ABOVE_V3 "-AVX512F,-AVX512CD,-AVX512BW,-AVX512DQ,-AVX512VL," ABOVE_V4
#define ABOVE_V2 "-AVX,-AVX2,-BMI1,-BMI2,-FMA,-LZCNT,-MOVBE," ABOVE_V3
#define NPY_V4	 "AVX512_CLX AVX512_CNL AVX512_ICL"
#define NPY_V3	 "AVX512F AVX512CD AVX512_SKX " NPY_V4
#define NPY_V2	 "AVX F16C FMA3 AVX2 " NPY_V3

static const struct cpu_baseline {
	const char *name, *level, *libc, *blas, *numpy;
} baselines[] = {
    {"x86-64-v2", "2", ABOVE_V2, "Nehalem", NPY_V2},
    {"x86-64-v3", "3", ABOVE_V3, "Haswell", NPY_V3},
    {"x86-64-v4", "4", ABOVE_V4, "SkylakeX", NPY_V4},
};

static hale_status_t set(struct options *o, struct error *err, const char *name, const char *value)
{
	char *assignment;

	if (asprintf(&assignment, "%s=%s", name, value) < 0)
		assignment = NULL;
	return options_export(o, assignment, err);
}

/* Behind what the user has set there. */
static hale_status_t set_tunables(struct options *o, struct error *err, const char *hwcaps)
{
	const char *has = getenv("GLIBC_TUNABLES");
	char text[1024];

	if (snprintf(text, sizeof(text), "%s%sglibc.cpu.hwcaps=%s", has ? has : "",
		     has && *has ? ":" : "", hwcaps) >= (int)sizeof(text))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "GLIBC_TUNABLES is too long for --cpu-baseline to add to it");
	return set(o, err, "GLIBC_TUNABLES", text);
}

hale_status_t options_take_baseline(struct parser *p)
{
	for (size_t i = 0; i < ARRAY_LEN(baselines); i++) {
		const struct cpu_baseline *b = &baselines[i];
		hale_status_t status;

		if (strcmp(p->value, b->name) != 0)
			continue;
		status = set_tunables(p->o, p->err, b->libc);
		if (status == HALE_OK)
			status = set(p->o, p->err, "OPENBLAS_CORETYPE", b->blas);
		if (status == HALE_OK)
			status = set(p->o, p->err, "NPY_DISABLE_CPU_FEATURES", b->numpy);
		return status == HALE_OK ? set(p->o, p->err, "HALE_CPU_BASELINE", b->level)
					 : status;
	}
	return options_bad_value(p, "x86-64-v2, x86-64-v3 or x86-64-v4");
}
