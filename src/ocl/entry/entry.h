/* SPDX-License-Identifier: BSD-3-Clause */
/* entry/: what programs call: an entry point of OpenCL each, which looks the handles up, hands the
 * call on or makes a log entry of it (log/), and keeps the shadows true. Callbacks, mappings,
 * shared virtual memory. May call: log/, epoch/. Called by: the OpenCL loader, through layer.c. */
#ifndef HALE_OCL_ENTRY_ENTRY_H
#define HALE_OCL_ENTRY_ENTRY_H

#include "ocl/ocl.h"

/* ---- memory.c, kernel.c ---- */
struct mem *ocl_mem_of(cl_mem handle);
struct args *ocl_args_ref(struct args *a);
void ocl_args_unref(struct args *a);
/* Gives the runtime these arguments; all of them when it has none yet (fresh), also when some are
 * wrong: what they stand for may be gone, and the program sets others before the next launch. */
cl_int ocl_kernel_bind(struct kernel *k, struct args *a, bool fresh);
/* After a replay: it has the program's arguments again. */
void ocl_kernel_unbind(struct kernel *k);
void ocl_kernel_examine(struct kernel *k);
void ocl_kernel_fini(struct kernel *k);
void ocl_program_fini(struct ocl_program *p);
/* Gives real, made of the same language, the constants that were set before p's last build, or
 * (later) since. */
void ocl_program_specialize(const struct ocl_program *p, cl_program real, bool later);
/* What p is built with when the program says options; to be freed. NULL: as they are. */
char *ocl_program_options(const struct ocl_program *p, const char *options);
void ocl_mem_fini(struct mem *m);
/* Marks what a kernel with these arguments may write, and collects (held) what it uses. */
bool ocl_kernel_uses(struct kernel *k, struct args *a, struct ocl_entry *e);

/* ---- callback.c ---- */
cl_int ocl_callback_set(cl_event event, cl_int type,
			void(CL_CALLBACK *fn)(cl_event, cl_int, void *), void *data);
/* The event stands for another one of the runtime's now: callbacks wait for that. */
void ocl_callbacks_move(struct event *ev);
/* The thread that calls callbacks has something else to do: ocl_svm_free_due. Takes no lock of the
 * layer's. */
void ocl_callback_wake(void);

/* ---- svm_free.c: shared virtual memory that commands free ---- */
cl_int ocl_svm_free_issue(const struct ocl_entry *e, cl_command_queue q, cl_uint n,
			  const cl_event *w, cl_event *event);
bool ocl_svm_free_is_due(void);
/* Frees what commands have freed that have run; without the lock, since it may call a function of
 * the program's. */
void ocl_svm_free_due(void);
/* The same, and when it returns nobody else is at it: where the program has waited. */
void ocl_svm_free_settle(void);

/* ---- map.c, svm.c ---- */
/* Keeps records of mappings: begins one after a map has been issued. */
void ocl_map_begin(struct domain *d, struct ocl_entry *e);
/* Turns an unmapping into what it does to the memory object, before it is issued: a move in the
 * middle of that still finds the mapping, which is returned, to be forgotten when the runtime has
 * taken e. NULL: none. */
struct ocl_map *ocl_map_end(struct domain *d, struct ocl_entry *e);
void ocl_map_forget(struct domain *d, struct ocl_map *r);
/* A move is about to release what o is by now: where the program has mappings there it stays until
 * o ends. */
void ocl_map_lends(const struct ocl_object *o);
/* A command brings data to [at, at + size): mappings of which that is a part, in any context, are
 * written to, whatever the program has mapped them for. Those for reading, too, are used as pinned
 * memory for what is read from other objects. */
void ocl_map_takes(const void *at, size_t size);
/* Whether the program may have put something there: also where it has mapped pinned memory for
 * reading only, which programs take for their own (Rodinia's do). */
bool ocl_map_may_be_written(const struct ocl_map *r);
/* The runtime knows nothing of the mapping that e ends: it becomes what the program wrote there. */
void ocl_map_moved(struct ocl_entry *e);
/* The allocation of shared virtual memory in which address at lies, or NULL. */
struct mem *ocl_svm_at(struct domain *d, size_t at);
/* Whether all begin or lie in allocations. A count may be wrong, too: nothing is looked at behind
 * what is wrong. */
bool ocl_are_svm(cl_uint count, const void *const *pointers);
/* False: no memory to know it by. */
bool ocl_svm_add(struct domain *d, struct mem *m);
void ocl_svm_remove(struct domain *d, const struct mem *m);

#endif
