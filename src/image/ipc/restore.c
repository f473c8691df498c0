// SPDX-License-Identifier: BSD-3-Clause
/* System V objects as they were: by the root of what is rebuilt, before its memory and its children
 * are made. What is still there keeps its number. What has gone is made again: the kernel gives the
 * number that stands in /proc/sys/kernel/shm_next_id (or sem, msg) to the next object, if this
 * process may write there (CAP_CHECKPOINT_RESTORE). */
#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <time.h>

#include "base/fmt.h"
#include "image/ipc/ipc.h"
#include "image/tree/tree.h"

enum {
	TRIES = 250,
	PAUSE_NS = 20000000,
	ASKS = 20,
	DELETED_MAX = 256,
	AWAIT = 1500,
	HUGE_MAX = 30,
	HUGE_SHIFT = 26 /* SHM_HUGE_SHIFT */
};

static struct {
	struct ipc_moved moved[IPC_MOVED];
	size_t moved_count;
	int deleted[DELETED_MAX]; /* memory to be removed when all have it */
	size_t deleted_count;
} self;

const struct ipc_moved *ipc_moved_list(size_t *count)
{
	*count = self.moved_count;
	return self.moved;
}

static const char *kind_name(uint32_t kind)
{
	return kind == IPC_MEMORY	? "shared memory"
	       : kind == IPC_SEMAPHORES ? "semaphores"
					: "message queue";
}

/* ---- there or not ---- */

struct ipc_state {
	int32_t key;
	uint64_t size;
	uint32_t count;
	bool removed;
};

/* 0, or -errno: -EINVAL, -EIDRM if it is not there. */
static long look(const struct ipc_record *r, struct ipc_state *s)
{
	union {
		struct shmid_ds shm;
		struct semid_ds sem;
		struct msqid_ds msg;
	} ds;
	long rc;
	memset(&ds, 0, sizeof(ds));
	*s = (struct ipc_state){0};
	switch (r->kind) {
	case IPC_MEMORY:
		rc = sys(SYS_shmctl, r->id, IPC_STAT, &ds);
		*s = (struct ipc_state){ds.shm.shm_perm.__key, ds.shm.shm_segsz, 0,
					(ds.shm.shm_perm.mode & SHM_DEST) != 0};
		return rc;
	case IPC_SEMAPHORES:
		rc = sys(SYS_semctl, r->id, 0, IPC_STAT, &ds);
		*s =
		    (struct ipc_state){ds.sem.sem_perm.__key, 0, (uint32_t)ds.sem.sem_nsems, false};
		return rc;
	default:
		rc = sys(SYS_msgctl, r->id, IPC_STAT, &ds);
		*s = (struct ipc_state){ds.msg.msg_perm.__key, ds.msg.msg_qbytes, 0, false};
		return rc;
	}
}

static bool is_it(const struct ipc_record *r, const struct ipc_state *s)
{
	return s->key == r->key && !s->removed && (r->kind != IPC_MEMORY || s->size == r->size) &&
	       (r->kind != IPC_SEMAPHORES || s->count == r->count);
}

/* Memory that was removed goes with the last of those who have just been killed. */
static bool is_there(const struct ipc_record *r)
{
	const struct timespec pause = {0, PAUSE_NS};
	struct ipc_state s;
	for (int i = 0; i < TRIES; i++) {
		if (look(r, &s))
			return false;
		if (!s.removed)
			return true;
		sys(SYS_nanosleep, &pause, NULL);
	}
	return true;
}

/* ---- made again ---- */

static bool ask_for(uint32_t kind, int id)
{
	const char *path = kind == IPC_MEMORY	    ? "/proc/sys/kernel/shm_next_id"
			   : kind == IPC_SEMAPHORES ? "/proc/sys/kernel/sem_next_id"
						    : "/proc/sys/kernel/msg_next_id";
	char text[16];
	size_t n = fmt_print(text, sizeof(text), "%d", id);
	long fd = sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && sys(SYS_write, fd, text, n) == (long)n;
	if (fd >= 0)
		sys(SYS_close, fd);
	return ok;
}

static long make_memory(int key, const struct ipc_record *r, int flags)
{
	if (!r->count)
		return sys(SYS_shmget, key, r->size, flags);
	int huge = SHM_HUGETLB | (int)(r->count << HUGE_SHIFT);
	long id = sys(SYS_shmget, key, r->size, flags | huge);
	if (id != -ENOMEM && id != -EPERM && id != -EINVAL)
		return id;
	log_warn("System V shared memory %d had huge pages of %u KiB and comes back with ordinary "
		 "ones (error %ld)",
		 r->id, 1u << (r->count - 10), -id);
	return sys(SYS_shmget, key, r->size, flags);
}

static long make(const struct ipc_record *r)
{
	int flags = IPC_CREAT | IPC_EXCL | (int)(r->mode & 0777);
	int key = r->removed ? IPC_PRIVATE : r->key;
	return r->kind == IPC_MEMORY	   ? make_memory(key, r, flags)
	       : r->kind == IPC_SEMAPHORES ? sys(SYS_semget, key, r->count, flags)
					   : sys(SYS_msgget, key, flags);
}

static void take_away(uint32_t kind, int id)
{
	if (kind == IPC_MEMORY)
		sys(SYS_shmctl, id, IPC_RMID, NULL);
	else if (kind == IPC_SEMAPHORES)
		sys(SYS_semctl, id, 0, IPC_RMID, 0);
	else
		sys(SYS_msgctl, id, IPC_RMID, NULL);
}

/* Its number may be given to somebody else who makes one in the same moment. */
static long make_as(const struct ipc_record *r)
{
	long id = -EPERM;
	for (int i = 0; i < ASKS; i++) {
		bool asked = ask_for(r->kind, r->id);
		if (!asked && !r->removed)
			return -EPERM;
		id = make(r);
		if (id < 0 || id == r->id || (!asked && r->removed))
			return id;
		take_away(r->kind, (int)id);
		id = -EEXIST;
	}
	return id;
}

static void give_owner(const struct ipc_record *r, int id)
{
	union {
		struct shmid_ds shm;
		struct semid_ds sem;
		struct msqid_ds msg;
	} ds;
	memset(&ds, 0, sizeof(ds));
	struct ipc_perm p = {
	    .uid = r->uid, .gid = r->gid, .mode = (unsigned short)(r->mode & 0777)};
	if (r->kind == IPC_MEMORY) {
		ds.shm.shm_perm = p;
		sys(SYS_shmctl, id, IPC_SET, &ds);
	} else if (r->kind == IPC_SEMAPHORES) {
		ds.sem.sem_perm = p;
		sys(SYS_semctl, id, 0, IPC_SET, &ds);
	} else {
		ds.msg.msg_perm = p;
		ds.msg.msg_qbytes = r->size;
		sys(SYS_msgctl, id, IPC_SET, &ds);
	}
}

/* Another rank makes it, or sets it back where it is. */
static hale_status_t await_elsewhere(const struct ipc_record *r, struct error *err)
{
	const struct timespec pause = {0, PAUSE_NS};
	struct ipc_state s;
	for (int i = 0; i < AWAIT; i++) {
		if (!look(r, &s) && !s.removed && (r->removed || s.key == r->key) &&
		    (r->kind != IPC_MEMORY || s.size == r->size) &&
		    (r->kind != IPC_SEMAPHORES || s.count == r->count))
			return HALE_OK;
		sys(SYS_nanosleep, &pause, NULL);
	}
	return error_set(err, HALE_ERR_STATE,
			 "System V %s %d, which another rank shares, is not there again",
			 kind_name(r->kind), r->id);
}

/* The number that it has now. */
static hale_status_t have(const struct ipc_record *r, int *now, struct error *err)
{
	struct ipc_state s;
	*now = r->id;
	if (r->mode & IPC_ELSEWHERE)
		return await_elsewhere(r, err);
	if (!r->removed && is_there(r)) {
		if (!look(r, &s) && is_it(r, &s)) {
			if (r->kind == IPC_MESSAGES && s.size != r->size)
				give_owner(r, r->id);
			return HALE_OK;
		}
		return error_set(
		    err, HALE_ERR_STATE,
		    "System V %s %d is another one by now: remove it (ipcrm) to restart "
		    "from here",
		    kind_name(r->kind), r->id);
	}
	if (r->removed)
		is_there(r);
	long id = make_as(r);
	if (id < 0)
		return error_set(
		    err, HALE_ERR_STATE,
		    id == -EPERM ? "System V %s %d has gone, and Hale may not ask the kernel for "
				   "that number (error %ld)"
				 : "System V %s %d can't be made again (error %ld): has something "
				   "else its key?",
		    kind_name(r->kind), r->id, -id);
	*now = (int)id;
	give_owner(r, (int)id);
	if (r->mode & IPC_SHARED && id != r->id)
		return error_set(
		    err, HALE_ERR_STATE,
		    "System V %s %d, which ranks share, has gone, and Hale may not ask "
		    "the kernel for that number",
		    kind_name(r->kind), r->id);
	if (r->removed && !(r->mode & IPC_SHARED) && self.deleted_count < DELETED_MAX)
		self.deleted[self.deleted_count++] = (int)id;
	if (id != r->id && self.moved_count < IPC_MOVED)
		self.moved[self.moved_count++] = (struct ipc_moved){r->id, (int32_t)id};
	return HALE_OK;
}

/* ---- content ---- */

/* A descendant was told by the root. */
static int number_now(int id)
{
	size_t count = self.moved_count;
	const struct ipc_moved *m = self.moved;
	if (!count)
		m = tree_ipc_moved(&count);
	for (size_t i = 0; i < count; i++)
		if (m[i].from == id)
			return m[i].to;
	return id;
}

static hale_status_t cant_fill(const struct ipc_record *r, long rc, struct error *err)
{
	return error_set(err, HALE_ERR_SYSTEM, "System V %s %d can't be set back (error %ld)",
			 kind_name(r->kind), r->id, -rc);
}

/* Parts of a huge page can't be given back. */
static void make_zero(const struct ipc_record *r, char *at, uint64_t len)
{
	if (r->count || sys(SYS_madvise, at, len, MADV_REMOVE))
		memset(at, 0, len);
}

/* Pages from *done on are zero up to this part. */
static hale_status_t fill_memory(const struct ipc_record *r, int id, const char *data, size_t len,
				 uint64_t *done, struct error *err)
{
	long at = sys(SYS_shmat, id, NULL, 0);
	if (sys_failed(at))
		return cant_fill(r, at, err);
	char *to = (char *)at;
	uint64_t room = r->offset < r->size ? ALIGN_UP(r->size, HALE_PAGE) - r->offset : 0;
	if (len > room)
		len = room;
	/* a page that is not there is zero: a look at it would make it, so it is given back */
	if (r->offset > *done)
		make_zero(r, to + *done, ALIGN_UP(r->offset - *done, HALE_PAGE));
	memcpy(to + r->offset, data, len);
	*done = r->offset + len;
	sys(SYS_shmdt, at);
	return HALE_OK;
}

static hale_status_t end_memory(const struct ipc_record *r, int id, uint64_t done,
				struct error *err)
{
	uint64_t size = ALIGN_UP(r->size, HALE_PAGE);
	long at = done < size ? sys(SYS_shmat, id, NULL, 0) : 0;
	if (sys_failed(at))
		return cant_fill(r, at, err);
	if (at) {
		make_zero(r, (char *)at + done, size - done);
		sys(SYS_shmdt, at);
	}
	return HALE_OK;
}

static hale_status_t fill_semaphores(const struct ipc_record *r, int id, const char *data,
				     size_t len, struct error *err)
{
	long rc = len == r->count * sizeof(uint16_t) ? sys(SYS_semctl, id, 0, SETALL, data) : -EIO;
	return rc ? cant_fill(r, rc, err) : HALE_OK;
}

static hale_status_t fill_messages(const struct ipc_record *r, int id, const char *data, size_t len,
				   struct arena *a, struct error *err)
{
	struct {
		long type;
		char bytes[];
	} *message = arena_alloc(a, sizeof(*message) + FRAME_DATA_MAX);
	long rc = message ? 0 : -ENOMEM;
	while (!rc && sys(SYS_msgrcv, id, message, 0, 0, IPC_NOWAIT | MSG_NOERROR) >= 0)
		;
	while (!rc && len) {
		struct ipc_message m;
		if (len < sizeof(m))
			return cant_fill(r, -EIO, err);
		memcpy(&m, data, sizeof(m));
		if (m.len > len - sizeof(m))
			return cant_fill(r, -EIO, err);
		message->type = m.type;
		memcpy(message->bytes, data + sizeof(m), m.len);
		rc = sys(SYS_msgsnd, id, message, m.len, IPC_NOWAIT);
		data += sizeof(m) + m.len;
		len -= sizeof(m) + m.len;
	}
	return rc ? cant_fill(r, rc, err) : HALE_OK;
}

/* ---- all of them ---- */

struct ipc_making {
	struct ipc_record now; /* the object whose parts come; kind 0: none */
	int id;
	uint64_t done;
	struct list made; /* struct ipc_record */
	bool passes;	  /* another process's image had it already */
};

static hale_status_t end_object(struct ipc_making *m, struct error *err)
{
	hale_status_t rc = HALE_OK;
	if (m->now.kind == IPC_MEMORY && !m->passes && !(m->now.mode & IPC_ELSEWHERE))
		rc = end_memory(&m->now, m->id, m->done, err);
	m->now.kind = 0;
	return rc;
}

static bool is_made(const struct ipc_making *m, const struct ipc_record *r)
{
	for (size_t i = 0; i < m->made.count; i++) {
		const struct ipc_record *o = list_at(&m->made, i);
		if (o->kind == r->kind && o->id == r->id)
			return true;
	}
	return false;
}

static hale_status_t take_part(struct ipc_making *m, const struct ipc_record *r, const char *data,
			       size_t len, struct arena *a, struct error *err)
{
	hale_status_t rc = HALE_OK;
	if (r->kind != m->now.kind || r->id != m->now.id) {
		rc = end_object(m, err);
		m->passes = is_made(m, r);
		m->now = *r;
		m->done = 0;
		struct ipc_record *made = m->passes ? NULL : list_add(&m->made);
		if (made)
			*made = *r;
		if (rc == HALE_OK && !m->passes)
			rc = have(r, &m->id, err);
	}
	if (rc != HALE_OK || m->passes || r->mode & IPC_ELSEWHERE)
		return rc;
	return r->kind == IPC_MEMORY	   ? fill_memory(r, m->id, data, len, &m->done, err)
	       : r->kind == IPC_SEMAPHORES ? fill_semaphores(r, m->id, data, len, err)
					   : fill_messages(r, m->id, data, len, a, err);
}

static hale_status_t take_file(struct ipc_making *m, struct image_file *f, struct arena *a,
			       struct error *err)
{
	char *data = NULL, *packed = NULL;
	for (size_t i = 0; i < f->frames.count; i++) {
		struct frame_at *n = list_at(&f->frames, i);
		if (n->frame.kind != FRAME_IPC)
			continue;
		hale_status_t rc = image_file_table(f, n, err);
		const struct ipc_record *r = n->table;
		if (rc != HALE_OK)
			return rc;
		if (n->frame.table_len != sizeof(*r) || !r->kind || r->kind >= IPC_KINDS ||
		    r->mode & ~(0777u | IPC_SHARED | IPC_ELSEWHERE) ||
		    (r->kind == IPC_MEMORY && r->count > HUGE_MAX) ||
		    n->frame.raw_len > FRAME_DATA_MAX)
			return image_file_corrupt(f, "System V objects", err);
		data = data ? data : arena_pages(a, FRAME_DATA_MAX);
		packed = packed ? packed : image_packed_room(a);
		if (!data || !packed)
			return error_set(err, HALE_ERR_MEMORY, "no memory for System V objects");
		rc = image_file_data(f, n, data, packed, err);
		if (rc == HALE_OK)
			rc = take_part(m, r, data, n->frame.raw_len, a, err);
		if (rc != HALE_OK)
			return rc;
	}
	return end_object(m, err);
}

hale_status_t ipc_begin(struct image_file *const *files, size_t count, struct arena *a,
			struct error *err)
{
	struct ipc_making m = {.id = -1};
	hale_status_t rc = HALE_OK;
	list_init(&m.made, a, sizeof(struct ipc_record));
	for (size_t i = 0; i < count && rc == HALE_OK; i++)
		rc = take_file(&m, files[i], a, err);
	return rc;
}

void ipc_settle(void)
{
	for (size_t i = 0; i < self.deleted_count; i++)
		take_away(IPC_MEMORY, self.deleted[i]);
	self.deleted_count = 0;
}

long ipc_attach(int id, uint64_t at, uint64_t offset, uint64_t len)
{
	struct shmid_ds ds;
	memset(&ds, 0, sizeof(ds));
	id = number_now(id);
	long rc = sys(SYS_shmctl, id, IPC_STAT, &ds);
	uint64_t size = ALIGN_UP((uint64_t)ds.shm_segsz, HALE_PAGE);
	if (rc)
		return rc;
	for (uint32_t shift = 21; offset + len > size && shift <= 30; shift += 9)
		size = ALIGN_UP(size, 1ul << shift); /* its pages are huge */
	if (offset > size || len > size - offset)
		return -EINVAL;
	long whole = sys(SYS_shmat, id, NULL, 0);
	if (whole == -EACCES)
		whole = sys(SYS_shmat, id, NULL, SHM_RDONLY);
	if (sys_failed(whole))
		return whole;
	rc = sys(SYS_mremap, whole + (long)offset, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	if (offset)
		sys(SYS_munmap, whole, offset);
	if (offset + len < size)
		sys(SYS_munmap, whole + (long)(offset + len), size - offset - len);
	return sys_failed(rc) ? rc : 0;
}
