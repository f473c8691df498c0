/* SPDX-License-Identifier: BSD-3-Clause */
/* The ends of the backplane's measurements.
 *
 *   ftbbench pub RATE COUNT   publishes COUNT events, RATE a second (0: as fast as it goes); prints
 *                             published refused seconds cpu_seconds
 *   ftbbench sub              receives until a second after the last one; prints
 *                             received lost seconds p10_us p50_us p90_us p99_us cpu_seconds
 *   ftbbench both RATE COUNT  publishes a WARNING and an INFO in turn, numbered; prints published
 *   ftbbench check COUNT      receives them until three seconds after the last one, at least until
 *                             all of the WARNINGs are there, at most a minute; prints
 *                             warnings missing_warnings doubled_warnings infos doubled_infos
 *                             longest_gap_s latest_warning_s (published to received)
 *   ftbbench spin             keeps a core from idling
 *
 * The payload is the time of publishing, and a number. */
#include <libftb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { KEEP = 1 << 20 };

struct load {
	double when;
	long number;
};

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

static void wait_until(double when)
{
	double wait = when - now();
	struct timespec ts = {.tv_sec = wait > 0 ? (time_t)wait : 0};

	ts.tv_nsec = wait > 0 ? (long)((wait - (double)ts.tv_sec) * 1e9) : 0;
	if (wait > 0)
		nanosleep(&ts, NULL);
}

static int publish(double rate, long count, int both)
{
	FTB_event_info_t info[] = {{"TICK", "INFO"}, {"BELL", "WARNING"}};
	FTB_client_handle_t c = join("FTB_SUBSCRIPTION_NONE");
	double start = now();
	struct load l;
	long refused = 0;

	FTB_Declare_publishable_events(c, NULL, info, 2);
	for (long i = 0; i < count; i++) {
		if (rate > 0)
			wait_until(start + (double)i / rate);
		l = (struct load){.when = now(), .number = i};
		refused += HALE_FTB_Publish(c, both && i % 2 == 0 ? "BELL" : "TICK", 1, &l,
					    sizeof(l), NULL) != FTB_SUCCESS;
	}
	start = now() - start;
	FTB_Disconnect(c);
	printf("%ld %ld %.6f %.6f\n", count, refused, start, cpu());
	return 0;
}

/* ---- receiving ---- */

static double first, last, gap, latest, *late;
static volatile long received, kinds[2], doubled[2];
static unsigned char *seen;
static long expected;

static void take(const FTB_receive_event_t *e, const void *payload, size_t length, void *arg)
{
	struct load l;
	int warning = e->severity[0] == 'W';

	(void)arg;
	if (length != sizeof(l))
		return;
	memcpy(&l, payload, sizeof(l));
	if (received && now() - last > gap)
		gap = now() - last;
	last = now();
	if (received == 0)
		first = last;
	late[received % KEEP] = last - l.when;
	if (warning && last - l.when > latest)
		latest = last - l.when;
	if (seen && l.number >= 0 && l.number < expected) {
		doubled[warning] += seen[l.number] != 0;
		kinds[warning] += seen[l.number] == 0;
		seen[l.number] = 1;
	}
	received++;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void begin(FTB_client_handle_t *c)
{
	FTB_subscribe_handle_t s;

	*c = join("FTB_SUBSCRIPTION_NOTIFY");
	late = calloc(KEEP, sizeof(double));
	if (!late || HALE_FTB_Subscribe(&s, *c, "event_space=FTB.BENCH", take, NULL) != FTB_SUCCESS)
		exit(1);
	puts("ready");
	fflush(stdout);
}

static int subscribe(void)
{
	FTB_client_handle_t c;
	uint64_t lost = 0, above = 0;
	long had = 0, n;

	begin(&c);
	while (received == 0 || received != had) {
		had = received;
		sleep(1);
	}
	HALE_FTB_Lost(c, &lost, &above);
	FTB_Disconnect(c);
	n = received < KEEP ? received : KEEP;
	qsort(late, (size_t)n, sizeof(double), order);
	printf("%ld %lu %.6f %.1f %.1f %.1f %.1f %.6f\n", received, (unsigned long)(lost + above),
	       last - first, late[n / 10] * 1e6, late[n / 2] * 1e6, late[n * 9 / 10] * 1e6,
	       late[n * 99 / 100] * 1e6, cpu());
	free(late);
	return 0;
}

static int check(long count)
{
	long warnings = (count + 1) / 2;
	FTB_client_handle_t c;
	double end;

	expected = count;
	seen = calloc((size_t)count + 1, 1);
	begin(&c);
	end = now() + 60;
	while (now() < end && (received == 0 || kinds[1] < warnings || now() - last < 3))
		usleep(50000);
	FTB_Disconnect(c);
	printf("%ld %ld %ld %ld %ld %.6f %.6f\n", kinds[1], warnings - kinds[1], doubled[1],
	       kinds[0], doubled[0], gap, latest);
	free(seen);
	free(late);
	return 0;
}

static int spin(void)
{
	for (volatile unsigned long i = 0;; i++)
		;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "pub") == 0)
		return publish(atof(argv[2]), atol(argv[3]), 0);
	if (argc == 4 && strcmp(argv[1], "both") == 0)
		return publish(atof(argv[2]), atol(argv[3]), 1);
	if (argc == 2 && strcmp(argv[1], "sub") == 0)
		return subscribe();
	if (argc == 3 && strcmp(argv[1], "check") == 0)
		return check(atol(argv[2]));
	if (argc == 2 && strcmp(argv[1], "spin") == 0)
		return spin();
	fputs("usage: ftbbench pub RATE COUNT | sub | both RATE COUNT | check COUNT | spin\n",
	      stderr);
	return 64;
}
