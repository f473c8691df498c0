// SPDX-License-Identifier: BSD-3-Clause
/* Programs that go on changing their memory while it is copied. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/test/scenario.h"

enum { PAGE = 4096, MIB = 1 << 20, AREA = 12 * MIB };

static char *anon(size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

/* ---- every way to change a memory map ---- */

static char *area, *gone, *again, *grown, *sealed, *heap, *late, *file_map, *moved;

static void change(unsigned round)
{
	switch (round) {
	case 0:
		fill(area + 100 * PAGE, 3 * PAGE, 2);
		memset(area + 200 * PAGE, 0, PAGE);
		CHECK(!madvise(area + 300 * PAGE, 2 * PAGE, MADV_DONTNEED));
		CHECK(!munmap(gone, MIB));
		CHECK(!munmap(again, MIB));
		CHECK(mmap(again, MIB, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == again);
		fill(again + 7 * PAGE, PAGE, 3);
		grown = mremap(grown, MIB, 3 * MIB, MREMAP_MAYMOVE);
		CHECK(grown != MAP_FAILED);
		fill(grown + 2 * MIB, MIB, 4);
		CHECK(!mprotect(sealed, MIB, PROT_NONE));
		CHECK(sbrk(MIB) == heap + MIB);
		fill(heap + MIB, MIB, 5);
		file_map[5 * PAGE] = 1;
		break;
	case 1:
		fill(area + 101 * PAGE, PAGE, 6);
		late = anon(4 * MIB);
		fill(late, MIB, 7);
		/* into the middle of another mapping's neighbourhood */
		moved = mremap(late + 2 * MIB, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED,
			       area + AREA + 16 * MIB);
		CHECK(moved == area + AREA + 16 * MIB);
		fill(moved, MIB, 8);
		CHECK(!munmap(area + 400 * PAGE, 50 * PAGE));
		CHECK(sbrk(-MIB / 2) != (void *)-1);
		CHECK(!mprotect(file_map, 8 * PAGE, PROT_READ));
		CHECK(!munmap(grown + MIB / 2, MIB / 2));
		break;
	case 2:
		area[500 * PAGE + 17]++;
		CHECK(!madvise(area + 700 * PAGE, PAGE, MADV_DONTNEED));
		CHECK(mmap(area + 410 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area + 410 * PAGE);
		break;
	}
}

static void check_changed(void)
{
	CHECK(filled(area, 100 * PAGE, 1));
	CHECK(filled(area + 100 * PAGE, PAGE, 2) && filled(area + 101 * PAGE, PAGE, 6));
	CHECK(zero(area + 200 * PAGE, PAGE) && zero(area + 300 * PAGE, 2 * PAGE));
	CHECK(filled(area + 302 * PAGE, PAGE, 1 + 302 * 512));
	CHECK(zero(area + 410 * PAGE, PAGE) && zero(area + 700 * PAGE, PAGE));
	area[500 * PAGE + 17]--;
	CHECK(filled(area + 500 * PAGE, PAGE, 1 + 500 * 512));
	CHECK(filled(area + 701 * PAGE, AREA - 701 * PAGE, 1 + 701 * 512));
	CHECK(msync(area + 400 * PAGE, PAGE, MS_ASYNC) && msync(area + 449 * PAGE, PAGE, MS_ASYNC));
	CHECK(zero(again, 7 * PAGE) && filled(again + 7 * PAGE, PAGE, 3));
	CHECK(filled(grown, MIB / 2, 30) && zero(grown + MIB, MIB) &&
	      filled(grown + 2 * MIB, MIB, 4));
	CHECK(!mprotect(sealed, MIB, PROT_READ) && filled(sealed, MIB, 31));
	CHECK(filled(heap, MIB, 32) && filled(heap + MIB, MIB / 2, 5));
	CHECK(sbrk(MIB) == heap + MIB + MIB / 2 && zero(heap + MIB + MIB / 2, MIB));
	CHECK(filled(late, MIB, 7) && filled(moved, MIB, 8) && zero(late + MIB, MIB));
	CHECK(file_map[5 * PAGE] == 1 && filled(file_map + PAGE, 4 * PAGE, 33 + 512));
	CHECK(msync(gone, PAGE, MS_ASYNC)); /* nothing is there */
	/* what was one mapping is one: mremap takes no two */
	CHECK(mremap(late, 2 * MIB, 3 * MIB, MREMAP_MAYMOVE) != MAP_FAILED);
}

static void changing(void)
{
	char *room = anon(AREA + 64 * MIB);
	CHECK(!munmap(room, AREA + 64 * MIB));
	area = mmap(room, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0);
	gone = anon(MIB);
	again = anon(MIB);
	grown = anon(MIB);
	sealed = anon(MIB);
	fill(area, AREA, 1);
	fill(gone, MIB, 29);
	fill(again, MIB, 29);
	fill(grown, MIB, 30);
	fill(sealed, MIB, 31);
	char content[8 * PAGE];
	fill(content, sizeof(content), 33);
	FILE *f = fopen(in_folder("mapped"), "w");
	CHECK(f && fwrite(content, sizeof(content), 1, f) == 1 && !fclose(f));
	int fd = open(in_folder("mapped"), O_RDONLY);
	file_map = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(file_map != MAP_FAILED && !close(fd));
	/* from here on nobody calls malloc */
	heap = sbrk(MIB);
	fill(heap, MIB, 32);
	between = change;
	take();
	between = NULL;
	check_changed();
}

/* ---- it writes all the time ---- */

enum { CELLS = 1 << 20, STEPS = 100000000 };

static void *driver(void *arg)
{
	take();
	return NULL;
}

static void busy(void)
{
	uint64_t *cell = (uint64_t *)anon(CELLS * 8), sum = 0, at = 1;
	pthread_t thread;
	for (int i = 0; i < STEPS; i++) {
		at = mix(at + (uint64_t)i);
		cell[at % CELLS] += at;
		if (i == STEPS / 100)
			CHECK(!pthread_create(&thread, NULL, driver, NULL));
	}
	CHECK(!pthread_join(thread, NULL));
	for (int i = 0; i < CELLS; i++)
		sum = mix(sum + cell[i]);
	FILE *f = fopen(in_folder("result"), "w");
	CHECK(f && fprintf(f, "%lx\n", (unsigned long)sum) > 0 && !fclose(f));
}

static void shared_log(void)
{
	char text[64] = "";
	int fd = open(in_folder("shared_log"), O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
	CHECK(write(fd, "mine\n", 5) == 5);
	CHECK(take());
	CHECK(write(fd, "mine\n", 5) == 5);
	CHECK(pread(fd, text, sizeof(text), 0) == 18 && !strcmp(text, "mine\nanother\nmine\n"));
}

static void with_child(void)
{
	pid_t child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	take();
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
}

/* ---- more places than the kernel lists at once ---- */

/* Around two of Linux's buffers of 512 regions: there it has listed some twice. */
static const size_t places[] = {511, 512, 513, 514, 1023, 1024, 1025, 1026};
static char *wide[sizeof(places) / sizeof(*places)];

static void scatter(unsigned round)
{
	for (size_t k = 0; k < sizeof(places) / sizeof(*places); k++)
		for (size_t i = 0; i < places[k]; i++)
			wide[k][2 * i * PAGE] = (char)(round + 1);
}

static void scattered(void)
{
	enum { REST = 8 * MIB }; /* nothing is there behind the places, nor between them */
	for (size_t k = 0; k < sizeof(places) / sizeof(*places); k++) {
		size_t len = 2 * places[k] * PAGE + REST;
		wide[k] = anon(len + MIB);
		CHECK(!madvise(wide[k], len + MIB, MADV_NOHUGEPAGE));
		CHECK(!mprotect(wide[k] + len, MIB, PROT_NONE)); /* its neighbour is another one */
	}
	scatter(76);
	between = scatter;
	take();
	for (size_t k = 0; k < sizeof(places) / sizeof(*places); k++) {
		CHECK(wide[k][0] && wide[k][0] != 77);
		for (size_t i = 0; i < places[k]; i++)
			CHECK(wide[k][2 * i * PAGE] == wide[k][0] &&
			      zero(wide[k] + 2 * i * PAGE + PAGE, PAGE));
	}
}

const struct scenario scenarios_live[] = {
    {"changing", changing},	{"scattered", scattered},   {"busy", busy},
    {"shared_log", shared_log}, {"with_child", with_child}, {NULL, NULL}};
