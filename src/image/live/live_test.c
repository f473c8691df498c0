// SPDX-License-Identifier: BSD-3-Clause
/* Live images with real processes: a source runs a scenario (test/), a sink of the same executable
 * becomes it while it runs, and this process in between passes frames on, drops, bends and cuts
 * them, and kills either. Whatever happens: never both at work, and never none as long as the
 * source wasn't killed itself. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "image/live/live.h"
#include "image/live/live_pack.h"
#include "image/live/live_wire.h"
#include "image/test/live_pair.h"
#include "image/test/live_roles.h"
#include "image/test/scenario.h"

#define EXITED(status, code) (WIFEXITED(status) && WEXITSTATUS(status) == (code))

static void expect_statuses(struct fixture *f, int source, int sink)
{
	if (!EXITED(f->source_status, source) || !EXITED(f->sink_status, sink))
		print_error("source %x, sink %x: %s\n", f->source_status, f->sink_status, f->said);
	assert_true(EXITED(f->source_status, source));
	assert_true(EXITED(f->sink_status, sink));
}

static void moves(void **state, const char *scenario, const char *how)
{
	struct fixture *f = *state;
	pair_start(f, scenario, how, false);
	pair_wait(f);
	expect_statuses(f, EXIT_MOVED, 0);
}

#define MOVES(test, name, how)                                                                     \
	static void test(void **state)                                                             \
	{                                                                                          \
		moves(state, name, how);                                                           \
	}

MOVES(private_memory_moves, "private_memory", "direct")
MOVES(file_mappings_move, "file_mappings", "direct")
MOVES(shared_memory_moves, "shared_memory", "direct")
MOVES(files_move, "files", "direct")
MOVES(pipes_and_counters_move, "pipes_and_counters", "direct")
MOVES(signals_and_timers_move, "signals", "direct")
MOVES(attributes_move, "attributes", "direct")
MOVES(computing_threads_move, "computing_threads", "direct")
MOVES(any_thread_may_move_it, "other_thread", "direct")
MOVES(a_main_thread_may_be_gone, "main_thread_gone", "direct")
MOVES(held_mutexes_know_their_owner, "held_mutexes", "direct")
MOVES(interrupted_calls_are_not_noticed, "interrupted_calls", "direct")
MOVES(a_changing_map_moves, "changing", "direct")
MOVES(a_changing_map_moves_by_checksums, "changing", "direct hash")
MOVES(a_busy_program_moves, "busy", "direct")
MOVES(many_scattered_writes_move, "scattered", "direct")

static uint64_t result_of(struct fixture *f)
{
	char path[PATH_LEN + 16];
	unsigned long value = 0;
	snprintf(path, sizeof(path), "%s/result", f->dir);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lx", &value), 1);
	fclose(file);
	unlink(path);
	return value;
}

static void the_result_is_that_of_an_undisturbed_run(void **state)
{
	struct fixture *f = *state;
	pair_start(f, "busy", "alone", false);
	pair_wait(f); /* the sink ends since nobody speaks to it */
	assert_true(EXITED(f->source_status, 0) && EXITED(f->sink_status, HALE_ERR_LINK));
	uint64_t expected = result_of(f);
	moves(state, "busy", "direct");
	assert_int_equal(result_of(f), expected);
	moves(state, "busy", "direct hash");
	assert_int_equal(result_of(f), expected);
}

static void a_clone_and_its_original_both_run(void **state)
{
	struct fixture *f = *state;
	static const char *const scenario[] = {"private_memory", "computing_threads", "changing",
					       "pipes_and_counters"};
	for (size_t i = 0; i < ARRAY_LEN(scenario); i++) {
		pair_start(f, scenario[i], "direct clone", false);
		pair_wait(f);
		expect_statuses(f, 0, 0);
		assert_null(strstr(f->said, "stays"));
	}
}

/* ---- beside a process that has the pages already ---- */

/* Pages that came by the stream, and that the sink had, of the round that was compared. */
static void expect_same(struct fixture *f, bool most)
{
	unsigned long sent = 0, same = 0;
	const char *said = strstr(f->said, "sent ");
	if (said)
		sscanf(said, "sent %lu same %lu", &sent, &same);
	if (most ? same <= sent : same == 0)
		print_error("sent %lu, same %lu: %s\n", sent, same, f->said);
	assert_true(most ? same > sent : same > 0);
}

static void pages_that_are_there_already_do_not_travel(void **state)
{
	struct fixture *f = *state;
	static const char *const scenario[] = {"private_memory", "file_mappings", "held_mutexes",
					       "computing_threads", "pipes_and_counters"};
	for (size_t i = 0; i < ARRAY_LEN(scenario); i++) {
		moves(state, scenario[i], "direct beside");
		expect_same(f, true);
		if (!strcmp(scenario[i], "file_mappings")) /* both would write to the same file */
			continue;
		pair_start(f, scenario[i], "direct clone beside", false);
		pair_wait(f);
		expect_statuses(f, 0, 0);
		expect_same(f, true);
	}
}

/* Its memory changes while it is read, and between the reading and the comparison. */
static void what_is_taken_from_a_process_that_changes_is_right(void **state)
{
	struct fixture *f = *state;
	static const char *const scenario[] = {"changing", "busy", "scattered"};
	static const char *const how[] = {"direct beside", "direct beside hash"};
	for (size_t i = 0; i < ARRAY_LEN(scenario); i++)
		for (size_t k = 0; k < 2; k++)
			moves(state, scenario[i], how[k]);
	pair_start(f, "busy", "alone", false);
	pair_wait(f);
	uint64_t expected = result_of(f);
	moves(state, "busy", "direct beside");
	assert_int_equal(result_of(f), expected);
}

/* One of the same program that is elsewhere, has other mappings, ends, or may not be read. */
static void older_copies_may_be_anything(void **state)
{
	struct fixture *f = *state;
	int pair[2], out[2];
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid_t older = pair_spawn(f, "sink", "changing", "", pair[0], out[1]);
	const pid_t beside[] = {older, 1, getpid(), 4194303};
	for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
		f->older = beside[i];
		moves(state, "private_memory", "direct");
		moves(state, "changing", "direct");
	}
	kill(older, SIGKILL);
	assert_int_equal(waitpid(older, NULL, 0), older);
	moves(state, "private_memory", "direct");
	close(pair[0]);
	close(pair[1]);
	close(out[0]);
	close(out[1]);
}

static void compressing_pays_where_the_link_is_slower(void **state)
{
	struct live_packing p = {0};
	unsigned tries = 0;
	/* a link of 1 GB/s, a compressor of 500 MB/s to a half */
	for (int i = 0; i < 1000; i++) {
		bool packs = live_pack_next(&p);
		tries += packs;
		live_pack_took(&p, 1000000, packs ? 500000 : 0, packs ? 500000 : 1000000,
			       packs ? 0.0005 : 0.001, packs ? 0.002 : 0);
	}
	assert_true(tries > 0 && tries < 6);
	/* of 100 MB/s, from some time on */
	for (int i = 0; i < 2000; i++) {
		bool packs = live_pack_next(&p);
		live_pack_took(&p, 1000000, packs ? 500000 : 0, packs ? 500000 : 1000000,
			       packs ? 0.005 : 0.01, packs ? 0.002 : 0);
	}
	assert_true(p.on);
	/* what comes can't be made smaller */
	for (int i = 0; i < 10; i++)
		live_pack_took(&p, 1000000, 1000000, 1000000, 0.01, 0.002);
	assert_false(p.on);
}

/* ---- through a file ---- */

static void by_file(struct fixture *f, const char *scenario, const char *how)
{
	char path[PATH_LEN + 16];
	int out[2];
	snprintf(path, sizeof(path), "%s/stream", f->dir);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	memset(f->said, 0, sizeof(f->said));
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	f->out = out[0];
	f->sink_status = 0;
	f->source_status = -1;
	f->source = pair_spawn(f, "source", scenario, how, fd, out[1]);
	close(out[1]);
	close(fd);
	pair_wait(f);
}

static void from_file(struct fixture *f, const char *scenario, const char *how)
{
	char path[PATH_LEN + 16];
	int out[2];
	snprintf(path, sizeof(path), "%s/stream", f->dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	memset(f->said, 0, sizeof(f->said));
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	f->out = out[0];
	f->source_status = 0;
	f->sink_status = -1;
	f->sink = pair_spawn(f, "sink", scenario, how, fd, out[1]);
	close(out[1]);
	close(fd);
	pair_wait(f);
}

static void a_stream_may_be_a_file(void **state)
{
	struct fixture *f = *state;
	static const char *const scenario[] = {"changing", "files", "computing_threads"};
	char path[PATH_LEN + 16];
	struct stat st;
	snprintf(path, sizeof(path), "%s/stream", f->dir);
	for (size_t i = 0; i < ARRAY_LEN(scenario); i++) {
		by_file(f, scenario[i], "");
		assert_true(EXITED(f->source_status, EXIT_MOVED));
		from_file(f, scenario[i], "");
		if (!EXITED(f->sink_status, 0))
			print_error("%s\n", f->said);
		assert_true(EXITED(f->sink_status, 0));
	}
	/* without its last word, or its last round, nobody runs */
	assert_int_equal(stat(path, &st), 0);
	for (off_t cut = 1; cut < st.st_size; cut *= 40) {
		assert_int_equal(truncate(path, st.st_size - cut), 0);
		from_file(f, "computing_threads", "");
		assert_true(EXITED(f->sink_status, HALE_ERR_LINK));
	}
}

/* ---- between them ---- */

static void with_fault(struct fixture *f, const char *scenario, const char *how,
		       const struct relay_fault *fault)
{
	pair_start(f, scenario, how, true);
	relay(f, fault, !strstr(how, "unknown") && !strstr(how, "direct"));
	pair_wait(f);
}

/* 2 MB/s: the compressor is faster. What a socket has room for seems to go at once, and beside
 * other load the first try may take long: then a short image is over before the next one. */
static void a_slow_link_gets_compressed_pages(void **state)
{
	struct fixture *f = *state;
	static const struct relay_fault slow = {SLOW, TO_SINK, FRAME_PAGES, 0};
	static const char *const scenario[] = {"private_memory", "busy", "held_mutexes"};
	relay_packed = 0;
	for (int turn = 0; turn < 10 && relay_packed == 0; turn++)
		for (size_t i = 0; i < ARRAY_LEN(scenario); i++) {
			with_fault(f, scenario[i], "", &slow);
			expect_statuses(f, EXIT_MOVED, 0);
		}
	assert_true(relay_packed > 0);
}

static void a_relay_changes_nothing(void **state)
{
	struct fixture *f = *state;
	const struct relay_fault none = {PASS};
	with_fault(f, "changing", "", &none);
	expect_statuses(f, EXIT_MOVED, 0);
}

/* What others write to a file after the source has stopped isn't cut off. */
static void shared_files_are_left_alone(void **state)
{
	struct fixture *f = *state;
	static const struct relay_fault x[] = {{APPEND, TO_SINK, FRAME_DESCRIPTORS, 0},
					       {APPEND, TO_SOURCE, LIVE_WHOLE, 0}};
	for (size_t i = 0; i < ARRAY_LEN(x); i++) {
		with_fault(f, "shared_log", "", &x[i]);
		expect_statuses(f, EXIT_MOVED, 0);
	}
}

static const struct relay_fault stages[] = {
    {CUT, TO_SINK, LIVE_BEGIN, 0},    {CUT, TO_SOURCE, LIVE_ACCEPT, 0},
    {CUT, TO_SINK, FRAME_MAPS, 0},    {CUT, TO_SINK, FRAME_PAGES, 1},
    {CUT, TO_SINK, LIVE_END, 0},      {CUT, TO_SINK, LIVE_ROUND, 2},
    {CUT, TO_SINK, FRAME_THREADS, 0}, {CUT, TO_SINK, FRAME_MAPS, ROUNDS},
    {CUT, TO_SINK, LIVE_END, ROUNDS}, {CUT, TO_SOURCE, LIVE_WHOLE, 0},
    {CUT, TO_SINK, LIVE_COMMIT, 0},
};

/* The source went on to its end, the sink didn't. */
static void expect_nothing_happened(struct fixture *f, const struct relay_fault *x)
{
	bool good =
	    EXITED(f->source_status, 0) && !EXITED(f->sink_status, 0) && strstr(f->said, "stays: ");
	if (!good)
		print_error("deed %d at frame %u.%u: source %x, sink %x: %s\n", x->deed, x->kind,
			    x->nth, f->source_status, f->sink_status, f->said);
	assert_true(good);
}

/* What is said of pages that are there may be cut and damaged, too. */
static void offers_are_not_believed(void **state)
{
	static const struct relay_fault x[] = {
	    {CUT, TO_SOURCE, LIVE_OFFER, 0},	   {KILL_SINK, TO_SOURCE, LIVE_OFFER, 0},
	    {FLIP_HEAD, TO_SOURCE, LIVE_OFFER, 0}, {FLIP_TABLE, TO_SOURCE, LIVE_OFFER, 0},
	    {FLIP_DATA, TO_SOURCE, LIVE_OFFER, 0}, {RESIGN, TO_SOURCE, LIVE_OFFER, 0},
	    {SWALLOW, TO_SOURCE, LIVE_OFFER, 1},
	};
	for (size_t i = 0; i < ARRAY_LEN(x); i++) {
		relay_resign_at = 7; /* the highest byte of the first run's address */
		with_fault(*state, "private_memory", "hasty beside", &x[i]);
		expect_nothing_happened(*state, &x[i]);
	}
}

static void whoever_loses_the_sink_goes_on(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
		static const enum deed deeds[] = {CUT, KILL_SINK};
		for (size_t k = 0; k < ARRAY_LEN(deeds); k++) {
			struct relay_fault x = stages[i];
			x.deed = deeds[k];
			with_fault(*state, "computing_threads", i % 2 ? "direct" : "", &x);
			expect_nothing_happened(*state, &x);
		}
	}
}

static void a_sink_that_dies_while_it_becomes_the_copy(void **state)
{
	struct fixture *f = *state;
	const struct relay_fault x = {KILL_SINK, TO_SOURCE, LIVE_RUNS, 0};
	/* RUNS was swallowed with it: none has run, and who reaped it says so */
	with_fault(f, "computing_threads", "", &x);
	expect_nothing_happened(f, &x);
	with_fault(f, "computing_threads", "direct", &x);
	expect_nothing_happened(f, &x);
}

/* The relay breaks after COMMIT: the source can't know, and does neither. */
static void who_does_not_know_waits(void **state)
{
	struct fixture *f = *state;
	const struct relay_fault x = {CUT, TO_SOURCE, LIVE_RUNS, 0};
	with_fault(f, "computing_threads", "unknown", &x);
	assert_true(EXITED(f->source_status, 7));
	assert_non_null(strstr(f->said, "unknown"));
}

static void a_source_that_dies_leaves_no_copy_before_commit(void **state)
{
	struct fixture *f = *state;
	for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
		struct relay_fault x = stages[i];
		x.deed = KILL_SOURCE;
		with_fault(f, "computing_threads", "", &x);
		if (!WIFSIGNALED(f->source_status) || !EXITED(f->sink_status, HALE_ERR_LINK))
			print_error("frame %u.%u: %x: %s\n", x.kind, x.nth, f->sink_status,
				    f->said);
		assert_true(WIFSIGNALED(f->source_status));
		assert_true(EXITED(f->sink_status, HALE_ERR_LINK));
		assert_non_null(strstr(f->said, "has gone"));
	}
}

static void a_sink_that_does_not_answer_is_left(void **state)
{
	struct fixture *f = *state;
	static const struct relay_fault x[] = {{SWALLOW, TO_SOURCE, LIVE_ACCEPT, 0},
					       {SWALLOW, TO_SOURCE, LIVE_WHOLE, 0}};
	for (size_t i = 0; i < ARRAY_LEN(x); i++) {
		with_fault(f, "computing_threads", "hasty", &x[i]);
		expect_nothing_happened(f, &x[i]);
		assert_non_null(strstr(f->said, "doesn't answer"));
	}
}

static void flipped_bits_are_found(void **state)
{
	struct fixture *f = *state;
	static const struct relay_fault x[] = {
	    {FLIP_HEAD, TO_SINK, LIVE_BEGIN, 0},     {FLIP_TABLE, TO_SINK, LIVE_BEGIN, 0},
	    {FLIP_HEAD, TO_SINK, FRAME_MAPS, 0},     {FLIP_TABLE, TO_SINK, FRAME_MAPS, 1},
	    {FLIP_HEAD, TO_SINK, FRAME_PAGES, 0},    {FLIP_TABLE, TO_SINK, FRAME_PAGES, 0},
	    {FLIP_DATA, TO_SINK, FRAME_PAGES, 0},    {FLIP_TABLE, TO_SINK, FRAME_DROPS, 0},
	    {FLIP_TABLE, TO_SINK, LIVE_ROUND, 1},    {FLIP_TABLE, TO_SINK, LIVE_END, 0},
	    {FLIP_TABLE, TO_SINK, FRAME_PROCESS, 0}, {FLIP_TABLE, TO_SINK, FRAME_THREADS, 0},
	    {FLIP_TABLE, TO_SINK, FRAME_SIGNALS, 0}, {FLIP_TABLE, TO_SINK, FRAME_DESCRIPTORS, 0},
	    {FLIP_DATA, TO_SINK, FRAME_CONTENT, 0},  {FLIP_TABLE, TO_SINK, LIVE_COMMIT, 0},
	    {FLIP_HEAD, TO_SINK, LIVE_COMMIT, 0},    {SWALLOW, TO_SINK, FRAME_PAGES, 2},
	    {SWALLOW, TO_SINK, FRAME_DROPS, 1},
	};
	for (size_t i = 0; i < ARRAY_LEN(x); i++) {
		with_fault(f, "pipes_and_counters", "", &x[i]);
		expect_nothing_happened(f, &x[i]);
		assert_non_null(strstr(f->said, "is damaged"));
	}
}

/* Whoever can speak to a sink can't make it crash, nor run. */
static void wrong_tables_with_right_checksums_are_survived(void **state)
{
	struct fixture *f = *state;
	static const unsigned kinds[] = {FRAME_MAPS,	FRAME_PAGES,   FRAME_DROPS,
					 FRAME_LOCKS,	FRAME_PROCESS, FRAME_THREADS,
					 FRAME_SIGNALS, FRAME_CONTENT, FRAME_DESCRIPTORS};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (size_t k = 0; k < 2; k++) {
			bool in_all = kinds[i] == FRAME_MAPS || kinds[i] == FRAME_PAGES;
			const struct relay_fault x = {RESIGN, TO_SINK, kinds[i],
						      in_all ? k % 2 : 0};
			relay_resign_at = 12 + k * 1013;
			with_fault(f,
				   kinds[i] == FRAME_LOCKS ? "held_mutexes" : "pipes_and_counters",
				   "", &x);
			expect_nothing_happened(f, &x);
			assert_true(WIFEXITED(f->sink_status));
		}
}

static void flipped_answers_are_found(void **state)
{
	static const struct relay_fault x[] = {{FLIP_TABLE, TO_SOURCE, LIVE_ACCEPT, 0},
					       {FLIP_HEAD, TO_SOURCE, LIVE_WHOLE, 0}};
	for (size_t i = 0; i < ARRAY_LEN(x); i++) {
		with_fault(*state, "computing_threads", "", &x[i]);
		expect_nothing_happened(*state, &x[i]);
	}
}

static void children_are_refused(void **state)
{
	struct fixture *f = *state;
	pair_start(f, "with_child", "direct", false);
	pair_wait(f);
	assert_true(EXITED(f->source_status, 0));
	assert_non_null(strstr(f->said, "has children"));
}

static void a_sink_without_memory_says_so(void **state)
{
	struct fixture *f = *state;
	pair_start(f, "private_memory", "direct small", false);
	pair_wait(f);
	assert_true(EXITED(f->source_status, 0) && EXITED(f->sink_status, HALE_ERR_MEMORY));
	assert_non_null(strstr(f->said, "there is no copy: "));
}

/* Talks to a sink as a source would that isn't one. */
static void expect_refusal(struct fixture *f, const void *bytes, size_t len, int code)
{
	int a[2], out[2];
	memset(f->said, 0, sizeof(f->said));
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a), 0);
	f->sink = pair_spawn(f, "sink", "files", "", a[1], out[1]);
	f->sink_status = -1;
	f->source_status = 0;
	f->out = out[0];
	close(a[1]);
	close(out[1]);
	assert_true(relay_write(a[0], bytes, len));
	shutdown(a[0], SHUT_WR);
	pair_wait(f);
	close(a[0]);
	if (!EXITED(f->sink_status, code))
		print_error("%x: %s\n", f->sink_status, f->said);
	assert_true(EXITED(f->sink_status, code));
}

static void other_versions_and_garbage_are_refused(void **state)
{
	struct {
		struct frame f;
		struct live_begin b;
	} m = {.f = {.kind = LIVE_BEGIN, .count = 1, .table_len = sizeof(m.b)},
	       .b = {.magic = LIVE_MAGIC, .version = LIVE_VERSION + 1}};
	live_sign(&m.f, &m.b);
	expect_refusal(*state, &m, sizeof(m), HALE_ERR_IMAGE_MISMATCH);
	assert_non_null(strstr(((struct fixture *)*state)->said, "same Hale"));
	m.b.version = LIVE_VERSION;
	m.b.header.version = IMAGE_VERSION;
	live_sign(&m.f, &m.b);
	expect_refusal(*state, &m, sizeof(m), HALE_ERR_IMAGE_MISMATCH);
	assert_non_null(strstr(((struct fixture *)*state)->said, "another program"));
	char garbage[3000];
	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (char)(i * 7 + 3);
	expect_refusal(*state, garbage, sizeof(garbage), HALE_ERR_IMAGE_CORRUPT);
	expect_refusal(*state, garbage, 5, HALE_ERR_LINK);
}

/* ---- when to stop ---- */

static void rounds_end_when_the_rest_is_small(void **state)
{
	const struct live_bounds any = {0, 0, 0};
	double expected;
	/* 512 MB at 1 GB/s, 50 MB/s written */
	struct live_step s[4] = {{512000000, 0.512, 0}, {25600000, 0.0256, 0.512}};
	assert_int_equal(live_plan(s, 1, &any, &expected), LIVE_AGAIN);
	assert_true(expected < 0);
	assert_int_equal(live_plan(s, 2, &any, &expected), LIVE_LAST);
	assert_true(expected > 0.01 && expected < 0.012);
	/* 1 s is bound too tightly for what is written at the stream's own speed */
	struct live_step fast[4] = {
	    {512000000, 0.5, 0}, {500000000, 0.5, 0.5}, {500000000, 0.5, 0.5}};
	assert_int_equal(live_plan(fast, 2, &any, &expected), LIVE_AGAIN);
	assert_int_equal(live_plan(fast, 3, &any, &expected), LIVE_HOLD);
	assert_true(expected > 0.4);
	/* what the first held round does is seen in the next one's bytes */
	const struct live_bounds once = {0, 0, 1}, twice = {0, 0, 2};
	assert_int_equal(live_plan(fast, 3, &once, &expected), LIVE_HOLD);
	assert_int_equal(live_plan(fast, 3, &twice, &expected), LIVE_LAST);
	fast[2].bytes = 400000000;
	assert_int_equal(live_plan(fast, 3, &twice, &expected), LIVE_HOLD);
	const struct live_bounds few = {0, 1, 0};
	assert_int_equal(live_plan(s, 1, &few, &expected), LIVE_LAST);
	/* the same pages again and again: no more than these are left */
	struct live_step hot[4] = {
	    {512000000, 0.5, 0}, {40000000, 0.04, 0.5}, {40000000, 0.04, 0.05}};
	live_plan(hot, 3, &any, &expected);
	assert_true(expected < 0.06);
	/* it has waited for others since, and may have written anything */
	assert_true(live_rest(hot, 3, 0.04) == expected);
	assert_true(live_rest(hot, 3, 2) > 0.5);
}

int main(int argc, char **argv)
{
	const char *scenario = getenv("T_SCENARIO");
	const struct scenario *all[] = {scenarios_memory, scenarios_kernel, scenarios_threads,
					scenarios_live};
	if (scenario) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		return scenario_run(all, ARRAY_LEN(all), scenario);
	}
#define T(f) cmocka_unit_test_setup_teardown(f, pair_set_up, pair_tear_down)
	const struct CMUnitTest tests[] = {
	    T(private_memory_moves),
	    T(file_mappings_move),
	    T(shared_memory_moves),
	    T(files_move),
	    T(pipes_and_counters_move),
	    T(signals_and_timers_move),
	    T(attributes_move),
	    T(computing_threads_move),
	    T(any_thread_may_move_it),
	    T(a_main_thread_may_be_gone),
	    T(held_mutexes_know_their_owner),
	    T(interrupted_calls_are_not_noticed),
	    T(a_changing_map_moves),
	    T(a_changing_map_moves_by_checksums),
	    T(a_busy_program_moves),
	    T(many_scattered_writes_move),
	    T(the_result_is_that_of_an_undisturbed_run),
	    T(a_clone_and_its_original_both_run),
	    T(pages_that_are_there_already_do_not_travel),
	    T(what_is_taken_from_a_process_that_changes_is_right),
	    T(older_copies_may_be_anything),
	    T(offers_are_not_believed),
	    T(a_slow_link_gets_compressed_pages),
	    T(a_stream_may_be_a_file),
	    T(a_relay_changes_nothing),
	    T(shared_files_are_left_alone),
	    T(whoever_loses_the_sink_goes_on),
	    T(a_sink_that_dies_while_it_becomes_the_copy),
	    T(who_does_not_know_waits),
	    T(a_source_that_dies_leaves_no_copy_before_commit),
	    T(a_sink_that_does_not_answer_is_left),
	    T(flipped_bits_are_found),
	    T(wrong_tables_with_right_checksums_are_survived),
	    T(flipped_answers_are_found),
	    T(children_are_refused),
	    T(a_sink_without_memory_says_so),
	    T(other_versions_and_garbage_are_refused),
	    cmocka_unit_test(rounds_end_when_the_rest_is_small),
	    cmocka_unit_test(compressing_pays_where_the_link_is_slower),
	};
	return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
