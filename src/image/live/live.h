/* SPDX-License-Identifier: BSD-3-Clause */
/* The live image: a running process streamed into one that is to become it, while it runs on
 * (docs/migration.md; seed 001, 3.4; seed 000, 3.5).
 *
 *   source                                                   sink, a fresh process
 *   live_open                                                image_sink_live
 *   live_round(false)   fork; the child sends all pages ──▶  built where neither has memory
 *   live_round(false)   … what was written since        ──▶
 *   live_plan says LIVE_LAST: the caller stops what it has to stop
 *   live_round(true)    … threads, files, the rest      ──▶
 *   live_finish         ◀── WHOLE ── COMMIT ──▶              moves memory into place
 *     == LIVE_MOVED     ◀── RUNS ──────────────────────      live_round == IMAGE_RESTORED
 *
 * Whatever happens before COMMIT is sent, the source has lost nothing but time: live_finish or
 * live_close, and it goes on. Async-signal-safe, as image.h. One live image at a time. */
#ifndef HALE_IMAGE_LIVE_H
#define HALE_IMAGE_LIVE_H

#include "image/image.h"

/* What becomes of the source after COMMIT. */
typedef enum live_then {
	LIVE_THEN_END,	 /* migration: it stays stopped until it knows, then its caller ends it */
	LIVE_THEN_GO_ON, /* cloning: it goes on as soon as the last round is forked off */
} live_then_t;

struct live_params {
	/* A connected stream socket, to the sink or to somebody who passes on what comes; or a
	 * file or pipe, which never answers: then COMMIT follows the last round at once. live_open
	 * takes it over. */
	int fd;
	/* No process but the sink has the other end. Then its end without RUNS proves that there
	 * is no copy; through a relay only LIVE_DEAD does. */
	bool direct;
	/* A file that is whole doesn't end this process yet: live_finish says LIVE_UNKNOWN. */
	bool held;
	live_then_t then;
	struct image_identity identity; /* id: of the migration, 1 … 2^22 */
	/* Other ranks, who may have something together with this one, which then can't go; NULL, or
	 * gives NULL: none. */
	struct image_beside *(*beside)(void);
	image_compress_t compress;	/* IMAGE_LZ4: pages are, where the link is slower */
	const void *note;		/* as in image_params */
	size_t note_len;
	uint32_t wait_ms; /* patience with a sink that doesn't answer; 0: 30 s */
	/* While live_finish waits after COMMIT, every few milliseconds: true, what has become of
	 * the copy is known by another way than the stream, so LIVE_UNKNOWN. NULL: there is none */
	bool (*decided)(void);
	/* Called once for each round, when it is written or has failed: in the writing child, or in
	 * the caller of live_round. Its error's code says which. */
	void (*written)(void *arg, const struct image_result *result);
	void *arg;
};

/* HALE_ERR_STATE: there is one already; HALE_ERR_UNSUPPORTED: this process has children. */
hale_status_t live_open(const struct live_params *p, struct error *err);

/* One round; all other threads are parked. Not before the one before it is written. Returns as
 * image_capture does. After IMAGE_RESTORED: live_runs(). After IMAGE_CAPTURED of the last round of
 * a migration: live_finish(), with the threads still parked. last_note replaces the note. */
image_return_t live_round(bool last, const void *last_note, size_t last_note_len,
			  uint64_t *pause_ns, struct error *err);

/* How far the newest round is. */
typedef enum live_progress { LIVE_WRITING, LIVE_WRITTEN, LIVE_FAILED } live_progress_t;
struct live_step {
	uint64_t bytes;	 /* sent */
	double seconds;	 /* that took, from the fork on */
	double interval; /* since the round before it began: in which its pages were written */
};
live_progress_t live_progress(struct live_step *step);

typedef enum live_verdict {
	LIVE_STAYS,   /* there is no copy and there will be none: go on; err says why */
	LIVE_MOVED,   /* the copy runs: this process has to end, without another instruction of
		       * the program */
	LIVE_UNKNOWN, /* COMMIT is sent and no answer has come. Neither go on nor end: ask who can
		       * tell (or end the sink for sure), and call again */
} live_verdict_t;
/* The second half of a migration's last round. Blocks, at most wait_ms. */
live_verdict_t live_finish(struct error *err);

/* Gives up before COMMIT, or cleans up after LIVE_STAYS and a clone's end. The sink sees it. */
void live_close(void);
/* Is there a live image between live_open and live_close? */
bool live_is_open(void);

/* In the restored process, when it could run: tells the source, and closes the stream. False: the
 * source doesn't hear any more. */
bool live_runs(void);

/* Becomes the process that comes through fd, which it takes over; never returns on success. Refuses
 * by a word to the source and err. As image_sink, it exits with 70 after the point of no return.
 * beside: a process on this node that is an older copy of the source, whose pages need not be sent
 * where they are equal (live_offer.h); 0: there is none. It is read, and nothing else. */
hale_status_t image_sink_live(int fd, int beside, struct error *err);

/* ---- when to stop (pure) ---- */

typedef enum live_next {
	LIVE_AGAIN,
	LIVE_HOLD, /* another round, at whose beginning the program stands still for a while */
	LIVE_LAST
} live_next_t;
struct live_bounds {
	double downtime; /* seconds, what the last round may take; 0: LIVE_DOWNTIME */
	unsigned rounds; /* at most so many before the last; 0: LIVE_ROUNDS */
	unsigned held;	 /* so many of them were held: all since the first one that was */
};
#define LIVE_DOWNTIME 0.03
enum { LIVE_ROUNDS = 20 };
/* Seconds that a last round would take that begins `age` seconds after the newest of `count` rounds
 * has begun; negative: not known yet. */
double live_rest(const struct live_step *step, size_t count, double age);
/* After `count` rounds. *expected: seconds that a last round now would take, negative while that
 * isn't known. LIVE_LAST when it is short enough, or neither more rounds nor held ones make it
 * shorter. */
live_next_t live_plan(const struct live_step *step, size_t count, const struct live_bounds *bounds,
		      double *expected);

#endif
