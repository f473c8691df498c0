// SPDX-License-Identifier: BSD-3-Clause
/* Who has what open.
 *
 * fd_same holds open files in a binary tree, by key, then as kcmp orders them: n descriptors take
 * n log n comparisons. That order is a random one, so the tree stays flat by itself.
 *
 * fd_index holds the descriptors of all processes that are captured together, hashed by their links
 * in /proc. It is made when it is first asked for, since most programs never ask. */
#include <errno.h>
#include <string.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { KCMP_OPEN_FILE = 0, KCMP_LESS = 1, KCMP_GREATER = 2, BUCKETS = 1024 };

/* ---- the same open file ---- */

struct same_node {
	uint64_t key;
	int32_t pid;
	int fd, value;
	uint32_t side[2]; /* its number and one more; 0: none */
};

void fd_same_init(struct fd_same *s, struct arena *a)
{
	list_init(&s->node, a, sizeof(struct same_node));
}

/* 0: *at is equal; -ENOENT: none is, and a new one belongs at that side of it; or the error. */
static int same_look(const struct fd_same *s, const struct same_node *of, struct same_node **at,
		     int *side)
{
	*at = NULL;
	for (uint32_t next = s->node.count ? 1 : 0; next; next = (*at)->side[*side]) {
		long rc = KCMP_LESS;
		*at = list_at(&s->node, next - 1);
		if (of->key == (*at)->key)
			rc = sys(SYS_kcmp, of->pid, (*at)->pid, KCMP_OPEN_FILE, of->fd, (*at)->fd);
		else if (of->key > (*at)->key)
			rc = KCMP_GREATER;
		if (rc <= 0)
			return (int)rc;
		*side = rc == KCMP_LESS ? 0 : 1;
	}
	return -ENOENT;
}

bool fd_same_find(const struct fd_same *s, uint64_t key, int32_t pid, int fd, struct fd_seen *first)
{
	struct same_node of = {.key = key, .pid = pid, .fd = fd}, *at;
	int side;
	if (same_look(s, &of, &at, &side))
		return false;
	*first = (struct fd_seen){.pid = at->pid, .fd = at->fd};
	return true;
}

int fd_same_put(struct fd_same *s, uint64_t key, int32_t pid, int fd, int value)
{
	struct same_node of = {.key = key, .pid = pid, .fd = fd, .value = value}, *at, *added;
	int side = 0, rc = same_look(s, &of, &at, &side);
	if (rc != -ENOENT)
		return rc ? rc : at->value;
	if (at)
		at->side[side] = (uint32_t)s->node.count + 1;
	/* this may move the nodes */
	if (!(added = list_add(&s->node)))
		return -ENOMEM;
	*added = of;
	return value;
}

/* ---- by link ---- */

struct fd_entry {
	uint64_t hash;
	int32_t pid; /* 0: of the process that the table is of */
	int fd;
	uint32_t next; /* in its bucket; as in same_node */
};

struct fd_index {
	struct list entry;
	uint32_t first[BUCKETS], last[BUCKETS];
	bool made, put;
	struct fd_same before; /* files with names of the processes before this one */
};

struct fd_index *fd_index_create(struct arena *a)
{
	struct fd_index *x = arena_alloc(a, sizeof(*x));
	if (x)
		list_init(&x->entry, a, sizeof(struct fd_entry));
	if (x)
		fd_same_init(&x->before, a);
	return x;
}

static uint64_t hash_of(const char *text)
{
	uint64_t h = 0;
	for (; *text; text++)
		h = fd_mix(h, (unsigned char)*text);
	return h;
}

static bool link_of(const char *proc, int fd, char link[IMAGE_PATH_MAX])
{
	char path[64];
	fmt_print(path, sizeof(path), "%s/fd/%d", proc, fd);
	long n = sys(SYS_readlink, path, link, IMAGE_PATH_MAX - 1);
	link[n > 0 ? n : 0] = 0;
	return n > 0;
}

static bool add_entry(struct fd_index *x, uint64_t hash, int32_t pid, int fd)
{
	struct fd_entry *e = list_add(&x->entry);
	uint32_t number = (uint32_t)x->entry.count, b = hash % BUCKETS;
	if (!e)
		return false;
	*e = (struct fd_entry){.hash = hash, .pid = pid, .fd = fd};
	if (x->first[b])
		((struct fd_entry *)list_at(&x->entry, x->last[b] - 1))->next = number;
	else
		x->first[b] = number;
	x->last[b] = number;
	return true;
}

static bool add_process(struct fd_index *x, const char *proc, int32_t pid)
{
	struct fd_dir dir;
	bool ok = true;
	if (!fd_dir_open(&dir, proc))
		return true;
	for (int fd; ok && (fd = fd_dir_next(&dir)) >= 0;) {
		char link[IMAGE_PATH_MAX];
		if (link_of(proc, fd, link))
			ok = add_entry(x, hash_of(link), pid, fd);
	}
	fd_dir_close(&dir);
	return ok;
}

static const char *proc_of(const struct fd_table *t, int32_t pid, char buf[32])
{
	if (!pid)
		return t->proc;
	fmt_print(buf, 32, "/proc/%d", (int)pid);
	return buf;
}

static bool make(const struct fd_table *t)
{
	struct fd_index *x = t->index;
	char buf[32];
	if (x->made)
		return true;
	bool ok = add_process(x, t->proc, 0);
	for (size_t i = 0; ok && i < t->tree_count; i++)
		ok = add_process(x, proc_of(t, t->tree[i], buf), t->tree[i]);
	x->made = ok;
	return ok;
}

static bool is_it(const struct fd_table *t, int32_t pid, int fd, const char *wanted,
		  bool (*want)(const struct fd_seen *, const void *), const void *arg)
{
	char buf[32], link[IMAGE_PATH_MAX];
	const struct fd_seen seen = {proc_of(t, pid, buf), pid, fd};
	return link_of(seen.proc, fd, link) && !strcmp(link, wanted) && (!want || want(&seen, arg));
}

static bool look_through(const struct fd_table *t, int32_t pid, const char *wanted,
			 bool (*want)(const struct fd_seen *, const void *), const void *arg)
{
	struct fd_dir dir;
	char buf[32];
	bool found = false;
	if (!fd_dir_open(&dir, proc_of(t, pid, buf)))
		return false;
	for (int fd; !found && (fd = fd_dir_next(&dir)) >= 0;)
		found = is_it(t, pid, fd, wanted, want, arg);
	fd_dir_close(&dir);
	return found;
}

bool fd_tree_has(const struct fd_table *t, const char *link,
		 bool (*want)(const struct fd_seen *, const void *), const void *arg)
{
	uint64_t hash = hash_of(link);
	const struct fd_index *x = t->index;
	bool made = make(t), found = false;
	for (uint32_t n = made ? x->first[hash % BUCKETS] : 0; n && !found;) {
		const struct fd_entry *e = list_at(&x->entry, n - 1);
		found = e->hash == hash && is_it(t, e->pid, e->fd, link, want, arg);
		n = e->next;
	}
	if (made && !t->other)
		return found;
	/* of processes that run there may be more by now */
	found = found || look_through(t, 0, link, want, arg);
	for (size_t i = 0; i < t->tree_count && !found; i++)
		found = look_through(t, t->tree[i], link, want, arg);
	return found;
}

/* ---- other ranks ---- */

static bool make_beside(struct fd_table *t)
{
	struct fd_index *x = t->beside_index;
	char buf[32];
	if (x)
		return true;
	x = t->beside_index = fd_index_create(t->arena);
	bool ok = x && add_process(x, t->proc, 0);
	for (size_t i = 0; ok && i < t->beside_count; i++) {
		size_t before = x->entry.count;
		if (fd_tree_holds(t, t->beside[i]))
			continue;
		ok = add_process(x, proc_of(t, t->beside[i], buf), t->beside[i]);
		/* it is there, so nobody may look */
		ok = ok && (t->other || x->entry.count > before);
	}
	return ok;
}

static bool each_of(struct fd_table *t, const char *link, bool own,
		    bool (*each)(const struct fd_seen *, void *), void *arg)
{
	uint64_t hash = hash_of(link);
	bool ok = make_beside(t);
	for (uint32_t n = ok ? t->beside_index->first[hash % BUCKETS] : 0; n && ok;) {
		const struct fd_entry *e = list_at(&t->beside_index->entry, n - 1);
		char buf[32];
		const struct fd_seen seen = {proc_of(t, e->pid, buf), e->pid, e->fd};
		if (e->hash == hash && own == !e->pid && !(own && fd_table_is_own(t, e->fd)) &&
		    is_it(t, e->pid, e->fd, link, NULL, NULL))
			ok = each(&seen, arg);
		n = e->next;
	}
	return ok;
}

bool fd_beside_each(struct fd_table *t, const char *link,
		    bool (*each)(const struct fd_seen *, void *), void *arg)
{
	return each_of(t, link, false, each, arg);
}

bool fd_own_each(struct fd_table *t, const char *link, bool (*each)(const struct fd_seen *, void *),
		 void *arg)
{
	return each_of(t, link, true, each, arg);
}

/* Kinds whose open file counts, also where another process has it. */
bool fd_may_be_common(const char *link)
{
	return link[0] == '/' || !strcmp(link, "anon_inode:[eventfd]") ||
	       !strcmp(link, "anon_inode:[timerfd]") || !strcmp(link, "anon_inode:inotify");
}

static void put_process(struct fd_same *s, const char *proc, int32_t pid)
{
	struct fd_dir dir;
	if (!fd_dir_open(&dir, proc))
		return;
	for (int fd; (fd = fd_dir_next(&dir)) >= 0;) {
		char link[IMAGE_PATH_MAX];
		if (link_of(proc, fd, link) && fd_may_be_common(link))
			fd_same_put(s, hash_of(link), pid, fd, 0);
	}
	fd_dir_close(&dir);
}

bool fd_tree_first(const struct fd_table *t, int fd, const char *link, struct fd_seen *first)
{
	struct fd_index *x = t->index;
	int32_t self = (int32_t)sys(SYS_getpid);
	char buf[32];
	for (size_t i = 0; !x->put && i < t->tree_count && t->tree[i] != self; i++)
		put_process(&x->before, proc_of(t, t->tree[i], buf), t->tree[i]);
	x->put = true;
	return fd_same_find(&x->before, hash_of(link), self, fd, first);
}
