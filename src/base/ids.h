/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes with ids that are asked for: clone3(2) with set_tid. The kernel lets who has
 * CAP_CHECKPOINT_RESTORE (or CAP_SYS_ADMIN) in the user namespace that the pid namespace belongs
 * to: root, and every user in namespaces of his own. */
#ifndef HALE_BASE_IDS_H
#define HALE_BASE_IDS_H

#include <stdbool.h>
#include <sys/types.h>

/* May this process ask for ids? Makes no process. Async-signal-safe. */
bool ids_allowed(void);

/* As fork(2), without the handlers of pthread_atfork and with libc's own idea of the child's thread
 * id being the parent's: the child is to execute another program, or to become another process.
 * Returns -1 with errno: EPERM, where it is not allowed; EEXIST, where something has that id. */
pid_t ids_fork(pid_t id);

#endif
