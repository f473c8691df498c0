/* SPDX-License-Identifier: BSD-3-Clause */
/* The source, whose scenario calls take(), and the sink, which becomes its copy. */
#include "image/test/live_roles.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "image/live/live.h"
#include "image/test/scenario.h"

void (*between)(unsigned round);

uint32_t taken(void)
{
	return 1;
}

static void fails(const struct error *err)
{
	fprintf(stderr, "stays: %s\n", err->text);
}

static bool await_round(void)
{
	live_progress_t p;
	while ((p = live_progress(NULL)) == LIVE_WRITING)
		usleep(1000);
	return p == LIVE_WRITTEN;
}

static image_return_t one_round(bool last, struct error *err)
{
	CHECK(image_park() == 0);
	image_return_t rc = live_round(last, NULL, 0, NULL, err);
	if (!last || rc != IMAGE_CAPTURED || strstr(scenario_mode, "clone"))
		image_unpark();
	return rc;
}

/* Back here: in the copy, or in the source that stays; a source that has moved is no more. */
static bool finish(struct error *err)
{
	live_verdict_t v;
	while ((v = live_finish(err)) == LIVE_UNKNOWN) {
		fprintf(stderr, "unknown\n");
		if (strstr(scenario_mode, "unknown"))
			_exit(7);
	}
	if (v == LIVE_MOVED)
		_exit(EXIT_MOVED);
	image_unpark();
	fails(err);
	return false;
}

/* In the process that writes: what the sink had already. */
static void round_written(void *arg, const struct image_result *r)
{
	if (strstr(scenario_mode, "beside") && r->pages_same)
		fprintf(stderr, "sent %lu same %lu\n", (unsigned long)r->pages_saved,
			(unsigned long)r->pages_same);
}

bool take(void)
{
	struct error err = {HALE_OK, ""};
	struct live_params p = {.fd = STREAM_FD,
				.direct = strstr(scenario_mode, "direct") != NULL,
				.then = strstr(scenario_mode, "clone") ? LIVE_THEN_GO_ON
								       : LIVE_THEN_END,
				.identity = {.job = "test", .nranks = 1, .id = 1},
				.compress = IMAGE_LZ4,
				.note = "a note",
				.note_len = 6,
				.written = round_written,
				.wait_ms = strstr(scenario_mode, "hasty") ? 300 : 0};
	if (strstr(scenario_mode, "alone"))
		return false;
	if (live_open(&p, &err) != HALE_OK) {
		fails(&err);
		return false;
	}
	for (unsigned i = 0; i <= ROUNDS; i++) {
		image_return_t rc = one_round(i == ROUNDS, &err);
		if (rc == IMAGE_RESTORED) {
			size_t len;
			const char *note = image_note(&len);
			CHECK(len == 6 && !memcmp(note, "a note", 6));
			CHECK(live_runs() && !live_is_open());
			return true;
		}
		if (rc == IMAGE_FAILED)
			goto failed;
		if (i == ROUNDS && !strstr(scenario_mode, "clone"))
			return finish(&err);
		if (!await_round()) {
			one_round(false, &err); /* says why */
			goto failed;
		}
		if (between && i < ROUNDS)
			between(i);
	}
	live_close();
	return false;
failed:
	fails(&err);
	live_close();
	image_unpark();
	return false;
}

__attribute__((constructor)) static void become(void)
{
	const char *role = getenv("T_ROLE");
	struct error err;
	if (!role)
		return;
	scenario_enter();
	if (!strcmp(role, "source")) {
		image_init(NULL, NULL);
		return;
	}
	if (strstr(scenario_mode, "small")) {
		struct rlimit limit = {8 << 20, 8 << 20};
		setrlimit(RLIMIT_DATA, &limit);
	}
	const char *beside = getenv("T_BESIDE");
	image_sink_live(STREAM_FD, beside ? atoi(beside) : 0, &err);
	fprintf(stderr, "%s\n", err.text);
	_exit((int)err.code);
}
