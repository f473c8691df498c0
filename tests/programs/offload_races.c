// SPDX-License-Identifier: BSD-3-Clause
/* offload_races OBJECT SNAPSHOTS FOLDER FOLDER2: snapshots in the middle of everything else.
 *
 * Side by side: eight pipelines are in functions all the time; buffers and pipelines are created and
 * destroyed; large and small copies go both ways and are compared; other processes are created and
 * destroyed, also while they are paused. Meanwhile the process is captured, swapped and moved. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hale_offload.h"
#include "snapify.h"

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "line %d: %s: %s: %s\n", __LINE__, #x,                     \
				strerrorname_np(errno), hale_offload_why());                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { PIPES = 8, LARGE = 300000 };

static hale_process_t *process;
static const char *object, *folder2;
static int tick;
static atomic_int end;
static atomic_long done[4];

static void *functions(void *arg)
{
	hale_buffer_t shared = hale_buffer_create(process, 4096);
	hale_pipeline_t *q[PIPES];
	long counted = 0, result[PIPES][2];

	for (int i = 0; i < PIPES; i++)
		CHECK((q[i] = hale_pipeline_create(process)));
	for (; !end; done[0]++) {
		hale_event_t *e[PIPES];

		counted++;
		for (int i = 0; i < PIPES; i++) {
			int which[2] = {i, 20000};

			CHECK((e[i] = hale_run_async(q[i], tick, &shared, 1, which, sizeof(which),
						     result[i], sizeof(result[i]))));
		}
		for (int i = 0; i < PIPES; i++) {
			CHECK(hale_event_wait(e[i]) == 0);
			CHECK(result[i][0] == counted && result[i][1] == counted);
		}
	}
	return NULL;
}

static void *creations(void *arg)
{
	for (; !end; done[1]++) {
		hale_pipeline_t *q = hale_pipeline_create(process);
		hale_buffer_t b = hale_buffer_create(process, 10000);
		char zero = 1;

		CHECK(q && b);
		CHECK(hale_buffer_read(process, b, 9999, &zero, 1) == 0 && zero == 0);
		CHECK(hale_buffer_write(process, b, 9999, "x", 1) == 0);
		CHECK(hale_buffer_destroy(process, b) == 0 && hale_pipeline_destroy(q) == 0);
	}
	return NULL;
}

static void *copies(void *arg)
{
	hale_buffer_t b = hale_buffer_create(process, LARGE);
	char *out = malloc(LARGE), *in = malloc(LARGE);

	CHECK(b && out && in);
	for (; !end; done[2]++) {
		size_t size = done[2] % 2 ? LARGE : 1000;

		memset(out, (int)done[2], size);
		CHECK(hale_buffer_write(process, b, 0, out, size) == 0);
		CHECK(hale_buffer_read(process, b, 0, in, size) == 0);
		CHECK(memcmp(in, out, size) == 0);
	}
	return NULL;
}

static void *processes(void *arg)
{
	for (; !end; done[3]++) {
		hale_process_t *p = hale_process_create(1, object, 4 << 20);

		snapify_t s = {.m_snapshot_path = folder2, .m_process = p};

		CHECK(p && (done[3] % 2 || snapify_pause(&s) == 0));
		hale_process_destroy(p);
	}
	return NULL;
}

static void snapshot(int k, const char *folder)
{
	snapify_t s = {.m_snapshot_path = folder, .m_process = process};
	int device = k % 3 == 2 ? 1 - hale_process_device(process) : hale_process_device(process);

	CHECK(snapify_pause(&s) == 0 && snapify_capture(&s, k % 3 > 0) == 0);
	CHECK(snapify_wait(&s) == 0);
	CHECK(k % 3 == 0 || snapify_restore(&s, device) == 0);
	CHECK(snapify_resume(&s) == 0 && hale_process_device(process) == device);
}

int main(int argc, char **argv)
{
	void *(*const all[4])(void *) = {functions, creations, copies, processes};
	pthread_t thread[4];

	object = argv[1];
	folder2 = argv[4];
	CHECK((process = hale_process_create(0, object, 8 << 20)));
	CHECK((tick = hale_function_find(process, "tick")) >= 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&thread[i], NULL, all[i], NULL) == 0);
	for (int k = 0; k < atoi(argv[2]); k++) {
		long before[4];

		for (int i = 0; i < 4; i++)
			before[i] = done[i];
		snapshot(k, argv[3]);
		for (int i = 0; i < 4; i++) /* all go on */
			while (done[i] < before[i] + 2)
				usleep(1000);
	}
	end = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	hale_process_destroy(process);
	puts("good");
	return 0;
}
