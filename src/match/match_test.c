// SPDX-License-Identifier: BSD-3-Clause
/* Messages between real processes: matching, protocols, modes. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "match/fixture.h"

enum { BIG = 3 << 20 };
static unsigned char *buf;

static void wait_and_free(struct request *r)
{
	match_wait(r);
	match_request_free(r);
}

static const size_t sizes[] = {0,     1,     3,	    4,	   7,	   8,	   23,	   24,
			       25,    31,    33,    64,	   1000,   8191,   8192,   8193,
			       16383, 16384, 16385, 65536, 100000, 262144, 300001, BIG};

static void all_sizes_body(int rank)
{
	buf = malloc(BIG + 64);
	for (int k = 0; k < (int)ARRAY_LEN(sizes); k++) {
		size_t n = sizes[k];
		MPI_Status st = {0};
		if (rank == 0) {
			fixture_fill(buf, n, 0, k);
			REQUIRE(match_send(buf, n, BYTES, 1, k, &world, 0) == MPI_SUCCESS);
		} else {
			memset(buf, 0xee, n + 64);
			REQUIRE(match_recv(buf, n + 8, BYTES, 0, k, &world, 0, &st) == MPI_SUCCESS);
			REQUIRE(st._ucount == n && st.MPI_SOURCE == 0 && st.MPI_TAG == k);
			REQUIRE(fixture_holds(buf, n, 0, k) && buf[n] == 0xee);
		}
	}
}

static void messages_of_all_sizes_arrive(void **state)
{
	assert_int_equal(fixture_run(2, 2, all_sizes_body), 0);
	assert_int_equal(fixture_run(2, 1, all_sizes_body), 0);
}

static void messages_arrive_where_processes_may_not_copy(void **state)
{
	setenv("HALE_SHM_CMA", "0", 1);
	assert_int_equal(fixture_run(2, 2, all_sizes_body), 0);
	unsetenv("HALE_SHM_CMA");
}

/* All sent before any is received; received in the opposite order of tags. */
static void unexpected_body(int rank)
{
	struct request *r[ARRAY_LEN(sizes)];
	unsigned char *p[ARRAY_LEN(sizes)];
	for (int k = 0; k < (int)ARRAY_LEN(sizes); k++) {
		p[k] = malloc(sizes[k] + 1);
		if (rank == 0) {
			fixture_fill(p[k], sizes[k], 0, k);
			match_isend(p[k], sizes[k], BYTES, 1, k, &world, 0, &r[k]);
		}
	}
	fixture_meet();
	for (int k = (int)ARRAY_LEN(sizes) - 1; k >= 0; k--) {
		if (rank == 0)
			continue;
		match_recv(p[k], sizes[k], BYTES, 0, k, &world, 0, MPI_STATUS_IGNORE);
		REQUIRE(fixture_holds(p[k], sizes[k], 0, k));
	}
	for (int k = 0; rank == 0 && k < (int)ARRAY_LEN(sizes); k++)
		wait_and_free(r[k]);
}

static void messages_nobody_waits_for_are_kept(void **state)
{
	assert_int_equal(fixture_run(2, 2, unexpected_body), 0);
}

/* The same tag, sizes across all protocols: they must match in the order sent. */
static void order_body(int rank)
{
	enum { N = 400 };
	struct request *r[N];
	unsigned char *p[N];
	for (int k = 0; k < N; k++) {
		size_t n = (size_t)(k * 7919 % 17) * (size_t)(k * 104729 % 2503);
		p[k] = malloc(40001);
		if (rank == 0) {
			fixture_fill(p[k], n, 0, k);
			match_isend(p[k], n, BYTES, 1, 5, &world, 0, &r[k]);
		} else if (k % 3) {
			match_irecv(p[k], 40000, BYTES, 0, 5, &world, 0, &r[k]);
		} else {
			match_irecv(p[k], 40000, BYTES, MPI_ANY_SOURCE, MPI_ANY_TAG, &world, 0,
				    &r[k]);
		}
	}
	for (int k = 0; k < N; k++) {
		size_t n = (size_t)(k * 7919 % 17) * (size_t)(k * 104729 % 2503);
		match_wait(r[k]);
		REQUIRE(rank == 0 || (r[k]->status._ucount == n && fixture_holds(p[k], n, 0, k)));
		match_request_free(r[k]);
	}
}

static void messages_do_not_overtake(void **state)
{
	assert_int_equal(fixture_run(2, 2, order_body), 0);
	assert_int_equal(fixture_run(2, 1, order_body), 0);
}

static void wildcard_body(int rank)
{
	int v[4] = {0}, one = 1;
	struct request *r[4];
	if (rank == 0) {
		match_irecv(&v[0], 1, INTS, MPI_ANY_SOURCE, 7, &world, 0, &r[0]);
		match_irecv(&v[1], 1, INTS, 1, 7, &world, 0, &r[1]);
		match_irecv(&v[2], 1, INTS, MPI_ANY_SOURCE, MPI_ANY_TAG, &world, 0, &r[2]);
		match_irecv(&v[3], 1, INTS, 1, 7, &world, 0, &r[3]);
		fixture_meet();
		for (int k = 0; k < 4; k++) {
			match_wait(r[k]);
			REQUIRE(r[k]->status.MPI_SOURCE == 1 && r[k]->status._ucount == 4);
			match_request_free(r[k]);
			REQUIRE(v[k] == k + 1);
		}
		return;
	}
	fixture_meet();
	for (one = 1; one <= 4; one++)
		match_send(&one, 1, INTS, 0, 7, &world, 0);
}

static void posted_wildcard_matches_oldest(void **state)
{
	assert_int_equal(fixture_run(2, 2, wildcard_body), 0);
}

static void contexts_body(int rank)
{
	int v = 0;
	if (rank == 0) {
		v = 1;
		match_send(&v, 1, INTS, 1, 3, &world, 0);
		v = 2;
		match_send(&v, 1, INTS, 1, 3, &world, MATCH_COLL);
		v = 3;
		match_send(&v, 1, INTS, 1, 3, &other, 0);
		return;
	}
	match_recv(&v, 1, INTS, MPI_ANY_SOURCE, MPI_ANY_TAG, &other, 0, MPI_STATUS_IGNORE);
	REQUIRE(v == 3);
	match_recv(&v, 1, INTS, MPI_ANY_SOURCE, MPI_ANY_TAG, &world, MATCH_COLL, MPI_STATUS_IGNORE);
	REQUIRE(v == 2);
	match_recv(&v, 1, INTS, MPI_ANY_SOURCE, MPI_ANY_TAG, &world, 0, MPI_STATUS_IGNORE);
	REQUIRE(v == 1);
}

static void contexts_do_not_mix(void **state)
{
	assert_int_equal(fixture_run(2, 2, contexts_body), 0);
}

static void truncate_body(int rank)
{
	buf = malloc(BIG);
	MPI_Status st;
	for (int k = 0; k < 3; k++) {
		size_t n = k == 0 ? 100 : k == 1 ? 10000 : BIG;
		if (rank == 0) {
			fixture_fill(buf, n, 0, k);
			REQUIRE(match_send(buf, n, BYTES, 1, 0, &world, 0) == MPI_SUCCESS);
			continue;
		}
		memset(buf, 0xee, n);
		REQUIRE(match_recv(buf, n / 2, BYTES, 0, 0, &world, 0, &st) == MPI_ERR_TRUNCATE);
		REQUIRE(st._ucount == n / 2 && fixture_holds(buf, n / 2, 0, k) &&
			buf[n / 2] == 0xee);
	}
	if (rank == 0)
		match_send(buf, BIG, BYTES, 1, 0, &world, 0);
	else
		REQUIRE(match_recv(NULL, 0, BYTES, 0, 0, &world, 0, &st) == MPI_ERR_TRUNCATE);
}

static void too_long_messages_are_cut_and_reported(void **state)
{
	assert_int_equal(fixture_run(2, 2, truncate_body), 0);
	setenv("HALE_SHM_CMA", "0", 1);
	assert_int_equal(fixture_run(2, 2, truncate_body), 0);
	unsetenv("HALE_SHM_CMA");
}

/* Far more than the ring holds while the receiver looks away. */
static void full_body(int rank)
{
	enum { N = 20000 };
	static struct request *r[N];
	static unsigned char p[N % 97 + 200];
	if (rank == 0) {
		for (int k = 0; k < N; k++) {
			unsigned char *q = malloc((size_t)k % 97 + 1);
			fixture_fill(q, (size_t)k % 97, 0, k);
			match_isend(q, (size_t)k % 97, BYTES, 1, 1, &world, 0, &r[k]);
		}
		fixture_meet();
		for (int k = 0; k < N; k++)
			wait_and_free(r[k]);
		return;
	}
	fixture_meet();
	for (int k = 0; k < N; k++) {
		match_recv(p, sizeof(p), BYTES, 0, 1, &world, 0, MPI_STATUS_IGNORE);
		REQUIRE(fixture_holds(p, (size_t)k % 97, 0, k));
	}
}

static void full_rings_hold_senders_back_and_lose_nothing(void **state)
{
	assert_int_equal(fixture_run(2, 2, full_body), 0);
}

/* The receiver looks at everything and receives nothing for a while. */
static void pressure_body(int rank)
{
	enum { N = 12000, SIZE = 4000 };
	static unsigned char p[SIZE];
	size_t before, kept, mapped;
	heap_stats(&before, &mapped);
	for (int k = 0; rank == 0 && k < N; k++) {
		fixture_fill(p, SIZE, 0, k);
		match_send(p, SIZE, BYTES, 1, 1, &world, 0);
	}
	if (rank == 0)
		return;
	while (!match.peer[0].pressed)
		match_progress();
	for (int k = 0; k < 10000; k++)
		match_progress();
	heap_stats(&kept, &mapped);
	REQUIRE(kept - before < 2 * PRESSURE_ON);
	for (int k = 0; k < N; k++) {
		match_recv(p, SIZE, BYTES, 0, 1, &world, 0, MPI_STATUS_IGNORE);
		REQUIRE(fixture_holds(p, SIZE, 0, k));
	}
	REQUIRE(!match.peer[0].pressed && match.peer[0].kept == 0);
}

static void what_must_be_kept_is_bounded(void **state)
{
	assert_int_equal(fixture_run(2, 2, pressure_body), 0);
}

/* Every second int, and long pieces with holes; to and from memory that is one run. */
static void pieces_body(int rank)
{
	for (int k = 0; k < 4; k++) {
		size_t blocks = k % 2 ? 200 : 50000, length = k % 2 ? 4096 : 1;
		bool strided = (k < 2) == (rank == 0);
		size_t n = blocks * length, span = 2 * n;
		struct datatype *t = datatype_make_vector(INTS, blocks, length,
							  (ptrdiff_t)(2 * length * sizeof(int)));
		int *v = calloc(span, sizeof(int));
		for (size_t i = 0; i < n; i++) {
			size_t at = strided ? i / length * 2 * length + i % length : i;
			v[at] = rank == 0 ? (int)i + k : -1;
		}
		if (rank == 0)
			match_send(v, strided ? 1 : n, strided ? t : INTS, 1, 9, &world, 0);
		else
			match_recv(v, strided ? 1 : n, strided ? t : INTS, 0, 9, &world, 0,
				   MPI_STATUS_IGNORE);
		for (size_t i = 0; i < n; i++) {
			size_t at = strided ? i / length * 2 * length + i % length : i;
			REQUIRE(v[at] == (int)i + k);
			REQUIRE(!strided || v[at + length] == 0);
		}
		free(v);
		datatype_release(t);
	}
}

static void memory_in_pieces_is_sent_and_received(void **state)
{
	assert_int_equal(fixture_run(2, 2, pieces_body), 0);
	setenv("HALE_SHM_CMA", "0", 1);
	assert_int_equal(fixture_run(2, 2, pieces_body), 0);
	unsetenv("HALE_SHM_CMA");
}

static void self_body(int rank)
{
	unsigned char *from = malloc(BIG), *to = malloc(BIG);
	for (int k = 0; k < (int)ARRAY_LEN(sizes) * 2; k++) {
		size_t n = sizes[k / 2];
		struct request *s, *r;
		MPI_Status st;
		fixture_fill(from, n, rank, k);
		if (k % 2)
			match_irecv(to, BIG, BYTES, rank, 1, &world, 0, &r);
		match_isend(from, n, BYTES, rank, 1, &world, k % 4 ? 0 : MATCH_SYNCHRONOUS, &s);
		if (k % 2 == 0) {
			match_recv(to, BIG, BYTES, MPI_ANY_SOURCE, 1, &world, 0, &st);
			REQUIRE(st._ucount == n && st.MPI_SOURCE == rank);
		} else {
			wait_and_free(r);
		}
		wait_and_free(s);
		REQUIRE(fixture_holds(to, n, rank, k));
	}
}

static void a_rank_sends_to_itself(void **state)
{
	assert_int_equal(fixture_run(1, 1, self_body), 0);
	assert_int_equal(fixture_run(2, 2, self_body), 0);
}

static void sync_body(int rank)
{
	for (int k = 0; k < 2; k++) {
		size_t n = k ? BIG : 4;
		struct request *r;
		buf = calloc(BIG, 1);
		if (rank == 0) {
			match_isend(buf, n, BYTES, 1, 1, &world, MATCH_SYNCHRONOUS, &r);
			fixture_meet();
			for (int i = 0; i < 100; i++)
				match_progress();
			REQUIRE(!r->complete);
			fixture_meet();
			wait_and_free(r);
		} else {
			fixture_meet();
			for (int i = 0; i < 100; i++)
				match_progress();
			fixture_meet();
			match_recv(buf, n, BYTES, 0, 1, &world, 0, MPI_STATUS_IGNORE);
			fixture_settle(); /* nobody sends the acknowledgement on in fixture_meet */
		}
		free(buf);
	}
}

static void synchronous_sends_wait_for_the_match(void **state)
{
	assert_int_equal(fixture_run(2, 2, sync_body), 0);
}

static void probe_body(int rank)
{
	MPI_Status st;
	struct match_message *m;
	int flag, v = 0, w = 0;
	buf = malloc(BIG);
	if (rank == 0) {
		for (v = 1; v <= 3; v++)
			match_send(&v, 1, INTS, 1, v, &world, 0);
		fixture_fill(buf, BIG, 0, 1);
		match_send(buf, BIG, BYTES, 1, 4, &world, 0);
		return;
	}
	match_probe(0, 2, &world, &st);
	REQUIRE(st.MPI_TAG == 2 && st._ucount == 4 && st.MPI_SOURCE == 0);
	match_iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, &world, &flag, &st);
	REQUIRE(flag && st.MPI_TAG == 1);
	match_iprobe(0, 77, &world, &flag, &st);
	REQUIRE(!flag);
	match_mprobe(MPI_ANY_SOURCE, 2, &world, &m, &st);
	struct match_message *none;
	match_improbe(0, 2, &world, &flag, &none, &st);
	REQUIRE(!flag);
	match_mrecv(&w, 1, INTS, m, &st);
	REQUIRE(w == 2 && st.MPI_TAG == 2);
	match_mprobe(0, 4, &world, &m, &st);
	REQUIRE(st._ucount == BIG);
	struct request *r;
	match_imrecv(buf, BIG, BYTES, m, &r);
	match_recv(&w, 1, INTS, 0, MPI_ANY_TAG, &world, 0, MPI_STATUS_IGNORE);
	REQUIRE(w == 1);
	match_recv(&w, 1, INTS, 0, MPI_ANY_TAG, &world, 0, MPI_STATUS_IGNORE);
	REQUIRE(w == 3);
	wait_and_free(r);
	REQUIRE(fixture_holds(buf, BIG, 0, 1));
	match_mprobe(MPI_PROC_NULL, 0, &world, &m, &st);
	REQUIRE(m == (struct match_message *)MPI_MESSAGE_NO_PROC && st.MPI_SOURCE == MPI_PROC_NULL);
	match_mrecv(&w, 1, INTS, m, &st);
	REQUIRE(st.MPI_SOURCE == MPI_PROC_NULL && st._ucount == 0);
}

static void probes_find_and_take_messages(void **state)
{
	assert_int_equal(fixture_run(2, 2, probe_body), 0);
}

static void cancel_body(int rank)
{
	struct request *r;
	int v = 0;
	buf = calloc(BIG, 1);
	if (rank == 0) {
		match_irecv(&v, 1, INTS, 1, 1, &world, 0, &r);
		match_cancel(r);
		match_wait(r);
		REQUIRE(r->status._cancelled && r->cancelled);
		match_request_free(r);
		match_isend(buf, BIG, BYTES, 1, 5, &world, 0, &r); /* nobody receives it */
		match_cancel(r);
		match_wait(r);
		REQUIRE(r->status._cancelled);
		match_request_free(r);
		match_isend(buf, BIG, BYTES, 1, 6, &world, 0, &r); /* matched before */
		match_recv(&v, 1, INTS, 1, 2, &world, 0, MPI_STATUS_IGNORE);
		match_cancel(r);
		match_wait(r);
		REQUIRE(!r->status._cancelled);
		match_request_free(r);
		return;
	}
	struct request *big;
	match_irecv(buf, BIG, BYTES, 0, 6, &world, 0, &big);
	match_wait(big);
	match_request_free(big);
	match_send(&v, 1, INTS, 0, 2, &world, 0);
}

static void cancelling_takes_back_what_is_not_matched(void **state)
{
	assert_int_equal(fixture_run(2, 2, cancel_body), 0);
}

static void buffered_body(int rank)
{
	enum { N = 300, SIZE = 20000 };
	unsigned char *p = calloc(SIZE, 1);
	if (rank == 0) {
		void *at;
		size_t size;
		REQUIRE(match_send(p, 4, BYTES, 1, 1, &world, MATCH_BUFFERED) == MPI_ERR_BUFFER);
		buf = malloc(3 * (SIZE + MPI_BSEND_OVERHEAD));
		match_buffer_attach(&match_process_buffer, buf, 3 * (SIZE + MPI_BSEND_OVERHEAD),
				    false);
		for (int k = 0; k < 3; k++) {
			fixture_fill(p, SIZE, 0, k);
			REQUIRE(match_send(p, SIZE, BYTES, 1, 1, &world, MATCH_BUFFERED) ==
				MPI_SUCCESS);
		}
		REQUIRE(match_send(p, SIZE, BYTES, 1, 1, &world, MATCH_BUFFERED) == MPI_ERR_BUFFER);
		fixture_meet();
		match_buffer_detach(&match_process_buffer, &at, &size);
		REQUIRE(at == buf && size == 3 * (SIZE + MPI_BSEND_OVERHEAD));
		match_buffer_attach(&match_process_buffer, buf, size, false);
		for (int k = 0; k < N; k++) {
			fixture_fill(p, 10, 0, k);
			REQUIRE(match_send(p, 10, BYTES, 1, 2, &world, MATCH_BUFFERED) ==
				MPI_SUCCESS);
		}
		match_buffer_detach(&match_process_buffer, &at, &size);
		return;
	}
	fixture_meet();
	for (int k = 0; k < 3; k++) {
		match_recv(p, SIZE, BYTES, 0, 1, &world, 0, MPI_STATUS_IGNORE);
		REQUIRE(fixture_holds(p, SIZE, 0, k));
	}
	for (int k = 0; k < N; k++) {
		match_recv(p, SIZE, BYTES, 0, 2, &world, 0, MPI_STATUS_IGNORE);
		REQUIRE(fixture_holds(p, 10, 0, k));
	}
}

static void buffered_sends_use_the_buffer(void **state)
{
	assert_int_equal(fixture_run(2, 2, buffered_body), 0);
}

static void persistent_body(int rank)
{
	static unsigned char p[2][50000];
	struct request *r[2];
	for (int k = 0; k < 2; k++) {
		size_t n = k ? 50000 : 12;
		if (rank == 0)
			match_send_init(p[k], n, BYTES, 1, k, &world, 0, &r[k]);
		else
			match_recv_init(p[k], n, BYTES, k ? 0 : MPI_ANY_SOURCE, k, &world, 0,
					&r[k]);
	}
	for (int i = 0; i < 50; i++) {
		for (int k = 0; k < 2; k++) {
			if (rank == 0)
				fixture_fill(p[k], k ? 50000 : 12, 0, i);
			match_start(r[k]);
		}
		for (int k = 0; k < 2; k++) {
			match_wait(r[k]);
			REQUIRE(fixture_holds(p[k], k ? 50000 : 12, 0, i));
			r[k]->active = false;
		}
	}
	match_request_free(r[0]);
	match_request_free(r[1]);
}

static void persistent_requests_start_again(void **state)
{
	assert_int_equal(fixture_run(2, 2, persistent_body), 0);
}

/* Requests that nobody waits for free themselves; then the heap is as before. */
static void leak_body(int rank)
{
	size_t before, after, mapped;
	static unsigned char big[100000];
	for (int i = 0; i < 200; i++) {
		struct request *r;
		if (i == 100)
			heap_stats(&before, &mapped);
		if (rank == 0) {
			match_isend(big, sizeof(big), BYTES, 1, 0, &world, 0, &r);
			match_request_free(r);
			match_recv(big, 1, BYTES, 1, 0, &world, 0, MPI_STATUS_IGNORE);
		} else {
			match_recv(big, sizeof(big), BYTES, 0, 0, &world, 0, MPI_STATUS_IGNORE);
			match_send(big, 1, BYTES, 0, 0, &world, 0);
		}
	}
	heap_stats(&after, &mapped);
	REQUIRE(after == before);
}

static void nothing_leaks(void **state)
{
	assert_int_equal(fixture_run(2, 2, leak_body), 0);
}

/* The receiver's channel waits with its own copies until the sender, who helps, has failed in the
 * middle of one; every copy of the sender's fails there. */
static const struct channel_ops *real;
static uint32_t failed_copies;

static ssize_t get_after_a_failure(uint32_t rank, const struct iovec *local, size_t nlocal,
				   const struct iovec *remote, size_t nremote, bool stable)
{
	while (fixture_said(0) == 0)
		sched_yield();
	return real->get(rank, local, nlocal, remote, nremote, stable);
}

static ssize_t put_half(uint32_t rank, const struct iovec *local, size_t nlocal,
			const struct iovec *remote, size_t nremote)
{
	struct iovec from = *local, to = *remote;
	REQUIRE(nlocal == 1 && nremote == 1 && from.iov_len == to.iov_len);
	if (from.iov_len < 100000) { /* the other half */
		fixture_say(0, ++failed_copies);
		return -1;
	}
	from.iov_len = to.iov_len = from.iov_len / 2;
	return real->put(rank, &from, 1, &to, 1);
}

static void helper_fails_body(int rank)
{
	alarm(30); /* a chunk that nobody copies is waited for for ever */
	real = match.peer[1 - rank].channel;
	struct channel_ops changed = *real;
	if (rank == 0)
		changed.put = put_half;
	else
		changed.get = get_after_a_failure;
	match.peer[1 - rank].channel = &changed;
	buf = malloc(BIG);
	memset(buf, 0xee, BIG);
	if (rank == 0) {
		fixture_fill(buf, BIG, 0, 1);
		REQUIRE(match_send(buf, BIG, BYTES, 1, 0, &world, 0) == MPI_SUCCESS);
		REQUIRE(failed_copies == 1); /* after one it helps no more */
	} else {
		match_recv(buf, BIG, BYTES, 0, 0, &world, 0, MPI_STATUS_IGNORE);
		REQUIRE(fixture_holds(buf, BIG, 0, 1));
	}
	match.peer[1 - rank].channel = real;
}

static void a_chunk_that_the_helper_cannot_copy_is_copied_by_the_receiver(void **state)
{
	if (fixture_is_faulty())
		skip();
	assert_int_equal(fixture_run(2, 2, helper_fails_body), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(messages_of_all_sizes_arrive),
	    cmocka_unit_test(messages_arrive_where_processes_may_not_copy),
	    cmocka_unit_test(messages_nobody_waits_for_are_kept),
	    cmocka_unit_test(messages_do_not_overtake),
	    cmocka_unit_test(posted_wildcard_matches_oldest),
	    cmocka_unit_test(contexts_do_not_mix),
	    cmocka_unit_test(too_long_messages_are_cut_and_reported),
	    cmocka_unit_test(full_rings_hold_senders_back_and_lose_nothing),
	    cmocka_unit_test(what_must_be_kept_is_bounded),
	    cmocka_unit_test(memory_in_pieces_is_sent_and_received),
	    cmocka_unit_test(a_chunk_that_the_helper_cannot_copy_is_copied_by_the_receiver),
	    cmocka_unit_test(a_rank_sends_to_itself),
	    cmocka_unit_test(synchronous_sends_wait_for_the_match),
	    cmocka_unit_test(probes_find_and_take_messages),
	    cmocka_unit_test(cancelling_takes_back_what_is_not_matched),
	    cmocka_unit_test(buffered_sends_use_the_buffer),
	    cmocka_unit_test(persistent_requests_start_again),
	    cmocka_unit_test(nothing_leaks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
