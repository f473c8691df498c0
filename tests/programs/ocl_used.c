/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_used finish|wait|build GO: over ocl_inuse.c. When the file GO is there, a slow thread makes
 * such a call for something that is older than the first epoch, and the main thread meanwhile
 * closes the next one. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "ocl_ok.h"

static const char source[] = "kernel void one(global int *a) { a[0] = 1; }";

static const char *what;
static cl_command_queue queue, other;
static cl_program program;
static cl_event waits;

static void *slow(void *unused)
{
	prctl(PR_SET_NAME, "slow");
	if (strcmp(what, "finish") == 0)
		OK(clFinish(other));
	else if (strcmp(what, "wait") == 0)
		OK(clWaitForEvents(1, &waits));
	else
		OK(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
	return unused;
}

static void epoch(cl_mem m)
{
	int got;

	OK(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(got), &got, 0, NULL, NULL));
	printf("%d\n", got);
}

int main(int argc, char **argv)
{
	cl_device_id device = first_device();
	const char *text = source;
	pthread_t thread;
	cl_context c;
	cl_event gate;
	cl_mem m;
	cl_int e, seven = 7;

	setvbuf(stdout, NULL, _IOLBF, 0);
	MUST(argc > 2);
	what = argv[1];
	c = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueueWithProperties(c, device, NULL, &e);
	OK(e);
	other = clCreateCommandQueueWithProperties(c, device, NULL, &e);
	OK(e);
	program = clCreateProgramWithSource(c, 1, &text, NULL, &e);
	OK(e);
	gate = clCreateUserEvent(c, &e);
	OK(e);
	if (strcmp(what, "wait") == 0)
		OK(clEnqueueMarkerWithWaitList(other, 1, &gate, &waits));
	m = clCreateBuffer(c, CL_MEM_COPY_HOST_PTR, sizeof(seven), &seven, &e);
	OK(e);
	epoch(m);
	printf("ready\n");
	while (access(argv[2], F_OK) != 0)
		usleep(1000);
	MUST(pthread_create(&thread, NULL, slow, NULL) == 0);
	usleep(100000);
	epoch(m);
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	MUST(pthread_join(thread, NULL) == 0);
	OK(clFinish(other));
	return 0;
}
