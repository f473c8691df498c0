/* SPDX-License-Identifier: BSD-3-Clause */
/* journal/: before a process of the job changes a file for the first time since a checkpoint, what
 * there was is written down, so that a rollback can bring it back. Files that are open at the
 * checkpoint are in the images besides.
 *
 * Runs inside the user's processes: no malloc, no stdio, no descriptor that stays open. Not
 * covered: system calls that a program makes by itself, files of other hosts, owners, modes and
 * times. May call: base/, image/sys.h. Called by: ckpt/ (files.c stands before libc's functions).
 *
 *   journal_opening(dir, path, flags)    a record, unless there is one since the checkpoint
 *   openat(dir, path, flags)             libc's
 *   journal_opened(fd)                   a new file needs no record any more
 *
 * A checkpoint must not come between the two: node/guest.h sees to that.
 */
#ifndef HALE_JOURNAL_JOURNAL_H
#define HALE_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

/* This process writes a journal. False as long as no checkpoint is wanted: then nothing of all this
 * costs more than a look at it. */
extern bool journal_on;

/* Once, early: folder is the job's journal (NULL: none), which need not be there yet. begins: this
 * process is the one that the rank was started as. */
void journal_start(const char *folder, uint32_t rank, bool begins);
/* This process, and no other one around it, is the rank: from here on it says where the rank is. */
void journal_is_rank(void);
/* The rank is past checkpoint id: what it changes now belongs to that. All its other threads are
 * parked. */
void journal_cut(uint32_t id);
/* First of all in a process that was restored, with the journal of the job that it belongs to now.
 */
void journal_restored(const char *folder, uint32_t id);

/* Of a child of the rank: right before its image is taken with the rank's, and in the process that
 * came out of it. */
void journal_child_leave(void);
void journal_child_restored(const char *folder);

/* The checkpoint that the rank is past, as far as this process knows without asking anybody. */
enum { JOURNAL_EPOCH_UNKNOWN = INT32_MAX };
uint32_t journal_epoch_now(void);

/* A rollback will look for one: false where the user wants none. */
bool journal_wanted(void);

/* Before the call; dir as openat(2) has it. False: this is a pipe, a device or what else opening
 * may wait for, and is not written down. */
bool journal_opening(int dir, const char *path, int flags);
/* After it; fd -1: it failed. */
void journal_opened(int fd);
/* A name is about to be made (mkdir, link, symlink, mknod). */
void journal_making(int dir, const char *path);
/* unlink or rmdir. */
void journal_removing(int dir, const char *path);
void journal_renaming(int dir, const char *path, int other_dir, const char *other, bool exchange);
void journal_truncating(const char *path, uint64_t length);
void journal_truncating_fd(int fd, uint64_t length);

/* A System V object has just been made (kind: enum ipc_kind of image/frame.h), or the name of a
 * POSIX message queue: a rollback removes it. */
void journal_ipc_made(int kind, int id, int key);
void journal_queue_made(const char *name);

/* For a caller that says before each write what it overwrites (MPI-IO): then a file is opened as if
 * it were appended to, and only bytes that it had are saved, and no more of it than changes.
 * journal_writing: before the call. size: what the file had at the checkpoint or, if it was opened
 * since, then. length 0: nothing of it changes but its size. */
void journal_writing(int fd, uint64_t size, uint64_t offset, uint64_t length);

#endif
