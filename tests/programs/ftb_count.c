/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes numbered events: ftb_count NAMESPACE SEVERITY COUNT MICROSECONDS-BETWEEN [SIZE]; the
 * payload is the number, filled up to SIZE bytes. Ends early, saying how many it published, when
 * the file "stop" is there. */
#include <libftb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	FTB_client_t me = {.client_name = "count",
			   .client_subscription_style = "FTB_SUBSCRIPTION_NONE"};
	FTB_event_info_t info = {.event_name = "COUNT"};
	FTB_client_handle_t client;
	static char payload[HALE_FTB_MAX_PAYLOAD];
	long count = atol(argv[3]), pause = atol(argv[4]), n = 0, refused = 0;
	size_t size = argc > 5 ? (size_t)atol(argv[5]) : 0;
	int ret;

	strcpy(me.event_space, argv[1]);
	strcpy(info.severity, argv[2]);
	ret = FTB_Connect(&me, &client);
	if (ret != FTB_SUCCESS) {
		fprintf(stderr, "connect: %s\n", HALE_FTB_Error_text(ret));
		return 1;
	}
	FTB_Declare_publishable_events(client, NULL, &info, 1);
	puts("connected");
	fflush(stdout);
	while (n < count && (pause == 0 || access("stop", F_OK) != 0)) {
		size_t len = (size_t)sprintf(payload, "%ld", ++n);

		if (len < size) {
			memset(payload + len, ' ', size - len);
			len = size;
		}
		refused += HALE_FTB_Publish(client, "COUNT", 1, payload, len, NULL) != FTB_SUCCESS;
		if (pause)
			usleep((useconds_t)pause);
	}
	FTB_Disconnect(client);
	printf("published %ld refused %ld\n", n, refused);
	return 0;
}
