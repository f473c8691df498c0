/* SPDX-License-Identifier: BSD-3-Clause */
/* Namespaces of events that have two names. */
#ifndef HALE_BASE_SPACES_H
#define HALE_BASE_SPACES_H

#include <stddef.h>

/* The other name of a namespace of len bytes, in capitals: seed 001, 3.3 calls "FTB-IPMI" and
 * "FTB-IB" what CIFTS's components call "FTB.FTB_IPMI" and "FTB.FTB_IB". Case doesn't matter. NULL:
 * it has no other. */
const char *spaces_other(const char *space, size_t len);

#endif
