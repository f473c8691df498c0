/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_process WHAT: what processes do around OpenCL.
 *   daemon     asks for platforms, forks, and the child works
 *   fork       works, forks a child that ends, works
 *   child      has a context while a child of fork makes one of its own
 *   exec       works, and becomes another program, which works
 *   sleeper    works, and becomes another program, which says so and sleeps until its stdin ends
 *   closed     the loader is opened and closed three times, with work in between
 *   callback   ends in a callback, with status 7
 *   turnover   for four seconds each step makes a buffer, and releases it
 *   cancelled  a thread is cancelled while it waits for a read; then the first one works
 *   alarm      a signal comes while it waits for a read: its handler ends the program, with status
 * 9, and what is to be done at the end releases objects twice LIB  the layer LIB is put on itself
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "ocl_ok.h"

enum { N = 256 };

static cl_context make_context(cl_device_id *device)
{
	cl_context c;
	cl_int e;

	*device = first_device();
	c = clCreateContext(NULL, 1, device, NULL, NULL, &e);
	OK(e);
	return c;
}

static int work(int rounds)
{
	static const char source[] = "__kernel void grow(__global int *a) {\n"
				     "  size_t i = get_global_id(0); a[i] = a[i] * 3 + 1; }\n";
	cl_device_id device;
	cl_context c = make_context(&device);
	unsigned h = 0;
	size_t n = N;
	int x[N];
	cl_int e;
	cl_command_queue q = clCreateCommandQueue(c, device, 0, &e);
	cl_program p;
	cl_kernel k;
	cl_mem m;

	OK(e);
	for (int i = 0; i < N; i++)
		x[i] = i;
	m = clCreateBuffer(c, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(x), x, &e);
	OK(e);
	p = build_source(c, source, "");
	k = clCreateKernel(p, "grow", &e);
	OK(e);
	OK(clSetKernelArg(k, 0, sizeof(m), &m));
	for (int r = 0; r < rounds; r++) {
		OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL));
		OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(x), x, 0, NULL, NULL));
		for (int i = 0; i < N; i++)
			h = h * 31 + (unsigned)x[i];
	}
	OK(clReleaseMemObject(m));
	OK(clReleaseKernel(k));
	OK(clReleaseProgram(p));
	OK(clReleaseCommandQueue(q));
	OK(clReleaseContext(c));
	printf("work %08x\n", h);
	fflush(stdout);
	return 0;
}

/* The child's status. */
static int ended(pid_t child)
{
	int status = 0;

	MUST(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int become_daemon(void)
{
	cl_platform_id platform;
	pid_t child;

	OK(clGetPlatformIDs(1, &platform, NULL));
	child = fork();
	return child == 0 ? work(10) : ended(child);
}

static int fork_between(void)
{
	pid_t child;

	work(5);
	child = fork();
	if (child == 0)
		_exit(0);
	return ended(child) + work(5);
}

static int child_with_context(void)
{
	cl_device_id device;
	cl_context c = make_context(&device), own;
	pid_t child = fork();
	cl_int e;

	if (child == 0) {
		own = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
		printf("child: %s\n", own ? "a context" : "none");
		fflush(stdout);
		_exit(0);
	}
	MUST(ended(child) == 0);
	work(5);
	OK(clReleaseContext(c));
	return 0;
}

static int sleep_on(void)
{
	char c;

	printf("asleep\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

static int open_and_close(void)
{
	for (int i = 0; i < 3; i++) {
		void *loader = dlopen("libOpenCL.so.1", RTLD_NOW);

		MUST(loader);
		work(3);
		dlclose(loader);
	}
	return 0;
}

/* What the log holds is a hundred times what a checkpoint would. */
static int turnover(void)
{
	static char data[1 << 20];
	cl_device_id device;
	cl_context c = make_context(&device);
	time_t end = time(NULL) + 4;
	unsigned sum = 0;
	cl_int e;
	cl_command_queue q = clCreateCommandQueue(c, device, 0, &e);

	OK(e);
	for (unsigned step = 0; time(NULL) < end; step++) {
		cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, sizeof(data), NULL, &e);

		OK(e);
		data[0] = (char)step;
		OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, sizeof(data), data, 0, NULL, NULL));
		OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
		OK(clReleaseMemObject(m));
		sum += (unsigned char)data[0] != (unsigned char)step;
	}
	printf("%u wrong\n", sum);
	return 0;
}

static void CL_CALLBACK end(cl_event e, cl_int status, void *data)
{
	printf("the end\n");
	exit(7);
}

static int end_in_callback(void)
{
	cl_device_id device;
	cl_context c = make_context(&device);
	int one = 1;
	cl_event done;
	cl_int e;
	cl_command_queue q = clCreateCommandQueue(c, device, 0, &e);
	cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, 4096, NULL, &e);

	OK(clEnqueueFillBuffer(q, m, &one, sizeof(one), 0, 4096, 0, NULL, &done));
	OK(clSetEventCallback(done, CL_COMPLETE, end, NULL));
	OK(clFinish(q));
	sleep(30);
	return 1;
}

/* A read that comes after a second or so. */
static cl_mem slow;

static void *wait_long(void *arg)
{
	static const char source[] =
	    "__kernel void turn(__global uint *a, uint n) {\n"
	    "  uint s = a[0]; for (uint i = 0; i < n; i++) s = s * 1664525u + a[1];\n"
	    "  a[0] = s; }\n";
	cl_device_id device;
	cl_context c = make_context(&device);
	cl_uint turns = 200000000, got[2] = {0};
	size_t one = 1;
	cl_int e;
	cl_command_queue q = clCreateCommandQueue(c, device, 0, &e);
	cl_kernel k;

	OK(e);
	slow = clCreateBuffer(c, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(got), got, &e);
	OK(e);
	k = clCreateKernel(build_source(c, source, ""), "turn", &e);
	OK(e);
	OK(clSetKernelArg(k, 0, sizeof(cl_mem), &slow));
	OK(clSetKernelArg(k, 1, sizeof(turns), &turns));
	OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL));
	*(_Atomic int *)arg = 1;
	OK(clEnqueueReadBuffer(q, slow, CL_TRUE, 0, sizeof(got), got, 0, NULL, NULL));
	return NULL;
}

static int cancel_thread(void)
{
	_Atomic int begun = 0;
	pthread_t t;

	MUST(pthread_create(&t, NULL, wait_long, (void *)&begun) == 0);
	while (!begun)
		usleep(1000);
	usleep(100000);
	pthread_cancel(t);
	MUST(pthread_join(t, NULL) == 0);
	return work(5);
}

static void release_slow(void)
{
	clReleaseMemObject(slow);
}

static void on_alarm(int number)
{
	exit(9);
}

static void ring(void)
{
	struct timespec t = {0, 200000000};

	nanosleep(&t, NULL);
	kill(getppid(), SIGALRM);
}

static int end_in_wait(void)
{
	_Atomic int begun = 0;
	pid_t child;

	signal(SIGALRM, on_alarm);
	atexit(release_slow);
	child = fork(); /* before any OpenCL */
	if (child == 0) {
		ring();
		_exit(0);
	}
	wait_long((void *)&begun);
	return 1;
}

static int twice(const char *path)
{
	static cl_icd_dispatch none;
	const cl_icd_dispatch *first = NULL, *second = NULL;
	void *layer = dlopen(path, RTLD_NOW);
	pfn_clInitLayer init;
	cl_uint n;

	MUST(layer);
	*(void **)&init = dlsym(layer, "clInitLayer");
	MUST(init);
	OK(init(sizeof(none) / sizeof(void *), &none, &n, &first));
	OK(init(n, first, &n, &second));
	printf("%s\n", second == first ? "once is enough" : "twice");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "work") == 0)
		return work(10);
	if (strcmp(what, "daemon") == 0)
		return become_daemon();
	if (strcmp(what, "fork") == 0)
		return fork_between();
	if (strcmp(what, "child") == 0)
		return child_with_context();
	if (strcmp(what, "exec") == 0 || strcmp(what, "sleeper") == 0) {
		work(5);
		execl(argv[0], argv[0], what[0] == 'e' ? "work" : "asleep", NULL);
	}
	if (strcmp(what, "asleep") == 0)
		return sleep_on();
	if (strcmp(what, "closed") == 0)
		return open_and_close();
	if (strcmp(what, "callback") == 0)
		return end_in_callback();
	if (strcmp(what, "cancelled") == 0)
		return cancel_thread();
	if (strcmp(what, "alarm") == 0)
		return end_in_wait();
	if (strcmp(what, "turnover") == 0)
		return turnover();
	return strcmp(what, "twice") == 0 && argc > 2 ? twice(argv[2]) : 2;
}
