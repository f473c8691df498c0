/* SPDX-License-Identifier: BSD-3-Clause */
/* A source and a sink, as live_test starts them, and what they leave. */
#ifndef HALE_IMAGE_TEST_LIVE_PAIR_H
#define HALE_IMAGE_TEST_LIVE_PAIR_H

#include "image/test/relay.h"

/* cmocka's, of a test whose state is a struct fixture. */
int pair_set_up(void **state);
int pair_tear_down(void **state);
/* One process with stream as STREAM_FD and out as stdout and stderr; how: T_MODE. */
pid_t pair_spawn(struct fixture *f, const char *role, const char *scenario, const char *how,
		 int stream, int out);
/* Both; relayed: with this process between them, else directly. */
void pair_start(struct fixture *f, const char *scenario, const char *how, bool relayed);
/* Until both have ended: their statuses and what they said. */
void pair_wait(struct fixture *f);

#endif
