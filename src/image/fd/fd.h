/* SPDX-License-Identifier: BSD-3-Clause */
/* Open descriptors. Each kind stands in one file with both its directions; fd.c walks over them.
 *
 *   capture   (process stopped)   fd_table_scan: for each descriptor its kind says yes, no, why
 *   restore   (new process, before its memory is exchanged)
 *             open      makes the open file again, at a number out of the way; may fail
 *             settle    what can't be taken back: truncates and rewrites files
 *             place     gives it its numbers, closes everything else
 *             connect   what needs the numbers: epoll
 */
#ifndef HALE_IMAGE_FD_H
#define HALE_IMAGE_FD_H

#include "image/engine.h"

/* What /proc tells about one descriptor. */
struct fd_probe {
	int fd;
	struct stat st;
	char link[IMAGE_PATH_MAX]; /* without " (deleted)" */
	bool deleted;
	bool renamed;	 /* link is another name of it, not the one in /proc */
	char info[4096]; /* its fdinfo */
};

/* Bytes that go into the image with a descriptor or a shared file mapping. */
struct content {
	struct content_record record;
	const void *data;
	size_t len;
};

/* Descriptors that are on their way in a socket have numbers from here on. */
enum { FD_ON_WAY = 1 << 22 };

/* What was sent through a socket at once. */
struct fd_parcel {
	uint64_t inode; /* of the socket it waits in */
	const void *data;
	size_t len;
	uint32_t first, fds; /* fd_table.way: the descriptors that come with it */
};

/* fd_index.c: open files, so that each is compared with some others and not with all. */
struct fd_same {
	struct list node;
};
/* Who has what open. */
struct fd_index;
struct tree_process;

struct fd_table {
	struct arena *arena;
	const char *proc; /* "/proc/self", or of another process: then only looks, takes nothing */
	bool other;
	const int *own;
	size_t own_count;
	bool (*passed)(const char *link); /* also ours: by what the descriptor is; or NULL */
	const int32_t *tree;		  /* all processes that are captured together, or NULL */
	size_t tree_count;
	const int32_t *beside; /* other ranks, whose images are of the same moment, or NULL */
	size_t beside_count;
	bool *shared; /* set when one of these has the other end of a connection; or NULL */
	bool met;     /* of another process: ranks may have sent each other descriptors */
	struct file_identity stream[3];
	uint64_t save_max;    /* bytes of one file that are saved */
	struct list records;  /* struct fd_record */
	struct list contents; /* struct content */
	struct list locks;    /* struct file_lock_record */
	struct list owners;   /* struct owner_record */
	struct arena_bytes text;
	struct list way;     /* int: descriptors on their way, open here until the scan is over */
	size_t borrowed;     /* the first ones are ends that other ranks have */
	struct list parcels; /* struct fd_parcel */
	struct list commons; /* struct fd_common */
	struct list takers;  /* int32_t: ranks that will ask this one */
	bool sees_way;	     /* some socket has descriptors on their way */
	int full;	     /* what fd_full_take took: one more than its file; 0: nothing */
	int on_way;	     /* the record in the making is of this number of them; -1: of none */
	struct fd_probe *probe;
	struct fd_same same; /* of the records */
	struct fd_index *index, *beside_index;
};

struct fd_restore {
	struct arena *arena;
	const struct fd_record *record;
	size_t count;
	const char *text;
	size_t text_len;
	const struct content *content;
	size_t content_count;
	const struct file_lock_record *lock;
	size_t lock_count;
	const struct owner_record *owner;
	size_t owner_count;
	int old_pid;
	int stream[3]; /* what 0, 1, 2 are in this process, out of the way; -1: closed */
	int floor;     /* numbers from here on are out of the way */
	int *temp;     /* per record: where it is open, or -1 */
	int *sender; /* per record: what still has to send its content, or -1; NULL: nobody does */
};

struct fd_ops {
	enum fd_kind kind;
	const char *name;
	/* Is the descriptor of this kind? */
	bool (*match)(const struct fd_table *t, const struct fd_probe *p);
	/* Fills r beyond what all kinds have, adds text and contents. Also says no. For another
	 * process (t->other) it may only look. */
	hale_status_t (*capture)(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
				 struct error *err);
	/* Returns an open descriptor, or -1 with err. May fill temp[] of other records too. */
	int (*open)(struct fd_restore *f, size_t index, struct error *err);
	/* May be NULL; false with err. */
	bool (*settle)(struct fd_restore *f, size_t index, struct error *err);
	bool (*connect)(struct fd_restore *f, size_t index, struct error *err);
};

extern const struct fd_ops fd_file, fd_unlinked, fd_device, fd_stream, fd_pipe, fd_event, fd_timer,
    fd_signal, fd_epoll, fd_socketpair, fd_broker, fd_socket, fd_pid, fd_fifo, fd_queue, fd_inotify,
    fd_terminal, fd_common;

/* All kinds, in the order in which they are asked; NULL behind the last. Each has match, capture
 * and open: fd_test.c asserts it, and tries each. */
const struct fd_ops *fd_kind_at(size_t i);

/* Looks at all descriptors that aren't ours. */
hale_status_t fd_table_scan(struct fd_table *t, struct error *err);
/* Whether fd is passed over. */
bool fd_table_is_own(const struct fd_table *t, int fd);

bool fd_restore_open(struct fd_restore *f, struct error *err);
bool fd_restore_settle(struct fd_restore *f, struct error *err);
/* keep[]: further numbers that stay open (the library's own). */
bool fd_restore_place(struct fd_restore *f, const int *keep, size_t keep_count, struct error *err);

/* The numbers of all open descriptors of a process. */
struct fd_dir {
	int dir;
	bool own; /* of this process: then the listing itself is one of them */
	long len, at;
	char buf[2048];
};
bool fd_dir_open(struct fd_dir *d, const char *proc);
/* The next number but the listing's own; -1: no more. */
int fd_dir_next(struct fd_dir *d);
void fd_dir_close(struct fd_dir *d);

/* fd_common.c: what ranks have sent each other. Finds it, and opens here what this process's image
 * has of other ranks: ahead of the scan, all standing still. */
hale_status_t fd_common_find(struct fd_table *t, struct error *err);
/* Is it in the image of another rank? Then r says so (FD_BESIDE). Of another process (t->other):
 * may it be? */
hale_status_t fd_common_record(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			       struct error *err);
/* A descriptor of this process for which that is so, or which another rank has of it; -1: none. */
int fd_common_first(const struct fd_table *t);
/* Of a socket: has another rank's image what is in it? */
bool fd_common_is_taken(const struct fd_table *t, uint64_t inode);
/* After the scan: a record that says how many ranks ask. */
hale_status_t fd_common_end(struct fd_table *t, struct error *err);
/* fd_hand.c: when all else is open, hands out what other ranks ask for, and asks for what they
 * have. */
bool fd_hand_all(struct fd_restore *f, struct error *err);

/* fd_locks.c: locks on the file of a descriptor; and all of them again, when the descriptors have
 * their numbers. */
hale_status_t fd_locks_capture(struct fd_table *t, const struct fd_probe *p, struct error *err);
bool fd_locks_restore(const struct fd_restore *f, struct error *err);
/* fd_owner.c: who is told by a signal of what happens to a descriptor; and all of them again. */
hale_status_t fd_owner_capture(struct fd_table *t, const struct fd_probe *p, uint32_t flags,
			       struct error *err);
bool fd_owners_restore(const struct fd_restore *f, struct error *err);
/* Reads len bytes of a file that the program may have locked: who closes a descriptor of it gives
 * up the process's POSIX locks. 0 or -errno. */
int fd_read_aside(struct arena *arena, const char *path, void *data, size_t len, uint64_t offset);

/* fd_found.c: of a file that is to be set back: when it was made. Is the one that was found by its
 * name another one, made since? A descriptor of the right one, if it has got another name in the
 * same folder, or -errno. */
void fd_found_note(struct fd_record *r, const struct fd_table *t, int fd);
bool fd_found_is_other(const struct fd_record *r, int fd);
int fd_found_elsewhere(const struct fd_record *r, const char *path, uint32_t flags);

/* fd_way.c: descriptors on their way in sockets. Opens all of this process's. */
hale_status_t fd_way_find(struct fd_table *t, struct error *err);
void fd_way_close(struct fd_table *t);
/* Is descriptor fd one of them? */
bool fd_way_has(const struct fd_table *t, int fd);
/* Are there some in that socket? Then its content is parcels. */
bool fd_way_passes(const struct fd_table *t, uint64_t inode);
hale_status_t fd_way_save(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			  struct error *err);
/* From outside: has a process of the tree a socket with some, whose other ends nobody sees? */
bool fd_way_is_likely(const struct fd_table *t);
/* … or another rank? */
bool fd_way_to_rank(const struct fd_table *t);
/* Reads a parcel; false: it is damaged. numbers: int32_t[fds], of records. */
bool fd_way_next(const char **at, size_t *left, struct fd_parcel *p, const char **numbers);
/* 0 or -errno. */
long fd_way_send(int from, const struct fd_parcel *p, const int *fd);
/* When everything is open: all parcels, and what their sockets were shut down for. */
bool fd_way_deliver(struct fd_restore *f, struct error *err);
/* Where record index is open now. */
static inline int fd_now(const struct fd_restore *f, size_t index)
{
	return f->record[index].fd < FD_ON_WAY ? f->record[index].fd : f->temp[index];
}

/* Opens what record index is, wherever the number comes; -1 with err. */
int fd_open_file(struct fd_restore *f, size_t index, struct error *err);
/* Opens the path of record index with the flags that it had; -1 with err. */
int fd_open_path(struct fd_restore *f, size_t index, struct error *err);
/* The link in /proc of what has no name any more. */
void fd_nameless_link(const struct fd_probe *p, char link[IMAGE_PATH_MAX]);
/* Opens the file without a name that `of` is once more, as record r has it; -1: it can't. */
int fd_nameless_again(const struct fd_restore *f, int of, const struct fd_record *r);
/* A name for a moment, where path was, or as near to that as a folder is there. */
void fd_nameless_path(char *buf, size_t cap, const char *path);
/* Does this process, or one that is captured with it, have a descriptor whose link in /proc is
 * `link`, and of which want (if not NULL) is true? The descriptors of all are listed once, so all
 * must stand still. With t->other they run: then what the list lacks is looked up again. */
struct fd_seen {
	const char *proc;
	int32_t pid;
	int fd;
};
bool fd_tree_has(const struct fd_table *t, const char *link,
		 bool (*want)(const struct fd_seen *seen, const void *arg), const void *arg);
/* Is it the process of this table, or one that is captured with it? */
bool fd_tree_holds(const struct fd_table *t, int32_t pid);
struct fd_index *fd_index_create(struct arena *a);
/* May several processes have an open file of that link in common, which has to stay one? */
bool fd_may_be_common(const char *link);
/* Which of those that come before this process has the same open file, whose link in /proc that is,
 * and as which number? */
bool fd_tree_first(const struct fd_table *t, int fd, const char *link, struct fd_seen *first);

/* All descriptors of other ranks, or of this process, with that link; not the library's own. False:
 * `each` has said so, or there is no memory. */
bool fd_beside_each(struct fd_table *t, const char *link,
		    bool (*each)(const struct fd_seen *seen, void *arg), void *arg);
bool fd_own_each(struct fd_table *t, const char *link,
		 bool (*each)(const struct fd_seen *seen, void *arg), void *arg);

void fd_same_init(struct fd_same *s, struct arena *a);
/* The value of the first one put with the same open file; value itself: it is the first. -errno:
 * the kernel doesn't compare. What shares an open file has the same key. */
int fd_same_put(struct fd_same *s, uint64_t key, int32_t pid, int fd, int value);
/* Likewise, and puts none. */
bool fd_same_find(const struct fd_same *s, uint64_t key, int32_t pid, int fd,
		  struct fd_seen *first);
static inline uint64_t fd_mix(uint64_t key, uint64_t with)
{
	key = (key ^ with) * 0x9e3779b97f4a7c15u;
	return key ^ key >> 29;
}

/* Of a pipe: its other end is in these processes, or it is one to read from and nobody can write
 * into it any more. */
bool fd_pipe_is_inside(const struct fd_table *t, const struct fd_probe *p);
bool fd_tree_has_socket(const struct fd_table *t, uint64_t inode);
/* … or in another rank, whose image is of the same moment. */
bool fd_beside_has_socket(const struct fd_table *t, uint64_t inode);

/* fd_beside.c: connections to other ranks, each of which makes its own end again. All of a process
 * at once, in the same order in all. */
struct fd_beside {
	struct socket_record is;
	uint64_t inode, peer;
	const void *data; /* what nobody has read yet */
	size_t len;
	size_t index; /* the caller's */
	int fd;	      /* made: the end of this process */
};
bool fd_beside_make(struct fd_beside *end, size_t count, struct error *err);
/* fd_socket_make.c, for that: listens at the address of an end, whatever has that name in the file
 * system meanwhile; gives the name back; calls its other end. 0 or a descriptor, or -errno. */
long fd_socket_listen_at(const struct socket_record *x);
void fd_socket_listened(const struct socket_record *x, int fd);
long fd_socket_call(const struct socket_record *x, int *fd);

/* Saves the len bytes that are in a pipe, which `from` reads, and leaves them there. After the text
 * of r nothing else may have been added. */
hale_status_t fd_pipe_save(struct fd_table *t, const struct fd_probe *p, int from, size_t len,
			   int capacity, struct fd_record *r, struct error *err);
/* Writes content c of f into a pipe again. */
bool fd_pipe_fill(int end, const struct fd_restore *f, const struct content *c);
/* The flags of a descriptor, as its fdinfo has them. */
uint32_t fd_pipe_flags(const char *proc, int fd);
/* Has nobody the other end any more, which only the kernel can tell? */
bool fd_pipe_is_cut_off(const char *proc, int fd);
/* A descriptor of a pipe, whose end is open here. */
int fd_pipe_open(int end, const struct fd_record *r);

/* fd_fifo.c: a named pipe made again, filled, by whoever has the records of all its descriptors.
 * Returns one to hand to fd_fifo_open for each of them, or -1. */
int fd_fifo_make(const struct fd_record *r, const char *path, bool has_writers,
		 const struct fd_restore *f, const struct content *c, struct error *err);
int fd_fifo_open(int from, const struct fd_record *r);
bool fd_fifo_writes(const struct fd_record *r);
/* What is in it, if that process has saved it; or NULL. */
/* A process outside that has it open; 0: none that can be seen. What writes an image is none. */
int fd_find_stranger(const struct fd_table *t, const struct fd_probe *p,
		     struct tree_process *stranger);
/* Likewise; other ranks are none. */
int fd_find_outsider(const struct fd_table *t, const struct fd_probe *p,
		     struct tree_process *stranger);
/* fd_terminal.c: a terminal made again by whoever has its master's record: master and other side.
 */
bool fd_terminal_record(const char *text, size_t text_len, const struct fd_record *r,
			struct terminal_record *x);
bool fd_terminal_make(const char *text, size_t text_len, const struct fd_record *r, int end[2],
		      struct error *err);
int fd_terminal_open(const int end[2], const struct fd_record *r);
/* When all are open: does nobody have the other side, then it has left. */
void fd_terminal_end(bool has_slave, int *slave);
const struct content *fd_fifo_content(const struct fd_restore *f, const struct fd_record *r);

/* For the kinds. */
uint64_t fd_info_number(const struct fd_probe *p, const char *key, int base, uint64_t fallback);
bool fd_is_anon(const struct fd_probe *p, const char *name);
hale_status_t fd_refuse(const struct fd_probe *p, const char *what, struct error *err);
/* What may be over soon: the next checkpoint tries again. */
hale_status_t fd_refuse_for_now(const struct fd_probe *p, const char *what, struct error *err);
bool fd_add_text(struct fd_table *t, struct fd_record *r, const void *text, size_t len);
/* Room for len bytes of content of the record in the making; NULL when memory is out. */
void *fd_add_content(struct fd_table *t, uint64_t offset, uint64_t total, size_t len);
const char *fd_text(const struct fd_restore *f, const struct fd_record *r);
/* All contents of a record written to fd from their offset on. */
int fd_write_content(const struct fd_restore *f, size_t index, int fd);
/* The same into a new file, which has holes where there are only zeroes. */
int fd_write_fresh(const struct fd_restore *f, size_t index, int fd);
/* What the kernel knows of an AF_UNIX socket; false: it is none. */
struct fd_unix {
	uint32_t type;
	uint32_t peer;		   /* inode; 0: not connected */
	char name[108];		   /* as bound, without a zero at its end if it is no file */
	size_t name_len;	   /* 0: not bound */
	uint32_t state;		   /* 1: connected, 7: not, 10: it listens */
	uint32_t shut;		   /* enum socket_shut */
	uint32_t waiting, backlog; /* of one that listens */
};
bool fd_unix_ask(uint64_t inode, struct fd_unix *u);
/* enum socket_shut of a UDP socket; false: the kernel doesn't tell. */
bool fd_udp_shut(uint64_t inode, uint32_t family, uint32_t protocol, uint32_t *shut);

/* What /proc tells of a TCP socket. Addresses and ports: to be compared only. Those of IPv4 stand
 * as IPv6 has them. */
struct fd_tcp {
	bool is_ipv6;
	uint32_t local[4], remote[4];
	uint16_t local_port, remote_port;
	uint32_t state;	     /* 1: connected, 10: it listens */
	uint32_t received;   /* bytes; of one that listens: connections that wait */
	uint32_t sent;	     /* bytes that the other end has not acknowledged */
	uint32_t sent_again; /* how often, what is on its way now */
	uint64_t inode;	     /* 0: no process has it any more */
};
bool fd_tcp_ask(const char *proc, uint64_t inode, struct fd_tcp *s);
/* How many bytes the program of that end has sent, whether they have left it or not. False: the
 * kernel does not tell. */
bool fd_tcp_sent(const struct fd_tcp *s, uint64_t *bytes);
/* Waits until both ends of a connection, of which both programs stand still, have what was sent to
 * them: what is in neither queue would be in no image. fd: a descriptor of socket inode. False:
 * after 50 ms there is more on its way than its receiver takes. */
bool fd_tcp_await(const char *proc, uint64_t inode, int fd);
/* How many listen at the address of that one, itself among them. */
uint32_t fd_tcp_count_alike(const char *proc, const struct fd_tcp *s);
/* Bytes on their way in one direction of a stream that are saved at most. */
enum { FD_STREAM_MAX = 16 << 20 };
/* len bytes as content of the record in the making, in pieces that a frame may have. */
bool fd_add_stream(struct fd_table *t, const char *data, size_t len);
/* An end of a stream that was just filled takes no more: room for so many bytes, if this process
 * may ask for it. Never less than there was. to: the receiving end, or -1. */
void fd_socket_more_room(int from, int to, size_t more);

/* fd_full.c: takes what is on its way in TCP connections between these processes that their
 * receivers have no room for. All of them stand still, until fd_full_give has sent it again. t: a
 * table that has not been scanned. */
void fd_full_take(const struct fd_table *t);
void fd_full_give(void);
/* In the process that came out of an image: nothing was taken. */
void fd_full_forget(void);
/* Where it stands; -1: nothing was taken. */
int fd_full_file(void);
/* What of it belongs to that socket. Returns its length; 0: nothing. *data NULL: no memory. */
size_t fd_full_copy(struct fd_table *t, uint64_t inode, char **data);
/* The other end, on this machine; false: there is none. */
bool fd_tcp_peer(const char *proc, const struct fd_tcp *of, struct fd_tcp *peer);
bool fd_tcp_find(const char *proc, bool (*wanted)(const struct fd_tcp *s, const void *arg),
		 const void *arg, struct fd_tcp *found);

/* FD_SOCKET made again, by who has the records of both ends. The record in text; false: damaged. */
bool fd_socket_record(const char *text, size_t text_len, const struct fd_record *r,
		      struct socket_record *s);
/* Of an open socket, all that fd_socket_write_early and fd_socket_write_options set. */
void fd_socket_read_options(int fd, struct socket_record *s);
/* Sets SO_PEEK_OFF; what it was. */
int fd_socket_peek_from(int fd, int from);
/* Those that count before it gets its address; all others. */
void fd_socket_write_early(int fd, const struct socket_record *s);
void fd_socket_write_options(int fd, const struct socket_record *s);
/* end[0] is x, end[1] what it is connected to, if it is: y, or NULL if nobody has that. */
bool fd_socket_make(const struct socket_record *x, const struct socket_record *y, int end[2],
		    struct error *err);
/* Sends what x had not read yet, from its other end; if it has none, `from` is x. to: its own end,
 * or -1. */
bool fd_socket_fill(int from, int to, const struct socket_record *x, const void *data, size_t len);
/* fd_socketpair.c: the options of an end of a pair, in whose record text is. */
void fd_socketpair_finish(int fd, const char *text, size_t text_len, const struct fd_record *r);
/* fd_datagrams.c: what nobody has read yet of a socket for datagrams that has no other end; and the
 * same again, from the addresses that have sent it. */
hale_status_t fd_datagrams_save(struct fd_table *t, const struct fd_probe *p,
				const struct socket_record *s, struct fd_record *r,
				struct error *err);
bool fd_datagrams_fill(int fd, const struct socket_record *x, const void *data, size_t len);
/* When both ends are filled: options, what was shut down. */
void fd_socket_finish(int fd, const struct socket_record *x, uint32_t open_flags);
/* When all connections are there and all addresses are bound: x listens, or sends to its peer. */
bool fd_socket_last(int fd, const struct socket_record *x, struct error *err);
/* fd_waits.c: connections that nobody has accepted yet. Of AF_UNIX: the socket of the tree at which
 * the one of that inode waits, and its turn; 0: at none. */
uint64_t fd_waits_at(const struct fd_table *t, uint64_t inode, uint32_t *turn);
/* Of TCP: which listens where `of` has come to. */
uint64_t fd_waits_at_port(const struct fd_table *t, const struct fd_tcp *of);
/* Are all who wait at a socket of the tree, and have sent nothing yet? */
bool fd_waits_all(const struct fd_table *t, uint64_t inode, bool is_tcp, uint32_t waiting);
bool fd_waits_connect_one(int fd, const struct socket_record *x, struct error *err);
/* All of a process, when its descriptors have their numbers. */
bool fd_waits_connect(const struct fd_restore *f, struct error *err);
/* Moves fd out of the way. */
int fd_lift(const struct fd_restore *f, int fd);

#endif
