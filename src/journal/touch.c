// SPDX-License-Identifier: BSD-3-Clause
/* What a call is about to change, and whether there is a record of it since the checkpoint. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/fmt.h"
#include "image/sys.h"
#include "journal/private.h"

/* ---- paths ---- */

/* A change that goes on without a record is said. */
static bool too_long(const char *path)
{
	journal_unprotected(path, "its path is too long", -ENAMETOOLONG);
	return false;
}

bool journal_path_of_fd(long fd, char out[JOURNAL_PATH])
{
	static const char gone[] = " (deleted)";
	char link[64];

	fmt_print(link, sizeof(link), "/proc/thread-self/fd/%ld", fd);
	long n = sys(SYS_readlinkat, AT_FDCWD, link, out, JOURNAL_PATH - 1);
	if (n == -ENAMETOOLONG || n >= JOURNAL_PATH - 1)
		return too_long("a file");
	if (n <= 0)
		return false;
	out[n] = 0;
	if (out[0] != '/') {
		journal_unprotected(out, "its folder has no path here", -ENOENT);
		return false;
	}
	size_t suffix = sizeof(gone) - 1;
	if ((size_t)n < suffix || strcmp(out + n - suffix, gone) != 0)
		return true;
	/* or it is called so */
	struct journal_file f, g;
	return !journal_look((int)fd, "", AT_EMPTY_PATH, &f) &&
	       !journal_look(AT_FDCWD, out, AT_SYMLINK_NOFOLLOW, &g) && f.inode == g.inode &&
	       f.device == g.device;
}

struct path_asked {
	int dir, flags;
	const char *path;
	char *out;
	struct journal_file *f;
};

static long path_of_here(void *arg)
{
	const struct path_asked *a = arg;
	long fd = sys(SYS_openat, a->dir, a->path, O_PATH | O_CLOEXEC | a->flags);

	if (fd < 0)
		return fd;
	bool good = journal_path_of_fd(fd, a->out) &&
		    (!a->f || !journal_look((int)fd, "", AT_EMPTY_PATH, a->f));
	sys(SYS_close, fd);
	return good ? 0 : -ENOENT;
}

static bool path_of(int dir, const char *path, int flags, char out[JOURNAL_PATH],
		    struct journal_file *f)
{
	struct path_asked a = {dir, flags, path, out, f};
	long rc = path_of_here(&a);

	return (rc == -EMFILE ? journal_elsewhere(path_of_here, &a, dir) : rc) == 0;
}

/* The folder's whole path, and path's last part. */
static bool path_in_folder(int dir, const char *path, struct journal_place *place)
{
	static char folder[JOURNAL_PATH];
	char *out = place->path;
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	size_t at = n;
	while (at > 0 && path[at - 1] != '/')
		at--;
	if (at >= sizeof(folder))
		return too_long(path);
	if (!n || (n - at == 1 && path[at] == '.') ||
	    (n - at == 2 && path[at] == '.' && path[at + 1] == '.'))
		return false;
	if (at)
		memcpy(folder, path, at);
	else
		folder[0] = '.';
	folder[at ? at : 1] = 0;
	if (!path_of(dir, folder, O_DIRECTORY, out, &place->folder))
		return false;
	size_t len = strlen(out);
	len -= len == 1; /* "/" */
	if (len + 1 + (n - at) >= JOURNAL_PATH)
		return too_long(path);
	out[len] = '/';
	memcpy(out + len + 1, path + at, n - at);
	out[len + 1 + n - at] = 0;
	return true;
}

/* What a symbolic link that leads nowhere would make is at its other end. */
static bool through_links(struct journal_place *p)
{
	enum { LINKS = 40 }; /* as the kernel follows */
	static char target[JOURNAL_PATH], next[JOURNAL_PATH];

	for (int i = 0; i < LINKS; i++) {
		long n = sys(SYS_readlinkat, AT_FDCWD, p->path, target, sizeof(target) - 1);
		if (n < 0)
			return true;
		target[n] = 0;
		char *slash = strrchr(p->path, '/');
		if (target[0] == '/')
			*next = 0;
		else
			fmt_print(next, sizeof(next), "%.*s/", (int)(slash - p->path), p->path);
		size_t len = strlen(next);
		if (len + (size_t)n >= sizeof(next))
			return too_long(target);
		memcpy(next + len, target, (size_t)n + 1);
		if (!path_in_folder(AT_FDCWD, next, p))
			return false;
	}
	return false;
}

bool journal_place(int dir, const char *path, bool follow, struct journal_place *out)
{
	return path_in_folder(dir, path, out) && (!follow || through_links(out)) &&
	       !journal_passes_over(out->path);
}

/* Of this thread's newest open: the file was not there before. */
static __thread bool is_new __attribute__((tls_model("initial-exec")));

/* ---- the lock, and what is known ---- */

/* errno: a caller may look at it after a call that went well. Large buffers are static: a signal
 * handler may run on a small stack. */
bool journal_begin(const char *path, int *saved_errno)
{
	*saved_errno = errno;
	if (!path)
		return false;
	if (!journal_lock()) {
		journal_unprotected(path, "a fault has interrupted the journal", -EBUSY);
		errno = *saved_errno;
		return false;
	}
	journal_whose();
	journal_epoch();
	return true;
}

void journal_end(int saved_errno)
{
	journal_unlock();
	errno = saved_errno;
}

/* ---- names ---- */

/* again: also where that is known; a record of what is made follows. */
static void absent(const struct journal_place *p, bool again)
{
	uint64_t key = journal_name_key(p);

	if (known_get(key) & KNOWN_NAME && !again)
		return;
	if (journal_write(JOURNAL_ABSENT, p->path, NULL, &p->folder))
		known_add(key, KNOWN_NAME);
}

/* What is made of this name, and not by opening it, has no record that says which file it is: so
 * this one says that there is such a thing, once. */
static void made_otherwise(const struct journal_place *p)
{
	uint64_t key = journal_name_key(p);

	if (known_get(key) & KNOWN_OTHERWISE)
		return;
	if (journal_write(JOURNAL_MADE, p->path, NULL, NULL))
		known_add(key, KNOWN_OTHERWISE);
}

static void unsaved(const char *whole, const struct journal_file *f, const char *why, long rc)
{
	journal_unprotected(whole, why, rc);
	journal_write(JOURNAL_UNSAVED, whole, NULL, f);
}

static const char *why_unsaved(long rc)
{
	return rc == -EFBIG ? "it is larger than what is saved (HALE_FILE_SAVE_MAX)"
			    : "its content can't be saved";
}

/* The name is about to mean something else, or nothing. */
static void lose(const struct journal_place *p, const struct journal_file *f)
{
	uint64_t key = journal_name_key(p);
	const char *whole = p->path;
	static char text[JOURNAL_PATH], folder[600];
	bool good = false;

	if (known_get(journal_file_key(f)) & KNOWN_MADE && known_get(key) & KNOWN_NAME)
		return;
	if (S_ISLNK(f->mode)) {
		long n = sys(SYS_readlinkat, AT_FDCWD, whole, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = 0;
		good = n > 0 && journal_write(JOURNAL_SYMLINK, whole, text, f);
	} else if (S_ISDIR(f->mode)) {
		good = journal_write(JOURNAL_FOLDER, whole, NULL, f);
	} else if (S_ISFIFO(f->mode) || S_ISSOCK(f->mode)) {
		good = journal_write(JOURNAL_NODE, whole, NULL, f);
	} else if (S_ISREG(f->mode)) {
		long rc = journal_folder(folder, sizeof(folder))
			      ? journal_save_file(folder, whole, f)
			      : -ENOENT;
		if (rc)
			unsaved(whole, f, why_unsaved(rc), rc);
		good = !rc && journal_write(JOURNAL_NAMED, whole, NULL, f);
	} else {
		unsaved(whole, f, "it is a device", -ENODEV);
	}
	if (good)
		known_add(key, KNOWN_NAME);
}

void journal_removing(int dir, const char *path)
{
	static struct journal_place whole;
	struct journal_file f;
	int saved;

	if (!journal_begin(path, &saved))
		return;
	if (!journal_look(dir, path, AT_SYMLINK_NOFOLLOW, &f) &&
	    journal_place(dir, path, false, &whole))
		lose(&whole, &f);
	journal_end(saved);
}

static void making(const struct journal_place *p)
{
	absent(p, false);
	made_otherwise(p);
}

void journal_making(int dir, const char *path)
{
	static struct journal_place whole;
	struct journal_file f;
	int saved;

	if (!journal_begin(path, &saved))
		return;
	if (journal_look(dir, path, AT_SYMLINK_NOFOLLOW, &f) == -ENOENT &&
	    journal_place(dir, path, false, &whole))
		making(&whole);
	journal_end(saved);
}

static void rename_one(const struct journal_place *from, const struct journal_place *to,
		       const struct journal_file *f, bool to_is_there, const struct journal_file *g)
{
	unsigned made = known_get(journal_file_key(f)) & KNOWN_MADE;

	if (to_is_there)
		lose(to, g);
	else
		absent(to, false);
	if (!made)
		made_otherwise(to);
	if (made && known_get(journal_name_key(from)) & KNOWN_NAME &&
	    known_get(journal_name_key(to)) & KNOWN_NAME)
		return;
	journal_write(JOURNAL_RENAMED, from->path, to->path, f);
}

void journal_renaming(int dir, const char *path, int other_dir, const char *other, bool exchange)
{
	static struct journal_place from, to;
	struct journal_file f, g = {0};
	int saved;

	if (!journal_begin(path, &saved))
		return;
	if (!journal_look(dir, path, AT_SYMLINK_NOFOLLOW, &f) &&
	    journal_place(dir, path, false, &from) && journal_place(other_dir, other, false, &to)) {
		bool there = !journal_look(other_dir, other, AT_SYMLINK_NOFOLLOW, &g);
		bool same = there && g.inode == f.inode && g.device == f.device;
		if (exchange && there)
			journal_write(JOURNAL_EXCHANGED, from.path, to.path, &f);
		if (!exchange && !same)
			rename_one(&from, &to, &f, there, &g);
	}
	journal_end(saved);
}

/* ---- content ---- */

/* grows: what is in the file stays. */
static void change(const char *whole, int fd, const struct journal_file *f, bool grows)
{
	uint64_t key = journal_file_key(f);
	char folder[600];

	if (!f->size || grows) {
		if (journal_write(JOURNAL_SIZE, whole, NULL, f))
			known_add(key, f->size ? KNOWN_SIZE : KNOWN_SIZE | KNOWN_CONTENT);
		return;
	}
	long rc = journal_folder(folder, sizeof(folder))
		      ? journal_save_content(folder, whole, fd, f)
		      : -ENOENT;
	if (rc)
		unsaved(whole, f, why_unsaved(rc), rc);
	if (journal_write(rc ? JOURNAL_SIZE : JOURNAL_CONTENT, whole, NULL, f))
		known_add(key, KNOWN_SIZE | KNOWN_CONTENT);
}

static bool is_known(const struct journal_file *f, bool grows)
{
	return known_get(journal_file_key(f)) &
	       (KNOWN_MADE | KNOWN_CONTENT | (grows ? KNOWN_SIZE : 0));
}

/* True: the file is new with this call. */
static bool opening(int dir, const char *path, int flags, bool *plain)
{
	static struct journal_place whole;
	struct journal_file f;
	bool follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	long rc = journal_look(dir, path, follow ? 0 : AT_SYMLINK_NOFOLLOW, &f);

	*plain = true;
	if (rc == -ENOENT && flags & O_CREAT) {
		if (!journal_place(dir, path, follow, &whole))
			return false;
		absent(&whole, true);
		return true;
	}
	if (rc)
		return false;
	*plain = S_ISREG(f.mode);
	bool grows = (flags & O_APPEND) && !(flags & O_TRUNC);
	bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
	bool fails = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	if (*plain && writes && !fails && !is_known(&f, grows) &&
	    path_of(dir, path, 0, whole.path, NULL) && !journal_passes_over(whole.path))
		change(whole.path, -1, &f, grows);
	return false;
}

bool journal_opening(int dir, const char *path, int flags)
{
	bool plain = true;

	int saved;

	is_new = false;
	if ((flags & O_TMPFILE) == O_TMPFILE || !journal_begin(path, &saved))
		return true;
	is_new = opening(dir, path, flags, &plain);
	journal_end(saved);
	return plain;
}

void journal_opened(int fd)
{
	static char whole[JOURNAL_PATH];
	struct journal_file f;
	int saved;

	bool made = is_new;

	is_new = false;
	if (fd < 0 || !made || !journal_begin("a file", &saved))
		return;
	if (!journal_look(fd, "", AT_EMPTY_PATH, &f) && S_ISREG(f.mode)) {
		known_add(journal_file_key(&f), KNOWN_MADE);
		/* by then another program may have made the name its own */
		if (journal_path_of_fd(fd, whole))
			journal_write(JOURNAL_MADE, whole, NULL, &f);
	}
	journal_end(saved);
}

void journal_truncating(const char *path, uint64_t length)
{
	static char whole[JOURNAL_PATH];
	struct journal_file f;
	int saved;

	if (!journal_begin(path, &saved))
		return;
	if (!journal_look(AT_FDCWD, path, 0, &f) && S_ISREG(f.mode) &&
	    !is_known(&f, length >= f.size) && path_of(AT_FDCWD, path, 0, whole, NULL) &&
	    !journal_passes_over(whole))
		change(whole, -1, &f, length >= f.size);
	journal_end(saved);
}

void journal_truncating_fd(int fd, uint64_t length)
{
	static char whole[JOURNAL_PATH];
	struct journal_file f;
	int saved;

	if (!journal_begin("a file", &saved))
		return;
	if (!journal_look(fd, "", AT_EMPTY_PATH, &f) && S_ISREG(f.mode) && f.links &&
	    !is_known(&f, length >= f.size) && journal_path_of_fd(fd, whole) &&
	    !journal_passes_over(whole))
		change(whole, fd, &f, length >= f.size);
	journal_end(saved);
}
