/* SPDX-License-Identifier: BSD-3-Clause */
/* Help of `hale monitor` and `hale rules`. */
#ifndef HALE_CLI_MONITOR_H
#define HALE_CLI_MONITOR_H

extern const char cli_monitor_help[], cli_rules_help[];

#endif
