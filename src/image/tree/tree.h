/* SPDX-License-Identifier: BSD-3-Clause */
/* A process with its children: all of them stop together, each writes an image of itself, and the
 * images of the children become parts of that of the first one, the root.
 *
 *   root                                     each descendant
 *   tree_stop      finds them, SIGURG   ──▶  its handler stops the other threads; STOPPED
 *   tree_capture   phase CAPTURE        ──▶  forks what writes PATH.PID; CAPTURED
 *   image_capture  of itself
 *   tree_release   phase RELEASE        ──▶  runs on, and may end, while its image is written
 *   (its writer)   takes the files PATH.PID in as they become whole (tree_put)
 *
 * What they say to each other stands in a memory file of the root (struct tree_round), which a
 * descendant opens below /proc/ROOT/fd; the signal says its number. SIGURG, since a process that
 * has just executed another program and has no handler yet ignores it: then it is sent again.
 *
 * A rebuilt root makes the shared objects (pipes, socket pairs, open files, memory), then each
 * process as the child of its parent, with its id, group and session; each executes its program and
 * becomes its image, and none runs before all have put back what others could change. That needs
 * ids that are asked for (base/ids.h).
 *
 * Not captured, and refused by a sentence: programs without libhale.so, descendants that have lost
 * their parent, groups and sessions whose leader is gone. */
#ifndef HALE_IMAGE_TREE_TREE_H
#define HALE_IMAGE_TREE_TREE_H

#include <signal.h>
#include <stdatomic.h>

#include "image/engine.h"
#include "image/ipc/ipc.h"

enum { TREE_MAX = 256, TREE_NAME = 16, TREE_TEXT = 240 };

/* A descendant as /proc tells of it; parents come before their children. */
struct tree_process {
	int32_t pid, parent, group, session;
	bool ended; /* nobody has waited for it yet */
	char name[TREE_NAME];
};

/* All descendants of a process, at most max; one more says that there are more. Async-signal-safe.
 * false: /proc can't be read. */
bool tree_find(int32_t root, struct tree_process *found, size_t max, size_t *count);
/* Its children alone, of all its threads. */
bool tree_children(int32_t pid, struct tree_process *found, size_t max, size_t *count);
bool tree_look(int32_t pid, struct tree_process *p);

enum tree_phase { TREE_STOPPING, TREE_CAPTURE, TREE_RELEASE, TREE_CANCEL };
enum tree_state { TREE_ASKED, TREE_STOPPED, TREE_CAPTURED, TREE_FAILED, TREE_GONE };
enum tree_written { TREE_WRITING, TREE_WRITTEN, TREE_NOT_WRITTEN };

struct tree_member {
	struct tree_process is;
	int32_t status;		  /* of one that has ended, as waitid(2) tells it */
	uint32_t code;		  /* CLD_EXITED, CLD_KILLED, CLD_DUMPED */
	_Atomic uint32_t state;	  /* tree_state */
	_Atomic uint32_t stopped; /* by this signal; it goes on for this round only */
	_Atomic uint32_t written; /* tree_written, of its image, once it is CAPTURED */
	int32_t writer;		  /* the process that writes it; 0: the member itself has */
	char text[TREE_TEXT];	  /* why it has failed */
};

#define TREE_MAGIC 0x65657274656c6168ull

struct tree_round {
	uint64_t magic;
	uint32_t id;
	int32_t root;
	_Atomic uint32_t phase;	  /* futex of the members */
	_Atomic uint32_t answers; /* futex of the root */
	_Atomic uint32_t done;	  /* futex of the root's writer: images that are written, or not */
	/* image_mode_t. IMAGE_SYNC if the writer of one that has ended would become the child of
	 * another one (PR_SET_CHILD_SUBREAPER), which would be told of its end. */
	_Atomic uint32_t mode;
	image_compress_t compress;
	struct file_identity stream[3];
	int32_t full; /* fd_full_take has taken something: one more than its file, in the root */
	char path[IMAGE_PATH_MAX];
	struct image_identity identity;
	_Atomic uint32_t count;
	struct tree_member member[TREE_MAX];
	_Atomic uint32_t noted_count;
	_Atomic uint64_t noted[TREE_MAX]; /* stopped ones: signal << 32 | id, by their parents */
};

/* The round that this process takes part in; NULL: none. */
const struct tree_round *tree_now(void);
/* The numbers of all its processes, the root first. */
size_t tree_pids(const struct tree_round *t, int32_t *pid, size_t max);

/* ---- the root: all its other threads are parked ---- */

/* Nothing to do without children. of: the image of the root. */
hale_status_t tree_stop(const struct image_params *of, struct error *err);
hale_status_t tree_capture(struct error *err);
void tree_release(void);
/* In the process that came out of the image. */
void tree_restored(void);

/* ---- a descendant ---- */

/* Is pid a descendant in the round that this process takes part in? What writes its image lives
 * on when it ends, and ends with the root. */
bool tree_is_member(int32_t pid);
/* In that writer: gives up all descriptors but keep (whoever waits for the other end of a pipe
 * waits for the member alone), and returns one that becomes readable when the root has ended, or
 * -errno. */
int tree_writer_begin(int keep);
/* Does it run? Not: it has ended, waited for or not. */
bool tree_runs(int32_t pid);

/* How the children of parent, this process, that have ended did so. */
void tree_read_ended(struct tree_round *t, int32_t parent);

/* ---- stopped ones (tree_stopped.c) ---- */

bool tree_is_stopped(int32_t pid);
/* Why a stopped process can't be captured; NULL: it can. */
const char *tree_stopped_refusal(int32_t pid);
/* A parent, about to stand still: which of its children are stopped. */
void tree_stopped_note(struct tree_round *t);
/* A parent, about to run on: they have stopped again, and it has not been told. */
void tree_stopped_settle(void);
/* The root: none is noted; lets m go on to where it hears, once its parent stands still. */
void tree_stopped_begin(void);
hale_status_t tree_stopped_wake(struct tree_round *t, struct tree_member *m,
				void (*ask)(const struct tree_member *), struct error *err);
/* Stops this process by that signal, until somebody lets it go on. True: that is the next round,
 * and *call says which. */
bool tree_stopped_again(int signal, siginfo_t *call);

struct tree_hooks {
	bool (*busy)(void);	/* this thread may not be stopped here */
	void (*save)(void);	/* right before its image is taken */
	void (*restored)(void); /* in the process that came out of it */
};
/* Once, early, in every process of a job. */
void tree_listen(const struct tree_hooks *hooks);

/* ---- in the image of the root ---- */

struct tree_record {
	struct tree_process is;
	int32_t status;
	uint32_t code;
};

/* Data of the image of a descendant, in order. */
struct tree_part {
	int32_t pid;
	uint32_t reserved;
	uint64_t offset, total;
};

/* ---- restoring ---- */

enum tree_object_kind {
	TREE_PIPE = 1,
	TREE_SOCKET,
	TREE_FILE,
	TREE_MEMORY, /* and other files without a name */
	TREE_FIFO,
	TREE_ENDED,   /* a handle of a process that has ended */
	TREE_TERMINAL /* other: its other side; reserved, device: its session and group */
};

/* Something that several processes have, open in each of them until it is in its place. */
struct tree_object {
	uint32_t kind;
	int32_t fd, other; /* of a pipe: its writing end */
	int32_t reserved;
	uint64_t device, inode; /* of TREE_FILE: the process and the descriptor that it is of */
};

enum { TREE_OBJECTS_MAX = 4096 };

struct tree_sink {
	uint64_t magic;
	_Atomic uint32_t ready, failed;
	uint32_t processes; /* that have to be ready */
	int32_t root;
	uint32_t objects;
	struct ipc_moved moved[IPC_MOVED];
	uint32_t moved_count;
	char passed[IMAGE_PASS_MAX];
	size_t passed_len;
	struct {
		int32_t pid, fd;
		_Atomic uint32_t made; /* by its parent, which may be a descendant itself */
		struct tree_record is;
	} image[TREE_MAX];
	uint32_t images;
	struct tree_object object[TREE_OBJECTS_MAX];
};

struct sink;
struct fd_restore;
struct fd_record;

/* Of a root: makes what its descendants need, and them. Nothing without any. */
hale_status_t tree_begin(struct sink *s, struct error *err);
/* All have put back what others could change. */
hale_status_t tree_meet(struct error *err);
/* HALE_SINK of a descendant: becomes it, or returns with err. */
void tree_member_sink(const char *spec, struct error *err);

/* Is this process one of several that are rebuilt together? */
bool tree_has_begun(void);
/* What the root says of System V memory. */
const struct ipc_moved *tree_ipc_moved(size_t *count);

/* The terminal of this process's session, whether it has a descriptor of that or not; and, when all
 * processes are there, its foreground group. */
void tree_terminals_take(void);
void tree_terminals_group(void);

/* This process can't be rebuilt, so none of them can. */
void tree_fail(void);

/* A descriptor of the object that record is of, out of the way; -1: it is of no such object. */
int tree_object_open(const struct fd_restore *f, const struct fd_record *r);
/* Is pid this process, or one of its tree that has been made again? */
bool tree_is_made(int32_t pid);
/* The file that shared memory lies in; -1: it is nobody else's. */
int tree_memory(uint64_t device, uint64_t inode);

#endif
