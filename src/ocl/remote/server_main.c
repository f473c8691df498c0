/* SPDX-License-Identifier: BSD-3-Clause */
/* hale-opencl-server: takes requests from the ring, which server.c carries out. Started by the
 * driver in a program (client.c) with the shared region as descriptor WIRE_FD; ends when the
 * program does. */
#include <errno.h>
#include <linux/futex.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cpus.h"
#include "ocl/remote/server.h"

enum { REQUEST_MAX = sizeof(struct wire_request) + WIRE_WORDS * 8 };

static int spins; /* looks at the ring before sleeping */

/* Another program has taken its place (exec): nobody will ask again, and devices are to be given
 * back. */
static void end_if_left(void)
{
	const uint64_t at = wire->client_at + offsetof(struct remote_wire, magic);
	uint32_t magic = WIRE_MAGIC;
	bool there = !wire->client_at || fetch(&magic, at, sizeof(magic)) || errno != EFAULT;

	if (!there || magic != WIRE_MAGIC)
		_exit(0);
}

static void wait_for_requests(uint64_t tail)
{
	struct timespec t = {1, 0};
	struct patience p = {.looks = spins, .us = atomic_load(&wire->patience)};

	do {
		if (atomic_load_explicit(&wire->head, memory_order_acquire) != tail)
			return;
	} while (patience_left(&p));
	uint32_t seen = atomic_load(&wire->bell);
	atomic_store(&wire->sleeping, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&wire->head) == tail &&
	    syscall(SYS_futex, &wire->bell, FUTEX_WAIT, seen, &t, NULL, 0) != 0 &&
	    errno == ETIMEDOUT)
		end_if_left();
	atomic_store(&wire->sleeping, 0);
}

/* The request at tail, as it is now, in memory that the program can't write to. NULL: the ring has
 * been overwritten, and where the next one begins nobody knows. */
static const struct wire_request *take_request(uint64_t tail)
{
	static _Alignas(8) char copy[REQUEST_MAX];
	const struct wire_request *r = (const struct wire_request *)(wire->ring + tail % WIRE_RING);
	struct wire_request *taken = (struct wire_request *)copy;
	size_t left = WIRE_RING - tail % WIRE_RING;

	if (left < sizeof(*r)) { /* what is left of the ring holds no header */
		*taken = (struct wire_request){.size = (uint32_t)left, .op = OP_FILLER};
		return taken;
	}
	*taken = *r;
	if (taken->size < 8 || taken->size % 8 || taken->size > left)
		return NULL;
	if (taken->op == OP_FILLER)
		return taken;
	if (taken->size < sizeof(*r) || taken->size > REQUEST_MAX)
		return NULL;
	memcpy(taken->word, r->word, taken->size - sizeof(*r));
	return taken;
}

static void run(void)
{
	uint64_t tail = 0;

	for (;;) {
		const struct wire_request *r;

		if (atomic_load_explicit(&wire->head, memory_order_acquire) == tail) {
			wait_for_requests(tail);
			continue;
		}
		r = take_request(tail);
		if (!r) {
			log_warn("opencl: the program has overwritten the memory that it shares "
				 "with its OpenCL server, which ends");
			return;
		}
		tail += r->size;
		if (r->op != OP_FILLER)
			carry_out(r);
		atomic_store_explicit(&wire->tail, tail, memory_order_release);
	}
}

/* The program ends, however it does: so do we, also in the middle of a kernel. */
static void *watch(void *arg)
{
	struct pollfd p = {.fd = (int)(intptr_t)arg, .events = POLLIN};

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static bool start_watching(void)
{
	int fd = (int)syscall(SYS_pidfd_open, wire->client_pid, 0);
	pthread_t t;

	return fd >= 0 && pthread_create(&t, NULL, watch, (void *)(intptr_t)fd) == 0 &&
	       pthread_detach(t) == 0;
}

/* Where no device is made of this machine's processors, and each rank of the node has some of these
 * to spare, a core for each side is spent as drivers of GPUs do: to be woken takes 10 to 50 us. */
static uint32_t patience(void)
{
	const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	unsigned beside = ranks ? (unsigned)atoi(ranks) : 1;

	return !devices_compute_here() && cpus_allowed() >= 4 * (beside ? beside : 1) ? 2000 : 0;
}

static void say_ready(bool good)
{
	atomic_store(&wire->ready, good ? 1 : 2);
	syscall(SYS_futex, &wire->ready, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

int main(void)
{
	/* what a terminal or a launcher sends to the whole group is the program's business */
	static const int passed_over[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
					  SIGUSR1, SIGUSR2, SIGPIPE};
	bool good;

	for (size_t i = 0; i < ARRAY_LEN(passed_over); i++)
		signal(passed_over[i], SIG_IGN);
	log_init_from_env();
	spins = cpus_allowed() >= 4 ? 10000 : 2000;
	/* blocks for transfers come and go: what has been touched stays */
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	wire = mmap(NULL, sizeof(*wire), PROT_READ | PROT_WRITE, MAP_SHARED, WIRE_FD, 0);
	if (wire == MAP_FAILED || wire->magic != WIRE_MAGIC) {
		log_warn(
		    "hale-opencl-server is started by OpenCL programs under hale run --opencl");
		return 64;
	}
	close(WIRE_FD);
	svm_open();
	atomic_store(&wire->server_pid, (uint32_t)getpid());
	good = start_watching();
	if (good)
		good = devices_begin(wire->trouble, sizeof(wire->trouble));
	else
		snprintf(wire->trouble, sizeof(wire->trouble), "can't watch the program");
	if (good)
		atomic_store(&wire->patience, patience());
	say_ready(good);
	if (good)
		run();
	return 1;
}
