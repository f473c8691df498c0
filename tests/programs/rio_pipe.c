// SPDX-License-Identifier: BSD-3-Clause
/* Remote files by the plain calls of descriptors.
 *
 *   rio_pipe read NODE PATH               the file to stdout
 *   rio_pipe write|whole NODE PATH        stdin to the file; ends with rio_close
 *   rio_pipe plain NODE PATH              the same, ends with close(2)
 *   rio_pipe slow NODE PATH               writes 64 KiB every 10 ms until an error
 *
 * The last line on stderr is "ok BYTES" or "CALL ERRNO far ERRNO: sentence". */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hale/rio.h"

static char buffer[1 << 16];

static int failed(const char *call, int fd)
{
	int here = errno, far = fd >= 0 ? rio_error(fd) : 0;

	fprintf(stderr, "%s %s far %s: %s\n", call, strerrorname_np(here),
		far ? strerrorname_np(far) : "0", rio_why());
	return 1;
}

static int pour(int in, int out, int fd, int slow)
{
	struct timespec pause = {0, 10000000};
	long total = 0;
	ssize_t n = sizeof(buffer);

	for (;;) {
		if (slow)
			nanosleep(&pause, NULL);
		else
			n = read(in, buffer, sizeof(buffer));
		if (n < 0)
			return failed("read", fd);
		if (n == 0)
			break;
		for (ssize_t done = 0, k; done < n; done += k) {
			k = write(out, buffer + done, (size_t)(n - done));
			if (k < 0)
				return failed("write", fd);
			if (slow && total == 0)
				puts("writing"), fflush(stdout);
		}
		total += n;
	}
	fprintf(stderr, "ok %ld\n", total);
	return 0;
}

int main(int argc, char **argv)
{
	int reads = strcmp(argv[1], "read") == 0, slow = strcmp(argv[1], "slow") == 0;
	int mode = reads ? RIO_READ : RIO_WRITE | (strcmp(argv[1], "whole") == 0 ? RIO_WHOLE : 0);
	int fd = rio_open(argv[2], argv[3], mode);

	if (fd < 0)
		return failed("open", -1);
	if (pour(reads ? fd : 0, reads ? 1 : fd, fd, slow) != 0)
		return 1;
	if (strcmp(argv[1], "plain") == 0)
		return close(fd);
	if (rio_close(fd) != 0)
		return failed("close", -1);
	return 0;
}
