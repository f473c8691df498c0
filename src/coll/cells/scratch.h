/* SPDX-License-Identifier: BSD-3-Clause */
/* Temporary memory of collectives, kept for the next one: large blocks of base/heap.h are mappings,
 * and mapping, faulting and unmapping them would cost more than the operation. */
#ifndef HALE_COLL_SCRATCH_H
#define HALE_COLL_SCRATCH_H

#include <stddef.h>

void *scratch_get(size_t bytes); /* NULL: no memory */
void scratch_put(void *p);	 /* NULL is fine */
void scratch_fini(void);

#endif
