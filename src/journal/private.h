/* SPDX-License-Identifier: BSD-3-Clause */
/* What only the writer's files share. The lock is held by whoever calls it. */
#ifndef HALE_JOURNAL_PRIVATE_H
#define HALE_JOURNAL_PRIVATE_H

#include "journal/format.h"
#include "journal/journal.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include "base/base.h"

/* A file, as statx shows it. */
struct journal_file {
	uint64_t device, inode, born_ns, size;
	int64_t modified_ns;
	uint32_t mode, links;
};

/* A name: path is the same as long as no folder above is renamed, and folder whatever happens. */
struct journal_place {
	char path[JOURNAL_PATH];
	struct journal_file folder; /* the one that it is in */
};

/* 0 or -errno. flags: AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH. */
long journal_look(int dir, const char *path, int flags, struct journal_file *f);
uint64_t journal_file_key(const struct journal_file *f);
uint64_t journal_name_key(const struct journal_place *p);

/* known.c: what has been written down since the checkpoint. */
enum {
	KNOWN_SIZE = 1,	     /* a record has the file's size */
	KNOWN_CONTENT = 2,   /* … and its content */
	KNOWN_MADE = 4,	     /* the file is new since the checkpoint, and so is its name */
	KNOWN_NAME = 8,	     /* a record has what the name meant */
	KNOWN_OTHERWISE = 16 /* … and that it may be made in other ways than by opening it */
};
unsigned known_get(uint64_t key);
void known_add(uint64_t key, unsigned what);
void known_clear(void);

/* journal.c */
/* Signal handlers of the program wait meanwhile. False: this thread has it already. Then known.c is
 * not to be looked at. */
bool journal_lock(void);
/* First of all: is this still the process that it was? */
void journal_whose(void);
/* Which checkpoint the rank is past; forgets what is known if that has changed. */
uint32_t journal_epoch(void);
void journal_unlock(void);
/* Appends a record; f NULL: of no file. False: it is not there, which has been said. */
bool journal_write(enum journal_kind kind, const char *path, const char *other,
		   const struct journal_file *f);
/* The change at path goes on without a record: says so, once, and where a rollback looks. */
void journal_unprotected(const char *path, const char *why, long rc);
/* The folder of the epoch, which is made if it is not there. False: it can't be. */
bool journal_folder(char *buf, size_t cap);
/* This path is none of the user's files. */
bool journal_passes_over(const char *path);

/* journal.c: the file of this rank that the bytes of JOURNAL_RANGE lie in, as it is called in the
 * folder. */
void journal_range_name(char *buf, size_t cap);

/* elsewhere.c */
/* Most bytes that a file may have for this process to write to it: beyond them a write ends the
 * program by SIGXFSZ. */
uint64_t journal_file_limit(void);
/* run(arg) in a process beside this one, in the same memory, which has no descriptors but kept (-1:
 * none), and the hard limit on the size of files. What run returns, or -errno. */
long journal_elsewhere(long (*run)(void *), void *arg, int kept);

/* save.c: 0, or -errno; -EFBIG: it is larger than what is saved. open_fd: a descriptor of the file,
 * or -1. */
long journal_save_content(const char *folder, const char *path, int open_fd,
			  const struct journal_file *f);
/* The same for a file that is about to lose its name: the file itself, if that can be. */
long journal_save_file(const char *folder, const char *path, const struct journal_file *f);

/* touch.c */
/* Around each look at what is known: the lock, the checkpoint that the rank is past, errno kept.
 * path is for the sentence when that can't be; false then, and when it is NULL. */
bool journal_begin(const char *path, int *saved_errno);
void journal_end(int saved_errno);
/* Where an open file is; false: it has no name any more. */
bool journal_path_of_fd(long fd, char out[JOURNAL_PATH]);
/* The whole path, without symbolic links in its folders; follow: nor at its end. False: there is no
 * such folder. */
bool journal_place(int dir, const char *path, bool follow, struct journal_place *out);

#endif
