/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALE_TASK_FAULT_H
#define HALE_TASK_FAULT_H

#include "task/task.h"

void task_fault_init(void);
/* For tests: whoever touches that page next meets a memory error. Async-signal-safe. */
bool task_fault_take_page(void *address);
/* In one step: `by`, a page, is in the place of a lost page, and another thread that met that, too,
 * only tries again. False: it can't be moved. */
bool task_fault_replace(void *page, void *by);

#endif
