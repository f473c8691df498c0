/* SPDX-License-Identifier: BSD-3-Clause */
/* The head's side of the journal (format.h): its folder, what is dropped of it, and undoing it
 * while no process of the job runs. For ordinary processes. May call: base/. Called by:
 * head/recovery.
 */
#ifndef HALE_JOURNAL_UNDO_H
#define HALE_JOURNAL_UNDO_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

/* The journal's folder of a job whose folder is there; from now on its processes write it. */
hale_status_t journal_make(const char *job_folder, struct error *err);

/* Has no process of the job changed a file since checkpoint id (0: since the job began)? Then there
 * is nothing to undo, nor anything to say. */
bool journal_is_empty(const char *job_folder, uint32_t id);

/* Makes all files what they were at checkpoint id (0: as the job began), as far as the journal
 * knows, and sets the journal since then aside. To be tried again if this process is killed
 * meanwhile. HALE_ERR_STORE: something is not what it was, and a sentence says what. */
hale_status_t journal_undo(const char *job_folder, uint32_t id, struct error *err);

/* No rollback goes to before checkpoint oldest any more: sets aside what is older. True: there was
 * such. */
bool journal_drop(const char *job_folder, uint32_t oldest);

/* Removes what was set aside. */
void journal_sweep(const char *job_folder);

/* The job is over, and leaves no checkpoint. */
void journal_remove(const char *job_folder);

#endif
