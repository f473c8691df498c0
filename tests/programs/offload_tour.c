// SPDX-License-Identifier: BSD-3-Clause
/* offload_tour OBJECT DEVICE: buffers, functions, pipelines, events, and what goes wrong.
 * With a third argument: a process that fills the device is destroyed after a line of input, and
 * another one is created at once. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hale_offload.h"

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "line %d: %s: %s: %s\n", __LINE__, #x,                     \
				strerrorname_np(errno), hale_offload_why());                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define FAILS(x, error) CHECK((errno = 0, !!(x)) && errno == (error) && hale_offload_why()[0])

enum { N = 300000 };

static double a[N], b[N], sum[N];

static void buffers_and_functions(hale_process_t *p)
{
	hale_pipeline_t *q = hale_pipeline_create(p);
	hale_buffer_t buffer[3];
	double factor = 2, total = 0, expected = 0;
	int add = hale_function_find(p, "add");

	CHECK(q && add >= 0);
	for (int i = 0; i < N; i++) {
		a[i] = i;
		b[i] = 3 * i;
		expected += 7.0 * i;
	}
	for (int i = 0; i < 3; i++)
		CHECK((buffer[i] = hale_buffer_create(p, sizeof(a))) != 0);
	CHECK(hale_buffer_write(p, buffer[0], 0, a, sizeof(a)) == 0);
	CHECK(hale_buffer_write(p, buffer[1], 0, b, 1000) == 0);
	CHECK(hale_buffer_write(p, buffer[1], 1000, (char *)b + 1000, sizeof(b) - 1000) == 0);
	CHECK(hale_run(q, add, buffer, 3, &factor, sizeof(factor), &total, sizeof(total)) == 0);
	CHECK(total == expected);
	CHECK(hale_buffer_read(p, buffer[2], 0, sum, sizeof(sum)) == 0);
	for (int i = 0; i < N; i++)
		CHECK(sum[i] == 7.0 * i);
	FAILS(hale_buffer_write(p, buffer[2], 8, a, sizeof(a)) != 0, EFAULT);
	FAILS(hale_buffer_read(p, buffer[2], sizeof(a) - 4, a, 8) != 0, EFAULT);
	FAILS(hale_buffer_write(p, 4096, 0, a, 16) != 0, EFAULT);
	CHECK(hale_buffer_destroy(p, buffer[1]) == 0);
	FAILS(hale_buffer_destroy(p, buffer[1]) != 0, EINVAL);
	FAILS(hale_run(q, add, buffer, 3, &factor, sizeof(factor), &total, sizeof(total)) != 0, EFAULT);
	FAILS(hale_run(q, 77, NULL, 0, NULL, 0, NULL, 0) != 0, ENOENT);
	FAILS(hale_function_find(p, "substract") < 0, ENOENT);
	CHECK(strstr(hale_offload_why(), "substract"));
	FAILS(hale_buffer_create(p, 1ul << 40) == 0, ENOSPC);
	CHECK(hale_pipeline_destroy(q) == 0);
}

static void pipelines_side_by_side(hale_process_t *p)
{
	enum { PIPES = 8, EACH = 50 };
	hale_pipeline_t *q[PIPES];
	hale_event_t *e[PIPES][EACH];
	static long result[PIPES][EACH][2];
	hale_buffer_t shared = hale_buffer_create(p, 4096);
	int tick = hale_function_find(p, "tick");

	for (int i = 0; i < PIPES; i++)
		CHECK((q[i] = hale_pipeline_create(p)));
	for (int k = 0; k < EACH; k++)
		for (int i = 0; i < PIPES; i++) {
			int which[2] = {i, 1000};

			e[i][k] = hale_run_async(q[i], tick, &shared, 1, which, sizeof(which), result[i][k],
						 sizeof(result[i][k]));
			CHECK(e[i][k]);
		}
	for (int i = 0; i < PIPES; i++) {
		CHECK(hale_pipeline_destroy(q[i]) == 0); /* waits */
		for (int k = 0; k < EACH; k++) {
			CHECK(hale_event_test(e[i][k]));
			CHECK(hale_event_wait(e[i][k]) == 0);
			CHECK(result[i][k][0] == k + 1 && result[i][k][1] == k + 1);
		}
	}
	CHECK(hale_buffer_destroy(p, shared) == 0);
}

static void devices_are_given_out(const char *object, int device, hale_process_t *first)
{
	hale_process_t *p;

	FAILS(!hale_process_create(hale_device_count(), object, 0), ENODEV);
	FAILS(!hale_process_create(-1, object, 0), ENODEV);
	FAILS(!hale_process_create(device, object, 1ul << 40), ENOSPC);
	FAILS(!hale_process_create(device, "/nowhere", 0), ENOENT);
	FAILS(!hale_process_create(device, "/etc/hostname", 1 << 20), ENOEXEC);
	CHECK((p = hale_process_create(device, object, 48 << 20)));
	FAILS(!hale_process_create(device, object, 48 << 20), ENOSPC);
	for (int i = 0; i < 10; i++) { /* its memory is there at once, in mid function or not */
		hale_pipeline_t *q = hale_pipeline_create(p);
		int pid = hale_process_pid(p);

		CHECK(q && pid != hale_process_pid(first));
		if (i % 2)
			CHECK(hale_run_async(q, hale_function_find(p, "nap"), NULL, 0, NULL, 0, NULL, 0));
		hale_process_destroy(p);
		FAILS(!hale_process_create(device, "/etc/hostname", 48 << 20), ENOEXEC);
		CHECK((p = hale_process_create(device, object, 48 << 20)));
	}
	hale_process_destroy(p);
}

static void a_crash_is_an_error(const char *object, int device)
{
	hale_process_t *p = hale_process_create(device, object, 1 << 20);
	int crash, nap;
	hale_pipeline_t *q, *other;
	hale_event_t *e;

	CHECK(p && (q = hale_pipeline_create(p)) && (other = hale_pipeline_create(p)));
	crash = hale_function_find(p, "crash");
	nap = hale_function_find(p, "nap");
	CHECK((e = hale_run_async(other, nap, NULL, 0, NULL, 0, NULL, 0)) && !hale_event_test(e));
	FAILS(hale_run(q, crash, NULL, 0, NULL, 0, NULL, 0) != 0, ESRCH);
	FAILS(hale_event_wait(e) != 0, ESRCH);
	FAILS(hale_run(q, nap, NULL, 0, NULL, 0, NULL, 0) != 0, ESRCH);
	FAILS(hale_buffer_create(p, 100) == 0, ESRCH);
	hale_pipeline_destroy(q);
	hale_pipeline_destroy(other);
	hale_process_destroy(p);
}

static void one_after_the_other(hale_process_t *p, const char *object, int device)
{
	printf("%d\n", hale_process_pid(p));
	fflush(stdout);
	getchar();
	hale_process_destroy(p);
	puts("destroyed");
	fflush(stdout);
	CHECK((p = hale_process_create(device, object, 48 << 20)));
	hale_process_destroy(p);
}

int main(int argc, char **argv)
{
	int device = atoi(argv[2]);
	hale_process_t *p = hale_process_create(device, argv[1], argc > 3 ? 48 << 20 : 16 << 20);

	if (p && argc > 3) {
		one_after_the_other(p, argv[1], device);
		puts("good");
		return 0;
	}
	CHECK(p && hale_process_device(p) == device);
	buffers_and_functions(p);
	pipelines_side_by_side(p);
	devices_are_given_out(argv[1], device, p);
	a_crash_is_an_error(argv[1], device);
	hale_process_destroy(p);
	puts("good");
	return 0;
}
