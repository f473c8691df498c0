/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that move by files (hale migrate --via-files): a rank writes its image into the folder, the
 * target reads it there. Where it doesn't see that file it asks for it, and gets it through the
 * head into a folder of the same name. All files are gone when it is over, whatever came of it.
 *
 *   target ── WANT ──▶ source     then DATA … and an empty one; at most FILE_WINDOW without TAKEN
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/own.h"
#include "agent/agent_private.h"

enum { FILE_WINDOW = 4 << 20, FILE_READ = 256 << 10 };

#define LOOK_SECONDS 0.5

void agent_file_path(const struct agent *a, uint32_t rank, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.*s/rank-%u.img", PATH_MAX - 32, a->move.folder, rank);
}

static hale_status_t make_folder(const struct agent *a, struct error *err)
{
	char parent[PATH_MAX];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", a->move.folder);
	slash = strrchr(parent, '/');
	if (slash && slash != parent) {
		*slash = '\0';
		mkdir(parent, 0777); /* says mkdir below if it can't be */
	}
	if (mkdir(a->move.folder, 0700) == 0 || errno == EEXIST)
		return HALE_OK;
	return error_sys(err, errno == ENOSPC ? HALE_ERR_STORE_FULL : HALE_ERR_STORE,
			 "cannot make the folder %s for --via-files", a->move.folder);
}

/* ---- progress ---- */

static uint64_t gone_over(const struct agent *a, const struct agent_relay *l)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	char path[PATH_MAX];
	struct stat st;

	if (l->watched >= 0)
		return getsockopt(l->watched, IPPROTO_TCP, TCP_INFO, &info, &len) == 0
			   ? info.tcpi_bytes_acked
			   : 0;
	agent_file_path(a, l->rank, path);
	return l->made && stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* A rank that writes its file, or into a connection of its own, says nothing meanwhile: that it
 * gets on, the head hears of. */
static void look(void *arg)
{
	struct agent *a = arg;
	struct agent_move *v = &a->move;

	for (uint32_t r = 0; v->relays && r < a->setup.nranks; r++) {
		uint64_t now = agent_moves_out(a, r) ? gone_over(a, &v->relays[r]) : 0;

		if (now == 0 || now == v->relays[r].seen)
			continue;
		v->relays[r].seen = now;
		agent_send(a, &(struct message){.type = MSG_MOVE_TAKEN, .rank = r, .id = v->id});
	}
	loop_timer_set(&a->loop, &v->progress, LOOK_SECONDS, look, a);
}

void agent_progress_start(struct agent *a)
{
	loop_timer_set(&a->loop, &a->move.progress, LOOK_SECONDS, look, a);
}

/* ---- life ---- */

hale_status_t agent_files_begin(struct agent *a, const char *folder, struct error *err)
{
	bool out = false;

	snprintf(a->move.folder, sizeof(a->move.folder), "%s", folder);
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		out = out || agent_moves_out(a, r);
	if (!out)
		return HALE_OK;
	agent_progress_start(a);
	return make_folder(a, err);
}

static void file_close(struct agent_relay *l)
{
	if (l->file >= 0)
		close(l->file);
	l->file = -1;
	free(l->program);
	l->program = NULL;
}

void agent_files_remove(struct agent *a)
{
	struct agent_move *v = &a->move;

	if (!v->folder[0])
		return;
	for (uint32_t r = 0; v->relays && r < a->setup.nranks; r++) {
		char path[PATH_MAX];

		file_close(&v->relays[r]);
		agent_file_path(a, r, path);
		if (v->relays[r].made)
			unlink(path);
	}
	/* on a folder that nodes share, the last of them does it */
	rmdir(v->folder);
}

void agent_files_end(struct agent *a)
{
	loop_timer_clear(&a->loop, &a->move.progress);
	agent_files_remove(a);
	a->move.folder[0] = '\0';
}

/* ---- the target ---- */

static void sink(struct agent *a, const struct message *m)
{
	char path[PATH_MAX], spec[PATH_MAX + 8];

	agent_file_path(a, m->rank, path);
	snprintf(spec, sizeof(spec), "live:%s", path);
	agent_move_spawn(a, m, spec);
}

static void want(struct agent *a, struct agent_relay *l, const char *path, const char *program)
{
	struct error err = {HALE_OK, ""};

	l->program = strdup(program);
	if (!l->program)
		error_set(&err, HALE_ERR_MEMORY, "out of memory for a copy");
	else if (make_folder(a, &err) == HALE_OK) {
		l->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		l->made = l->file >= 0;
		if (l->file < 0)
			error_sys(&err, HALE_ERR_STORE, "cannot create %s", path);
	}
	if (err.code != HALE_OK)
		agent_move_not_spawned(a, l->rank, &err);
	else
		agent_send(
		    a, &(struct message){.type = MSG_MOVE_WANT, .rank = l->rank, .id = a->move.id});
}

void agent_file_sink(struct agent *a, const struct message *m)
{
	char path[PATH_MAX];

	agent_file_path(a, m->rank, path);
	/* the folder's name is of this migration alone: what is there is the whole file */
	if (access(path, R_OK) == 0)
		sink(a, m);
	else
		want(a, &a->move.relays[m->rank], path, m->text);
}

static void put(struct agent *a, struct agent_relay *l, const struct message *m)
{
	const char *at = m->bytes;
	size_t left = m->len;
	struct error err;
	char path[PATH_MAX];

	while (left > 0) {
		ssize_t n = write(l->file, at, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			agent_file_path(a, l->rank, path);
			error_sys(&err, HALE_ERR_STORE_FULL,
				  "cannot write %s there; make room, or choose another folder "
				  "by --via-files=DIR",
				  path);
			file_close(l);
			agent_move_not_spawned(a, l->rank, &err);
			return;
		}
		at += n;
		left -= (size_t)n;
	}
	agent_send(
	    a, &(struct message){
		   .type = MSG_MOVE_TAKEN, .rank = l->rank, .id = a->move.id, .number = m->len});
}

static void put_end(struct agent *a, struct agent_relay *l)
{
	char *program = l->program;
	int fd = l->file;
	struct error err;

	l->file = -1;
	l->program = NULL;
	if (close(fd) == 0) {
		sink(a, &(struct message){.rank = l->rank, .text = program});
	} else {
		error_sys(&err, HALE_ERR_STORE, "cannot write the file of rank %u", l->rank);
		agent_move_not_spawned(a, l->rank, &err);
	}
	free(program);
}

/* ---- the source ---- */

/* A piece that can't be read leaves the sink without an end: it is an empty one that says so. */
static void pump(struct agent *a, struct agent_relay *l)
{
	static unsigned char bytes[FILE_READ];

	while (l->file >= 0 && l->out + FILE_READ <= FILE_WINDOW) {
		ssize_t n = read(l->file, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0)
			l->out += (uint64_t)n;
		agent_send(a, &(struct message){.type = MSG_MOVE_DATA,
						.rank = l->rank,
						.id = a->move.id,
						.bytes = bytes,
						.len = n > 0 ? (size_t)n : 0});
		if (n <= 0)
			file_close(l);
	}
}

static void give(struct agent *a, struct agent_relay *l)
{
	char path[PATH_MAX];

	if (l->file >= 0 || !l->made)
		return;
	agent_file_path(a, l->rank, path);
	l->file = own_open(path, O_RDONLY, NULL);
	if (l->file >= 0)
		pump(a, l);
	else /* the copy says what is missing */
		agent_send(
		    a, &(struct message){.type = MSG_MOVE_DATA, .rank = l->rank, .id = a->move.id});
}

void agent_file_take(struct agent *a, const struct message *m)
{
	struct agent_relay *l = &a->move.relays[m->rank];
	bool out = agent_moves_out(a, m->rank), in = agent_moves_in(a, m->rank);

	if (out && m->type == MSG_MOVE_WANT)
		give(a, l);
	else if (out && m->type == MSG_MOVE_TAKEN) {
		l->out -= m->number < l->out ? m->number : l->out;
		pump(a, l);
	} else if (in && m->type == MSG_MOVE_DATA && l->file >= 0) {
		if (m->len > 0)
			put(a, l, m);
		else
			put_end(a, l);
	}
}
