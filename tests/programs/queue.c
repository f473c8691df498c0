/* SPDX-License-Identifier: BSD-3-Clause */
/* Has a POSIX message queue open until its first argument, a file, is there. With "gone" as a second
 * one the queue has no name any more; with "told" the process is to be told of messages. */
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 64};
	char name[64], got[64];
	mqd_t q;

	snprintf(name, sizeof(name), "/hale-test.%d", (int)getpid());
	q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	if (q < 0 || mq_send(q, "kept", 5, 0) != 0) {
		perror("mq_open");
		return 2;
	}
	if (argc > 2 && !strcmp(argv[2], "gone"))
		mq_unlink(name);
	if (argc > 2 && !strcmp(argv[2], "told")) {
		struct sigevent none = {.sigev_notify = SIGEV_NONE};
		mq_notify(q, &none);
	}
	puts("begun");
	fflush(stdout);
	while (access(argv[1], F_OK) != 0)
		usleep(10000);
	puts(mq_receive(q, got, sizeof(got), NULL) == 5 ? got : "lost");
	mq_close(q);
	mq_unlink(name);
	return 0;
}
