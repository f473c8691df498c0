/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the program is a process of a job: its checkpoints include its device processes. See
 * node/guest.h: a thread between guest_enter and guest_leave is not stopped there. Everywhere else
 * no lock of ours is held but by a snapshot under way, which a checkpoint does not interrupt. */
#ifndef HALE_OFFLOAD_HOST_GUEST_H
#define HALE_OFFLOAD_HOST_GUEST_H

#include "offload/host/process.h"

/* Once, before the first process. */
void guest_begin(void);
void guest_enter(void);
void guest_leave(void);
/* Enters, and takes the lock: a thread that waits for it is not inside. */
void guest_take(sem_t *lock);
void guest_descriptor(int fd, bool in);
/* In the thread that receives, in a restored program: the device process is made again from what
 * the program's image has of it. False: it can't be, and the process is gone. */
bool guest_revive(struct hale_process *p);

#endif
