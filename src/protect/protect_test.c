/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/base.h"
#include "protect/flip.h"
#include "protect/protect.h"

#define N 64

static double *numbers(size_t count, double scale)
{
	static uint64_t state = 11;
	double *x = malloc(count * sizeof *x);

	for (size_t i = 0; i < count; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		x[i] = ((double)(state >> 11) * 0x1p-53 - 0.5) * scale;
	}
	return x;
}

/* A campaign's thread strikes memory that the program may just have freed. */
static void a_bit_of_memory_that_is_gone_is_not_flipped(void **unused)
{
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(two, MAP_FAILED);
	for (int byte = 0; byte < 8; byte++)
		for (int bit = 0; bit < 8; bit++) {
			memset(two, 0x5a, 16);
			assert_true(flip_can(two + byte) && flip_bit(two + byte, bit));
			for (int i = 0; i < 16; i++)
				assert_int_equal((unsigned char)two[i],
						 i == byte ? 0x5a ^ 1 << bit : 0x5a);
		}
	munmap(two + 4096, 4096);
	assert_false(flip_can(two + 4096) || flip_bit(two + 4096, 3));
	mprotect(two, 4096, PROT_READ);
	assert_false(flip_bit(two, 3));
	munmap(two, 4096);
}

static void a_variable_is_noted_checked_and_corrected(void **unused)
{
	struct hale_region r = HALE_REGION("r", "x.c", 3);
	hale_auto struct hale_var v = HALE_VAR("x");
	double *x = numbers(1000, 1), was = x[400];

	assert_true(hale_check(&r, &v)); /* never noted */
	hale_note(&v, HALE_SUM, x, 1000 * sizeof *x);
	hale_enter(&r, &v, NULL);
	assert_true(hale_check(&r, &v));
	x[400] = -x[400];
	assert_false(hale_check(&r, &v));
	assert_true(hale_correct(&r, &v));
	assert_true(x[400] == was);
	assert_true(hale_check(&r, &v));
	assert_int_equal(r.runs, 1);
	assert_int_equal(r.checks, 4);
	assert_int_equal(r.detected, 1);
	assert_int_equal(r.corrected, 1);
	assert_true(r.lvf > 0);
	protect_regions = NULL;
	free(x);
}

static void hashes_detect_and_do_not_correct(void **unused)
{
	static const hale_check_kind_t kinds[] = {HALE_HASH, HALE_SHA256};
	struct hale_region r = HALE_REGION("r", "x.c", 3);
	char text[] = "one of many";

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		hale_auto struct hale_var v = HALE_VAR("text");
		hale_note(&v, kinds[k], text, sizeof text);
		text[4] ^= 1;
		assert_false(hale_check(&r, &v));
		assert_false(hale_correct(&r, &v));
		text[4] ^= 1;
		assert_true(hale_check(&r, &v));
	}
}

static int status_of(void (*f)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		close(STDERR_FILENO);
		f();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void ends_without_recovery(void)
{
	struct hale_region r = HALE_REGION("r", "x.c", 3);
	struct hale_var v = HALE_VAR("x");

	hale_unrecoverable(&r, &v, "");
}

static void ends_when_always_wrong(void)
{
	struct hale_region r = HALE_REGION("r", "x.c", 3);
	struct hale_var v = HALE_VAR("x");

	for (;;)
		hale_recompute(&r, &v, "region 0");
}

static void ends_on_null(void)
{
	struct hale_var v = HALE_VAR("x");

	hale_note(&v, HALE_SUM, NULL, 8);
}

static void what_cannot_be_recovered_ends_with_72(void **unused)
{
	assert_int_equal(status_of(ends_without_recovery), HALE_EXIT_UNRECOVERABLE);
	assert_int_equal(status_of(ends_when_always_wrong), HALE_EXIT_UNRECOVERABLE);
	assert_int_equal(status_of(ends_on_null), HALE_EXIT_UNRECOVERABLE);
}

static void copies_are_restored(void **unused)
{
	hale_auto_copy struct hale_copy c = {0};
	double *x = numbers(100, 1), was = x[7];

	assert_false(hale_restore(&c));
	hale_create_ckpt(&c, x, 100 * sizeof *x);
	x[7] = 3;
	assert_true(hale_restore(&c));
	assert_true(x[7] == was);
	free(x);
}

static void judges_of_values(void **unused)
{
	double up[] = {1, 2, 2, 5}, down[] = {1, 3, 2}, odd[] = {1, NAN};
	float f[] = {1, 2};

	assert_true(hale_range(up, 4, 1, 5) && !hale_range(up, 4, 1, 4));
	assert_true(hale_rangef(f, 2, 1, 2) && !hale_rangef(f, 2, 0, 1.5));
	assert_true(hale_finite(up, 4) && !hale_finite(odd, 2) && hale_finitef(f, 2));
	assert_true(hale_monotone(up, 4) && !hale_monotone(down, 3) && !hale_monotone(odd, 2));
	assert_true(hale_conserved(up, 4, 10, 1e-12) && !hale_conserved(up, 4, 10.1, 1e-12));
	assert_true(!hale_conserved(odd, 2, 1, 1));
	assert_true(hale_range(NULL, 0, 0, 0));
}

static void multiply(double *C, const double *A, const double *B)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			double sum = 0;
			for (int k = 0; k < N; k++)
				sum += A[i * N + k] * B[k * N + j];
			C[i * N + j] = sum;
		}
}

/* Rows that grow from 1 to 10^12: condition numbers of that size. */
static void products_are_judged_within_their_rounding(void **unused)
{
	double C[N * N];

	for (int scale = 0; scale <= 12; scale += 4) {
		double *A = numbers(N * N, 1), *B = numbers(N * N, 1);
		for (int i = 0; i < N * N; i++) {
			A[i] *= pow(10, scale * (double)(i / N) / (N - 1));
			B[i] *= pow(10, scale * (double)(i % N) / (N - 1));
		}
		multiply(C, A, B);
		assert_true(hale_product(C, A, B, N, N, N));
		C[N * N / 2 + 3] *= 1.0001;
		assert_false(hale_product(C, A, B, N, N, N));
		C[N * N / 2 + 3] = NAN;
		assert_false(hale_product(C, A, B, N, N, N));
		A[0] = INFINITY;
		multiply(C, A, B);
		assert_true(hale_product(C, A, B, N, N, N)); /* nothing can be said */
		free(A);
		free(B);
	}
}

/* The region adds 1 to each element; a fault strikes one process. degree 3 outvotes it. */
static void what_strikes_between_judge_and_note_is_found(void **unused)
{
	struct hale_region r = HALE_REGION("r", "x.c", 3);
	double *x = numbers(1000, 1), was = x[400];

	for (int kind = 0; kind < 2; kind++) {
		hale_auto struct hale_var v = HALE_VAR("x");

		hale_seal(&v, x, 1000 * sizeof *x);
		assert_true(hale_range(x, 1000, -1, 1)); /* a judge looks at it */
		x[400] += 1e-9;
		hale_note(&v, kind ? HALE_HASH : HALE_SUM, x, 1000 * sizeof *x);
		assert_false(hale_check(&r, &v));
		/* nobody can say what it was: the region that wrote it has to run again */
		assert_false(hale_correct(&r, &v));
		x[400] = was;
		hale_seal(&v, x, 1000 * sizeof *x);
		hale_note(&v, HALE_SUM, x, 1000 * sizeof *x);
		assert_true(hale_check(&r, &v));
		x[400] = 3;
		assert_true(hale_correct(&r, &v) && x[400] == was);
		/* a seal is for one note */
		x[401] += 1;
		hale_note(&v, HALE_SUM, x, 1000 * sizeof *x);
		assert_true(hale_check(&r, &v));
	}
	protect_regions = NULL;
	free(x);
}

static void never_the_same(void)
{
	struct hale_var v = HALE_VAR("x");
	double x = 1;

	hale_note(&v, HALE_SUM, &x, sizeof x);
	while (!hale_confirmed(&v))
		x++;
}

static void what_is_loaded_is_confirmed_by_loading_it_again(void **unused)
{
	static const double loaded[4] = {1, 2, 3, 4};
	hale_auto struct hale_var v = HALE_VAR("x");
	struct hale_region r = HALE_REGION("r", "x.c", 3);
	double x[4];
	int times = 0;

	for (int flip = 0; flip < 2; flip++) {
		memcpy(x, loaded, sizeof x);
		x[2] += flip; /* before the note has read it */
		hale_note(&v, HALE_SUM, x, sizeof x);
		for (times = 1; !hale_confirmed(&v); times++)
			memcpy(x, loaded, sizeof x);
		assert_int_equal(times, 2 + flip);
		assert_true(hale_check(&r, &v) && memcmp(x, loaded, sizeof x) == 0);
	}
	assert_int_equal(status_of(never_the_same), HALE_EXIT_UNRECOVERABLE);
	protect_regions = NULL;
}

static void shadows_tell_who_is_wrong(void **unused)
{
	for (int degree = 2; degree <= 3; degree++)
		for (int fault = 0; fault < 2; fault++) {
			struct hale_region r = HALE_REGION("r", "x.c", 3);
			double x[32], in[32] = {0};
			void *const bases[] = {x};
			const size_t bytes[] = {sizeof x};
			pid_t primary = getpid();
			int runs = 0;

			hale_wake_up_shadow(&r, degree);
			do {
				for (int i = 0; i < 32; i++)
					x[i] = in[i] + 1;
				if (fault && runs++ == 0 && getpid() == primary)
					x[5] = 7;
			} while (!hale_agree(&r, 1, bases, bytes));
			hale_sleep_shadow(&r);
			assert_true(x[5] == 1);
			assert_int_equal(r.detected, fault);
			assert_int_equal(r.corrected, fault && degree == 3);
		}
}

static atomic_bool noting_ends;

static void *note_on(void *unused)
{
	struct hale_region r = HALE_REGION("thread", "here", 1);
	struct hale_var v = HALE_VAR("of_thread");
	double x = 1;

	(void)unused;
	while (!noting_ends) {
		hale_note(&v, HALE_HASH, &x, sizeof x);
		hale_check(&r, &v);
	}
	hale_forget(&v);
	return NULL;
}

static void the_child_of_a_fork_notes_whatever_other_threads_were_doing(void **unused)
{
	pthread_t t;

	(void)unused;
	assert_int_equal(pthread_create(&t, NULL, note_on, NULL), 0);
	for (int i = 0; i < 100; i++) {
		struct hale_var v = HALE_VAR("of_child");
		double x = 1;
		int status;
		pid_t child = fork();
		if (child == 0) {
			alarm(60);
			hale_note(&v, HALE_HASH, &x, sizeof x);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	noting_ends = true;
	pthread_join(t, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_variable_is_noted_checked_and_corrected),
	    cmocka_unit_test(hashes_detect_and_do_not_correct),
	    cmocka_unit_test(what_cannot_be_recovered_ends_with_72),
	    cmocka_unit_test(copies_are_restored),
	    cmocka_unit_test(judges_of_values),
	    cmocka_unit_test(products_are_judged_within_their_rounding),
	    cmocka_unit_test(a_bit_of_memory_that_is_gone_is_not_flipped),
	    cmocka_unit_test(what_strikes_between_judge_and_note_is_found),
	    cmocka_unit_test(what_is_loaded_is_confirmed_by_loading_it_again),
	    cmocka_unit_test(the_child_of_a_fork_notes_whatever_other_threads_were_doing),
	    cmocka_unit_test(shadows_tell_who_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
