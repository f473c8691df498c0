/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of `hale ps`, `hale ckpt`, … (control/control.h has its other end). */
#ifndef HALE_HEAD_CONTROL_CONTROL_SERVE_H
#define HALE_HEAD_CONTROL_CONTROL_SERVE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "base/json.h"
#include "report/report.h"

struct head;

/* control.c */
hale_status_t control_start(struct head *h, struct error *err);
void control_stop(struct head *h);
/* control_metrics.c: the answer to {"op":"metrics"}, into the open object of j. */
void control_print_metrics(const struct head *h, struct json_out *j);
/* Answers everybody who waits for a checkpoint. folder NULL: it came to nothing, and why. */
void control_checkpoint_over(struct head *h, const char *folder, const char *why);
/* Answers who waits for this migration; m NULL: it came to nothing, and why. */
void control_migrated(struct head *h, uint32_t id, const struct report_migration *m,
		      const struct error *why);
/* A look has been answered: report.profile is that of now. */
void control_looked(struct head *h, uint32_t look);

#endif
