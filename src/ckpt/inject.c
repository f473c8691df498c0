// SPDX-License-Identifier: BSD-3-Clause
/* Faults at a call: the agent writes function, count and signal into the mailbox. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/rank_private.h"

volatile int inject_armed;
static uint64_t calls_seen;

void inject_read_mailbox(void)
{
	struct mailbox *m = link_self()->mailbox;
	int armed = m && atomic_load(&m->inject_armed) != 0;
	if (armed && !inject_armed)
		calls_seen = 0;
	inject_armed = armed;
}

void inject_at_call(const char *function)
{
	struct mailbox *m = link_self()->mailbox;
	if (strncmp(function, m->inject_call, sizeof(m->inject_call)) != 0)
		return;
	if (++calls_seen >= atomic_load(&m->inject_count))
		kill(getpid(), (int)atomic_load(&m->inject_signal));
}
