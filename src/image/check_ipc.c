// SPDX-License-Identifier: BSD-3-Clause
/* What a process uses of the kernel that belongs to no descriptor and no mapping of its own: System
 * V message queues and semaphores outlive it, so a rollback would find them as they are and not as
 * they were. The kernel remembers who used one last. */
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

#include "base/fmt.h"
#include "image/engine.h"

enum { STAT_START = 22 }; /* proc(5) */

/* When it began, in seconds of the time of day: what was used before was used by another process of
 * that number. 0: unknown. */
static int64_t process_began(pid_t pid)
{
	char path[64], text[1024];
	struct timespec now, up;
	long long ticks = 0;
	fmt_print(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (sys_read_small(path, text, sizeof(text)) <= 0)
		return 0;
	char *field = strrchr(text, ')');
	for (int i = 2; i < STAT_START && field; i++)
		if ((field = strchr(field, ' ')))
			field++;
	if (!field || sscanf(field, "%lld", &ticks) != 1)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return now.tv_sec - up.tv_sec + ticks / sysconf(_SC_CLK_TCK) - 1;
}

static hale_status_t ipc_refuse(const char *what, long id, struct error *err)
{
	return error_set(err, HALE_ERR_UNSUPPORTED,
			 "it uses System V %s %ld, which outlive processes and can't be saved; use "
			 "others, or do without --ckpt-every",
			 what, id);
}

/* key msqid perms cbytes qnum lspid lrpid uid gid cuid cgid stime rtime ctime */
static hale_status_t queues_check(pid_t pid, int64_t began, struct error *err)
{
	char line[256];
	hale_status_t rc = HALE_OK;
	FILE *f = fopen("/proc/sysvipc/msg", "re");
	while (f && rc == HALE_OK && fgets(line, sizeof(line), f)) {
		long id, sender, receiver, sent, received;
		if (sscanf(line, "%*d %ld %*o %*u %*u %ld %ld %*u %*u %*u %*u %ld %ld", &id,
			   &sender, &receiver, &sent, &received) == 5 &&
		    ((sender == pid && sent >= began) || (receiver == pid && received >= began)))
			rc = ipc_refuse("message queue", id, err);
	}
	if (f)
		fclose(f);
	return rc;
}

static bool semaphores_used(int id, long count, pid_t pid)
{
	for (int i = 0; i < count; i++)
		if (semctl(id, i, GETPID) == pid)
			return true;
	return false;
}

/* key semid perms nsems uid gid cuid cgid otime ctime */
static hale_status_t semaphores_check(pid_t pid, int64_t began, struct error *err)
{
	char line[256];
	hale_status_t rc = HALE_OK;
	FILE *f = fopen("/proc/sysvipc/sem", "re");
	while (f && rc == HALE_OK && fgets(line, sizeof(line), f)) {
		long id, count, used, changed;
		if (sscanf(line, "%*d %ld %*o %ld %*u %*u %*u %*u %ld %ld", &id, &count, &used,
			   &changed) == 4 &&
		    (used >= began || changed >= began) && semaphores_used((int)id, count, pid))
			rc = ipc_refuse("semaphores", id, err);
	}
	if (f)
		fclose(f);
	return rc;
}

hale_status_t image_check_ipc(pid_t pid, struct error *err)
{
	int64_t began = process_began(pid);
	hale_status_t rc = queues_check(pid, began, err);
	return rc == HALE_OK ? semaphores_check(pid, began, err) : rc;
}
