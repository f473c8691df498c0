// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/test/scenario.h"

enum { PAGE = 4096, MIB = 1 << 20 };

static char *map(size_t len, int prot, int flags, int fd)
{
	char *p = mmap(NULL, len, prot, flags, fd, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

static char *anon(size_t len)
{
	return map(len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* ---- every kind of private memory ---- */

static int deep(int n)
{
	volatile char room[8192];
	room[n % 8192] = 1;
	return n ? deep(n - 1) + room[n % 8192] : 0;
}

static void private_memory(void)
{
	char *big = anon(16 * MIB), *sparse = anon(16 * MIB), *sealed = anon(4 * PAGE);
	char *read_only = anon(4 * PAGE);
	char *huge = map(64ul << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	char *heap = sbrk(MIB);
	fill(big, 16 * MIB, 1);
	for (int i = 0; i < 4096; i += 37)
		fill(sparse + i * PAGE, PAGE, (uint64_t)i);
	fill(sealed, 4 * PAGE, 2);
	fill(read_only, 4 * PAGE, 3);
	fill(heap, MIB, 4);
	CHECK(!mprotect(sealed, 4 * PAGE, PROT_NONE) && !mprotect(read_only, 4 * PAGE, PROT_READ));
	take();
	CHECK(filled(big, 16 * MIB, 1) && filled(read_only, 4 * PAGE, 3) && filled(heap, MIB, 4));
	for (int i = 0; i < 4096; i++)
		CHECK(i % 37 ? zero(sparse + i * PAGE, PAGE)
			     : filled(sparse + i * PAGE, PAGE, (uint64_t)i));
	CHECK(!mprotect(sealed, 4 * PAGE, PROT_READ) && filled(sealed, 4 * PAGE, 2));
	CHECK(sbrk(MIB) == heap + MIB && zero(heap + MIB, MIB));
	CHECK(deep(700) == 700); /* the stack still grows */
	CHECK(!mprotect(huge + (1ul << 30), PAGE, PROT_READ | PROT_WRITE));
	huge[1ul << 30] = 1;
	CHECK(!munmap(huge, 64ul << 30) && !munmap(big, 16 * MIB));
}

/* ---- guard regions ---- */

static sigjmp_buf touched;

static void on_touch(int sig)
{
	siglongjmp(touched, sig);
}

static bool is_guarded(const volatile char *p)
{
	if (sigsetjmp(touched, 1))
		return true;
	(void)*p;
	return false;
}

static void guards(void)
{
	enum { GUARD_INSTALL = 102 };
	char *own = anon(64 * PAGE);
	char *shared = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	signal(SIGSEGV, on_touch);
	fill(own, 64 * PAGE, 1);
	fill(shared, 8 * PAGE, 2);
	if (madvise(own + 2 * PAGE, 3 * PAGE, GUARD_INSTALL)) /* before Linux 6.13 */
		return;
	CHECK(!madvise(own + 60 * PAGE, 4 * PAGE, GUARD_INSTALL));
	bool both = !madvise(shared + PAGE, PAGE, GUARD_INSTALL); /* since 6.15 */
	for (int round = 0; round < 2; round++) {
		take(); /* the second time of what came back */
		for (int i = 0; i < 64; i++)
			CHECK(is_guarded(own + i * PAGE) == ((i >= 2 && i < 5) || i >= 60));
		CHECK(filled(own, 2 * PAGE, 1));
		for (int i = 0; both && i < 8; i++)
			CHECK(is_guarded(shared + i * PAGE) == (i == 1));
		CHECK(filled(shared, PAGE, 2));
	}
}

/* ---- mappings of files ---- */

static int file_of(const char *name, size_t len, uint64_t seed)
{
	char *content = malloc(len);
	fill(content, len, seed);
	int fd = open(in_folder(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, content, len) == (ssize_t)len);
	free(content);
	return fd;
}

static void file_mappings(void)
{
	int fd = file_of("private", 16 * PAGE, 10);
	char *private = map(16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	close(fd);
	fd = file_of("gone", 8 * PAGE, 20);
	char *gone = map(12 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd); /* 4 pages too long */
	close(fd);
	unlink(in_folder("gone"));
	fd = file_of("shared", 8 * PAGE, 30);
	char *shared = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	close(fd);
	fill(private + 3 * PAGE, PAGE, 11);
	memset(private + 5 * PAGE, 0, PAGE); /* a zero page that isn't the file's */
	fill(gone + 2 * PAGE, PAGE, 21);
	fill(shared + PAGE, PAGE, 31);
	take();
	CHECK(filled(private, PAGE, 10) && filled(private + 3 * PAGE, PAGE, 11));
	CHECK(zero(private + 5 * PAGE, PAGE) && !zero(private + 6 * PAGE, PAGE));
	CHECK(filled(gone, PAGE, 20) && filled(gone + 2 * PAGE, PAGE, 21));
	CHECK(filled(shared, PAGE, 30) && filled(shared + PAGE, PAGE, 31));
	/* what happens after the checkpoint is undone by a restart */
	fill(shared, 8 * PAGE, 99);
	fill(private, 8 * PAGE, 99);
}

/* Shared memory without a name: two views of one memory stay two views of one memory. */
static void shared_memory(void)
{
	int fd = memfd_create("views", 0);
	CHECK(!ftruncate(fd, 8 * PAGE));
	char *one = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	char *two = map(8 * PAGE, PROT_READ, MAP_SHARED, fd);
	char *plain = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	fill(one, 4 * PAGE, 40);
	fill(plain + PAGE, PAGE, 41);
	take();
	CHECK(filled(two, 4 * PAGE, 40) && zero(two + 4 * PAGE, 4 * PAGE));
	CHECK(filled(plain + PAGE, PAGE, 41) && zero(plain, PAGE));
	fill(one + 4 * PAGE, PAGE, 42);
	CHECK(filled(two + 4 * PAGE, PAGE, 42));
	char page[PAGE];
	CHECK(pread(fd, page, PAGE, 4 * PAGE) == PAGE && filled(page, PAGE, 42));
	memset(plain, 1, 8 * PAGE);
}

/* ---- a chain of differences ---- */

static char *area, *mapped_late, *remapped;

/* A recursive mutex on two pages, of which taking it writes only the first. */
static pthread_mutex_t *mutex_across(char *edge)
{
	pthread_mutex_t *m = (pthread_mutex_t *)(edge - 16);
	pthread_mutexattr_t recursive;
	CHECK(!pthread_mutexattr_init(&recursive));
	CHECK(!pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE));
	CHECK(!pthread_mutex_init(m, &recursive));
	return m;
}

static void chain_of(size_t size)
{
	area = anon(size);
	remapped = anon(64 * PAGE);
	char *idle = anon(4 * MIB);
	fill(area, size, 50);
	fill(idle, 4 * MIB, 56);
	pthread_mutex_t *held = mutex_across(area + 601 * PAGE);
	fill(remapped, 64 * PAGE, 51);
	char *holed = anon(8 * PAGE);
	fill(holed, 8 * PAGE, 57);
	take();
	/* two stretches of the base that the newest one has no place for */
	munmap(holed, 2 * PAGE);
	munmap(holed + 4 * PAGE, 2 * PAGE);
	/* a few pages written, some given back, one mapping replaced, a new one */
	fill(area + 100 * PAGE, 3 * PAGE, 52);
	memset(area + 200 * PAGE, 0, PAGE);
	CHECK(!madvise(area + 300 * PAGE, 2 * PAGE, MADV_DONTNEED));
	CHECK(!pthread_mutex_lock(held));
	munmap(remapped, 64 * PAGE);
	CHECK(mmap(remapped, 64 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == remapped);
	fill(remapped + 7 * PAGE, PAGE, 53);
	mapped_late = anon(32 * PAGE);
	fill(mapped_late, 16 * PAGE, 54);
	take();
	CHECK(!pthread_mutex_lock(held));
	CHECK(!pthread_mutex_unlock(held) && !pthread_mutex_unlock(held));
	take();
	fill(area + 101 * PAGE, PAGE, 55);
	CHECK(!madvise(area + 700 * PAGE, PAGE, MADV_DONTNEED));
	area[500 * PAGE + 17]++;
	take();
	CHECK(filled(area, 100 * PAGE, 50));
	CHECK(filled(area + 100 * PAGE, PAGE, 52) && filled(area + 101 * PAGE, PAGE, 55));
	CHECK(zero(area + 200 * PAGE, PAGE) && zero(area + 300 * PAGE, 2 * PAGE));
	CHECK(zero(remapped, 7 * PAGE) && filled(remapped + 7 * PAGE, PAGE, 53));
	CHECK(filled(mapped_late, 16 * PAGE, 54) && zero(mapped_late + 16 * PAGE, 16 * PAGE));
	area[500 * PAGE + 17]--;
	CHECK(filled(area + 302 * PAGE, PAGE, 50 + 302 * 512));
	CHECK(filled(area + 500 * PAGE, PAGE, 50 + 500 * 512));
	CHECK(zero(area + 700 * PAGE, PAGE) && filled(idle, 4 * MIB, 56));
	CHECK(filled(holed + 2 * PAGE, 2 * PAGE, 57 + 2 * 512));
	CHECK(filled(area + 701 * PAGE, size - 701 * PAGE, 50 + 701 * 512));
	/* as before, children inherit it */
	pid_t child = fork();
	if (!child)
		_exit(!filled(area + 101 * PAGE, PAGE, 55));
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void chain(void)
{
	chain_of(8 * MIB);
}

/* Large enough that what was written is copied aside. */
static void large_chain(void)
{
	chain_of(32 * MIB);
}

/* ---- image after image ---- */

static long field(const char *path, const char *key)
{
	char line[512];
	long value = -1;
	FILE *f = fopen(path, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			value = atol(line + strlen(key));
	fclose(f);
	return value;
}

static int open_descriptors(void)
{
	int n = 0;
	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void take_many(int n, bool keep)
{
	char *p = anon(MIB);
	long size = 0;
	int fds = 0;
	bool restored = false;
	for (int i = 0; i < n; i++) {
		char old[16];
		p[i * PAGE] = 1;
		restored = take();
		if (restored) /* from the last one, mostly */
			break;
		snprintf(old, sizeof(old), "%d", i);
		if (!keep)
			unlink(in_folder(old));
		if (i == 10) {
			size = field("/proc/self/status", "VmSize:");
			fds = open_descriptors();
		}
	}
	if (!restored) {
		CHECK(field("/proc/self/status", "VmSize:") <= size);
		CHECK(open_descriptors() == fds);
	}
}

static void many(void)
{
	take_many(100, false);
}

static void some(void)
{
	take_many(50, true);
}

/* ---- restored, captured again, restored again ---- */

static void twice(void)
{
	char *p = anon(8 * MIB), *q = anon(2 * MIB);
	fill(p, 8 * MIB, 60);
	fill(q, PAGE, 61);
	if (!take())
		return;
	CHECK(filled(p, 8 * MIB, 60));
	fill(p + 5 * PAGE, PAGE, 62);
	CHECK(!mprotect(p + MIB, MIB, PROT_READ));
	take();
	CHECK(filled(p, 5 * PAGE, 60) && filled(p + 5 * PAGE, PAGE, 62) && filled(q, PAGE, 61));
	CHECK(filled(p + 7 * MIB, MIB, 60 + 7 * MIB / 8) && zero(q + PAGE, 2 * MIB - PAGE));
}

/* ---- memory that images leave out ---- */

/* 100 bytes of a second page: the page is left out as a whole, what lies behind it comes back. */
static void left_out(void)
{
	char *p = anon(4 * PAGE);

	fill(p, 4 * PAGE, 5);
	image_exclude_add(p, PAGE + 100);
	alarm(60);
	bool restored = take();
	alarm(0);
	CHECK(filled(p + 2 * PAGE, 2 * PAGE, 5 + 2 * PAGE / 8));
	CHECK(restored ? msync(p, 2 * PAGE, MS_ASYNC) != 0 : filled(p, 4 * PAGE, 5));
}

/* What is told of memory counts for children that are made later. */
static void advice(void)
{
	char *wiped =
	    mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *kept =
	    mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	CHECK(wiped != MAP_FAILED && kept != MAP_FAILED);
	CHECK(!madvise(wiped, PAGE, MADV_WIPEONFORK) && !madvise(kept, PAGE, MADV_DONTFORK));
	memset(wiped, 'w', 2 * PAGE);
	memset(kept, 'k', 2 * PAGE);
	take();
	CHECK(wiped[0] == 'w' && kept[0] == 'k');
	pid_t pid = fork();
	if (pid == 0) {
		unsigned char there;
		_exit(!wiped[0] && wiped[PAGE] == 'w' && mincore(kept, PAGE, &there) == -1 &&
			      kept[PAGE] == 'k'
			  ? 7
			  : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

const struct scenario scenarios_memory[] = {{"private_memory", private_memory},
					    {"left_out", left_out},
					    {"guards", guards},
					    {"file_mappings", file_mappings},
					    {"shared_memory", shared_memory},
					    {"chain", chain},
					    {"large_chain", large_chain},
					    {"advice", advice},
					    {"some", some},
					    {"many", many},
					    {"twice", twice},
					    {NULL, NULL}};
