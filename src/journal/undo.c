/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading journals, and the order in which they are undone. What undoing one record means is in
 * revert.c. */
#include "journal/undo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "journal/revert.h"

/* ---- folders ---- */

/* A journal that somebody else could have written is nobody's. */
static int open_own(int dir, const char *name, int flags)
{
	struct stat st;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | flags);

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 022))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int open_journal(const char *job_folder)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/journal", job_folder);
	return open_own(AT_FDCWD, path, O_DIRECTORY);
}

hale_status_t journal_make(const char *job_folder, struct error *err)
{
	char path[PATH_MAX + 16];
	int fd;

	snprintf(path, sizeof(path), "%s/journal", job_folder);
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return error_sys(err, HALE_ERR_STORE, "cannot make the journal's folder '%s'",
				 path);
	fd = open_journal(job_folder);
	if (fd < 0)
		return error_set(err, HALE_ERR_STORE, "'%s' is not a folder of this user alone",
				 path);
	close(fd);
	return HALE_OK;
}

static bool parse_epoch(const char *name, uint32_t *epoch)
{
	char *end;
	unsigned long v = strtoul(name, &end, 10);

	*epoch = (uint32_t)v;
	return name[0] >= '0' && name[0] <= '9' && *end == '\0' && v < UINT32_MAX;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The epochs of from and later and before to, oldest first; malloc'ed. */
static size_t epochs_list(int journal, uint32_t from, uint32_t to, uint32_t **list)
{
	int copy = dup(journal);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	size_t count = 0, cap = 0;
	struct dirent *e;
	uint32_t epoch;

	*list = NULL;
	if (!d && copy >= 0)
		close(copy);
	if (d)
		rewinddir(d);
	while (d && (e = readdir(d))) {
		if (!parse_epoch(e->d_name, &epoch) || epoch < from || epoch >= to)
			continue;
		if (count == cap) {
			cap = cap ? 2 * cap : 16;
			uint32_t *more = realloc(*list, cap * sizeof(**list));
			if (!more)
				break;
			*list = more;
		}
		(*list)[count++] = epoch;
	}
	if (d)
		closedir(d);
	if (count)
		qsort(*list, count, sizeof(**list), by_number);
	return count;
}

/* Newest first: what is left when this is cut short can be undone once more. */
static void set_aside(int journal, const uint32_t *epochs, size_t count)
{
	static unsigned number;
	char from[16], to[64];

	for (size_t i = count; i-- > 0;) {
		snprintf(from, sizeof(from), "%u", epochs[i]);
		snprintf(to, sizeof(to), "%u.%d-%u.old", epochs[i], (int)getpid(), ++number);
		renameat(journal, from, journal, to);
	}
}

static void remove_folder(int dir, const char *name)
{
	int fd = open_own(dir, name, O_DIRECTORY);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	unlinkat(dir, name, AT_REMOVEDIR);
}

/* suffix NULL: all of it. */
static void sweep(int journal, const char *suffix)
{
	int copy = dup(journal);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;

	if (d)
		rewinddir(d);
	while (d && (e = readdir(d))) {
		size_t n = strlen(e->d_name), k = suffix ? strlen(suffix) : 0;

		if (e->d_name[0] == '.' || n < k || (suffix && strcmp(e->d_name + n - k, suffix)))
			continue;
		if (unlinkat(journal, e->d_name, 0) != 0)
			remove_folder(journal, e->d_name);
	}
	if (d)
		closedir(d);
	else if (copy >= 0)
		close(copy);
}

void journal_sweep(const char *job_folder)
{
	int journal = open_journal(job_folder);

	if (journal < 0)
		return;
	sweep(journal, ".old");
	close(journal);
}

void journal_remove(const char *job_folder)
{
	char path[PATH_MAX + 16];
	int journal = open_journal(job_folder);

	if (journal < 0)
		return;
	sweep(journal, NULL);
	close(journal);
	snprintf(path, sizeof(path), "%s/journal", job_folder);
	rmdir(path);
}

/* ---- how far back it goes ---- */

static uint32_t first_read(int journal)
{
	char text[16] = "";
	uint32_t first = 0;
	int fd = open_own(journal, "first", 0);

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && !parse_epoch(text, &first))
		first = 0;
	if (fd >= 0)
		close(fd);
	return first;
}

static bool first_write(int journal, uint32_t first)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", first);
	int fd = openat(journal, "first.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0600);
	bool good = fd >= 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0)
		close(fd);
	return good && renameat(journal, "first.new", journal, "first") == 0;
}

bool journal_drop(const char *job_folder, uint32_t oldest)
{
	int journal = open_journal(job_folder);
	uint32_t *epochs = NULL;
	size_t count = 0;

	if (journal < 0)
		return false;
	count = epochs_list(journal, 0, oldest, &epochs);
	if (count > 0 && first_read(journal) < oldest && !first_write(journal, oldest))
		count = 0;
	set_aside(journal, epochs, count);
	free(epochs);
	close(journal);
	return count > 0;
}

/* ---- reading ---- */

struct undo_entry {
	const struct journal_record *record;
	size_t order;
	int folder;   /* its epoch's */
	unsigned log; /* its rank's, below */
};

struct undo_log {
	char *bytes;
	struct undo_log *next;
};

/* Ranks are past a checkpoint one after the other, so each has a time of its own: its log is there
 * before what it makes first. */
struct undo_rank {
	unsigned rank;
	uint64_t since_ns;
};

struct undo_reading {
	struct undo_entry *entries;
	size_t count, cap;
	struct undo_rank *ranks;
	unsigned rank_count, rank_cap;
	uint64_t since_ns; /* before any of them */
	struct undo_log *logs;
	struct reverting *r;
};

static bool record_is_whole(const char *bytes, size_t len)
{
	struct journal_record r, zero;

	if (len < sizeof(r))
		return false;
	memcpy(&r, bytes, sizeof(r));
	if (r.magic != JOURNAL_MAGIC || r.bytes < sizeof(r) + 2 || r.bytes > len || r.bytes % 8 ||
	    r.kind == 0 || r.kind >= JOURNAL_KINDS ||
	    sizeof(r) + r.path_len + (uint64_t)r.other_len + 2 > r.bytes)
		return false;
	zero = r;
	zero.sum = 0;
	XXH3_state_t *s = XXH3_createState();
	if (!s)
		return false;
	XXH3_64bits_reset(s);
	XXH3_64bits_update(s, &zero, sizeof(zero));
	XXH3_64bits_update(s, bytes + sizeof(r), r.bytes - sizeof(r));
	bool good = (uint32_t)XXH3_64bits_digest(s) == r.sum;
	XXH3_freeState(s);
	return good && bytes[sizeof(r)] == '/' && memchr(bytes + sizeof(r), 0, r.path_len) == NULL;
}

/* Of the file behind fd; 0: not known. */
static uint64_t made_at(int fd)
{
	struct statx st;

	return fd >= 0 && statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) == 0 &&
		       st.stx_mask & STATX_BTIME
		   ? (uint64_t)st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec
		   : 0;
}

/* Its logs of the oldest epoch, which are read first, say since when: the oldest of them, where
 * processes have logs of their own. -1: no memory. */
static int rank_of(struct undo_reading *g, const char *name, int fd)
{
	unsigned rank = (unsigned)strtoul(name + strlen("rank-"), NULL, 10);

	for (unsigned i = g->rank_count; i-- > 0;) {
		uint64_t since_ns = g->ranks[i].rank == rank ? made_at(fd) : 0;
		if (since_ns && since_ns < g->ranks[i].since_ns)
			g->ranks[i].since_ns = since_ns;
		if (g->ranks[i].rank == rank)
			return (int)i;
	}
	if (g->rank_count == g->rank_cap) {
		unsigned cap = g->rank_cap ? 2 * g->rank_cap : 16;
		struct undo_rank *more = realloc(g->ranks, cap * sizeof(*more));
		if (!more)
			return -1;
		g->ranks = more;
		g->rank_cap = cap;
	}
	g->ranks[g->rank_count] = (struct undo_rank){rank, made_at(fd)};
	return (int)g->rank_count++;
}

static bool entry_add(struct undo_reading *g, const struct journal_record *record, int folder,
		      unsigned log)
{
	if (g->count == g->cap) {
		size_t cap = g->cap ? 2 * g->cap : 256;
		struct undo_entry *more = realloc(g->entries, cap * sizeof(*more));
		if (!more)
			return false;
		g->entries = more;
		g->cap = cap;
	}
	g->entries[g->count] =
	    (struct undo_entry){.record = record, .order = g->count, .folder = folder, .log = log};
	g->count++;
	return true;
}

static char *log_add(struct undo_reading *g, size_t len)
{
	struct undo_log *l = malloc(sizeof(*l));

	if (!l || !(l->bytes = malloc(len + 1))) {
		free(l);
		return NULL;
	}
	l->next = g->logs;
	g->logs = l;
	return l->bytes;
}

/* A write that a full disk has cut short leaves something that is no record; others follow, at any
 * place. */
static bool log_scan(struct undo_reading *g, const char *bytes, size_t len, int folder,
		     unsigned log)
{
	for (size_t at = 0; at + sizeof(struct journal_record) <= len;) {
		const char *record = bytes + at;

		if (!record_is_whole(record, len - at)) {
			at++;
			continue;
		}
		uint32_t n;
		memcpy(&n, record + offsetof(struct journal_record, bytes), sizeof(n));
		if (at % 8) {
			char *aligned = log_add(g, n);
			if (!aligned)
				return false;
			record = memcpy(aligned, record, n);
		}
		if (!entry_add(g, (const struct journal_record *)record, folder, log))
			return false;
		at += n;
	}
	return true;
}

static bool log_read(struct undo_reading *g, int fd, int folder, const char *name)
{
	struct stat st;
	size_t have = 0;
	char *bytes = fstat(fd, &st) == 0 ? log_add(g, (size_t)st.st_size) : NULL;
	int rank = rank_of(g, name, fd);

	if (!bytes || rank < 0)
		return false;
	while (have < (size_t)st.st_size) {
		ssize_t n = read(fd, bytes + have, (size_t)st.st_size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	return log_scan(g, bytes, have, folder, (unsigned)rank) && have == (size_t)st.st_size;
}

static bool epoch_read(struct undo_reading *g, int folder)
{
	int copy = dup(folder);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;
	bool good = d != NULL;

	while (good && (e = readdir(d))) {
		if (strncmp(e->d_name, "rank-", 5) != 0)
			continue;
		int fd = open_own(folder, e->d_name, 0);
		good = fd >= 0 && log_read(g, fd, folder, e->d_name);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
	else if (copy >= 0)
		close(copy);
	return good;
}

/* ---- undoing ---- */

static int newest_first(const void *a, const void *b)
{
	const struct undo_entry *x = a, *y = b;

	if (x->record->time_ns != y->record->time_ns)
		return x->record->time_ns < y->record->time_ns ? 1 : -1;
	return x->order < y->order ? 1 : -1;
}

/* Changes that could not be written down, of ranks that are there. */
static void look_at_failures(struct reverting *r, int journal, uint32_t id)
{
	int copy = dup(journal);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct journal_now now;
	struct dirent *e;
	unsigned rank;

	if (d)
		rewinddir(d);
	while (d && (e = readdir(d))) {
		if (sscanf(e->d_name, "rank-%u.now", &rank) != 1)
			continue;
		int fd = open_own(journal, e->d_name, 0);
		if (fd >= 0 && read(fd, &now, sizeof(now)) == (ssize_t)sizeof(now) &&
		    now.failures && now.failed_epoch >= id)
			revert_trouble(r, "rank %u changed files without protection", rank);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
	else if (copy >= 0)
		close(copy);
}

static const char *path_of(const struct journal_record *c)
{
	return (const char *)(c + 1);
}

static const char *other_of(const struct journal_record *c)
{
	return path_of(c) + c->path_len + 1;
}

/* A file that is as old as the journal, by a clock of some milliseconds, or of another rank: is
 * there a record of its being made? One that was renamed was made under the name it had before. */
static int was_made(const struct undo_reading *g, size_t which)
{
	const struct journal_record *c = g->entries[which].record;
	const char *path = path_of(c);

	if (!c->born_ns || c->kind == JOURNAL_ABSENT || c->born_ns < g->since_ns ||
	    c->born_ns > g->r->since_ns)
		return 0;
	for (size_t i = which + 1; i < g->count; i++) {
		const struct journal_record *e = g->entries[i].record;
		bool moved = e->kind == JOURNAL_RENAMED || e->kind == JOURNAL_EXCHANGED;

		if (moved && strcmp(other_of(e), path) == 0)
			path = path_of(e);
		else if (e->kind == JOURNAL_EXCHANGED && strcmp(path_of(e), path) == 0)
			path = other_of(e);
		else if (e->kind == JOURNAL_ABSENT && strcmp(path_of(e), path) == 0)
			return 1;
	}
	return 0;
}

static void undo_epochs(struct undo_reading *g, int journal, const uint32_t *epochs, size_t count,
			int *folders)
{
	char name[16];

	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%u", epochs[i]);
		folders[i] = open_own(journal, name, O_DIRECTORY);
		if (folders[i] < 0 || !epoch_read(g, folders[i]))
			revert_trouble(g->r, "a journal can't be read whole");
	}
	/* before the first record an epoch's folder is made */
	g->r->begin_ns = g->since_ns = count ? made_at(folders[0]) : 0;
	if (g->count)
		qsort(g->entries, g->count, sizeof(*g->entries), newest_first);
	for (size_t i = 0; i < g->count; i++)
		revert_making_note(g->r, g->entries[i].record);
	revert_makings_end(g->r);
	for (size_t i = 0; i < g->count; i++) {
		g->r->since_ns = g->ranks[g->entries[i].log].since_ns;
		g->r->made = was_made(g, i);
		revert(g->r, g->entries[i].record, g->entries[i].folder);
	}
	for (size_t i = 0; i < count; i++)
		if (folders[i] >= 0)
			close(folders[i]);
}

static void reading_fini(struct undo_reading *g)
{
	for (struct undo_log *l = g->logs, *next; l; l = next) {
		next = l->next;
		free(l->bytes);
		free(l);
	}
	free(g->entries);
	free(g->ranks);
}

bool journal_is_empty(const char *job_folder, uint32_t id)
{
	struct reverting r = {0};
	int journal = open_journal(job_folder);
	uint32_t *epochs = NULL;
	bool empty;

	if (journal < 0)
		return true;
	empty = first_read(journal) <= id && epochs_list(journal, id, UINT32_MAX, &epochs) == 0;
	free(epochs);
	look_at_failures(&r, journal, id);
	empty = empty && r.troubles == 0;
	revert_fini(&r);
	close(journal);
	return empty;
}

/* Processes that come back tell by its time what has been made by this (image/fd/fd_found.c). */
static void undone_now(int journal)
{
	int fd = openat(journal, "undone", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0600);

	if (fd < 0)
		return;
	futimens(fd, NULL);
	close(fd);
}

hale_status_t journal_undo(const char *job_folder, uint32_t id, struct error *err)
{
	struct reverting r = {0};
	struct undo_reading g = {.r = &r};
	int journal = open_journal(job_folder);
	uint32_t *epochs, first;
	size_t count;
	hale_status_t status = HALE_OK;

	if (journal < 0) /* the job has none */
		return HALE_OK;
	first = first_read(journal);
	undone_now(journal);
	if (first > id)
		revert_trouble(&r, "the journal goes back to checkpoint %u only", first);
	count = epochs_list(journal, id, UINT32_MAX, &epochs);
	int *folders = calloc(count + 1, sizeof(*folders));
	if (folders)
		undo_epochs(&g, journal, epochs, count, folders);
	else
		revert_trouble(&r, "there is no memory to read the journal");
	look_at_failures(&r, journal, id);
	if (folders)
		set_aside(journal, epochs, count);
	if (r.troubles)
		status = error_set(err, HALE_ERR_STORE, "%s%s", r.text,
				   r.troubles > 1 ? ", and this is not all" : "");
	sweep(journal, ".old");
	reading_fini(&g);
	revert_fini(&r);
	free(folders);
	free(epochs);
	close(journal);
	return status;
}
