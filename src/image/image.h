/* SPDX-License-Identifier: BSD-3-Clause */
/* image/: one engine that captures this process (threads, memory, descriptors, signals) as a
 * stream of checksummed frames, and rebuilds it from such a stream in a fresh process of the same
 * program. Knows nothing of MPI, jobs or checkpoints of several processes.
 * May call: base/. Called by: ckpt/, head/, agent/ (reading side), cli/.
 *
 * One file for each kind of resource; descriptors in fd/. live/ is the same as a stream into
 * another process while this one runs.
 *
 * Everything that runs inside the user's process is async-signal-safe: no malloc, no stdio.
 *
 *   ckpt/ (one thread, the coordinator)              image/
 *   image_park()          ── signal ──▶ every other thread sleeps in its handler
 *   image_capture()       fork; the child, a frozen copy, writes frames ──▶ file
 *     == IMAGE_CAPTURED   (same process, milliseconds later)
 *     == IMAGE_RESTORED   (another process, perhaps days later; other threads exist, parked)
 *   image_unpark()        ── futex ──▶ every other thread returns from its handler
 */
#ifndef HALE_IMAGE_IMAGE_H
#define HALE_IMAGE_IMAGE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

/* Locks of open files (F_OFD_SETLK) from this byte on are Hale's own: no image has them. */
#define IMAGE_LOCKS_OURS ((uint64_t)1 << 61)

enum { IMAGE_NAME_MAX = 64, IMAGE_NOTE_MAX = 4096, IMAGE_CHAIN_MAX = 64 };

/* Who an image is of; stored in its header, checked by the sink. */
struct image_identity {
	char job[IMAGE_NAME_MAX];
	uint32_t rank, nranks;
	uint32_t id;   /* number of the checkpoint */
	uint32_t base; /* number of the one that this one is a difference to; 0: it is full */
};

typedef enum image_mode {
	IMAGE_FORKED, /* fork; the child writes; the pause is the fork */
	IMAGE_SYNC,   /* the caller itself writes before image_capture returns */
} image_mode_t;

typedef enum image_compress { IMAGE_PLAIN, IMAGE_LZ4, IMAGE_ZSTD } image_compress_t;

struct image_result {
	struct error error;   /* code HALE_OK when the image is whole and synced */
	uint64_t bytes;	      /* length of the image */
	uint64_t pages_saved; /* 4 KiB pages whose content is in it */
	uint64_t pages_zero;  /* skipped because they are zero */
	uint64_t pages_same;  /* skipped because the sink of a live image has them already */
	uint64_t checksum; /* depends on every byte of the file (frame.h), what manifests carry */
	uint32_t base;	   /* 0: the image is full, although a difference was asked for */
	double seconds;	   /* from fork to the last byte synced */
};

struct live_round;

struct image_params {
	struct image_identity identity;
	const char *path; /* file to create, O_EXCL, mode 0600; taken away again on failure */
	image_mode_t mode;
	image_compress_t compress;
	bool incremental; /* only what was written since the previous tracked capture, which must
			   * be identity.base and whole; otherwise the image becomes a full one */
	bool track;	  /* start/renew dirty tracking with this capture, for a later difference */
	bool sync;	  /* fdatasync the file before it counts as written */
	const void *note; /* bytes of the layer above, kept in the header; at most IMAGE_NOTE_MAX */
	size_t note_len;
	/* Called once when the image is written or has failed: in the writing child (IMAGE_FORKED),
	 * which then _exits, or in the caller (IMAGE_SYNC). Descriptors are those of the parent. */
	void (*written)(void *arg, const struct image_result *result);
	void *arg;
	/* Other ranks whose images are of the same moment, or NULL. Of System V objects: does this
	 * one save it? 1: it does, 0: another one does, -1: nobody can tell */
	struct image_beside *beside;
	int (*claim)(int kind, int id);
	const struct live_round *live; /* into a stream instead of path (live.h); NULL: a file */
};

typedef enum image_return {
	IMAGE_FAILED = -1, /* nothing was captured; err says why; threads are still parked */
	IMAGE_CAPTURED = 0,
	IMAGE_RESTORED = 1,
} image_return_t;

/* Once, early (library constructor): remembers which pipes are the standard streams, installs the
 * park handler on a real-time signal, tests for dirty tracking. thread_busy(), called in a
 * thread's park handler, says that this thread is inside the library and must not sleep there;
 * image_park() then reports it. thread_revived(), or NULL, is called there in a
 * thread of a restored process before it goes on. */
void image_init(bool (*thread_busy)(void), void (*thread_revived)(void));

/* libc's sigaction, for handlers of the library's own: what has that name is the program's
 * (ckpt/masks.c). */
int image_sigaction(int sig, const struct sigaction *act,
		    struct sigaction *old) __asm__("__sigaction");

/* The real-time signal that the park handler uses; ckpt/ has a second one (PROTO_CKPT_SIGNAL). */
int image_park_signal(void);

/* Memory and descriptors of the library itself that an image must not contain: the job's shared
 * segment, the socket to the agent. At most 16 of each. Memory counts in whole pages: all that
 * begin or end between addr and addr + len are left out. */
void image_exclude_add(const void *addr, size_t len);
void image_exclude_remove(const void *addr);
void image_fd_own(int fd);
void image_fd_disown(int fd);
/* The numbers now owned (the engine's own, for dirty tracking, among them), for image_check from
 * outside; returns how many were written to fds. They may change with every image_capture. */
size_t image_fds_owned(int *fds, size_t max);

/* Can process pid be captured? Looks at /proc/PID from outside and stops nothing. own[] are
 * descriptor numbers to pass over; passed (may be NULL) says so of descriptors and mappings that
 * come and go, by their link in /proc/PID/fd or file. HALE_ERR_UNSUPPORTED with a sentence that
 * names number, kind and target of the first descriptor or mapping that can't be saved (socket,
 * GPU, …). */
hale_status_t image_check(pid_t pid, const int *own, size_t own_count,
			  bool (*passed)(const char *link), struct error *err);

/* Processes that are captured together, and may have both ends of a pipe. */
enum { IMAGE_TREE_MAX = 257 };
/* Other ranks, whose images are of the same moment. */
struct image_beside {
	int32_t pid[IMAGE_TREE_MAX];
	size_t count;
	bool shared; /* found: one of these has something of the kernel together with it */
	bool met;    /* they may have sent each other descriptors */
};
struct image_tree {
	int32_t pid[IMAGE_TREE_MAX];
	size_t count;
	struct image_beside *beside; /* or NULL */
};
hale_status_t image_check_in(pid_t pid, const int *own, size_t own_count,
			     bool (*passed)(const char *link), const struct image_tree *tree,
			     struct error *err);

/* Can all threads of the process be stopped, and made again? HALE_ERR_UNSUPPORTED with a sentence
 * for a thread that waits for signals while the one that stops it is blocked, or that has filtered
 * its system calls. */
hale_status_t image_check_threads(pid_t pid, struct error *err);

/* Has a process outside of the tree used the same System V objects, or one that can't be saved?
 * HALE_ERR_UNSUPPORTED with a sentence. tree may have none. */
hale_status_t image_check_ipc(pid_t pid, const struct image_tree *tree, struct error *err);
/* Is there any System V object on this machine? */
bool image_ipc_any(void);

/* What this process does with the kernel's objects that no descriptor shows, told by whoever stands
 * before libc's functions. kind: enum ipc_kind (frame.h). */
void image_ipc_used(int kind, int id);
void image_ipc_gone(int kind, int id);
bool image_ipc_is_used(void); /* … has been told of some */
/* A semaphore operation with SEM_UNDO has been done: the kernel adds change at this process's end.
 */
void image_ipc_undo(int id, int number, int change);
/* A semaphore was set to a value (number -1: all of the set): nothing is given back of it. */
void image_ipc_set(int id, int number);
/* A watch of inotify has been added by that name. */
void image_watch_note(const char *path, uint32_t mask);

/* Can its children, and theirs, be captured with it? own: the library's descriptors in it, which
 * they may have, too. tree gets all of them, or none if it has none. HALE_ERR_AGAIN with a sentence
 * that names the first that can't. Looks from outside, and may miss one that is just being made.
 * The processes that write images are not counted. */
hale_status_t image_check_children(pid_t pid, const int *own, size_t own_count,
				   struct image_tree *tree, struct error *err);
/* Does the calling process have children, running or not waited for yet? Exact while all other
 * threads are parked. Allocates nothing. */
bool image_has_children(void);

/* Stops every other thread of this process in its park handler. Returns the number of threads
 * that could not park because they were busy (0: all sleep), or -1 when one didn't answer within
 * 5 s. Not 0: nobody is left parked. */
int image_park(void);
void image_unpark(void);

/* Captures; see the picture above. All other threads are parked. *pause_ns gets the time that
 * the call took in the original process. */
image_return_t image_capture(const struct image_params *params, uint64_t *pause_ns,
			     struct error *err);

/* After IMAGE_RESTORED, where there was a claim: all who share objects have come back. */
void image_ipc_together(void);

/* After IMAGE_RESTORED: the note that was captured, and its length. */
const void *image_note(size_t *len);

typedef enum image_restart { IMAGE_FULL, IMAGE_LAZY } image_restart_t;

/* Becomes the process in the image: never returns on success. For a fresh process of the same
 * program, before main, without address-space randomisation. paths[0] is the newest image, the
 * following ones its bases, the last one full. sums, if not NULL, are the checksums that they must
 * have, as image_result gave them: an image of another checkpoint or job is none. Files that belong
 * to others, or that others may write, are refused (HALE_ERR_IMAGE_MISMATCH). On failure before the
 * point of no return it returns with err filled; after it, it writes a sentence to stderr and exits
 * with 70. */
hale_status_t image_sink(const char *const *paths, const uint64_t *sums, size_t count,
			 image_restart_t how, struct error *err);

/* Something small that the process before image_sink hands to the process after it (the agent's new
 * address), since its own environment and memory vanish: at most IMAGE_PASS_MAX bytes, kept in the
 * scratch region. image_passed() gives it after IMAGE_RESTORED, until the next image_capture. */
enum { IMAGE_PASS_MAX = 1024 };
hale_status_t image_pass(const void *bytes, size_t len);
const void *image_passed(size_t *len);

/* Before image_sink: what tells the job and the node from all others. By it ranks find each other
 * that have had descriptors together. */
void image_meet(const void *bytes, size_t len);

/* Does a child of this process still write an image of it? */
bool image_is_writing(void);

/* In a signal handler, before returning from it: if the signal interrupted a system call that
 * would now fail with EINTR, arranges that the program doesn't notice (ucontext is the handler's
 * third argument). */
void image_restart_syscall(void *ucontext);

/* ---- reading side, for ordinary processes (malloc allowed) ---- */

struct image_info {
	struct image_identity identity;
	char program[256];
	uint32_t version, threads, maps, descriptors;
	int32_t pid; /* it had; programs that remember theirs want it again (clone3, set_tid) */
	uint64_t bytes, pages, note_len;
	uint64_t
	    checksum; /* by the heads of its frames; whether the rest is right is not looked at */
	image_compress_t compress;
	unsigned char note[IMAGE_NOTE_MAX];
};

/* Reads header and structure. HALE_ERR_IMAGE_MISSING, _TORN, _CORRUPT with a sentence. */
hale_status_t image_read_info(const char *path, struct image_info *info, struct error *err);

/* Reads every frame and checks every checksum; *checksum gets that of the file, the same that
 * image_result has. */
hale_status_t image_verify(const char *path, uint64_t *checksum, struct error *err);

/* Prints what is in an image for people, or as JSON. */
hale_status_t image_show(const char *path, bool json, struct error *err);

/* Writes to out a full image with the content of the chain paths[0..count): consolidation. */
hale_status_t image_consolidate(const char *const *paths, size_t count, const char *out,
				struct error *err);

#endif
