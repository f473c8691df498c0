/* SPDX-License-Identifier: BSD-3-Clause */
/* A small operating system in one thread, under which the real code of heads, agents, supervisors
 * and output daemons runs: processes, descriptors, signals, files, a clock, several hosts.
 *
 * The linker leads the system calls of that code here (-Wl,--wrap, libc.c), so nothing in it is
 * changed. Each simulated process is a fiber with a heap and a stack of its own; its static data
 * are put in place whenever it runs. A fork copies all three. Which process runs next, how long
 * messages travel and what fails is drawn from one seed, so a run repeats to the byte.
 *
 *   process.c  memory, fork, exec, exit, wait, signals, the scheduler
 *   object.c   pipes, sockets, epoll, signalfd, timerfd, memfd, pidfd
 *   disk.c     files and folders of hosts and of the cluster, /proc
 *   libc.c     the system calls, as the code under test makes them
 *   actor.c    ranks and remote shells, which are no code under test
 *   world.c    a job; faults.c what happens to it; judge.c what must hold; main.c the command line
 *
 * Invariants: 1. only the scheduler changes `kernel->running`. 2. The memory of a process is in
 * its slot exactly when slot->occupant is that process. 3. Time moves only when nobody can run. */
#ifndef HALE_SIMULATE_KERNEL_H
#define HALE_SIMULATE_KERNEL_H

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/types.h>

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull
#define NS_NEVER  UINT64_MAX

enum {
	FDS_MAX = 256,
	HOSTS_MAX = 65,
	PROCS_MAX = 2048,
	SLOT_HEAP = 16 << 20,
	SLOT_STACK = 1 << 20,
	NAME_LEN = 108,
};

struct proc;
struct machine;
struct inode;
struct object;

/* ---- objects: what a descriptor stands for (object.c) ---- */

enum object_kind {
	OBJ_NULL,
	OBJ_FILE,
	OBJ_FOLDER,
	OBJ_PIPE_IN, /* its reading end */
	OBJ_PIPE_OUT,
	OBJ_SOCKET,
	OBJ_EPOLL,
	OBJ_SIGNALFD,
	OBJ_TIMERFD,
	OBJ_MEMFD,
	OBJ_PIDFD,
	OBJ_CONSOLE, /* what hale prints */
};

/* One send on a socket, or one write on a stream. */
struct packet {
	struct packet *next;
	size_t len, at;
	struct object *passed[16]; /* descriptors on their way */
	int passed_count;
	unsigned char bytes[];
};

struct pipe_buffer {
	unsigned char *bytes;
	size_t begin, end, cap;
	int readers, writers;
	struct object *in, *out; /* weak: whoever waits there */
};

struct epoll_entry {
	int fd;
	struct object *o;
	struct epoll_event event;
};

struct memory_file {
	unsigned char *bytes; /* a mapping */
	size_t len, cap;
};

struct object {
	struct object *next, **before; /* in the list of all */
	enum object_kind kind;
	int refs;
	int flags; /* O_NONBLOCK, O_APPEND, the access mode */
	uint64_t number;
	/* who is to look again when it changes */
	struct proc **waiters;
	size_t waiter_count, waiter_cap;
	struct object **epolls; /* that have it in their lists */
	size_t epoll_count, epoll_cap;
	union {
		struct {
			struct inode *node;
			uint64_t at;
			char *path; /* of a folder */
			int console;
		} file;
		struct pipe_buffer *pipe;
		struct {
			int type; /* SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM */
			struct object *peer;
			bool listening, had_peer, shut_in, shut_out;
			struct packet *first, **last; /* to be read here */
			size_t bytes;
			struct object **backlog; /* connections that nobody has accepted */
			size_t backlog_count;
			char name[NAME_LEN]; /* bound to; "": none */
			size_t name_len;
			struct machine *host;
			pid_t peer_pid;
		} socket;
		struct {
			struct epoll_entry *entries;
			size_t count, cap;
		} epoll;
		uint64_t signals; /* a mask */
		struct {
			uint64_t at, every, expired;
		} timer;
		struct memory_file *memory;
		struct proc *target; /* of a pidfd; NULL: gone */
	} u;
};

struct object *object_new(enum object_kind kind);
void object_drop(struct object *o); /* one reference */
/* What has come to a socket and was not taken is gone. */
void object_empty(struct object *o);
void object_changed(struct object *o);
uint32_t object_events(struct object *o, const struct proc *p); /* EPOLLIN, … as of now */
void object_pipe(struct object **in, struct object **out);
void object_socket_pair(int type, struct object **a, struct object **b);
struct object *object_socket(int type);
/* As the calls of these names; -1 with errno. They don't block: EAGAIN. */
ssize_t object_read(struct object *o, void *bytes, size_t len);
ssize_t object_write(struct object *o, const void *bytes, size_t len);
ssize_t object_send(struct object *o, const void *bytes, size_t len, struct object **passed,
		    int passed_count);
ssize_t object_receive(struct object *o, void *bytes, size_t len, bool peek, struct object **passed,
		       int *passed_count, bool *truncated);
int object_connect(struct object *o, struct machine *h, const char *name, size_t len);
struct object *object_accept(struct object *o);
struct object *object_listener(struct machine *h, const char *name, size_t len);
size_t object_unread(const struct object *o); /* FIONREAD */
int object_epoll_ctl(struct object *ep, int op, int fd, struct object *o,
		     const struct epoll_event *e);
int object_epoll_take(struct object *ep, struct proc *p, struct epoll_event *out);

/* ---- processes (process.c) ---- */

enum proc_state { PROC_FREE, PROC_READY, PROC_BLOCKED, PROC_ZOMBIE };

struct slot {
	char *base; /* heap, then stack */
	struct proc *occupant;
	int users;
	bool taken;
};

/* Of a process that shares its slot, when it is not in it: the heap's first `kept` bytes and the
 * stack. What follows of the heap is still in place, until somebody else needs the room. */
struct saved {
	char *heap, *stack;
	size_t heap_cap, stack_cap, kept, heap_len, stack_len;
	bool there;
};

struct fd {
	struct object *o;
	bool cloexec;
};

struct proc {
	enum proc_state state;
	pid_t pid, parent, group;
	uint64_t incarnation; /* numbers all processes of a world */
	struct machine *host;
	char name[32];
	struct slot *slot;
	struct saved saved;
	char *globals;
	void *sp;    /* of its stack, while it does not run */
	long result; /* of what the scheduler does for it (fork) */
	struct fd fd[FDS_MAX];
	char cwd[512];
	uint64_t blocked, pending, ignored, handled; /* masks of signals */
	void (*handler[65])(int);
	pid_t sender[65]; /* of a pending signal */
	bool stopped, check, subreaper, dying;
	int death_signal, status; /* PR_SET_PDEATHSIG; waitpid's, of a zombie */
	uint64_t deadline;	  /* of what it waits for */
	bool timed_out;
	struct object **waits;
	size_t wait_count, wait_cap;
	bool (*ready)(void *arg); /* for what it is blocked; NULL: only objects and time */
	void *ready_arg;
	uint64_t calls, last_call; /* it is killed at its last call; 0: it is not */
	/* actors */
	void (*actor)(void *arg);
	void *actor_arg;
	char **argv, **env; /* of an exec */
	int64_t rank;	    /* it is that rank's; -1: none */
	bool rank_runs;
};

struct machine {
	char name[64];
	uint32_t index;
	bool up;
	struct inode *root;
	int64_t skew;		   /* of CLOCK_REALTIME, ns */
	struct object **listeners; /* bound to names */
	size_t listener_count, listener_cap;
	double disk_full;	  /* probability that a write finds no room */
	uint64_t cut_in, cut_out; /* until then nothing passes from, to the head's host */
	uint64_t no_login;	  /* until then no remote shell begins */
};

struct kernel {
	uint64_t seed, random, now, until, steps, objects;
	struct machine hosts[HOSTS_MAX];
	uint32_t host_count;
	uint32_t proc_limit; /* none at or behind it is in use */
	struct proc *running;
	pid_t next_pid;
	uint64_t next_incarnation;
	void *scheduler; /* its stack's end, while a process runs */
	struct slot *slots;
	size_t slot_count;
	char *story; /* lines */
	size_t story_len, story_cap;
	struct inode *cluster; /* the root of what all hosts share */
	uint64_t next_inode;
	bool verbose;
	char failure[512];
	struct kept *kept;  /* freed at the end of the world */
	struct object *all; /* objects, newest first */
	void *mappings[8192];
	size_t mapping_len[8192];
	size_t mapping_count;
	double yield; /* probability that somebody else runs at a call */
	/* told of by the kernel */
	void (*on_exec)(struct proc *p, const char *path, char *const *argv, char *const *env);
	void (*on_output)(struct proc *p, int which, const void *bytes, size_t len);
	void (*on_end)(const struct proc *p, int status);
	void (*on_file)(const char *path, const char *what);
	struct proc procs[PROCS_MAX]; /* the last: only those in use are cleared */
};

extern struct kernel *kernel;

void kernel_create(uint64_t seed);
/* True: static data that had been taken for constant have changed: what was seen may be wrong, and
 * is to be run again. */
bool kernel_destroy(void);
uint64_t kernel_random(uint64_t below); /* 0 to below - 1 */
bool kernel_chance(double p);
/* Zeroed memory that lives as long as the world. */
void *kernel_keep(size_t len);
struct machine *kernel_host(const char *name);
/* It loses its power: its processes are gone, and nobody is told. */
void host_vanish(struct machine *h, bool with_disk);
/* A line of the story: time, host, process, text. */
void kernel_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What must not happen has: the run ends. */
void kernel_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A process whose memory begins anew and that executes actor. */
struct proc *proc_create(struct machine *h, const char *name, pid_t parent,
			 void (*actor)(void *arg), void *arg);
struct proc *proc_find(pid_t pid);
/* Becomes actor in memory of its own; for the running one, does not return. */
void proc_become(struct proc *p, const char *name, void (*actor)(void *arg), void *arg);
int proc_fork(void);
_Noreturn void proc_exit(int status);
void proc_end(struct proc *p, int status); /* waitpid's; of any process but the running one */
/* It is killed at one of its next calls, wherever that is. */
void proc_end_within(struct proc *p, uint64_t calls);
int proc_kill(struct proc *p, int sig); /* as the sender sees it */
pid_t proc_wait(pid_t pid, int *status, int flags);
bool proc_alive(const struct proc *p);
/* Somebody else may run. */
void proc_yield(void);
/* Until an object changes, ready(arg), or the time; then true, or false when time is up. */
bool proc_block(struct object **objects, size_t count, bool (*ready)(void *arg), void *arg,
		uint64_t deadline);
void proc_sleep(uint64_t ns);
int proc_fd_put(struct proc *p, struct object *o, int from, bool cloexec);
struct object *proc_fd(int fd); /* of the running one; NULL with EBADF */
void proc_fd_close(struct proc *p, int fd);
/* Runs what can run until `until`, the end of all, or a failure. False: nobody can run any more,
 * ever. */
bool kernel_run(uint64_t until); /* kernel->until may be put earlier while it runs */

/* memory of the running process */
void *proc_malloc(size_t size);
void *proc_realloc(void *at, size_t size);
bool proc_free(void *at); /* false: it is none of a simulated process */

/* ---- files (disk.c) ---- */

struct inode {
	bool folder;
	ino_t inode;
	unsigned char *bytes;
	size_t len, cap;
	int links, opened;
	bool program; /* it may be executed, and read by all */
	struct {
		char name[256];
		struct inode *node;
	} * entries;
	size_t count, entry_cap;
	uint64_t changed;
};

struct inode *disk_root(void);
struct inode *disk_find(const char *path); /* errno */
int disk_make_folder(const char *path);
struct object *disk_open(const char *path, int flags); /* errno */
int disk_unlink(const char *path, bool folder);
int disk_rename(const char *from, const char *to);
int disk_link(const char *from, const char *to);
void disk_stat(const struct inode *n, struct stat *st);
void disk_absolute(const char *path, char out[PATH_MAX]);
void disk_put(const char *path, const void *bytes, size_t len); /* a whole file, with its folders */
void disk_free(struct inode *n);
ssize_t disk_write(struct object *o, const void *bytes, size_t len, int64_t at);
ssize_t disk_read(struct object *o, void *bytes, size_t len, int64_t at);
size_t disk_list(const char *path, char (**names)[256]); /* malloc'ed by the simulator */

/* ---- actors (actor.c) ---- */

struct shell_order { /* a remote shell: what it runs, and where */
	char host[64], command[8192];
};
void actor_exec(struct proc *p, const char *path, char *const *argv, char *const *env);

#endif
