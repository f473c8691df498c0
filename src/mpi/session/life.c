/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's beginning and end, its info object, its error handler, its buffer. */
#include <string.h>
#include "mpi/env/env.h"
#include "mpi/p2p/p2p.h"
#include "mpi/session/session.h"

/* As large as Open MPI 5's. */
struct ompi_predefined_instance_t {
	struct mpi_session session;
	char pad[512 - sizeof(struct mpi_session)];
};
struct ompi_predefined_instance_t ompi_mpi_instance_null = {
    .session = {.obj = OBJECT_STATIC(OBJECT_SESSION, OBJECT_NULL)}};

int session_leave(struct mpi_session *s, int rc, const char *function)
{
	if (!session_ok(s))
		return api_leave(NULL, rc, function);
	profile_leave();
	guard_leave();
	return rc == MPI_SUCCESS
		   ? rc
		   : errhandler_run(s->errhandler, ERRHANDLER_SESSION, s, rc, function);
}

static const char *const levels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED",
				     "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"};

/* What the info object asks for; a program that asks for nothing may do everything. */
static int level_asked(const struct info *i)
{
	const char *text = i ? info_get(i, "thread_level") : NULL;
	for (size_t k = 0; text && k < ARRAY_LEN(levels); k++)
		if (!strcmp(text, levels[k]))
			return (int)k;
	return MPI_THREAD_MULTIPLE;
}

static struct mpi_session *session_new(int level, struct errhandler *e)
{
	struct mpi_session *s = heap_calloc(1, sizeof(ompi_mpi_instance_null));
	struct info *i = info_new();
	if (!s || !i || info_set(i, "thread_level", levels[level]) ||
	    info_set(i, "mpi_memory_alloc_kinds", "mpi,system")) {
		info_release(i);
		heap_free(s);
		return NULL;
	}
	object_init(&s->obj, OBJECT_SESSION);
	s->info = i;
	s->errhandler = e;
	object_retain(&e->obj);
	return s;
}

int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
	API_ENTER_ANYTIME("MPI_Session_init");
	struct errhandler *e = errhandler_of(errhandler);
	struct info *i = info == MPI_INFO_NULL ? NULL : info_of(info);
	if (!errhandler_fits(e, ERRHANDLER_SESSION))
		return API_FAIL(NULL, MPI_ERR_ARG);
	int rc = i && !info_ok(i) ? MPI_ERR_INFO : !session ? MPI_ERR_ARG : MPI_SUCCESS;
	int level = rc ? 0 : level_asked(i);
	api_leave(NULL, MPI_SUCCESS, api_name);
	if (!rc)
		rc = env_library_enter(level, &level, api_name);
	if (!rc) {
		guard_enter();
		struct mpi_session *s = session_new(level, e);
		guard_leave();
		if (s)
			*session = session_handle(s);
		else
			env_library_leave();
		rc = s ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	}
	return rc ? errhandler_run(e, ERRHANDLER_SESSION, &ompi_mpi_instance_null, rc, api_name)
		  : MPI_SUCCESS;
}
API_ALIAS(Session_init);

int PMPI_Session_finalize(MPI_Session *session)
{
	API_ENTER("MPI_Session_finalize");
	struct mpi_session *s = session ? session_of(*session) : NULL;
	void *buf;
	size_t size;
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	if (s->buffer) /* what is in it leaves first */
		match_buffer_detach(&s->buffer, &buf, &size);
	object_forget_fortran(&s->obj);
	errhandler_release(s->errhandler);
	info_release(s->info);
	s->obj.kind = OBJECT_FREED;
	session_release(s);
	*session = MPI_SESSION_NULL;
	api_leave(NULL, MPI_SUCCESS, api_name);
	env_library_leave();
	return MPI_SUCCESS;
}
API_ALIAS(Session_finalize);

int PMPI_Session_get_info(MPI_Session session, MPI_Info *info_used)
{
	API_ENTER("MPI_Session_get_info");
	struct mpi_session *s = session_of(session);
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	struct info *copy = info_used ? info_copy(s->info) : NULL;
	if (copy)
		*info_used = info_handle(copy);
	return SESSION_LEAVE(s, copy ? MPI_SUCCESS : info_used ? MPI_ERR_NO_MEM : MPI_ERR_ARG);
}
API_ALIAS(Session_get_info);

/* ---- error handlers ---- */

int PMPI_Session_create_errhandler(MPI_Session_errhandler_function *function,
				   MPI_Errhandler *errhandler)
{
	API_ENTER_ANYTIME("MPI_Session_create_errhandler");
	if (!function || !errhandler)
		return API_FAIL(NULL, MPI_ERR_ARG);
	struct errhandler *e = errhandler_new(ERRHANDLER_SESSION, ERRHANDLER_C, (void *)function);
	if (!e)
		return API_FAIL(NULL, MPI_ERR_NO_MEM);
	*errhandler = errhandler_handle(e);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Session_create_errhandler);

int PMPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler)
{
	API_ENTER("MPI_Session_set_errhandler");
	struct mpi_session *s = session_of(session);
	struct errhandler *e = errhandler_of(errhandler);
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	if (!errhandler_fits(e, ERRHANDLER_SESSION))
		return SESSION_LEAVE(s, MPI_ERR_ARG);
	object_retain(&e->obj);
	errhandler_release(s->errhandler);
	s->errhandler = e;
	return SESSION_LEAVE(s, MPI_SUCCESS);
}
API_ALIAS(Session_set_errhandler);

int PMPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler)
{
	API_ENTER("MPI_Session_get_errhandler");
	struct mpi_session *s = session_of(session);
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	if (!errhandler)
		return SESSION_LEAVE(s, MPI_ERR_ARG);
	object_retain(&s->errhandler->obj);
	*errhandler = errhandler_handle(s->errhandler);
	return SESSION_LEAVE(s, MPI_SUCCESS);
}
API_ALIAS(Session_get_errhandler);

int PMPI_Session_call_errhandler(MPI_Session session, int errorcode)
{
	API_ENTER("MPI_Session_call_errhandler");
	struct mpi_session *s = session_of(session);
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	SESSION_LEAVE(s, MPI_SUCCESS);
	errhandler_run(s->errhandler, ERRHANDLER_SESSION, s, errorcode, api_name);
	return MPI_SUCCESS;
}
API_ALIAS(Session_call_errhandler);

/* ---- buffers ---- */

int PMPI_Session_attach_buffer(MPI_Session session, void *buffer, int size)
{
	API_ENTER("MPI_Session_attach_buffer");
	struct mpi_session *s = session_of(session);
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	return SESSION_LEAVE(s, p2p_session_attach(s, buffer, size));
}
API_ALIAS(Session_attach_buffer);

int PMPI_Session_detach_buffer(MPI_Session session, void *buffer, int *size)
{
	API_ENTER("MPI_Session_detach_buffer");
	struct mpi_session *s = session_of(session);
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	return SESSION_LEAVE(s, p2p_session_detach(s, buffer, size));
}
API_ALIAS(Session_detach_buffer);

int PMPI_Session_flush_buffer(MPI_Session session)
{
	API_ENTER("MPI_Session_flush_buffer");
	struct mpi_session *s = session_of(session);
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	return SESSION_LEAVE(s, match_buffer_flush(s->buffer));
}
API_ALIAS(Session_flush_buffer);

int PMPI_Session_iflush_buffer(MPI_Session session, MPI_Request *request)
{
	API_ENTER("MPI_Session_iflush_buffer");
	struct mpi_session *s = session_of(session);
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	return SESSION_LEAVE(s, p2p_session_iflush(s, request));
}
API_ALIAS(Session_iflush_buffer);
