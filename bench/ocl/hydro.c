/* SPDX-License-Identifier: BSD-3-Clause */
/* Two-dimensional Euler equations, Rusanov fluxes, a blast in a box; the time step is reduced on
 * the device and read by the host every second step, and the host waits after every single call,
 * as the code did that VOCL-FT measured. hydro SIDE STEPS */
#include "ocl.h"

static const char source[] =
    "float4 flux(float4 u, int axis) {\n"
    "  float p = 0.4f * (u.w - 0.5f * (u.y * u.y + u.z * u.z) / u.x), w = (axis ? u.z : u.y) / "
    "u.x;\n"
    "  float4 f = u * w; f.w += p * w; if (axis) f.z += p; else f.y += p; return f;\n"
    "}\n"
    "float speed(float4 u) {\n"
    "  float p = fmax(0.4f * (u.w - 0.5f * (u.y * u.y + u.z * u.z) / u.x), 1e-6f);\n"
    "  return sqrt(u.y * u.y + u.z * u.z) / u.x + sqrt(1.4f * p / u.x);\n"
    "}\n"
    "float4 side(float4 a, float4 b, int axis) {\n"
    "  return 0.5f * (flux(a, axis) + flux(b, axis)) - 0.5f * fmax(speed(a), speed(b)) * (b - a);\n"
    "}\n"
    "__kernel void sweep(__global const float4 *u, __global float4 *v, int n, float k, int axis) "
    "{\n"
    "  int x = get_global_id(0), y = get_global_id(1), d = axis ? n : 1, i = y * n + x;\n"
    "  int at = axis ? y : x;\n"
    "  float4 me = u[i], l = at > 0 ? u[i - d] : me, r = at < n - 1 ? u[i + d] : me;\n"
    "  if (at == 0) { if (axis) l.z = -l.z; else l.y = -l.y; }\n"
    "  if (at == n - 1) { if (axis) r.z = -r.z; else r.y = -r.y; }\n"
    "  v[i] = me - k * (side(me, r, axis) - side(l, me, axis));\n"
    "}\n"
    "__kernel void fastest(__global const float4 *u, __global float *out, int n) {\n"
    "  int y = get_global_id(0); float s = 0;\n"
    "  for (int x = 0; x < n; x++) s = fmax(s, speed(u[y * n + x]));\n"
    "  out[y] = s;\n"
    "}\n";

static void sweep(cl_kernel k, cl_mem from, cl_mem to, int n, float ratio, int axis)
{
	size_t global[2] = {(size_t)n, (size_t)n};

	ocl_arg(k, 0, sizeof(from), &from);
	ocl_arg(k, 1, sizeof(to), &to);
	ocl_arg(k, 2, sizeof(n), &n);
	ocl_arg(k, 3, sizeof(ratio), &ratio);
	ocl_arg(k, 4, sizeof(axis), &axis);
	OK(clEnqueueNDRangeKernel(queue, k, 2, NULL, global, NULL, 0, NULL, NULL));
	OK(clFinish(queue)); /* needless */
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 50;
	size_t rows = (size_t)n, cells = rows * rows, bytes = cells * sizeof(cl_float4);
	cl_float4 *u = malloc(bytes);
	float *most = calloc(rows, sizeof(*most)), ratio = 0.1f;
	cl_kernel sweep_kernel, fastest;
	cl_mem a, b, out;
	double start;

	ocl_begin(source);
	sweep_kernel = ocl_kernel("sweep");
	fastest = ocl_kernel("fastest");
	for (size_t i = 0; i < cells; i++) {
		size_t x = i % rows, y = i / rows;
		float hot = x + y < rows / 8 ? 10.0f : 1.0f;
		u[i] = (cl_float4){{1, 0, 0, 2.5f * hot}};
	}
	a = ocl_buffer(CL_MEM_READ_WRITE, bytes, NULL);
	b = ocl_buffer(CL_MEM_READ_WRITE, bytes, NULL);
	out = ocl_buffer(CL_MEM_READ_WRITE, rows * sizeof(float), NULL);
	OK(clEnqueueWriteBuffer(queue, a, CL_TRUE, 0, bytes, u, 0, NULL, NULL));
	start = now();
	for (int s = 0; s < steps; s++) {
		if (s % 2 == 0) {
			float top = 0;

			ocl_arg(fastest, 0, sizeof(a), &a);
			ocl_arg(fastest, 1, sizeof(out), &out);
			ocl_arg(fastest, 2, sizeof(n), &n);
			OK(clEnqueueNDRangeKernel(queue, fastest, 1, NULL, &rows, NULL, 0, NULL,
						  NULL));
			OK(clFinish(queue)); /* needless */
			OK(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, rows * sizeof(float), most,
					       0, NULL, NULL));
			for (size_t i = 0; i < rows; i++)
				top = most[i] > top ? most[i] : top;
			ratio = 0.4f / top;
		}
		sweep(sweep_kernel, a, b, n, ratio, 0);
		sweep(sweep_kernel, b, a, n, ratio, 1);
	}
	OK(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, bytes, u, 0, NULL, NULL));
	ocl_result(now() - start, u, bytes);
	return 0;
}
