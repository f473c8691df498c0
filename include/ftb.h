/* SPDX-License-Identifier: BSD-3-Clause */
/* The name that FTB 0.6.2 gave to its header. */
#include <libftb.h>
