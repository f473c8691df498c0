/* SPDX-License-Identifier: BSD-3-Clause */
/* Pipelines: a queue of functions and a thread each. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include <hale_offload.h>
#include "offload/device/work.h"

struct pipe_job {
	struct pipe_job *next;
	uint64_t number; /* of the call */
	hale_device_function *function;
	struct hale_call call;
	void *buffer[HALE_CALL_BUFFERS];
	uint64_t size[HALE_CALL_BUFFERS];
	char args[HALE_CALL_BYTES], result[HALE_CALL_BYTES];
};

static struct pipe {
	bool used, ending;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct pipe_job *first, *last;
} pipes[OFFLOAD_PIPES];

static struct pipe_job *take_job(struct pipe *p)
{
	struct pipe_job *j;

	pthread_mutex_lock(&p->lock);
	while (!p->first && !p->ending)
		pthread_cond_wait(&p->more, &p->lock);
	j = p->first;
	if (j)
		p->first = j->next;
	pthread_mutex_unlock(&p->lock);
	return j;
}

static void *pipe_thread(void *arg)
{
	struct pipe *p = arg;
	struct pipe_job *j;

	while ((j = take_job(p))) {
		struct wire_head h = {.op = OFF_RESULT, .number = j->number};

		j->function(&j->call);
		/* critical region: the main thread has this lock while the process is paused */
		while (sem_wait(&work.send) != 0)
			;
		wire_say(WORK_FD, &h, j->result, j->call.result_size);
		sem_post(&work.send);
		free(j);
	}
	return NULL;
}

int pipeline_begin(void)
{
	for (int i = 0; i < OFFLOAD_PIPES; i++) {
		struct pipe *p = &pipes[i];
		int error;

		if (p->used)
			continue;
		*p = (struct pipe){.used = true,
				   .lock = PTHREAD_MUTEX_INITIALIZER,
				   .more = PTHREAD_COND_INITIALIZER};
		error = pthread_create(&p->thread, NULL, pipe_thread, p);
		if (!error)
			return i;
		p->used = false;
		errno = error;
		return -1;
	}
	errno = EMFILE;
	return -1;
}

bool pipeline_end(uint64_t number)
{
	struct pipe *p = number < OFFLOAD_PIPES ? &pipes[number] : NULL;

	if (!p || !p->used)
		return false;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_cond_signal(&p->more);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	p->used = false;
	return true;
}

/* All that the host sent is looked at: it may be of another version. */
static int read_job(struct pipe_job *j, const struct offload_run *run, size_t bytes)
{
	const uint64_t *address = (const uint64_t *)(run + 1);

	if (bytes < sizeof(*run) || run->buffers > HALE_CALL_BUFFERS ||
	    run->args_size > HALE_CALL_BYTES || run->result_size > HALE_CALL_BYTES ||
	    bytes != sizeof(*run) + run->buffers * sizeof(*address) + run->args_size)
		return EINVAL;
	for (unsigned i = 0; i < run->buffers; i++) {
		j->buffer[i] = (void *)address[i];
		j->size[i] = store_size_of(&work.store, address[i]);
		if (!j->size[i])
			return EFAULT;
	}
	memcpy(j->args, address + run->buffers, run->args_size);
	j->call = (struct hale_call){.buffer = j->buffer,
				     .size = j->size,
				     .buffers = run->buffers,
				     .args = j->args,
				     .args_size = run->args_size,
				     .result = j->result,
				     .result_size = run->result_size};
	return 0;
}

int pipeline_add(const struct wire_head *h, const void *payload, void *function)
{
	struct pipe *p = h->size < OFFLOAD_PIPES ? &pipes[h->size] : NULL;
	struct pipe_job *j;
	int error;

	if (!p || !p->used)
		return EINVAL;
	j = calloc(1, sizeof(*j));
	if (!j)
		return ENOMEM;
	j->number = h->number;
	*(void **)&j->function = function;
	error = read_job(j, payload, h->bytes);
	if (error) {
		free(j);
		return error;
	}
	pthread_mutex_lock(&p->lock);
	if (p->first)
		p->last->next = j;
	else
		p->first = j;
	p->last = j;
	pthread_cond_signal(&p->more);
	pthread_mutex_unlock(&p->lock);
	return 0;
}
