/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/fmt.h"
#include "channel/carry/carry.h"

/* What a layer would hand over: one function for both directions. */
struct counts {
	uint32_t sent;
	uint64_t have[300];
	char text[7];
};
static void counts_carry(struct carry *c, struct counts *k)
{
	carry_bytes(c, &k->sent, sizeof(k->sent));
	carry_bytes(c, k->have, sizeof(k->have));
	carry_bytes(c, k->text, sizeof(k->text));
}

static struct counts some_counts(void)
{
	struct counts k = {.sent = 41, .text = "ledger"};
	for (size_t i = 0; i < ARRAY_LEN(k.have); i++)
		k.have[i] = i * i + 7;
	return k;
}

static void what_goes_in_comes_out_of_the_file(void **state)
{
	struct counts in = some_counts(), out = {0};
	struct carry c;
	char text[16];
	carry_begin(&c);
	for (int i = 0; i < 20; i++) /* more than fits at first */
		counts_carry(&c, &in);
	assert_false(c.failed);
	int fd = carry_file(&c);
	assert_true(fd >= 0);
	carry_drop(&c);
	fmt_print(text, sizeof(text), "%d", fd);
	setenv("HALE_CARRY", text, 1);
	struct carry *arrived = carry_arrived();
	assert_non_null(arrived);
	assert_ptr_equal(arrived, carry_arrived());
	for (int i = 0; i < 20; i++) {
		memset(&out, 0xff, sizeof(out));
		counts_carry(arrived, &out);
		assert_int_equal(out.sent, in.sent);
		assert_memory_equal(out.have, in.have, sizeof(in.have));
		assert_string_equal(out.text, in.text);
	}
	assert_false(arrived->failed);
	carry_end();
	assert_null(carry_arrived());
	assert_int_equal(write(fd, "x", 1), -1); /* it is closed */
}

static void what_is_too_short_says_so_and_gives_zeroes(void **state)
{
	struct counts in = some_counts(), out = in;
	struct carry c;
	carry_begin(&c);
	counts_carry(&c, &in);
	c.loading = true;
	c.length -= 1;
	counts_carry(&c, &out);
	assert_true(c.failed);
	assert_int_equal(out.sent, in.sent);
	for (size_t i = 0; i < sizeof(out.text); i++)
		assert_int_equal(out.text[i], 0);
	carry_drop(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_goes_in_comes_out_of_the_file),
	    cmocka_unit_test(what_is_too_short_says_so_and_gives_zeroes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
