/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/: the MPI interface: argument checks, objects, bindings (Open MPI ABI). May call everything
 * below. Every MPI function has this shape:
 *
 *	int PMPI_Send(const void *buf, int count, MPI_Datatype type, int dst, int tag,
 *		      MPI_Comm comm)
 *	{
 *		API_ENTER("MPI_Send");
 *		struct comm *c = comm_of(comm);
 *		if (!comm_ok(c))
 *			return API_FAIL(NULL, MPI_ERR_COMM);
 *		…
 *		return API_LEAVE(c, match_send(…));
 *	}
 *	API_ALIAS(Send);
 */
#ifndef HALE_MPI_API_H
#define HALE_MPI_API_H

#include "ckpt/guard.h"
#include "ckpt/rank.h"
#include "coll/coll.h"
#include "deliver/tasklog.h"
#include "match/match.h"
#include "object/comm.h"
#include "object/op.h"
#include "mpi/profile/profile.h"

/* MPI_X is a weak alias of PMPI_X, so that profilers can stand in between. */
#define API_ALIAS(name)                                                                            \
	extern __typeof(PMPI_##name) MPI_##name __attribute__((weak, alias("PMPI_" #name)))

typedef enum api_state { API_BEFORE_INIT = 0, API_RUNNING, API_FINALIZED } api_state_t;
extern api_state_t api_state; /* mpi/env/init.c */

/* The sentence and the end for a call before MPI_Init or after MPI_Finalize (exit code 1, as
 * Open MPI does). */
void api_not_running(const char *function) __attribute__((noreturn, cold));

/* Not just another call (ckpt/rank.h, enum call_gate): says so, or counts it for a fault. */
void api_gate(const char *function) __attribute__((cold));
static inline bool api_gated(void)
{
	return atomic_load_explicit(&call_gate, memory_order_relaxed) != 0;
}

/* Handles the error through c's error handler (NULL: MPI_COMM_WORLD's; fatal by default: a
 * sentence naming function, communicator and class, then the job ends). Called outside the guard;
 * returns cls. */
int api_error(struct comm *c, int cls, const char *function) __attribute__((cold));

/* mpi/task/: this thread executes a task that may be executed again. */
void intask_enter(const char *function) __attribute__((cold));

#define API_ENTER(name)                                                                            \
	static const char api_name[] = name;                                                       \
	do {                                                                                       \
		if (UNLIKELY(api_gated()))                                                         \
			api_gate(api_name);                                                        \
		guard_enter();                                                                     \
		profile_enter(profile_class(name), api_name);                                                \
		if (UNLIKELY(tasklog_now != NULL))                                                 \
			intask_enter(api_name);                                                    \
	} while (0)

/* A function that may be called before MPI_Init and after MPI_Finalize. */
void api_gate_anytime(const char *function) __attribute__((cold));
#define API_ENTER_ANYTIME(name)                                                                    \
	static const char api_name[] = name;                                                       \
	do {                                                                                       \
		if (UNLIKELY(api_gated()))                                                         \
			api_gate_anytime(api_name);                                                \
		guard_enter();                                                                     \
		match_call.what = METER_OTHER;                                                     \
		match_call.function = api_name;                                                        \
	} while (0)

static inline int api_leave(struct comm *c, int rc, const char *function)
{
	profile_leave();
	guard_leave();
	return LIKELY(rc == MPI_SUCCESS) ? rc : api_error(c, rc, function);
}
#define API_LEAVE(c, rc) api_leave((c), (rc), api_name)
#define API_FAIL(c, cls) api_leave((c), (cls), api_name)

/* ---- handles to objects and back; only this part knows that handles are pointers ---- */
/* clang-format off */
static inline struct comm *comm_of(MPI_Comm h) { return (struct comm *)h; }
static inline MPI_Comm comm_handle(struct comm *c) { return (MPI_Comm)c; }
static inline struct group *group_of(MPI_Group h) { return (struct group *)h; }
static inline MPI_Group group_handle(struct group *g) { return (MPI_Group)g; }
static inline struct datatype *datatype_of(MPI_Datatype h) { return (struct datatype *)h; }
static inline MPI_Datatype datatype_handle(struct datatype *t) { return (MPI_Datatype)t; }
static inline struct op *op_of(MPI_Op h) { return (struct op *)h; }
static inline MPI_Op op_handle(struct op *o) { return (MPI_Op)o; }
static inline struct request *request_of(MPI_Request h) { return (struct request *)h; }
static inline MPI_Request request_handle(struct request *r) { return (MPI_Request)r; }
static inline struct match_message *message_of(MPI_Message h) { return (struct match_message *)h; }
static inline MPI_Message message_handle(struct match_message *m) { return (MPI_Message)m; }
static inline struct errhandler *errhandler_of(MPI_Errhandler h) { return (struct errhandler *)h; }
static inline MPI_Errhandler errhandler_handle(struct errhandler *e) { return (MPI_Errhandler)e; }
static inline struct info *info_of(MPI_Info h) { return (struct info *)h; }
static inline MPI_Info info_handle(struct info *i) { return (MPI_Info)i; }
/* clang-format on */

static inline bool comm_ok(const struct comm *c)
{
	return LIKELY(object_is(c, OBJECT_COMM));
}
static inline bool datatype_ok(const struct datatype *t)
{
	return LIKELY(object_is(t, OBJECT_DATATYPE));
}
static inline bool op_ok(const struct op *o)
{
	return LIKELY(object_is(o, OBJECT_OP));
}
static inline bool group_ok(const struct group *g)
{
	return LIKELY(object_is(g, OBJECT_GROUP));
}
/* MPI_REQUEST_NULL counts as a request. */
static inline bool request_ok(const struct request *r)
{
	return LIKELY(r && r->obj.kind == OBJECT_REQUEST);
}
static inline bool request_is_null(const struct request *r)
{
	return (r->obj.flags & OBJECT_NULL) != 0;
}

/* ---- checks used by many bindings: MPI_SUCCESS or the class ---- */
/* buffer, count, committed type */
static inline int check_buffer(const void *buf, MPI_Count count, const struct datatype *t)
{
	if (UNLIKELY(count < 0))
		return MPI_ERR_COUNT;
	if (UNLIKELY(!datatype_ok(t) || !t->committed))
		return MPI_ERR_TYPE;
	if (UNLIKELY(!buf && count > 0 && t->size > 0 && t->nblocks <= 1 && t->true_lb == 0))
		return MPI_ERR_BUFFER;
	return MPI_SUCCESS;
}
static inline int check_dest(int rank, const struct comm *c)
{
	if (LIKELY((unsigned)rank < (unsigned)c->peers) || rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	return MPI_ERR_RANK;
}
static inline int check_source(int rank, const struct comm *c)
{
	return rank == MPI_ANY_SOURCE ? MPI_SUCCESS : check_dest(rank, c);
}
enum { API_TAG_UB = 0x7fffffff };
static inline int check_send_tag(int tag)
{
	return LIKELY(tag >= 0) ? MPI_SUCCESS : MPI_ERR_TAG;
}
static inline int check_recv_tag(int tag)
{
	return LIKELY(tag >= 0 || tag == MPI_ANY_TAG) ? MPI_SUCCESS : MPI_ERR_TAG;
}
static inline int check_root(int root, const struct comm *c)
{
	return LIKELY((unsigned)root < (unsigned)c->size) ? MPI_SUCCESS : MPI_ERR_ROOT;
}

/* A communicator with c's members and topology, without c's attributes; collective over c. */
int comm_duplicate(struct comm *c, struct comm **copy);

/* Called by MPI_Init in this order and undone in reverse by MPI_Finalize; each in its own file. */
int comm_module_init(void);	/* mpi/comm: MPI_COMM_WORLD, SELF; predefined attributes, groups */
void comm_module_fini(void);	/* deletes attributes of COMM_SELF first (MPI-3.1 8.7.1) */
void comm_module_leave(bool stays); /* before it: attributes go, and all of the world have come */
int datatype_module_init(void); /* what predefined types and ops need at run time */

/* Fortran and C++: any object's integer handle, and back (mpi/abi/handles.c). */
int object_to_fortran(struct object *o);
struct object *object_from_fortran(int index, enum object_kind kind); /* NULL: no such */
void object_forget_fortran(struct object *o);			      /* called by every destroy */
/* Set at the first conversion from Fortran: the Fortran library is at work. It takes the integer of
 * a new group without asking, so from then on groups get theirs when they are made. */
extern bool object_fortran_used;

#endif
