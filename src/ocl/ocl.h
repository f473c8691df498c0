/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl/: an OpenCL layer (clInitLayer, found through OPENCL_LAYERS) that lets programs survive
 * errors in device memory, after VOCL-FT (Peña, Bland, Balaji, SC 2015).
 *
 * Handles stay the runtime's own; for each object there is a shadow, found by its handle. Every
 * command is logged in the domain (the context) it belongs to. Where the program waits, an epoch
 * may close: device errors are looked for, and then either the domain is checkpointed and its log
 * dropped, or, after an error, its memory is restored and the log replayed before the program
 * sees anything. May call: base/. Called by: the OpenCL loader. docs/opencl.md is the long story.
 *
 *   entry/ ──▶ log/ ──▶ the runtime, or remote/: the runtime in a process of its own
 *   what       what is          │
 *   programs   logged,          ▼
 *   call       replayed ◀── epoch/: where one closes; errors, checkpoints, other devices
 *
 * One recursive lock, ocl.lock, guards everything here. It is held while a command is handed to
 * the runtime, so that the log has the order of the queues, and while an object is made, so that
 * it is of the device where its context is, and not while the program waits or builds; but
 * where one thread calls, blocking reads are the runtime's own (submit.c).
 */
#ifndef HALE_OCL_OCL_H
#define HALE_OCL_OCL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/cancel.h"
#include "ocl/cl.h"
#include "ocl/log/ranges.h"
#include "ocl/settings.h"

typedef enum ocl_kind {
	OCL_CONTEXT,
	OCL_QUEUE,
	OCL_MEM,
	OCL_SVM,
	OCL_SAMPLER,
	OCL_PROGRAM,
	OCL_KERNEL,
	OCL_EVENT,
	OCL_RECORDED,
} ocl_kind_t;

/* What every shadow begins with. */
struct ocl_object {
	void *handle;	 /* the program's: also the identity after a move to another device */
	void *real;	 /* what commands are given: differs from handle only after a move */
	void *next_real; /* while a move is being made */
	ocl_kind_t kind;
	uint32_t refs;	/* the program's */
	uint32_t held;	/* ours: log entries, children */
	uint32_t kin;	/* objects that the program has, and for which the runtime keeps this one:
			 * parts of memory, a program's kernels */
	bool made_away; /* where its context was by then: on a device that the program doesn't know
			 */
	struct domain *domain;
	struct ocl_object *next, *prev; /* in the domain, in order of creation; not events */
};

/* ---- memory ---- */

enum { OCL_CHUNK = 1 << 20 };
typedef enum ocl_modified {
	OCL_CLEAN = 0,
	OCL_BY_HOST = 1,   /* by writes that the log has */
	OCL_BY_DEVICE = 2, /* by kernels, copies … */
	OCL_FRESH = 4,	   /* nothing is on file of it yet */
} ocl_modified_t;

struct chunk {
	uint64_t hash[2]; /* of what the checkpoint holds */
	int8_t slot;	  /* of the two on file the one that is valid; -1: none */
	int8_t next;	  /* slot written by the checkpoint in progress; -1: none */
	bool hashed;
	uint64_t next_hash[2];
};

struct mem {
	struct ocl_object o;
	struct mem *root;   /* of a sub-buffer or buffer image: whose memory it is; else itself */
	struct mem *parent; /* what it was made of, held; NULL: of nothing */
	size_t offset;	    /* in root */
	size_t size;	    /* bytes of the content as we read it */
	cl_mem_object_type type;
	cl_mem_flags flags;
	cl_mem_properties *properties; /* 0-terminated, or NULL */
	void *host_ptr;
	/* images */
	cl_image_format format;
	cl_image_desc desc;
	size_t region[3], element;
	bool plain; /* cl_buffer_region, sub-buffers: no checkpoint of its own */
	/* what is known of the content */
	unsigned modified;	      /* in this epoch */
	bool read_only;		      /* by its flags */
	bool told_read_only, scratch; /* by haleSetMemFlags */
	bool writes_seen;	      /* a kernel was given it writable in spite of read_only */
	bool promised;	 /* a kernel was given it by a pointer to const, in this epoch */
	bool distrusted; /* one of these has written to it */
	bool saved;	 /* the checkpoint has all of it */
	bool filled;	 /* something was put there before the last checkpoint */
	bool put_off;	 /* its last release */
	uint64_t whole;	 /* order of the last command that overwrites it all (consolidation) */
	void *shown;	 /* where the host may look at it, or write to it; NULL: not mapped by us */
	void **lent;	 /* what it was between moves, while the program had mappings there: these
			  * are the runtime's memory, and released with the object. NULL: none */
	uint32_t lent_count;
	/* scratch: the newest command that uses it, as the last checkpoint saw it */
	struct queue *user; /* held; NULL: none */
	uint64_t used_at;   /* its number */
	/* on file */
	struct chunk *chunks;
	size_t chunk_count, chunk_size;
	off_t at;   /* of slot 0; slot 1 follows */
	off_t span; /* bytes of one slot */
};

/* ---- programs and kernels ---- */

struct step { /* how a program came to be: compile, link, build */
	struct step *next;
	char *options;
	char kind; /* 'b' build, 'c' compile */
	cl_uint headers;
	struct ocl_program **header;
	char **header_name;
};

struct constant { /* a specialization constant of a program in an intermediate language */
	struct constant *next;
	cl_uint id;
	bool later; /* set since the last build: of no effect yet */
	size_t size;
	unsigned char value[];
};

struct ocl_program {
	struct ocl_object o;
	char *source;
	size_t source_len;
	void *il;
	size_t il_len;
	struct constant *constants; /* in the order in which they were set */
	unsigned char *binary;
	size_t binary_len;
	cl_device_id binary_device;
	char *builtin; /* names of built-in kernels */
	struct step *steps;
	bool
	    building; /* the program is in a call that does the last step: moves leave it to that */
	struct ocl_program **linked; /* made by clLinkProgram of these */
	cl_uint linked_count;
	char *link_options;
};

struct arg {
	size_t size;
	void *value; /* NULL: local memory of that size, or never set */
	bool set, svm;
	bool constant; /* the kernel can't write through it, */
	bool promised; /* unless it casts const away */
	bool handle;   /* may be a memory object or sampler */
	bool object;   /* it was one when the kernel was launched with it */
};

/* Never changed while more than one refers to it. */
struct args {
	uint32_t refs;
	cl_uint count;
	struct arg at[];
};

struct kernel {
	struct ocl_object o;
	struct ocl_program *program;
	char *name;
	struct args *args;  /* as the program set them */
	struct args *bound; /* as the runtime has them, during a replay; NULL: as args */
	bool svm_pointers;  /* clSetKernelExecInfo gave some: any of them may be written */
	bool svm_system;    /* … or any memory of the process */
	bool looked_up, sampler_args;
};

/* ---- queues and events ---- */

struct queue {
	struct ocl_object o;
	cl_device_id device;
	cl_device_id first_device; /* as the program gave it; retained */
	cl_command_queue_properties properties;
	cl_queue_properties *list; /* as given, 0-terminated, or NULL */
	bool out_of_order, on_device;
	bool kept; /* the runtime's: ours to release. The program has released it when commands in
		    * it waited for the program */
	uint64_t last_number;	 /* of the newest command in it */
	uint64_t finished;	 /* all up to this one are known to have run */
	uint64_t gates;		 /* that some of its commands wait for */
	uint64_t barred;	 /* that whatever comes behind its last barrier waits for */
	cl_event before_gate;	 /* a marker behind the commands that wait for no gate */
	cl_command_queue replay; /* ours, in order, made when it is first needed */
};

struct event {
	struct ocl_object o;
	struct queue *queue; /* NULL: a user event */
	uint64_t number;     /* of its command in the domain */
	uint64_t gates;	     /* as they were then: ocl_event_gates() */
	uint32_t generation; /* of the domain when it was made */
	bool ours_too;	     /* the log holds one reference more */
	bool seen;	     /* the program knows that it is complete */
	int gate;	     /* a user event's number in the domain, -1: none yet */
	cl_int error;	     /* it has failed, since a user event was set to an error; 0: not */
	bool guessed;	     /* error is the user event's: what came of it couldn't be asked */
	cl_ulong *told;	     /* its times as far as the program has asked for them; NULL: never */
};

/* ---- command buffers (cl_khr_command_buffer) ---- */

struct recorded {
	struct ocl_object o;
	const struct recorder *with;	 /* the functions of its platform */
	struct queue *queue;		 /* held: where it runs unless the program says otherwise */
	struct ocl_entry *first, **last; /* the commands, never logged themselves */
	cl_kernel *kernels;		 /* ours: with the arguments of each launch */
	uint32_t kernel_count;
	uint32_t generation; /* of the domain: later it is unknown to the runtime */
	bool opaque;	     /* not all that was recorded is known here */
};

/* ---- the log ---- */

typedef enum ocl_op {
	OP_READ,
	OP_READ_RECT,
	OP_READ_IMAGE,
	OP_WRITE,
	OP_WRITE_RECT,
	OP_WRITE_IMAGE,
	OP_COPY,
	OP_COPY_RECT,
	OP_COPY_IMAGE,
	OP_COPY_IMAGE_TO_BUFFER,
	OP_COPY_BUFFER_TO_IMAGE,
	OP_FILL,
	OP_FILL_IMAGE,
	OP_KERNEL,
	OP_TASK,
	OP_RECORDED, /* a command buffer */
	OP_NATIVE,   /* a function of the program */
	OP_MAP,
	OP_MAP_IMAGE,
	OP_UNMAP,
	OP_MIGRATE,
	OP_MARKER,
	OP_BARRIER,
	OP_SVM_COPY,
	OP_SVM_FILL,
	OP_SVM_MAP,
	OP_SVM_UNMAP,
	OP_SVM_MIGRATE,
	OP_SVM_FREE,
	OP_INIT, /* the content that a new object was given */
} ocl_op_t;

struct blob { /* host data: in memory, or in the spill file when there is much of it */
	void *memory;
	off_t at;    /* in the store, when memory is NULL */
	size_t size; /* 0: none */
};

struct ocl_entry {
	struct ocl_entry *next;
	ocl_op_t op;
	struct queue *queue;
	uint64_t number;  /* of the command in its domain */
	uint64_t order;	  /* rises along the log: the number, but for what was moved */
	uint64_t gates;	  /* user events that it waits for */
	bool failed;	  /* one of them was set to an error */
	bool lasting;	  /* may change what must outlive the epoch: not only scratch objects */
	cl_event own;	  /* ours to release; NULL: none */
	bool arrived;	  /* reads and maps: was complete before the last check */
	bool uncaptured;  /* writes: the host data is still only the program's */
	bool behind_read; /* writes: an earlier read that was under way brings that data */
	bool superseded;  /* writes and ends of mappings: overwritten as a whole: not repeated */
	struct ocl_entry *over;	   /* the one before, of which that is or will be so; NULL: none */
	struct ocl_entry *written; /* what a replay passes over: the one before it that writes; only
				    * what is like it is between them. NULL: none */
	bool from_host;		   /* SVM copies out of plain host memory */
	bool blocks; /* while it is issued for the first time: returns when it has run */
	cl_mem dst_handle, src_handle;
	struct mem *dst, *src; /* held */
	size_t a[3], b[3], region[3], pitch[4];
	bool has[3];   /* kernels: offset, global and local size were given */
	cl_uint count; /* dimensions, objects */
	cl_ulong flags;
	void *host;	  /* the program's memory; OP_SVM_FREE: svm_free.c's */
	size_t host_span; /* how far it reaches */
	struct blob data;
	cl_kernel kernel_handle;
	struct kernel *kernel; /* held */
	struct args *args;
	struct recorded *recorded;	   /* held */
	void(CL_CALLBACK *native)(void *); /* data: its arguments, then where handles belong */
	struct ocl_object **used; /* held: memory objects and samplers among the arguments */
	uint32_t used_count;
	struct ocl_object *few[4]; /* used, where it has room for them */
};

struct ocl_map {
	struct ocl_map *next;
	struct mem *mem;
	struct queue *queue;
	void *ptr;
	cl_map_flags flags;
	ocl_op_t op; /* OP_MAP, OP_MAP_IMAGE, OP_SVM_MAP */
	uint32_t generation;
	uint64_t number; /* of the command in the log */
	size_t a[3], region[3], pitch[2], span;
	void *kept; /* what the program wrote, while memory is being restored */
};

/* ---- domains ---- */

struct ocl_store {
	int fd;	       /* -1: none, or given up */
	off_t end;     /* bytes given out */
	uint32_t life; /* ocl.lives when it was opened: later it is gone */
	bool tried, told;
	struct extent *free;
};

struct domain { /* a context */
	struct ocl_object o;
	cl_context_properties *properties;
	cl_device_id *devices;
	cl_uint device_count;
	cl_device_id *program_devices; /* as the program knows them: before a move; then NULL */
	struct ocl_object objects;     /* head of a ring */
	uint32_t live;		       /* objects that the program still has, the context too */
	struct mem **svm;	       /* shared virtual memory, by address */
	uint32_t svm_count, svm_room, fine_svm;
	struct ocl_entry *first, **last, **epoch_first; /* the last: of the epoch that is open */
	struct ocl_entry **settled; /* nothing before is unchecked or uncaptured */
	bool has_writes;	    /* the log: some whose data it has; else it has none */
	bool dropped; /* epochs that changed only scratch objects, since the last checkpoint */
	uint64_t entries, numbers, orders;
	bool reordered;	    /* the log: not in the order of the commands' numbers */
	bool natives;	    /* the log has functions of the program, which see device data */
	uint64_t log_bytes; /* of the entries */
	uint64_t host_bytes, spilled;	/* host data in the log: in memory, in the file */
	uint64_t put_off, put_off_left; /* bytes of objects whose last release is put off; of these
					 * what the end of the log has left */
	uint64_t unchecked, uncaptured; /* entries of these kinds */
	struct ranges reading;		/* where those that are unchecked bring data; maybe more */
	struct ocl_map *maps;
	uint64_t gates_unset, gates_used; /* user events by number; those that the log waits for */
	uint64_t gate_since[64];	  /* the newest command when the number was given out */
	uint32_t gates_shared;		  /* unset ones beyond those that have a number each */
	uint32_t generation;		  /* moves so far */
	/* what was repeated after the last of them: from when to when, by clock_seconds() */
	double repeated_from, repeated_to;
	bool away;		       /* its devices are not those that the program knows */
	uint32_t moved_at;	       /* ocl.moves after the last of them */
	uint64_t epochs, epochs_since; /* closed; since the last checkpoint */
	uint32_t open_checks;	       /* in a row, at which none closed */
	double checkpoint_at, checkpoint_cost;
	bool save_failed; /* the last one */
	uint64_t checkpoint_bytes;
	struct ocl_store store;
	uint64_t errors_base; /* detector's count that is no news */
	bool unprotected;     /* something can't be replayed before the next checkpoint */
	bool dead;	      /* an error that could not be mended */
	bool damaged;	      /* the last error was a pretended one: memory is damaged on purpose */
	bool lost;	      /* the error being mended is that the device no longer answers */
	unsigned renewals;    /* tries of the same device in new contexts */
	bool late;	      /* the log bound was met: close the epoch where that is possible */
	cl_mem pin;	      /* pinned host memory for copies */
	char *pin_at;
	size_t pin_size;
	cl_command_queue own_queue; /* where the program has none yet */
	cl_device_id *tried;	    /* devices that have failed */
	cl_uint tried_count;
	cl_program hash_program;
	cl_kernel hash_kernel;
	bool hash_tried;
	struct domain *next_domain;
};

struct ocl_report {
	uint64_t syncs, epochs, checks, errors, recoveries, checkpoints, moves, commands, replays;
	double log, check, checkpoint, consolidate, restore, replay;
	double move; /* making everything anew elsewhere, a new server too: not counted above */
	uint64_t logged, saved, consolidated, restored, skipped; /* bytes */
	double started;
	char device[128], moved_to[128];
};

struct slot {
	const void *key;      /* NULL: never used */
	struct ocl_object *o; /* NULL: no longer used */
};

struct table {
	struct slot *slot;
	size_t cap, used, dead;
};

extern struct ocl {
	pthread_mutex_t lock;
	const void *holder; /* the thread that had it last, by its ocl_here */
	double changed;	    /* when another one got it; 0: never, or long ago */
	const cl_icd_dispatch *next;
	struct ocl_settings set;
	struct ocl_report report;
	struct table objects;
	_Atomic uint32_t dead; /* shadows of objects that the program has released; written with the
				* lock held, read without it where that is 0 in most programs */
	struct domain *domains;
	bool passive; /* in a child of fork: everything is passed on */
	_Atomic uint32_t
	    moves; /* of all domains: not 0 when some live elsewhere than the program thinks */
	_Atomic uint32_t lives;	     /* of this process: one more with each restart from an image */
	_Atomic uint32_t recoveries; /* under way: what they need of the store is in no image */
	bool staged;		     /* copies through pinned buffers even where memory is shared */
	int pid;
} ocl;

#define NEXT   ocl.next
#define OBJ(p) (&(p)->o)

/* With the lock held: no locked instruction. */
static inline void ocl_count_dead(uint32_t more)
{
	uint32_t n = atomic_load_explicit(&ocl.dead, memory_order_relaxed);

	atomic_store_explicit(&ocl.dead, n + more, memory_order_relaxed);
}

extern __thread char ocl_here __attribute__((tls_model("initial-exec")));
/* With the lock: it has gone from one thread to another. */
void ocl_lock_changes(void);
/* With the lock: no other thread has had it lately. */
bool ocl_lock_is_alone(void);

static inline void ocl_lock(void)
{
	pthread_mutex_lock(&ocl.lock);
	if (UNLIKELY(ocl.holder != &ocl_here))
		ocl_lock_changes();
}

static inline void ocl_unlock(void)
{
	pthread_mutex_unlock(&ocl.lock);
}

static inline int ocl_lock_scope(void)
{
	int before = cancel_put_off();

	ocl_lock();
	return before;
}

static inline void ocl_unlock_scope(const int *before)
{
	ocl_unlock();
	cancel_allow(before);
}

/* Until the end of the block: what an object is made of is moved to another device neither while
 * the runtime makes it nor before its context has it. */
#define MADE_LOCKED                                                                                \
	int made_before_ __attribute__((cleanup(ocl_unlock_scope), unused)) = ocl_lock_scope()

/* ---- table.c: shadows by handle, and their lives ---- */

/* NULL when the program has none of that handle and kind. It has what it has retained, and what it
 * can still ask other objects for, since the runtime keeps it for them. */
void *ocl_find(const void *handle, ocl_kind_t kind);
/* The same, or one that the program has released. */
void *ocl_find_any(const void *handle, ocl_kind_t kind);
/* A memory object, sampler or queue, even one that only the log still has. */
struct ocl_object *ocl_find_held(const void *handle);
/* The handle, or NULL when it is one that the program has released and only the log keeps alive:
 * the runtime wouldn't know it without us. */
void *ocl_checked(void *handle, ocl_kind_t kind);
bool ocl_is_ghost(const void *handle, ocl_kind_t kind);
/* A new object for which the runtime keeps parent. */
void ocl_kin_add(struct ocl_object *parent);
/* A new shadow of size bytes in d (a context is its own domain: d NULL), or NULL: out of memory,
 * the object then goes unprotected. */
void *ocl_object_create(size_t size, ocl_kind_t kind, void *handle, struct domain *d);
void ocl_hold(struct ocl_object *o);
void ocl_drop(struct ocl_object *o);
/* The handle to give to the runtime, with the lock held until that is done with it: the next move
 * releases it. NULL as ocl_checked. */
void *ocl_real(void *handle, ocl_kind_t kind);
/* The same for a call that is made without the lock: it stays what it is until ocl_let(). */
struct ocl_kept {
	void *real; /* NULL: the program keeps it */
	ocl_kind_t kind;
};
void *ocl_real_kept(void *handle, ocl_kind_t kind, struct ocl_kept *kept);
void ocl_let(struct ocl_kept *kept);
/* The runtime has it as real from now on, and what it was, if it had moved before, is released. */
void ocl_object_moves(struct ocl_object *o, void *real);
void ocl_table_add(void *key, struct ocl_object *o);
void ocl_table_remove(void *key, const struct ocl_object *o);
/* Around the runtime's retain and release: exactness, and last releases put off while the log
 * needs the object. release returns what the program gets. */
cl_int ocl_retained(void *handle, ocl_kind_t kind, cl_int status);
cl_int ocl_release(void *handle, ocl_kind_t kind);
/* The kind's part of destruction; the shadow itself is freed by the caller. */
void ocl_object_fini(struct ocl_object *o);
cl_int ocl_runtime_release(void *real, ocl_kind_t kind);
/* A copy of a list of pairs that a 0 ends; NULL for none. */
void *ocl_properties_copy(const intptr_t *list);
/* From before a move: complete, and unknown to the runtime of today. */
bool ocl_event_is_old(const struct event *ev);
/* The same also of a user event that the program has set by then. */
bool ocl_event_was_complete(const struct event *ev);
/* The program knows that ev's command runs, if not more; what it gets for that. */
cl_int ocl_event_runs(struct event *ev);

/* ---- pool.c ---- */
void *ocl_pool_take(size_t size);
void ocl_pool_give(void *p, size_t size);
/* What is spare has no content: images need not have it. Takes no lock. */
void ocl_pool_trim(void);

/* ---- guest.c: checkpoints of the whole process (node/guest.h) ---- */
void ocl_guest_init(void);
/* A descriptor that images leave out. */
void ocl_guest_descriptor(int fd, bool in);

#endif
