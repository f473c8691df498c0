// SPDX-License-Identifier: BSD-3-Clause
/* When to stop copying ahead. What a round has to send was written while the one before it was
 * sent, so rounds shrink as long as the program writes more slowly than the stream is. */
#include "image/live.h"

/* Stopping, tables, descriptors, putting memory into place: what a last round without any pages
 * takes. */
#define FIXED_SECONDS 0.01
/* A round of less than nine tenths of the one before it is worth another one. */
#define SHRINKS 0.9
/* Smaller rounds say more about latency than about the stream's speed. */
#define TELLING_BYTES (1u << 20)

static double stream_speed(const struct live_step *step, size_t count)
{
	for (size_t i = count; i-- > 0;)
		if (step[i].bytes >= TELLING_BYTES && step[i].seconds > 0)
			return (double)step[i].bytes / step[i].seconds;
	return step[0].seconds > 0 ? (double)step[0].bytes / step[0].seconds : 0;
}

live_next_t live_plan(const struct live_step *step, size_t count, const struct live_bounds *bounds,
		      double *expected)
{
	double downtime = bounds->downtime > 0 ? bounds->downtime : LIVE_DOWNTIME;
	unsigned rounds = bounds->rounds ? bounds->rounds : LIVE_ROUNDS;
	*expected = -1;
	if (count < 2)
		return count && rounds <= count ? LIVE_LAST : LIVE_AGAIN;
	const struct live_step *now = &step[count - 1], *before = &step[count - 2];
	double speed = stream_speed(step, count);
	double writes = now->interval > 0 ? (double)now->bytes / now->interval : 0;
	/* a program that writes the same pages again and again has no more than these */
	double rest =
	    writes * now->seconds < (double)now->bytes ? writes * now->seconds : (double)now->bytes;
	if (speed > 0)
		*expected = FIXED_SECONDS + rest / speed;
	if ((*expected >= 0 && *expected <= downtime) || count >= rounds)
		return LIVE_LAST;
	bool shrinks = (double)now->bytes < SHRINKS * (double)before->bytes;
	return count >= 3 && !shrinks ? LIVE_LAST : LIVE_AGAIN;
}
