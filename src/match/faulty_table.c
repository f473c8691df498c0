// SPDX-License-Identifier: BSD-3-Clause
/* In tests, in place of channel/table.c: the same channels behind channel/faulty. The faults are
 * those that the contract allows, so that all that holds with the channels holds behind it. */
#include <stdlib.h>

#include "channel/faulty/faulty.h"
#include "channel/net/net.h"
#include "channel/self/self.h"
#include "channel/shm/shm.h"
#include "channel/table.h"

static const struct channel_ops *const inner[CHANNELS] = {
    &channel_self,
    &channel_net,
    &channel_shm,
};

const struct channel_ops *const channel_table[CHANNELS] = {
    &channel_faulty[0],
    &channel_faulty[1],
    &channel_faulty[2],
};

/* HALE_FAULTY_SEED: other misfortunes than last time. */
__attribute__((constructor)) static void wrap(void)
{
	const char *seed = getenv("HALE_FAULTY_SEED");
	const struct channel_faults faults = {.seed = seed ? (uint32_t)strtoul(seed, NULL, 10) : 1,
					      .refuse = 100,
					      .idle = 100,
					      .undrained = 200,
					      .partly = 200};

	channel_faulty_wrap(inner, CHANNELS, &faults);
}
