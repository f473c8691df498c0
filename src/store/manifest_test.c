/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "store/store.h"

static char *argv_of_job[] = {"./my prog", "-in", "quote \" and \\ and \xc3\xa9\n", NULL};

/* A manifest with everything in it; text of it, malloc'ed. */
static char *full_manifest(void)
{
	struct store_part parts[2] = {
	    {.file = "rank-0.img",
	     .bytes = 123456789012,
	     .checksum = 0xfedcba9876543210,
	     .pages = 5,
	     .pages_zero = 6,
	     .position = {1, 2, 3},
	     .local = true,
	     .copies = 2,
	     .on = {0, 1},
	     .pause_seconds = 0.012},
	    {.exit_status = 3, .position = {0, 77, 0}},
	};
	struct store_holder holders[2] = {{"node0", "/local/node0/prog.123/node0"},
					  {"node1", "/local/node1/prog.123/node1"}};
	struct store_manifest m = {.job = "prog.123",
				   .id = 7,
				   .base = 6,
				   .nranks = 2,
				   .mpi = true,
				   .program = "/usr/bin/prog",
				   .cwd = "/some/where",
				   .argv = argv_of_job,
				   .library_path = "/opt/lib",
				   .stdin_path = "/in.put",
				   .stdin_start = 11,
				   .stdin_rest = 22,
				   .bytes = 123456789012,
				   .ckpt_every = 2.5,
				   .ckpt_first = 12,
				   .overhead = 0.03,
				   .mtbf = 7200,
				   .keep = 3,
				   .max_restarts = 4,
				   .incremental = true,
				   .compress = 1,
				   .ckpt_local = "/local/%n",
				   .shared_every = 7,
				   .holders = holders,
				   .holder_count = 2,
				   .parts = parts};
	return store_manifest_print(&m);
}

static void what_is_written_is_read_back(void **state)
{
	char *text = full_manifest();
	struct store_manifest m;
	struct error err;

	assert_int_equal(store_manifest_parse(text, strlen(text), &m, &err), HALE_OK);
	assert_string_equal(m.job, "prog.123");
	assert_int_equal(m.id, 7);
	assert_int_equal(m.base, 6);
	assert_int_equal(m.nranks, 2);
	assert_true(m.mpi && m.incremental && !m.tag);
	assert_string_equal(m.argv[2], argv_of_job[2]);
	assert_null(m.argv[3]);
	assert_string_equal(m.library_path, "/opt/lib");
	assert_string_equal(m.stdin_path, "/in.put");
	assert_int_equal(m.stdin_rest, 22);
	assert_true(m.ckpt_every == 2.5 && m.ckpt_first == 12 && m.overhead == 0.03 &&
		    m.mtbf == 7200);
	assert_string_equal(m.parts[0].file, "rank-0.img");
	assert_true(m.parts[0].checksum == 0xfedcba9876543210);
	assert_true(m.parts[0].bytes == 123456789012);
	assert_int_equal(m.parts[0].position[2], 3);
	assert_string_equal(m.ckpt_local, "/local/%n");
	assert_int_equal(m.shared_every, 7);
	assert_int_equal(m.holder_count, 2);
	assert_string_equal(m.holders[1].folder, "/local/node1/prog.123/node1");
	assert_true(m.parts[0].local && m.parts[0].copies == 2 && m.parts[0].on[1] == 1);
	assert_false(m.parts[1].local);
	assert_int_equal(store_level(&m), 2);
	m.parts[0].copies = 1;
	assert_int_equal(store_level(&m), 1);
	m.parts[0].local = false;
	assert_int_equal(store_level(&m), 4);
	assert_string_equal(m.parts[1].file, "");
	assert_int_equal(m.parts[1].exit_status, 3);
	store_manifest_fini(&m);
	free(text);
}

/* Two ranks of two replicas each; one of rank 1 has none any more. */
static char *replicas_manifest(void)
{
	struct store_part parts[4] = {
	    {.file = "rank-0.img", .bytes = 1, .replicas = 2},
	    {.file = "rank-1.img", .bytes = 2, .replicas = 1},
	    {.file = "rank-2.img", .bytes = 3, .replicas = 2},
	    {.exit_status = 0},
	};
	struct store_manifest m = {.job = "prog.123",
				   .id = 7,
				   .nranks = 4,
				   .degree = 2,
				   .mpi = true,
				   .program = "/usr/bin/prog",
				   .cwd = "/",
				   .argv = argv_of_job,
				   .overhead = 0.01,
				   .keep = 3,
				   .parts = parts};
	return store_manifest_print(&m);
}

static void each_replica_has_its_part(void **state)
{
	char *text = replicas_manifest();
	struct store_manifest m;
	struct error err;
	uint32_t part;

	assert_int_equal(store_manifest_parse(text, strlen(text), &m, &err), HALE_OK);
	assert_int_equal(m.nranks, 4);
	assert_int_equal(m.degree, 2);
	assert_string_equal(m.parts[2].file, "rank-2.img");
	assert_int_equal(m.parts[2].replicas, 2);
	assert_int_equal(m.parts[1].replicas, 1);
	assert_string_equal(m.parts[3].file, "");
	assert_true(store_part_of_image(&m, 2, &part) && part == 2);
	assert_true(store_part_of_image(&m, 1, &part) && part == 1);
	assert_false(store_part_of_image(&m, 3, &part));
	assert_false(store_part_of_image(&m, 4, &part));
	store_manifest_fini(&m);
	free(text);
}

static void every_truncation_is_refused(void **state)
{
	char *text = full_manifest();

	for (size_t n = 0; n < strlen(text); n++) {
		struct store_manifest m;
		struct error err;

		assert_int_equal(store_manifest_parse(text, n, &m, &err), HALE_ERR_IMAGE_CORRUPT);
		assert_null(m.parts);
	}
	free(text);
}

/* Other bytes may still make a manifest, but never a crash, nor one that reaches outside. */
static void every_changed_byte_is_survived(void **state)
{
	char *text = full_manifest();
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++) {
		static const char others[] = "0\"/{[,-9x";
		char good = text[i];

		for (const char *o = others; *o; o++) {
			struct store_manifest m;
			text[i] = *o;
			if (store_manifest_parse(text, len, &m, NULL) == HALE_OK) {
				for (uint32_t r = 0; r < m.nranks; r++) {
					const struct store_part *p = &m.parts[r];

					assert_null(strchr(p->file, '/'));
					assert_true(!p->local || p->copies > 0);
					for (uint32_t k = 0; k < p->copies; k++)
						assert_true(p->on[k] < m.holder_count);
				}
			}
			store_manifest_fini(&m);
		}
		text[i] = good;
	}
	free(text);
}

static void replace(char **text, const char *from, const char *to)
{
	char *at = strstr(*text, from);
	size_t before;
	char *out;

	assert_non_null(at);
	before = (size_t)(at - *text);
	out = malloc(strlen(*text) + strlen(to) + 1);
	assert_non_null(out);
	memcpy(out, *text, before);
	snprintf(out + before, strlen(*text) + strlen(to) + 1 - before, "%s%s", to,
		 at + strlen(from));
	free(*text);
	*text = out;
}

static void contents_that_make_no_sense_are_refused(void **state)
{
	static const char *const changes[][2] = {
	    {"\"rank-0.img\"", "\"../../etc/passwd\""},
	    {"\"rank-0.img\"", "\".hidden\""},
	    {"\"base\":6", "\"base\":7"},
	    {"\"id\":7", "\"id\":0"},
	    {"\"nranks\":2", "\"nranks\":3"},
	    {"\"nranks\":2", "\"nranks\":99999999999"},
	    {"fedcba9876543210", "fedcba987654321"},
	    {"\"/usr/bin/prog\"", "\"prog\""},
	    {"\"hale checkpoint\"", "\"something\""},
	    {"\"rank\":1", "\"rank\":0"},
	    {"\"keep\":3", "\"keep\":-3"},
	    {"\"keep\":3", "\"keep\":0"},
	    {"\"overhead\":0.03", "\"overhead\":0.6"},
	    {"\"ckpt_every\":2.5", "\"ckpt_every\":-1"},
	    {"\"compress\":1", "\"compress\":3"},
	    {"\"/local/node1/prog.123/node1\"", "\"node1\""},
	    {"\"/local/node1/prog.123/node1\"", "\"/a:b\""},
	    {"\"/local/%n\"", "\"local\""},
	    {"\"on\":[0,1]", "\"on\":[0,2]"},
	    {"\"on\":[0,1]", "\"on\":[]"},
	    {"[0,77,0]", "[0,77]"},
	    {"[0,77,0]", "[0,-77,0]"},
	    {"\"ended\":3", "\"ended\":-3"},
	    {"\"prog.123\"", "\"../x\""},
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		char *text = full_manifest();
		struct store_manifest m;
		struct error err;

		replace(&text, changes[i][0], changes[i][1]);
		assert_int_equal(store_manifest_parse(text, strlen(text), &m, &err),
				 HALE_ERR_IMAGE_CORRUPT);
		free(text);
	}
}

static void replicas_that_make_no_sense_are_refused(void **state)
{
	static const char *const changes[][2] = {
	    {"\"rank\":1,\"slot\":0", "\"rank\":0,\"slot\":1"}, /* twice, and rank 1 never */
	    {"\"rank\":1,\"slot\":0", "\"rank\":2,\"slot\":0"},
	    {"\"rank\":1,\"slot\":0", "\"rank\":1,\"slot\":2"},
	    {"\"slot\":1,\"replicas\":2", "\"slot\":1,\"replicas\":3"},
	    {"\"slot\":1,\"replicas\":2", "\"slot\":1,\"replicas\":0"},
	    {"\"degree\":2", "\"degree\":1"},
	    {"\"degree\":2", "\"degree\":17"},
	    {"\"degree\":2", "\"degree\":2,\"shadows\":3"},
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		char *text = replicas_manifest();
		struct store_manifest m;
		struct error err;

		replace(&text, changes[i][0], changes[i][1]);
		assert_int_equal(store_manifest_parse(text, strlen(text), &m, &err),
				 HALE_ERR_IMAGE_CORRUPT);
		free(text);
	}
}

static void a_newer_version_is_said_to_be_newer(void **state)
{
	char *text = full_manifest();
	struct store_manifest m;
	struct error err;

	replace(&text, "\"version\":2", "\"version\":5");
	assert_int_equal(store_manifest_parse(text, strlen(text), &m, &err),
			 HALE_ERR_IMAGE_MISMATCH);
	assert_non_null(strstr(err.text, "newer"));
	replace(&text, "\"version\":5", "\"version\":1");
	assert_int_equal(store_manifest_parse(text, strlen(text), &m, &err),
			 HALE_ERR_IMAGE_MISMATCH);
	assert_non_null(strstr(err.text, "run the job anew"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_written_is_read_back),
	    cmocka_unit_test(each_replica_has_its_part),
	    cmocka_unit_test(every_truncation_is_refused),
	    cmocka_unit_test(every_changed_byte_is_survived),
	    cmocka_unit_test(contents_that_make_no_sense_are_refused),
	    cmocka_unit_test(replicas_that_make_no_sense_are_refused),
	    cmocka_unit_test(a_newer_version_is_said_to_be_newer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
