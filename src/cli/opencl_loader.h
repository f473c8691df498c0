/* SPDX-License-Identifier: BSD-3-Clause */
/* The OpenCL loader (libOpenCL.so.1) that the program of `hale run --opencl` gets. Layers are the
 * loader's doing: ocl-icd and Khronos' have them, CUDA's has not, and would leave the program alone
 * with its device without a word. */
#ifndef HALE_CLI_OPENCL_LOADER_H
#define HALE_CLI_OPENCL_LOADER_H

#include <stdbool.h>

/* Sees to it, by LD_PRELOAD, that programs started from here on get a loader that has layers.
 * False, and said on stderr, if there is a loader but none that has them. */
bool opencl_loader_set(void);

#endif
