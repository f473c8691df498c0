/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job decides, apart from what carries it out. A file in this folder does no I/O, reads no
 * clock, starts no process, and keeps nothing between two calls: everything that a decision depends
 * on is an argument. So the head, a model, and a test run the very same code.
 *
 *   job_state.h   the states of a job: (state, event) -> (action, next state)
 *   recovery.h    may a job go on after a loss, and from which checkpoint
 *   place.h       which node runs which rank, at the start and after a node is lost
 *   partition.h   which nodes leave when nodes can't reach each other
 *   partner.h     which node keeps a copy of another node's images
 *   failover.h    what a head does first that follows another head
 *   cadence.h     how long a job works until its next checkpoint, if nobody has said
 *   form.h        what an automatic checkpoint writes
 *   levels.h      which images are copied, which checkpoints stay, where an image is looked for
 *   leave.h       how a node's ranks leave it, and when they are elsewhere
 *   shadows.h     which cores mains and their shadows get, who is promoted, who is vulnerable
 *   energy.h      what a job with shadows takes of energy, measured or modelled
 *
 * Who lives, who leads a rank and who provides whom is decided in node/living.h, below this room:
 * the processes of the program ask it, too.
 *
 * Calls base/ and the formulas of model/. Called by head/ and tests. */
#ifndef HALE_POLICY_POLICY_H
#define HALE_POLICY_POLICY_H

#include "policy/job_state.h"
#include "policy/partition.h"
#include "policy/partner.h"
#include "policy/place.h"
#include "policy/recovery.h"
#include "policy/failover.h"

#endif
