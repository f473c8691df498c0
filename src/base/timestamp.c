/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/timestamp.h"

#include <stdio.h>
#include <time.h>

int64_t timestamp_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

char *timestamp_print(char text[TIMESTAMP_SIZE], int64_t ms)
{
	struct tm tm;
	size_t n;

	localtime_r(&(time_t){ms / 1000}, &tm);
	n = strftime(text, TIMESTAMP_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, TIMESTAMP_SIZE - n, ".%03d", (int)(ms % 1000));
	return text;
}
