/* SPDX-License-Identifier: BSD-3-Clause */
/* Files: /cluster is the same for all hosts, all else is each host's own; /proc is made up when it
 * is opened. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "kernel.h"

static struct inode *node_new(bool folder)
{
	struct inode *n = calloc(1, sizeof(*n));

	n->folder = folder;
	n->inode = (ino_t)(++kernel->next_inode + 1000);
	n->links = 1;
	n->changed = kernel->now;
	return n;
}

struct inode *disk_root(void)
{
	return node_new(true);
}

void disk_free(struct inode *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->count; i++)
		if (--n->entries[i].node->links == 0 && n->entries[i].node->opened == 0)
			disk_free(n->entries[i].node);
	free(n->entries);
	free(n->bytes);
	free(n);
}

/* ---- paths ---- */

void disk_absolute(const char *path, char out[PATH_MAX])
{
	char whole[2 * PATH_MAX], *word, *rest;
	size_t len = 0;

	snprintf(whole, sizeof(whole), "%s/%s", path[0] == '/' ? "" : kernel->running->cwd, path);
	out[0] = '\0';
	for (word = strtok_r(whole, "/", &rest); word; word = strtok_r(NULL, "/", &rest)) {
		if (!strcmp(word, "."))
			continue;
		if (!strcmp(word, "..")) {
			char *slash = strrchr(out, '/');

			if (slash)
				*slash = '\0';
			len = strlen(out);
			continue;
		}
		len += (size_t)snprintf(out + len, PATH_MAX - len, "/%s", word);
	}
	if (!out[0])
		strcpy(out, "/");
}

static struct inode *child_of(const struct inode *n, const char *name)
{
	for (size_t i = 0; n->folder && i < n->count; i++)
		if (!strcmp(n->entries[i].name, name))
			return n->entries[i].node;
	return NULL;
}

/* The folder that holds the last word of path, which gets into name. */
static struct inode *walk(const char *path, char name[256])
{
	char whole[PATH_MAX], *word, *next, *rest;
	struct inode *n = kernel->running ? kernel->running->host->root : kernel->hosts[0].root;

	disk_absolute(path, whole);
	name[0] = '\0';
	word = strtok_r(whole, "/", &rest);
	if (word && !strcmp(word, "cluster")) {
		n = kernel->cluster;
		word = strtok_r(NULL, "/", &rest);
	}
	if (!word)
		return n;
	while ((next = strtok_r(NULL, "/", &rest))) {
		n = child_of(n, word);
		if (!n || !n->folder) {
			errno = n ? ENOTDIR : ENOENT;
			return NULL;
		}
		word = next;
	}
	snprintf(name, 256, "%s", word);
	return n;
}

struct inode *disk_find(const char *path)
{
	char name[256];
	struct inode *n = walk(path, name);

	if (n && name[0])
		n = child_of(n, name);
	if (!n)
		errno = ENOENT;
	return n;
}

static void add(struct inode *folder, const char *name, struct inode *n)
{
	if (folder->count == folder->entry_cap) {
		folder->entry_cap = folder->entry_cap ? 2 * folder->entry_cap : 8;
		folder->entries =
		    realloc(folder->entries, folder->entry_cap * sizeof(*folder->entries));
	}
	snprintf(folder->entries[folder->count].name, 256, "%s", name);
	folder->entries[folder->count++].node = n;
	folder->changed = kernel->now;
}

static void take_out(struct inode *folder, const char *name)
{
	for (size_t i = 0; i < folder->count; i++) {
		if (strcmp(folder->entries[i].name, name) != 0)
			continue;
		folder->entries[i] = folder->entries[--folder->count];
		folder->changed = kernel->now;
		return;
	}
}

static void leave(struct inode *n)
{
	if (--n->links == 0 && n->opened == 0)
		disk_free(n);
}

static bool no_room(void)
{
	if (!kernel->running || !kernel_chance(kernel->running->host->disk_full))
		return false;
	errno = ENOSPC;
	return true;
}

static void told(const char *path, const char *what)
{
	char whole[PATH_MAX];

	if (!kernel->on_file || !kernel->running)
		return;
	disk_absolute(path, whole);
	kernel->on_file(whole, what);
}

int disk_make_folder(const char *path)
{
	char name[256];
	struct inode *n = walk(path, name);

	if (!n)
		return -1;
	if (!name[0] || child_of(n, name)) {
		errno = EEXIST;
		return -1;
	}
	if (no_room())
		return -1;
	add(n, name, node_new(true));
	return 0;
}

int disk_unlink(const char *path, bool folder)
{
	char name[256];
	struct inode *n = walk(path, name), *c = n ? child_of(n, name) : NULL;

	if (!c) {
		errno = n ? ENOENT : errno;
		return -1;
	}
	if (c->folder != folder || c->count > 0) {
		errno = c->folder && !folder ? EISDIR : c->count ? ENOTEMPTY : ENOTDIR;
		return -1;
	}
	take_out(n, name);
	leave(c);
	told(path, "removed");
	return 0;
}

int disk_rename(const char *from, const char *to)
{
	char name[256], target[256];
	struct inode *n = walk(from, name), *c = n ? child_of(n, name) : NULL;
	struct inode *m = c ? walk(to, target) : NULL, *old = m ? child_of(m, target) : NULL;

	if (!c || !m) {
		errno = ENOENT;
		return -1;
	}
	if (old && old->folder && old->count > 0) {
		errno = ENOTEMPTY;
		return -1;
	}
	if (old == c)
		return 0;
	if (old) {
		take_out(m, target);
		leave(old);
	}
	take_out(n, name);
	add(m, target, c);
	told(from, "renamed");
	return 0;
}

int disk_link(const char *from, const char *to)
{
	char name[256];
	struct inode *c = disk_find(from), *m = c ? walk(to, name) : NULL;

	if (!c || !m || child_of(m, name)) {
		errno = c && m ? EEXIST : ENOENT;
		return -1;
	}
	add(m, name, c);
	c->links++;
	return 0;
}

/* ---- /proc ---- */

static char state_letter(const struct proc *p)
{
	return p->state == PROC_ZOMBIE ? 'Z' : p->stopped ? 'T' : 'S';
}

static size_t children_of(const struct proc *p, char *text, size_t cap)
{
	size_t n = 0;

	for (uint32_t i = 0; i < kernel->proc_limit; i++)
		if (kernel->procs[i].state != PROC_FREE && kernel->procs[i].parent == p->pid)
			n += (size_t)snprintf(text + n, cap - n, "%d ", (int)kernel->procs[i].pid);
	return n;
}

static size_t list_of_sockets(char *text, size_t cap)
{
	const struct machine *h = kernel->running->host;
	size_t n = (size_t)snprintf(text, cap, "Num Path\n");

	for (size_t i = 0; i < h->listener_count; i++) {
		const struct object *o = h->listeners[i];

		if (o->u.socket.name_len > 0 && !o->u.socket.name[0])
			n += (size_t)snprintf(text + n, cap - n, "%zu: @%.*s\n", i,
					      (int)o->u.socket.name_len - 1, o->u.socket.name + 1);
	}
	return n;
}

static struct inode *made_up(const char *path)
{
	static const char boot[] = "5eed5eed-0000-4000-8000-%012u\n";
	char text[65536], what[64] = "";
	struct inode *n;
	struct proc *p;
	int pid, len = -1;

	if (sscanf(path, "/proc/%d/%63[a-z/0-9]", &pid, what) == 2 && (p = proc_find(pid))) {
		if (!strcmp(what, "stat"))
			len = snprintf(text, sizeof(text), "%d (%.15s) %c %d %d %d 0 -1", pid,
				       p->name, state_letter(p), (int)p->parent, (int)p->group,
				       (int)p->group);
		else if (!strcmp(what, "status"))
			len = snprintf(text, sizeof(text), "Name:\t%.15s\nSigCgt:\t%016lx\n",
				       p->name, (unsigned long)p->handled);
		else if (!strcmp(what, "statm"))
			len = snprintf(text, sizeof(text), "100 50 10 0 0 0 0\n");
		else if (strstr(what, "children"))
			len = (int)children_of(p, text, sizeof(text));
	} else if (!strcmp(path, "/proc/net/unix")) {
		len = (int)list_of_sockets(text, sizeof(text));
	} else if (!strcmp(path, "/proc/sys/kernel/random/boot_id")) {
		len = snprintf(text, sizeof(text), boot, kernel->running->host->index);
	}
	if (len < 0)
		return NULL;
	n = node_new(false);
	n->links = 0;
	n->bytes = malloc((size_t)len + 1);
	memcpy(n->bytes, text, (size_t)len);
	n->len = n->cap = (size_t)len;
	return n;
}

/* ---- open files ---- */

struct object *disk_open(const char *path, int flags)
{
	char name[256], whole[PATH_MAX];
	struct inode *folder, *n;
	struct object *o;

	disk_absolute(path, whole);
	if (!strcmp(whole, "/dev/null"))
		return object_new(OBJ_NULL);
	if (!strncmp(whole, "/proc/", 6)) {
		n = made_up(whole);
		errno = n ? errno : ENOENT;
		folder = NULL;
	} else {
		folder = walk(path, name);
		n = folder && name[0] ? child_of(folder, name) : folder;
	}
	if (n && (flags & O_CREAT) && (flags & O_EXCL)) {
		errno = EEXIST;
		return NULL;
	}
	if (!n && folder && (flags & O_CREAT) && !no_room()) {
		n = node_new(false);
		add(folder, name, n);
	} else if (!n) {
		errno = errno == ENOSPC ? ENOSPC : ENOENT;
		return NULL;
	}
	if ((flags & O_DIRECTORY) && !n->folder) {
		errno = ENOTDIR;
		return NULL;
	}
	if (n->folder && (flags & O_ACCMODE) != O_RDONLY) {
		errno = EISDIR;
		return NULL;
	}
	if (flags & O_TRUNC)
		n->len = 0;
	o = object_new(n->folder ? OBJ_FOLDER : OBJ_FILE);
	o->flags = flags & (O_ACCMODE | O_APPEND | O_NONBLOCK);
	o->u.file.node = n;
	o->u.file.path = n->folder ? strdup(whole) : NULL;
	n->opened++;
	return o;
}

static void grow(unsigned char **bytes, size_t *cap, size_t wanted)
{
	if (wanted <= *cap)
		return;
	*bytes = realloc(*bytes, 2 * wanted);
	memset(*bytes + *cap, 0, 2 * wanted - *cap);
	*cap = 2 * wanted;
}

ssize_t disk_write(struct object *o, const void *bytes, size_t len, int64_t at)
{
	struct inode *n = o->u.file.node;
	size_t where = at >= 0 ? (size_t)at : o->flags & O_APPEND ? n->len : (size_t)o->u.file.at;

	if (o->kind == OBJ_MEMFD) {
		errno = EINVAL;
		return -1;
	}
	if ((o->flags & O_ACCMODE) == O_RDONLY) {
		errno = EBADF;
		return -1;
	}
	if (no_room())
		return -1;
	/* a part of it only, now and then, as at the end of a disk */
	if (len > 1 && kernel_chance(kernel->running ? kernel->running->host->disk_full : 0))
		len = 1 + kernel_random(len - 1);
	grow(&n->bytes, &n->cap, where + len);
	memcpy(n->bytes + where, bytes, len);
	if (where + len > n->len)
		n->len = where + len;
	n->changed = kernel->now;
	if (at < 0)
		o->u.file.at = where + len;
	return (ssize_t)len;
}

ssize_t disk_read(struct object *o, void *bytes, size_t len, int64_t at)
{
	const struct inode *n = o->u.file.node;
	size_t where = at >= 0 ? (size_t)at : (size_t)o->u.file.at, count;

	if (o->kind == OBJ_MEMFD) {
		errno = EINVAL;
		return -1;
	}
	count = where >= n->len ? 0 : n->len - where < len ? n->len - where : len;
	memcpy(bytes, n->bytes + where, count);
	if (at < 0)
		o->u.file.at = where + count;
	return (ssize_t)count;
}

void disk_stat(const struct inode *n, struct stat *st)
{
	*st = (struct stat){.st_ino = n->inode,
			    .st_dev = 7,
			    .st_mode = n->folder    ? S_IFDIR | 0700
				       : n->program ? S_IFREG | 0755
						    : S_IFREG | 0600,
			    .st_nlink = (nlink_t)n->links,
			    .st_uid = geteuid(),
			    .st_gid = getegid(),
			    .st_size = (off_t)n->len,
			    .st_blksize = 4096,
			    .st_blocks = (blkcnt_t)((n->len + 511) / 512)};
	st->st_mtim.tv_sec = (time_t)(n->changed / NS_PER_S);
	st->st_mtim.tv_nsec = (long)(n->changed % NS_PER_S);
}

void disk_put(const char *path, const void *bytes, size_t len)
{
	char part[PATH_MAX];
	struct inode *n;
	char name[256];

	for (const char *c = path + 1; (c = strchr(c, '/')); c++) {
		snprintf(part, sizeof(part), "%.*s", (int)(c - path), path);
		disk_make_folder(part);
	}
	n = walk(path, name);
	if (!n)
		abort();
	if (!child_of(n, name))
		add(n, name, node_new(false));
	n = child_of(n, name);
	grow(&n->bytes, &n->cap, len);
	memcpy(n->bytes, bytes, len);
	n->len = len;
	n->program = true;
}

size_t disk_list(const char *path, char (**names)[256])
{
	char whole[PATH_MAX];
	const struct inode *n;
	size_t count = 0;
	int pid;

	*names = NULL;
	disk_absolute(path, whole);
	if (!strcmp(whole, "/proc")) {
		*names = calloc(kernel->proc_limit + 1, sizeof(**names));
		for (uint32_t i = 0; i < kernel->proc_limit; i++)
			if (kernel->procs[i].state != PROC_FREE &&
			    kernel->procs[i].host == kernel->running->host)
				snprintf((*names)[count++], 256, "%d", (int)kernel->procs[i].pid);
		return count;
	}
	if (sscanf(whole, "/proc/%d/task", &pid) == 1 && proc_find(pid)) {
		*names = calloc(1, sizeof(**names));
		snprintf((*names)[0], 256, "%d", pid);
		return 1;
	}
	n = disk_find(path);
	if (!n || !n->folder)
		return (size_t)-1;
	*names = calloc(n->count + 1, sizeof(**names));
	for (; count < n->count; count++)
		snprintf((*names)[count], 256, "%s", n->entries[count].name);
	return count;
}
