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

/* Those die that know what the other replica of a sender has sent: nobody else acknowledges it. */
static void receivers_of_replicas_with_different_orders_may_die(void **unused)
{
	any_order = true;
	for (unsigned seed = 1; seed <= 2000; seed++) {
		uint32_t victim[] = {seed % RANKS, RANKS + (seed + 1) % RANKS};
		int when[2];

		state = seed;
		when[0] = (int)draw(300);
		when[1] = when[0] + (int)draw(40);
		job(seed, 200 + seed % 5 * 50, victim, when, 2);
	}
}

static int any_order_over(void **unused)
{
	any_order = false;
	compared(2, COMPARE_OFF);
	return 0;
}

#endif
