/* SPDX-License-Identifier: BSD-3-Clause */
/* rio put|get NODE PATH FILE: by the plain calls of a descriptor, 1 MiB at a time; says how many seconds that took. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "seconds.h"
#include "hale/rio.h"

static char buffer[1 << 20];

int main(int argc, char **argv)
{
	int put = strcmp(argv[1], "put") == 0;
	double began = seconds();
	int fd = rio_open(argv[2], argv[3], put ? RIO_WRITE : RIO_READ);
	int file = put ? open(argv[4], O_RDONLY) : open(argv[4], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t n;

	if (fd < 0 || file < 0)
		return fprintf(stderr, "%s\n", rio_why()), 1;
	while ((n = read(put ? file : fd, buffer, sizeof(buffer))) > 0)
		for (ssize_t done = 0, k; done < n; done += k)
			if ((k = write(put ? fd : file, buffer + done, (size_t)(n - done))) < 0)
				return perror("write"), 1;
	if (n < 0 || rio_close(fd) != 0)
		return fprintf(stderr, "%s\n", rio_why()), 1;
	printf("%.6f\n", seconds() - began);
	return 0;
}
