// SPDX-License-Identifier: BSD-3-Clause
/* Objects of the kernel that were made since the checkpoint go. What a process of the job has
 * removed itself is gone already. Only what is still the same, and belongs to this user, is
 * touched. */
#include "journal/revert.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

/* enum ipc_kind of image/frame.h, which the head does not see */
enum { MEMORY = 1, SEMAPHORES, MESSAGES };

static int is_here(const struct journal_record *c)
{
	struct stat st = {0};
	char boot[64] = "";
	FILE *f = fopen(JOURNAL_BOOT, "re");

	if (f) {
		if (!fgets(boot, sizeof(boot), f))
			boot[0] = 0;
		fclose(f);
	}
	return stat("/proc/self/ns/ipc", &st) == 0 && st.st_ino == c->device &&
	       journal_boot_number(boot) == c->born_ns;
}

static int is_ours(const struct ipc_perm *p, const struct journal_record *c)
{
	return p->uid == geteuid() && (uint32_t)p->__key == (uint32_t)c->inode;
}

/* 0 or -1 with errno. */
static int remove_object(int kind, int id, const struct journal_record *c)
{
	struct shmid_ds shm;
	struct semid_ds sem;
	struct msqid_ds msg;

	switch (kind) {
	case MEMORY:
		if (shmctl(id, IPC_STAT, &shm) != 0 || !is_ours(&shm.shm_perm, c))
			return 0;
		return shmctl(id, IPC_RMID, NULL);
	case SEMAPHORES:
		if (semctl(id, 0, IPC_STAT, &sem) != 0 || !is_ours(&sem.sem_perm, c))
			return 0;
		return semctl(id, 0, IPC_RMID);
	case MESSAGES:
		if (msgctl(id, IPC_STAT, &msg) != 0 || !is_ours(&msg.msg_perm, c))
			return 0;
		return msgctl(id, IPC_RMID, NULL);
	default:
		return 0;
	}
}

static int remove_queue(const char *name)
{
	char whole[300];
	struct stat st;
	mqd_t q;

	snprintf(whole, sizeof(whole), "/%s", name);
	q = mq_open(whole, O_RDONLY);
	if (q == (mqd_t)-1)
		return errno == ENOENT ? 0 : -1;
	int ours = fstat(q, &st) == 0 && st.st_uid == geteuid();
	mq_close(q);
	return ours ? mq_unlink(whole) : 0;
}

void revert_kernel(struct reverting *r, const struct journal_record *c, const char *path)
{
	char *end;
	long kind = strtol(path + 1, &end, 10);

	if (*end != '/')
		return;
	if (!is_here(c)) {
		revert_trouble(r, "System V objects or message queues of another machine remain");
		return;
	}
	if ((kind == JOURNAL_IPC_QUEUE ? remove_queue(end + 1)
				       : remove_object((int)kind, atoi(end + 1), c)) != 0)
		revert_trouble(r, "%s %s can't be removed (%s)",
			       kind == JOURNAL_IPC_QUEUE ? "the message queue" : "System V object",
			       end + 1, strerror(errno));
}
