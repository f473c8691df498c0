/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of image/ share: the engine's state inside the process that is captured. It lies
 * in ordinary private memory and so travels in the image itself. */
#ifndef HALE_IMAGE_ENGINE_H
#define HALE_IMAGE_ENGINE_H

#include <signal.h>
#include <stdatomic.h>

#include "base/base.h"
#include "image/arena.h"
#include "image/frame.h"
#include "image/image.h"
#include "image/sys.h"

enum { ENGINE_OWN_MAX = 16, ENGINE_FDS_MAX = 256, ENGINE_SOURCES_MAX = IMAGE_CHAIN_MAX };

/* Identity of an open pipe, terminal or file. */
struct file_identity {
	uint64_t device, inode;
};

struct engine {
	bool ready;
	bool (*thread_busy)(void);
	void (*thread_revived)(void); /* or NULL */
	int32_t tid_offset;	      /* see process_record; -1: unknown */

	struct {
		uint64_t start, end;
	} exclude[ENGINE_OWN_MAX];
	int own[ENGINE_FDS_MAX];
	unsigned own_count;

	struct file_identity stream[3]; /* what 0, 1, 2 were at the start; inode 0: nothing */
	struct sched_record began;	/* how the process ran at its start */
	int32_t oom_began;
	uint64_t processor; /* features that the program may have chosen at its start */

	/* image files that parts of memory are mapped from after a lazy restart */
	struct file_identity source[ENGINE_SOURCES_MAX];
	unsigned source_count;

	char note[IMAGE_NOTE_MAX];
	size_t note_len;
	char passed[IMAGE_PASS_MAX];
	size_t passed_len;
	bool has_passed;
	uint64_t meeting; /* image_meet */
};

extern struct engine engine;

/* What 0, 1 and 2 are in this process. */
void engine_streams(struct file_identity stream[3]);

/* ---- restart.c ---- */

/* This thread comes out of an image: the time until now was not its own. */
void image_restart_revived(void);

/* ---- threads.c ---- */

/* Fills c and returns 0; returns 1 when context_jump comes back to it, maybe in another process. */
int context_save(struct frame_context *c) __attribute__((returns_twice));
void context_jump(const struct frame_context *c) __attribute__((noreturn));

/* The caller's own kernel-side state. */
void thread_describe(struct thread_record *t);
/* Adds a record of every parked thread; false when memory is out. */
bool threads_collect(struct list *threads);
/* In the new process, as the thread that t describes: registers with the kernel what t says. */
void thread_revive(const struct thread_record *t, int64_t rseq_offset, uint32_t rseq_len);
/* The kernel writes the processor's number into the calling thread's rseq area whenever it is
 * preempted. No more of that: for who saves that memory, or is about to unmap it. */
void thread_rseq_unregister(void);
/* After a restart, by the first thread and by the coordinator: none has been revived yet; all
 * that were parked sleep again. */
void threads_expect_revival(void);
void threads_await_parked(void);
bool threads_init(void);

/* ---- worker.c: helper threads without libc ---- */

/* clone(2); the new thread calls run(arg) on its stack and ends. */
long clone_run(unsigned long flags, void *stack, volatile void *parent_tid,
	       volatile void *child_tid, uint64_t tls, void (*run)(void *), void *arg);

/* The same by clone3(2), which gives the thread the id that args ask for. */
struct clone_args;
long clone_run_as(const struct clone_args *args, size_t size, void (*run)(void *), void *arg);

enum { WORKERS_MAX = 8 };
struct worker {
	volatile uint32_t tid; /* cleared and futex-woken by the kernel at the end */
	void (*run)(void *arg);
	void *arg;
};
/* Cores this process may use, at most WORKERS_MAX. */
unsigned workers_wanted(void);
/* Runs run(arg) in `count` threads, the caller one of them, until all have returned. Only raw
 * system calls and pure functions in run: they share the caller's thread-local storage. */
void workers_run(struct arena *a, unsigned count, void (*run)(void *), void *arg);

/* ---- process.c ---- */

struct process_capture {
	struct process_record record;
	char cwd[IMAGE_PATH_MAX];
	char auxv[1024];
};
hale_status_t process_collect(const struct list *maps, struct process_capture *p,
			      struct error *err);
bool process_program(char *path, size_t cap);
uint64_t process_xfeatures(void);
/* processor.c: features that are here; those of them that a program which starts here may choose;
 * and their names. Of the same bits as image_header.xfeatures. */
uint64_t processor_features(void);
uint64_t processor_chosen(void);
size_t processor_names(uint64_t bits, char *text, size_t cap);
/* [vdso] and what belongs to it, as they lie now, and the hash of the vDSO's code. */
void process_kernel_regions(const struct list *maps, struct kernel_region region[PROCESS_REGIONS],
			    uint64_t *sum);
/* In the new process: where heap, arguments and environment lie. False: the heap can't grow. */
bool process_set_landmarks(const struct process_record *r, const void *auxv);
uint64_t process_start_brk(void);
int32_t process_oom_read(void);
void process_oom_write(int32_t adj);
/* membarrier(2): registers for these commands; each process has to. */
void process_register_barriers(uint32_t commands);

/* ---- scheduling.c ---- */

/* How a thread runs; 0: the caller. */
void scheduling_read(struct sched_record *r, int32_t tid);
/* Adds a record of each thread that runs otherwise than the process began to records, after one of
 * that; none if all run so. False: no memory. */
bool scheduling_collect(const struct list *threads, struct list *records);
/* In the new process, once all threads are there; says what can't be. */
void scheduling_restore(const struct sched_record *r, size_t count, int32_t (*new_tid)(int32_t));
/* All soft limits to the hard ones, for what a restart needs. */
void limits_raise(void);
/* An image may be larger than the files of the program may be (ulimit -f). Only root can pass a
 * hard limit. What it was, and back to that. */
void limits_lift_files(struct rlimit64 *was);
void limits_set_files(const struct rlimit64 *limit);
/* As they were, as far as that is allowed; says what is not. */
void limits_restore(const struct rlimit64 *limits);

/* ---- signals.c ---- */

bool signals_collect(struct signals_record *s, struct list *timers);
/* Actions at once; timers and pending signals when the process is about to run on. */
void signals_restore_actions(const struct signals_record *s);
/* Before an image: gives timers on processor time the ids that they have now, if they have none.
 * Why a timer can't be saved, or NULL. */
const char *signals_clocks_refusal(struct list *timers, size_t threads);
/* After it: those that threads have now. */
void signals_clocks_correct(struct timer_record *timers, size_t count, int32_t (*new_tid)(int32_t));
void signals_restore_timers(const struct signals_record *s, const struct timer_record *timers,
			    size_t count);

/* ---- maps.c ---- */

/* One line of /proc/PID/maps. */
struct map {
	uint64_t start, end, offset, device, inode;
	uint32_t prot;
	bool shared, deleted;  /* deleted: the file has no name any more */
	bool locked, on_fault; /* in memory (maps_find_locked); on_fault: as its pages come */
	const char *name;      /* path without " (deleted)", "[stack]", or "" */
};
/* All lines of a maps file, in order of addresses. */
hale_status_t maps_scan(const char *path, struct arena *a, struct list *maps, struct error *err);
/* Mappings that images never hold: the kernel's own, ours, excluded ones. */
bool map_is_kernel(const struct map *m);
/* System V shared memory: its inode is the number of that. */
bool map_is_sysv(const struct map *m);
bool map_is_excluded(uint64_t start, uint64_t end);
/* Why a mapping can't be captured; NULL when it can. */
const char *map_refusal(const struct map *m);
bool map_is_own_source(const struct map *m);
enum map_kind map_kind_of(const struct map *m);
/* Records of all mappings that belong into an image, with their paths in text; neighbours that
 * differ only in how a lazy restart put them there are one again. */
hale_status_t maps_record(const struct list *maps, struct list *records, struct arena_bytes *text,
			  struct error *err);
/* ---- locked.c ---- */

/* Marks the locked ones of this process; *future gets mlockall's flags for mappings to come. */
bool maps_find_locked(struct list *maps, uint32_t *future);
/* What madvise(2) was told of the memory of this process: struct advice_record. *wiped is the first
 * that the kernel empties in a forked process (MADV_WIPEONFORK); 0: there is none. False: it can't
 * be found out. */
bool maps_find_advice(struct list *maps, struct list *advice, uint64_t *wiped);
bool map_grows_down(const struct map *m);

/* Size, time and build id of an open file. */
hale_status_t file_stamp_read(int fd, struct file_stamp *stamp);
bool file_stamp_same(const struct file_stamp *a, const struct file_stamp *b);

/* ---- memory.c ---- */

/* Pages at `addr` of the process whose content is to be saved, found at `source` now. */
struct run {
	uint64_t addr, source, pages;
	bool keep_zero; /* zero pages count: they aren't what a fresh mapping holds */
	bool unsafe;	/* may lie behind the end of its file: don't touch, ask the kernel */
};

/* A range of addresses whose pages may have been written since the base image. */
struct range {
	uint64_t start, end;
};

struct selection {
	struct arena *arena;
	int pagemap;	    /* /proc/self/pagemap of the process that writes */
	bool no_scan;	    /* the kernel has no PAGEMAP_SCAN */
	bool sees_guards;   /* it says where guard regions are */
	struct list guards; /* struct range, of the whole process */
	bool incremental;
	struct list runs;	      /* struct run */
	struct list drops;	      /* uint64_t: runs that are as in a fresh mapping */
	uint64_t pages;		      /* in runs */
	struct sys_page_region *scan; /* room for what one ioctl returns */
};
bool selection_init(struct selection *s, struct arena *a, bool incremental);
/* Of the calling process: for all selection_add until selection_close. */
bool selection_open(struct selection *s);
void selection_close(struct selection *s);
/* Adds what image needs of a private mapping. written: ranges inside it (struct range) that may
 * have changed since the base, in order, perhaps none; NULL: all of it. */
bool selection_add(struct selection *s, const struct map *m, const struct list *written);
/* Before that: where guard regions are. */
bool selection_find_guards(struct selection *s);
/* Private copies, made while the process was stopped, of shared memory that has no name. */
bool selection_add_copy(struct selection *s, uint64_t addr, const void *copy, uint64_t pages);

/* ---- guards.c ---- */

/* Does the kernel say where guard regions are? pagemap: a process's, open. */
bool guards_can_be_seen(int pagemap);
/* Adds those from start to end, in order; false: no memory, or it can't be told. */
bool guards_find(int pagemap, uint64_t start, uint64_t end, struct list *ranges);
bool guards_in(const struct list *ranges, uint64_t start, uint64_t end);

#endif
