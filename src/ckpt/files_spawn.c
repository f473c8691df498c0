// SPDX-License-Identifier: BSD-3-Clause
/* What libc opens in a child that posix_spawn makes. The program says it once, and may start many
 * such children, so it is written down at each start. libc's list of actions is opaque: that it
 * looks as here is made sure of whenever one is added, else the record is made right then.
 */
#undef _FILE_OFFSET_BITS
#include "ckpt/files.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "node/guest.h"
#include "image/sys.h"
#include "journal/journal.h"

#define API __attribute__((visibility("default")))

typedef int spawn_t(pid_t *, const char *, const posix_spawn_file_actions_t *,
		    const posix_spawnattr_t *, char *const[], char *const[]);

static struct {
	int (*addopen)(posix_spawn_file_actions_t *, int, const char *, int, mode_t);
	spawn_t *spawn, *spawnp;
} libc;

enum { OPENS = 2, CHANGES_FOLDER, CHANGES_FOLDER_TO };

struct action {
	int what;
	union {
		struct {
			int fd;
			char *path;
			int flags;
			mode_t mode;
		} open;
		char *path;
		int fd;
	} u;
};

static bool unlike; /* this libc's list looks otherwise */

void files_spawn_init(void)
{
	*(void **)&libc.addopen = files_find("posix_spawn_file_actions_addopen");
	*(void **)&libc.spawn = files_find("posix_spawn");
	*(void **)&libc.spawnp = files_find("posix_spawnp");
}

static const struct action *list_of(const posix_spawn_file_actions_t *a)
{
	return (const struct action *)(const void *)a->__actions;
}

static bool is_last(const posix_spawn_file_actions_t *a, int fd, const char *path, int flags)
{
	const struct action *last = a->__used > 0 ? list_of(a) + a->__used - 1 : NULL;

	return last && last->what == OPENS && last->u.open.fd == fd &&
	       last->u.open.flags == flags && last->u.open.path &&
	       strcmp(last->u.open.path, path) == 0;
}

API int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *actions, int fd,
					 const char *path, int flags, mode_t mode)
{
	int rc = libc.addopen(actions, fd, path, flags, mode);

	if (rc == 0 && !is_last(actions, fd, path, flags))
		unlike = true;
	if (unlike && journal_on && files_change(flags))
		journal_opening(AT_FDCWD, path, flags);
	return rc;
}

/* The folder that a later relative path begins in; what it was before is closed. */
static int go_to(int dir, int fd)
{
	if (dir >= 0)
		sys(SYS_close, dir);
	return fd;
}

/* False: one of them may wait for long. */
static bool opens_are_noted(const posix_spawn_file_actions_t *a)
{
	int dir = AT_FDCWD;
	bool plain = true;

	for (int i = 0; i < a->__used; i++) {
		const struct action *x = list_of(a) + i;
		if (x->what == OPENS && files_change(x->u.open.flags))
			plain &= journal_opening(dir, x->u.open.path, x->u.open.flags);
		else if (x->what == CHANGES_FOLDER)
			dir = go_to(dir, (int)sys(SYS_openat, dir, x->u.path,
						  O_PATH | O_DIRECTORY | O_CLOEXEC));
		else if (x->what == CHANGES_FOLDER_TO)
			dir = go_to(dir, (int)sys(SYS_fcntl, x->u.fd, F_DUPFD_CLOEXEC, 0));
	}
	go_to(dir, AT_FDCWD);
	return plain;
}

static int spawn_any(spawn_t *spawn, pid_t *pid, const char *path,
		     const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
		     char *const argv[], char *const envp[])
{
	if (!journal_on || unlike || !actions || !actions->__used)
		return spawn(pid, path, actions, attr, argv, envp);
	hale_guest_enter();
	bool plain = opens_are_noted(actions);
	if (!plain)
		hale_guest_leave();
	int rc = spawn(pid, path, actions, attr, argv, envp), saved = errno;
	if (plain)
		hale_guest_leave();
	errno = saved;
	return rc;
}

API int posix_spawn(pid_t *restrict pid, const char *restrict path,
		    const posix_spawn_file_actions_t *actions,
		    const posix_spawnattr_t *restrict attr, char *const argv[restrict],
		    char *const envp[restrict])
{
	return spawn_any(libc.spawn, pid, path, actions, attr, argv, envp);
}

API int posix_spawnp(pid_t *restrict pid, const char *restrict path,
		     const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *restrict attr, char *const argv[restrict],
		     char *const envp[restrict])
{
	return spawn_any(libc.spawnp, pid, path, actions, attr, argv, envp);
}
