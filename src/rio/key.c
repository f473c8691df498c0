/* SPDX-License-Identifier: BSD-3-Clause */
/* The key that programs and daemons of nodes have in common: a file, the same on all nodes where
 * homes are shared, and copied by its owner elsewhere. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/own.h"
#include "rio/wire.h"

enum { KEY_DIGITS = 2 * RIO_KEY };

static int key_fail(int error, char *why, size_t size, const char *path, const char *what)
{
	snprintf(why, size, "the key '%.100s' %s; HALE_DEVICE_KEY=FILE names another one", path,
		 what);
	errno = error;
	return -1;
}

/* Makes the folders that are missing in front of path's last name. */
static void make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
}

static int key_path(char path[PATH_MAX], char *why, size_t size)
{
	const char *named = getenv("HALE_DEVICE_KEY"), *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");

	if (named && named[0])
		snprintf(path, PATH_MAX, "%s", named);
	else if (state && state[0] == '/')
		snprintf(path, PATH_MAX, "%s/hale/device.key", state);
	else if (home && home[0] == '/')
		snprintf(path, PATH_MAX, "%s/.local/state/hale/device.key", home);
	else
		return key_fail(ENOENT, why, size, "", "has no place: there is no HOME");
	return 0;
}

/* By a link, so that of several who make it at once all get the same. */
static int key_make(char path[PATH_MAX])
{
	unsigned char bytes[RIO_KEY];
	char text[KEY_DIGITS + 2], temporary[PATH_MAX + 32];
	bool good = getrandom(bytes, RIO_KEY, 0) == RIO_KEY;
	int fd;

	for (int i = 0; i < RIO_KEY; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	text[KEY_DIGITS] = '\n';
	make_folders(path);
	snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid());
	unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	good = good && write(fd, text, KEY_DIGITS + 1) == KEY_DIGITS + 1 && fsync(fd) == 0;
	good = good && (link(temporary, path) == 0 || errno == EEXIST);
	close(fd);
	unlink(temporary);
	return good ? 0 : -1;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int wire_key(unsigned char key[RIO_KEY], char *why, size_t size)
{
	struct error err = {HALE_OK, ""};
	char path[PATH_MAX], text[KEY_DIGITS];
	struct stat st;
	bool good;
	int fd;

	if (key_path(path, why, size) != 0)
		return -1;
	if (access(path, F_OK) != 0 && key_make(path) != 0)
		return key_fail(errno, why, size, path, "can't be made");
	fd = own_open(path, O_RDONLY, &err);
	if (fd < 0)
		return key_fail(EPERM, why, size, path, "is not there, or belongs to another user");
	good = read(fd, text, sizeof(text)) == (ssize_t)sizeof(text);
	good = good && fstat(fd, &st) == 0;
	close(fd);
	if (good && (st.st_mode & 077))
		return key_fail(EPERM, why, size, path, "can be read by others: `chmod 600` it");
	for (int i = 0; good && i < RIO_KEY; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		good = high >= 0 && low >= 0;
		key[i] = (unsigned char)(high * 16 + low);
	}
	explicit_bzero(text, sizeof(text));
	return good ? 0 : key_fail(EINVAL, why, size, path, "is none: 64 hexadecimal digits are");
}
