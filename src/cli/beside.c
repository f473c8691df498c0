/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/beside.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "launch/environment.h"
#include "node/job.h"

int cli_become(const char *program, const char *without, const char *first, const char *second)
{
	char libdir[PATH_MAX], path[PATH_MAX + 64], self[PATH_MAX];
	struct error err;
	ssize_t n;

	if (environment_find_libdir(libdir, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	snprintf(path, sizeof(path), "%s/%s", libdir, program);
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0 || access(path, X_OK) != 0) {
		log_warn("%s is not there: %s", path, without);
		return EXIT_USAGE;
	}
	self[n] = '\0';
	execl(path, program, self, first, second, (char *)NULL);
	log_warn("cannot start %s: %s", path, strerror(errno));
	return EXIT_USAGE;
}

bool cli_beside_path(const char *program, char *path, size_t size)
{
	char libdir[PATH_MAX];
	struct error err;

	if (environment_find_libdir(libdir, &err) != HALE_OK)
		return false;
	return snprintf(path, size, "%s/%s", libdir, program) < (int)size &&
	       access(path, X_OK) == 0;
}
