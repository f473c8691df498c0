// SPDX-License-Identifier: BSD-3-Clause
/* When to stop copying ahead. What a round has to send was written while the one before it was
 * sent, so rounds shrink as long as the program writes more slowly than the stream is. */
#include "image/live/live.h"

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

/* What is left is what was written since the newest round began, as fast as it was before. A
 * program that writes the same pages again and again has no more than these. */
double live_rest(const struct live_step *step, size_t count, double age)
{
	const struct live_step *now = &step[count - 1];
	double speed = count ? stream_speed(step, count) : 0;
	if (count < 2 || speed <= 0)
		return -1;
	double writes = now->interval > 0 ? (double)now->bytes / now->interval : 0;
	double most = (double)(age > 2 * now->interval ? step[0].bytes : now->bytes);
	double rest = writes * age < most ? writes * age : most;
	return FIXED_SECONDS + rest / speed;
}

/* A program that writes about as fast as the stream sends leaves as much after each round as before
 * it. Held for a while at the beginning of each, it leaves less and less. What one held round does
 * is seen in the bytes of the next. */
live_next_t live_plan(const struct live_step *step, size_t count, const struct live_bounds *bounds,
		      double *expected)
{
	double downtime = bounds->downtime > 0 ? bounds->downtime : LIVE_DOWNTIME;
	unsigned rounds = bounds->rounds ? bounds->rounds : LIVE_ROUNDS;
	*expected = -1;
	if (count < 2)
		return count && rounds <= count ? LIVE_LAST : LIVE_AGAIN;
	const struct live_step *now = &step[count - 1], *before = &step[count - 2];
	*expected = live_rest(step, count, now->seconds);
	if ((*expected >= 0 && *expected <= downtime) || count >= rounds)
		return LIVE_LAST;
	bool shrinks = (double)now->bytes < SHRINKS * (double)before->bytes;
	if (bounds->held > 0)
		return bounds->held == 1 || shrinks ? LIVE_HOLD : LIVE_LAST;
	return count >= 3 && !shrinks ? LIVE_HOLD : LIVE_AGAIN;
}
