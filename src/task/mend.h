/* SPDX-License-Identifier: BSD-3-Clause */
/* A page that memory has lost is replaced by one with the same content, as far as there are copies.
 */
#ifndef HALE_TASK_MEND_H
#define HALE_TASK_MEND_H

#include "task/task.h"

/* In the signal's handler of the thread that f runs on. False: something in that page is declared
 * by no task, or its only copy is older than the data; then nothing has been changed. */
bool task_mend_page(struct task_frame *f, void *address);

#endif
