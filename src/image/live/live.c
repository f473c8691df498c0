// SPDX-License-Identifier: BSD-3-Clause
/* The running process's side of a live image. Rounds are captures (capture.c) whose frames go into
 * the stream. What the writing child finds out, the process learns through a shared page. States
 * and who may die when: docs/migration.md. */
#include "image/live/live.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "image/capture.h"
#include "image/live/live_offer.h"
#include "image/live/live_wire.h"

enum {
	LIVE_FD_FLOOR = 900,
	WAIT_MS = 30000,
	LOOK_MS = 5,
	REASON_NS = 200000000, /* for the reason of who has gone: it is on its way or never comes */
};

/* Ids of rounds, for dirty tracking: apart from those of checkpoints, none twice. */
#define ID_LIVE	     (1u << 31)
#define ID_ROUNDS    256u
#define ID_MIGRATION (1u << 22)

/* Written by the child that sends a round, read by the process. */
struct shared {
	_Atomic int progress;
	struct live_step step;
	struct error error;
};

static struct {
	bool open;
	bool committed;
	bool offers; /* in the process that writes round 0: the sink has pages already */
	struct live_params p;
	struct live_round round; /* the newest */
	uint32_t rounds;	 /* begun */
	uint64_t began_ns;	 /* the newest */
	uint64_t interval_ns;	 /* between it and the one before */
	struct shared *shared;
} live = {.p.fd = -1};

/* Of a restored process: the stream that it came through. */
static int came_through = -1;

bool live_is_open(void)
{
	return live.open;
}

/* ---- beginning and end ---- */

static hale_status_t refuse_children(struct error *err)
{
	if (!image_has_children())
		return HALE_OK;
	return error_set(err, HALE_ERR_UNSUPPORTED,
			 "this process has children, which can't move with it; try again when they "
			 "have ended and were waited for");
}

/* A number that neither the program gets nor the copy's descriptors have. */
static int lift(int fd)
{
	long high = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, LIVE_FD_FLOOR);
	if (high < 0)
		return fd;
	sys(SYS_close, fd);
	return (int)high;
}

hale_status_t live_open(const struct live_params *p, struct error *err)
{
	struct error local;
	if (!err)
		err = &local;
	if (live.open)
		return error_set(err, HALE_ERR_STATE,
				 "this process is being moved or cloned already; wait for the end "
				 "of that");
	if (!p->identity.id || p->identity.id >= ID_MIGRATION || p->note_len > IMAGE_NOTE_MAX)
		return error_set(err, HALE_ERR_ARGUMENT, "the migration's number or note is wrong");
	hale_status_t rc = refuse_children(err);
	if (rc != HALE_OK)
		return rc;
	long page =
	    sys(SYS_mmap, 0, HALE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(page))
		return error_set(err, HALE_ERR_MEMORY, "no memory to prepare a live image");
	memset(&live, 0, sizeof(live));
	live.open = true;
	live.p = *p;
	live.p.fd = lift(p->fd);
	live.shared = (struct shared *)page;
	live.round.fd = live.p.fd;
	live.round.then = p->then;
	live.round.answers = live_answers(live.p.fd);
	live.round.wait_ns = (p->wait_ms ? p->wait_ms : WAIT_MS) * 1000000ull;
	image_exclude_add(live.shared, HALE_PAGE);
	image_fd_own(live.p.fd);
	return HALE_OK;
}

static void forget(void)
{
	image_fd_disown(live.p.fd);
	image_exclude_remove(live.shared);
	live.open = false;
	live.p.fd = -1;
	live.shared = NULL;
}

void live_close(void)
{
	if (!live.open)
		return;
	/* a child that is still writing has the descriptor too */
	sys(SYS_shutdown, live.p.fd, SHUT_RDWR);
	sys(SYS_close, live.p.fd);
	sys(SYS_munmap, live.shared, HALE_PAGE);
	forget();
}

/* ---- a round, in the process that writes it ---- */

static hale_status_t sentence(int error, struct error *err)
{
	if (error == -EPIPE)
		return error_set(err, HALE_ERR_PROCESS,
				 "the copy's process, or the connection to it, ended before the "
				 "copy was whole; this process goes on");
	if (error == -ETIMEDOUT)
		return error_set(err, HALE_ERR_TIMEOUT,
				 "the copy's process doesn't answer; this process goes on");
	if (error == -EPROTO)
		return error_set(err, HALE_ERR_PROTOCOL,
				 "what came from the copy's process is damaged, or of another "
				 "version of Hale; this process goes on");
	if (error == -ENOSPC || error == -EDQUOT)
		return error_set(err, HALE_ERR_STORE_FULL,
				 "no space left for the stream: free some; this process goes on");
	return error_set(err, HALE_ERR_LINK,
			 "the stream to the copy can't be written (error %d); this process goes on",
			 -error);
}

/* One word from the sink: `wanted`, or an error. */
static hale_status_t expect_word(int fd, int wanted, uint64_t deadline_ns, struct live_word *word,
				 struct error *err)
{
	int kind = live_listen(fd, word, deadline_ns);
	if (kind == wanted)
		return HALE_OK;
	if (kind == LIVE_REFUSED)
		return error_set(err, word->code ? (hale_status_t)word->code : HALE_ERR_PROCESS,
				 "there is no copy: %s", word->text);
	return sentence(kind == LIVE_DEAD ? -EPIPE : kind < 0 ? kind : -EPROTO, err);
}

static hale_status_t expect(int fd, int wanted, uint64_t deadline_ns, struct error *err)
{
	struct live_word word;
	return expect_word(fd, wanted, deadline_ns, &word, err);
}

int live_round_begin(const struct live_round *r, const struct live_begin *begin, bool incremental)
{
	struct live_round_record record = {
	    .round = r->round, .incremental = incremental, .last = r->last};
	int rc = 0;
	if (r->round == 0) {
		rc = live_send(r->fd, LIVE_BEGIN, begin, sizeof(*begin));
		if (!rc && r->answers) {
			struct live_word word;
			struct error err;
			if (expect_word(r->fd, LIVE_ACCEPT, clock_ns() + r->wait_ns, &word, &err) !=
			    HALE_OK) {
				live.shared->error = err;
				return -ECANCELED;
			}
			live.offers = word.code == LIVE_HAS_SOME;
		}
	}
	return rc ? rc : live_send(r->fd, LIVE_ROUND, &record, sizeof(record));
}

int live_round_offered(const struct live_round *r, struct arena *a, struct offer **offer)
{
	struct error err;
	*offer = NULL;
	if (r->round > 0 || !live.offers)
		return 0;
	struct offer *o = arena_alloc(a, sizeof(*o));
	int rc = o ? offer_take(o, r->fd, a, r->wait_ns, &err) : -ENOMEM;
	if (rc == -ECANCELED)
		live.shared->error = err;
	*offer = rc ? NULL : o;
	return rc;
}

hale_status_t live_round_error(const struct live_round *r, int error, struct error *err)
{
	if (error == -ECANCELED) {
		*err = live.shared->error;
		return err->code;
	}
	/* who refuses says so and then closes */
	if (r->answers && error == -EPIPE)
		return expect(r->fd, -1, clock_ns() + REASON_NS, err);
	return sentence(error, err);
}

/* A clone's last words are the child's: the source runs already. */
static hale_status_t give_birth(struct error *err)
{
	uint64_t deadline = clock_ns() + live.round.wait_ns;
	hale_status_t rc = HALE_OK;
	if (live.round.answers)
		rc = expect(live.p.fd, LIVE_WHOLE, deadline, err);
	int sent = rc == HALE_OK ? live_say(live.p.fd, LIVE_COMMIT, HALE_OK, NULL) : 0;
	if (sent)
		rc = sentence(sent, err);
	if (rc == HALE_OK && live.round.answers)
		rc = expect(live.p.fd, LIVE_RUNS, deadline, err);
	return rc;
}

static void on_written(void *arg, const struct image_result *result)
{
	struct image_result r = *result;
	struct shared *s = live.shared;
	if (r.error.code == HALE_OK && live.round.last && live.p.then == LIVE_THEN_GO_ON)
		give_birth(&r.error);
	s->step = (struct live_step){
	    .bytes = r.bytes, .seconds = r.seconds, .interval = (double)live.interval_ns * 1e-9};
	s->error = r.error;
	atomic_store(&s->progress, r.error.code == HALE_OK ? LIVE_WRITTEN : LIVE_FAILED);
	if (live.p.written)
		live.p.written(live.p.arg, &r);
}

/* ---- rounds, in the process ---- */

static uint32_t id_of(uint32_t round)
{
	return ID_LIVE | live.p.identity.id * ID_ROUNDS | (round + 1);
}

static hale_status_t may_begin(bool last, struct error *err)
{
	if (!live.open)
		return error_set(err, HALE_ERR_STATE, "no live image has been begun");
	if (live.rounds && atomic_load(&live.shared->progress) == LIVE_WRITING)
		return error_set(err, HALE_ERR_STATE, "the round before is still being written");
	if (live.rounds && atomic_load(&live.shared->progress) == LIVE_FAILED) {
		*err = live.shared->error;
		return err->code;
	}
	if (live.round.last || live.rounds == ID_ROUNDS - 2)
		return error_set(err, HALE_ERR_STATE, "the last round of this live image is over");
	return last ? refuse_children(err) : HALE_OK;
}

image_return_t live_round(bool last, const void *last_note, size_t last_note_len,
			  uint64_t *pause_ns, struct error *err)
{
	struct error local;
	if (!err)
		err = &local;
	if (may_begin(last, err) != HALE_OK)
		return IMAGE_FAILED;
	uint64_t now = clock_ns();
	live.interval_ns = live.rounds ? now - live.began_ns : 0;
	live.began_ns = now;
	live.round.round = live.rounds++;
	live.round.last = last;
	atomic_store(&live.shared->progress, LIVE_WRITING);
	struct image_params params = {.identity = live.p.identity,
				      .mode = last && live.p.then == LIVE_THEN_END ? IMAGE_SYNC
										   : IMAGE_FORKED,
				      .compress = live.p.compress,
				      .incremental = live.round.round > 0,
				      .track = !last,
				      .note = last_note ? last_note : live.p.note,
				      .note_len = last_note ? last_note_len : live.p.note_len,
				      .written = on_written,
				      .beside = last && live.p.beside ? live.p.beside() : NULL,
				      .live = &live.round};
	params.identity.id = id_of(live.round.round);
	params.identity.base = live.round.round ? id_of(live.round.round - 1) : 0;
	image_return_t rc = image_capture(&params, pause_ns, err);
	if (rc == IMAGE_FAILED) {
		live.shared->error = *err;
		atomic_store(&live.shared->progress, LIVE_FAILED);
	}
	/* what was sent by this process itself is over already, one way or the other */
	if (rc == IMAGE_CAPTURED && params.mode == IMAGE_SYNC &&
	    atomic_load(&live.shared->progress) == LIVE_FAILED) {
		*err = live.shared->error;
		return IMAGE_FAILED;
	}
	return rc;
}

live_progress_t live_progress(struct live_step *step)
{
	live_progress_t p = (live_progress_t)atomic_load(&live.shared->progress);
	/* a child that was killed says nothing; one that ends well has said it before */
	if (p == LIVE_WRITING && !capture_is_writing()) {
		int writing = LIVE_WRITING;
		if (atomic_compare_exchange_strong(&live.shared->progress, &writing, LIVE_FAILED))
			error_set(&live.shared->error, HALE_ERR_PROCESS,
				  "the child that sent the memory was killed");
		p = (live_progress_t)atomic_load(&live.shared->progress);
	}
	if (step)
		*step = live.shared->step;
	return p;
}

/* ---- the second half of the last round ---- */

static live_verdict_t stays(void)
{
	live_close();
	return LIVE_STAYS;
}

/* A connection that is cut says nothing for long: whoever knows better is looked at meanwhile. */
static int listen_or_be_told(struct live_word *word, uint64_t deadline_ns)
{
	while (live.p.decided) {
		struct pollfd p = {.fd = live.p.fd, .events = POLLIN};
		if (live.p.decided())
			return -ETIMEDOUT;
		long k = sys(SYS_poll, &p, 1, LOOK_MS);
		if ((k && k != -EINTR) || clock_ns() >= deadline_ns)
			break;
	}
	return live_listen(live.p.fd, word, deadline_ns);
}

/* COMMIT is out: only RUNS, or the proof that the sink is dead, ends the wait. */
static live_verdict_t await_runs(uint64_t deadline_ns, struct error *err)
{
	struct live_word word;
	int kind = listen_or_be_told(&word, deadline_ns);
	switch (kind) {
	case LIVE_RUNS:
		return LIVE_MOVED;
	case LIVE_REFUSED: /* it could not, and has said so instead of running */
		error_set(err, (hale_status_t)word.code, "there is no copy: %s", word.text);
		return stays();
	case LIVE_DEAD:
		sentence(-EPIPE, err);
		return stays();
	case -EPIPE:
		sentence(-EPIPE, err);
		if (live.p.direct)
			return stays();
		break;
	default:
		break;
	}
	error_set(err, HALE_ERR_TIMEOUT,
		  "the copy was told to run and nothing was heard of it since: this process waits "
		  "until it is known whether the copy is dead");
	return LIVE_UNKNOWN;
}

/* Nobody runs yet: what is on the disk is the process from now on. */
static live_verdict_t commit_file(struct error *err)
{
	int rc = live_say(live.p.fd, LIVE_COMMIT, HALE_OK, NULL);
	if (!rc)
		rc = (int)sys(SYS_fdatasync, live.p.fd);
	if (!rc || rc == -EINVAL) /* a pipe */
		return LIVE_MOVED;
	sentence(rc, err);
	return stays();
}

live_verdict_t live_finish(struct error *err)
{
	struct error local;
	if (!err)
		err = &local;
	uint64_t deadline = clock_ns() + live.round.wait_ns;
	if (!live.open || !live.round.last) {
		error_set(err, HALE_ERR_STATE, "the last round of a live image is missing");
		return LIVE_STAYS;
	}
	if (!live.committed) {
		if (live.round.answers && expect(live.p.fd, LIVE_WHOLE, deadline, err) != HALE_OK)
			return stays();
		if (!live.round.answers) {
			live_verdict_t v = commit_file(err);
			live.committed = v == LIVE_MOVED && live.p.held;
			return live.committed ? LIVE_UNKNOWN : v;
		}
		/* from the first byte on: whatever fails now, the sink may have it */
		live.committed = true;
		live_say(live.p.fd, LIVE_COMMIT, HALE_OK, NULL);
	}
	return live.round.answers ? await_runs(deadline, err) : LIVE_UNKNOWN;
}

/* ---- the restored process ---- */

void live_adopt(int fd)
{
	if (live.open)
		forget();
	came_through = fd;
	if (fd >= 0)
		image_fd_own(fd);
}

bool live_runs(void)
{
	if (came_through < 0)
		return true;
	bool heard =
	    !live_answers(came_through) || !live_say(came_through, LIVE_RUNS, HALE_OK, NULL);
	image_fd_disown(came_through);
	sys(SYS_close, came_through);
	came_through = -1;
	return heard;
}
