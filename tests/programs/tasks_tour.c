// SPDX-License-Identifier: BSD-3-Clause
/* Tasks of all kinds, and memory errors at all places: tasks_tour MODE. Built by clang -fopenmp.
 * What it prints must not depend on errors that are mended. */
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "hale/task.h"

#pragma weak HALE_Raise_DUE

enum { TILE = 32, TILES = 6, PAGE = 4096 };

static uint64_t hash(const void *at, size_t n)
{
	uint64_t h = 1469598103934665603ull;
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const unsigned char *)at)[i]) * 1099511628211ull;
	return h;
}

/* The kernel's report that the data at that address are lost. */
static void lose(void *address)
{
	siginfo_t si = {.si_signo = SIGBUS, .si_code = BUS_MCEERR_AR};
	si.si_addr = address;
	if (address)
		mprotect((void *)((uintptr_t)address & -PAGE), PAGE, PROT_NONE);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), (int)syscall(SYS_gettid), SIGBUS, &si);
}

/* ---- a matrix product: in, inout, firstprivate that the task changes ---- */

/* whole pages, so that what is lost of them is all declared */
static _Alignas(PAGE) double A[TILES][TILES][TILE * TILE], B[TILES][TILES][TILE * TILE],
    C[TILES][TILES][TILE * TILE];

static void product(void)
{
	for (int i = 0; i < TILES; i++)
		for (int j = 0; j < TILES; j++)
			for (int k = 0; k < TILE * TILE; k++) {
				A[i][j][k] = ((i * 7 + j * 3 + k) % 17) * 0.37;
				B[i][j][k] = ((i * 5 + j * 11 + k) % 13) * 0.21;
			}
#pragma omp parallel
#pragma omp single
	for (int i = 0; i < TILES; i++)
		for (int j = 0; j < TILES; j++)
			for (int k = 0; k < TILES; k++) {
				double *a = A[i][k], *b = B[k][j], *c = C[i][j];
				int begun = 0;
#pragma omp task firstprivate(a, b, c, begun) depend(in                                            \
						     : a [0:TILE * TILE], b [0:TILE * TILE])       \
    depend(inout                                                                                   \
	   : c [0:TILE * TILE])
				{
					if (++begun != 1)
						printf("firstprivate is not as it was\n");
					for (int x = 0; x < TILE; x++)
						for (int y = 0; y < TILE; y++) {
							double s = c[x * TILE + y];
							for (int z = 0; z < TILE; z++)
								s += a[x * TILE + z] *
								     b[z * TILE + y];
							c[x * TILE + y] = s;
						}
				}
			}
	printf("product %016llx\n", (unsigned long long)hash(C, sizeof(C)));
}

/* ---- tasks that can't be protected, and some that can although it looks difficult ---- */

static int fib(int n)
{
	int x, y;
	if (n < 2)
		return n;
#pragma omp task shared(x)
	x = fib(n - 1);
#pragma omp task shared(y)
	y = fib(n - 2);
#pragma omp taskwait
	return x + y;
}

static void kinds(void)
{
	int sum = 0, f = 0, set[8] = {0}, chain = 1, big[40][4] = {{0}};
#pragma omp parallel
#pragma omp single
	{
		f = fib(10);
		for (int i = 0; i < 8; i++) {
#pragma omp task depend(mutexinoutset : sum)
			sum += i;
#pragma omp task if (0) depend(inout : chain)
			chain = chain * 3 + i;
#pragma omp task untied depend(inout : set[i])
			set[i] += i;
		}
		/* more dependences than a task usually has */
#pragma omp task depend(iterator(int i = 0 : 40), inout : big[i] [0:4]) depend(in : sum)
		for (int i = 0; i < 40; i++)
			for (int k = 0; k < 4; k++)
				big[i][k] += sum + i * k;
#pragma omp taskwait
#pragma omp taskloop
		for (int i = 0; i < 8; i++)
			set[i] *= 2;
	}
	printf("kinds %d %d %d %016llx %016llx\n", f, sum, chain,
	       (unsigned long long)hash(set, sizeof(set)),
	       (unsigned long long)hash(big, sizeof(big)));
}

/* ---- until a file says stop, and a task has been executed again ---- */

static void until(const char *stop)
{
	static _Atomic long begun;
	long counts[8] = {0}, rounds = 0;
	int said = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("begun\n");
	do {
#pragma omp parallel
#pragma omp single
		for (int i = 0; i < 8; i++) {
			long *c = &counts[i];
#pragma omp task firstprivate(c) depend(inout : c [0:1])
			{
				begun++; /* not declared: it is not put back */
				usleep(200);
				++*c;
			}
		}
		rounds++;
		if (begun > 8 * rounds && !said++)
			printf("struck\n");
	} while (!said || access(stop, F_OK) != 0);
	for (int i = 0; i < 8; i++)
		if (counts[i] != rounds)
			printf("%ld rounds, %ld executions count\n", rounds, counts[i]);
	printf("stopped\n");
}

/* ---- errors at one place ---- */

static char page[4 * PAGE] __attribute__((aligned(4096)));
static volatile int times;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t mtx;
static omp_lock_t omp_lock;

/* Is place one where a lock of that name is held? Then the task holds it from here on. */
static int take_lock(const char *place)
{
	struct timespec past = {0}; /* a lock that is free is taken nevertheless */

	if (!strcmp(place, "mutex"))
		return pthread_mutex_lock(&mutex) == 0;
	if (!strcmp(place, "timed"))
		return pthread_rwlock_timedwrlock(&rwlock, &past) == 0;
	if (!strcmp(place, "mtx"))
		return mtx_lock(&mtx) == thrd_success;
	if (strcmp(place, "try"))
		return 0;
	while (!omp_test_lock(&omp_lock))
		;
	return 1;
}

/* Locks that are given back, or were not got. */
static void use_locks(void)
{
	struct timespec past = {0};

	pthread_mutex_lock(&mutex);
	if (pthread_mutex_trylock(&mutex) == 0 || pthread_mutex_timedlock(&mutex, &past) == 0)
		abort();
	pthread_mutex_unlock(&mutex);
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	mtx_lock(&mtx);
	mtx_unlock(&mtx);
}

static void at_place(const char *place)
{
	omp_init_lock(&omp_lock);
	mtx_init(&mtx, mtx_plain);
	memset(page, 7, sizeof(page));
	long own = 1; /* the task's copy lies beside what the runtime knows of the task */
#pragma omp parallel
#pragma omp single
	{
#pragma omp task depend(inout                                                                      \
			: page [PAGE:2 * PAGE]) depend(in                                          \
						       : page [3 * PAGE:64]) firstprivate(own)
		{
			for (int i = PAGE; i < 3 * PAGE; i++)
				page[i]++;
			int first = times++ == 0;
			if (first && !strcmp(place, "checker"))
				HALE_Raise_DUE();
			if (first && !strcmp(place, "written"))
				lose(page + PAGE + 100);
			if (first && !strcmp(place, "record"))
				lose(&own);
			if (first && !strcmp(place, "beside"))
				lose(page + 3 * PAGE + 100);
			if (first && !strcmp(place, "lock"))
#pragma omp critical
				HALE_Raise_DUE();
			if (first && take_lock(place))
				HALE_Raise_DUE();
			if (!strcmp(place, "unlocked"))
				use_locks();
			if (first && !strcmp(place, "unlocked"))
				HALE_Raise_DUE();
			if (first && !strcmp(place, "parent")) {
#pragma omp task depend(inout : times)
				times = times + 1;
#pragma omp taskwait
				HALE_Raise_DUE();
			}
			if (first && !strcmp(place, "inner"))
#pragma omp parallel num_threads(2)
#pragma omp master
				HALE_Raise_DUE();
			if (!strcmp(place, "always"))
				HALE_Raise_DUE();
		}
	}
	if (!strcmp(place, "outside"))
		HALE_Raise_DUE();
	printf("%s %d %016llx\n", place, times, (unsigned long long)hash(page, sizeof(page)));
}

/* ---- tasks that make tasks ---- */

enum { PARTS = 8, EACH = 500 };
static uint64_t tree[PARTS][EACH];

static void stir(uint64_t *x, int n, uint64_t by)
{
	for (int i = 0; i < n; i++)
		x[i] = x[i] * 6364136223846793005u + by + (uint64_t)i;
}

/* Children that are waited for, or are not, in a group, and children of children; some write to the
 * stack of the task that has made them. */
static void family(void)
{
#pragma omp parallel
#pragma omp single
	for (int round = 0; round < 40; round++) {
		/* those that nobody has waited for go on after their parent's end: a group waits */
#pragma omp taskgroup
#pragma omp task depend(inout : tree) firstprivate(round)
		{
			uint64_t sums[PARTS] = {0};

			stir(tree[0], EACH, (uint64_t)round);
#pragma omp taskgroup
			for (int p = 0; p < PARTS; p++) {
				static int struck[40];
				uint64_t *part = tree[p], *sum = &sums[p];

				/* in the group, with some of its tasks */
				if (HALE_Raise_DUE && p == 3 && round % 5 == 2 &&
				    struck[round]++ == 0)
					HALE_Raise_DUE();
#pragma omp task depend(inout : part [0:EACH], sum [0:1]) firstprivate(p)
				{
					uint64_t *low = part, *high = part + EACH / 2;
					uint64_t was[2];

					stir(part, EACH, (uint64_t)p);
					was[0] = low[0];
					was[1] = high[0];
#pragma omp task depend(inout : low [0:EACH / 2])
					stir(low, EACH / 2, 3);
#pragma omp task depend(inout : high [0:EACH / 2])
					stir(high, EACH / 2, 5);
#pragma omp taskwait
					/* also if the task above is about to begin again */
					if (low[0] == was[0] || high[0] == was[1])
						abort();
					sum[0] = part[0] ^ part[EACH - 1];
				}
			}
			for (int p = 0; p < PARTS; p++)
				tree[p][1] += sums[PARTS - 1 - p];
			for (int p = 0; p < PARTS; p++) {
				uint64_t *part = tree[p];
#pragma omp task depend(inout : part [0:EACH]) firstprivate(p)
				stir(part, EACH, (uint64_t)p);
			}
			if (round % 2) {
#pragma omp taskwait
				tree[0][0] ^= tree[PARTS - 1][EACH - 1];
			}
		}
	}
	printf("family %016llx\n", (unsigned long long)hash(tree, sizeof(tree)));
}

/* Clang asks for this when the runtime has given memory for the task, and before it gets the task.
 */
static uint64_t *part_of(int p)
{
	static int struck[PARTS];

	if (HALE_Raise_DUE && p % 3 == 2 && struck[p]++ == 0)
		HALE_Raise_DUE();
	return tree[p];
}

/* An error in a task that is about to make another one: with and without a group around both. */
static void making(void)
{
#pragma omp parallel
#pragma omp single
	{
#pragma omp task depend(inout : tree)
		{
			for (int p = 0; p < PARTS / 2; p++)
#pragma omp task depend(inout : part_of(p)[0])
				stir(tree[p], EACH, (uint64_t)p);
#pragma omp taskwait
#pragma omp taskgroup
			for (int p = PARTS / 2; p < PARTS; p++)
#pragma omp task depend(inout : part_of(p)[0])
				stir(tree[p], EACH, (uint64_t)p);
		}
	}
	printf("making %016llx\n", (unsigned long long)hash(tree, sizeof(tree)));
}

/* ---- what is declared wrongly ---- */

static long unsaid[9000];

static void undeclared(void)
{
	static long said[9000];
#pragma omp parallel
#pragma omp single
	for (int k = 0; k < 20; k++) {
#pragma omp task depend(inout : said [0:9000])
		said[k] += k;
#pragma omp task depend(inout : said [0:9000]) firstprivate(k)
		for (int i = 0; i < 100; i++)
			unsaid[4000 + i * k] += said[i] + k;
	}
	printf("undeclared %016llx\n", (unsigned long long)hash(unsaid, sizeof(unsaid)));
}

/* A single thread may have to execute all of them, so nobody waits for ever. */
static void await(int *counter, int value)
{
	for (int i = 0; i < 200000 && __atomic_load_n(counter, __ATOMIC_SEQ_CST) < value; i++)
		;
}

/* ---- two tasks that meet the same lost page at once ---- */

static _Alignas(PAGE) unsigned char both_read[PAGE];

static void twins(void)
{
	uint64_t sum[2] = {0, 0};

	for (int i = 0; i < PAGE; i++)
		both_read[i] = (unsigned char)(i * 7);
#pragma omp parallel
#pragma omp single
	for (int round = 0; round < 300; round++) {
		static int here;
		here = 0;
#pragma omp taskgroup
		for (int k = 0; k < 2; k++) {
			uint64_t *mine = &sum[k];
#pragma omp task firstprivate(mine) depend(in : both_read) depend(inout : mine [0:1])
			{
				__atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
				await(&here, 2);
				mine[0] += hash(both_read, PAGE);
			}
		}
	}
	printf("twins %016lx %016lx\n", (unsigned long)sum[0], (unsigned long)sum[1]);
}

/* ---- a page that is lost when the task that wrote it does not look at it any more ---- */

static _Alignas(PAGE) uint64_t written[PAGE / 8];

static void last(void)
{
	static uint64_t nothing;

#pragma omp parallel
#pragma omp single
	for (int round = 0; round < 100; round++) {
		static int here;
		here = 0;
#pragma omp taskgroup
		{
#pragma omp task depend(inout : written)
			{
				for (int i = 0; i < PAGE / 8; i++)
					written[i] = written[i] * 3 + (uint64_t)i;
				__atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
				await(&here, 2);
			}
			await(&here, 1);
			/* as it begins, a page may be lost */
#pragma omp task depend(inout : nothing)
			__atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
		}
	}
	printf("last %016lx\n", (unsigned long)hash(written, PAGE));
}

static void nothere(void)
{
	static long there[100];
	char *beyond = (char *)there;
#pragma omp parallel
#pragma omp single
	for (int k = 0; k < 20; k++) {
#pragma omp task depend(inout : beyond [0:1l << 34])
		there[k] += k;
	}
	printf("nothere %016llx\n", (unsigned long long)hash(there, sizeof(there)));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "product";
	if (!strcmp(mode, "product"))
		product();
	else if (!strcmp(mode, "until"))
		until(argv[2]);
	else if (!strcmp(mode, "kinds"))
		kinds();
	else if (!strcmp(mode, "family"))
		family();
	else if (!strcmp(mode, "making"))
		making();
	else if (!strcmp(mode, "undeclared"))
		undeclared();
	else if (!strcmp(mode, "twins"))
		twins();
	else if (!strcmp(mode, "last"))
		last();
	else if (!strcmp(mode, "nothere"))
		nothere();
	else
		at_place(mode);
	return 0;
}
