/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <math.h>
#include <cmocka.h>
#include "base/base.h"
#include "protect/fetch.h"
#include "protect/sums.h"
#include "protect/team.h"

static uint64_t state = 7;

static uint64_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 11;
}

static double *numbers(size_t count)
{
	double *x = malloc(count * sizeof *x);

	for (size_t i = 0; i < count; i++)
		x[i] = (double)draw() * 0x1p-53 - 0.5;
	return x;
}

static void one_flipped_bit_anywhere_comes_back(void **unused)
{
	static const size_t lengths[] = {1, 7, 8, 9, 63, 64, 65, 4096, 8 * 512 * 512 + 3};

	for (size_t l = 0; l < ARRAY_LEN(lengths); l++) {
		size_t n = lengths[l];
		unsigned char *x = malloc(n), *was = malloc(n);
		struct sums s = {0};

		for (size_t i = 0; i < n; i++)
			was[i] = x[i] = (unsigned char)draw();
		assert_true(sums_take(&s, x, n, true));
		for (int k = 0; k < 40; k++) {
			size_t at = draw() % n;
			x[at] ^= (unsigned char)(1u << draw() % 8);
			assert_int_equal(sums_verify(&s, x), SUMS_WRONG);
			assert_int_equal(sums_correct(&s, x), 1);
			assert_memory_equal(x, was, n);
			assert_int_equal(sums_verify(&s, x), SUMS_RIGHT);
		}
		sums_fini(&s);
		free(x);
		free(was);
	}
}

static void nan_and_infinity_are_bits_as_others(void **unused)
{
	double *x = numbers(100);
	struct sums s = {0};

	x[3] = NAN;
	x[4] = INFINITY;
	assert_true(sums_take(&s, x, 100 * sizeof *x, true));
	assert_int_equal(sums_verify(&s, x), SUMS_RIGHT);
	x[3] = 0;
	x[50] = NAN;
	assert_int_equal(sums_correct(&s, x), 2);
	assert_true(isnan(x[3]) && isfinite(x[50]));
	sums_fini(&s);
	free(x);
}

/* Two errors in a row, in a column, in different ones; three in a row. */
static void several_errors_are_mended_or_left_alone(void **unused)
{
	double *x = numbers(1024), *was = malloc(1024 * sizeof *x); /* 32 x 32 */
	struct sums s = {0};

	memcpy(was, x, 1024 * sizeof *x);
	assert_true(sums_take(&s, x, 1024 * sizeof *x, true));
	assert_int_equal(s.width, 32);
	x[32 + 1] += 1;
	x[32 + 9] += 2;
	x[32 + 17] = -x[32 + 17];
	assert_int_equal(sums_correct(&s, x), 3);
	x[5] += 1;
	x[32 * 9 + 5] *= 2;
	assert_int_equal(sums_correct(&s, x), 2);
	x[1] += 1;
	x[32 * 3 + 7] += 4;
	assert_int_equal(sums_correct(&s, x), 2);
	assert_memory_equal(x, was, 1024 * sizeof *x);
	/* two rows and two columns, all four corners: the sums can't tell */
	x[0] += 1;
	x[1] += 3;
	x[32] += 5;
	x[33] += 9;
	memcpy(was, x, 1024 * sizeof *x);
	assert_int_equal(sums_correct(&s, x), -1);
	assert_memory_equal(x, was, 1024 * sizeof *x); /* as they were */
	sums_fini(&s);
	free(x);
	free(was);
}

/* Opposite flips cancel in the row's sum and are seen all the same. */
static void errors_that_cancel_in_a_row_are_mended(void **unused)
{
	uint64_t x[64] = {0};
	struct sums s = {0};

	x[8] = 16;
	assert_true(sums_take(&s, x, sizeof x, true));
	x[8] = 0;
	x[9] = 16;
	assert_int_equal(sums_verify(&s, x), SUMS_WRONG);
	assert_int_equal(sums_correct(&s, x), -1); /* no row differs: nothing is made worse */
	assert_int_equal(x[9], 16);
	sums_fini(&s);
}

static void errors_in_the_checksums_harm_no_data(void **unused)
{
	double *x = numbers(1024), *was = malloc(1024 * sizeof *x);
	struct sums s = {0};

	memcpy(was, x, 1024 * sizeof *x);
	assert_true(sums_take(&s, x, 1024 * sizeof *x, true));
	s.words[3] ^= 4;
	assert_int_equal(sums_verify(&s, x), SUMS_RIGHT);
	assert_int_equal(sums_correct(&s, x), 0); /* they are taken anew */
	s.of_bytes[1].low ^= 1;
	assert_int_equal(sums_verify(&s, x), SUMS_RIGHT);
	s.words[3] ^= 4;
	x[7] += 1;
	memcpy(was, x, 1024 * sizeof *x);
	assert_int_equal(sums_correct(&s, x), -1); /* both damaged: left alone */
	assert_memory_equal(x, was, 1024 * sizeof *x);
	s.of_bytes[2].low ^= 2;
	s.of_bytes[1].low ^= 4;
	assert_int_equal(sums_verify(&s, x), SUMS_UNKNOWN);
	sums_fini(&s);
	free(x);
	free(was);
}

static void space_is_that_of_figure_4_14(void **unused)
{
	assert_true((double)sums_space(8 * 512 * 512) < 0.005 * 8 * 512 * 512);
	assert_true((double)sums_space(8ul * 2560 * 2560) < 0.001 * 8 * 2560 * 2560);
}

static void every_processors_hash_is_the_same(void **unused)
{
	unsigned char x[5000];

	for (size_t i = 0; i < sizeof x; i++)
		x[i] = (unsigned char)draw();
	for (size_t n = 0; n < 4900; n += n < 600 ? 1 : 97)
		for (size_t at = 0; at < 3; at++)
			assert_true(hash_same(hash_bytes(x + at, n), hash_bytes_plain(x + at, n)));
}

/* More parts than are folded at once, and a last row that is short. */
#define LARGE ((size_t)75 << 20 | 5)

/* Pages that are touched for the first time cost long on some machines; here slow_page does. */
static char *slow_page;
static int touched;

static void slow_touch(int signal, siginfo_t *info, void *unused)
{
	struct timespec long_time = {0, 5000000};

	(void)signal, (void)info, (void)unused;
	nanosleep(&long_time, NULL);
	touched++;
	mprotect(slow_page, 4096, PROT_READ | PROT_WRITE);
}

static void slow_again(char *page)
{
	slow_page = page;
	mprotect(page, 4096, PROT_NONE);
}

static void what_is_slow_to_touch_is_read_by_the_kernel(void **unused)
{
	struct sigaction slow = {.sa_sigaction = slow_touch, .sa_flags = SA_SIGINFO}, was;
	struct fetch_window w;
	int tries = 0;
	char *x = aligned_alloc(4096, FETCH_BYTES_MAX);

	(void)unused;
	for (size_t i = 0; i < FETCH_BYTES_MAX; i++)
		x[i] = (char)(i * 7 + i / 4099);
	while (fetch_pays(x, FETCH_BYTES_MAX) && tries < 1000)
		tries++;
	assert_in_range(tries, 0, 999);
	sigaction(SIGSEGV, &slow, &was);
	slow_again(x);
	assert_true(fetch_pays(x, FETCH_BYTES_MAX));
	w = fetch_open(x + 1, FETCH_BYTES_MAX - 1);
	assert_ptr_not_equal(w.at, x + 1);
	assert_memory_equal(w.at, x + 1, FETCH_BYTES_MAX - 1);
	fetch_close(w);
	/* the kernel can't read the page: whoever reads it where it is gets the program's signal */
	slow_again(x + 8192);
	w = fetch_open(x, FETCH_BYTES_MAX);
	assert_ptr_equal(w.at, x);
	fetch_close(w);
	w = fetch_open(x, FETCH_BYTES_MAX + 1);
	assert_ptr_equal(w.at, x);
	sigaction(SIGSEGV, &was, NULL);
	mprotect(x, FETCH_BYTES_MAX, PROT_READ | PROT_WRITE);
	free(x);
}

/* Sums and hashes are the same, whoever reads, and whatever is left over at the end. */
static void slow_pages_change_no_sum_and_no_hash(void **unused)
{
	struct sigaction slow = {.sa_sigaction = slow_touch, .sa_flags = SA_SIGINFO}, was;
	size_t sizes[] = {2 << 20, (2 << 20) - 3, 300001, 70000, 9000};
	char *x = aligned_alloc(4096, 2 << 20);
	struct sums plain = {0}, fetched = {0};

	(void)unused;
	sigaction(SIGSEGV, &slow, &was);
	for (size_t i = 0; i < 2 << 20; i++)
		x[i] = (char)(i * 7 + i / 4099);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t bytes = sizes[i];

		assert_true(sums_take(&plain, x, bytes, true));
		touched = 0;
		slow_again(x);
		assert_true(sums_take(&fetched, x, bytes, true));
		assert_true(hash_same(plain.of_bytes[0], fetched.of_bytes[0]));
		assert_memory_equal(plain.words, fetched.words,
				    (plain.rows + plain.width) * sizeof *plain.words);
		x[bytes / 2] ^= 16;
		slow_again(x);
		assert_int_equal(sums_verify(&plain, x), SUMS_WRONG);
		slow_again(x);
		assert_int_equal(sums_correct(&fetched, x), 1);
		slow_again(x + 8192); /* the kernel is refused there, and the program is not */
		assert_int_equal(sums_verify(&plain, x), SUMS_RIGHT);
		assert_int_equal(touched, 4);
	}
	sigaction(SIGSEGV, &was, NULL);
	sums_fini(&plain);
	sums_fini(&fetched);
	free(x);
}

static void helpers_change_no_sum_and_no_hash(void **unused)
{
	unsigned char *x = calloc(1, LARGE);
	struct sums alone = {0}, helped = {0};

	assert_non_null(x);
	for (size_t i = 0; i < LARGE; i += 64)
		x[i] = (unsigned char)draw();
	for (int workers = 1; workers <= 4; workers += 3) {
		team_limit(workers);
		assert_true(sums_take(workers == 1 ? &alone : &helped, x, LARGE, true));
	}
	assert_true(hash_same(alone.of_bytes[0], helped.of_bytes[0]));
	assert_memory_equal(alone.words, helped.words,
			    (alone.rows + alone.width) * sizeof *alone.words);
	for (size_t at = 3; at < LARGE; at += LARGE / 5) {
		x[at] ^= 4;
		assert_int_equal(sums_verify(&alone, x), SUMS_WRONG);
		assert_int_equal(sums_correct(&helped, x), 1);
		assert_int_equal(sums_verify(&alone, x), SUMS_RIGHT);
	}
	sums_fini(&alone);
	sums_fini(&helped);
	free(x);
}

static void the_child_of_a_fork_starts_its_own_helpers(void **unused)
{
	size_t n = 5 << 20;
	char *x = calloc(1, n);
	struct sums s = {0};
	struct stat tasks;
	int status;
	pid_t child;

	team_limit(3);
	assert_true(sums_take(&s, x, n, true));
	child = fork();
	if (child == 0) {
		alarm(60);
		_exit(sums_verify(&s, x) != SUMS_RIGHT || stat("/proc/self/task", &tasks) != 0 ||
		      tasks.st_nlink != 2 + 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(sums_verify(&s, x), SUMS_RIGHT);
	team_limit(0);
	sums_fini(&s);
	free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_flipped_bit_anywhere_comes_back),
	    cmocka_unit_test(nan_and_infinity_are_bits_as_others),
	    cmocka_unit_test(several_errors_are_mended_or_left_alone),
	    cmocka_unit_test(errors_that_cancel_in_a_row_are_mended),
	    cmocka_unit_test(errors_in_the_checksums_harm_no_data),
	    cmocka_unit_test(space_is_that_of_figure_4_14),
	    cmocka_unit_test(every_processors_hash_is_the_same),
	    cmocka_unit_test(what_is_slow_to_touch_is_read_by_the_kernel),
	    cmocka_unit_test(slow_pages_change_no_sum_and_no_hash),
	    cmocka_unit_test(helpers_change_no_sum_and_no_hash),
	    cmocka_unit_test(the_child_of_a_fork_starts_its_own_helpers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
