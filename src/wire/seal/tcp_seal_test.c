// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/seal/tcp_seal.h"

static struct seal *one, *other;

static void pair_make(uint32_t cipher)
{
	struct seal_keys keys = {.cipher = cipher};
	for (int i = 0; i < SEAL_KEY; i++) {
		keys.out[i] = (unsigned char)(3 * i);
		keys.in[i] = (unsigned char)(5 * i + 1);
	}
	one = seal_create(&keys);
	struct seal_keys turned = {.cipher = cipher};
	memcpy(turned.out, keys.in, SEAL_KEY);
	memcpy(turned.in, keys.out, SEAL_KEY);
	other = seal_create(&turned);
	assert_non_null(one);
	assert_non_null(other);
}

static void pair_destroy(void)
{
	seal_destroy(one);
	seal_destroy(other);
}

/* The next record of one's, as it goes over the wire. */
static size_t record(const void *bytes, size_t n, unsigned char *wire)
{
	struct iovec iov[2] = {{(void *)(uintptr_t)bytes, n / 3},
			       {(char *)(uintptr_t)bytes + n / 3, n - n / 3}};
	const unsigned char *at;
	assert_int_equal(seal_put(one, iov, 2, 0), n);
	size_t length = seal_sendable(one, &at);
	memcpy(wire, at, length);
	seal_sent(one, length);
	assert_int_equal(seal_sendable(one, &at), 0);
	return length;
}

/* Piece by piece. */
static void hand_over(const unsigned char *wire, size_t length, size_t piece)
{
	while (length) {
		unsigned char *to;
		size_t n = seal_room(other, &to);
		n = n < piece ? n : piece;
		n = n < length ? n : length;
		assert_true(n > 0);
		memcpy(to, wire, n);
		seal_came(other, n);
		wire += n;
		length -= n;
	}
}

static unsigned char plain[SEAL_RECORD], opened[SEAL_RECORD], wire[4][SEAL_RECORD + 64];

static void what_is_sealed_opens(uint32_t cipher)
{
	static const size_t sizes[] = {1, 3, 100, 5000, SEAL_RECORD};
	pair_make(cipher);
	for (unsigned i = 0; i < sizeof(plain); i++)
		plain[i] = (unsigned char)(i * i >> 3);
	for (unsigned k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t length = record(plain, sizes[k], wire[0]);
		assert_true(sizes[k] < 100 || !memmem(wire[0], length, plain + 16, 16));
		hand_over(wire[0], length - 1, 999);
		assert_int_equal(seal_next(other), 0);
		hand_over(wire[0] + length - 1, 1, 1);
		assert_int_equal(seal_next(other), sizes[k]);
		memset(opened, 0, sizeof(opened));
		assert_true(seal_open(other, opened));
		assert_memory_equal(opened, plain, sizes[k]);
		assert_int_equal(seal_next(other), 0);
	}
	pair_destroy();
}

static void any_bit_that_changes_is_noticed(uint32_t cipher)
{
	for (unsigned bit = 0; bit < 8 * (8 + 40 + 16); bit++) {
		pair_make(cipher);
		size_t length = record(plain, 40, wire[0]);
		wire[0][bit / 8] ^= (unsigned char)(1 << bit % 8);
		hand_over(wire[0], length, length);
		long next = seal_next(other);
		assert_true(next != 0); /* it would wait for more than was sent */
		assert_true(next < 0 || !seal_open(other, opened));
		pair_destroy();
	}
}

/* order: which of four records come, and as what. */
static int opened_of(uint32_t cipher, const char *order)
{
	size_t length[4];
	int good = 0;
	pair_make(cipher);
	for (int i = 0; i < 4; i++)
		length[i] = record(plain + i, 100, wire[i]);
	for (const char *o = order; *o; o++) {
		hand_over(wire[*o - '0'], length[*o - '0'], 64);
		if (seal_next(other) <= 0 || !seal_open(other, opened))
			break;
		good++;
	}
	pair_destroy();
	return good;
}

static void records_left_out_repeated_or_moved_do_not_open(uint32_t cipher)
{
	assert_int_equal(opened_of(cipher, "0123"), 4);
	assert_int_equal(opened_of(cipher, "0023"), 1);
	assert_int_equal(opened_of(cipher, "0213"), 1);
	assert_int_equal(opened_of(cipher, "1230"), 0);
}

static void what_one_sent_does_not_open_as_the_others(uint32_t cipher)
{
	pair_make(cipher);
	size_t length = record(plain, 100, wire[0]);
	struct seal *back = other;
	other = one; /* sent back to whom it came from */
	hand_over(wire[0], length, length);
	assert_true(seal_next(other) < 0);
	other = back;
	pair_destroy();
}

static void with_each(void (*what)(uint32_t))
{
	what(SEAL_CHACHA20);
	if (seal_ciphers() & SEAL_AES256)
		what(SEAL_AES256);
}

static void records_open(void **state)
{
	with_each(what_is_sealed_opens);
}

static void changes_are_noticed(void **state)
{
	with_each(any_bit_that_changes_is_noticed);
}

static void order_is_kept(void **state)
{
	with_each(records_left_out_repeated_or_moved_do_not_open);
}

static void directions_differ(void **state)
{
	with_each(what_one_sent_does_not_open_as_the_others);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(records_open),
	    cmocka_unit_test(changes_are_noticed),
	    cmocka_unit_test(order_is_kept),
	    cmocka_unit_test(directions_differ),
	};
	if (!seal_init())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
