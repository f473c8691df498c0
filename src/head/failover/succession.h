/* SPDX-License-Identifier: BSD-3-Clause */
/* What a head leaves on disk for the one that may follow it: <job folder>/head.<epoch>.json, all
 * that it knows and that nobody else could tell (docs/attach.md). Written before what it decides is
 * told anybody. Which head is the newest is a question to the folder: an epoch is taken by making
 * its file, which only one can. */
#ifndef HALE_HEAD_FAILOVER_SUCCESSION_H
#define HALE_HEAD_FAILOVER_SUCCESSION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"
#include "wire/attach/head_record.h"

struct head;
struct options;
struct program;

/* Makes h's file, of h->epoch. HALE_ERR_STATE: somebody else was faster. */
hale_status_t succession_claim(struct head *h, struct error *err);
/* Writes down how it is now; nothing without --head-grace. What can't be written is told once. */
void succession_save(struct head *h);
/* The job is over: nobody will follow. */
void succession_end(struct head *h);

/* Options and program as they were; texts are those of doc, argv (malloc'ed) too. */
hale_status_t succession_options(const struct json_value *doc, struct options *o, struct program *p,
				 struct error *err);
/* Everything else, into a head that has been made with these options: what is in its report, where
 * its ranks are, its nodes (malloc'ed; *count). */
struct node;
hale_status_t succession_restore(const struct json_value *doc, struct head *h, struct node **nodes,
				 uint32_t *count, struct error *err);
/* Network namespace and boot of this machine: agents of another one can't be reached from here. */
void succession_place(char place[128]);

#endif
