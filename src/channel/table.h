/* SPDX-License-Identifier: BSD-3-Clause */
/* Which channels there are. Called by: channel.c. A test of a user of channels is linked with a
 * table of its own (match/faulty_table.c). */
#ifndef HALE_CHANNEL_TABLE_H
#define HALE_CHANNEL_TABLE_H

#include "channel/channel.h"

enum { CHANNELS = 3 };

/* In order of preference. */
extern const struct channel_ops *const channel_table[CHANNELS];

#endif
