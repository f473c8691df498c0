/* SPDX-License-Identifier: BSD-3-Clause */
/* A program without MPI whose main thread ends first: another one counts, a line each, until the
 * file "stop" is there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *count(void *arg)
{
	(void)arg;
	for (int i = 0; access("stop", F_OK); i++) {
		printf("%d\n", i);
		usleep(20000);
	}
	printf("done\n");
	exit(0);
}

int main(void)
{
	pthread_t t;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pthread_create(&t, NULL, count, NULL))
		return 1;
	pthread_exit(NULL);
}
