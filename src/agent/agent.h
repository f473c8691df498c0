/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent of one node, a process of its own: makes the segment, starts and watches the ranks,
 * speaks proto.h with them, forwards their streams. It decides nothing: what happens it tells the
 * head, and it does what the head says (message.h), with one exception: when it hears nothing of
 * the head any more it ends its ranks.
 *
 * Everything that is only there on the node itself, processes, mailboxes, the segment, /proc, is
 * touched by the agent and by nobody else. */
#ifndef HALE_AGENT_AGENT_H
#define HALE_AGENT_AGENT_H

/* Runs an agent that hears the head on one descriptor and speaks to it on the other; both are the
 * agent's from now on. Returns the exit status of its process: 0 when the head has let it go, 1
 * when it lost the head. */
int agent_run(int in_fd, int out_fd);

#endif
