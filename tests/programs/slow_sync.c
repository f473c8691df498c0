// SPDX-License-Identifier: BSD-3-Clause
/* A disk that stands still: preloaded, it lets the third fsync of a process take SLOW_SYNC
 * milliseconds. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int fsync(int fd)
{
	static int count;
	const char *slow = getenv("SLOW_SYNC");
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");

	if (slow && ++count == 3)
		usleep((useconds_t)atoi(slow) * 1000);
	return real(fd);
}
