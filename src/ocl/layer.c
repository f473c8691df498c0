/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer's two entry points, and its beginning and end in a process. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "node/guest.h"
#include "ocl/calls.h"
#include "ocl/epoch/epoch.h"

struct ocl ocl;
__thread char ocl_here __attribute__((tls_model("initial-exec")));

static cl_icd_dispatch mine;

void ocl_lock_changes(void)
{
	if (ocl.holder)
		ocl.changed = clock_seconds();
	ocl.holder = &ocl_here;
}

bool ocl_lock_is_alone(void)
{
	static const double alone_after = 10; /* seconds */

	if (ocl.changed > 0 && clock_seconds() - ocl.changed > alone_after)
		ocl.changed = 0;
	return ocl.changed == 0;
}

/* A child of fork can't use what the parent's runtime has set up; nothing here may touch the
 * parent's checkpoints. */
static void before_fork(void)
{
	pthread_mutex_lock(&ocl.lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&ocl.lock);
}

static void after_fork_child(void)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&ocl.lock, &a);
	pthread_mutexattr_destroy(&a);
	ocl.passive = ocl.passive || ocl.domains;
	ocl_detect_child(!ocl.passive);
	if (ocl.passive)
		return;
	/* a daemon, or a worker, that begins with OpenCL only now */
	ocl.pid = (int)getpid();
	ocl.report = (struct ocl_report){0};
	ocl_report_init();
}

static void init_lock(void)
{
	static bool done;
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&ocl.lock, &a);
	pthread_mutexattr_destroy(&a);
	if (!done)
		pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	done = true;
}

static void fill_table(const cl_icd_dispatch *target, size_t entries)
{
	memset(&mine, 0, sizeof(mine));
	memcpy(&mine, (const void *)target, entries * sizeof(void *));
#include "ocl_dispatch.inc"
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
					       size_t *size_ret)
{
	static const char text[] = "Hale: survives errors in device memory";
	static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
	const void *from = name == CL_LAYER_NAME ? (const void *)text : &version;
	size_t n = name == CL_LAYER_NAME ? sizeof(text) : sizeof(version);

	if (name != CL_LAYER_NAME && name != CL_LAYER_API_VERSION)
		return CL_INVALID_VALUE;
	if (value && size < n)
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, from, n);
	if (size_ret)
		*size_ret = n;
	return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target,
					    cl_uint *entries_ret, const cl_icd_dispatch **layer)
{
	static cl_icd_dispatch next;
	size_t known = sizeof(mine) / sizeof(void *);
	const char *copies = secure_getenv("HALE_OPENCL_COPIES");
	struct error err;

	if (!target || !entries_ret || !layer)
		return CL_INVALID_VALUE;
	log_init_from_env();
	hale_guest_log();
	if (target->clEnqueueNDRangeKernel == mine.clEnqueueNDRangeKernel &&
	    mine.clEnqueueNDRangeKernel) {
		log_warn("opencl: OPENCL_LAYERS names this layer twice; once is enough");
		*entries_ret = entries;
		*layer = target;
		return CL_SUCCESS;
	}
	init_lock();
	ocl.pid = (int)getpid();
	ocl.staged = copies && strcmp(copies, "staged") == 0;
	if (ocl_settings_parse(secure_getenv("HALE_OPENCL"), &ocl.set, &err) != HALE_OK) {
		log_warn("%s", err.text);
		exit(64);
	}
	memcpy(&next, target, (entries < known ? entries : known) * sizeof(void *));
	ocl.next = &next;
	fill_table(target, entries < known ? entries : known);
	ocl_report_init();
	ocl_guest_init();
	ocl_store_look();
	ocl_detect_init();
	*entries_ret = (cl_uint)known;
	*layer = &mine;
	log_info("opencl: the program is protected from errors in device memory");
	return CL_SUCCESS;
}

__attribute__((destructor)) static void end(void)
{
	if (ocl.next)
		ocl_report_end();
}
