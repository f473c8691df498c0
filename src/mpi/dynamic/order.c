/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders to processes in reserve. An order is a row of strings: folder, path, HALE_WORLD=…,
 * HALE_SPAWNED=…, HALE_APPNUM=…, then HALE_RANK and its like, "", and the arguments. */
#include <string.h>
#include "mpi/dynamic/dynamic.h"

enum { ARGUMENTS_MAX = 4096, ASSIGNMENTS_MAX = 12 };

static struct order *open_orders;
static enum spawn_state own; /* this process's; SPAWN_NONE: it was never in reserve */

static struct spawn_room *room(int process)
{
	return segment_spawn_room(link_self()->segment, (uint32_t)process);
}

/* ---- who spawns ---- */

void order_unclaim(const int *processes, int count)
{
	for (int i = 0; i < count; i++)
		atomic_store(&room(processes[i])->state, SPAWN_IDLE);
}

static int claim(int *processes, int count)
{
	struct segment *s = link_self()->segment;
	int n = 0;
	for (uint32_t p = 0; p < s->nranks && n < count; p++) {
		uint32_t idle = SPAWN_IDLE;
		if (segment_here(s, p) &&
		    atomic_compare_exchange_strong(&room((int)p)->state, &idle, SPAWN_CLAIMED))
			processes[n++] = (int)p;
	}
	return n;
}

/* Are there as many as wanted, or will there be no more? */
static bool claim_decided(void *wanted)
{
	struct segment *s = link_self()->segment;
	int idle = 0, starting = 0;
	for (uint32_t p = 0; p < s->nranks; p++) {
		uint32_t state =
		    segment_here(s, p) ? atomic_load(&room((int)p)->state) : SPAWN_NONE;
		idle += state == SPAWN_IDLE;
		starting += state == SPAWN_STARTING;
	}
	return idle >= *(int *)wanted || idle + starting < *(int *)wanted;
}

bool order_claim(int *processes, int count)
{
	for (;;) {
		while (!claim_decided(&count))
			match_sleep(claim_decided, &count);
		int n = claim(processes, count);
		if (n == count)
			return true;
		order_unclaim(processes, n);
		if (claim_decided(&count)) /* another process may have been quicker */
			return false;
	}
}

struct order *order_new(int process)
{
	struct order *o = heap_alloc(sizeof(*o));
	if (o) {
		o->next = NULL;
		o->process = process;
		o->length = 0;
	}
	return o;
}

bool order_add(struct order *o, const char *text)
{
	size_t n = strlen(text) + 1;
	if (n > sizeof(o->bytes) - o->length)
		return false;
	memcpy(o->bytes + o->length, text, n);
	o->length += n;
	return true;
}

static void order_write(const struct order *o)
{
	struct spawn_room *r = room(o->process);
	memcpy(r->bytes, o->bytes, o->length);
	r->length = (uint32_t)o->length;
	atomic_store(&r->state, SPAWN_ORDERED);
	mailbox_ring(segment_mailbox(link_self()->segment, (uint32_t)o->process));
}

void orders_done(void)
{
	while (open_orders) {
		struct order *o = open_orders;
		open_orders = o->next;
		heap_free(o);
	}
}

/* ---- a checkpoint ---- */

/* An order may lie there before the process has said that it waits for one. */
static void own_set(enum spawn_state state)
{
	struct spawn_room *r = room((int)link_self()->rank);
	uint32_t starting = SPAWN_STARTING;
	own = state;
	if (state != SPAWN_IDLE)
		atomic_store(&r->state, state);
	else
		atomic_compare_exchange_strong(&r->state, &starting, state);
	for (uint32_t p = 0; p < link_self()->segment->nranks; p++) /* who spawns may wait for it */
		if (segment_here(link_self()->segment, p))
			mailbox_ring(segment_mailbox(link_self()->segment, p));
}

/* A new segment knows nothing: every process says what it is, in any order. */
static void orders_resume(bool fresh)
{
	if (!fresh)
		return;
	if (own != SPAWN_NONE)
		own_set(own);
	for (struct order *o = open_orders; o; o = o->next)
		order_write(o);
	names_restore();
}

static void participate(void)
{
	static struct ckpt_participant participant = {.name = "spawned processes",
						      .resume = orders_resume};
	static bool known;
	if (!known)
		ckpt_participate(&participant);
	known = true;
}

void order_give(struct order *o)
{
	participate();
	o->next = open_orders;
	open_orders = o;
	order_write(o);
}

/* ---- who is in reserve ---- */

static const char *string_next(const char **at, const char *end)
{
	const char *text = *at;
	if (text >= end)
		return NULL;
	*at = text + strlen(text) + 1;
	return text;
}

/* The room's bytes are of a process of this job, ended with a NUL. */
static void order_follow(const struct spawn_room *r)
{
	static char *argv[ARGUMENTS_MAX + 1], *set[ASSIGNMENTS_MAX + 1], bytes[SPAWN_ORDER_MAX];
	size_t argc = 0, sets = 0;
	memcpy(bytes, r->bytes, r->length);
	const char *at = bytes, *end = bytes + r->length, *folder = string_next(&at, end),
		   *path = string_next(&at, end), *text;
	while ((text = string_next(&at, end)) && *text && sets < ASSIGNMENTS_MAX)
		set[sets++] = (char *)(uintptr_t)text;
	while ((text = string_next(&at, end)) && argc < ARGUMENTS_MAX)
		argv[argc++] = (char *)(uintptr_t)text;
	if (folder && path && argc)
		link_become(path, argv, folder, set);
	log_warn("internal error: an order to a process in reserve makes no sense; please report");
	link_abort(70);
}

static bool job_ends(void *arg)
{
	return atomic_load(&link_self()->segment->spawn_over);
}

static bool is_called(void *arg)
{
	return job_ends(NULL) || atomic_load(&room((int)link_self()->rank)->state) == SPAWN_ORDERED;
}

void order_await(void)
{
	participate();
	own_set(SPAWN_IDLE);
	while (!is_called(NULL))
		match_sleep(is_called, NULL);
	if (!job_ends(NULL))
		order_follow(room((int)link_self()->rank));
}

void order_begun(void)
{
	participate();
	own_set(SPAWN_BEGUN);
}

void order_done(void)
{
	own_set(SPAWN_DONE);
}

void order_rest(void)
{
	while (!job_ends(NULL))
		match_sleep(job_ends, NULL);
}
