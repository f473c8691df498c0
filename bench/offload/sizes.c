/* SPDX-License-Identifier: BSD-3-Clause */
/* sizes OBJECT MB FOLDER: a device process with so much private memory is captured into a folder of this node and
 * ended, then restored from there. Prints seconds of both, and the bytes of the image. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include "hale_offload.h"
#include "snapify.h"

#define CHECK(x)                                                                                                       \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #x, hale_offload_why());                        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	hale_process_t *p = hale_process_create(0, argv[1], 1 << 20);
	hale_pipeline_t *q = p ? hale_pipeline_create(p) : NULL;
	size_t bytes = strtoul(argv[2], NULL, 10) << 20;
	unsigned long sum[2];
	char path[4096];
	struct stat st;
	double t[4];

	CHECK(q);
	CHECK(hale_run(q, hale_function_find(p, "grow"), NULL, 0, &bytes, sizeof(bytes), &sum[0], sizeof(sum[0])) == 0);
	snapify_t s = {.m_snapshot_path = argv[3], .m_process = p};

	t[0] = now();
	CHECK(snapify_pause(&s) == 0 && snapify_capture(&s, true) == 0 && snapify_wait(&s) == 0);
	t[1] = now();
	CHECK(snapify_restore(&s, 0) == 0 && snapify_resume(&s) == 0);
	t[2] = now();
	CHECK(hale_run(q, hale_function_find(p, "sum"), NULL, 0, NULL, 0, &sum[1], sizeof(sum[1])) == 0);
	snprintf(path, sizeof(path), "%s/image", argv[3]);
	if (sum[0] != sum[1] || stat(path, &st) != 0)
		return fprintf(stderr, "the memory is not what it was\n"), 1;
	printf("%.6f %.6f %ld\n", t[1] - t[0], t[2] - t[1], (long)st.st_size);
	hale_process_destroy(p);
	return 0;
}
