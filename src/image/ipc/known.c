// SPDX-License-Identifier: BSD-3-Clause
/* In the program's own memory, so that children and restored processes know them, too. No lock: a
 * signal handler may come here in the middle of another call. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/sem.h>

#include "image/image.h"
#include "image/ipc/ipc.h"

enum { UNDO = 256 };

/* kind and number of an object; 0: free */
static _Atomic uint64_t known[IPC_KNOWN];
static _Atomic uint32_t known_end;
static _Atomic bool overflows;

static struct ipc_undo {
	_Atomic uint64_t key; /* set and number, and 1; 0: free */
	_Atomic int64_t change;
} undo[UNDO];
static _Atomic bool undo_overflows;
/* The process whose notes these are: what it forks has nothing to give back. */
static _Atomic int32_t undo_of;

static uint64_t known_key(int kind, int id)
{
	return (uint64_t)(uint32_t)kind << 32 | (uint32_t)id;
}

void image_ipc_used(int kind, int id)
{
	uint64_t key = known_key(kind, id);
	uint32_t end = atomic_load(&known_end);
	for (uint32_t i = 0; i < end; i++)
		if (atomic_load(&known[i]) == key)
			return;
	for (uint32_t i = 0; i < IPC_KNOWN; i++) {
		uint64_t none = 0;
		if (!atomic_compare_exchange_strong(&known[i], &none, key))
			continue;
		for (end = atomic_load(&known_end); end <= i;)
			if (atomic_compare_exchange_strong(&known_end, &end, i + 1))
				break;
		return;
	}
	atomic_store(&overflows, true);
}

void image_ipc_gone(int kind, int id)
{
	uint64_t key = known_key(kind, id);
	for (uint32_t i = 0; i < atomic_load(&known_end); i++) {
		uint64_t seen = key;
		atomic_compare_exchange_strong(&known[i], &seen, 0);
	}
	for (size_t i = 0; kind == IPC_SEMAPHORES && i < UNDO; i++)
		if (atomic_load(&undo[i].key) >> 17 == (uint32_t)id && atomic_load(&undo[i].key))
			atomic_store(&undo[i].change, 0);
}

bool image_ipc_is_used(void)
{
	return atomic_load(&known_end) > 0;
}

bool ipc_known_at(size_t i, int *kind, int *id)
{
	uint64_t key = i < atomic_load(&known_end) ? atomic_load(&known[i]) : 0;
	*kind = (int)(key >> 32);
	*id = (int)(uint32_t)key;
	return key != 0;
}

bool ipc_known_overflows(void)
{
	return atomic_load(&overflows);
}

static void undo_clear(void)
{
	for (size_t i = 0; i < UNDO; i++) {
		atomic_store(&undo[i].change, 0);
		atomic_store(&undo[i].key, 0);
	}
	atomic_store(&undo_overflows, false);
}

void image_ipc_undo(int id, int number, int change)
{
	int32_t self = (int32_t)sys(SYS_getpid);
	if (atomic_exchange(&undo_of, self) != self)
		undo_clear();
	uint64_t key = (uint64_t)(uint32_t)id << 17 | (uint64_t)(number & 0xffff) << 1 | 1;
	for (size_t i = 0; i < UNDO; i++) {
		uint64_t seen = 0;
		if (atomic_load(&undo[i].key) != key &&
		    !atomic_compare_exchange_strong(&undo[i].key, &seen, key) && seen != key)
			continue;
		atomic_fetch_add(&undo[i].change, change);
		return;
	}
	atomic_store(&undo_overflows, true);
}

void image_ipc_set(int id, int number)
{
	for (size_t i = 0; i < UNDO; i++) {
		uint64_t key = atomic_load(&undo[i].key);
		if (key >> 17 == (uint32_t)id && key &&
		    (number < 0 || (key >> 1 & 0xffff) == (uint64_t)number))
			atomic_store(&undo[i].change, 0);
	}
}

bool ipc_undo_overflows(void)
{
	return atomic_load(&undo_of) == (int32_t)sys(SYS_getpid) && atomic_load(&undo_overflows);
}

/* Done and undone in one call, so nobody sees another value, and once only with SEM_UNDO. */
static long undo_again(int id, uint16_t number, int64_t change)
{
	struct sembuf op[2] = {{number, (short)change, 0}, {number, (short)-change, SEM_UNDO}};
	if (change < 0) { /* the value may be 0 now */
		struct sembuf first = op[1];
		op[1] = op[0];
		op[0] = first;
	}
	return sys(SYS_semtimedop, id, op, 2, NULL);
}

long ipc_undo_restore(int32_t captured)
{
	long worst = 0;
	if (atomic_load(&undo_of) != captured) {
		undo_clear();
		return 0;
	}
	atomic_store(&undo_of, (int32_t)sys(SYS_getpid));
	for (size_t i = 0; i < UNDO; i++) {
		uint64_t key = atomic_load(&undo[i].key);
		int64_t change = atomic_load(&undo[i].change);
		if (!key || !change)
			continue;
		long rc = undo_again((int)(key >> 17), (uint16_t)(key >> 1), change);
		if (rc == -EINVAL || rc == -EIDRM) /* somebody has removed it */
			atomic_store(&undo[i].change, 0);
		else if (rc)
			worst = rc;
	}
	return worst;
}
