// SPDX-License-Identifier: BSD-3-Clause
#include "base/exit_status.h"
#include "ckpt/migrate.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckpt/migrate_stream.h"
#include "image/live/live.h"

enum {
	MIGRATION_IDS = (1 << 22) - 1,
	HOLD_NS = 60000000, /* no longer than the last round may take */
	HOLD_LOOK_NS = 1000000,
};

static uint32_t last_id;	  /* newest request attended to */
static uint32_t last_hold;	  /* ckpt_hold, as attended to */
static uint32_t current;	  /* whose round the writing child reports */
static pid_t source;		  /* this process; its child has another */
static bool held;		  /* the last round goes into a file that somebody else passes on */
static struct proto_ckpt written; /* what is to be said when that file is whole */

uint32_t migrate_last_id(void)
{
	return last_id;
}

void migrate_attended(uint32_t id)
{
	last_id = id;
}

/* ---- telling ---- */

static void tell(enum proto_type type, uint32_t id, const struct error *error, uint64_t pause_ns)
{
	struct proto_ckpt p = {.type = type, .id = id, .pause_ns = pause_ns};
	if (error) {
		p.status = (int32_t)error->code;
		memcpy(p.text, error->text, sizeof(p.text));
		p.text[PROTO_TEXT - 1] = 0;
	}
	link_tell(&p, sizeof(p));
}

/* In the child that has written a round, or in this process. */
static void round_written(void *arg, const struct image_result *result)
{
	struct live_step step;
	live_progress(&step);
	struct proto_ckpt p = {.type = PROTO_CKPT_WRITTEN,
			       .id = current,
			       .bytes = result->bytes,
			       .pages = result->pages_saved,
			       .pages_zero = result->pages_zero,
			       .same = result->pages_same * HALE_PAGE,
			       .seconds = result->seconds,
			       .interval = step.interval};
	if (result->error.code == HALE_OK && held)
		written = p;
	else if (result->error.code == HALE_OK)
		link_tell(&p, sizeof(p));
	else if (syscall(SYS_getpid) !=
		 source) /* or it is said when all that can be done is done */
		tell(PROTO_CKPT_FAILED, current, &result->error, 0);
}

/* ---- rounds ---- */

/* The agent knows what the stream has not said, or can't say any more. */
static bool decided(void)
{
	const struct mailbox *m = link_self()->mailbox;
	return atomic_load(&m->ckpt_cancelled) >= last_id || atomic_load(&m->ckpt_moved) >= last_id;
}

/* ckpt_base 0: the first round of a migration. One that was given up may be open still. */
static hale_status_t open_stream(const struct ckpt_request *q, struct error *err)
{
	const struct link *l = link_self();
	if (q->base == 0)
		live_close();
	if (live_is_open())
		return HALE_OK;
	const char *job = getenv("HALE_JOB"), *compress = getenv("HALE_MIGRATE_COMPRESS");
	bool plain = compress && strcmp(compress, "off") == 0;
	struct live_params p = {.direct = (q->flags & CKPT_DIRECT) != 0,
				.then = q->flags & CKPT_CLONE ? LIVE_THEN_GO_ON : LIVE_THEN_END,
				.held = (q->flags & CKPT_HELD) != 0,
				.identity = {.rank = l->process, .nranks = l->nprocesses},
				.compress = plain ? IMAGE_PLAIN : IMAGE_LZ4,
				.decided = decided,
				.beside = rank_beside,
				.written = round_written};
	p.identity.id = 1 + q->id % (MIGRATION_IDS - 1);
	strncpy(p.identity.job, job ? job : "", sizeof(p.identity.job) - 1);
	p.fd = migrate_stream_source(q->path, (q->flags & CKPT_GIVEN) != 0, err);
	if (p.fd < 0)
		return err->code;
	hale_status_t rc = live_open(&p, err);
	if (rc != HALE_OK)
		close(p.fd);
	return rc;
}

bool migrate_hold_wanted(void)
{
	const struct mailbox *m = link_self()->mailbox;
	uint32_t flags = atomic_load(&m->ckpt_flags) & (CKPT_LIVE | CKPT_STOP | CKPT_HOLD);
	return flags == (CKPT_LIVE | CKPT_HOLD) && atomic_load(&m->ckpt_hold) != last_hold;
}

void migrate_hold_not(void)
{
	last_hold = atomic_load(&link_self()->mailbox->ckpt_hold);
}

/* Until the time is over, or something else is asked for: the next round, the stop. What is not
 * written meanwhile needn't be sent again. */
void migrate_hold(uint64_t began_ns)
{
	const struct timespec look = {.tv_nsec = HOLD_LOOK_NS};
	const struct mailbox *m = link_self()->mailbox;
	while (clock_ns() - began_ns < HOLD_NS && atomic_load(&m->ckpt_wanted) == last_id)
		syscall(SYS_nanosleep, &look, NULL); /* no cancellation point */
	migrate_hold_not();
}

void migrate_round(const struct ckpt_request *q, uint64_t began_ns)
{
	struct error err = {HALE_OK, ""};
	last_id = current = q->id;
	source = getpid();
	held = false;
	bool open = open_stream(q, &err) == HALE_OK;
	if (!open || live_round(false, NULL, 0, NULL, &err) != IMAGE_CAPTURED) {
		live_close();
		tell(PROTO_CKPT_FAILED, q->id, &err, 0);
	} else if (q->flags & CKPT_HOLD) {
		migrate_hold(began_ns);
	}
	link_show_fds();
	tell(PROTO_CKPT_RESUMED, q->id, NULL, clock_ns() - began_ns);
}

/* ---- the stop ---- */

static bool given_up(uint32_t id)
{
	return atomic_load(&link_self()->mailbox->ckpt_cancelled) >= id;
}

/* After COMMIT only the agent's word that the sink is dead lets this process go on. That the copies
 * have been let go ends it as RUNS does, which a file can't say and a broken connection may lose.
 */
static void end_or_stay(uint32_t id, struct error *err)
{
	const struct mailbox *m = link_self()->mailbox;
	struct proto_plain moved = {.type = PROTO_MOVED, .value = (int32_t)id};
	live_verdict_t v;
	for (int round = 0; (v = live_finish(err)) == LIVE_UNKNOWN; round++) {
		if (round == 0 && held)
			link_tell(&written, sizeof(written));
		if (given_up(id)) {
			live_close();
			return;
		}
		if (atomic_load(&m->ckpt_moved) >= id) {
			v = LIVE_MOVED;
			break;
		}
		link_wait_step(round);
	}
	if (v != LIVE_MOVED)
		return;
	/* for an agent that isn't our parent */
	link_tell(&moved, sizeof(moved));
	_exit(EXIT_MOVED);
}

static image_return_t last_round(const struct ckpt_request *q, const void *note, size_t note_len)
{
	struct error err = {HALE_OK, ""};
	held = (q->flags & CKPT_HELD) != 0;
	bool open = open_stream(q, &err) == HALE_OK;
	image_return_t rc = open ? live_round(true, note, note_len, NULL, &err) : IMAGE_FAILED;
	if (rc == IMAGE_RESTORED)
		return rc;
	if (rc == IMAGE_CAPTURED && !(q->flags & CKPT_CLONE))
		end_or_stay(q->id, &err);
	else if (rc == IMAGE_FAILED)
		live_close();
	if (err.code != HALE_OK)
		tell(PROTO_CKPT_FAILED, q->id, &err, 0);
	return IMAGE_CAPTURED;
}

image_return_t migrate_stop(const struct ckpt_request *q, const void *note, size_t note_len)
{
	struct proto_plain stopped = {.type = PROTO_CKPT_STOPPED, .value = (int32_t)q->id};
	last_id = current = q->id;
	source = getpid();
	link_tell(&stopped, sizeof(stopped));
	return q->flags & CKPT_LIVE ? last_round(q, note, note_len) : IMAGE_CAPTURED;
}

bool migrate_await_release(uint32_t id)
{
	struct mailbox *m = link_self()->mailbox;
	struct error err = {HALE_OK, ""};
	for (int round = 0; atomic_load(&m->ckpt_released) < id && !given_up(id); round++)
		link_wait_step(round);
	/* a clone whose last round is still going out: closed with the next one's first */
	if (live_is_open() && live_progress(NULL) != LIVE_WRITING)
		live_close();
	if (given_up(id) || !atomic_load(&m->ckpt_rejoin))
		return false;
	if (link_segment_change(&err) != HALE_OK) {
		log_warn("rank %u can't go on after the migration: %s", link_self()->rank,
			 err.text);
		_exit(EXIT_UNRECOVERED);
	}
	return true;
}

/* ---- the copy ---- */

void migrate_runs(void)
{
	size_t len;
	const struct migrate_pass *pass = image_passed(&len);
	bool direct = pass && len == sizeof(*pass) && pass->direct;
	/* over a direct stream nobody hears us only when the source is dead; through a relay it may
	 * wait, and be let go on: then there must not be two. Not so when the head has given GO:
	 * then it ends by ckpt_moved, whatever has become of the stream. */
	if (live_runs() || direct || link_let_go())
		return;
	log_warn("rank %u: the process that this one is a copy of can't be told that it runs; the "
		 "copy ends",
		 link_self()->rank);
	_exit(EXIT_UNRECOVERED);
}

void migrate_sink(const char *from, struct error *err)
{
	struct migrate_pass pass = {.direct = 0};
	bool direct;
	/* PID@NAME: that process has most of the pages already */
	char *name;
	int beside = (int)strtol(from, &name, 10);
	if (!link_address_from_env(&pass.address)) {
		error_set(err, HALE_ERR_STATE, "HALE_AGENT or HALE_TOKEN is missing");
		return;
	}
	int fd = migrate_stream_sink(beside > 0 ? name : from, &direct, err);
	if (fd < 0)
		return;
	pass.direct = direct;
	if (image_pass(&pass, sizeof(pass)) == HALE_OK)
		image_sink_live(fd, beside > 0 ? beside : 0, err);
}
