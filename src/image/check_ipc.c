// SPDX-License-Identifier: BSD-3-Clause
/* System V objects are captured with the processes that use them (ipc/ipc.h). One that a process
 * outside uses, too, can't be: what that does with it can't be undone. The kernel tells how often
 * memory is attached, and who has used a queue or a semaphore last. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#include "base/fmt.h"
#include "image/ipc/ipc.h"
#include "image/tree/tree.h"

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

/* The process that is looked at, and those that are captured with it. */
struct ipc_check {
	pid_t pid;
	const struct image_tree *tree;
	struct image_beside *beside;
	struct error *err;
};

static bool holds(const struct ipc_check *c, pid_t pid)
{
	for (size_t i = 0; c->tree && i < c->tree->count; i++)
		if (c->tree->pid[i] == pid)
			return true;
	return pid == c->pid;
}

/* One that has its image in the same moment. */
static bool is_beside(const struct ipc_check *c, pid_t pid)
{
	for (size_t i = 0; c->beside && i < c->beside->count; i++)
		if (c->beside->pid[i] == pid)
			return c->beside->shared = true;
	return false;
}

/* Does that process run, is it none of these, and did it use something at that time? What writes an
 * image is none. */
static bool is_stranger(const struct ipc_check *c, pid_t pid, int64_t used)
{
	struct tree_process p;
	return pid > 0 && !holds(c, pid) && tree_look(pid, &p) && !p.ended &&
	       used >= process_began(pid) && !is_beside(c, pid);
}

static hale_status_t ipc_refuse(const struct ipc_check *c, const char *what, long id, pid_t by)
{
	struct tree_process p = {.name = "?"};
	tree_look(by, &p);
	return error_set(c->err, HALE_ERR_UNSUPPORTED,
			 "it uses System V %s %ld, and so does process %d (%s), which is not "
			 "captured with it",
			 what, id, (int)by, p.name);
}

/* key msqid perms cbytes qnum lspid lrpid uid gid cuid cgid stime rtime ctime */
static hale_status_t queues_check(const struct ipc_check *c, int64_t began)
{
	char line[256];
	hale_status_t rc = HALE_OK;
	FILE *f = fopen("/proc/sysvipc/msg", "re");
	while (f && rc == HALE_OK && fgets(line, sizeof(line), f)) {
		long id, sender, receiver, sent, received;
		if (sscanf(line, "%*d %ld %*o %*u %*u %ld %ld %*u %*u %*u %*u %ld %ld", &id,
			   &sender, &receiver, &sent, &received) != 5)
			continue;
		if (!(sender == c->pid && sent >= began) &&
		    !(receiver == c->pid && received >= began))
			continue;
		if (is_stranger(c, (pid_t)sender, sent))
			rc = ipc_refuse(c, "message queue", id, (pid_t)sender);
		else if (is_stranger(c, (pid_t)receiver, received))
			rc = ipc_refuse(c, "message queue", id, (pid_t)receiver);
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
static hale_status_t semaphores_check(const struct ipc_check *c, int64_t began)
{
	char line[256];
	hale_status_t rc = HALE_OK;
	FILE *f = fopen("/proc/sysvipc/sem", "re");
	while (f && rc == HALE_OK && fgets(line, sizeof(line), f)) {
		long id, count, used, changed;
		if (sscanf(line, "%*d %ld %*o %ld %*u %*u %*u %*u %ld %ld", &id, &count, &used,
			   &changed) != 4 ||
		    (used < began && changed < began) || !semaphores_used((int)id, count, c->pid))
			continue;
		for (int i = 0; i < count && rc == HALE_OK; i++) {
			pid_t by = semctl((int)id, i, GETPID);
			if (is_stranger(c, by, used > changed ? used : changed))
				rc = ipc_refuse(c, "semaphores", id, by);
		}
	}
	if (f)
		fclose(f);
	return rc;
}

/* How often it is attached, by all. */
static long memory_attached(int id)
{
	struct shmid_ds ds;
	return shmctl(id, IPC_STAT, &ds) == 0 ? (long)ds.shm_nattch : 0;
}

static pid_t memory_stranger(const struct ipc_check *c, int id)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;
	while (d && !found && (e = readdir(d))) {
		pid_t pid = (pid_t)atoi(e->d_name);
		struct tree_process p;
		if (pid > 0 && !holds(c, pid) && tree_look(pid, &p) && !p.ended &&
		    ipc_count_maps(pid, id) && !is_beside(c, pid))
			found = pid;
	}
	if (d)
		closedir(d);
	return found;
}

/* More than these processes have may be a writer's of an image, or a stranger's. */
static hale_status_t memory_check_one(const struct ipc_check *c, int id)
{
	long mine = ipc_count_maps(c->pid, id);
	for (size_t i = 0; c->tree && i < c->tree->count; i++)
		if (c->tree->pid[i] != c->pid)
			mine += ipc_count_maps(c->tree->pid[i], id);
	pid_t by = memory_attached(id) > mine ? memory_stranger(c, id) : 0;
	return by ? ipc_refuse(c, "shared memory", id, by) : HALE_OK;
}

static hale_status_t memory_check(const struct ipc_check *c)
{
	struct arena arena;
	struct list maps;
	char path[64];
	fmt_print(path, sizeof(path), "/proc/%d/maps", (int)c->pid);
	hale_status_t rc = image_reader_arena(&arena, c->err);
	if (rc != HALE_OK)
		return rc;
	rc = maps_scan(path, &arena, &maps, c->err);
	for (size_t i = 0; i < maps.count && rc == HALE_OK; i++) {
		const struct map *m = list_at(&maps, i);
		if (map_is_sysv(m))
			rc = memory_check_one(c, (int)m->inode);
	}
	arena_fini(&arena);
	return rc;
}

bool image_ipc_any(void)
{
	struct shm_info shm = {0};
	struct seminfo sem = {0};
	struct msginfo msg = {0};
	shmctl(0, SHM_INFO, (struct shmid_ds *)&shm);
	semctl(0, 0, SEM_INFO, &sem);
	msgctl(0, MSG_INFO, (struct msqid_ds *)&msg);
	return shm.used_ids || sem.semusz || msg.msgpool;
}

hale_status_t image_check_ipc(pid_t pid, const struct image_tree *tree, struct error *err)
{
	struct error local;
	const struct ipc_check c = {pid, tree, tree ? tree->beside : NULL, err ? err : &local};
	if (!image_ipc_any())
		return HALE_OK;
	int64_t began = process_began(pid);
	hale_status_t rc = queues_check(&c, began);
	if (rc == HALE_OK)
		rc = semaphores_check(&c, began);
	return rc == HALE_OK ? memory_check(&c) : rc;
}
