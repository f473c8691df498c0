// SPDX-License-Identifier: BSD-3-Clause
/* The table of channels: one line each. */
#include "channel/table.h"

#include "channel/net/net.h"
#include "channel/self/self.h"
#include "channel/shm/shm.h"

const struct channel_ops *const channel_table[CHANNELS] = {
    &channel_self,
    &channel_net,
    &channel_shm,
};
