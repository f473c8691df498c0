/* SPDX-License-Identifier: BSD-3-Clause */
/* What libhale_task.so asks of MPI, and which MPI calls a task may make and be executed again. The
 * functions have no prototype that both could include: libhale_task.so finds them by name and goes
 * without when there is no MPI. */
#include "mpi/task/intask.h"

#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* A task begins on this thread. Returns what hale_tasks_close() needs. */
API void *hale_tasks_open(int protected)
{
	struct tasklog *outer = tasklog_now;

	tasklog_now = protected && api_state == API_RUNNING ? tasklog_open() : NULL;
	return outer;
}

/* It begins again, after an error. */
API void hale_tasks_again(void)
{
	if (tasklog_now)
		tasklog_again(tasklog_now);
}

API void hale_tasks_close(void *outer)
{
	struct tasklog *log = tasklog_now;

	tasklog_now = outer;
	if (!log)
		return;
	if (UNLIKELY(log->owned != NULL)) {
		intask_owned_leave(log);
		if (guard_multiple) {
			guard_enter();
			intask_owned_free();
			guard_leave();
		}
	}
	tasklog_close(log);
}

/* Is this thread inside of MPI? Async-signal-safe, like the next one. */
API int hale_tasks_inside(void)
{
	return guard_inside != 0;
}

/* Why the task of this thread can't be executed again; NULL: it can. */
API const char *hale_tasks_lost(void)
{
	return tasklog_now ? tasklog_now->lost : NULL;
}

/* Bytes in all, at most at one time; events that came out of logs, sends among them; ns. */
API void hale_tasks_totals(uint64_t to[5])
{
	to[0] = atomic_load(&tasklog_totals.bytes);
	to[1] = atomic_load(&tasklog_totals.peak);
	to[2] = atomic_load(&tasklog_totals.replayed);
	to[3] = atomic_load(&tasklog_totals.skipped);
	to[4] = atomic_load(&tasklog_totals.nanoseconds);
}

/* Tasks of this process are protected; their logs may hold so many bytes together. */
API void hale_tasks_limit(size_t bytes)
{
	tasklog_max = bytes;
	intask_landing_watch = true;
}

static void (*before_call)(void);

/* Called before each MPI call of a task that is protected. */
API void hale_tasks_before(void (*call)(void))
{
	before_call = call;
}

static void (*first_call)(void);

/* Called at the first MPI call of a task that is protected, before it does anything. */
API void hale_tasks_first(void (*call)(void))
{
	first_call = call;
}

/* Is any of that memory part of a window, so that others may write there? */
API int hale_tasks_window(const void *at, size_t bytes)
{
	return intask_landing_window(at, bytes);
}

/* Does something arrive, or can it, in that memory? Not to be asked inside of MPI. */
API int hale_tasks_landing(const void *at, size_t bytes)
{
	return intask_landing_in(at, bytes);
}

/* ---- calls ---- */

/* Kept in the log, or without a trace outside of the calling task. In alphabetical order. */
static const char *const repeatable[] = {
    "Accumulate",
    "Address",
    "Allgather",
    "Allgatherv",
    "Allreduce",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Attr_get",
    "Barrier",
    "Bcast",
    "Bsend",
    "Bsend_init",
    "Cart_coords",
    "Cart_create",
    "Cart_get",
    "Cart_map",
    "Cart_rank",
    "Cart_shift",
    "Cart_sub",
    "Cartdim_get",
    "Comm_compare",
    "Comm_create",
    "Comm_dup",
    "Comm_free",
    "Comm_get_attr",
    "Comm_get_errhandler",
    "Comm_get_info",
    "Comm_get_name",
    "Comm_get_parent",
    "Comm_group",
    "Comm_rank",
    "Comm_remote_group",
    "Comm_remote_size",
    "Comm_size",
    "Comm_split",
    "Comm_split_type",
    "Comm_test_inter",
    "Compare_and_swap",
    "Dims_create",
    "Errhandler_get",
    "Error_class",
    "Error_string",
    "Exscan",
    "Fetch_and_op",
    "Gather",
    "Gatherv",
    "Get",
    "Get_accumulate",
    "Get_address",
    "Get_count",
    "Get_elements",
    "Get_elements_x",
    "Get_library_version",
    "Get_processor_name",
    "Get_version",
    "Graph_get",
    "Graph_map",
    "Graph_neighbors",
    "Graph_neighbors_count",
    "Graphdims_get",
    "Group_compare",
    "Group_difference",
    "Group_excl",
    "Group_free",
    "Group_incl",
    "Group_intersection",
    "Group_range_excl",
    "Group_range_incl",
    "Group_rank",
    "Group_size",
    "Group_translate_ranks",
    "Group_union",
    "Iallgather",
    "Iallgatherv",
    "Iallreduce",
    "Ialltoall",
    "Ialltoallv",
    "Ialltoallw",
    "Ibarrier",
    "Ibcast",
    "Ibsend",
    "Iexscan",
    "Igather",
    "Igatherv",
    "Improbe",
    "Imrecv",
    "Iprobe",
    "Irecv",
    "Ireduce",
    "Ireduce_scatter",
    "Ireduce_scatter_block",
    "Irsend",
    "Iscan",
    "Iscatter",
    "Iscatterv",
    "Isend",
    "Issend",
    "Mprobe",
    "Mrecv",
    "Op_commutative",
    "Op_free",
    "Pack",
    "Pack_external",
    "Pack_external_size",
    "Pack_size",
    "Parrived",
    "Pcontrol",
    "Pready",
    "Pready_list",
    "Pready_range",
    "Probe",
    "Put",
    "Raccumulate",
    "Recv",
    "Recv_init",
    "Reduce",
    "Reduce_local",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Request_free",
    "Request_get_status",
    "Rget",
    "Rget_accumulate",
    "Rput",
    "Rsend",
    "Rsend_init",
    "Scan",
    "Scatter",
    "Scatterv",
    "Send",
    "Send_init",
    "Sendrecv",
    "Sendrecv_replace",
    "Ssend",
    "Ssend_init",
    "Start",
    "Startall",
    "Test",
    "Test_cancelled",
    "Testall",
    "Testany",
    "Testsome",
    "Topo_test",
    "Type_commit",
    "Type_contiguous",
    "Type_create_darray",
    "Type_create_hindexed",
    "Type_create_hindexed_block",
    "Type_create_hvector",
    "Type_create_indexed_block",
    "Type_create_resized",
    "Type_create_struct",
    "Type_create_subarray",
    "Type_dup",
    "Type_extent",
    "Type_free",
    "Type_get_attr",
    "Type_get_contents",
    "Type_get_envelope",
    "Type_get_extent",
    "Type_get_extent_x",
    "Type_get_name",
    "Type_get_true_extent",
    "Type_get_true_extent_x",
    "Type_hindexed",
    "Type_hvector",
    "Type_indexed",
    "Type_lb",
    "Type_match_size",
    "Type_size",
    "Type_size_x",
    "Type_struct",
    "Type_ub",
    "Type_vector",
    "Unpack",
    "Unpack_external",
    "Wait",
    "Waitall",
    "Waitany",
    "Waitsome",
    "Win_complete",
    "Win_fence",
    "Win_flush",
    "Win_flush_all",
    "Win_flush_local",
    "Win_flush_local_all",
    "Win_get_attr",
    "Win_get_group",
    "Win_get_info",
    "Win_get_name",
    "Win_lock",
    "Win_lock_all",
    "Win_post",
    "Win_set_name",
    "Win_shared_query",
    "Win_start",
    "Win_sync",
    "Win_test",
    "Win_unlock",
    "Win_unlock_all",
    "Win_wait",
};

static int name_compare(const void *key, const void *of)
{
	return strcmp(key, *(const char *const *)of);
}

/* The sentence lives as long as the process: one for each function, made at its first call. */
static const char *lost_by(const char *function)
{
	static struct {
		const char *_Atomic function;
		char why[80];
	} made[64];

	for (unsigned i = 0; i < ARRAY_LEN(made); i++) {
		const char *there = atomic_load(&made[i].function), *none = NULL;

		if (there == function)
			return made[i].why;
		if (there || !atomic_compare_exchange_strong(&made[i].function, &none, function))
			continue;
		strcpy(made[i].why, "in a task that has called ");
		strncat(made[i].why, function, 50);
		return made[i].why;
	}
	return "in a task with an MPI call that can't be repeated";
}

void intask_enter(const char *function)
{
	if (before_call)
		before_call();
	intask_owned_free();
	if (!tasklog_now->spoken && first_call)
		first_call();
	tasklog_now->spoken = true;
	if (tasklog_now->set_back)
		intask_persistent_set_back();
	if (bsearch(function + 4, repeatable, ARRAY_LEN(repeatable), sizeof(repeatable[0]),
		    name_compare))
		return;
	intask_lose(lost_by(function));
}
