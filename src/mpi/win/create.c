/* SPDX-License-Identifier: BSD-3-Clause */
/* Making and freeing windows. */
#include <string.h>
#include "deliver/redundant.h"
#include "mpi/task/intask.h"
#include "mpi/win/win.h"

struct win_wish {
	struct comm *comm;
	const struct info *info;
	int flavor;
	void *base;
	MPI_Aint size;
	int unit;
};

static int win_check(struct win_wish *wish, MPI_Comm comm, MPI_Info info, const void *out)
{
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return MPI_ERR_COMM;
	wish->comm = c;
	if (comm_is_inter(c))
		return MPI_ERR_COMM;
	if (info != MPI_INFO_NULL && !info_ok(info_of(info)))
		return MPI_ERR_INFO;
	wish->info = info == MPI_INFO_NULL ? NULL : info_of(info);
	if (!out)
		return MPI_ERR_WIN;
	if (wish->size < 0)
		return MPI_ERR_SIZE;
	if (wish->unit <= 0)
		return MPI_ERR_DISP;
	return MPI_SUCCESS;
}

static int win_attributes(struct win *w)
{
	union attr_value base = {.pointer = w->base}, size = {.aint = (MPI_Aint)w->part.bytes};
	union attr_value unit = {.aint = (MPI_Aint)w->part.unit}, flavor = {.aint = w->flavor};
	union attr_value model = {.aint = MPI_WIN_UNIFIED};
	int rc = attr_window_put(&w->attrs, MPI_WIN_BASE, ATTR_C, base);
	if (!rc)
		rc = attr_window_put(&w->attrs, MPI_WIN_SIZE, ATTR_FORTRAN_AINT, size);
	if (!rc)
		rc = attr_window_put(&w->attrs, MPI_WIN_DISP_UNIT, ATTR_FORTRAN_INT, unit);
	if (!rc)
		rc = attr_window_put(&w->attrs, MPI_WIN_CREATE_FLAVOR, ATTR_FORTRAN_INT, flavor);
	if (!rc)
		rc = attr_window_put(&w->attrs, MPI_WIN_MODEL, ATTR_FORTRAN_INT, model);
	return rc;
}

static bool info_true(const struct info *i, const char *key)
{
	const char *value = i ? info_get(i, key) : NULL;
	return value && !strcmp(value, "true");
}

static int win_make(struct win_wish *wish, struct win **out)
{
	struct comm *own;
	struct win *w;
	int rc = comm_make(wish->comm, wish->comm->group, &own);
	if (rc)
		return rc;
	if (wish->flavor == MPI_WIN_FLAVOR_CREATE || wish->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		rc = rma_win_create(own, wish->flavor, wish->base, (size_t)wish->size, wish->unit,
				    &w);
	else
		rc = rma_win_allocate(own, wish->flavor, (size_t)wish->size, wish->unit,
				      !info_true(wish->info, "alloc_shared_noncontig"), &w);
	if (rc) {
		comm_end(own);
		return rc;
	}
	w->errhandler = errhandler_of(MPI_ERRORS_ARE_FATAL);
	w->info = info_copy(wish->info);
	rc = win_attributes(w);
	if (wish->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		intask_landing_memory(w, w->base, (size_t)wish->size);
	*out = w;
	return rc;
}

static int win_create(struct win_wish *wish, MPI_Comm comm, MPI_Info info, MPI_Win *win)
{
	struct win *w = NULL;
	int rc = win_check(wish, comm, info, win);
	if (!rc && redundant_on) {
		log_warn(
		    "rank %u makes a window: one-sided communication doesn't go with --replicas; "
		    "run the job without",
		    link_self()->rank);
		rc = MPI_ERR_UNSUPPORTED_OPERATION;
	}
	if (!rc)
		rc = win_make(wish, &w);
	if (win)
		*win = rc ? MPI_WIN_NULL : win_handle(w);
	return rc;
}

int PMPI_Win_create(void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
		    MPI_Win *win)
{
	API_ENTER("MPI_Win_create");
	struct win_wish wish = {
	    .flavor = MPI_WIN_FLAVOR_CREATE, .base = base, .size = size, .unit = disp_unit};
	int rc = win_create(&wish, comm, info, win);
	return API_LEAVE(wish.comm, rc);
}
API_ALIAS(Win_create);

int PMPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
	API_ENTER("MPI_Win_create_dynamic");
	struct win_wish wish = {.flavor = MPI_WIN_FLAVOR_DYNAMIC, .unit = 1};
	int rc = win_create(&wish, comm, info, win);
	return API_LEAVE(wish.comm, rc);
}
API_ALIAS(Win_create_dynamic);

static int win_allocate(int flavor, MPI_Aint size, int disp_unit, MPI_Info info, struct comm **c,
			MPI_Comm comm, void *baseptr, MPI_Win *win)
{
	struct win_wish wish = {.flavor = flavor, .size = size, .unit = disp_unit};
	int rc = baseptr ? win_create(&wish, comm, info, win) : MPI_ERR_ARG;
	if (!rc)
		memcpy(baseptr, &win_of(*win)->base, sizeof(void *));
	*c = wish.comm;
	return rc;
}

int PMPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr,
		      MPI_Win *win)
{
	API_ENTER("MPI_Win_allocate");
	struct comm *c;
	int rc =
	    win_allocate(MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, info, &c, comm, baseptr, win);
	return API_LEAVE(c, rc);
}
API_ALIAS(Win_allocate);

int PMPI_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
			     void *baseptr, MPI_Win *win)
{
	API_ENTER("MPI_Win_allocate_shared");
	struct comm *c;
	int rc = win_allocate(MPI_WIN_FLAVOR_SHARED, size, disp_unit, info, &c, comm, baseptr, win);
	return API_LEAVE(c, rc);
}
API_ALIAS(Win_allocate_shared);

int PMPI_Win_free(MPI_Win *win)
{
	API_ENTER("MPI_Win_free");
	struct win *w = win ? win_of(*win) : NULL;
	if (!win_ok(w))
		return WIN_LEAVE(NULL, MPI_ERR_WIN);
	if (w->exposed || w->locks || w->access > RMA_ACCESS_FENCE)
		return WIN_LEAVE(w, MPI_ERR_RMA_SYNC);
	int rc = attr_delete_all(ATTR_WIN, w, &w->attrs);
	if (rc)
		return WIN_LEAVE(w, rc);
	rc = rma_win_close(w);
	intask_landing_forget(w);
	comm_end(w->comm);
	info_release(w->info);
	struct errhandler *e = w->errhandler;
	object_forget_fortran(&w->obj);
	w->obj.kind = OBJECT_FREED;
	heap_free(w);
	*win = MPI_WIN_NULL;
	errhandler_release(e);
	return WIN_LEAVE(NULL, rc);
}
API_ALIAS(Win_free);

int PMPI_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
	WIN_ENTER("MPI_Win_attach", w, win);
	if (size < 0 || (!base && size))
		return WIN_LEAVE(w, size < 0 ? MPI_ERR_SIZE : MPI_ERR_BASE);
	int rc = rma_attach(w, base, (size_t)size);
	if (!rc)
		intask_landing_memory(base, base, (size_t)size);
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_attach);

int PMPI_Win_detach(MPI_Win win, const void *base)
{
	WIN_ENTER("MPI_Win_detach", w, win);
	if (!base)
		return WIN_LEAVE(w, MPI_ERR_BASE);
	int rc = rma_detach(w, base);
	if (!rc)
		intask_landing_forget(base);
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_detach);

int PMPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *disp_unit, void *baseptr)
{
	WIN_ENTER("MPI_Win_shared_query", w, win);
	size_t bytes;
	void *base;
	if (!size || !disp_unit || !baseptr)
		return WIN_LEAVE(w, MPI_ERR_ARG);
	int rc = win_check_rank(w, rank);
	if (!rc)
		rc = rma_shared_query(w, rank, &bytes, disp_unit, &base);
	if (rc)
		return WIN_LEAVE(w, rc);
	*size = (MPI_Aint)bytes;
	memcpy(baseptr, &base, sizeof(base));
	return WIN_LEAVE(w, MPI_SUCCESS);
}
API_ALIAS(Win_shared_query);
