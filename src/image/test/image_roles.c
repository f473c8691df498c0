// SPDX-License-Identifier: BSD-3-Clause
/* What image_test is inside the processes under test: they are captured, or become what was. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fmt.h"
#include "image/image.h"
#include "image/test/scenario.h"

static uint32_t count, tracked;

uint32_t taken(void)
{
	return count;
}

static void on_written(void *arg, const struct image_result *r)
{
	char path[PATH_LEN], text[600];
	fmt_print(path, sizeof(path), "%s/%u.done", scenario_folder, *(uint32_t *)arg);
	size_t n = fmt_print(text, sizeof(text), "%d %lx %u %s", (int)r->error.code,
			     (unsigned long)r->checksum, r->base, r->error.text);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (write(fd, text, n) != (ssize_t)n)
		log_warn("can't report");
	close(fd);
}

static void await_report(uint32_t id)
{
	char path[PATH_LEN];
	struct stat st = {0};
	snprintf(path, sizeof(path), "%s/%u.done", scenario_folder, id);
	for (int i = 0; i < 30000 && (stat(path, &st) || !st.st_size); i++)
		usleep(1000);
	CHECK(!stat(path, &st) && st.st_size);
}

bool take(void)
{
	char path[PATH_LEN];
	struct error err = {HALE_OK, ""};
	uint32_t id = ++count;
	snprintf(path, sizeof(path), "%s/%u.done", scenario_folder, id);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%u", scenario_folder, id);
	struct image_params p = {
	    .identity = {.job = "test", .nranks = 1, .id = id, .base = tracked},
	    .path = path,
	    .mode = strstr(scenario_mode, "sync") ? IMAGE_SYNC : IMAGE_FORKED,
	    .compress = strstr(scenario_mode, "lz4")	? IMAGE_LZ4
			: strstr(scenario_mode, "zstd") ? IMAGE_ZSTD
							: IMAGE_PLAIN,
	    .incremental = tracked != 0,
	    .track = strstr(scenario_mode, "track") != NULL,
	    .note = "a note",
	    .note_len = 6,
	    .written = on_written,
	    .arg = &id};
	if (!tracked)
		p.identity.base = 0;
	CHECK(image_park() == 0);
	image_return_t rc = image_capture(&p, NULL, &err);
	image_unpark();
	if (rc == IMAGE_FAILED) {
		fprintf(stderr, "%s\n", err.text);
		_exit((int)err.code);
	}
	tracked = p.track && rc == IMAGE_CAPTURED ? id : 0;
	if (rc == IMAGE_CAPTURED)
		await_report(id);
	return rc == IMAGE_RESTORED;
}

__attribute__((constructor)) static void become(void)
{
	const char *sink = getenv("T_SINK");
	static char text[16384];
	const char *paths[IMAGE_CHAIN_MAX];
	size_t n = 0;
	struct error err;
	bool under_test = scenario_enter();
	if (!sink) {
		if (under_test)
			image_init(NULL, NULL);
		return;
	}
	strncpy(text, sink, sizeof(text) - 1);
	for (char *p = strtok(text, ":"); p; p = strtok(NULL, ":"))
		paths[n++] = p;
	image_sink(paths, NULL, n, strstr(scenario_mode, "lazy") ? IMAGE_LAZY : IMAGE_FULL, &err);
	fprintf(stderr, "%s\n", err.text);
	_exit((int)err.code);
}
