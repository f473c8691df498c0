/* SPDX-License-Identifier: BSD-3-Clause */
/* Files: how they are opened and closed, their size, and what the kernel's errors mean. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "node/guest.h"
#include "ckpt/guard.h"
#include "ckpt/rank.h"
#include "image/sys.h"
#include "io/internal.h"
#include "journal/journal.h"

/* Descriptors stay above those that programs count on; so many at a time are left out of images. */
enum { FD_FLOOR = 600, OWN_MAX = 240 };

struct file *io_files;
static unsigned own_count;

int io_class(long rc)
{
	switch (-rc) {
	case 0:
		return MPI_SUCCESS;
	case ENOENT:
		return MPI_ERR_NO_SUCH_FILE;
	case EEXIST:
		return MPI_ERR_FILE_EXISTS;
	case EACCES:
	case EPERM:
		return MPI_ERR_ACCESS;
	case EROFS:
		return MPI_ERR_READ_ONLY;
	case ENOSPC:
		return MPI_ERR_NO_SPACE;
	case EDQUOT:
		return MPI_ERR_QUOTA;
	case ENAMETOOLONG:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
		return MPI_ERR_BAD_FILE;
	case EBUSY:
	case ETXTBSY:
		return MPI_ERR_FILE_IN_USE;
	case ENOMEM:
		return MPI_ERR_NO_MEM;
	default:
		return MPI_ERR_IO;
	}
}

int io_agree(struct file *f, int rc)
{
	int mine = rc, all = rc;
	int moved = coll_allreduce(&mine, &all, 1, (struct datatype *)MPI_INT, (struct op *)MPI_MAX,
				   f->comm);
	return moved ? moved : all;
}

/* ---- descriptors ---- */

bool io_file_is_there(const struct file *f)
{
	struct stat st;
	return f->fd >= 0 && !fstat(f->fd, &st) && st.st_dev == f->device && st.st_ino == f->inode;
}

uint64_t io_file_bytes(const struct file *f)
{
	struct stat st;
	return fstat(f->fd, &st) ? 0 : (uint64_t)st.st_size;
}

/* File systems that show bytes at once to all who have the file open: on one machine, or on
 * several. Each list ends with 0. */
static const unsigned long local_kinds[] = {
    EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC, 0};
static const unsigned long cluster_kinds[] = {0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */, 0};

static bool file_system_is(int fd, const unsigned long *kinds)
{
	struct statfs st;
	if (fstatfs(fd, &st))
		return false;
	while (*kinds && *kinds != (unsigned long)st.f_type)
		kinds++;
	return *kinds;
}

bool io_file_sole(const struct file *f)
{
	const struct link *l = link_self();
	if (f->fd < 0 || guard_multiple || l->degree > 1 || f->comm->size != (int)l->nranks)
		return false;
	for (const struct file *g = io_files; g; g = g->next)
		if (g != f && g->device == f->device && g->inode == f->inode)
			return false;
	return f->readable && (f->local || file_system_is(f->fd, cluster_kinds));
}

static bool file_writes(const struct file *f)
{
	return !(f->amode & MPI_MODE_RDONLY);
}

/* By system call: what stands before libc's open would save the file's whole content, and here
 * every write says what it overwrites. */
static long file_open_raw(const struct file *f, int flags)
{
	long fd;
	bool plain = true;
	if (journal_on && file_writes(f))
		plain = journal_opening(AT_FDCWD, f->path, flags | O_APPEND);
	do
		fd = sys(SYS_openat, AT_FDCWD, f->path, flags | O_CLOEXEC, 0666);
	while (fd == -EINTR);
	if (plain && journal_on && file_writes(f))
		journal_opened((int)(fd < 0 ? -1 : fd));
	return fd;
}

static void file_take(struct file *f, long fd)
{
	struct stat st;
	long high = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_FLOOR);
	if (high >= 0) {
		sys(SYS_close, fd);
		fd = high;
	}
	f->fd = (int)fd;
	f->readable = (sys(SYS_fcntl, f->fd, F_GETFL) & O_ACCMODE) != O_WRONLY;
	f->local = file_system_is(f->fd, local_kinds);
	if (!fstat(f->fd, &st)) {
		f->device = st.st_dev;
		f->inode = st.st_ino;
	}
	/* without a journal an image has to hold what the file has */
	f->own = journal_wanted() && own_count < OWN_MAX;
	own_count += f->own;
	if (f->own)
		hale_guest_descriptor(f->fd, true);
}

static void file_leave(struct file *f, bool open)
{
	if (f->own)
		hale_guest_descriptor(f->fd, false);
	own_count -= f->own;
	f->own = false;
	if (open && f->fd >= 0)
		sys(SYS_close, f->fd);
	f->fd = -1;
}

static int file_flags(const struct file *f, bool first)
{
	int flags = f->amode & MPI_MODE_RDONLY ? O_RDONLY : O_RDWR;
	if (first && f->amode & MPI_MODE_CREATE)
		flags |= O_CREAT | (f->amode & MPI_MODE_EXCL ? O_EXCL : 0);
	return flags;
}

/* What is written only is also read, where that is allowed: a checkpoint may need what was there.
 */
static long file_open(struct file *f, bool first)
{
	int flags = file_flags(f, first);
	long fd = file_open_raw(f, flags);
	if (fd == -EACCES && f->amode & MPI_MODE_WRONLY)
		fd = file_open_raw(f, (flags & ~O_ACCMODE) | O_WRONLY);
	struct stat st;
	if (fd >= 0 && !sys(SYS_fstat, fd, &st) && S_ISDIR(st.st_mode)) {
		sys(SYS_close, fd);
		fd = -EISDIR;
	}
	if (fd < 0)
		return fd;
	file_take(f, fd);
	f->floor = io_file_bytes(f);
	f->noted = true;
	return 0;
}

void io_file_reopen(struct file *f)
{
	bool own = f->own;
	if (!own)
		return;
	file_leave(f, false);
	long fd = sys(SYS_openat, AT_FDCWD, f->path, file_flags(f, false) | O_CLOEXEC);
	if (fd == -EACCES && f->amode & MPI_MODE_WRONLY)
		fd = sys(SYS_openat, AT_FDCWD, f->path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		log_warn("rank %u can't open %s again after the restart (error %d): its next "
			 "transfer fails. Put it where all nodes see it",
			 link_self()->rank, f->path, (int)-fd);
	else
		file_take(f, fd);
}

void io_journal(struct file *f, uint64_t offset, uint64_t length)
{
	if (!journal_on || (f->noted && offset >= f->floor))
		return;
	journal_writing(f->fd, f->floor, offset, length);
	f->noted = true;
}

/* ---- opening ---- */

void io_hints_default(struct io_hints *h)
{
	*h = (struct io_hints){.buffer = 4 << 20, .sieve_read = 1 << 20, .sieve_write = 512 << 10};
}

static char *path_whole(const char *path)
{
	/* as other libraries of MPI-IO let users name the file system */
	static const char *const prefixes[] = {"ufs:", "nfs:", "testfs:"};
	char folder[PATH_MAX] = "";
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			path += strlen(prefixes[i]);
	if (path[0] != '/' && !getcwd(folder, sizeof(folder)))
		return NULL;
	size_t a = strlen(folder), b = strlen(path);
	char *whole = heap_alloc(a + b + 2);
	if (!whole)
		return NULL;
	memcpy(whole, folder, a);
	whole[a] = '/';
	memcpy(whole + a + (path[0] != '/'), path, b + 1);
	return whole;
}

/* One process of each node touches the file for all; cb_nodes takes the nodes' second ones then.
 * The same list everywhere. */
static int aggregators_choose(struct file *f)
{
	struct comm *c = f->comm;
	int32_t mine[2] = {c->rank, 0};
	for (int i = c->size - 1; i >= 0; i--)
		if (segment_here(link_self()->segment, (uint32_t)c->world[i])) {
			mine[0] = i;
			mine[1] += i < c->rank;
		}
	size_t n = (size_t)c->size;
	int32_t *all = heap_alloc(n * sizeof(mine));
	f->aggregators = heap_alloc(n * sizeof(int));
	if (!all || !f->aggregators) {
		heap_free(all);
		return MPI_ERR_NO_MEM;
	}
	int rc = coll_allgather(mine, sizeof(mine), io_byte(), all, sizeof(mine), io_byte(), c);
	int nodes = 0, wanted = f->hints.aggregators;
	for (int i = 0; i < c->size; i++)
		nodes += all[2 * i] == i;
	if (wanted <= 0)
		wanted = nodes;
	for (int turn = 0; turn < c->size && f->naggregators < wanted; turn++)
		for (int i = 0; i < c->size && f->naggregators < wanted; i++)
			if (all[2 * i + 1] == turn)
				f->aggregators[f->naggregators++] = i;
	f->hints.aggregators = f->naggregators;
	heap_free(all);
	return rc;
}

static void file_unlist(struct file *f)
{
	for (struct file **at = &io_files; *at; at = &(*at)->next)
		if (*at == f) {
			*at = f->next;
			return;
		}
}

static void file_free(struct file *f)
{
	io_view_fini(&f->view);
	heap_free(f->path);
	heap_free(f->aggregators);
	f->path = NULL;
	f->aggregators = NULL;
}

/* The first member makes the file, if it is to be made; the others find it. */
static int open_all(struct file *f, int rc)
{
	int32_t first[2] = {rc, f->amode};
	if (f->comm->rank == 0 && !rc)
		first[0] = io_class(file_open(f, true));
	int moved = coll_bcast(first, sizeof(first), io_byte(), 0, f->comm);
	if (moved)
		return moved;
	if (first[1] != f->amode)
		rc = MPI_ERR_NOT_SAME;
	if (f->comm->rank && !rc && !first[0])
		rc = io_class(file_open(f, false));
	return io_agree(f, rc ? rc : first[0]);
}

static void file_append(struct file *f)
{
	if (!(f->amode & MPI_MODE_APPEND))
		return;
	f->position = io_file_bytes(f);
	f->shared = f->position;
}

int io_open(struct comm *comm, struct comm *pointer_comm, const char *path, int amode,
	    const struct io_hints *hints, struct file **out)
{
	static bool ready;
	struct file *f = heap_calloc(1, sizeof(*f));
	if (!f)
		return MPI_ERR_NO_MEM;
	if (!ready)
		io_checkpoint_init();
	ready = true;
	object_init(&f->obj, OBJECT_FILE);
	f->comm = comm;
	f->amode = amode;
	f->fd = -1;
	f->hints = *hints;
	f->path = path_whole(path);
	/* from here on: an image may be taken while the members wait for each other below */
	f->next = io_files;
	io_files = f;
	int rc = f->path ? io_view_init(&f->view) : MPI_ERR_NO_MEM;
	int opened = open_all(f, rc);
	if (!opened)
		file_append(f);
	if (!opened)
		opened = io_agree(f, aggregators_choose(f));
	if (!opened && pointer_comm)
		opened = io_shared_open(f, pointer_comm);
	if (opened) {
		file_leave(f, true);
		file_unlist(f);
		file_free(f);
		f->obj.kind = OBJECT_FREED;
		heap_free(f);
		return opened;
	}
	*out = f;
	return MPI_SUCCESS;
}

int io_close(struct file *f)
{
	int rc = io_shared_close(f), met = coll_barrier(f->comm);
	file_leave(f, true);
	if (f->amode & MPI_MODE_DELETE_ON_CLOSE) {
		if (!met) /* nobody has it open any more */
			met = coll_barrier(f->comm);
		if (f->comm->rank == 0 && !rc)
			rc = io_delete(f->path);
	}
	file_unlist(f);
	file_free(f);
	return rc ? rc : met;
}

int io_delete(const char *path)
{
	char *whole = path_whole(path);
	if (!whole)
		return MPI_ERR_NO_MEM;
	int rc = unlink(whole) ? io_class(-errno) : MPI_SUCCESS;
	heap_free(whole);
	return rc;
}

/* ---- size ---- */

int io_get_size(struct file *f, uint64_t *bytes)
{
	struct stat st;
	if (fstat(f->fd, &st))
		return io_class(-errno);
	*bytes = (uint64_t)st.st_size;
	return MPI_SUCCESS;
}

int io_agree_same(struct file *f, uint64_t value, int differs, int error)
{
	uint64_t first = value;
	int rc = coll_bcast(&first, 1, io_u64(), 0, f->comm);
	rc = io_agree(f, error ? error : rc ? rc : first == value ? MPI_SUCCESS : differs);
	return error ? error : rc;
}

int io_set_size(struct file *f, uint64_t bytes, int error)
{
	int rc = io_agree_same(f, bytes, MPI_ERR_ARG, error);
	if (rc)
		return rc;
	if (f->comm->rank == 0) {
		io_journal(f, bytes, f->floor > bytes ? f->floor - bytes : 0);
		rc = io_class(sys(SYS_ftruncate, f->fd, bytes));
	}
	return io_agree(f, rc);
}

int io_preallocate(struct file *f, uint64_t bytes, int error)
{
	int rc = io_agree_same(f, bytes, MPI_ERR_ARG, error);
	if (rc)
		return rc;
	if (f->comm->rank == 0 && bytes) {
		io_journal(f, io_file_bytes(f), 0);
		rc = io_class(-posix_fallocate(f->fd, 0, (off_t)bytes));
	}
	return io_agree(f, rc);
}

/* Who has the file open on one node shares the kernel's copy of it. */
int io_sync(struct file *f)
{
	int rc = coll_barrier(f->comm), i = 0;
	while (!segment_here(link_self()->segment, (uint32_t)f->comm->world[i]))
		i++;
	if (i == f->comm->rank && file_writes(f) && fsync(f->fd))
		rc = io_class(-errno);
	return io_agree(f, rc);
}

int io_set_atomicity(struct file *f, bool atomic)
{
	int rc = io_agree_same(f, atomic, MPI_ERR_ARG, MPI_SUCCESS);
	if (!rc)
		f->atomic = atomic;
	return rc;
}
