// SPDX-License-Identifier: BSD-3-Clause
/* Messages of tasks: Hale's MPI keeps them (src/mpi/task/link.c). It is found by name, since
 * programs without MPI have tasks, too. */
#include "task/task.h"

#include <dlfcn.h>
#include "task/check.h"
#include "task/family.h"

static void *none_open(int protected)
{
	return NULL;
}

static void none_again(void)
{
}

static void none_close(void *outer)
{
}

static int none_inside(void)
{
	return 0;
}

static const char *none_lost(void)
{
	return NULL;
}

static void none_totals(uint64_t to[5])
{
}

static int none_landing(const void *at, size_t bytes)
{
	return 0;
}

struct task_mpi task_mpi = {none_open, none_again,  none_close,	  none_inside,
			    none_lost, none_totals, none_landing, none_landing};

static bool find(void *to, const char *name)
{
	void *at = dlsym(RTLD_DEFAULT, name);

	if (at)
		*(void **)to = at;
	return at != NULL;
}

/* The task of this thread makes its first MPI call. */
static void mpi_first_call(void)
{
	struct task_frame *f = task_thread_frame();

	if (!f || !f->record)
		return;
	task_family_spoke(f->record);
	task_window_note(f);
}

void task_mpi_init(void)
{
	void (*limit)(size_t bytes), (*before)(void (*call)(void)), (*first)(void (*call)(void));
	struct task_mpi m;

	if (!find(&m.open, "hale_tasks_open") || !find(&m.again, "hale_tasks_again") ||
	    !find(&m.close, "hale_tasks_close") || !find(&m.inside, "hale_tasks_inside") ||
	    !find(&m.lost, "hale_tasks_lost") || !find(&m.totals, "hale_tasks_totals") ||
	    !find(&m.landing, "hale_tasks_landing") || !find(&limit, "hale_tasks_limit") ||
	    !find(&m.window, "hale_tasks_window") || !find(&first, "hale_tasks_first") ||
	    !find(&before, "hale_tasks_before"))
		return;
	task_mpi = m;
	first(mpi_first_call);
	limit(task_settings.log_max);
	if (task_settings.check_writes)
		before(task_check_leave);
}
