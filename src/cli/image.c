/* SPDX-License-Identifier: BSD-3-Clause */
/* hale image show, hale image verify. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "cli/cli.h"
#include "image/image.h"
#include "node/job.h"

static bool is_there(const char *path)
{
	if (access(path, F_OK) == 0)
		return true;
	log_warn("there is no file '%s'; images are FOLDER/JOB/ID/rank-R.img, where FOLDER is "
		 "--ckpt-dir (hale-ckpt)",
		 path);
	return false;
}

static int show(const char *path, bool json)
{
	struct error err;

	if (!is_there(path))
		return EXIT_USAGE;
	if (image_show(path, json, &err) == HALE_OK)
		return 0;
	log_warn("%s", err.text);
	return 1;
}

static int verify(const char *path)
{
	struct error err;
	uint64_t checksum;

	if (!is_there(path))
		return EXIT_USAGE;
	if (image_verify(path, &checksum, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return 1;
	}
	printf("%s: good, xxh3 %016" PRIx64 "\n", path, checksum);
	return 0;
}

int cli_image(int argc, char **argv)
{
	bool json = argc > 2 && strcmp(argv[2], "--json") == 0;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return cli_help("image");
	if (argc == 3 + json && strcmp(argv[1], "show") == 0)
		return show(argv[2 + json], json);
	if (argc == 3 && strcmp(argv[1], "verify") == 0)
		return verify(argv[2]);
	log_warn("hale image takes show or verify and a file; `hale help image` says how");
	return EXIT_USAGE;
}
