/* SPDX-License-Identifier: BSD-3-Clause */
/* Undoing one record of the journal, as often as one likes. */
#ifndef HALE_JOURNAL_REVERT_H
#define HALE_JOURNAL_REVERT_H

#include <stddef.h>
#include <stdint.h>
#include "journal/format.h"

/* A file that came back as another one: its content was saved, and not the file itself. */
struct revert_alias {
	uint64_t old_inode, old_born_ns, inode;
	int fd; /* of the new one (O_PATH); -1: there are too many */
};

struct statx;
struct revert_making;

struct reverting {
	struct revert_alias *aliases;
	size_t count, cap;
	uint64_t
	    since_ns; /* whatever this record's rank made later was not there then; 0: not known */
	uint64_t begin_ns; /* before any record was written; 0: not known */
	int made;	   /* an older record says so: the file of this one was made since then */
	struct revert_making *makings; /* of all records */
	size_t making_count, making_cap;
	int makings_lost; /* there was no memory for one */
	unsigned troubles;
	char text[400]; /* the first of them */
};

/* folder: a descriptor of the one that the record's saved file is in. */
void revert(struct reverting *r, const struct journal_record *record, int folder);
/* Each record once, before the first is undone; all have been (revert_made.c). */
void revert_making_note(struct reverting *r, const struct journal_record *record);
void revert_makings_end(struct reverting *r);
/* What has that name now is certainly nothing that the job has made. */
int revert_is_foreign(const struct reverting *r, const char *path, const struct statx *now);
/* JOURNAL_IPC (revert_kernel.c). */
void revert_kernel(struct reverting *r, const struct journal_record *record, const char *path);
void revert_trouble(struct reverting *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void revert_fini(struct reverting *r);

#endif
