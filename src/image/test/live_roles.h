/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process of live_test is, by T_ROLE in its environment: "source" runs a scenario and moves
 * over STREAM_FD, "sink" becomes it. T_MODE has words for what is to be otherwise. */
#ifndef HALE_IMAGE_TEST_LIVE_ROLES_H
#define HALE_IMAGE_TEST_LIVE_ROLES_H

#include "base/exit_status.h"

/* The source takes so many rounds before the one that stops it. */
enum { ROUNDS = 3, STREAM_FD = 3 };

#endif
