/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the events of `hale monitor` go: the backplane, or a file. */
#ifndef HALE_CLI_MONITOR_SINK_H
#define HALE_CLI_MONITOR_SINK_H

#include "monitor/monitor.h"

struct monitor_sink; /* opaque */

/* path NULL: the node's broker; "-": stdout; else a file, at whose end lines of JSON are written
 * (time severity namespace name host payload, as `hale events --json` has them). NULL with a
 * sentence in err when there is no broker, or no such file. */
struct monitor_sink *monitor_sink_open(const char *path, struct error *err);
/* A monitor_publish_fn. */
void monitor_sink_publish(void *sink, const struct monitor_event *event);
void monitor_sink_close(struct monitor_sink *sink); /* NULL is fine */

#endif
