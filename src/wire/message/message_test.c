/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "wire/message/message.h"
#include "wire/session/setup.h"

static const struct message full = {.rank = 7,
				    .id = 3,
				    .base = 2,
				    .flags = 5,
				    .value = -11,
				    .number = 1ull << 40,
				    .position = {1, 2, 3},
				    .text = "a text",
				    .name = "",
				    .bytes = "by\0tes",
				    .len = 6};

static void every_message_comes_out_as_it_went_in(void **state)
{
	for (uint32_t type = MSG_NONE + 1; type < MESSAGE_TYPES; type++) {
		struct message m = full, back;
		unsigned char *frame, *again;
		size_t size, size_again;

		m.type = type;
		frame = message_write(&m, &size);
		assert_non_null(frame);
		assert_true(message_read(frame + MESSAGE_HEADER, size - MESSAGE_HEADER, &back));
		assert_int_equal(back.type, type);
		again = message_write(&back, &size_again);
		assert_non_null(again);
		assert_int_equal(size, size_again);
		assert_memory_equal(frame, again, size);
		free(frame);
		free(again);
	}
}

/* Each byte less, or a byte too many, in a frame of its own so that reading beyond is seen. */
static void a_frame_of_another_length_is_refused(void **state)
{
	struct message m = full, back;
	unsigned char *frame;
	size_t size;

	m.type = MSG_SPAWN;
	frame = message_write(&m, &size);
	for (size_t cut = 0; cut < size - MESSAGE_HEADER; cut++) {
		unsigned char *copy = malloc(cut ? cut : 1);

		memcpy(copy, frame + MESSAGE_HEADER, cut);
		if (cut > 0)
			copy[cut - 1] = '\n';
		assert_false(message_read(copy, cut, &back));
		free(copy);
	}
	free(frame);
}

static void unknown_types_and_texts_with_a_hole_are_refused(void **state)
{
	unsigned char none[] = {0, 0, 0, 0, '\n'}, unknown[] = {200, 0, 0, 0, '\n'};
	unsigned char hole[] = {MSG_BYE, 0, 0, 0, 3, 0, 0, 0, 'a', 0, 'b', 0, '\n'};
	struct message m;

	assert_false(message_read(none, sizeof(none), &m));
	assert_false(message_read(unknown, sizeof(unknown), &m));
	assert_false(message_read(hole, sizeof(hole), &m));
}

static void a_setup_comes_out_as_it_went_in(void **state)
{
	char *argv[] = {"program", "an argument", "", NULL}, *none[] = {NULL};
	struct setup s = {.flags = SETUP_NO_MPI,
			  .nranks = 4,
			  .degree = 1,
			  .lease_ns = 77,
			  .grace_ns = 78,
			  .hang_ns = 79,
			  .epoch = 3,
			  .folder = "/there",
			  .tag = "0123",
			  .job = "job.1",
			  .name = "n1",
			  .program = "/bin/true",
			  .argv = argv,
			  .environ = none};
	struct setup back;
	size_t len;
	char *bytes = setup_write(&s, &len);

	assert_non_null(bytes);
	assert_true(setup_read(bytes, len, &back));
	assert_int_equal(back.nranks, 4);
	assert_int_equal(back.lease_ns, 77);
	assert_string_equal(back.job, "job.1");
	assert_string_equal(back.wdir, "");
	assert_int_equal(back.grace_ns, 78);
	assert_int_equal(back.hang_ns, 79);
	assert_int_equal(back.epoch, 3);
	assert_string_equal(back.folder, "/there");
	assert_string_equal(back.tag, "0123");
	assert_string_equal(back.argv[1], "an argument");
	assert_null(back.argv[3]);
	assert_null(back.environ[0]);
	setup_fini(&back);
	for (size_t cut = 0; cut < len; cut++)
		assert_false(setup_read(bytes, cut, &back));
	free(bytes);
}

static void what_belongs_to_a_machine_stays_there(void **state)
{
	char *argv[] = {"p", NULL};
	char *theirs[] = {"HOSTNAME=head", "A=1", "SLURM_PROCID=0", NULL};
	char *own[] = {"HOSTNAME=n1", "A=2", NULL};
	struct setup s = {.nranks = 1, .degree = 1, .argv = argv, .environ = theirs}, back;
	size_t len;
	char *bytes = setup_write(&s, &len);

	assert_true(setup_read(bytes, len, &back));
	assert_true(setup_localize(&back, own));
	assert_string_equal(back.environ[0], "A=1");
	assert_string_equal(back.environ[1], "HOSTNAME=n1");
	assert_null(back.environ[2]);
	setup_fini(&back);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_message_comes_out_as_it_went_in),
	    cmocka_unit_test(a_frame_of_another_length_is_refused),
	    cmocka_unit_test(unknown_types_and_texts_with_a_hole_are_refused),
	    cmocka_unit_test(a_setup_comes_out_as_it_went_in),
	    cmocka_unit_test(what_belongs_to_a_machine_stays_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
