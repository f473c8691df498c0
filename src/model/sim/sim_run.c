/* SPDX-License-Identifier: BSD-3-Clause */
/* Many runs on many threads, and what they come to.
 *
 * Runs are dealt out in blocks whose size depends on their number only; each block has its own
 * sums, which are added up in the order of the blocks. So the result has the same bits whoever
 * played which block. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "model/sim/sim_world.h"

/* If none of the first few finishes, more runs tell nothing new. */
enum { PROBE = 32, BLOCKS = 1024 };

struct sim_run_block {
	double sum[SIM_FIGURES];  /* of finished runs, as are the means */
	double mean_s, squares_s; /* Welford's, of wall times */
	double mean_j, squares_j; /* and of energies */
	uint32_t runs, finished, outlived;
};

struct sim_run_crew {
	const struct sim_setup *setup;
	struct sim_record *record;
	struct sim_run_block *blocks;
	double *walls;		    /* by run */
	uint32_t first, last, size; /* runs in [first, last), a block has size of them */
	atomic_uint next;	    /* block */
	atomic_uint *done;
	atomic_bool no_memory;
	_Atomic uint64_t strikes;
};

static void welford(double *mean, double *squares, double value, uint32_t count)
{
	double before = value - *mean;

	*mean += before / count;
	*squares += before * (value - *mean);
}

static void block_add(struct sim_run_block *b, const struct sim_world *w, bool finished,
		      bool outlived)
{
	b->runs++;
	b->finished += finished;
	b->outlived += outlived;
	if (!finished)
		return;
	for (int i = 0; i < SIM_FIGURES; i++)
		b->sum[i] += w->figure[i];
	welford(&b->mean_s, &b->squares_s, w->figure[SIM_WALL_S], b->finished);
	welford(&b->mean_j, &b->squares_j, w->figure[SIM_ENERGY_J], b->finished);
}

static void *work(void *arg)
{
	struct sim_run_crew *crew = arg;
	const struct sim_failures *f = &crew->setup->plan->failures;
	struct sim_world world;

	if (!sim_world_init(&world, crew->setup))
		atomic_store(&crew->no_memory, true);
	while (!atomic_load(&crew->no_memory)) {
		uint32_t block = atomic_fetch_add(&crew->next, 1);
		uint64_t run = crew->first + (uint64_t)block * crew->size;
		uint64_t end = run + crew->size < crew->last ? run + crew->size : crew->last;
		if (run >= crew->last)
			break;
		struct sim_run_block *b = &crew->blocks[block];
		for (; run < end; run++) {
			bool ok =
			    sim_world_play(&world, (uint32_t)run, run == 0 ? crew->record : NULL);
			if (world.no_memory)
				atomic_store(&crew->no_memory, true);
			double wall = world.figure[SIM_WALL_S];
			crew->walls[run] = ok ? wall : INFINITY;
			block_add(b, &world, ok,
				  f->traced && !f->random_start && wall > f->trace.span_s);
			atomic_fetch_add(&crew->strikes, (uint64_t)world.figure[SIM_FAILURES]);
			if (crew->done)
				atomic_fetch_add(crew->done, 1);
		}
	}
	sim_world_fini(&world);
	return NULL;
}

/* Chan's: two samples become one. */
static void merge(double *mean, double *squares, uint32_t runs, double mean2, double squares2,
		  uint32_t runs2)
{
	double all = (double)runs + runs2, apart = mean2 - *mean;

	*squares += squares2 + apart * apart * runs * (runs2 / all);
	*mean += apart * (runs2 / all);
}

static void total_add(struct sim_run_block *total, const struct sim_run_block *b)
{
	total->runs += b->runs;
	total->outlived += b->outlived;
	if (b->finished == 0)
		return;
	merge(&total->mean_s, &total->squares_s, total->finished, b->mean_s, b->squares_s,
	      b->finished);
	merge(&total->mean_j, &total->squares_j, total->finished, b->mean_j, b->squares_j,
	      b->finished);
	for (int i = 0; i < SIM_FIGURES; i++)
		total->sum[i] += b->sum[i];
	total->finished += b->finished;
}

/* Plays runs [first, last) and adds them to total. */
static bool play(struct sim_run_crew *crew, uint32_t first, uint32_t last,
		 struct sim_run_block *total)
{
	enum { THREADS = 256 };
	pthread_t threads[THREADS];
	uint32_t runs = last - first, started = 0, wanted = crew->setup->plan->threads;

	crew->first = first;
	crew->last = last;
	crew->size = (runs + BLOCKS - 1) / BLOCKS;
	uint32_t count = (runs + crew->size - 1) / crew->size;
	atomic_store(&crew->next, 0);
	memset(crew->blocks, 0, BLOCKS * sizeof(*crew->blocks));
	if (wanted > count)
		wanted = count;
	if (wanted > THREADS)
		wanted = THREADS;
	while (started + 1 < wanted && !pthread_create(&threads[started], NULL, work, crew))
		started++;
	work(crew);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < count; i++)
		total_add(total, &crew->blocks[i]);
	return !atomic_load(&crew->no_memory);
}

/* The 97.5 % quantile of Student's t (Cornish and Fisher's series; exact values where it is not
 * good enough). */
static double student(uint32_t runs)
{
	static const double exact[] = {0, 12.7062, 4.3027, 3.1824, 2.7764};
	double v = runs - 1.0, z = 1.959964, z2 = z * z;

	if (runs - 1 < ARRAY_LEN(exact))
		return exact[runs - 1];
	return z + z * (z2 + 1) / (4 * v) + z * ((5 * z2 + 16) * z2 + 3) / (96 * v * v) +
	       z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * v * v * v);
}

static int smaller(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void summarise(const struct sim_run_crew *crew, const struct sim_run_block *total,
		      struct sim_summary *s)
{
	const struct sim_setup *x = crew->setup;
	uint32_t runs = total->runs, good = total->finished;
	double error_s = 0, error_j = 0;

	for (int i = 0; i < SIM_FIGURES; i++)
		s->mean[i] = good ? total->sum[i] / good : 0;
	s->mean[SIM_WALL_S] = total->mean_s;
	s->mean[SIM_ENERGY_J] = total->mean_j;
	if (good > 1) {
		s->deviation_s = sqrt(total->squares_s / (good - 1));
		error_s = student(good) * s->deviation_s / sqrt(good);
		error_j = student(good) * sqrt(total->squares_j / (good - 1) / good);
	}
	s->low_s = total->mean_s - error_s;
	s->high_s = total->mean_s + error_s;
	s->energy_low_j = total->mean_j - error_j;
	s->energy_high_j = total->mean_j + error_j;
	s->loss = total->mean_s / x->plan->job.work_s - 1;
	s->runs = runs;
	s->finished = good;
	s->outlived = total->outlived;
	qsort(crew->walls, runs, sizeof(*crew->walls), smaller);
	s->median_s = (crew->walls[(runs - 1) / 2] + crew->walls[runs / 2]) / 2;
	s->p95_s = crew->walls[((uint64_t)runs * 95 + 99) / 100 - 1];
	memcpy(s->every_s, x->every_s, sizeof(s->every_s));
	s->speed = x->speed;
	s->slots = x->slots;
}

hale_status_t sim_run(const struct sim_plan *plan, struct sim_summary *summary, atomic_uint *done,
		      struct sim_record *record, struct error *err)
{
	hale_status_t status = sim_plan_check(plan, err);
	struct sim_setup setup;
	struct sim_run_block total = {0};
	uint32_t probe = plan->runs < PROBE ? plan->runs : PROBE;
	double begin = clock_seconds();

	if (status != HALE_OK)
		return status;
	sim_setup_init(&setup, plan);
	*summary = (struct sim_summary){0};
	struct sim_run_crew crew = {.setup = &setup, .record = record, .done = done};
	crew.walls = malloc(plan->runs * sizeof(*crew.walls));
	crew.blocks = malloc(BLOCKS * sizeof(*crew.blocks));
	bool good = crew.walls && crew.blocks && play(&crew, 0, probe, &total);
	if (good && total.finished == 0)
		summary->hopeless = true;
	else if (good && probe < plan->runs)
		good = play(&crew, probe, plan->runs, &total);
	if (good) {
		summarise(&crew, &total, summary);
		summary->events_per_s =
		    (double)atomic_load(&crew.strikes) / fmax(clock_seconds() - begin, 1e-9);
	} else {
		status = error_set(err, HALE_ERR_MEMORY,
				   "no memory to simulate %u nodes on %u threads; use fewer",
				   setup.slots, plan->threads);
	}
	free(crew.walls);
	free(crew.blocks);
	return status;
}
