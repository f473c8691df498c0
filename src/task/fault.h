/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALE_TASK_FAULT_H
#define HALE_TASK_FAULT_H

#include "task/task.h"

void task_fault_init(void);
/* For tests: whoever touches that page next meets a memory error. Async-signal-safe. */
bool task_fault_take_page(void *address);
/* The page has been made anew: another thread that met it as lost, too, only tries again. */
void task_fault_page_is_back(void *page);

#endif
