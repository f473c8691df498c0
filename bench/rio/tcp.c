/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp serve PORT FOLDER; tcp put|get ADDRESS PORT FILE: a file over a plain connection, 1 MiB at a time;
 * says how many seconds that took. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "seconds.h"

static char buffer[1 << 20];

static void pour(int from, int to)
{
	ssize_t n;

	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		for (ssize_t done = 0, k; done < n; done += k)
			if ((k = write(to, buffer + done, (size_t)(n - done))) < 0)
				exit((perror("write"), 1));
	if (n < 0)
		exit((perror("read"), 1));
}

static void serve_one(int c, const char *folder)
{
	char path[4096], order;
	int file;

	snprintf(path, sizeof(path), "%s/copy", folder);
	if (read(c, &order, 1) != 1)
		return;
	file = order == 'p' ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : open(path, O_RDONLY);
	if (order == 'p') {
		pour(c, file);
		if (write(c, "k", 1) != 1)
			perror("answer");
	} else {
		pour(file, c);
	}
	close(file);
}

int main(int argc, char **argv)
{
	int serve = strcmp(argv[1], "serve") == 0, put = strcmp(argv[1], "put") == 0, on = 1, file;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[serve ? 2 : 3]))};
	double began = seconds();
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char answer;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (serve) {
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(fd, 4) != 0)
			return perror("listen"), 1;
		for (;;) {
			int c = accept(fd, NULL, NULL);

			serve_one(c, argv[3]);
			close(c);
		}
	}
	inet_pton(AF_INET, argv[2], &a.sin_addr);
	file = put ? open(argv[4], O_RDONLY) : open(argv[4], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || write(fd, put ? "p" : "g", 1) != 1)
		return perror("connect"), 1;
	if (put) {
		pour(file, fd);
		shutdown(fd, SHUT_WR);
		if (read(fd, &answer, 1) != 1)
			return perror("answer"), 1;
	} else {
		pour(fd, file);
	}
	printf("%.6f\n", seconds() - began);
	return 0;
}
