/* SPDX-License-Identifier: BSD-3-Clause */
/* Real images, which a child of this test captures of itself. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "image/image.h"
#include "store/store.h"

/* What the child's captures said of themselves; shared with it. */
struct captured {
	uint64_t bytes, checksum;
};

struct verify_fixture {
	char dir[64], path[2][128];
	struct captured *image; /* [2] */
};

static void on_written(void *arg, const struct image_result *result)
{
	struct captured *c = arg;

	if (result->error.code == HALE_OK)
		*c = (struct captured){result->bytes, result->checksum};
}

/* In the child: the same process twice, with other memory the second time. */
static void capture_both(struct verify_fixture *f)
{
	struct error err;

	dup2(2, 0); /* an image has no descriptors that lead to other processes */
	dup2(2, 1);
	close_range(3, ~0u, 0);
	image_init(NULL, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		struct image_params p = {
		    .identity = {.job = "job.1", .rank = 3, .nranks = 4, .id = i + 1},
		    .path = f->path[i],
		    .mode = IMAGE_SYNC,
		    .written = on_written,
		    .arg = &f->image[i]};

		memset(malloc(100000), (int)i, 100000);
		if (image_park() != 0 || image_capture(&p, NULL, &err) != IMAGE_CAPTURED) {
			fprintf(stderr, "%s\n", err.text);
			_exit(1);
		}
		image_unpark();
	}
	_exit(0);
}

static int set_up(void **state)
{
	struct verify_fixture *f = calloc(1, sizeof(*f));
	int status = -1;
	pid_t pid;

	snprintf(f->dir, sizeof(f->dir), "/tmp/hale-verify-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	for (int i = 0; i < 2; i++)
		snprintf(f->path[i], sizeof(f->path[i]), "%s/rank-%d.img", f->dir, i);
	f->image = mmap(NULL, sizeof(struct captured) * 2, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f->image != MAP_FAILED);
	pid = fork();
	if (pid == 0)
		capture_both(f);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct verify_fixture *f = *state;

	unlink(f->path[0]);
	unlink(f->path[1]);
	munmap(f->image, sizeof(struct captured) * 2);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void whole_images_are_accepted(void **state)
{
	struct verify_fixture *f = *state;
	struct error err;

	for (int i = 0; i < 2; i++)
		for (int deep = 0; deep < 2; deep++)
			assert_int_equal(store_verify_file(f->path[i], 3, f->image[i].bytes,
							   f->image[i].checksum, deep, &err),
					 HALE_OK);
}

/* Each byte of it is right; only the checksum says that another checkpoint was written down. */
static void a_valid_image_of_another_checkpoint_is_refused(void **state)
{
	struct verify_fixture *f = *state;
	struct error err;

	assert_true(f->image[0].checksum != f->image[1].checksum);
	assert_int_equal(
	    store_verify_file(f->path[1], 3, f->image[1].bytes, f->image[0].checksum, true, &err),
	    HALE_ERR_IMAGE_CORRUPT);
	assert_non_null(strstr(err.text, "rank 3"));
	assert_non_null(strstr(err.text, "not the one that was written"));
}

static void flips_cuts_and_missing_files_are_told_apart(void **state)
{
	struct verify_fixture *f = *state;
	uint64_t bytes = f->image[0].bytes, checksum = f->image[0].checksum;
	FILE *file = fopen(f->path[0], "r+");
	struct error err;
	int c;
	enum { IN_THE_HEADER = 100 }; /* what only fills up the file is not looked at */

	assert_non_null(file);
	assert_int_equal(fseek(file, IN_THE_HEADER, SEEK_SET), 0);
	c = fgetc(file);
	assert_int_equal(fseek(file, IN_THE_HEADER, SEEK_SET), 0);
	assert_int_equal(fputc(c ^ 1, file), c ^ 1);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(store_verify_file(f->path[0], 0, bytes, checksum, false, &err), HALE_OK);
	assert_int_equal(store_verify_file(f->path[0], 0, bytes, checksum, true, &err),
			 HALE_ERR_IMAGE_CORRUPT);
	assert_int_equal(truncate(f->path[0], (off_t)bytes - 1), 0);
	assert_int_equal(store_verify_file(f->path[0], 0, bytes, checksum, false, &err),
			 HALE_ERR_IMAGE_TORN);
	assert_int_equal(unlink(f->path[0]), 0);
	assert_int_equal(store_verify_file(f->path[0], 0, bytes, checksum, false, &err),
			 HALE_ERR_IMAGE_MISSING);
}

static void a_part_is_looked_for_in_its_checkpoint(void **state)
{
	struct verify_fixture *f = *state;
	struct store_part parts[2] = {
	    {.file = "rank-0.img", .bytes = f->image[0].bytes, .checksum = f->image[0].checksum},
	    {.file = "", .exit_status = 1},
	};
	struct store_manifest m = {.nranks = 2, .parts = parts};
	struct error err;

	assert_int_equal(store_verify_part(f->dir, &m, 0, true, &err), HALE_OK);
	assert_int_equal(store_verify_part(f->dir, &m, 1, true, &err), HALE_OK); /* had ended */
	parts[0].checksum++;
	assert_int_equal(store_verify_part(f->dir, &m, 0, true, &err), HALE_ERR_IMAGE_CORRUPT);
	snprintf(parts[0].file, sizeof(parts[0].file), "rank-7.img");
	assert_int_equal(store_verify_part(f->dir, &m, 0, true, &err), HALE_ERR_IMAGE_MISSING);
	parts[0].local = true; /* on a disk that can't be seen from here */
	assert_int_equal(store_verify_part(f->dir, &m, 0, true, &err), HALE_OK);
}

int main(void)
{
#define WITH_IMAGES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    WITH_IMAGES(whole_images_are_accepted),
	    WITH_IMAGES(a_valid_image_of_another_checkpoint_is_refused),
	    WITH_IMAGES(flips_cuts_and_missing_files_are_told_apart),
	    WITH_IMAGES(a_part_is_looked_for_in_its_checkpoint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
