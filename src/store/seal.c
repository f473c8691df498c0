/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <sodium/crypto_generichash.h>
#include <sodium/utils.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/own.h"
#include "store/store.h"

enum { KEY = 32, DIGITS = 2 * KEY, MAC = 32, MAC_DIGITS = 2 * MAC };

static const char before[] = ",\"seal\":\"", after[] = "\"}";

/* ---- the key ---- */

static struct {
	bool there;
	char path[PATH_MAX];
	unsigned char bytes[KEY];
} key;

/* Under sudo HOME may be another user's. */
static const char *home(void)
{
	const char *named = getenv("HOME");
	const struct passwd *me;
	struct stat st;

	if (named && named[0] == '/' && stat(named, &st) == 0 && st.st_uid == geteuid())
		return named;
	me = getpwuid(geteuid());
	return me && me->pw_dir[0] == '/' ? me->pw_dir : NULL;
}

static hale_status_t find_path(char folder[PATH_MAX], struct error *err)
{
	const char *named = getenv("HALE_CKPT_KEY"), *state = getenv("XDG_STATE_HOME");
	int n = -1;

	folder[0] = '\0';
	if (named && *named) {
		n = snprintf(key.path, sizeof(key.path), "%s", named);
	} else if (state && state[0] == '/') {
		n = snprintf(folder, PATH_MAX, "%.*s/hale", PATH_MAX - 16, state);
	} else if (home()) {
		n = snprintf(folder, PATH_MAX, "%.*s/.local/state/hale", PATH_MAX - 32, home());
	}
	if (n < 0 || n >= PATH_MAX)
		return error_set(err, HALE_ERR_STORE,
				 "there is no place for the key that checkpoints are sealed with: "
				 "you have no home; name a file with HALE_CKPT_KEY");
	if (folder[0])
		snprintf(key.path, sizeof(key.path), "%.*s/key", PATH_MAX - 8, folder);
	return HALE_OK;
}

static hale_status_t cannot_make(struct error *err)
{
	return error_sys(err, HALE_ERR_STORE,
			 "the key that checkpoints are sealed with can't be made in '%.200s'; name "
			 "another file with HALE_CKPT_KEY",
			 key.path);
}

/* By a link, so that of several who make it at once all get the same. */
static hale_status_t make_key(struct error *err)
{
	unsigned char bytes[KEY];
	char text[DIGITS + 2], temporary[PATH_MAX + 32];
	bool good;
	int fd;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return cannot_make(err);
	sodium_bin2hex(text, sizeof(text), bytes, sizeof(bytes));
	text[DIGITS] = '\n';
	snprintf(temporary, sizeof(temporary), "%s.%d", key.path, (int)getpid());
	unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return cannot_make(err);
	good = write(fd, text, DIGITS + 1) == DIGITS + 1 && fsync(fd) == 0;
	good = (link(temporary, key.path) == 0 || errno == EEXIST) && good;
	if (!good)
		cannot_make(err);
	close(fd);
	unlink(temporary);
	sodium_memzero(bytes, sizeof(bytes));
	sodium_memzero(text, sizeof(text));
	return good ? HALE_OK : HALE_ERR_STORE;
}

static hale_status_t read_key(int fd, struct error *err)
{
	char text[DIGITS];
	struct stat st;
	size_t len;

	if (fstat(fd, &st) != 0 || (st.st_mode & 077))
		return error_set(err, HALE_ERR_STORE,
				 "others may read the key '%.200s': `chmod 600` it if nobody has, "
				 "else remove it (what it has sealed can't be restarted then)",
				 key.path);
	if (read(fd, text, sizeof(text)) != (ssize_t)sizeof(text) ||
	    sodium_hex2bin(key.bytes, KEY, text, sizeof(text), NULL, &len, NULL) != 0 || len != KEY)
		return error_set(err, HALE_ERR_STORE,
				 "'%.200s' is no key: %d hexadecimal digits are expected", key.path,
				 DIGITS);
	key.there = true;
	return HALE_OK;
}

static hale_status_t get_key(struct error *err)
{
	char folder[PATH_MAX];
	struct stat st;
	struct error why = {HALE_OK, ""};
	hale_status_t status;
	int fd;

	if (key.there)
		return HALE_OK;
	status = find_path(folder, err);
	if (status == HALE_OK && lstat(key.path, &st) != 0) {
		if (folder[0] && store_make_folders(folder, &why) != HALE_OK)
			return cannot_make(err);
		status = make_key(err);
	}
	if (status != HALE_OK)
		return status;
	fd = own_open(key.path, O_RDONLY, &why);
	if (fd < 0)
		return error_set(err, HALE_ERR_STORE, "the key of checkpoints: %.400s", why.text);
	status = read_key(fd, err);
	close(fd);
	return status;
}

hale_status_t store_seal_probe(struct error *err)
{
	return get_key(err);
}

/* ---- the seal ---- */

static void compute(const char *text, size_t len, char digits[MAC_DIGITS + 1])
{
	unsigned char mac[MAC];

	crypto_generichash(mac, sizeof(mac), (const unsigned char *)text, len, key.bytes, KEY);
	sodium_bin2hex(digits, MAC_DIGITS + 1, mac, sizeof(mac));
}

char *store_seal_put(const char *text, struct error *err)
{
	char digits[MAC_DIGITS + 1], *sealed = NULL;
	size_t len = strlen(text);

	if (get_key(err) != HALE_OK)
		return NULL;
	compute(text, len, digits);
	/* the last brace gives way */
	if (asprintf(&sealed, "%.*s%s%s%s", (int)len - 1, text, before, digits, after) >= 0)
		return sealed;
	error_set(err, HALE_ERR_MEMORY, "out of memory for the manifest");
	return NULL;
}

hale_status_t store_seal_check(const char *text, size_t len, struct error *err)
{
	const size_t tail = strlen(before) + MAC_DIGITS + strlen(after);
	char digits[MAC_DIGITS + 1], *plain;
	size_t body;
	bool good;

	if (len <= tail || memcmp(text + len - tail, before, strlen(before)) != 0 ||
	    memcmp(text + len - strlen(after), after, strlen(after)) != 0)
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "its manifest has no seal, so nobody knows whose it is; it was "
				 "changed, or written by a hale before seals: run the job anew");
	if (get_key(err) != HALE_OK)
		return HALE_ERR_STORE;
	body = len - tail;
	plain = malloc(body + 1);
	if (!plain)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the manifest");
	memcpy(plain, text, body);
	plain[body] = '}';
	compute(plain, body + 1, digits);
	free(plain);
	good = sodium_memcmp(digits, text + len - strlen(after) - MAC_DIGITS, MAC_DIGITS) == 0;
	return good ? HALE_OK
		    : error_set(err, HALE_ERR_IMAGE_MISMATCH,
				"its seal is not of the key '%.200s': another account or machine "
				"wrote it (HALE_CKPT_KEY=FILE names a copy of the key there), or "
				"somebody has changed it",
				key.path);
}
