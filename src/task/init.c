// SPDX-License-Identifier: BSD-3-Clause
/* The beginning of libhale_task.so in a process. */
#include "task/task.h"

#include <stdlib.h>
#include "node/guest.h"
#include "task/check.h"
#include "task/fault.h"

__attribute__((constructor)) static void begin(void)
{
	const char *settings = getenv("HALE_TASKS"), *due = getenv("HALE_TASKS_DUE");
	struct task_due d;
	char why[160];

	log_init_from_env();
	hale_guest_log();
	if (!task_settings_read(&task_settings, settings ? settings : "", why))
		log_warn("HALE_TASKS is %s", why);
	if (due && !task_due_read(&d, due, why))
		log_warn("HALE_TASKS_DUE is %s", why);
	else if (due)
		task_due_set(&d);
	task_job_init();
	task_count_init();
	task_mpi_init();
	task_due_init();
	task_fault_init();
	task_check_init();
	task_omp_init();
}
