/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders to processes in reserve. An order is a message, a row of strings: folder, path,
 * HALE_WORLD=…, HALE_SPAWNED=…, HALE_APPNUM=…, then HALE_RANK and its like, "", and the arguments.
 *
 * The process that follows it executes the program. What its peers count together with it, and what
 * has come for the program already, goes along (channel/carry/carry.h). */
#include <errno.h>
#include <string.h>
#include "base/fmt.h"
#include "channel/carry/carry.h"
#include "mpi/dynamic/dynamic.h"

enum { ARGUMENTS_MAX = 4096, ASSIGNMENTS_MAX = 12 };

static enum spawn_state own; /* this process's; SPAWN_NONE: it was never in reserve */
static bool over;	     /* TAG_OVER has come */

static struct spawn_room *own_room(void)
{
	return segment_spawn_room(link_self()->segment, link_self()->rank);
}

/* ---- who spawns ---- */

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

int order_give(struct order *o)
{
	int rc = match_send(o->bytes, o->length, datatype_of(MPI_BYTE), o->process, TAG_ORDER,
			    world_all(), MATCH_STANDARD);
	heap_free(o);
	return rc;
}

/* ---- what this process is ---- */

static void own_show(void)
{
	atomic_store(&own_room()->state, own);
}

/* A new segment knows nothing. */
static void order_resume(bool fresh)
{
	if (fresh && own != SPAWN_NONE)
		own_show();
}

static void own_set(enum spawn_state state)
{
	static struct ckpt_participant participant = {.name = "spawned processes",
						      .resume = order_resume};
	if (own == SPAWN_NONE)
		ckpt_participate(&participant);
	own = state;
	own_show();
}

bool order_job_ends(void)
{
	return over || atomic_load(&link_self()->segment->spawn_over);
}

/* ---- following an order ---- */

static const char *string_next(const char **at, const char *end)
{
	const char *text = *at;
	if (text >= end)
		return NULL;
	*at = text + strlen(text) + 1;
	return text;
}

/* From the first call that says true no message of this process's leaves any more. */
static bool order_carry(struct carry *c)
{
	carry_begin(c);
	if (!match_carry(c)) {
		carry_drop(c);
		return false;
	}
	coll_carry(c);
	world_carry(c);
	port_carry(c);
	return true;
}

/* The assignment that tells the program where it finds them. */
static bool carry_hand_over(struct carry *c, char *assignment, size_t size)
{
	int fd = c->failed ? -1 : carry_file(c);
	fmt_print(assignment, size, "HALE_CARRY=%d", fd);
	if (fd < 0)
		log_warn("a spawned program can't be started: there is no memory for what the "
			 "process has to hand over to it (%s)",
			 strerror(c->failed ? ENOMEM : errno));
	return fd >= 0;
}

/* The bytes are of a process of this job, ended with a NUL. used: this process has been a spawned
 * program before. */
static void order_follow(char *bytes, size_t length, bool used)
{
	static char *argv[ARGUMENTS_MAX + 1], *set[ASSIGNMENTS_MAX + 2];
	static char assignment[32];
	struct carry c;
	size_t argc = 0, sets = 0;
	const char *at = bytes, *end = bytes + length, *folder = string_next(&at, end),
		   *path = string_next(&at, end), *text;
	while ((text = string_next(&at, end)) && *text && sets < ASSIGNMENTS_MAX)
		set[sets++] = (char *)(uintptr_t)text;
	while ((text = string_next(&at, end)) && argc < ARGUMENTS_MAX)
		argv[argc++] = (char *)(uintptr_t)text;
	while (!order_carry(&c)) {
		match_progress();
		guard_safe_point();
	}
	set[sets] = assignment;
	names_forget();
	if (folder && path && argc && carry_hand_over(&c, assignment, sizeof(assignment))) {
		own_set(SPAWN_ORDERED);
		link_become(path, argv, folder, set, used);
	}
	log_warn(
	    "internal error: an order to a process in reserve can't be followed; please report");
	link_abort(70);
}

static bool is_called(void *arg)
{
	return order_job_ends() || match_peek(world_all(), TAG_ORDER) ||
	       match_peek(world_all(), TAG_OVER);
}

/* Until an order has come, which is followed, or the job ends. */
static void order_wait(bool used)
{
	static char bytes[SPAWN_ORDER_MAX];
	size_t length;
	int heard;
	while (!is_called(NULL))
		match_sleep(is_called, NULL);
	if (message_take(TAG_OVER, &heard, sizeof(heard), &length) >= 0)
		over = true;
	if (!order_job_ends() && message_take(TAG_ORDER, bytes, sizeof(bytes), &length) >= 0)
		order_follow(bytes, length, used);
}

void order_await(void)
{
	own_set(SPAWN_IDLE);
	while (!order_job_ends())
		order_wait(false);
}

void order_begun(void)
{
	own_set(SPAWN_BEGUN);
}

void order_done(void)
{
	own_set(SPAWN_DONE);
}

/* Others may still free communicators that this process has freed, and wait for it to agree. */
static bool is_through(void *arg)
{
	return order_job_ends() || match_peek(world_all(), TAG_OVER) ||
	       (match_settled() && coll_settled());
}

/* What nobody has received of the program's messages was for that program. A status that is an
 * error has to be seen at the end of the job, and a receiver may still read what has been sent to
 * it. */
void order_rest(int status)
{
	keeper_rests();
	match_wait_until(is_through, NULL);
	if (!order_job_ends() && !match_peek(world_all(), TAG_OVER)) {
		coll_quit();
		match_unexpected_drop(world_all());
		if (status == 0 && !match_unanswered())
			keeper_return();
	}
	while (!order_job_ends())
		order_wait(true);
}
