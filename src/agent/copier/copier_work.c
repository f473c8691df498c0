/* SPDX-License-Identifier: BSD-3-Clause */
/* One copy, from its first byte to its last. Who receives looks at all of it again, on the disk,
 * before the copy gets its name and is acknowledged: its length, each frame's checksums, and the
 * checksum that the rank's own writer told the head. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "image/image.h"
#include "agent/copier/copier_wire.h"

enum { CHUNK = 1 << 20, SYNC_EVERY = 16 << 20, SMALL_SEGMENT = 1200 };

/* A slow disk: who waits for it to sync gives it time. */
#define DISK_SECONDS 60.0
#define DISK_BYTES   20e6

typedef char path_t[PATH_MAX];

void copier_image_path(char *path, const char *folder, uint32_t id, uint32_t rank)
{
	snprintf(path, PATH_MAX, "%.*s/%u/" JOB_IMAGE_NAME, STORE_FOLDER_MAX, folder, id, rank);
}

static hale_status_t full_or(hale_status_t status)
{
	return errno == ENOSPC || errno == EDQUOT ? HALE_ERR_STORE_FULL : status;
}

/* ---- a file that is being made ---- */

struct making {
	path_t path, temporary;
	int fd;
	bool sync;
	uint64_t bytes, done;
};

static hale_status_t making_failed(const struct making *m, struct error *err)
{
	return error_sys(err, full_or(HALE_ERR_STORE), "cannot write '%s'", m->path);
}

/* The room for it is taken at once, so that a full disk is known before anything travels. The
 * shared folder of a checkpoint is there, or it has been given up. */
static hale_status_t making_begin(struct making *m, enum copy_kind kind, const char *folder,
				  uint32_t id, uint32_t rank, uint64_t bytes, bool sync,
				  struct error *err)
{
	path_t in;
	hale_status_t status = HALE_OK;

	*m = (struct making){.fd = -1, .sync = sync, .bytes = bytes};
	snprintf(in, sizeof(in), "%.*s/%u", STORE_FOLDER_MAX, folder, id);
	copier_image_path(m->path, folder, id, rank);
	snprintf(m->temporary, sizeof(m->temporary), "%.*s.%d", PATH_MAX - 16, m->path,
		 (int)getpid());
	if (kind != COPY_SHARED)
		status = store_make_folders(in, err);
	if (status != HALE_OK)
		return status;
	m->fd = open(m->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (m->fd < 0 || (bytes > 0 && fallocate(m->fd, 0, 0, (off_t)bytes) != 0 &&
			  errno != EOPNOTSUPP && errno != ENOSYS))
		return making_failed(m, err);
	return HALE_OK;
}

static hale_status_t making_put(struct making *m, const char *at, size_t len, struct error *err)
{
	while (len > 0) {
		ssize_t n = write(m->fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return making_failed(m, err);
		/* so that the end need not wait for all of it */
		if (m->sync && m->done / SYNC_EVERY != (m->done + (uint64_t)n) / SYNC_EVERY)
			sync_file_range(m->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
		m->done += (uint64_t)n;
		at += n;
		len -= (size_t)n;
	}
	return HALE_OK;
}

hale_status_t copier_sync_folder(const char *path, struct error *err)
{
	path_t folder;
	char *slash;
	int fd, failed;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	*slash = '\0';
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	failed = fd < 0 || (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP);
	if (failed)
		error_sys(err, HALE_ERR_STORE, "cannot sync the folder '%s'", folder);
	if (fd >= 0)
		close(fd);
	return failed ? HALE_ERR_STORE : HALE_OK;
}

/* All of it is there: looks at it, and gives it its name. */
static hale_status_t making_finish(struct making *m, uint32_t rank, uint64_t checksum,
				   struct error *err)
{
	hale_status_t status;

	if (m->sync && fsync(m->fd) != 0)
		return making_failed(m, err);
	status = store_verify_file(m->temporary, rank, m->bytes, checksum, true, err);
	if (status == HALE_OK && rename(m->temporary, m->path) != 0)
		status = making_failed(m, err);
	if (status == HALE_OK && m->sync)
		status = copier_sync_folder(m->path, err);
	return status;
}

/* Nothing is left of one that was not finished. */
static void making_end(struct making *m, hale_status_t status)
{
	if (m->fd < 0)
		return;
	close(m->fd);
	if (status != HALE_OK)
		unlink(m->temporary);
}

/* ---- over a connection ---- */

static hale_status_t shorter(struct error *err)
{
	return error_set(err, HALE_ERR_IMAGE_TORN, "the image has become shorter than it was");
}

static hale_status_t send_sealed(struct copier_link *to, int from, uint64_t bytes,
				 struct error *err)
{
	char *chunk = malloc(CHUNK);
	hale_status_t status = HALE_OK;

	if (!chunk)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	while (status == HALE_OK && bytes > 0) {
		ssize_t n = read(from, chunk, bytes < CHUNK ? bytes : CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			status = error_sys(err, HALE_ERR_STORE, "cannot read the image");
		else if (n == 0)
			status = shorter(err);
		else
			status = copier_say(to, chunk, (size_t)n, err);
		bytes -= n > 0 ? (uint64_t)n : 0;
	}
	free(chunk);
	return status;
}

static hale_status_t send_file(struct copier_link *to, int from, uint64_t bytes, struct error *err)
{
	off_t at = 0;

	if (to->sealed)
		return send_sealed(to, from, bytes, err);
	while ((uint64_t)at < bytes) {
		uint64_t left = bytes - (uint64_t)at;
		ssize_t n = sendfile(to->fd, from, &at, left < CHUNK ? left : CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			return shorter(err);
		if (n < 0 && errno == EAGAIN)
			return error_set(err, HALE_ERR_LINK,
					 "the other side takes nothing any more");
		if (n < 0)
			return error_sys(err, HALE_ERR_LINK, "the connection is broken");
	}
	return HALE_OK;
}

/* Takes all that comes even when there is no place for it: the other side reads the answer only
 * when it has said everything. */
static hale_status_t receive(struct making *m, struct copier_link *l, struct error *err)
{
	char *chunk = malloc(CHUNK);
	uint64_t left = m->bytes;
	hale_status_t status = HALE_OK, heard = HALE_OK;

	if (!chunk)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	while (left > 0 && heard == HALE_OK) {
		size_t n = left < CHUNK ? (size_t)left : CHUNK;

		heard = copier_hear(l, chunk, n, status == HALE_OK ? err : NULL);
		if (heard == HALE_OK && status == HALE_OK)
			status = making_put(m, chunk, n, err);
		left -= n;
	}
	free(chunk);
	return status == HALE_OK ? heard : status;
}

static double disk_patience(uint64_t bytes)
{
	return DISK_SECONDS + (double)bytes / DISK_BYTES;
}

static hale_status_t answer(struct copier_link *l, hale_status_t status, uint32_t what,
			    const struct error *why)
{
	struct answer a = {.status = (int32_t)status, .what = what};

	if (status != HALE_OK)
		snprintf(a.text, sizeof(a.text), "%s", why->text);
	return copier_say(l, &a, sizeof(a), NULL);
}

static hale_status_t hear_answer(struct copier_link *l, struct answer *a, struct error *err)
{
	hale_status_t status = copier_hear(l, a, sizeof(*a), err), said;

	a->text[sizeof(a->text) - 1] = '\0';
	if (status != HALE_OK || a->status == HALE_OK)
		return status;
	said = (hale_status_t)a->status;
	if (!a->text[0] || strcmp(hale_status_name(said), "unknown error") == 0)
		return error_set(err, HALE_ERR_PROTOCOL,
				 "what the other side answers makes no sense");
	return error_set(err, said, "%s", a->text);
}

/* ---- giving away ---- */

static hale_status_t open_image(const path_t path, uint32_t rank, uint64_t bytes, int *fd,
				struct error *err)
{
	hale_status_t status = store_verify_file(path, rank, bytes, 0, false, err);

	if (status != HALE_OK)
		return status;
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return error_sys(err, HALE_ERR_IMAGE_MISSING, "cannot read '%s'", path);
	return HALE_OK;
}

static hale_status_t put(const struct copier_order *o, struct copier_link *l, int image,
			 struct error *err)
{
	struct copier_wire_request r = {.type = REQUEST_PUT,
					.rank = o->rank,
					.id = o->id,
					.bytes = o->bytes,
					.checksum = o->checksum};
	struct answer a = {0};
	struct error broke;
	hale_status_t status, heard;

	copier_patience(l, l->silence);
	status = copier_say(l, &r, sizeof(r), err);
	if (status == HALE_OK)
		status = hear_answer(l, &a, err);
	if (status == HALE_OK && a.what == ANSWER_LOOKS) {
		copier_patience(l, disk_patience(o->bytes));
		status = hear_answer(l, &a, err);
		copier_patience(l, l->silence);
	}
	if (status != HALE_OK || a.what == ANSWER_HAVE)
		return status;
	status = send_file(l, image, o->bytes, &broke);
	copier_patience(l, status == HALE_OK ? disk_patience(o->bytes) : 1);
	/* what it says says more than that the connection is broken */
	heard = hear_answer(l, &a, err);
	if (heard == HALE_OK && status == HALE_OK)
		return HALE_OK;
	if (status != HALE_OK && (heard == HALE_OK || heard == HALE_ERR_LINK))
		*err = broke;
	return err->code;
}

static hale_status_t to_partner(const struct copier *c, const struct copier_order *o,
				struct error *err)
{
	struct copier_link l = {.fd = -1};
	path_t path;
	int image = -1;
	hale_status_t status;

	copier_image_path(path, c->folder, o->id, o->rank);
	status = open_image(path, o->rank, o->bytes, &image, err);
	if (status == HALE_OK)
		status = copier_call(c, o->address, o->peer, &l, err);
	if (status == HALE_OK)
		status = put(o, &l, image, err);
	copier_hang_up(&l);
	if (image >= 0)
		close(image);
	return status;
}

/* It lies there, under its own name, and is what the rank wrote. */
static bool is_there(const path_t path, const struct copier_order *o)
{
	struct stat st;

	return stat(path, &st) == 0 && (uint64_t)st.st_size == o->bytes &&
	       store_verify_file(path, o->rank, o->bytes, o->checksum, true, NULL) == HALE_OK;
}

static hale_status_t to_shared(const struct copier *c, const struct copier_order *o,
			       struct error *err)
{
	path_t path;
	struct making m;
	char *chunk = malloc(CHUNK);
	int image = -1;
	ssize_t n = 0;
	hale_status_t status;

	/* an order of the head before this one has been carried out */
	copier_image_path(path, o->folder, o->id, o->rank);
	if (is_there(path, o)) {
		free(chunk);
		return c->sync ? copier_sync_folder(path, err) : HALE_OK;
	}
	copier_image_path(path, c->folder, o->id, o->rank);
	status = chunk ? open_image(path, o->rank, o->bytes, &image, err)
		       : error_set(err, HALE_ERR_MEMORY, "out of memory");
	m.fd = -1;
	if (status == HALE_OK)
		status = making_begin(&m, COPY_SHARED, o->folder, o->id, o->rank, o->bytes, c->sync,
				      err);
	while (status == HALE_OK && (n = read(image, chunk, CHUNK)) > 0)
		status = making_put(&m, chunk, (size_t)n, err);
	if (status == HALE_OK && n < 0)
		status = error_sys(err, HALE_ERR_STORE, "cannot read '%s'", path);
	if (status == HALE_OK)
		status = making_finish(&m, o->rank, o->checksum, err);
	making_end(&m, status);
	if (image >= 0)
		close(image);
	free(chunk);
	return status;
}

/* ---- getting back ---- */

static hale_status_t get(const struct copier *c, const struct copier_order *o,
			 struct copier_link *l, struct error *err)
{
	struct copier_wire_request r = {.type = REQUEST_GET,
					.rank = o->rank,
					.id = o->id,
					.bytes = o->bytes,
					.checksum = o->checksum};
	struct answer a;
	struct making m = {.fd = -1};
	hale_status_t status;

	snprintf(r.folder, sizeof(r.folder), "%s", o->folder);
	copier_patience(l, l->silence);
	status = copier_say(l, &r, sizeof(r), err);
	if (status == HALE_OK)
		status = hear_answer(l, &a, err);
	if (status == HALE_OK)
		status =
		    making_begin(&m, COPY_FETCH, c->folder, o->id, o->rank, o->bytes, c->sync, err);
	if (status == HALE_OK)
		status = receive(&m, l, err);
	if (status == HALE_OK)
		status = making_finish(&m, o->rank, o->checksum, err);
	making_end(&m, status);
	return status;
}

/* Where it is to be at the end: in the node's folder, unless it lies on this node in another one.
 */
static hale_status_t fetch(const struct copier *c, const struct copier_order *o,
			   struct copier_done *done, struct error *err)
{
	struct image_info *info = malloc(sizeof(*info));
	struct copier_link l = {.fd = -1};
	path_t path;
	hale_status_t status;

	if (!info)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	copier_image_path(path, o->address[0] ? c->folder : o->folder, o->id, o->rank);
	status = store_verify_file(path, o->rank, o->bytes, o->checksum, true, err);
	if (status != HALE_OK && o->address[0]) {
		status = copier_call(c, o->address, o->peer, &l, err);
		if (status == HALE_OK)
			status = get(c, o, &l, err);
	}
	if (status == HALE_OK)
		status = image_read_info(path, info, err);
	if (status == HALE_OK && info->checksum != o->checksum)
		status = error_set(err, HALE_ERR_IMAGE_CORRUPT,
				   "'%s' is not the image that its manifest names", path);
	if (status == HALE_OK) {
		done->image_base = info->identity.base;
		snprintf(done->text, sizeof(done->text), "%.479s",
			 info->program[0] == '/' ? info->program : "");
	}
	copier_hang_up(&l);
	free(info);
	return status;
}

static hale_status_t carry_out(const struct copier *c, const struct copier_order *o,
			       struct copier_done *done, struct error *err)
{
	*err = (struct error){HALE_OK, ""};
	if (o->kind == COPY_PARTNER)
		return to_partner(c, o, err);
	return o->kind == COPY_SHARED ? to_shared(c, o, err) : fetch(c, o, done, err);
}

void copier_work(const struct copier *c, const struct copier_order *o, struct copier_done *done)
{
	struct error err;
	struct copier again = *c;
	hale_status_t status = carry_out(c, o, done, &err);

	/* What somebody has changed, or cut, on its way he may not do a second time; what was lost
	 * may have been lost for its size (docs/network-channel.md, 'Packets that are too large').
	 */
	if ((c->encrypt && status == HALE_ERR_PROTOCOL) || status == HALE_ERR_LINK) {
		log_warn("the image of rank %u goes once more: %s", o->rank, err.text);
		again.segment = status == HALE_ERR_LINK ? SMALL_SEGMENT : 0;
		status = carry_out(&again, o, done, &err);
	}
	done->status = (int32_t)status;
	if (status != HALE_OK)
		snprintf(done->text, sizeof(done->text), "%s", err.text);
}

/* ---- for others ---- */

/* One that is there already, an order of the head before this one. Without a word of it the caller
 * would take the time that it takes for silence. */
static bool have_it(const struct copier *c, const struct copier_wire_request *r,
		    struct copier_link *l)
{
	const struct copier_order o = {
	    .rank = r->rank, .id = r->id, .bytes = r->bytes, .checksum = r->checksum};
	struct stat st;
	path_t path;
	bool good;

	copier_image_path(path, c->folder, r->id, r->rank);
	if (stat(path, &st) != 0 || (uint64_t)st.st_size != r->bytes ||
	    answer(l, HALE_OK, ANSWER_LOOKS, NULL) != HALE_OK)
		return false;
	good = is_there(path, &o) && (!c->sync || copier_sync_folder(path, NULL) == HALE_OK);
	if (good)
		answer(l, HALE_OK, ANSWER_HAVE, NULL);
	return good;
}

static void take_in(const struct copier *c, const struct copier_wire_request *r,
		    struct copier_link *l)
{
	struct error err = {HALE_OK, ""};
	struct making m;
	hale_status_t status;

	if (have_it(c, r, l))
		return;
	status = making_begin(&m, COPY_PARTNER, c->folder, r->id, r->rank, r->bytes, c->sync, &err);
	if (answer(l, status, ANSWER_SEND, &err) == HALE_OK && status == HALE_OK) {
		status = receive(&m, l, &err);
		if (status == HALE_OK)
			status = making_finish(&m, r->rank, r->checksum, &err);
		making_end(&m, status);
		answer(l, status, ANSWER_SEND, &err);
		return;
	}
	making_end(&m, HALE_ERR_LINK);
}

/* What it gives away need not be good: who gets it looks. */
static void hand_out(const struct copier_wire_request *r, struct copier_link *l)
{
	struct error err = {HALE_OK, ""};
	path_t path;
	int image = -1;
	hale_status_t status;

	copier_image_path(path, r->folder, r->id, r->rank);
	status = open_image(path, r->rank, r->bytes, &image, &err);
	if (answer(l, status, ANSWER_SEND, &err) == HALE_OK && status == HALE_OK)
		send_file(l, image, r->bytes, NULL);
	if (image >= 0)
		close(image);
}

void copier_serve(const struct copier *c, struct copier_link *l)
{
	struct copier_wire_request r;

	copier_patience(l, l->silence);
	if (copier_hear(l, &r, sizeof(r), NULL) != HALE_OK)
		return;
	r.folder[sizeof(r.folder) - 1] = '\0';
	if (r.type == REQUEST_PUT)
		take_in(c, &r, l);
	else if (r.type == REQUEST_GET)
		hand_out(&r, l);
}
