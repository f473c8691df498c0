/* SPDX-License-Identifier: BSD-3-Clause */
/* Help of the backplane's commands. */
#ifndef HALE_CLI_EVENTS_H
#define HALE_CLI_EVENTS_H

extern const char cli_events_help[], cli_backplane_help[];

#endif
