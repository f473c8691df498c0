/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of the backplane's measurements.
 *
 *   ftbbench pub RATE COUNT     publishes COUNT events, RATE a second (0: as fast as it goes);
 * prints published refused seconds cpu_seconds ftbbench sub                receives until a second
 * after the last one; prints received lost seconds p50_us p99_us cpu_seconds The payload is the
 * time of publishing. */
#include <libftb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { KEEP = 1 << 20 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static FTB_client_handle_t join(const char *style)
{
	FTB_client_t me = {.event_space = "FTB.BENCH"};
	FTB_client_handle_t c;
	int ret;

	strcpy(me.client_subscription_style, style);
	ret = FTB_Connect(&me, &c);
	if (ret != FTB_SUCCESS) {
		fprintf(stderr, "ftbbench: %s\n", HALE_FTB_Error_text(ret));
		exit(1);
	}
	return c;
}

static int publish(double rate, long count)
{
	FTB_event_info_t info = {"TICK", "INFO"};
	FTB_client_handle_t c = join("FTB_SUBSCRIPTION_NONE");
	double start = now(), t;
	long refused = 0;

	FTB_Declare_publishable_events(c, NULL, &info, 1);
	for (long i = 0; i < count; i++) {
		if (rate > 0) {
			double wait = start + (double)i / rate - now();
			struct timespec ts = {.tv_nsec =
						  wait > 0 ? (long)(wait * 1e9) % 1000000000 : 0,
					      .tv_sec = wait > 0 ? (time_t)wait : 0};
			if (wait > 0)
				nanosleep(&ts, NULL);
		}
		t = now();
		refused += HALE_FTB_Publish(c, "TICK", 1, &t, sizeof(t), NULL) != FTB_SUCCESS;
	}
	t = now() - start;
	FTB_Disconnect(c);
	printf("%ld %ld %.6f %.6f\n", count, refused, t, cpu());
	return 0;
}

static double first, last, *late;
static volatile long received;

static void take(const FTB_receive_event_t *e, const void *payload, size_t length, void *arg)
{
	double t;

	memcpy(&t, payload, sizeof(t));
	last = now();
	if (received == 0)
		first = last;
	late[received % KEEP] = last - t;
	received++;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int subscribe(void)
{
	FTB_client_handle_t c = join("FTB_SUBSCRIPTION_NOTIFY");
	FTB_subscribe_handle_t s;
	uint64_t lost = 0, above = 0;
	long seen = 0, n;

	late = calloc(KEEP, sizeof(double));
	HALE_FTB_Subscribe(&s, c, "event_space=FTB.BENCH", take, NULL);
	puts("ready");
	fflush(stdout);
	while (received == 0 || received != seen) {
		seen = received;
		sleep(1);
	}
	HALE_FTB_Lost(c, &lost, &above);
	FTB_Disconnect(c);
	n = received < KEEP ? received : KEEP;
	qsort(late, (size_t)n, sizeof(double), order);
	printf("%ld %lu %.6f %.1f %.1f %.6f\n", received, (unsigned long)(lost + above),
	       last - first, late[n / 2] * 1e6, late[n * 99 / 100] * 1e6, cpu());
	free(late);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "pub") == 0)
		return publish(atof(argv[2]), atol(argv[3]));
	if (argc == 2 && strcmp(argv[1], "sub") == 0)
		return subscribe();
	fputs("usage: ftbbench pub RATE COUNT | ftbbench sub\n", stderr);
	return 64;
}
