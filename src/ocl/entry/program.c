/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs: how they came to be is kept, so that they can be made again on another device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/calls.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"

static struct ocl_program *program_add(cl_context c, cl_program handle)
{
	struct domain *d = ocl.passive ? NULL : ocl_find(c, OCL_CONTEXT);

	return d ? ocl_object_create(sizeof(struct ocl_program), OCL_PROGRAM, handle, d) : NULL;
}

static void *copy_bytes(const void *from, size_t size)
{
	void *to = from ? malloc(size ? size : 1) : NULL;

	if (to)
		memcpy(to, from, size);
	return to;
}

cl_program CL_API_CALL layer_clCreateProgramWithSource(cl_context c, cl_uint count,
						       const char **strings, const size_t *lengths,
						       cl_int *status)
{
	MADE_LOCKED;
	cl_program handle;
	struct ocl_program *p;
	size_t total = 0;
	cl_int code;

	MAKE_OF(c, OCL_CONTEXT, status,
		handle = NEXT->clCreateProgramWithSource(ocl_real(c, OCL_CONTEXT), count, strings,
							 lengths, &code));
	if (!handle)
		return handle;
	ocl_lock();
	p = program_add(c, handle);
	for (cl_uint i = 0; p && i < count; i++)
		total += lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
	if (p && (p->source = malloc(total + 1))) {
		for (cl_uint i = 0; i < count; i++) {
			size_t n = lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
			memcpy(p->source + p->source_len, strings[i], n);
			p->source_len += n;
		}
		p->source[p->source_len] = '\0';
	}
	ocl_unlock();
	return handle;
}

cl_program CL_API_CALL layer_clCreateProgramWithIL(cl_context c, const void *il, size_t size,
						   cl_int *status)
{
	MADE_LOCKED;
	cl_program handle;
	struct ocl_program *p;
	cl_int code;

	MAKE_OF(c, OCL_CONTEXT, status,
		handle = NEXT->clCreateProgramWithIL(ocl_real(c, OCL_CONTEXT), il, size, &code));
	if (!handle)
		return handle;
	ocl_lock();
	p = program_add(c, handle);
	if (p) {
		p->il = copy_bytes(il, size);
		p->il_len = size;
	}
	ocl_unlock();
	return handle;
}

/* After a move the program's devices stand for the one where its context lives. handle: a context
 * or a program. */
static const cl_device_id *devices_for(void *handle, ocl_kind_t kind, cl_uint *count,
				       const cl_device_id *list)
{
	struct ocl_object *o;
	struct domain *d;

	ocl_lock();
	o = ocl_find(handle, kind);
	d = o && kind == OCL_CONTEXT ? (struct domain *)o : o ? o->domain : NULL;
	if (d && d->away && list) {
		*count = 1;
		list = d->devices;
	}
	ocl_unlock();
	return list;
}

cl_program CL_API_CALL layer_clCreateProgramWithBinary(cl_context c, cl_uint count,
						       const cl_device_id *devices,
						       const size_t *lengths,
						       const unsigned char **binaries,
						       cl_int *binary_status, cl_int *status)
{
	MADE_LOCKED;
	const cl_device_id *given = devices;
	cl_program handle;
	struct ocl_program *p;
	uint32_t moves;
	cl_int code;

	do {
		moves = ocl.moves;
		devices = devices_for(c, OCL_CONTEXT, &count, given);
		handle = NEXT->clCreateProgramWithBinary(ocl_real(c, OCL_CONTEXT), count, devices,
							 lengths, binaries, binary_status, &code);
	} while (ocl_again(c, OCL_CONTEXT, code, moves));
	if (status)
		*status = code;
	if (!handle)
		return handle;
	ocl_lock();
	p = program_add(c, handle);
	if (p) {
		p->binary = copy_bytes(binaries[0], lengths[0]);
		p->binary_len = lengths[0];
		p->binary_device = devices[0];
	}
	ocl_unlock();
	return handle;
}

cl_program CL_API_CALL layer_clCreateProgramWithBuiltInKernels(cl_context c, cl_uint count,
							       const cl_device_id *devices,
							       const char *names, cl_int *status)
{
	MADE_LOCKED;
	const cl_device_id *given = devices;
	cl_program handle;
	struct ocl_program *p;
	uint32_t moves;
	cl_int code;

	do {
		moves = ocl.moves;
		devices = devices_for(c, OCL_CONTEXT, &count, given);
		handle = NEXT->clCreateProgramWithBuiltInKernels(ocl_real(c, OCL_CONTEXT), count,
								 devices, names, &code);
	} while (ocl_again(c, OCL_CONTEXT, code, moves));
	if (status)
		*status = code;
	if (!handle)
		return handle;
	ocl_lock();
	p = program_add(c, handle);
	if (p)
		p->builtin = strdup(names);
	ocl_unlock();
	return handle;
}

cl_int CL_API_CALL layer_clRetainProgram(cl_program p)
{
	return ocl_retained(p, OCL_PROGRAM, NEXT->clRetainProgram(ocl_checked(p, OCL_PROGRAM)));
}

cl_int CL_API_CALL layer_clReleaseProgram(cl_program p)
{
	return ocl_release(p, OCL_PROGRAM);
}

/* ---- building ---- */

static void free_step(struct step *s)
{
	for (cl_uint i = 0; i < s->headers; i++) {
		if (s->header && s->header[i])
			ocl_drop(OBJ(s->header[i]));
		if (s->header_name)
			free(s->header_name[i]);
	}
	free(s->header);
	free(s->header_name);
	free(s->options);
	free(s);
}

static void free_steps(struct ocl_program *p)
{
	while (p->steps) {
		struct step *s = p->steps;
		p->steps = s->next;
		free_step(s);
	}
}

/* Of those set before or since the last build that of this id. */
static void drop_constant(struct ocl_program *p, cl_uint id, bool later)
{
	struct constant **at = &p->constants, *c;

	while ((c = *at) && (c->id != id || c->later != later))
		at = &c->next;
	if (!c)
		return;
	*at = c->next;
	free(c);
}

static void note_constant(struct ocl_program *p, cl_uint id, size_t size, const void *value)
{
	struct constant *c = malloc(sizeof(*c) + size), **end = &p->constants;

	drop_constant(p, id, true);
	if (!c)
		return;
	*c = (struct constant){.id = id, .later = true, .size = size};
	memcpy(c->value, value, size);
	while (*end)
		end = &(*end)->next;
	*end = c;
}

/* A build begins. */
static void use_constants(struct ocl_program *p)
{
	for (struct constant *c = p->constants; c; c = c->next) {
		if (!c->later)
			continue;
		drop_constant(p, c->id, false);
		c->later = false;
	}
}

void ocl_program_specialize(const struct ocl_program *p, cl_program real, bool later)
{
	for (const struct constant *c = p->constants; c; c = c->next)
		if (c->later == later)
			NEXT->clSetProgramSpecializationConstant(real, c->id, c->size, c->value);
}

cl_int CL_API_CALL layer_clSetProgramSpecializationConstant(cl_program handle, cl_uint id,
							    size_t size, const void *value)
{
	struct ocl_program *p;
	struct ocl_kept kept;
	uint32_t moves;
	cl_int status;

	do {
		moves = ocl.moves;
		status = NEXT->clSetProgramSpecializationConstant(
		    ocl_real_kept(handle, OCL_PROGRAM, &kept), id, size, value);
		ocl_let(&kept);
	} while (ocl_again(handle, OCL_PROGRAM, status, moves));
	if (status != CL_SUCCESS)
		return status;
	ocl_lock();
	p = ocl_find(handle, OCL_PROGRAM);
	if (p)
		note_constant(p, id, size, value);
	ocl_unlock();
	return status;
}

void ocl_program_fini(struct ocl_program *p)
{
	free_steps(p);
	while (p->constants) {
		struct constant *c = p->constants;
		p->constants = c->next;
		free(c);
	}
	for (cl_uint i = 0; i < p->linked_count; i++)
		if (p->linked[i])
			ocl_drop(OBJ(p->linked[i]));
	free(p->linked);
	free(p->link_options);
	free(p->source);
	free(p->il);
	free(p->binary);
	free(p->builtin);
}

/* A build takes the place of what was built before. */
static void note_step(struct ocl_program *p, char kind, const char *options, cl_uint headers,
		      const cl_program *header, const char **names)
{
	struct step *s = calloc(1, sizeof(*s));

	free_steps(p);
	use_constants(p);
	if (!s)
		return;
	s->kind = kind;
	s->options = options ? strdup(options) : NULL;
	s->header = calloc(headers + 1, sizeof(*s->header));
	s->header_name = calloc(headers + 1, sizeof(*s->header_name));
	if (s->header && s->header_name) {
		s->headers = headers;
		for (cl_uint i = 0; i < headers; i++) {
			s->header[i] = ocl_find(header[i], OCL_PROGRAM);
			s->header_name[i] = strdup(names[i]);
			if (s->header[i])
				ocl_hold(OBJ(s->header[i]));
		}
	}
	p->steps = s;
}

/* Compilers keep what is known of arguments only when told to (clGetKernelArgInfo). The program
 * doesn't see the option. NULL: as they are. */
char *ocl_program_options(const struct ocl_program *p, const char *options)
{
	char *more = NULL;

	if (!p || !p->source || !(ocl.set.opt & OCL_OPT_AUTO) ||
	    (options && strstr(options, "-cl-kernel-arg-info")))
		return NULL;
	if (asprintf(&more, "%s%s-cl-kernel-arg-info", options ? options : "",
		     options && *options ? " " : "") < 0)
		return NULL;
	return more;
}

static bool log_has_kernels(const struct ocl_program *p)
{
	const struct ocl_object *head = &OBJ(p)->domain->objects;

	for (const struct ocl_object *o = head->next; o != head; o = o->next)
		if (o->kind == OCL_KERNEL && o->refs == 0 &&
		    ((const struct kernel *)o)->program == p)
			return true;
	return false;
}

/* A program that has kernels can't be built. Those that the log alone has still must not be the
 * reason: an epoch closes, so that it lets them go. */
static void let_kernels_go(struct ocl_program *p)
{
	struct domain *d = OBJ(p)->domain;

	if (LIKELY(!log_has_kernels(p)))
		return;
	ocl_epoch_force(d);
	if (!log_has_kernels(p) || ocl_domain_gated(d))
		return;
	log_warn("opencl: a program is built anew, and without a checkpoint launches of what it "
		 "was can't be kept; an error before the next one can't be mended");
	ocl_log_give_up(d);
}

/* real has been built, and is what the program has still; or a move has left it meanwhile, and what
 * has taken its place is to be built, too. A move doesn't do that, since some runtimes (PoCL, of
 * binaries) don't bear to build a program twice. */
static bool is_built(cl_program handle, cl_program real)
{
	struct ocl_program *p;
	bool left;

	ocl_lock();
	p = ocl_find(handle, OCL_PROGRAM);
	left = p && OBJ(p)->real != real;
	if (p && !left)
		p->building = false;
	ocl_unlock();
	return !left;
}

cl_int CL_API_CALL layer_clBuildProgram(cl_program handle, cl_uint count,
					const cl_device_id *devices, const char *options,
					void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
	const cl_device_id *given = devices;
	struct ocl_kept kept;
	cl_program real;
	struct ocl_program *p;
	uint32_t moves;
	char *more;
	cl_int status;
	bool again;

	ocl_lock();
	p = ocl_find(handle, OCL_PROGRAM);
	more = ocl_program_options(p, options);
	if (p) {
		let_kernels_go(p);
		note_step(p, 'b', options, 0, NULL, NULL);
		p->building = true;
	}
	ocl_unlock();
	do {
		moves = ocl.moves;
		devices = devices_for(handle, OCL_PROGRAM, &count, given);
		real = ocl_real_kept(handle, OCL_PROGRAM, &kept);
		status =
		    NEXT->clBuildProgram(real, count, devices, more ? more : options, notify, data);
		again = ocl_again(handle, OCL_PROGRAM, status, moves) || !is_built(handle, real);
		ocl_let(&kept);
	} while (again);
	free(more);
	return status;
}

/* What the runtime is given in the place of a list of programs; NULL: that list. */
struct parts {
	cl_program *real;
	struct ocl_kept *kept;
	cl_uint count;
};

static struct parts real_programs(const cl_program *list, cl_uint count)
{
	struct parts parts = {0};
	cl_uint n = 0;

	if (LIKELY(!ocl.moves && !ocl.dead) || !list)
		return parts;
	ocl_lock();
	while (n < count && ocl_find(list[n], OCL_PROGRAM)) /* a count may be wrong, too */
		n++;
	if (n == count || ocl_is_ghost(list[n], OCL_PROGRAM) || ocl.moves) {
		parts.real = calloc(n + 1ul, sizeof(*parts.real));
		parts.kept = calloc(n + 1ul, sizeof(*parts.kept));
	}
	parts.count = parts.real && parts.kept ? n : 0;
	for (cl_uint i = 0; i < parts.count; i++)
		parts.real[i] = ocl_real_kept(list[i], OCL_PROGRAM, &parts.kept[i]);
	ocl_unlock();
	return parts; /* where one is wrong, with NULL behind those that are not */
}

static void let_programs(struct parts *parts)
{
	for (cl_uint i = 0; i < parts->count; i++)
		ocl_let(&parts->kept[i]);
	free(parts->real);
	free(parts->kept);
}

cl_int CL_API_CALL layer_clCompileProgram(cl_program handle, cl_uint count,
					  const cl_device_id *devices, const char *options,
					  cl_uint headers, const cl_program *header,
					  const char **names,
					  void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
	const cl_device_id *given = devices;
	struct parts parts;
	struct ocl_kept kept;
	cl_program real;
	struct ocl_program *p;
	uint32_t moves;
	cl_int status;
	char *more;
	bool again;

	ocl_lock();
	p = ocl_find(handle, OCL_PROGRAM);
	if (p) {
		bool whole = headers == 0 || (header && names);
		let_kernels_go(p);
		note_step(p, 'c', options, whole ? headers : 0, header, names);
		p->building = true;
	}
	more = ocl_program_options(p, options);
	ocl_unlock();
	do {
		moves = ocl.moves;
		devices = devices_for(handle, OCL_PROGRAM, &count, given);
		ocl_lock(); /* all of the same move */
		parts = real_programs(header, headers);
		real = ocl_real_kept(handle, OCL_PROGRAM, &kept);
		ocl_unlock();
		status =
		    NEXT->clCompileProgram(real, count, devices, more ? more : options, headers,
					   parts.real ? parts.real : header, names, notify, data);
		let_programs(&parts);
		again = ocl_again(handle, OCL_PROGRAM, status, moves) || !is_built(handle, real);
		ocl_let(&kept);
	} while (again);
	free(more);
	return status;
}

static void note_link(struct ocl_program *p, const char *options, cl_uint programs,
		      const cl_program *program)
{
	if (!(p->linked = calloc(programs + 1, sizeof(*p->linked))))
		return;
	p->linked_count = programs;
	p->link_options = options ? strdup(options) : NULL;
	for (cl_uint i = 0; i < programs; i++) {
		p->linked[i] = ocl_find(program[i], OCL_PROGRAM);
		if (p->linked[i])
			ocl_hold(OBJ(p->linked[i]));
	}
}

/* Another thread has moved the context while the runtime linked p: it is linked where the context
 * is now, too. */
static void link_again(struct ocl_program *p)
{
	struct domain *d = OBJ(p)->domain;
	cl_program *parts = calloc(p->linked_count + 1ul, sizeof(*parts)), real = NULL;

	for (cl_uint i = 0; parts && i < p->linked_count; i++)
		parts[i] = p->linked[i] ? OBJ(p->linked[i])->real : NULL;
	if (parts)
		real =
		    NEXT->clLinkProgram(OBJ(d)->real, d->device_count, d->devices, p->link_options,
					p->linked_count, parts, NULL, NULL, NULL);
	free(parts);
	if (real)
		ocl_object_moves(OBJ(p), real);
}

/* Without the lock, since it takes its time. */
cl_program CL_API_CALL layer_clLinkProgram(cl_context c, cl_uint count, const cl_device_id *devices,
					   const char *options, cl_uint programs,
					   const cl_program *program,
					   void(CL_CALLBACK *notify)(cl_program, void *),
					   void *data, cl_int *status)
{
	const cl_device_id *given = devices;
	struct parts parts;
	struct ocl_kept kept;
	cl_program handle;
	cl_context real;
	struct ocl_program *p;
	uint32_t moves;
	cl_int code;

	do {
		moves = ocl.moves;
		devices = devices_for(c, OCL_CONTEXT, &count, given);
		ocl_lock(); /* all of the same move */
		parts = real_programs(program, programs);
		real = ocl_real_kept(c, OCL_CONTEXT, &kept);
		ocl_unlock();
		handle =
		    NEXT->clLinkProgram(real, count, devices, options, programs,
					parts.real ? parts.real : program, notify, data, &code);
		let_programs(&parts);
		ocl_let(&kept);
	} while (ocl_again(c, OCL_CONTEXT, code, moves));
	if (status)
		*status = code;
	if (!handle)
		return handle;
	ocl_lock();
	p = program_add(c, handle);
	if (p)
		note_link(p, options, programs, program);
	if (p && p->linked && OBJ(p)->domain->moved_at > moves)
		link_again(p);
	ocl_unlock();
	return handle;
}
