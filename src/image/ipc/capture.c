// SPDX-License-Identifier: BSD-3-Clause
/* What is in the System V objects that this process knows. Async-signal-safe. */
#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>

#include "base/fmt.h"
#include "image/ipc/ipc.h"

enum { PART = FRAME_DATA_MAX, LIST_MAX = 4 << 20, COPY = 040000 /* MSG_COPY */ };

struct ipc_collecting {
	struct arena *arena;
	const struct list *own;
	const int32_t *tree;
	size_t tree_count;
	int (*claim)(int kind, int id);
	struct list *parts, numbers; /* struct ipc_record: what is to be saved */
	struct error *err;
};

/* Kept in the image, for the process that comes out of it. */
enum { LATE_MAX = 256 };
static struct {
	bool is_late;
	int32_t captured;
	int removed[LATE_MAX]; /* memory to be removed when all ranks have it again */
	size_t count;
} late;

static hale_status_t no_memory(struct error *err)
{
	return error_set(err, HALE_ERR_MEMORY, "no memory for System V objects");
}

static const char *kind_name(uint32_t kind)
{
	return kind == IPC_MEMORY	? "shared memory"
	       : kind == IPC_SEMAPHORES ? "semaphores"
					: "message queue";
}

static hale_status_t refuse(const struct ipc_record *r, const char *why, hale_status_t code,
			    struct error *err)
{
	return error_set(err, code, "System V %s %d %s", kind_name(r->kind), r->id, why);
}

/* ---- which ---- */

static bool add_number(struct ipc_collecting *c, int kind, int id)
{
	for (size_t i = 0; i < c->numbers.count; i++) {
		const struct ipc_record *r = list_at(&c->numbers, i);
		if (r->kind == (uint32_t)kind && r->id == id)
			return true;
	}
	struct ipc_record *r = list_add(&c->numbers);
	if (r)
		*r = (struct ipc_record){.kind = (uint32_t)kind, .id = id};
	return r != NULL;
}

/* Field n of a line in /proc/sysvipc. */
static int64_t field(const char *line, int n)
{
	int64_t v = 0;
	for (int i = 0;; i++) {
		while (*line == ' ')
			line++;
		if (i == n)
			break;
		while (*line && *line != ' ' && *line != '\n')
			line++;
	}
	for (; *line >= '0' && *line <= '9'; line++)
		v = v * 10 + (*line - '0');
	return v;
}

/* key msqid perms cbytes qnum lspid lrpid … */
enum { FIELD_ID = 1, MSG_SENDER = 5, MSG_RECEIVER = 6 };

/* A program may have been given a number that it has never asked for. */
static bool add_used_queues(struct ipc_collecting *c)
{
	struct msginfo info = {0};
	int64_t self = (int64_t)sys(SYS_getpid);
	bool ok = true;
	if (sys(SYS_msgctl, 0, MSG_INFO, &info) < 0 || !info.msgpool)
		return true;
	char *text = arena_alloc(c->arena, LIST_MAX);
	if (!text || sys_read_small("/proc/sysvipc/msg", text, LIST_MAX) < 0)
		return text != NULL;
	for (const char *line = strchr(text, '\n'); ok && line && line[1];
	     line = strchr(line + 1, '\n'))
		if (field(line + 1, MSG_SENDER) == self || field(line + 1, MSG_RECEIVER) == self)
			ok = add_number(c, IPC_MESSAGES, (int)field(line + 1, FIELD_ID));
	return ok;
}

/* key semid perms nsems … */
enum { SEM_COUNT = 3 };

static bool add_used_semaphores(struct ipc_collecting *c)
{
	struct seminfo info = {0};
	long self = sys(SYS_getpid);
	bool ok = true;
	if (sys(SYS_semctl, 0, 0, SEM_INFO, &info) < 0 || !info.semusz)
		return true;
	char *text = arena_alloc(c->arena, LIST_MAX);
	if (!text || sys_read_small("/proc/sysvipc/sem", text, LIST_MAX) < 0)
		return text != NULL;
	for (const char *line = strchr(text, '\n'); ok && line && line[1];
	     line = strchr(line + 1, '\n')) {
		int id = (int)field(line + 1, FIELD_ID);
		bool used = false;
		for (int i = 0; i < field(line + 1, SEM_COUNT) && !used; i++)
			used = sys(SYS_semctl, id, i, GETPID, 0) == self;
		ok = !used || add_number(c, IPC_SEMAPHORES, id);
	}
	return ok;
}

static bool add_known(struct ipc_collecting *c)
{
	bool ok = true;
	for (size_t i = 0; i < IPC_KNOWN && ok; i++) {
		int kind, id;
		if (ipc_known_at(i, &kind, &id))
			ok = add_number(c, kind, id);
	}
	for (size_t i = 0; i < c->own->count && ok; i++) {
		const struct map *m = list_at(c->own, i);
		if (map_is_sysv(m))
			ok = add_number(c, IPC_MEMORY, (int)m->inode);
	}
	return ok && add_used_queues(c) && add_used_semaphores(c);
}

/* ---- memory ---- */

uint32_t ipc_count_maps(int32_t pid, int id)
{
	struct arena arena;
	struct list maps;
	struct error err;
	char path[64];
	uint32_t n = 0;
	fmt_print(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (!arena_init(&arena, NULL, 64 << 20))
		return 0;
	if (maps_scan(path, &arena, &maps, &err) == HALE_OK)
		for (size_t i = 0; i < maps.count; i++) {
			const struct map *m = list_at(&maps, i);
			n += map_is_sysv(m) && m->inode == (uint64_t)id;
		}
	arena_fini(&arena);
	return n;
}

static bool earlier_has(const struct ipc_collecting *c, int id)
{
	int32_t self = (int32_t)sys(SYS_getpid);
	for (size_t i = 0; i < c->tree_count && c->tree[i] != self; i++)
		if (ipc_count_maps(c->tree[i], id))
			return true;
	return false;
}

static bool add_part(struct ipc_collecting *c, const struct ipc_record *r, uint64_t offset,
		     const void *data, size_t len)
{
	struct ipc_part *p = list_add(c->parts);
	char *copy = arena_pages(c->arena, len + 1);
	if (!p || !copy)
		return false;
	memcpy(copy, data, len);
	*p = (struct ipc_part){*r, copy, len};
	p->record.offset = offset;
	return true;
}

static bool is_zero(const char *page)
{
	return !page[0] && !memcmp(page, page + 1, HALE_PAGE - 1);
}

/* Pages that are not there are zero, and a look at them would make them; where memory may be
 * swapped out the kernel does not tell. */
static bool pages_there(struct ipc_collecting *c, const char *at, uint64_t pages,
			unsigned char **here)
{
	struct sysinfo info = {0};
	*here = arena_alloc(c->arena, pages + 1);
	if (!*here)
		return false;
	if (sys(SYS_sysinfo, &info) || info.totalswap ||
	    sys(SYS_mincore, at, pages * HALE_PAGE, *here))
		memset(*here, 1, pages);
	return true;
}

/* Of the huge pages of memory `id`; 0: it has ordinary ones. Less than a page can't be unmapped. */
static uint32_t page_shift(int id)
{
	static const uint32_t known[] = {12, 21, 30};
	uint32_t shift = 0;
	long at = sys(SYS_shmat, id, NULL, SHM_RDONLY);
	if (sys_failed(at))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!sys(SYS_munmap, at, 1ul << known[i])) {
			shift = i ? known[i] : 0;
			break;
		}
	sys(SYS_shmdt, at);
	return shift;
}

/* Of huge pages mincore tells only what this mapping has touched, which is nothing. So each is
 * looked at, by a call: one that there is no page for is zero, and ends nobody. */
static void huge_there(const struct ipc_record *r, const char *at, unsigned char *here)
{
	for (uint64_t from = 0, n; from < r->size; from += n) {
		char byte;
		struct iovec to = {&byte, 1}, of = {(void *)(at + from), 1};
		n = 1ul << r->count;
		n = n < r->size - from ? n : r->size - from;
		bool there = sys(SYS_process_vm_readv, sys(SYS_getpid), &to, 1, &of, 1, 0) == 1;
		memset(here + from / HALE_PAGE, there, (n + HALE_PAGE - 1) / HALE_PAGE);
	}
}

/* In runs of what is not zero, in order; the first part is there also if all is. */
static bool save_pages(struct ipc_collecting *c, const struct ipc_record *r, const char *at)
{
	uint64_t pages = (r->size + HALE_PAGE - 1) / HALE_PAGE;
	unsigned char *here;
	bool ok = pages_there(c, at, pages, &here), any = false;
	if (ok && r->count)
		huge_there(r, at, here);
	for (uint64_t i = 0, n; ok && i < pages; i += n) {
		for (n = 0; i + n < pages && n < PART / HALE_PAGE && here[i + n] & 1 &&
			    !is_zero(at + (i + n) * HALE_PAGE);)
			n++;
		if (n)
			ok = any = add_part(c, r, i * HALE_PAGE, at + i * HALE_PAGE, n * HALE_PAGE);
		else
			n = 1;
	}
	return ok && (any || add_part(c, r, 0, "", 0));
}

/* True: another rank saves it, and this image says so. r: all but its mode's flags is there. */
static bool is_elsewhere(struct ipc_collecting *c, struct ipc_record *r, hale_status_t *rc)
{
	int claim = c->claim ? c->claim((int)r->kind, r->id) : 1;
	*rc = HALE_OK;
	if (claim < 0)
		*rc =
		    refuse(r, "is one of too many that ranks share", HALE_ERR_UNSUPPORTED, c->err);
	if (c->claim)
		r->mode |= claim ? IPC_SHARED : IPC_ELSEWHERE;
	if (claim == 0 && !add_part(c, r, 0, "", 0))
		*rc = no_memory(c->err);
	if (claim > 0 && c->claim && r->removed && late.count < LATE_MAX)
		late.removed[late.count++] = r->id;
	return claim <= 0;
}

static hale_status_t save_memory(struct ipc_collecting *c, struct ipc_record *r)
{
	struct shmid_ds ds;
	hale_status_t done;
	memset(&ds, 0, sizeof(ds));
	long rc = sys(SYS_shmctl, r->id, IPC_STAT, &ds);
	if (rc == -EINVAL || rc == -EIDRM)
		return HALE_OK; /* it is gone */
	if (earlier_has(c, r->id))
		return HALE_OK;
	r->key = ds.shm_perm.__key;
	r->uid = ds.shm_perm.uid;
	r->gid = ds.shm_perm.gid;
	r->mode = ds.shm_perm.mode & 0777;
	r->removed = (ds.shm_perm.mode & SHM_DEST) != 0;
	r->size = ds.shm_segsz;
	if (!rc && is_elsewhere(c, r, &done))
		return done;
	long at = rc ? rc : sys(SYS_shmat, r->id, NULL, SHM_RDONLY);
	if (sys_failed(at))
		return refuse(r, "may not be read by this program, so it can't be saved",
			      HALE_ERR_UNSUPPORTED, c->err);
	r->count = page_shift(r->id);
	bool ok = save_pages(c, r, (const char *)at);
	sys(SYS_shmdt, at);
	return ok ? HALE_OK : no_memory(c->err);
}

/* ---- semaphores and messages ---- */

static hale_status_t save_semaphores(struct ipc_collecting *c, struct ipc_record *r)
{
	struct semid_ds ds;
	memset(&ds, 0, sizeof(ds));
	long rc = sys(SYS_semctl, r->id, 0, IPC_STAT, &ds);
	if (rc == -EINVAL || rc == -EIDRM)
		return HALE_OK;
	hale_status_t done;
	r->key = ds.sem_perm.__key;
	r->uid = ds.sem_perm.uid;
	r->gid = ds.sem_perm.gid;
	r->mode = ds.sem_perm.mode & 0777;
	r->count = (uint32_t)ds.sem_nsems;
	if (!rc && is_elsewhere(c, r, &done))
		return done;
	uint16_t *values = rc ? NULL : arena_alloc(c->arena, ds.sem_nsems * sizeof(*values) + 1);
	if (!rc && !values)
		return no_memory(c->err);
	if (rc || sys(SYS_semctl, r->id, 0, GETALL, values))
		return refuse(r, "may not be read by this program, so they can't be saved",
			      HALE_ERR_UNSUPPORTED, c->err);
	return add_part(c, r, 0, values, ds.sem_nsems * sizeof(*values)) ? HALE_OK
									 : no_memory(c->err);
}

static hale_status_t save_messages(struct ipc_collecting *c, struct ipc_record *r)
{
	struct msqid_ds ds;
	struct arena_bytes all;
	memset(&ds, 0, sizeof(ds));
	bytes_init(&all, c->arena);
	long rc = sys(SYS_msgctl, r->id, IPC_STAT, &ds);
	if (rc == -EINVAL || rc == -EIDRM)
		return HALE_OK;
	hale_status_t done;
	r->key = ds.msg_perm.__key;
	r->uid = ds.msg_perm.uid;
	r->gid = ds.msg_perm.gid;
	r->mode = ds.msg_perm.mode & 0777;
	r->size = ds.msg_qbytes;
	r->count = (uint32_t)ds.msg_qnum;
	if (!rc && is_elsewhere(c, r, &done))
		return done;
	size_t most = rc ? 0 : (size_t)ds.__msg_cbytes;
	struct {
		long type;
		char bytes[];
	} *message = arena_alloc(c->arena, sizeof(*message) + most + 1);
	if (!message)
		return no_memory(c->err);
	for (long i = 0; !rc && i < (long)ds.msg_qnum; i++) {
		long n = sys(SYS_msgrcv, r->id, message, most, i, COPY | IPC_NOWAIT);
		struct ipc_message m = {message->type, (uint32_t)n, 0};
		char *to = n < 0 ? NULL : bytes_extend(&all, sizeof(m) + (size_t)n);
		if (!to) {
			rc = n < 0 ? n : -ENOMEM;
			break;
		}
		memcpy(to, &m, sizeof(m));
		memcpy(to + sizeof(m), message->bytes, (size_t)n);
	}
	if (rc == -ENOMEM)
		return no_memory(c->err);
	if (rc || all.len > PART)
		return refuse(r,
			      rc == -ENOSYS ? "can't be looked into by this kernel (MSG_COPY)"
			      : rc ? "may not be read by this program, so it can't be saved"
				   : "has more than 4 MiB, which can't be saved",
			      HALE_ERR_UNSUPPORTED, c->err);
	return add_part(c, r, 0, all.len ? all.data : "", all.len) ? HALE_OK : no_memory(c->err);
}

bool ipc_restores_late(int32_t captured)
{
	late.captured = captured;
	return late.is_late;
}

void image_ipc_together(void)
{
	for (size_t i = 0; i < late.count; i++)
		sys(SYS_shmctl, late.removed[i], IPC_RMID, NULL);
	long rc = ipc_undo_restore(late.captured);
	if (rc)
		log_warn("after the restart semaphores are not given back at the program's end "
			 "(SEM_UNDO, error %ld)",
			 -rc);
}

hale_status_t ipc_collect(struct arena *a, const struct list *own, const int32_t *tree,
			  size_t tree_count, int (*claim)(int kind, int id), struct list *parts,
			  struct error *err)
{
	struct ipc_collecting c = {.arena = a,
				   .own = own,
				   .tree = tree,
				   .tree_count = tree_count,
				   .claim = claim,
				   .parts = parts,
				   .err = err};
	hale_status_t rc = HALE_OK;
	list_init(parts, a, sizeof(struct ipc_part));
	list_init(&c.numbers, a, sizeof(struct ipc_record));
	late.is_late = claim != NULL;
	late.count = 0;
	if (ipc_known_overflows())
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the program has more System V objects than Hale can note (%d)",
				 IPC_KNOWN);
	if (ipc_undo_overflows())
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the program has more semaphores to be given back at its end "
				 "(SEM_UNDO) than Hale can note");
	if (!add_known(&c))
		return no_memory(err);
	for (size_t i = 0; i < c.numbers.count && rc == HALE_OK; i++) {
		struct ipc_record *r = list_at(&c.numbers, i);
		rc = r->kind == IPC_MEMORY	 ? save_memory(&c, r)
		     : r->kind == IPC_SEMAPHORES ? save_semaphores(&c, r)
						 : save_messages(&c, r);
	}
	return rc;
}
