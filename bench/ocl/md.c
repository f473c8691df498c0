/* SPDX-License-Identifier: BSD-3-Clause */
/* Molecular dynamics, Lennard-Jones, cells of a lattice as neighbours; with the habits that
 * VOCL-FT saw in such codes: a wait after every call, for timing, and blocking transfers in a row
 * where one would do. md CELLS STEPS */
#include "ocl.h"

static const char source[] =
    "#define AT(x, y, z) ((((z) + m) % m * m + ((y) + m) % m) * m + ((x) + m) % m)\n"
    "__kernel void force(__global const float4 *p, __global float4 *f, int m) {\n"
    "  int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);\n"
    "  int me = AT(x, y, z);\n"
    "  float4 s = (float4)(0);\n"
    "  for (int c = -2; c <= 2; c++) for (int b = -2; b <= 2; b++) for (int a = -2; a <= 2; a++) "
    "{\n"
    "    if (!a && !b && !c) continue;\n"
    "    float4 d = p[me] - p[AT(x + a, y + b, z + c)];\n"
    "    float l = m * 1.2f; d.w = 0;\n"
    "    d.x -= l * rint(d.x / l); d.y -= l * rint(d.y / l); d.z -= l * rint(d.z / l);\n"
    "    float r = 1.0f / dot(d, d), r6 = r * r * r;\n"
    "    float k = 48 * r6 * (r6 - 0.5f) * r;\n"
    "    float e = 4 * r6 * (r6 - 1) * 0.5f;\n"
    "    s += (float4)(d.x * k, d.y * k, d.z * k, e);\n"
    "  }\n"
    "  f[me] = s;\n"
    "}\n"
    "__kernel void kick(__global float4 *v, __global const float4 *f, float h) {\n"
    "  int i = get_global_id(0); float4 a = f[i]; a.w = 0; v[i] += h * a;\n"
    "}\n"
    "__kernel void drift(__global float4 *p, __global const float4 *v, float h) {\n"
    "  int i = get_global_id(0); p[i] += h * v[i];\n"
    "}\n"
    "__kernel void fold(__global const float4 *f, __global const float4 *v, __global float *out,\n"
    "                   int n) {\n"
    "  int i = get_global_id(0); float s = 0, t = 0;\n"
    "  for (int k = i * n; k < (i + 1) * n; k++) { s += f[k].w; t += 0.5f * dot(v[k], v[k]); }\n"
    "  out[2 * i] = s; out[2 * i + 1] = t;\n"
    "}\n";

static void wait_needlessly(void)
{
	OK(clFinish(queue));
}

int main(int argc, char **argv)
{
	int m = argc > 1 ? atoi(argv[1]) : 24, steps = argc > 2 ? atoi(argv[2]) : 50;
	size_t n = (size_t)m * (size_t)m * (size_t)m, side[3] = {(size_t)m, (size_t)m, (size_t)m};
	size_t planes = (size_t)m;
	cl_float4 *p = calloc(n, sizeof(*p)), *v = calloc(n, sizeof(*v));
	float *sums = calloc(2 * planes, sizeof(*sums)), half = 0.001f, full = 0.002f;
	int per = m * m;
	cl_kernel force, kick, drift, fold;
	cl_mem pm, vm, fm, sm;
	double start;

	ocl_begin(source);
	force = ocl_kernel("force");
	kick = ocl_kernel("kick");
	drift = ocl_kernel("drift");
	fold = ocl_kernel("fold");
	for (size_t i = 0; i < n; i++) {
		size_t x = i % planes, y = i / planes % planes, z = i / planes / planes;
		p[i] = (cl_float4){{1.2f * (float)x, 1.2f * (float)y, 1.2f * (float)z, 0}};
		v[i] =
		    (cl_float4){{(float)(i * 7 % 13) / 13 - 0.5f, (float)(i * 5 % 11) / 11 - 0.5f,
				 (float)(i * 3 % 17) / 17 - 0.5f, 0}};
	}
	pm = ocl_buffer(CL_MEM_READ_WRITE, n * sizeof(*p), NULL);
	vm = ocl_buffer(CL_MEM_READ_WRITE, n * sizeof(*v), NULL);
	fm = ocl_buffer(CL_MEM_READ_WRITE, n * sizeof(*v), NULL);
	sm = ocl_buffer(CL_MEM_READ_WRITE, 2 * planes * sizeof(float), NULL);
	OK(clEnqueueWriteBuffer(queue, pm, CL_TRUE, 0, n * sizeof(*p), p, 0, NULL, NULL));
	OK(clEnqueueWriteBuffer(queue, vm, CL_TRUE, 0, n * sizeof(*v), v, 0, NULL, NULL));
	start = now();
	for (int s = 0; s < steps; s++) {
		ocl_arg(force, 0, sizeof(pm), &pm);
		ocl_arg(force, 1, sizeof(fm), &fm);
		ocl_arg(force, 2, sizeof(m), &m);
		OK(clEnqueueNDRangeKernel(queue, force, 3, NULL, side, NULL, 0, NULL, NULL));
		wait_needlessly();
		ocl_arg(kick, 0, sizeof(vm), &vm);
		ocl_arg(kick, 1, sizeof(fm), &fm);
		ocl_arg(kick, 2, sizeof(half), &half);
		OK(clEnqueueNDRangeKernel(queue, kick, 1, NULL, &n, NULL, 0, NULL, NULL));
		wait_needlessly();
		ocl_arg(drift, 0, sizeof(pm), &pm);
		ocl_arg(drift, 1, sizeof(vm), &vm);
		ocl_arg(drift, 2, sizeof(full), &full);
		OK(clEnqueueNDRangeKernel(queue, drift, 1, NULL, &n, NULL, 0, NULL, NULL));
		wait_needlessly();
		if (s % 4 != 3)
			continue;
		ocl_arg(fold, 0, sizeof(fm), &fm);
		ocl_arg(fold, 1, sizeof(vm), &vm);
		ocl_arg(fold, 2, sizeof(sm), &sm);
		ocl_arg(fold, 3, sizeof(per), &per);
		OK(clEnqueueNDRangeKernel(queue, fold, 1, NULL, &planes, NULL, 0, NULL, NULL));
		wait_needlessly();
		for (size_t i = 0; i < 4; i++) /* blocking transfers where one would do */
			OK(clEnqueueReadBuffer(queue, sm, CL_TRUE, i * planes * 2, planes * 2,
					       (char *)sums + i * planes * 2, 0, NULL, NULL));
	}
	OK(clEnqueueReadBuffer(queue, pm, CL_TRUE, 0, n * sizeof(*p), p, 0, NULL, NULL));
	ocl_result(now() - start, p, n * sizeof(*p));
	return 0;
}
