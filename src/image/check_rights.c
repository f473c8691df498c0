// SPDX-License-Identifier: BSD-3-Clause
/* Has a thread other rights, or another view of the system, than a process of the job begins with?
 * A rollback would give back what it has given up. Asked from outside; who asks is what processes
 * of the job are started by, and has what they begin with. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "image/capture.h"

enum { KCMP_FILES = 2, KCMP_FS = 3, LINK_MAX_LEN = 64 };

/* Lines of /proc/PID/status. */
static const struct {
	const char *key, *name;
} rights[] = {
    {"\nUid:\t", "the user"},
    {"\nGid:\t", "the group"},
    {"\nGroups:\t", "the groups"},
    {"\nCapInh:\t", "the inheritable capabilities"},
    {"\nCapPrm:\t", "the capabilities"},
    {"\nCapEff:\t", "the effective capabilities"},
    {"\nCapBnd:\t", "the bounding set of capabilities"},
    {"\nCapAmb:\t", "the ambient capabilities"},
};

static bool same_line(const char *a, const char *b, const char *key)
{
	const char *x = strstr(a, key), *y = strstr(b, key);
	if (!x || !y)
		return true; /* a kernel without it */
	for (x += strlen(key), y += strlen(key); *x == *y && *x && *x != '\n'; x++, y++)
		;
	return *x == *y;
}

static const char *const namespaces[] = {"ipc",	 "mnt",	 "net", "pid",	 "pid_for_children",
					 "user", "time", "uts", "cgroup"};

static bool same_namespace(pid_t pid, const char *tid, const char *name)
{
	char path[96], own[LINK_MAX_LEN] = "", there[LINK_MAX_LEN] = "";
	fmt_print(path, sizeof(path), "/proc/thread-self/ns/%s", name);
	if (sys(SYS_readlinkat, AT_FDCWD, path, own, sizeof(own) - 1) <= 0)
		return true;
	fmt_print(path, sizeof(path), "/proc/%d/task/%.20s/ns/%s", (int)pid, tid, name);
	return sys(SYS_readlinkat, AT_FDCWD, path, there, sizeof(there) - 1) <= 0 ||
	       !strcmp(own, there);
}

static bool same_root(pid_t pid, const char *tid)
{
	char path[96];
	struct stat own = {0}, there = {0};
	fmt_print(path, sizeof(path), "/proc/%d/task/%.20s/root", (int)pid, tid);
	return sys(SYS_newfstatat, AT_FDCWD, "/proc/thread-self/root", &own, 0) ||
	       sys(SYS_newfstatat, AT_FDCWD, path, &there, 0) ||
	       (own.st_dev == there.st_dev && own.st_ino == there.st_ino);
}

/* With another thread of its process; an error: the kernel, or its configuration, does not say. */
static bool has_own(int thread, int of, int what)
{
	return of && thread != of && sys(SYS_kcmp, thread, of, what, 0, 0) > 0;
}

hale_status_t rights_check(pid_t pid, const char *tid, int of, const char *status, const char *own,
			   struct error *err)
{
	int thread = (int)strtol(tid, NULL, 10);
	for (size_t i = 0; i < ARRAY_LEN(rights); i++)
		if (!same_line(status, own, rights[i].key))
			return error_set(err, HALE_ERR_UNSUPPORTED,
					 "%s of its thread %d are not those that it was started "
					 "with, and a rollback would give back what it has given "
					 "up; start the program as that user, with these rights",
					 rights[i].name, thread);
	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
		if (!same_namespace(pid, tid, namespaces[i]))
			return error_set(err, HALE_ERR_UNSUPPORTED,
					 "its thread %d has a namespace of its own (%s), which "
					 "can't be saved; start hale in that namespace",
					 thread, namespaces[i]);
	if (!same_root(pid, tid))
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "its thread %d has a root folder of its own (chroot), which can't "
				 "be saved; start hale in that root",
				 thread);
	if (has_own(thread, of, KCMP_FILES) || has_own(thread, of, KCMP_FS))
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "its thread %d has %s of its own (unshare), which can't be saved",
				 thread,
				 has_own(thread, of, KCMP_FILES) ? "descriptors" : "a folder");
	return HALE_OK;
}
