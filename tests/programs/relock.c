// SPDX-License-Identifier: BSD-3-Clause
/* relock FILE: opens and locks the file, listens at an address, closes both, again and again, until
 * the file $STOP is there. A descriptor that is closed has neither lock nor address any more, also
 * while a checkpoint is written. Prints how often it had. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 64 << 20 };

/* port 0: any, which it returns; 0: the address is taken */
static int listens_at(int port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t len = sizeof(sa);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int s = socket(AF_INET, SOCK_STREAM, 0);
	int good = !bind(s, (struct sockaddr *)&sa, len) && !listen(s, 1) &&
		   !getsockname(s, (struct sockaddr *)&sa, &len);
	close(s);
	return good ? ntohs(sa.sin_port) : 0;
}

static int locks(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	int good = fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB);
	close(fd);
	return good;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	char *memory = malloc(BYTES);
	memset(memory, 1, BYTES);
	long unlocked = 0, unheard = 0;
	int port = listens_at(0);
	for (long i = 0; access(getenv("STOP"), F_OK); i++) {
		memory[i * 4096 % BYTES]++;
		unlocked += !locks(argv[1]);
		unheard += !listens_at(port);
		if (i == 0) {
			printf("runs\n");
			fflush(stdout);
		}
	}
	printf("%ld locks and %ld addresses were taken still\n", unlocked, unheard);
	MPI_Finalize();
	return 0;
}
