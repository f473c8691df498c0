/* SPDX-License-Identifier: BSD-3-Clause */
/* All histories of up to LENGTH events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/leave.h"

enum { LENGTH = 7 };

static int wishes_open(leave_state_t state)
{
	return state == LEAVE_MOVING || state == LEAVE_PLANNED;
}

/* What is asked for is told about once at most, and never when nothing was asked for. */
static void check_history(uint32_t number)
{
	leave_state_t state = LEAVE_STAYS;
	int asked = 0, told = 0;

	for (int i = 0; i < LENGTH; i++, number /= LEAVE_EVENTS) {
		leave_event_t event = (leave_event_t)(number % LEAVE_EVENTS);
		struct leave_step s = leave_step(state, event);

		assert_true(s.next < LEAVE_STATES);
		asked += !wishes_open(state) && wishes_open(s.next);
		told += s.action != LEAVE_NOTHING;
		if (s.action == LEAVE_TELL_LEFT)
			assert_int_equal(state, LEAVE_MOVING);
		if (s.action != LEAVE_NOTHING)
			assert_false(wishes_open(s.next));
		/* a plan ends by a layout, or by being given up, and by nothing else */
		if (state == LEAVE_PLANNED && s.next != LEAVE_PLANNED)
			assert_true(event == LEAVE_LAID_OUT || event == LEAVE_STAYS_PUT);
		/* a rollback and a layout leave no migration behind */
		if (event == LEAVE_ROLLS_BACK)
			assert_int_not_equal(s.next, LEAVE_MOVING);
		if (event == LEAVE_LAID_OUT)
			assert_int_not_equal(s.next, LEAVE_PLANNED);
		if (event == LEAVE_ALL_BACK)
			assert_int_not_equal(s.next, LEAVE_LEFT);
		if (event == LEAVE_BY_CHECKPOINT)
			assert_int_equal(s.next, LEAVE_PLANNED);
		state = s.next;
	}
	assert_true(told <= asked);
}

static void all_histories_keep_the_promises(void **state)
{
	uint32_t count = 1;

	(void)state;
	for (int i = 0; i < LENGTH; i++)
		count *= LEAVE_EVENTS;
	for (uint32_t number = 0; number < count; number++)
		check_history(number);
}

static void every_state_can_be_reached_and_left(void **state)
{
	bool in[LEAVE_STATES] = {false}, out[LEAVE_STATES] = {false};

	(void)state;
	for (int s = 0; s < LEAVE_STATES; s++)
		for (int e = 0; e < LEAVE_EVENTS; e++) {
			leave_state_t next = leave_step((leave_state_t)s, (leave_event_t)e).next;

			in[next] = in[next] || (int)next != s;
			out[s] = out[s] || (int)next != s;
		}
	for (int s = 0; s < LEAVE_STATES; s++)
		assert_true(in[s] && out[s]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_histories_keep_the_promises),
	    cmocka_unit_test(every_state_can_be_reached_and_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
