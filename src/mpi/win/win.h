/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/win/: the one-sided calls: argument checks, windows as objects. The work is rma/'s. This
 * header is for the files of the folder and for mpi/abi/. */
#ifndef HALE_MPI_WIN_WIN_H
#define HALE_MPI_WIN_WIN_H

#include "mpi/comm/comm.h"
#include "mpi/task/intask.h"
#include "rma/rma.h"

static inline struct win *win_of(MPI_Win h)
{
	return (struct win *)h;
}
static inline MPI_Win win_handle(struct win *w)
{
	return (MPI_Win)w;
}
static inline bool win_ok(const struct win *w)
{
	return LIKELY(object_is(w, OBJECT_WIN));
}

/* As API_LEAVE, with the window's handler; w NULL: there is no good window. */
static inline int win_leave(struct win *w, int rc, const char *function)
{
	profile_leave();
	guard_leave();
	return LIKELY(rc == MPI_SUCCESS)
		   ? rc
		   : errhandler_win_error(w, w ? w->errhandler : NULL, rc, function);
}
#define WIN_LEAVE(w, rc) win_leave((w), (rc), api_name)

/* Enters, and leaves if the window isn't one. */
#define WIN_ENTER(name, w, win)                                                                    \
	API_ENTER(name);                                                                           \
	struct win *w = win_of(win);                                                               \
	if (!win_ok(w))                                                                            \
	return WIN_LEAVE(NULL, MPI_ERR_WIN)

/* Calls of epochs inside tasks (mpi/task/): an execution after an error passes over those that have
 * happened, and gets their results. */
static inline bool win_again(const struct win *w, int *rc)
{
	return UNLIKELY(tasklog_now != NULL) && intask_call_again(w, rc);
}
static inline int win_done(const struct win *w, int rc)
{
	return UNLIKELY(tasklog_now != NULL) ? intask_call_done(w, rc) : rc;
}
/* After a call that ends operations of this process. */
static inline int win_over(const struct win *w, int rc)
{
	if (UNLIKELY(intask_landing_watch))
		intask_rma_over(w);
	return win_done(w, rc);
}

/* A member, or MPI_PROC_NULL. */
static inline int win_check_rank(const struct win *w, int rank)
{
	if (LIKELY((unsigned)rank < (unsigned)w->comm->size) || rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	return MPI_ERR_RANK;
}

#endif
