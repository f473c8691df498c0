/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal's files, as the ranks write them and the head reads them.
 *
 *   <job folder>/journal/              mode 0700, made by the head
 *     rank-3.now                       struct journal_now: the checkpoint that rank 3 is past
 *     7/rank-3.log                     records of rank 3 and its children since checkpoint 7
 *     7/rank-3.PID-NUMBER.log          those of a process of it whose files may only be so long
 *     7/save-DEV-INODE-BORN            a file's content then, or the file itself (a hard link)
 *     7/ranges-3                       bytes of files that rank 3 was about to overwrite
 *     first                            the oldest checkpoint of which nothing has been dropped
 *
 * A record says what a name or a file was before it was changed. Undone from the newest to the
 * oldest, any number of times, all records since a checkpoint give what there was at it.
 */
#ifndef HALE_JOURNAL_FORMAT_H
#define HALE_JOURNAL_FORMAT_H

#include <stdint.h>

#define JOURNAL_MAGIC	  0x334c4e4au /* "JNL3" */
#define JOURNAL_SAVE_NAME "save-%lx-%lx-%lx"
/* The file itself, where what has that name is a copy of what it had. */
#define JOURNAL_LINK_SUFFIX ".link"
/* offset, length, where in the file of ranges, their XXH3, that file's name */
#define JOURNAL_RANGE_TEXT "%lx %lx %lx %lx %s"
#define JOURNAL_HOLE_TEXT "%lx %lx" /* offset, length */
enum { JOURNAL_PATH = 4096, JOURNAL_RECORD_MAX = 3 * JOURNAL_PATH, JOURNAL_RANGE_MAX = 1 << 20 };

/* Kind of a name in the path of JOURNAL_IPC, after those of image/frame.h. */
enum { JOURNAL_IPC_QUEUE = 4 };

enum journal_kind {
	JOURNAL_ABSENT = 1, /* path: there was nothing of this name */
	JOURNAL_SIZE,	    /* the file had this size; what it had is still in it */
	JOURNAL_CONTENT,    /* the file had this size, and the saved content */
	JOURNAL_NAMED,	    /* path: a name of this file, which is saved */
	JOURNAL_SYMLINK,    /* path: a symbolic link to other */
	JOURNAL_FOLDER,	    /* path: an empty folder with this mode */
	JOURNAL_RENAMED,    /* path has become other */
	JOURNAL_EXCHANGED,  /* path and other have changed places */
	JOURNAL_UNSAVED,    /* path: changed, and what it had could not be saved */
	JOURNAL_RANGE,	    /* path: these bytes of it were as other says (JOURNAL_RANGE_TEXT) */
	JOURNAL_IPC,	    /* path: /KIND/NUMBER of a System V object, or /4/NAME of a message
			     * queue; it was made. device: the namespace, inode: the key,
			     * born_ns: journal_boot_number */
	JOURNAL_NODE,	    /* path: a named pipe, or the name of a socket, with this mode */
	JOURNAL_HOLE,	    /* path: here it had no data (JOURNAL_HOLE_TEXT) */
	JOURNAL_MADE,	    /* path: what was ABSENT has been made, and is this file;
			     * inode 0: it may be anything */
	JOURNAL_KINDS
};

struct journal_record {
	uint32_t magic;
	uint32_t bytes; /* of the record with its texts; a multiple of 8 */
	uint32_t sum;	/* XXH3 of all of it, with 0 here */
	uint16_t kind;	/* enum journal_kind */
	uint16_t path_len;
	uint64_t time_ns; /* of day; records are undone in the reverse order of it */
	/* the file: by these, and not by its name alone, it is known again */
	uint64_t device, inode, born_ns;
	uint64_t size;
	int64_t modified_ns;
	uint32_t mode, other_len;
	/* path, NUL, other, NUL, padding */
};

/* What no other machine has, nor this one after it was started again. */
#define JOURNAL_BOOT "/proc/sys/kernel/random/boot_id"
static inline uint64_t journal_boot_number(const char *text)
{
	uint64_t v = 0xcbf29ce484222325u;
	for (; *text && *text != '\n'; text++)
		v = (v ^ (unsigned char)*text) * 0x100000001b3u;
	return v;
}

/* Mapped by all processes of a rank. failures: changes that could not be written down. */
struct journal_now {
	uint32_t magic;
	uint32_t epoch; /* the newest checkpoint that this rank is past; 0: none */
	uint32_t failures;
	uint32_t failed_epoch; /* at the newest of them */
};

#endif
