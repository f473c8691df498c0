/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers, functions, pipelines, calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "base/base.h"
#include "offload/host/futex.h"
#include "offload/host/guest.h"
#include "offload/host/process.h"

enum { COPY_PIECE = 1 << 30 }; /* the kernel copies at most 2 GiB in a call */

/* A request with the channel: waits while the process is paused. */
static int request(hale_process_t *p, struct wire_head *h, const void *payload, size_t bytes,
		   const void *data, void *into, struct wire_head *answered)
{
	struct process_answer *a = calloc(1, sizeof(*a));
	int rc, error;

	if (!a)
		return process_fail(ENOMEM, "no memory for a request");
	a->into = into;
	a->file = -1;
	guest_take(&p->channel);
	rc = process_ask(p, h, payload, bytes, data, a);
	sem_post(&p->channel);
	guest_leave();
	error = errno;
	if (answered)
		*answered = a->head;
	free(a);
	errno = error;
	return rc;
}

/* ---- buffers ---- */

hale_buffer_t hale_buffer_create(hale_process_t *p, uint64_t size)
{
	struct wire_head h = {.op = OFF_ALLOC, .size = size}, done = {0};

	return request(p, &h, NULL, 0, NULL, NULL, &done) == 0 ? done.number : 0;
}

int hale_buffer_destroy(hale_process_t *p, hale_buffer_t b)
{
	struct wire_head h = {.op = OFF_FREE, .number = b};

	return request(p, &h, NULL, 0, NULL, NULL, NULL);
}

/* From here into its memory or back; false: not that way. The channel keeps it where it is. */
static bool copy_directly(hale_process_t *p, uint64_t there, void *here, size_t size, bool to)
{
	bool good;

	guest_take(&p->channel);
	good = p->direct && p->state == PROCESS_RUNS;
	for (size_t done = 0; good && done < size;) {
		size_t n = size - done < COPY_PIECE ? size - done : COPY_PIECE;
		struct iovec mine = {(char *)here + done, n}, its = {(void *)(there + done), n};
		ssize_t k = to ? process_vm_writev(p->self.pid, &mine, 1, &its, 1, 0)
			       : process_vm_readv(p->self.pid, &mine, 1, &its, 1, 0);

		good = k > 0;
		done += good ? (size_t)k : 0;
	}
	sem_post(&p->channel);
	guest_leave();
	return good;
}

/* Small copies are cheaper with the message; for large ones it is asked whether the place is in a
 * buffer. */
static int check_place(hale_process_t *p, uint64_t at, size_t size)
{
	struct wire_head h = {.op = OFF_READ, .number = at, .size = size, .sum = 1};

	return request(p, &h, NULL, 0, NULL, NULL, NULL);
}

enum { DIRECT_MIN = 32 << 10 };

int hale_buffer_write(hale_process_t *p, hale_buffer_t b, uint64_t offset, const void *data,
		      size_t size)
{
	struct wire_head h = {.op = OFF_WRITE, .number = b + offset, .size = size};

	if (size == 0)
		return 0;
	if (size >= DIRECT_MIN && p->direct && check_place(p, b + offset, size) == 0 &&
	    copy_directly(p, b + offset, (void *)data, size, true))
		return 0;
	return request(p, &h, NULL, 0, data, NULL, NULL);
}

int hale_buffer_read(hale_process_t *p, hale_buffer_t b, uint64_t offset, void *data, size_t size)
{
	struct wire_head h = {.op = OFF_READ, .number = b + offset, .size = size};

	if (size == 0)
		return 0;
	if (size >= DIRECT_MIN && p->direct && check_place(p, b + offset, size) == 0 &&
	    copy_directly(p, b + offset, data, size, false))
		return 0;
	return request(p, &h, NULL, 0, NULL, data, NULL);
}

/* ---- functions and pipelines ---- */

int hale_function_find(hale_process_t *p, const char *name)
{
	struct wire_head h = {.op = OFF_FUNCTION}, done = {0};

	if (strlen(name) > 500)
		return process_fail(ENOENT, "no function has so long a name");
	return request(p, &h, name, strlen(name), NULL, NULL, &done) == 0 ? (int)done.number : -1;
}

hale_pipeline_t *hale_pipeline_create(hale_process_t *p)
{
	struct wire_head h = {.op = OFF_PIPE}, done = {0};
	struct hale_pipeline *q = malloc(sizeof(*q));

	if (!q)
		return process_fail(ENOMEM, "no memory for a pipeline"), NULL;
	if (request(p, &h, NULL, 0, NULL, NULL, &done) != 0) {
		int error = errno;

		free(q);
		errno = error;
		return NULL;
	}
	*q = (struct hale_pipeline){p, done.number};
	return q;
}

int hale_pipeline_destroy(hale_pipeline_t *q)
{
	struct wire_head h = {.op = OFF_PIPE_END};
	int rc, error;

	if (!q)
		return 0;
	h.number = q->number;
	rc = request(q->process, &h, NULL, 0, NULL, NULL, NULL);
	error = errno;
	free(q);
	errno = error;
	return rc;
}

/* ---- calls ---- */

static size_t make_run(char payload[RIO_PAYLOAD_MAX], const hale_buffer_t *buffer, unsigned buffers,
		       const void *args, size_t args_size, size_t result_size)
{
	struct offload_run run = {buffers, (uint32_t)args_size, (uint32_t)result_size, 0};
	size_t bytes = buffers * sizeof(*buffer);

	memcpy(payload, &run, sizeof(run));
	if (bytes)
		memcpy(payload + sizeof(run), buffer, bytes);
	if (args_size)
		memcpy(payload + sizeof(run) + bytes, args, args_size);
	return sizeof(run) + bytes + args_size;
}

/* Under the send lock: the event is in the list before its result can come. */
static int post(struct hale_process *p, struct hale_event *e, struct wire_head *h,
		const void *payload, size_t bytes)
{
	bool gone;

	pthread_mutex_lock(&p->lock);
	gone = p->state == PROCESS_GONE;
	e->number = h->number = ++p->calls;
	if (!gone) {
		e->next = p->events;
		p->events = e;
	}
	pthread_mutex_unlock(&p->lock);
	if (gone)
		return process_fail(ESRCH, "the device process has ended");
	wire_say(p->fd, h, payload, bytes); /* if that fails, the event hears of it */
	return 0;
}

hale_event_t *hale_run_async(hale_pipeline_t *q, int function, const hale_buffer_t *buffer,
			     unsigned buffers, const void *args, size_t args_size, void *result,
			     size_t result_size)
{
	struct wire_head h = {.op = OFF_RUN, .size = q->number, .sum = (uint64_t)function};
	char payload[RIO_PAYLOAD_MAX];
	struct hale_event *e;
	size_t bytes;
	int rc, error;

	if (function < 0 || buffers > HALE_CALL_BUFFERS || args_size > HALE_CALL_BYTES ||
	    result_size > HALE_CALL_BYTES)
		return process_fail(
			   EINVAL,
			   "a call has a function, at most %d buffers, and at most %d bytes of "
			   "arguments and of a result",
			   HALE_CALL_BUFFERS, HALE_CALL_BYTES),
		       NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return process_fail(ENOMEM, "no memory for a call"), NULL;
	e->process = q->process;
	e->result = result;
	e->result_size = result ? result_size : 0;
	bytes = make_run(payload, buffer, buffers, args, args_size, result_size);
	guest_take(&q->process->send);
	rc = post(q->process, e, &h, payload, bytes);
	sem_post(&q->process->send);
	guest_leave();
	if (rc == 0)
		return e;
	error = errno;
	free(e);
	errno = error;
	return NULL;
}

int hale_event_test(const hale_event_t *e)
{
	return atomic_load(&e->done) != 0;
}

int hale_event_wait(hale_event_t *e)
{
	int rc;

	futex_await(&e->done);
	rc = e->error ? process_fail(e->error, "%s", e->why) : 0;
	int error = errno;
	free(e);
	errno = error;
	return rc;
}

int hale_run(hale_pipeline_t *q, int function, const hale_buffer_t *buffer, unsigned buffers,
	     const void *args, size_t args_size, void *result, size_t result_size)
{
	hale_event_t *e =
	    hale_run_async(q, function, buffer, buffers, args, args_size, result, result_size);

	return e ? hale_event_wait(e) : -1;
}
