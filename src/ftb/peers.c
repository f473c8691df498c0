/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of brokers, and keys. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "ftb/broker_private.h"
#include "ftb/zmq_calls.h"

/* ---- the list ---- */

/* ZeroMQ takes ports above 65535, and listens at some other one. */
static bool is_address(const char *text)
{
	const char *host = text + 6, *colon = strrchr(text, ':');
	long port;

	return strncmp(text, "tcp://", 6) == 0 && colon > host &&
	       units_parse_int(colon + 1, 1, 65535, &port) &&
	       (host[0] == '[' ? colon[-1] == ']' : colon == strchr(host, ':'));
}

static hale_status_t peer_check(const struct ftb_peer *list, int count, const char *path, int line,
				struct error *err)
{
	const struct ftb_peer *p = &list[count];

	if (!is_address(p->address))
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "%s:%d: '%s' is no address; write tcp://IP:PORT, or tcp://[IP]:PORT for IPv6",
		    path, line, p->address);
	for (int i = 0; i < count; i++)
		if (strcmp(list[i].name, p->name) == 0 || memcmp(list[i].key, p->key, 32) == 0)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "%s:%d: name or key is that of an earlier line", path,
					 line);
	return HALE_OK;
}

static hale_status_t peer_parse(char *text, struct ftb_peer *list, int count, const char *path,
				int line, struct error *err)
{
	struct ftb_peer *p = &list[count];
	char more[2], key[42];
	/* one character more than there may be, so that longer ones are seen */
	int n = sscanf(text, "%63s %127s %41s %1s", p->name, p->address, key, more);

	snprintf(p->key_text, sizeof(p->key_text), "%.40s", n == 3 ? key : "");
	if (n != 3 || strlen(key) != 40 || !zmq.z85_decode(p->key, p->key_text))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "%s:%d: a line is NAME tcp://IP:PORT PUBLICKEY (`hale backplane "
				 "key FILE` prints one)",
				 path, line);
	return peer_check(list, count, path, line, err);
}

hale_status_t peers_read(const char *path, struct ftb_peer **peers, int *count, struct error *err)
{
	FILE *f;
	struct ftb_peer *list = NULL;
	hale_status_t st = zmq_calls_load(err);
	char text[512];
	int n = 0;

	if (st != HALE_OK)
		return st;
	f = fopen(path, "re");
	if (!f)
		return error_sys(err, HALE_ERR_ARGUMENT, "can't read the list of brokers %s", path);
	for (int line = 1; st == HALE_OK && fgets(text, sizeof(text), f); line++) {
		const char *start = text + strspn(text, " \t\r\n");

		if (*start == 0 || *start == '#')
			continue;
		struct ftb_peer *grown = realloc(list, ((size_t)n + 1) * sizeof(*grown));
		if (!grown || n == PEERS_MAX) {
			list = grown ? grown : list;
			st = error_set(err, HALE_ERR_ARGUMENT, "%s: at most %d brokers", path,
				       PEERS_MAX);
			break;
		}
		list = grown;
		memset(&list[n], 0, sizeof(list[n]));
		st = peer_parse(text, list, n, path, line, err);
		n += st == HALE_OK;
	}
	fclose(f);
	if (st == HALE_OK && n == 0)
		st = error_set(err, HALE_ERR_ARGUMENT, "%s names no broker", path);
	if (st != HALE_OK) {
		free(list);
		return st;
	}
	*peers = list;
	*count = n;
	return HALE_OK;
}

/* ---- keys ---- */

hale_status_t key_read(const char *path, char secret[41], char public[41], struct error *err)
{
	hale_status_t loaded = zmq_calls_load(err);
	uint8_t raw[32];
	struct stat st;
	ssize_t n;
	int fd;

	if (loaded != HALE_OK)
		return loaded;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0) {
		if (fd >= 0)
			close(fd);
		return error_sys(err, HALE_ERR_ARGUMENT, "can't read the key file %s", path);
	}
	n = read(fd, secret, 40);
	close(fd);
	secret[40] = 0;
	if (st.st_mode & 077)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "others may read the key file %s; `chmod 600` it, and make a new "
				 "key if they have",
				 path);
	if (n != 40 || strlen(secret) != 40 || !zmq.z85_decode(raw, secret) ||
	    zmq.curve_public(public, secret) != 0)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "%s holds no key; `hale backplane key FILE` makes one", path);
	explicit_bzero(raw, sizeof(raw));
	return HALE_OK;
}

hale_status_t broker_key_read(const char *path, char public_key[41], struct error *err)
{
	char secret[41];
	hale_status_t st = key_read(path, secret, public_key, err);

	explicit_bzero(secret, sizeof(secret));
	return st;
}

/* Who wants to see its public part again need not make a new one. */
static hale_status_t key_is_there(const char *path, struct error *err)
{
	char public_key[41];

	if (broker_key_read(path, public_key, err) != HALE_OK)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "can't make the key file %s: something else is there", path);
	return error_set(err, HALE_ERR_ARGUMENT,
			 "there is a key in %s already; its public part is %s", path, public_key);
}

hale_status_t broker_key_make(const char *path, char public_key[41], struct error *err)
{
	char secret[42];
	hale_status_t st = zmq_calls_load(err);
	int fd;
	bool whole;

	if (st != HALE_OK)
		return st;
	if (zmq.curve_keypair(public_key, secret) != 0)
		return error_set(err, HALE_ERR_SYSTEM, "ZeroMQ can't make a key: %s",
				 zmq.strerror(errno));
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return key_is_there(path, err);
	if (fd < 0)
		return error_sys(err, HALE_ERR_ARGUMENT, "can't make the key file %s", path);
	secret[40] = '\n';
	whole = write(fd, secret, 41) == 41 && fsync(fd) == 0;
	explicit_bzero(secret, sizeof(secret));
	close(fd);
	if (!whole) {
		error_sys(err, HALE_ERR_SYSTEM, "can't write the key file %s", path);
		unlink(path);
		return HALE_ERR_SYSTEM;
	}
	return HALE_OK;
}
