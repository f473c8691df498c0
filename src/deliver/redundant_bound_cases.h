/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of redundant_test.c that are about bounds: of memory, and of numbers after a long run.
 * A part of that file, after the job. */
#ifndef HALE_DELIVER_REDUNDANT_BOUND_CASES_H
#define HALE_DELIVER_REDUNDANT_BOUND_CASES_H

/* Whoever provides for a process compares numbers of 32 bits with what that one has told it. */
static void after_two_thousand_million_messages_all_go_on(void **unused)
{
	numbers_begin = (1u << 31) - 2;
	providers_told = 0;
	memory_at_its_bound_lets_senders_wait_but_nothing_is_lost(NULL);
	numbers_begin = 0;
	assert_true(providers_told > 100);
}

/* Of two that wait at their bounds each may have sent what the other one waits for. */
static void replicas_with_different_orders_do_not_block_each_other(void **unused)
{
	any_order = true;
	for (unsigned seed = 1; seed <= 200; seed++)
		job(seed, 300 + seed % 5 * 100, NULL, NULL, 0);
	compared(3, COMPARE_OFF);
	for (unsigned seed = 1; seed <= 200; seed++)
		job(seed, 300 + seed % 5 * 100, NULL, NULL, 0);
	compared(2, COMPARE_OFF);
	whoever_dies_whenever_nothing_is_lost(NULL);
	one_of_each_rank_may_die(NULL);
}

static int any_order_over(void **unused)
{
	any_order = false;
	compared(2, COMPARE_OFF);
	return 0;
}

#endif
