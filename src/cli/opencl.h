/* SPDX-License-Identifier: BSD-3-Clause */
/* hale run --opencl, hale inject ecc: the OpenCL layer (ocl/) from the command line. */
#ifndef HALE_CLI_OPENCL_H
#define HALE_CLI_OPENCL_H

#include <stdbool.h>
#include "launch/options.h"

/* Whether --opencl is among the options (not the program's arguments) of hale run; takes it out. */
bool cli_opencl_asked(int *argc, char **argv);
/* Runs the job by run() with the layer in front of every OpenCL of it, and puts what the layer has
 * to report under "opencl" into the job's report. Returns the exit status. */
int cli_opencl_run(struct options *o, int (*run)(struct options *));
/* hale inject ecc PID [--epoch N] [--times N] */
int cli_opencl_inject(int argc, char **argv);

#endif
