/* SPDX-License-Identifier: BSD-3-Clause */
/* The sample functions of seed 000, figures 2.5 to 2.7, by the five calls of snapify.h: a checkpoint
 * beside which the device process goes on, swapping out and in, and migration. libhale_offload has
 * the last three as snapify_swapout, snapify_swapin and snapify_migration.
 *
 *   cc -shared -fPIC -o object.so tests/programs/offload_object.c -I PREFIX/include
 *   cc -o snapify examples/snapify.c -I PREFIX/include -L PREFIX/lib/hale -lhale_offload
 *   hale device serve --devices 2 --listen 127.0.0.1:7420 &
 *   HALE_DEVICES=here=127.0.0.1:7420 ./snapify ./object.so /tmp/snapshot
 */
#include <snapify.h>
#include <stdio.h>
#include <stdlib.h>

/* Figure 2.5: what a checkpointer of the host process calls. Checkpoints of `hale run` do this by
 * themselves. */
static int checkpoint_callback(snapify_t *s)
{
	if (snapify_pause(s) != 0)
		return -1;
	if (snapify_capture(s, false) != 0) {
		snapify_resume(s);
		return -1;
	}
	/* here the host process would be saved, while the capture is under way */
	int rc = snapify_wait(s);

	return snapify_resume(s) == 0 ? rc : -1;
}

/* Figure 2.6: out; on failure the process goes on as before. */
static int swap_out(snapify_t *s)
{
	if (snapify_pause(s) != 0)
		return -1;
	if (snapify_capture(s, true) == 0 && snapify_wait(s) == 0)
		return 0;
	snapify_resume(s);
	return -1;
}

/* And in. */
static int swap_in(snapify_t *s, int device)
{
	return snapify_restore(s, device) == 0 && snapify_resume(s) == 0 ? 0 : -1;
}

/* Figure 2.7 */
static int migrate(snapify_t *s, int device)
{
	return swap_out(s) == 0 && swap_in(s, device) == 0 ? 0 : -1;
}

static void check(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, hale_offload_why());
	exit(1);
}

int main(int argc, char **argv)
{
	int which[2] = {0, 0}; /* of tick, in the object: a counter, rounds of work */
	long count[2];

	if (argc != 3) {
		fprintf(stderr, "snapify OBJECT FOLDER\n");
		return 64;
	}
	hale_process_t *p = hale_process_create(0, argv[1], 1 << 20);
	snapify_t s = {.m_snapshot_path = argv[2], .m_process = p};

	check(p ? 0 : -1, "create");
	hale_pipeline_t *q = hale_pipeline_create(p);
	hale_buffer_t b = hale_buffer_create(p, 4096);
	int tick = hale_function_find(p, "tick");

	for (int step = 0; step < 4; step++) {
		if (step == 1)
			check(checkpoint_callback(&s), "checkpoint");
		if (step == 2) {
			check(swap_out(&s), "swap out");
			check(swap_in(&s, 0), "swap in");
		}
		if (step == 3)
			check(migrate(&s, 1), "migrate");
		check(hale_run(q, tick, &b, 1, which, sizeof(which), count, sizeof(count)), "run");
		printf("device %d: %ld\n", hale_process_device(p), count[0]);
	}
	hale_process_destroy(p);
	return 0;
}
