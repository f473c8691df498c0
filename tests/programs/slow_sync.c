// SPDX-License-Identifier: BSD-3-Clause
/* A disk that stands still: preloaded, it lets the third fsync of a process take SLOW_SYNC
 * milliseconds, and as long as there is a file SLOW_SYNC_HOLD. When it begins to, there is a file
 * SLOW_SYNC_MARK. SLOW_UNLINK: milliseconds that it takes to remove an image. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fsync(int fd)
{
	static int count;
	const char *slow = getenv("SLOW_SYNC"), *mark = getenv("SLOW_SYNC_MARK"),
		   *hold = getenv("SLOW_SYNC_HOLD");
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");

	if (slow && ++count == 3) {
		if (mark)
			close(open(mark, O_WRONLY | O_CREAT, 0600));
		usleep((useconds_t)atoi(slow) * 1000);
		while (hold && access(hold, F_OK) == 0)
			usleep(10000);
	}
	return real(fd);
}

int unlinkat(int folder, const char *name, int flags)
{
	const char *slow = getenv("SLOW_UNLINK");
	int (*real)(int, const char *, int) =
	    (int (*)(int, const char *, int))dlsym(RTLD_NEXT, "unlinkat");

	if (slow && strstr(name, ".img"))
		usleep((useconds_t)atoi(slow) * 1000);
	return real(folder, name, flags);
}
