/* SPDX-License-Identifier: BSD-3-Clause */
/* The channel between processes of different nodes (docs/network-channel.md). Nothing is loaded,
 * opened or polled while all ranks of the job live on one node. */
#ifndef HALE_CHANNEL_NET_NET_H
#define HALE_CHANNEL_NET_NET_H

#include "channel/channel.h"

extern const struct channel_ops channel_net;

#endif
