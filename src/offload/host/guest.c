/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoints of the program. Before its image is taken, each device process is paused, and its
 * buffers and its image are brought into the program's memory, where they are part of that image.
 *
 *   prepare           pause, bring         } in a signal handler, all threads stopped:
 *   resume            resume, drop         } no malloc, no stdio
 *   resume(restored)  hands each process to the thread that receives
 *   guest_revive      there: a device is found, the process is made again, its buffers are filled
 *
 * Calls wait for the locks from prepare to the end. */
#include "offload/host/guest.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"
#include "base/fmt.h"
#include "node/guest.h"

enum { PIECE = 64 << 20 };

static struct {
	void (*join)(const struct hale_guest *);
	void (*enter)(void);
	void (*leave)(void);
	void (*descriptor)(int fd, bool in);
} guest;

void guest_enter(void)
{
	if (guest.enter)
		guest.enter();
}

void guest_leave(void)
{
	if (guest.leave)
		guest.leave();
}

void guest_descriptor(int fd, bool in)
{
	if (guest.descriptor)
		guest.descriptor(fd, in);
}

void guest_take(sem_t *lock)
{
	if (!guest.enter) {
		process_take(lock);
		return;
	}
	for (unsigned tries = 0;; tries++) {
		guest.enter();
		if (sem_trywait(lock) == 0)
			return;
		guest.leave();
		if (tries < 200)
			sched_yield();
		else
			usleep(200);
	}
}

/* ---- messages, without the thread that receives ---- */

/* Says a request and hears up to its answer; results of calls that come meanwhile are taken. *into
 * gets bytes that follow; NULL there: memory is mapped for them. */
static bool exchange(struct hale_process *p, struct wire_head *h, const void *data, void **into,
		     char payload[RIO_PAYLOAD_MAX + 1])
{
	if (wire_say(p->fd, h, NULL, 0) != 0 || (data && wire_say_bytes(p->fd, data, h->size) != 0))
		return false;
	do {
		if (wire_hear(p->fd, h, payload, RIO_PAYLOAD_MAX) != 0)
			return false;
		if (h->op == OFF_RESULT)
			process_result(p, h, payload);
	} while (h->op == OFF_RESULT);
	if (h->op != OFF_DONE || !into || h->size == 0)
		return h->op == OFF_DONE;
	if (!*into)
		*into = mmap(NULL, h->size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return *into != MAP_FAILED && wire_hear_bytes(p->fd, *into, h->size) == 0;
}

static bool order(struct hale_process *p, enum offload_op op, char payload[RIO_PAYLOAD_MAX + 1])
{
	struct wire_head h = {.op = (uint16_t)op};

	return exchange(p, &h, NULL, NULL, payload);
}

/* ---- in the handler ---- */

static void drop(struct hale_process *p)
{
	if (p->saved.store)
		munmap(p->saved.store, p->saved.store_size);
	if (p->saved.image)
		munmap(p->saved.image, p->saved.image_size);
	p->saved.store = p->saved.image = NULL;
	p->saved.store_size = p->saved.image_size = 0;
}

static bool bring_store(struct hale_process *p, char payload[RIO_PAYLOAD_MAX + 1])
{
	struct guest_saved *s = &p->saved;
	struct wire_head h = {.op = OFF_STORE};
	char *at;

	if (!exchange(p, &h, NULL, NULL, payload) || h.bytes > sizeof(s->range))
		return false;
	s->count = h.bytes / (unsigned)sizeof(s->range[0]);
	memcpy(s->range, payload, h.bytes);
	for (unsigned i = 0; i < s->count; i++)
		s->store_size += s->range[i].size;
	if (s->count == 0)
		return true;
	s->store = mmap(NULL, s->store_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->store == MAP_FAILED) {
		s->store = NULL;
		return false;
	}
	at = s->store;
	for (unsigned i = 0; i < s->count; i++)
		for (uint64_t done = 0; done < s->range[i].size;) {
			uint64_t left = s->range[i].size - done, n = left < PIECE ? left : PIECE;
			void *to = at;

			h = (struct wire_head){
			    .op = OFF_READ, .number = s->range[i].address + done, .size = n};
			if (!exchange(p, &h, NULL, &to, payload))
				return false;
			at += n;
			done += n;
		}
	return true;
}

static bool bring(struct hale_process *p, char payload[RIO_PAYLOAD_MAX + 1])
{
	struct wire_head h = {.op = OFF_CAPTURE};
	void *image = NULL;

	if (!order(p, OFF_PAUSE, payload))
		return false;
	p->state = PROCESS_PAUSED;
	if (!bring_store(p, payload) || !exchange(p, &h, NULL, &image, payload))
		return false;
	p->saved.image = image;
	p->saved.image_size = h.size;
	return true;
}

static bool prepare(char *why, size_t size)
{
	static char payload[RIO_PAYLOAD_MAX + 1];

	for (struct hale_process *p = process_first(); p; p = process_next(p)) {
		if (p->state == PROCESS_OUT || p->state == PROCESS_GONE)
			continue;
		if (p->state != PROCESS_RUNS || sem_trywait(&p->channel) != 0) {
			fmt_print(why, size, "a device process of it is being saved or moved");
			return false;
		}
		if (sem_trywait(&p->send) != 0) {
			sem_post(&p->channel);
			fmt_print(why, size, "a call of it is being sent to a device process");
			return false;
		}
		p->held = true;
		payload[0] = 0;
		if (!bring(p, payload)) {
			fmt_print(why, size, "its process on device %d can't be saved: %.100s",
				  p->device, payload);
			return false;
		}
	}
	return true;
}

static void release(struct hale_process *p)
{
	p->held = false;
	sem_post(&p->send);
	sem_post(&p->channel);
}

static bool resume(bool restored, char *why, size_t size)
{
	static char payload[RIO_PAYLOAD_MAX + 1];
	bool good = true;

	if (restored)
		control_restored();
	for (struct hale_process *p = process_first(); p; p = process_next(p)) {
		if (!p->held)
			continue;
		if (restored) {
			guest_descriptor(p->fd, false);
			p->fd = -1; /* images leave it out */
			p->revive = true;
			good = write(p->wake, &(uint64_t){1}, sizeof(uint64_t)) > 0 && good;
			continue;
		}
		drop(p);
		/* one that can't is found to be gone by the thread that receives */
		if (p->state == PROCESS_PAUSED && order(p, OFF_RESUME, payload))
			p->state = PROCESS_RUNS;
		release(p);
	}
	if (!good)
		fmt_print(why, size, "its device processes can't be told");
	return good;
}

void guest_begin(void)
{
	static const struct hale_guest us = {prepare, resume};

	*(void **)&guest.join = dlsym(RTLD_DEFAULT, "hale_guest_join");
	if (!guest.join)
		return;
	*(void **)&guest.descriptor = dlsym(RTLD_DEFAULT, "hale_guest_descriptor");
	*(void **)&guest.leave = dlsym(RTLD_DEFAULT, "hale_guest_leave");
	*(void **)&guest.enter = dlsym(RTLD_DEFAULT, "hale_guest_enter");
	guest.join(&us);
}

/* ---- in the thread that receives ---- */

static bool fill_store(struct hale_process *p, char payload[RIO_PAYLOAD_MAX + 1])
{
	const struct guest_saved *s = &p->saved;
	const char *at = s->store;

	for (unsigned i = 0; i < s->count; i++)
		for (uint64_t done = 0; done < s->range[i].size;) {
			uint64_t left = s->range[i].size - done, n = left < PIECE ? left : PIECE;
			struct wire_head h = {
			    .op = OFF_WRITE, .number = s->range[i].address + done, .size = n};

			if (!exchange(p, &h, at, NULL, payload))
				return false;
			at += n;
			done += n;
		}
	return true;
}

/* On the device where it was; if that is gone or full, on any other one. */
static bool place_again(struct hale_process *p, const struct start_image *image)
{
	int was = p->device, count;

	if (process_connect(p, was, image) == 0)
		return true;
	log_warn("offload: hale:%d does not take its process back, others are tried: %s", was,
		 hale_offload_why());
	count = hale_device_count();
	for (int i = 0; i < count; i++)
		if (i != was && process_connect(p, i, image) == 0)
			return true;
	return false;
}

bool guest_revive(struct hale_process *p)
{
	char payload[RIO_PAYLOAD_MAX + 1] = "";
	struct start_image image = {
	    .file = -1, .bytes = p->saved.image, .size = p->saved.image_size};
	bool good;

	guest_enter();
	p->revive = false;
	if (read(p->wake, &(uint64_t){0}, sizeof(uint64_t)) < 0)
		log_debug("offload: woken by something else");
	good = place_again(p, &image);
	if (!good)
		log_warn("offload: a device process does not come back: %s", hale_offload_why());
	else if (!fill_store(p, payload) || !order(p, OFF_RESUME, payload)) {
		log_warn("offload: a device process does not come back: %.200s",
			 payload[0] ? payload : "it has ended");
		good = false;
	}
	drop(p);
	if (good)
		p->state = PROCESS_RUNS;
	else
		process_gone(p);
	release(p);
	guest_leave();
	return good;
}
