/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "store/store.h"

struct store_fixture {
	char dir[64], key[80];
	struct store store;
};

static int set_up(void **state)
{
	struct store_fixture *f = calloc(1, sizeof(*f));
	struct error err;

	snprintf(f->dir, sizeof(f->dir), "/tmp/hale-store-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->key, sizeof(f->key), "%s.key", f->dir);
	setenv("HALE_CKPT_KEY", f->key, 1);
	assert_int_equal(store_open(&f->store, f->dir, "job.1", false, &err), HALE_OK);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct store_fixture *f = *state;
	char path[PATH_MAX];

	for (uint32_t id = 1; id < 30; id++) {
		store_path(f->store.job_folder, id, path);
		store_remove_folder(path);
		strncat(path, ".bad", sizeof(path) - strlen(path) - 1);
		store_remove_folder(path);
	}
	store_sweep(f->store.job_folder);
	rmdir(f->store.job_folder);
	unlink(f->key);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static hale_status_t checkpoint(struct store_fixture *f, uint32_t id, uint32_t base)
{
	char *argv[] = {"prog", NULL};
	struct store_part part = {.file = "rank-0.img", .bytes = 4};
	struct store_manifest m = {.job = "job.1",
				   .id = id,
				   .base = base,
				   .nranks = 1,
				   .program = "/bin/prog",
				   .cwd = "/",
				   .argv = argv,
				   .keep = 2,
				   .parts = &part};
	char path[PATH_MAX];
	struct error err;
	FILE *file;

	assert_int_equal(store_begin(&f->store, id, path, &err), HALE_OK);
	strncat(path, "/rank-0.img", sizeof(path) - strlen(path) - 1);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("data", file);
	fclose(file);
	return store_commit(&f->store, &m, &err);
}

static void assert_ids(struct store_fixture *f, size_t count, const uint32_t *expected)
{
	uint32_t *ids;

	assert_int_equal(store_list(f->store.job_folder, &ids), count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ids[i], expected[i]);
	free(ids);
}

#define ASSERT_IDS(f, ...)                                                                         \
	assert_ids(f, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),                        \
		   (uint32_t[]){__VA_ARGS__})

static void a_checkpoint_counts_once_it_is_committed(void **state)
{
	struct store_fixture *f = *state;
	char path[PATH_MAX];
	struct error err;
	uint32_t *ids;

	assert_int_equal(store_begin(&f->store, 1, path, &err), HALE_OK);
	assert_int_equal(store_list(f->store.job_folder, &ids), 0);
	free(ids);
	store_abandon(&f->store, 1);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(checkpoint(f, 2, 0), HALE_OK);
	ASSERT_IDS(f, 2);
}

static void folders_are_private(void **state)
{
	struct store_fixture *f = *state;
	char path[PATH_MAX];
	struct stat st;

	assert_int_equal(checkpoint(f, 1, 0), HALE_OK);
	store_path(f->store.job_folder, 1, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(f->store.job_folder, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

static void ids_are_listed_in_their_order(void **state)
{
	struct store_fixture *f = *state;

	for (uint32_t id = 9; id <= 11; id++)
		checkpoint(f, id, 0);
	ASSERT_IDS(f, 9, 10, 11);
}

static void other_names_are_no_checkpoints(void **state)
{
	static const char *const names[] = {"4294967295", "4294967296", "12x", "0", "01", "-1"};
	struct store_fixture *f = *state;
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%.60s/job.1/%s", f->dir, names[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	ASSERT_IDS(f, 4294967295);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%.60s/job.1/%s", f->dir, names[i]);
		assert_int_equal(rmdir(path), 0);
	}
}

/* Whether bytes are synced or not: what could not be written is no checkpoint. */
static void without_its_manifest_it_does_not_count(void **state)
{
	struct store_fixture *f = *state;
	struct store_part part = {.exit_status = 0};
	struct store_manifest m = {.job = "job.1",
				   .id = 1,
				   .nranks = 1,
				   .program = "/bin/prog",
				   .cwd = "/",
				   .argv = (char *[]){"prog", NULL},
				   .keep = 2,
				   .parts = &part};
	char path[PATH_MAX];
	struct error err;
	uint32_t *ids;

	for (int sync = 0; sync < 2; sync++) {
		f->store.sync = sync;
		assert_int_equal(store_begin(&f->store, 1, path, &err), HALE_OK);
		strncat(path, "/manifest.json", sizeof(path) - strlen(path) - 1);
		assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0); /* in the way */
		assert_int_equal(store_commit(&f->store, &m, &err), HALE_ERR_STORE);
		assert_int_equal(store_list(f->store.job_folder, &ids), 0);
		free(ids);
		store_sweep(f->store.job_folder);
		assert_int_equal(checkpoint(f, 2, 0), HALE_OK);
		store_remove(&f->store, 2);
	}
}

static void a_name_is_claimed_once(void **state)
{
	struct store_fixture *f = *state;
	char path[PATH_MAX], deep[PATH_MAX];
	struct error err;

	snprintf(deep, sizeof(deep), "%s/a/b", f->dir);
	assert_int_equal(store_claim(deep, "job.2", &err), HALE_OK);
	assert_int_equal(store_claim(deep, "job.2", &err), HALE_ERR_STORE);
	assert_non_null(strstr(err.text, "another job of the same name"));
	assert_int_equal(store_claim(deep, "job.3", &err), HALE_OK);
	snprintf(path, sizeof(path), "%s/a/b/job.3", f->dir);
	store_unmake_folders(path, strlen(deep));
	snprintf(path, sizeof(path), "%s/a/b/job.2", f->dir);
	store_unmake_folders(path, strlen(f->dir));
	assert_int_equal(store_there(path), strlen(f->dir));
}

static void a_place_is_tried_without_a_trace(void **state)
{
	struct store_fixture *f = *state;
	char path[PATH_MAX];
	struct error err;

	assert_int_equal(store_probe(f->dir, "job.2", &err), HALE_OK);
	snprintf(path, sizeof(path), "%s/a/b", f->dir);
	assert_int_equal(store_probe(path, "job.2", &err), HALE_OK);
	assert_int_equal(store_there(path), strlen(f->dir));
	snprintf(path, sizeof(path), "%s/job.2", f->dir);
	assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0); /* in the way */
	assert_int_equal(store_probe(f->dir, "job.2", &err), HALE_ERR_STORE);
	assert_non_null(strstr(err.text, "is no folder"));
	assert_int_equal(store_probe(path, "job.2", &err), HALE_ERR_STORE);
	unlink(path);
	assert_int_equal(store_probe("/proc", "job.2", &err), HALE_ERR_STORE);
}

static void only_the_newest_are_kept(void **state)
{
	struct store_fixture *f = *state;

	for (uint32_t id = 1; id <= 5; id++) {
		checkpoint(f, id, 0);
		store_prune(&f->store, 2);
	}
	ASSERT_IDS(f, 4, 5);
}

static void what_a_kept_one_stands_on_is_kept(void **state)
{
	struct store_fixture *f = *state;
	uint32_t chain[STORE_CHAIN_MAX];
	size_t count;
	struct error err;

	checkpoint(f, 1, 0);
	checkpoint(f, 2, 0);
	for (uint32_t id = 3; id <= 6; id++)
		checkpoint(f, id, id - 1);
	store_prune(&f->store, 2);
	ASSERT_IDS(f, 2, 3, 4, 5, 6);
	assert_int_equal(store_chain(f->store.job_folder, 6, chain, &count, &err), HALE_OK);
	assert_int_equal(count, 5);
	assert_int_equal(chain[0], 6);
	assert_int_equal(chain[4], 2);
	checkpoint(f, 7, 0);
	checkpoint(f, 8, 7);
	store_prune(&f->store, 2);
	ASSERT_IDS(f, 7, 8);
}

static void a_chain_with_a_hole_is_refused(void **state)
{
	struct store_fixture *f = *state;
	uint32_t chain[STORE_CHAIN_MAX];
	size_t count;
	struct error err;

	checkpoint(f, 3, 2);
	assert_int_equal(store_chain(f->store.job_folder, 3, chain, &count, &err),
			 HALE_ERR_IMAGE_MISSING);
}

static void a_manifest_is_replaced_at_once(void **state)
{
	struct store_fixture *f = *state;
	struct store_manifest m;
	struct error err;
	char path[PATH_MAX];

	assert_int_equal(checkpoint(f, 3, 0), HALE_OK);
	store_path(f->store.job_folder, 3, path);
	assert_int_equal(store_manifest_read(path, &m, &err), HALE_OK);
	m.bytes = 77;
	assert_int_equal(store_rewrite(f->store.job_folder, true, &m, &err), HALE_OK);
	store_manifest_fini(&m);
	assert_int_equal(store_manifest_read(path, &m, &err), HALE_OK);
	assert_int_equal(m.bytes, 77);
	m.id = 4; /* none that could be replaced */
	assert_int_not_equal(store_rewrite(f->store.job_folder, true, &m, &err), HALE_OK);
	store_manifest_fini(&m);
	store_remove(&f->store, 3);
	assert_int_equal(store_manifest_read(path, &m, &err), HALE_ERR_IMAGE_MISSING);
}

static void a_rejected_one_is_set_aside(void **state)
{
	struct store_fixture *f = *state;

	checkpoint(f, 1, 0);
	checkpoint(f, 2, 0);
	store_reject(&f->store, 2);
	ASSERT_IDS(f, 1);
}

static void what_an_earlier_death_left_is_cleared(void **state)
{
	struct store_fixture *f = *state;
	struct store again;
	char path[PATH_MAX];
	struct error err;

	assert_int_equal(store_begin(&f->store, 4, path, &err), HALE_OK);
	assert_int_equal(store_open(&again, f->dir, "job.1", false, &err), HALE_OK);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* A link in the place of what is to be removed. */
static void what_a_link_leads_to_is_left_alone(void **state)
{
	struct store_fixture *f = *state;
	char other[128], file[160], link[PATH_MAX + 16];
	struct store again;
	struct error err;

	snprintf(other, sizeof(other), "%s.other", f->dir);
	snprintf(file, sizeof(file), "%s/precious", other);
	assert_int_equal(mkdir(other, 0700), 0);
	fclose(fopen(file, "w"));
	snprintf(link, sizeof(link), "%s/7.tmp", f->store.job_folder);
	assert_int_equal(symlink(other, link), 0);
	assert_int_equal(store_open(&again, f->dir, "job.1", false, &err), HALE_OK);
	store_remove_folder(link);
	assert_int_equal(access(file, F_OK), 0);
	unlink(link);
	unlink(file);
	rmdir(other);
}

static void a_folder_that_others_may_write_is_refused(void **state)
{
	struct store_fixture *f = *state;
	struct store again;
	struct error err;

	assert_int_equal(chmod(f->store.job_folder, 0777), 0);
	assert_int_equal(store_open(&again, f->dir, "job.1", false, &err), HALE_ERR_STORE);
	assert_non_null(strstr(err.text, "others may write"));
	assert_int_equal(chmod(f->store.job_folder, 0700), 0);
	assert_int_equal(store_open(&again, f->dir, "job.1", false, &err), HALE_OK);
}

static void places_that_cannot_be_used_are_refused(void **state)
{
	struct store s;
	struct error err;

	assert_int_equal(store_open(&s, "/dev/null", "job.1", false, &err), HALE_ERR_STORE);
	assert_int_equal(store_open(&s, "/proc/no/where", "job.1", false, &err), HALE_ERR_STORE);
	assert_int_not_equal(store_open(&s, "", "job.1", false, &err), HALE_OK);
}

static void folders_that_were_made_can_be_removed_again(void **state)
{
	struct store_fixture *f = *state;
	char path[PATH_MAX];
	struct error err;
	size_t there;

	snprintf(path, sizeof(path), "%s/a//b/c/", f->dir);
	there = store_there(path);
	assert_int_equal(there, strlen(f->dir));
	assert_int_equal(store_make_folders(path, &err), HALE_OK);
	store_unmake_folders(path, there);
	assert_int_equal(store_there(path), there);
	/* what was there, or is not empty, stays */
	assert_int_equal(store_make_folders(path, &err), HALE_OK);
	store_unmake_folders(path, store_there(path));
	assert_true(store_there(path) > there);
	snprintf(path, sizeof(path), "%s/a", f->dir);
	store_unmake_folders(path, there);
	assert_true(store_there(path) > there);
	snprintf(path, sizeof(path), "%s/a/b/c", f->dir);
	store_unmake_folders(path, there);
	assert_int_equal(store_there(path), there);
}

static void no_manifest_is_no_checkpoint(void **state)
{
	struct store_manifest m;
	struct error err;

	assert_int_equal(store_manifest_read("/", &m, &err), HALE_ERR_IMAGE_MISSING);
	assert_int_equal(store_manifest_read("/no/such/folder", &m, &err), HALE_ERR_IMAGE_MISSING);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    WITH_STORE(a_checkpoint_counts_once_it_is_committed),
	    WITH_STORE(folders_are_private),
	    WITH_STORE(ids_are_listed_in_their_order),
	    WITH_STORE(other_names_are_no_checkpoints),
	    WITH_STORE(without_its_manifest_it_does_not_count),
	    WITH_STORE(a_name_is_claimed_once),
	    WITH_STORE(a_place_is_tried_without_a_trace),
	    WITH_STORE(only_the_newest_are_kept),
	    WITH_STORE(what_a_kept_one_stands_on_is_kept),
	    WITH_STORE(a_chain_with_a_hole_is_refused),
	    WITH_STORE(a_manifest_is_replaced_at_once),
	    WITH_STORE(a_rejected_one_is_set_aside),
	    WITH_STORE(what_an_earlier_death_left_is_cleared),
	    WITH_STORE(what_a_link_leads_to_is_left_alone),
	    WITH_STORE(a_folder_that_others_may_write_is_refused),
	    WITH_STORE(folders_that_were_made_can_be_removed_again),
	    cmocka_unit_test(places_that_cannot_be_used_are_refused),
	    cmocka_unit_test(no_manifest_is_no_checkpoint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
