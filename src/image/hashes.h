/* SPDX-License-Identifier: BSD-3-Clause */
/* Which pages changed since the last capture, found by comparing checksums, where the kernel
 * doesn't track writes. The process only makes room; the writing child computes, so the pause
 * stays that of a fork. */
#ifndef HALE_IMAGE_HASHES_H
#define HALE_IMAGE_HASHES_H

#include "image/capture.h"

/* Before the memory map is read: gives back what nobody compares with any more. */
void hashes_tidy(void);
/* With the process stopped, in place of tracking by the kernel. */
void hashes_renew(struct capture *c);
/* In the writing child, before pages are selected: fills c->written. */
bool hashes_compare(struct capture *c);
void hashes_forget(void);

#endif
