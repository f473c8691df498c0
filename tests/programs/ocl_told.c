/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_told linked: a program is linked while another thread waits for data, so that its context may
 * move meanwhile. ocl_told [kill]: objects of all kinds are made, in three lots, and asked for what
 * they belong to: their context, device, program, parent. Between the lots the program waits for
 * data, so that an epoch closes, or, with kill, lets the process end that has its OpenCL runtime.
 * Libraries (clFFT) find what they have by such handles. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include "ocl_kill.h"

static const char source[] = "__kernel void twice(__global int *a) { a[get_global_id(0)] *= 2; }";

struct lot {
	cl_command_queue q;
	cl_mem whole, part;
	cl_sampler s;
	cl_program program;
	cl_kernel k;
	cl_event event;
};

static cl_context c;
static cl_device_id device;

static void make(struct lot *l)
{
	const cl_buffer_region half = {0, 512};
	const char *text = source;
	int data[256];
	cl_int e;

	for (int i = 0; i < 256; i++)
		data[i] = i;
	MAKE(l->q, clCreateCommandQueue(c, device, 0, &e));
	MAKE(l->whole,
	     clCreateBuffer(c, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(data), data, &e));
	MAKE(l->part, clCreateSubBuffer(l->whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
					&half, &e));
	MAKE(l->s, clCreateSampler(c, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &e));
	MAKE(l->program, clCreateProgramWithSource(c, 1, &text, NULL, &e));
	OK(clBuildProgram(l->program, 1, &device, "", NULL, NULL));
	MAKE(l->k, clCreateKernel(l->program, "twice", &e));
	OK(clSetKernelArg(l->k, 0, sizeof(cl_mem), &l->whole));
	OK(clEnqueueMarkerWithWaitList(l->q, 0, NULL, &l->event));
	OK(clFinish(l->q));
}

#define TELLS(call, name, o, wanted)                                                               \
	do {                                                                                       \
		void *told_ = NULL;                                                                \
		OK(call(o, name, sizeof(told_), &told_, NULL));                                    \
		CHECK(told_ == (void *)(wanted));                                                  \
	} while (0)

static void look(const struct lot *l)
{
	cl_build_status built = CL_BUILD_NONE;
	cl_device_id of[8] = {NULL};
	char options[8] = "none";
	size_t size = 0;

	TELLS(clGetCommandQueueInfo, CL_QUEUE_CONTEXT, l->q, c);
	TELLS(clGetCommandQueueInfo, CL_QUEUE_DEVICE, l->q, device);
	TELLS(clGetMemObjectInfo, CL_MEM_CONTEXT, l->whole, c);
	TELLS(clGetMemObjectInfo, CL_MEM_CONTEXT, l->part, c);
	TELLS(clGetMemObjectInfo, CL_MEM_ASSOCIATED_MEMOBJECT, l->whole, NULL);
	TELLS(clGetMemObjectInfo, CL_MEM_ASSOCIATED_MEMOBJECT, l->part, l->whole);
	TELLS(clGetSamplerInfo, CL_SAMPLER_CONTEXT, l->s, c);
	TELLS(clGetProgramInfo, CL_PROGRAM_CONTEXT, l->program, c);
	TELLS(clGetKernelInfo, CL_KERNEL_CONTEXT, l->k, c);
	TELLS(clGetKernelInfo, CL_KERNEL_PROGRAM, l->k, l->program);
	TELLS(clGetEventInfo, CL_EVENT_CONTEXT, l->event, c);
	TELLS(clGetEventInfo, CL_EVENT_COMMAND_QUEUE, l->event, l->q);
	OK(clGetProgramInfo(l->program, CL_PROGRAM_DEVICES, sizeof(of), of, NULL));
	CHECK(of[0] == device);
	OK(clGetProgramBuildInfo(l->program, device, CL_PROGRAM_BUILD_STATUS, sizeof(built), &built,
				 NULL));
	CHECK(built == CL_BUILD_SUCCESS);
	OK(clGetProgramBuildInfo(l->program, device, CL_PROGRAM_BUILD_OPTIONS, sizeof(options),
				 options, NULL));
	CHECK(options[0] == '\0');
	OK(clGetKernelWorkGroupInfo(l->k, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size), &size,
				    NULL));
	CHECK(size > 0);
	/* what is no device of the program's stays none */
	CHECK(clGetKernelWorkGroupInfo(l->k, (cl_device_id)l->q, CL_KERNEL_WORK_GROUP_SIZE,
				       sizeof(size), &size, NULL) == CL_INVALID_DEVICE);
}

static void *wait_for_data(void *of)
{
	const struct lot *l = of;
	int data[256];

	OK(clEnqueueReadBuffer(l->q, l->whole, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	return NULL;
}

static void CL_CALLBACK while_linking(cl_program p, void *of)
{
	pthread_t t;

	(void)p;
	CHECK(pthread_create(&t, NULL, wait_for_data, of) == 0 && pthread_join(t, NULL) == 0);
}

static void link_beside(struct lot *l)
{
	const char *text = source;
	cl_program part, all;
	cl_int e;

	make(l);
	MAKE(part, clCreateProgramWithSource(c, 1, &text, NULL, &e));
	OK(clCompileProgram(part, 0, NULL, "", 0, NULL, NULL, NULL, NULL));
	MAKE(all, clLinkProgram(c, 0, NULL, "", 1, &part, while_linking, l, &e));
	MAKE(l->k, clCreateKernel(all, "twice", &e));
	OK(clSetKernelArg(l->k, 0, sizeof(cl_mem), &l->whole));
}

int main(int argc, char **argv)
{
	cl_platform_id platform;
	struct lot lots[3];
	size_t all = 256;
	int data[256];
	cl_int e;

	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	MAKE(c, clCreateContext(NULL, 1, &device, NULL, NULL, &e));
	if (argc > 1 && strcmp(argv[1], "linked") == 0) {
		link_beside(&lots[0]);
		OK(clEnqueueNDRangeKernel(lots[0].q, lots[0].k, 1, NULL, &all, NULL, 0, NULL,
					  NULL));
		OK(clEnqueueReadBuffer(lots[0].q, lots[0].whole, CL_TRUE, 0, sizeof(data), data, 0,
				       NULL, NULL));
		printf("linked: %d\n", data[255]);
		return 0;
	}
	for (int made = 0; made < 3; made++) {
		make(&lots[made]);
		if (argc > 1)
			kill_runtime();
		for (int i = 0; i <= made; i++) {
			OK(clEnqueueNDRangeKernel(lots[i].q, lots[i].k, 1, NULL, &all, NULL, 0,
						  NULL, NULL));
			OK(clEnqueueReadBuffer(lots[i].q, lots[i].whole, CL_TRUE, 0, sizeof(data),
					       data, 0, NULL, NULL));
			printf("lot %d of %d: %d\n", i, made, data[255]);
			for (int k = 0; k <= made; k++)
				look(&lots[k]);
		}
	}
	return 0;
}
