/* SPDX-License-Identifier: BSD-3-Clause */
/* storm NAMESPACE SEVERITY [NAME]: publishes about this host as fast as it can, until SIGTERM; then
 * prints how many a second. */
#include <libftb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ended;

static void end(int sig)
{
	ended = 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	FTB_client_t me = {.client_subscription_style = "FTB_SUBSCRIPTION_NONE"};
	FTB_event_info_t info;
	FTB_client_handle_t client;
	char host[64] = "";
	double began = now();
	long n = 0;

	signal(SIGTERM, end);
	gethostname(host, sizeof(host) - 1);
	snprintf(me.event_space, sizeof(me.event_space), "%s", argv[1]);
	snprintf(info.severity, sizeof(info.severity), "%s", argv[2]);
	snprintf(info.event_name, sizeof(info.event_name), "%s", argc > 3 ? argv[3] : "STORM");
	if (FTB_Connect(&me, &client) != FTB_SUCCESS)
		return 1;
	FTB_Declare_publishable_events(client, NULL, &info, 1);
	while (!ended)
		n += HALE_FTB_Publish(client, info.event_name, 1, host, strlen(host), NULL) ==
		     FTB_SUCCESS;
	printf("%.0f events/s\n", (double)n / (now() - began));
	fflush(stdout);
	FTB_Disconnect(client);
	return 0;
}
