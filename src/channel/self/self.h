/* SPDX-License-Identifier: BSD-3-Clause */
/* The loopback: what a process sends to itself arrives inside send. */
#ifndef HALE_CHANNEL_SELF_SELF_H
#define HALE_CHANNEL_SELF_SELF_H

#include "channel/channel.h"

extern const struct channel_ops channel_self;

#endif
