/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/device/work.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/base.h"
#include "base/fmt.h"

struct device_work work;

static void *object;
static void *functions[WORK_FUNCTIONS];
static unsigned function_count;

static void say(struct wire_head *h, const void *payload, size_t bytes)
{
	/* a host that is gone is noticed by the next message that doesn't come */
	wire_say(WORK_FD, h, payload, bytes);
}

void work_done(uint64_t number, uint64_t size, const void *payload, size_t bytes)
{
	struct wire_head h = {.op = OFF_DONE, .number = number, .size = size};

	say(&h, payload, bytes);
}

void work_failed(int error, const char *fmt, ...)
{
	struct wire_head h = {.op = OFF_FAILED, .error = (uint16_t)error};
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	fmt_vprint(text, sizeof(text), fmt, ap);
	va_end(ap);
	say(&h, text, strlen(text));
}

void work_tell(char state)
{
	if (write(WORK_DAEMON, &state, 1) != 1)
		log_debug("the daemon is gone");
}

void work_introduce(void)
{
	struct offload_self self = {.pid = (int32_t)getpid(), .proof_at = (uint64_t)&work.proof};
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, self.boot, 36) != 36)
			self.boot[0] = 0;
		close(fd);
	}
	if (getrandom(&work.proof, sizeof(work.proof), 0) != (ssize_t)sizeof(work.proof))
		work.proof = 0;
	self.proof = work.proof;
	work_done(0, 0, &self, sizeof(self));
}

/* ---- requests ---- */

static void find_function(const char *name)
{
	void *f = dlsym(object, name);
	unsigned i = 0;

	if (!f) {
		work_failed(ENOENT, "the shared object has no function '%.200s'", name);
		return;
	}
	while (i < function_count && functions[i] != f)
		i++;
	if (i == WORK_FUNCTIONS) {
		work_failed(ENFILE, "a process has at most %d functions", WORK_FUNCTIONS);
		return;
	}
	functions[i] = f;
	if (i == function_count)
		function_count++;
	work_done(i, 0, NULL, 0);
}

static void alloc_buffer(uint64_t size)
{
	uint64_t at = store_alloc(&work.store, size);

	if (at)
		work_done(at, size, NULL, 0);
	else
		work_failed(errno,
			    "no room for a buffer of %lu bytes: the process has %lu bytes and %u "
			    "buffers of at most %d",
			    (unsigned long)size, (unsigned long)work.store.size, work.store.count,
			    OFFLOAD_RANGES);
}

/* What is written beside all buffers is read and dropped: the messages behind it are still good. */
static void take_bytes(const struct wire_head *h)
{
	static char dropped[4096];
	bool good = store_has(&work.store, h->number, h->size);

	if (good && wire_hear_bytes(WORK_FD, (void *)h->number, h->size) != 0)
		_exit(0);
	for (uint64_t left = good ? 0 : h->size; left > 0;) {
		size_t n = left < sizeof(dropped) ? (size_t)left : sizeof(dropped);

		if (wire_hear_bytes(WORK_FD, dropped, n) != 0)
			_exit(0);
		left -= n;
	}
	if (good)
		work_done(0, 0, NULL, 0);
	else
		work_failed(EFAULT, "there is no buffer at %lx with %lu bytes",
			    (unsigned long)h->number, (unsigned long)h->size);
}

static void give_bytes(const struct wire_head *h)
{
	if (!store_has(&work.store, h->number, h->size)) {
		work_failed(EFAULT, "there is no buffer at %lx with %lu bytes",
			    (unsigned long)h->number, (unsigned long)h->size);
		return;
	}
	work_done(0, h->sum ? 0 : h->size, NULL, 0);
	if (h->sum)
		return;
	wire_say_bytes(WORK_FD, (void *)h->number, h->size);
}

static void run_function(const struct wire_head *h, const void *payload)
{
	struct wire_head failed = {.op = OFF_RESULT, .number = h->number};
	int error = h->sum < function_count ? pipeline_add(h, payload, functions[h->sum]) : ENOENT;
	const char *text = error == ENOMEM ? "the device process has no memory left"
					   : "no such function, pipeline or buffer";

	if (!error)
		return;
	failed.error = (uint16_t)error;
	say(&failed, text, strlen(text));
}

static void end_pipe(uint64_t number)
{
	/* its last results need the lock that we have */
	sem_post(&work.send);
	bool good = pipeline_end(number);
	while (sem_wait(&work.send) != 0)
		;
	if (good)
		work_done(0, 0, NULL, 0);
	else
		work_failed(EINVAL, "there is no such pipeline");
}

static void begin_pipe(void)
{
	int number = pipeline_begin();

	if (number >= 0)
		work_done((uint64_t)number, 0, NULL, 0);
	else
		work_failed(errno, "no thread for another pipeline: %m");
}

/* Also while paused: neither allocates, nor locks. */
static bool serve_always(const struct wire_head *h)
{
	switch (h->op) {
	case OFF_WRITE:
		take_bytes(h);
		return true;
	case OFF_READ:
		give_bytes(h);
		return true;
	case OFF_STORE:
		work_done(work.store.count, 0, work.store.range,
			  work.store.count * sizeof(work.store.range[0]));
		return true;
	case OFF_CAPTURE:
		freeze_capture();
		return true;
	case OFF_END:
		if (h->number)
			work_tell('s');
		_exit(0);
	default:
		return false;
	}
}

static void serve(const struct wire_head *h, const void *payload)
{
	if (serve_always(h))
		return;
	switch (h->op) {
	case OFF_ALLOC:
		alloc_buffer(h->size);
		break;
	case OFF_FREE:
		if (store_free(&work.store, h->number))
			work_done(0, 0, NULL, 0);
		else
			work_failed(EINVAL, "there is no buffer at %lx", (unsigned long)h->number);
		break;
	case OFF_FUNCTION:
		find_function(payload);
		break;
	case OFF_PIPE:
		begin_pipe();
		break;
	case OFF_PIPE_END:
		end_pipe(h->number);
		break;
	case OFF_RUN:
		run_function(h, payload);
		break;
	default:
		work_failed(EOPNOTSUPP, "no such request: %u", h->op);
	}
}

static void take_messages(void)
{
	static char payload[RIO_PAYLOAD_MAX + 1];
	struct wire_head h;

	while (wire_hear(WORK_FD, &h, payload, RIO_PAYLOAD_MAX) == 0) {
		if (h.op == OFF_PAUSE && !work.paused) {
			freeze_pause();
		} else if (h.op == OFF_RESUME && work.paused) {
			freeze_resume();
		} else if (work.paused) {
			if (!serve_always(&h))
				work_failed(EBUSY, "the process is paused");
		} else {
			while (sem_wait(&work.send) != 0)
				;
			serve(&h, payload);
			sem_post(&work.send);
		}
	}
}

void work_run(const char *path, uint64_t memory)
{
	sem_init(&work.send, 0, 1);
	work.store.size = ALIGN_UP(memory, HALE_PAGE); /* images leave out whole pages */
	if (!store_map(&work.store)) {
		work_failed(errno, "no memory for the buffers of a process: %m");
		_exit(0); /* the host knows */
	}
	object = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!object) {
		work_failed(ENOEXEC, "the shared object can't be loaded: %.300s", dlerror());
		_exit(0); /* the host knows */
	}
	work_introduce();
	take_messages();
	_exit(0); /* the host is gone */
}
