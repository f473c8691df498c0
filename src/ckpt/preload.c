// SPDX-License-Identifier: BSD-3-Clause
/* libhale.so is preloaded into every process under `hale run`, and its constructor runs before any
 * other library's. It does nothing in a process that is no rank; becomes another process when it
 * is a sink; connects at once when a program without MPI is the rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "ckpt/clocks.h"
#include "ckpt/files.h"
#include "ckpt/kernel_ipc.h"
#include "ckpt/libc_replay.h"
#include "ckpt/migrate.h"
#include "ckpt/owners.h"
#include "ckpt/rank_private.h"
#include "ckpt/stand.h"
#include "image/image.h"
#include "image/tree/tree.h"
#include "journal/journal.h"

static bool image_is_bad(hale_status_t code)
{
	return code == HALE_ERR_IMAGE_TORN || code == HALE_ERR_IMAGE_CORRUPT ||
	       code == HALE_ERR_IMAGE_MISSING;
}

/* "PATH=CHECKSUM", 16 digits of it, in place; false: it is not that. */
static bool take_sum(char *text, uint64_t *sum)
{
	char *equals = strrchr(text, '='), *end;
	if (!equals || strlen(equals + 1) != 16)
		return false;
	*sum = strtoull(equals + 1, &end, 16);
	*equals = 0;
	return !*end;
}

/* HALE_SINK = "full|lazy:PATH=SUM[:PATH=SUM…]", "live:STREAM", "member:CONTROL:IMAGE", "stand" */
static void sink(const char *spec)
{
	static char text[16384];
	const char *paths[IMAGE_CHAIN_MAX];
	uint64_t sums[IMAGE_CHAIN_MAX];
	bool good = true;
	size_t count = 0;
	struct error err = {HALE_OK, "HALE_SINK can't be read"};
	struct link_address address;
	if (!strncmp(spec, "live:", 5))
		migrate_sink(spec + 5, &err);
	else if (!strncmp(spec, "member:", 7))
		tree_member_sink(spec + 7, &err);
	else if (strlen(spec) < sizeof(text) && link_address_from_env(&address) &&
		 image_pass(&address, sizeof(address)) == HALE_OK) {
		image_meet(&address, offsetof(struct link_address, journal));
		memcpy(text, spec, strlen(spec) + 1);
		char *rest = strchr(text, ':');
		while (rest && count < IMAGE_CHAIN_MAX) {
			*rest++ = 0;
			paths[count++] = rest;
			rest = strchr(rest, ':');
		}
		for (size_t i = 0; i < count; i++)
			good = take_sum((char *)(uintptr_t)paths[i], &sums[i]) && good;
		if (count && good)
			image_sink(paths, sums, count,
				   strcmp(text, "lazy") ? IMAGE_FULL : IMAGE_LAZY, &err);
	}
	log_warn("this process can't be rebuilt from its image: %s", err.text);
	_exit(image_is_bad(err.code) ? EXIT_IMAGE_BAD : EXIT_UNRECOVERED);
}

static void thread_restored(void)
{
	clocks_thread_restored();
	owners_thread_restored();
}

/* ---- children of a rank, which are captured with it ---- */

static bool member_busy(void)
{
	return guest_inside || guard_inside;
}

static void member_save(void)
{
	journal_child_leave();
	clocks_save();
}

static void member_restored(void)
{
	size_t len;
	const struct link_address *address = image_passed(&len);
	clocks_restored();
	owners_thread_restored();
	if (address && len >= sizeof(*address))
		journal_child_restored(address->journal);
	if (address && len >= sizeof(*address))
		writers_await_all(address);
}

__attribute__((constructor)) static void preload(int argc, char **argv, char **envp)
{
	/* -z initfirst: before libc's own constructor, which would set it */
	if (!environ)
		environ = envp;
	clocks_init();
	owners_init();
	files_init();
	kernel_ipc_init();
	libc_replay_init();
	const char *rank = getenv("HALE_RANK");
	if (!rank || !getenv("HALE_AGENT"))
		return;
	log_init_from_env();
	const char *spec = getenv("HALE_SINK");
	if (spec && !strcmp(spec, PROTO_STAND))
		spec = stand_for_order(argv[0]);
	if (spec)
		sink(spec);
	image_init(guard_thread_busy, thread_restored);
	tree_listen(&(struct tree_hooks){member_busy, member_save, member_restored});
	const char *launched = getenv("HALE_LAUNCH_PID");
	bool begins = launched && atoi(launched) == getpid();
	journal_start(getenv("HALE_JOURNAL"), (uint32_t)atoi(rank), begins);
	if (!begins)
		return;
	const char *last = getenv("HALE_CKPT_LAST");
	if (last && atoi(last) > 0)
		journal_cut((uint32_t)atoi(last));
	/* as under a terminal or mpirun: people want to see lines when they are printed */
	setvbuf(stdout, NULL, _IOLBF, 0);
	struct error err = {HALE_OK, ""};
	if (getenv("HALE_NO_MPI") && link_open(&err) != HALE_OK)
		log_warn("rank %s runs without protection: %s", rank, err.text);
}
