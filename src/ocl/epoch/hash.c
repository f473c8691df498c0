/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash of chunks that a device can compute with as many threads as it has: sums over its words,
 * each mixed with its place, so that the order of adding doesn't matter. 128 bits; not meant
 * against an adversary. The host's and the device's give the same. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/epoch/epoch.h"
#include "ocl/ocl.h"

#define P1 0x9e3779b97f4a7c15ull
#define P2 0xbf58476d1ce4e5b9ull
#define P3 0x94d049bb133111ebull
#define P4 0xd6e8feb86659fd93ull

static const char source[] =
    "#define P1 0x9e3779b97f4a7c15ul\n"
    "#define P2 0xbf58476d1ce4e5b9ul\n"
    "#define P3 0x94d049bb133111ebul\n"
    "#define P4 0xd6e8feb86659fd93ul\n"
    "/* one work-group for each chunk */\n"
    "__kernel void hale_hash(__global const uchar *data, ulong size, ulong chunk,\n"
    "                        __global ulong2 *out, __local ulong2 *part)\n"
    "{\n"
    "    ulong from = get_group_id(0) * chunk, n = min(chunk, size - from);\n"
    "    __global const ulong *word = (__global const ulong *)(data + from);\n"
    "    uint me = get_local_id(0), all = get_local_size(0);\n"
    "    ulong2 sum = (ulong2)(0);\n"
    "    for (ulong i = me; i * 8 < n; i += all) {\n"
    "        ulong w = 0;\n"
    "        if (i * 8 + 8 <= n)\n"
    "            w = word[i];\n"
    "        else\n"
    "            for (ulong b = 0; b < n - i * 8; b++)\n"
    "                w |= (ulong)data[from + i * 8 + b] << (8 * b);\n"
    "        ulong t = (w ^ i * P1) * P2, u = (w + i * P3) * P4;\n"
    "        sum += (ulong2)(t ^ t >> 32, u ^ u >> 29);\n"
    "    }\n"
    "    part[me] = sum;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (me == 0) {\n"
    "        for (uint i = 1; i < all; i++)\n"
    "            sum += part[i];\n"
    "        out[get_group_id(0)] = sum;\n"
    "    }\n"
    "}\n";

void ocl_hash(const void *data, size_t size, uint64_t hash[2])
{
	const unsigned char *p = data;
	uint64_t a = 0, b = 0, at = 0, bt = 0;
	size_t words = size / 8;

	for (size_t i = 0; i <= words; i++, at += P1, bt += P3) {
		uint64_t w = 0, t, u;

		if (i < words)
			memcpy(&w, p + i * 8, 8);
		else if (size % 8)
			memcpy(&w, p + i * 8, size % 8);
		else
			break;
		t = (w ^ at) * P2;
		u = (w + bt) * P4;
		a += t ^ t >> 32;
		b += u ^ u >> 29;
	}
	hash[0] = a;
	hash[1] = b;
}

static bool build(struct domain *d)
{
	const char *text = source;
	cl_int status;

	if (d->hash_tried)
		return d->hash_kernel;
	d->hash_tried = true;
	d->hash_program = NEXT->clCreateProgramWithSource(OBJ(d)->real, 1, &text, NULL, &status);
	if (status != CL_SUCCESS)
		return false;
	if (NEXT->clBuildProgram(d->hash_program, 0, NULL, "", NULL, NULL) != CL_SUCCESS) {
		log_info("opencl: the device can't build the hash kernel; the host hashes");
		return false;
	}
	d->hash_kernel = NEXT->clCreateKernel(d->hash_program, "hale_hash", &status);
	return status == CL_SUCCESS;
}

static bool launch(struct domain *d, struct mem *m, cl_command_queue q, cl_mem out, size_t group)
{
	cl_kernel k = d->hash_kernel;
	cl_mem real = OBJ(m)->real;
	cl_ulong size = m->size, chunk = m->chunk_size;
	size_t global = m->chunk_count * group;

	return NEXT->clSetKernelArg(k, 0, sizeof(real), &real) == CL_SUCCESS &&
	       NEXT->clSetKernelArg(k, 1, sizeof(size), &size) == CL_SUCCESS &&
	       NEXT->clSetKernelArg(k, 2, sizeof(chunk), &chunk) == CL_SUCCESS &&
	       NEXT->clSetKernelArg(k, 3, sizeof(out), &out) == CL_SUCCESS &&
	       NEXT->clSetKernelArg(k, 4, group * 16, NULL) == CL_SUCCESS &&
	       NEXT->clEnqueueNDRangeKernel(q, k, 1, NULL, &global, &group, 0, NULL, NULL) ==
		   CL_SUCCESS;
}

bool ocl_hash_on_device(struct domain *d, struct mem *m, uint64_t (*hash)[2])
{
	struct queue *any = ocl_any_queue(d);
	cl_command_queue q = any ? ocl_own_queue(d, any->device) : NULL;
	size_t group = 256, most = 0;
	cl_int status;
	cl_mem out;
	bool good;

	if (!q || OBJ(m)->kind == OCL_SVM || m->type != CL_MEM_OBJECT_BUFFER || !build(d))
		return false;
	NEXT->clGetKernelWorkGroupInfo(d->hash_kernel, any->device, CL_KERNEL_WORK_GROUP_SIZE,
				       sizeof(most), &most, NULL);
	while (group > most && group > 1)
		group /= 2;
	out = NEXT->clCreateBuffer(OBJ(d)->real, CL_MEM_WRITE_ONLY, m->chunk_count * 16, NULL,
				   &status);
	if (status != CL_SUCCESS)
		return false;
	good = launch(d, m, q, out, group) &&
	       NEXT->clEnqueueReadBuffer(q, out, CL_TRUE, 0, m->chunk_count * 16, hash, 0, NULL,
					 NULL) == CL_SUCCESS;
	NEXT->clReleaseMemObject(out);
	return good;
}
