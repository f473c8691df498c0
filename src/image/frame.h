/* SPDX-License-Identifier: BSD-3-Clause */
/* The format of an image file; little endian; x86-64. A Hale writes IMAGE_VERSION and reads the
 * versions from IMAGE_VERSION_OLDEST on, which lack frames and kinds that were added since. The
 * format also stands for what a restart hands to the library in the image (struct resume_plan),
 * which is as old as the image: a change of that needs a new format, and so a new oldest one.
 *
 *   page 0        struct frame HEADER | struct image_header | note
 *   then frames   struct frame | table … to a page | data … to a page
 *                 struct frame | table … to a page | data … to a page      … to file_len
 *
 * Every frame starts on a page of the file. A table holds records, data holds pages or bytes of
 * files, so that the pages of an uncompressed image can be mapped right from it. What fills up to
 * the next page is zero, and so are whole pages that a frame may have behind it, which make the
 * next one start where a file system likes it: pieces of FRAME_ALIGN that lie on multiples of it
 * are written a third faster.
 *
 * HEADER is written last: until then the file begins with zeroes and is no image. Every byte of a
 * frame is covered: the struct by its own checksum, table and data by checksums in it. What fills
 * up a page is not: a restart does not look at it, so image_verify does not either. The checksum of
 * a whole file is that of all its struct frames in order, which can be computed by several writers
 * in any order and yet depends on every byte of tables and data.
 */
#ifndef HALE_IMAGE_FRAME_H
#define HALE_IMAGE_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "image/image.h"
#include "image/sys.h"

#define FRAME_MAGIC 0x454d4652u		  /* "RFME" */
#define IMAGE_MAGIC 0x4547414d49454c48ull /* "HLEIMAGE" */

/* 1 to 3: libraries in such images take another struct resume_plan
 * 4: named pipes; owners of signals, leases; datagrams of sockets without another end; filters of
 *    sockets, removed folders, handles of ended processes, files with holes
 * 6: descriptors on their way, connections that nobody has accepted, System V IPC, POSIX message
 *    queues, inotify, terminals; what several processes have of eventfd and timerfd
 * 7: what ranks of a node share
 * 8: packets of pipes; options of socket pairs, and more of other sockets */
enum { IMAGE_VERSION = 8, IMAGE_VERSION_OLDEST = 4 };

enum frame_kind {
	FRAME_HEADER = 1,  /* struct image_header, note */
	FRAME_PROCESS,	   /* struct process_record, auxiliary vector */
	FRAME_SIGNALS,	   /* struct signals_record, then struct timer_record[] */
	FRAME_THREADS,	   /* struct thread_record[] */
	FRAME_MAPS,	   /* struct map_record[count], then their paths */
	FRAME_DESCRIPTORS, /* struct fd_record[count], then their texts */
	FRAME_CONTENT,	   /* struct content_record; data: bytes of a file, a pipe */
	FRAME_PAGES,	   /* uint64_t[]: runs; data: their pages, one after the other */
	FRAME_DROPS,	   /* uint64_t[]: runs that are as in a fresh mapping; no data */
	FRAME_LOCKS,	   /* struct lock_record[]: mutexes that are held by a thread id */
	FRAME_SCHEDULING,  /* struct sched_record[]; not if nothing deviates from the start */
	FRAME_FILE_LOCKS,  /* struct file_lock_record[]; not if there are none */
	FRAME_GUARDS,	   /* struct range[]: guard regions; not if there are none */
	FRAME_TREE,	 /* struct tree_record[]: the process and its descendants, if it has any */
	FRAME_TREE_PART, /* struct tree_part; data: of the image of a descendant */
	FRAME_ADVICE,	 /* struct advice_record[]; not if there is none */
	FRAME_OWNERS,	 /* struct owner_record[]; not if there are none */
	FRAME_IPC,	 /* struct ipc_record; data: of that object */
	FRAME_KINDS,
};

struct frame {
	uint32_t magic;
	uint16_t kind;	    /* enum frame_kind */
	uint16_t compress;  /* image_compress_t, of data */
	uint32_t count;	    /* records in the table */
	uint32_t pad;	    /* pages of zeroes behind it */
	uint64_t table_len; /* bytes right behind this struct */
	uint64_t data_len;  /* bytes of data as they stand in the file */
	uint64_t raw_len;   /* bytes of data when decompressed */
	uint64_t table_sum; /* XXH3-64 of the table */
	uint64_t data_sum;  /* XXH3-64 of the data as they stand in the file */
	uint64_t sum;	    /* XXH3-64 of the bytes before */
};
_Static_assert(sizeof(struct frame) == 64, "frames are read from files of other builds");

/* Most that a frame may claim, so that a damaged length can't make a reader allocate without end.
 */
enum { FRAME_DATA_MAX = 4 << 20, FRAME_TABLE_MAX = 64 << 20, FRAME_ALIGN = 256 << 10 };

/* A run of pages in one word: the address of its first page, and in the low 12 bits its number
 * of pages - 1. */
enum { RUN_PAGES_MAX = 4096 };
static inline uint64_t run_make(uint64_t addr, uint64_t pages)
{
	return addr | (pages - 1);
}
static inline uint64_t run_addr(uint64_t run)
{
	return run & ~4095ull;
}
static inline uint64_t run_pages(uint64_t run)
{
	return (run & 4095) + 1;
}

enum { IMAGE_PATH_MAX = 4096, BUILD_ID_MAX = 32 };

/* What must be equal for a file to count as the same program or library. */
struct file_stamp {
	uint64_t size;
	int64_t mtime_ns;
	uint32_t build_id_len;
	unsigned char build_id[BUILD_ID_MAX];
};

struct image_header {
	uint64_t magic;
	uint32_t version;
	uint32_t compress; /* image_compress_t */
	struct image_identity identity;
	uint64_t file_len;
	uint64_t frames; /* including this one */
	uint64_t pages, pages_zero;
	int64_t taken_ns; /* CLOCK_REALTIME */
	uint32_t threads, maps, descriptors;
	uint32_t note_len;
	/* XCR0: extended processor state that signal frames may hold; above it what the program may
	 * have chosen at its start (processor.c, since format 6) */
	uint64_t xfeatures;
	struct file_stamp program_stamp;
	char program[256];
};

enum { PROCESS_REGIONS = 4 };

/* [vdso] and its data pages: moved to their old place, never copied. */
struct kernel_region {
	uint64_t start, end;
	char name[16];
};

/* As prctl sets them. */
enum process_attribute { PROCESS_SUBREAPER = 1, PROCESS_NO_HUGE_PAGES = 2 };

struct process_record {
	int32_t pid;
	int32_t tid_offset; /* of the thread's id in glibc's thread block, from the fs base */
	uint64_t resume;    /* function in the image that takes over when memory is in place */
	uint64_t engine;    /* the engine's state, its argument */
	uint64_t start_code, end_code, start_data, end_data, start_brk, brk, start_stack;
	uint64_t arg_start, arg_end, env_start, env_end;
	uint64_t vdso_sum; /* XXH3-64 of the vDSO's code */
	struct kernel_region region[PROCESS_REGIONS];
	struct rlimit64 limits[RLIM_NLIMITS];
	uint32_t umask, dumpable;
	uint32_t cwd_len, auxv_len; /* both follow this struct, in this order */
	uint32_t rseq_len;
	uint32_t lock_future; /* mlockall(2) for what is mapped in future: its flags, or 0 */
	int64_t rseq_offset;
	uint32_t attributes;	    /* enum process_attribute */
	uint32_t barriers;	    /* commands of membarrier(2) that it has registered for */
	int32_t oom_adj, oom_began; /* /proc/self/oom_score_adj, now and at its start */
};

struct frame_context {
	uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip;
	uint32_t mxcsr;
	uint16_t x87;
	uint16_t reserved;
};

struct thread_record {
	int32_t tid;
	uint32_t leader, coordinator; /* the main thread; the one that called image_capture */
	uint32_t robust_len;
	uint64_t fs, gs, robust,
	    tid_address; /* where the kernel clears the tid at the thread's end */
	uint64_t altstack, altstack_len;
	uint32_t altstack_flags, flags; /* thread_flag */
	sys_set_t mask;	   /* of the coordinator; others have theirs in their signal frame */
	sys_set_t pending; /* sent to this thread and not yet taken */
	struct frame_context context;
	char name[16];
};

enum thread_flag {
	THREAD_NO_NEW_PRIVS = 1, /* prctl(PR_SET_NO_NEW_PRIVS) */
	THREAD_RSEQ = 2,	 /* it has registered for rseq(2) itself: no image is made */
};

enum sched_has { SCHED_HAS_PROCESSORS = 1, SCHED_HAS_POLICY = 2 };
enum { SCHED_WORDS = 128 };

/* How a thread runs, as far as it was changed since the process began; the first one, without a
 * thread, is how the process began. */
struct sched_record {
	int32_t tid;
	uint32_t has; /* sched_has: what of the following counts */
	uint32_t policy, flags, priority;
	int32_t nice;
	uint64_t runtime, deadline, period; /* of SCHED_DEADLINE */
	uint64_t processors[SCHED_WORDS];
};

struct signals_record {
	struct sys_action action[SYS_SIGNALS + 1];
	sys_set_t pending; /* of the process */
	struct itimer_record {
		int64_t interval_s, interval_us, value_s, value_us;
	} itimer[3]; /* as setitimer(2) numbers them */
};

/* A timer made by timer_create: its id in the kernel, and when it fires. */
struct timer_record {
	int32_t id, clock, signal, notify, tid;
	uint32_t reserved;
	uint64_t value;
	int64_t interval_s, interval_ns, value_s, value_ns;
};

enum map_kind {
	MAP_KIND_ANON = 1,    /* private, not of a file */
	MAP_KIND_FILE,	      /* private, of a file: pages that were written are in the image */
	MAP_KIND_SHARED_FILE, /* shared, of a file that has a name */
	MAP_KIND_SHARED_ANON, /* shared, without a name: all content is in the image */
	MAP_KIND_SYSV,	      /* System V shared memory `inode`: content is in a FRAME_IPC */
};

enum map_flag {
	MAP_FLAG_GROWSDOWN = 1,
	MAP_FLAG_NORESERVE = 2,
	MAP_FLAG_HUGEPAGE = 4,
	MAP_FLAG_NOHUGEPAGE = 8,
	MAP_FLAG_DONTFORK = 16,
	MAP_FLAG_WIPEONFORK = 32,
	MAP_FLAG_DONTDUMP = 64,
	MAP_FLAG_LOCKED = 128,
	MAP_FLAG_ONFAULT = 256, /* locked as its pages come */
	MAP_FLAG_SEQUENTIAL = 512,
	MAP_FLAG_RANDOM = 1024,
	MAP_FLAG_MERGEABLE = 2048,
	MAP_FLAG_DROPPABLE = 4096, /* MAP_DROPPABLE: no image has its pages (since format 6) */
};

/* What madvise(2) was told of memory, and how it was mapped. */
struct advice_record {
	uint64_t start, end;
	uint32_t flags, reserved; /* enum map_flag */
};

struct map_record {
	uint64_t start, end, offset;
	uint32_t kind, prot, flags;
	uint32_t path_offset, path_len; /* in the text behind the records */
	uint32_t reserved;
	uint64_t device, inode; /* shared mappings with equal ones are the same memory */
	uint64_t pages;		/* of it that the image holds */
	struct file_stamp stamp;
};

enum fd_kind {
	FD_FILE = 1,   /* a regular file or directory that has a name */
	FD_UNLINKED,   /* a regular file without a name; content is in the image, or in that of
			  an earlier process that has it, too; a = its seals, b = its owner
			  and group; interval_s, _ns: process and number of the descriptor that
			  is the same open file there, or 0 */
	FD_STREAM,     /* standard stream number `a` of the process that is started */
	FD_DEVICE,     /* of the short list */
	FD_PIPE,       /* both ends are in this process; content is in the image */
	FD_EVENT,      /* eventfd: a = counter, b = semaphore */
	FD_TIMER,      /* timerfd: a = clock, value/interval */
	FD_SIGNAL,     /* signalfd: a = set */
	FD_EPOLL,      /* a = number of struct epoll_record in the text */
	FD_SOCKETPAIR, /* AF_UNIX pair inside this process; content is in the image */
	FD_BROKER,     /* connection to an event broker: comes back broken */
	FD_SOCKET,     /* between processes of the image, or listening; a = the other end's inode
			  (of SOCKET_WAITS: of what listens, b = its turn), text: struct
			  socket_record; content is in the image */
	FD_PID,	       /* pidfd: a = the process */
	FD_FIFO,       /* a named pipe: a = capacity; content is in the image */
	FD_QUEUE,      /* a POSIX message queue: text: struct queue_record, then its name */
	FD_INOTIFY,    /* text: struct inotify_record with a path, a times */
	FD_TERMINAL,   /* one that the program has made: a = its number, b = 1: the master; text:
			  struct terminal_record */
	FD_BESIDE,     /* in the image of another rank, of the same moment: a = its process, b = one
			  more than the number there, or 0: by the inode; offset = 1: the end of a
			  pipe to read. a = this process: b ranks ask it (since format 7) */
	FD_KINDS,
};

enum { SOCKET_NAME = 128, SOCKET_OPTIONS = 10, SOCKET_MORE = 24, SOCKET_EXTRA = 96 };
enum socket_end {
	SOCKET_LISTENS = 1,
	SOCKET_CONNECTED,
	SOCKET_LEFT,  /* the other end was closed */
	SOCKET_ALONE, /* datagrams; or it was never connected */
	SOCKET_WAITS, /* nobody has accepted its connection yet (since format 6) */
	SOCKET_BESIDE /* the other end is another rank's, whose image is of the same moment; that
		       * one's inode is fd_record.a (since format 7) */
};
/* SHARES: of one that listens: another one listens at the same address (since format 6) */
enum socket_shut { SOCKET_NO_READ = 1, SOCKET_NO_WRITE = 2, SOCKET_SHARES = 4 };

struct socket_record {
	uint32_t family, type, end, shut;
	uint32_t backlog, name_len, peer_name_len;
	uint32_t on_disk; /* a name in the file system that was there */
	unsigned char name[SOCKET_NAME], peer_name[SOCKET_NAME];
	int64_t option[SOCKET_OPTIONS]; /* fd_socket_options.c; -1: it has none such */
	int64_t more[SOCKET_MORE];	/* likewise */
	uint32_t protocol;
	uint16_t filter;	     /* struct sock_filter that follow this struct */
	uint16_t filter_locked;	     /* SO_LOCK_FILTER */
	int64_t extra[SOCKET_EXTRA]; /* likewise (since format 8) */
};

struct fd_record {
	int32_t fd;
	int32_t same_as; /* index of an earlier record with the same open file, or -1 */
	uint32_t kind, fd_flags;
	uint32_t open_flags, mode;
	uint64_t device, inode, offset, size;
	uint64_t a, b;
	/* of a file: when it was written, when it was made (0: not known) */
	int64_t value_s, value_ns, interval_s, interval_ns;
	uint32_t text_offset, text_len;			    /* in the text behind the records */
	uint32_t truncates;   /* restored: cut to size; of sockets: content is parcels (fd_way.c) */
	uint32_t has_content; /* content frames follow */
};

struct epoll_record {
	int32_t fd;	/* as it was called when it was added */
	int32_t source; /* a descriptor that is the same open file now */
	uint32_t events, reserved;
	uint64_t data;
};

enum ipc_kind { IPC_MEMORY = 1, IPC_SEMAPHORES, IPC_MESSAGES, IPC_KINDS };

/* In ipc_record.mode (since format 7): other ranks have it in images of the same moment; one of
 * these saves it, and this image only says that it has to be there. */
enum { IPC_SHARED = 01000000, IPC_ELSEWHERE = 02000000 };

/* A System V object, or a part of one. Data: bytes of the memory from offset on; uint16_t[count];
 * messages, each a struct ipc_message with its bytes behind it. */
struct ipc_record {
	uint32_t kind; /* enum ipc_kind */
	int32_t id, key;
	uint32_t uid, gid, mode;
	uint32_t removed; /* memory that goes when the last process has detached it */
	uint32_t count;	  /* semaphores, messages; of memory: log2 of its huge pages, or 0 */
	uint64_t size;	  /* bytes of memory; most bytes in a queue */
	uint64_t offset;
};
struct ipc_message {
	int64_t type;
	uint32_t len, reserved;
};

/* A POSIX message queue; its name follows. Content: struct queue_message, then its bytes, and so
 * on, in the order in which they will be received. */
struct queue_record {
	int64_t max_messages, message_size;
	uint32_t nameless, holds; /* its name is gone; this record has the content */
};
struct queue_message {
	uint32_t priority, len;
};

/* Attributes and size as the kernel has them (struct termios2, struct winsize). */
struct terminal_record {
	uint32_t attributes[11];
	uint16_t size[4];
	int32_t session, group; /* whose terminal it is, or 0 */
	uint32_t packet, locked, exclusive;
	uint32_t has_slave, left; /* of the master: the other side is open, or was and has left */
};

/* A watch of inotify; its path follows, with a zero at its end. */
struct inotify_record {
	int32_t watch;
	uint32_t mask, path_len, reserved;
};

/* Data of descriptor record `fd_index`, or of the file behind map `map_index` (fd_index < 0). */
struct content_record {
	int32_t fd_index, map_index;
	uint64_t offset, total;
};

enum lock_flag {
	LOCK_WORD = 1, /* its first word has the owner's id, too, as the kernel reads it */
};

struct lock_record {
	uint64_t address;
	int32_t tid;
	uint32_t flags;
};

enum file_lock_kind { FILE_LOCK_FLOCK = 1, FILE_LOCK_POSIX, FILE_LOCK_OFD, FILE_LOCK_LEASE };

/* A lock on a file that is open as descriptor fd. */
struct file_lock_record {
	int32_t fd;
	uint32_t kind;
	uint32_t exclusive, reserved;
	uint64_t start, end; /* of bytes, both inclusive; end ~0: all that follow */
};

/* Who is told by a signal of what happens to the open file of descriptor fd. */
struct owner_record {
	int32_t fd;
	uint32_t type; /* F_OWNER_TID, F_OWNER_PID, F_OWNER_PGRP */
	int32_t pid;   /* 0: nobody */
	uint32_t signal;
	uint32_t tells, reserved; /* O_ASYNC */
};

static inline uint64_t frame_pad(uint64_t len)
{
	return (len + 4095) & ~4095ull;
}
static inline uint64_t frame_data_at(const struct frame *f)
{
	return frame_pad(sizeof(*f) + f->table_len);
}
static inline uint64_t frame_len(const struct frame *f)
{
	return frame_data_at(f) + frame_pad(f->data_len) + f->pad * 4096ull;
}
const char *frame_kind_name(unsigned kind);

#endif
