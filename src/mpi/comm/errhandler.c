/* SPDX-License-Identifier: BSD-3-Clause */
/* Error handlers: the objects, what running one means, and the way every failing call takes. */
#include <stdarg.h>
#include "base/fmt.h"
#include "io/io.h"
#include "mpi/comm/comm.h"
#include "mpi/env/env.h"

/* MPI-3.1 13.7: files start with MPI_ERRORS_RETURN; the default is what MPI_FILE_NULL has. NULL
 * until it is changed. */
static struct errhandler *file_default;

struct errhandler *errhandler_new(enum errhandler_target target, enum errhandler_language language,
				  void *function)
{
	struct errhandler *e = heap_calloc(1, ERRHANDLER_BYTES);
	if (!e)
		return NULL;
	object_init(&e->obj, OBJECT_ERRHANDLER);
	e->action = ERRHANDLER_CALL;
	e->target = target;
	e->language = language;
	e->comm_fn = e->file_fn = e->win_fn = (errhandler_c_t *)function;
	e->fortran_fn = (errhandler_fortran_t *)function;
	return e;
}

void errhandler_release(struct errhandler *e)
{
	if (!e || !object_drop(&e->obj))
		return;
	object_forget_fortran(&e->obj);
	e->obj.kind = OBJECT_FREED;
	heap_free(e);
}

static const char *code_text(int code)
{
	const char *text = error_text(code);
	return text && *text ? text : "an error of the program's own";
}

static void abort_job(enum errhandler_target target, void *object, int code, const char *function)
{
	const struct comm *c = target == ERRHANDLER_COMM ? object : NULL;
	const char *name = target == ERRHANDLER_WIN    ? " on a window"
			   : target == ERRHANDLER_FILE ? " on a file"
			   : target == ERRHANDLER_SESSION ? " on a session"
			   : c && !c->name[0]	       ? " on a communicator without a name"
						       : "";
	char prefix[32];
	if (log_level() < LOG_WARN)
		log_set_level(LOG_WARN); /* the last words are never left out */
	fmt_print(prefix, sizeof(prefix), "rank %u: ", link_self()->rank);
	log_set_prefix(prefix);
	log_warn("%s%s%s failed: %s; its error handler is MPI_ERRORS_ARE_FATAL, so the job ends",
		 function ? function : "a call of MPI", c && c->name[0] ? " on " : name,
		 c && c->name[0] ? c->name : "", code_text(code));
	link_abort(code);
}

static void call_user(struct errhandler *e, enum errhandler_target target, void *object, int code,
		      const char *function)
{
	errhandler_c_t *fn = target == ERRHANDLER_WIN	 ? e->win_fn
			     : target == ERRHANDLER_FILE ? e->file_fn
							 : e->comm_fn;
	if (!fn) /* MPI::ERRORS_THROW_EXCEPTIONS in a program without the C++ bindings */
		abort_job(target, object, code, function);
	if (e->language == ERRHANDLER_FORTRAN) {
		MPI_Fint handle = object_to_fortran(object), fcode = code;
		e->fortran_fn(&handle, &fcode);
	} else if (e->language == ERRHANDLER_CXX && e->cxx_fn) {
		e->cxx_fn(&object, &code, function, (void *)fn);
	} else {
		fn(&object, &code, function, NULL);
	}
}

int errhandler_run(struct errhandler *e, enum errhandler_target target, void *object, int code,
		   const char *function)
{
	if (!e || e->action == ERRHANDLER_ABORT)
		abort_job(target, object, code, function);
	if (e->action == ERRHANDLER_CALL) {
		object_retain(&e->obj); /* the handler may free itself */
		call_user(e, target, object, code, function);
		errhandler_release(e);
	}
	return code;
}

int api_error(struct comm *c, int cls, const char *function)
{
	if (api_state != API_RUNNING)
		return env_error(cls, function);
	if (!c || !comm_ok(c))
		c = COMM_WORLD;
	return errhandler_run(c->errhandler, ERRHANDLER_COMM, c, cls, function);
}

int errhandler_file_error(int code, const char *function)
{
	struct errhandler *e = file_default ? file_default : errhandler_of(MPI_ERRORS_RETURN);
	return errhandler_run(e, ERRHANDLER_FILE, MPI_FILE_NULL, code, function);
}

/* window NULL: a bad one, whose errors go to MPI_COMM_WORLD's handler. */
int errhandler_win_error(void *window, struct errhandler *e, int code, const char *function)
{
	return window ? errhandler_run(e, ERRHANDLER_WIN, window, code, function)
		      : api_error(NULL, code, function);
}

struct errhandler *errhandler_file_default(void)
{
	return file_default ? file_default : errhandler_of(MPI_ERRORS_RETURN);
}

void errhandler_file_default_set(struct errhandler *e)
{
	object_retain(&e->obj);
	errhandler_release(file_default);
	file_default = e;
}

/* ---- what Debian's C++ and Fortran libraries import ---- */

struct errhandler *ompi_errhandler_create(int target, void *function, int language);
int ompi_errhandler_invoke(void *errhandler, void *object, int type, int code, const char *message);
void ompi_mpi_errors_are_fatal_comm_handler(struct comm **c, int *code, ...);

struct errhandler *ompi_errhandler_create(int target, void *function, int language)
{
	guard_enter();
	struct errhandler *e = errhandler_new((enum errhandler_target)target,
					      (enum errhandler_language)language, function);
	guard_leave();
	return e ? e : errhandler_of(MPI_ERRHANDLER_NULL);
}

/* The first and third argument are fields that those libraries read out of Open MPI's objects; ours
 * say themselves what they are. */
int ompi_errhandler_invoke(void *errhandler, void *object, int type, int code, const char *message)
{
	const struct object *o = object;
	(void)errhandler;
	(void)type;
	if (o && o->kind == OBJECT_FILE) {
		struct errhandler *e =
		    o->flags & OBJECT_NULL ? NULL : ((struct file *)object)->errhandler;
		return e ? errhandler_run(e, ERRHANDLER_FILE, object, code, message)
			 : errhandler_file_error(code, message);
	}
	return api_error(o && o->kind == OBJECT_COMM ? object : NULL, code, message);
}

void ompi_mpi_errors_are_fatal_comm_handler(struct comm **c, int *code, ...)
{
	va_list ap;
	va_start(ap, code);
	const char *function = va_arg(ap, const char *);
	va_end(ap);
	abort_job(ERRHANDLER_COMM, c ? *c : NULL, code ? *code : MPI_ERR_UNKNOWN, function);
}
