/* SPDX-License-Identifier: BSD-3-Clause */
#include "ocl/remote/ring.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cpus.h"

struct remote_wire *wire;

/* ---- the program's memory ---- */

static bool vm(bool to_program, uint64_t address, char *here, size_t size)
{
	while (size > 0) {
		struct iovec near = {here, size}, far = {(void *)(uintptr_t)address, size};
		pid_t pid = (pid_t)wire->client_pid;
		ssize_t n = to_program ? process_vm_writev(pid, &near, 1, &far, 1, 0)
				       : process_vm_readv(pid, &near, 1, &far, 1, 0);

		if (n <= 0)
			return false;
		here += n;
		address += (uint64_t)n;
		size -= (size_t)n;
	}
	return true;
}

bool memory_read(void *to, uint64_t address, size_t size)
{
	return vm(false, address, to, size);
}

bool memory_write(uint64_t address, const void *from, size_t size)
{
	return vm(true, address, (char *)from, size);
}

/* ---- beginning ---- */

bool ring_open(void)
{
	wire = mmap(NULL, sizeof(*wire), PROT_READ | PROT_WRITE, MAP_SHARED, WIRE_FD, 0);
	if (wire == MAP_FAILED || wire->magic != WIRE_MAGIC)
		return false;
	close(WIRE_FD);
	return true;
}

static void *watch(void *arg)
{
	struct pollfd p = {.fd = (int)(intptr_t)arg, .events = POLLIN};

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	_exit(0);
}

bool ring_watch(void)
{
	int fd = (int)syscall(SYS_pidfd_open, wire->client_pid, 0);
	pthread_t t;

	return fd >= 0 && pthread_create(&t, NULL, watch, (void *)(intptr_t)fd) == 0 &&
	       pthread_detach(t) == 0;
}

void ring_ignore_signals(void)
{
	static const int passed_over[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
					  SIGUSR1, SIGUSR2, SIGPIPE};

	for (size_t i = 0; i < ARRAY_LEN(passed_over); i++)
		signal(passed_over[i], SIG_IGN);
}

void ring_say_ready(bool good)
{
	atomic_store(&wire->ready, good ? 1 : 2);
	syscall(SYS_futex, &wire->ready, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- answers ---- */

void ring_reply_done(struct wire_reply *r)
{
	if (atomic_exchange(&r->state, SLOT_DONE) == SLOT_SLEEPING)
		syscall(SYS_futex, &r->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void ring_call_back(uint64_t cookie, int32_t status)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t head;

	pthread_mutex_lock(&lock);
	head = atomic_load(&wire->callback_head);
	while (head - atomic_load(&wire->callback_tail) >= WIRE_CALLBACKS)
		usleep(1000);
	wire->callback[head % WIRE_CALLBACKS] = (struct wire_callback){cookie, status};
	atomic_store(&wire->callback_head, head + 1);
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&wire->callback_bell, 1);
	syscall(SYS_futex, &wire->callback_bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- requests ---- */

/* Another program has taken its place (exec): nobody will ask again, and devices are to be given
 * back. */
static void end_if_left(void)
{
	const uint64_t at = wire->client_at + offsetof(struct remote_wire, magic);
	uint32_t magic = WIRE_MAGIC;
	bool there = !wire->client_at || memory_read(&magic, at, sizeof(magic)) || errno != EFAULT;

	if (!there || magic != WIRE_MAGIC)
		_exit(0);
}

static void wait_for_requests(uint64_t tail, int spins)
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

void ring_run(void (*carry_out)(const struct wire_request *r), void (*idle)(void))
{
	int spins = cpus_allowed() >= 4 ? 10000 : 2000; /* looks before sleeping */
	uint64_t tail = 0;

	for (;;) {
		const struct wire_request *r;

		if (atomic_load_explicit(&wire->head, memory_order_acquire) == tail) {
			if (idle)
				idle();
			wait_for_requests(tail, spins);
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
