// SPDX-License-Identifier: BSD-3-Clause
/* offload_eight PROGRAM OBJECT N STEPS PARTS [here|FOLDER]: one of eight computations on a device.
 * Built with EIGHT_MPI: each rank has one, of N divided so that all together have as much memory;
 * ranks wait for each other in each step.
 *
 * Prints PROGRAM, a checksum of all results and of the buffers at the end, and seconds. "here":
 * without a device, in this process. FOLDER: after a quarter of the steps the device process is
 * captured, after a half swapped out and in, after three quarters moved to the next device, each in
 * the middle of its functions. A line for each, "KIND pause capture restore store image", tells how
 * long that took (seconds) and how large the files were (bytes). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hale_offload.h"
#include "offload_eight.h"
#include "snapify.h"
#ifdef EIGHT_MPI
#include <math.h>
#include <mpi.h>
#endif

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "line %d: %s: %s: %s\n", __LINE__, #x,                     \
				strerrorname_np(errno), hale_offload_why());                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { BUFFERS = 3 };

/* Bytes of a buffer are count(n) × unit. */
static const struct program {
	const char *name;
	int buffers, unit, dimensions;
} programs[] = {{"md", 2, 48, 1}, {"mc", 0, 0, 0}, {"sg", 3, 4, 2}, {"ss", 1, 1, 1},
		{"km", 1, 16, 1}, {"jz", 2, 8, 2}, {"gz", 1, 8, 2}, {"hz", 2, 8, 3}};

static const struct program *program;
static hale_process_t *process; /* NULL: here */
static hale_pipeline_t *pipe_of[EIGHT_PARTS];
static hale_buffer_t buffer[BUFFERS];
static void *memory[BUFFERS];
static hale_device_function *local;
static int function;
static size_t bytes;
static uint64_t checksum = 14695981039346656037ul;
static unsigned steps;
static const char *folder; /* NULL: no snapshots */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void hash(const void *data, size_t size)
{
	for (const unsigned char *at = data; size--; at++)
		checksum = (checksum ^ *at) * 1099511628211ul;
}

static void fill(void *data, unsigned which)
{
	unsigned seed = which + 1;

	if (program->unit == 1)
		for (size_t i = 0; i < bytes; i++)
			((char *)data)[i] = (char)('a' + rand_r(&seed) % 16);
	else if (program->unit == 4)
		for (size_t i = 0; i < bytes / 4; i++)
			((float *)data)[i] = (float)rand_r(&seed) / (float)RAND_MAX;
	else
		for (size_t i = 0; i < bytes / 8; i++)
			((double *)data)[i] = (double)rand_r(&seed) / RAND_MAX;
}

static void make_buffers(void)
{
	for (int i = 0; i < program->buffers; i++) {
		CHECK((memory[i] = calloc(1, bytes)));
		fill(memory[i], program->buffers == 2 ? 0 : (unsigned)i); /* borders are the same */
		if (process) {
			CHECK((buffer[i] = hale_buffer_create(process, bytes)));
			CHECK(hale_buffer_write(process, buffer[i], 0, memory[i], bytes) == 0);
		}
	}
}

static void run_here(const struct eight_step *s, void *result, size_t size)
{
	uint64_t sizes[BUFFERS] = {bytes, bytes, bytes};
	struct hale_call c = {.buffer = memory,
			      .size = sizes,
			      .buffers = (unsigned)program->buffers,
			      .args = s,
			      .args_size = sizeof(*s),
			      .result = result,
			      .result_size = size};

	local(&c);
}

/* The next centres, from the sums of all parts. */
static void move_centres(struct eight_step *s, double result[EIGHT_PARTS][EIGHT_CLUSTERS][3])
{
	for (int k = 0; k < EIGHT_CLUSTERS; k++) {
		double x = 0, y = 0, count = 0;

		for (unsigned p = 0; p < s->parts; p++)
			x += result[p][k][0], y += result[p][k][1], count += result[p][k][2];
		if (count > 0)
			s->centre[k][0] = x / count, s->centre[k][1] = y / count;
	}
}

/* ---- ranks ---- */

#ifdef EIGHT_MPI
static void ranks_begin(int *argc, char ***argv, int *rank)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, rank);
}

static unsigned share_of(unsigned n)
{
	int ranks;

	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	return program->dimensions ? (unsigned)(n / pow(ranks, 1.0 / program->dimensions)) : n;
}

static void ranks_agree(void)
{
	uint64_t all;

	MPI_Allreduce(&checksum, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
	hash(&all, sizeof(all));
}

static void ranks_end(void)
{
	MPI_Finalize();
}
#else
static void ranks_begin(int *argc, char ***argv, int *rank)
{
	*rank = 0;
}

static unsigned share_of(unsigned n)
{
	return n;
}

static void ranks_agree(void)
{
}

static void ranks_end(void)
{
}
#endif

/* ---- snapshots ---- */

static long size_of(const char *folder, const char *name)
{
	char path[4200];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return stat(path, &st) == 0 ? (long)st.st_size : -1;
}

/* Kind 0: a checkpoint that is not used, 1: out and in, 2: to another device. */
static void snapshot(int kind)
{
	static const char *const kinds[] = {"checkpoint", "swap", "move"};
	snapify_t s = {.m_snapshot_path = folder, .m_process = process};
	int device = hale_process_device(process);
	double t[4] = {now()};

	CHECK(snapify_pause(&s) == 0);
	t[1] = now();
	CHECK(snapify_capture(&s, kind != 0) == 0);
	CHECK(snapify_wait(&s) == 0);
	t[2] = now();
	if (kind != 0)
		CHECK(snapify_restore(&s, (device + (kind == 2)) % hale_device_count()) == 0);
	CHECK(snapify_resume(&s) == 0);
	t[3] = now();
	printf("%s %.6f %.6f %.6f %ld %ld\n", kinds[kind], t[1] - t[0], t[2] - t[1], t[3] - t[2],
	       size_of(folder, "store"), size_of(folder, "image"));
}

static void one_step(struct eight_step *s)
{
	static double result[EIGHT_PARTS][EIGHT_CLUSTERS][3];
	hale_event_t *e[EIGHT_PARTS];

	memset(result, 0, sizeof(result));
	for (s->part = 0; s->part < s->parts; s->part++)
		if (!process)
			run_here(s, result[s->part], sizeof(result[0]));
		else
			CHECK((e[s->part] = hale_run_async(pipe_of[s->part], function, buffer,
							   (unsigned)program->buffers, s, sizeof(*s),
							   result[s->part], sizeof(result[0]))));
	for (int kind = 0; folder && kind < 3; kind++)
		if (s->step == (unsigned)(kind + 1) * steps / 4)
			snapshot(kind);
	for (unsigned p = 0; process && p < s->parts; p++)
		CHECK(hale_event_wait(e[p]) == 0);
	hash(result, sizeof(result));
	ranks_agree();
	if (strcmp(program->name, "km") == 0)
		move_centres(s, result);
}

int main(int argc, char **argv)
{
	struct eight_step s = {0};
	bool here = argc > 6 && strcmp(argv[6], "here") == 0;
	double begin;
	int rank;

	ranks_begin(&argc, &argv, &rank);

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (argc > 5 && strcmp(programs[i].name, argv[1]) == 0)
			program = &programs[i];
	if (!program) {
		fprintf(stderr, "offload_eight PROGRAM OBJECT N STEPS PARTS [here|FOLDER]\n");
		return 64;
	}
	folder = argc > 6 && !here ? argv[6] : NULL;
	s.n = share_of((unsigned)atoi(argv[3]));
	steps = (unsigned)atoi(argv[4]);
	s.parts = (unsigned)atoi(argv[5]);
	CHECK(s.parts >= 1 && s.parts <= EIGHT_PARTS);
	for (int k = 0; k < EIGHT_CLUSTERS; k++)
		s.centre[k][0] = k / 4 / 4.0, s.centre[k][1] = k % 4 / 4.0;
	bytes = (size_t)program->unit;
	for (int i = 0; i < program->dimensions; i++)
		bytes *= s.n;
	if (here) {
		void *object = dlopen(argv[2], RTLD_NOW);

		CHECK(object && (*(void **)&local = dlsym(object, argv[1])));
	} else {
		CHECK((process = hale_process_create(rank % hale_device_count(), argv[2],
						       BUFFERS * bytes + (1 << 20))));
		CHECK((function = hale_function_find(process, argv[1])) >= 0);
		for (unsigned i = 0; i < s.parts; i++)
			CHECK((pipe_of[i] = hale_pipeline_create(process)));
	}
	make_buffers();
	begin = now();
	for (; s.step < steps; s.step++)
		one_step(&s);
	double seconds = now() - begin;
	for (int i = 0; i < program->buffers; i++) {
		if (process)
			CHECK(hale_buffer_read(process, buffer[i], 0, memory[i], bytes) == 0);
		hash(memory[i], bytes);
	}
	if (rank == 0)
		printf("%s %016lx %.3f\n", program->name, (unsigned long)checksum, seconds);
	hale_process_destroy(process);
	ranks_end();
	return 0;
}
