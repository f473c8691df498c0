// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "ckpt/rank.h"
#include "deliver/deliver.h"

static struct link self = {.rank = 1, .nranks = 2};

const struct link *link_self(void)
{
	return &self;
}

void link_copy_tell(uint32_t process, bool joined)
{
}

void link_sdc_tell(struct proto_sdc *found)
{
}

void link_abort(int code)
{
	_exit(code);
}

/* ---- what the policy `redundant`, which is in the table, stands on; redundant_test.c tries it
 * ---- */

hale_status_t channel_open_all(channel_arrive_t *arrive, struct error *err)
{
	return HALE_OK;
}
void channel_close_all(void)
{
}
const struct channel_ops *channel_for(uint32_t rank)
{
	return NULL;
}
void channel_forget_all(uint32_t rank)
{
}

void channel_renew_all(uint32_t rank)
{
}

int channel_poll_all(void)
{
	return 0;
}

static struct envelope numbered(uint32_t number)
{
	return (struct envelope){.number = number, .context = 4, .tag = 7};
}

static void each_number_is_accepted_once_and_in_order(void **state)
{
	struct ledger from = {0}, to = {0};
	for (uint32_t i = 1; i <= 1000; i++) {
		struct envelope e = numbered(deliver_next(&from));
		assert_int_equal(e.number, i);
		deliver_sent(&from, 1, &e, NULL);
		assert_true(deliver_accept(&to, 0, &e, NULL));
	}
	assert_int_equal(from.sent, 1000);
	assert_int_equal(to.have, 1000);
}

static void numbers_wrap_where_the_envelope_ends(void **state)
{
	struct ledger from = {.sent = 0xfffffffful - 1}, to = {.have = 0xfffffffful - 1};
	for (int i = 0; i < 4; i++) {
		struct envelope e = numbered(deliver_next(&from));
		deliver_sent(&from, 1, &e, NULL);
		assert_true(deliver_accept(&to, 0, &e, NULL));
	}
	assert_int_equal(to.have, 0x100000002ul);
}

static int32_t seen;

static bool note(struct ledger *l, uint32_t from, const struct envelope *e, const void *payload,
		 int32_t distance)
{
	seen = distance;
	return false;
}

static void a_policy_decides_about_other_numbers(void **state)
{
	static const struct deliver_ops noting = {.name = "noting", .other = note};
	struct ledger to = {.have = 10};
	struct envelope repeated = numbered(10), ahead = numbered(13);
	deliver_policy = &noting;
	assert_false(deliver_accept(&to, 0, &repeated, NULL));
	assert_int_equal(seen, -1);
	assert_false(deliver_accept(&to, 0, &ahead, NULL));
	assert_int_equal(seen, 2);
	assert_int_equal(to.have, 10);
	deliver_policy = &deliver_plain;
}

static void plain_ends_the_job_when_the_sequence_breaks(void **state)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		struct ledger to = {.have = 10};
		struct envelope lost = numbered(12);
		log_set_level(LOG_QUIET);
		deliver_accept(&to, 0, &lost, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 70);
}

static void policies_are_chosen_by_name(void **state)
{
	struct error err;
	assert_int_equal(deliver_choose("plain", &err), HALE_OK);
	assert_ptr_equal(deliver_policy, &deliver_plain);
	assert_int_equal(deliver_choose("pigeon", &err), HALE_ERR_UNSUPPORTED);
}

static void every_policy_has_what_is_mandatory(void **state)
{
	static const char *const names[] = {"redundant", "plain"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct error err;

		assert_int_equal(deliver_choose(names[i], &err), HALE_OK);
		assert_string_equal(deliver_policy->name, names[i]);
		assert_non_null(deliver_policy->other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_number_is_accepted_once_and_in_order),
	    cmocka_unit_test(numbers_wrap_where_the_envelope_ends),
	    cmocka_unit_test(a_policy_decides_about_other_numbers),
	    cmocka_unit_test(plain_ends_the_job_when_the_sequence_breaks),
	    cmocka_unit_test(policies_are_chosen_by_name),
	    cmocka_unit_test(every_policy_has_what_is_mandatory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
