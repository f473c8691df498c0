// SPDX-License-Identifier: BSD-3-Clause
/* Faults at a call: the agent writes function, count and signal into the mailbox. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/rank_private.h"

_Atomic int call_gate = CALL_GATE_CLOSED;
static _Atomic uint64_t calls_seen;

void inject_read_mailbox(void)
{
	struct mailbox *m = link_self()->mailbox;
	if (!m || !atomic_load(&m->inject_armed)) {
		atomic_fetch_and(&call_gate, ~CALL_GATE_INJECT);
		return;
	}
	if (!(atomic_load(&call_gate) & CALL_GATE_INJECT))
		calls_seen = 0;
	atomic_fetch_or(&call_gate, CALL_GATE_INJECT);
}

void inject_at_call(const char *function)
{
	struct mailbox *m = link_self()->mailbox;
	if (strncmp(function, m->inject_call, sizeof(m->inject_call)) != 0)
		return;
	if (++calls_seen >= atomic_load(&m->inject_count))
		kill(getpid(), (int)atomic_load(&m->inject_signal));
}
