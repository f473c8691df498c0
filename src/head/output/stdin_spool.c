/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/output/stdin_spool.h"
#include "wire/message/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/own.h"

enum { PIECE = 65536 };

#define FULL_SECONDS 1.0

static void pump(struct stdin_spool *f);

void stdin_spool_init(struct stdin_spool *f, struct loop *loop, int source)
{
	struct stat st;
	off_t at;

	*f = (struct stdin_spool){.loop = loop, .input.fd = -1, .source = source, .spool = -1};
	if (fstat(source, &st) != 0) {
		f->source = -1;
		f->at_end = true;
		return;
	}
	at = lseek(source, 0, SEEK_CUR);
	if (S_ISREG(st.st_mode) && at >= 0) {
		f->is_file = true;
		f->file_start = (uint64_t)at;
		f->spool = fcntl(source, F_DUPFD_CLOEXEC, 3);
		f->source = -1;
		f->spool_end = UINT64_MAX;
	}
}

void stdin_spool_fini(struct stdin_spool *f)
{
	stdin_spool_close(f);
	loop_timer_clear(f->loop, &f->again);
	free(f->rest);
	f->rest = NULL;
	loop_remove(f->loop, &f->input);
	if (f->spool >= 0)
		close(f->spool);
	f->spool = -1;
}

void stdin_spool_continue_file(struct stdin_spool *f, const char *path, uint64_t start)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		log_warn("rank 0's stdin was the file '%s', which is gone: it gets no more input",
			 path);
		f->at_end = true;
		return;
	}
	if (f->spool >= 0)
		close(f->spool);
	f->spool = fd;
	f->is_file = true;
	f->source = -1;
	f->file_start = start;
	f->spool_begin = 0;
	f->spool_end = UINT64_MAX;
}

/* Where spooled input goes: a file without a name, on a disk if there is one to write to. */
static int make_spool(const struct stdin_spool *f)
{
	const char *dirs[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};

	if (f->keep[0]) {
		int fd = open(f->keep, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
	}
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		int fd = dirs[i] ? open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
		if (fd >= 0)
			return fd;
	}
	return memfd_create("hale-stdin", MFD_CLOEXEC);
}

/* So many of the bytes; errno says why not all. */
static size_t spool_write(struct stdin_spool *f, const char *bytes, size_t len)
{
	size_t done = 0;

	if (f->spool < 0)
		f->spool = make_spool(f);
	while (done < len) {
		ssize_t n = pwrite(f->spool, bytes + done, len - done, (off_t)f->spool_end);
		if (n <= 0)
			break;
		f->spool_end += (uint64_t)n;
		done += (size_t)n;
	}
	return done;
}

static bool spool_append(struct stdin_spool *f, const char *bytes, size_t len)
{
	if (spool_write(f, bytes, len) == len)
		return true;
	log_warn("cannot keep the job's input: %m; rank 0 gets no more of it");
	return false;
}

static void try_again(void *arg)
{
	struct stdin_spool *f = arg;
	size_t done = spool_write(f, f->rest, f->rest_len);

	memmove(f->rest, f->rest + done, f->rest_len - done);
	f->rest_len -= done;
	if (f->rest_len > 0)
		loop_timer_set(f->loop, &f->again, FULL_SECONDS, try_again, f);
	else
		log_warn("the job's input goes on: there is room for it again");
	pump(f);
}

/* A disk may have room again. To end the input here would be to give the program a part of it. */
static bool wait_for_disk(struct stdin_spool *f, const char *bytes, size_t len)
{
	int error = errno;

	if ((error != ENOSPC && error != EDQUOT) || (!f->rest && !(f->rest = malloc(PIECE))))
		return false;
	memcpy(f->rest, bytes, len);
	f->rest_len = len;
	log_warn("no room to keep the job's input (%s): rank 0 waits for it", strerror(error));
	loop_timer_set(f->loop, &f->again, FULL_SECONDS, try_again, f);
	return true;
}

void stdin_spool_continue_rest(struct stdin_spool *f, const char *rest_path, uint64_t position)
{
	char buf[PIECE];
	ssize_t n;
	int fd = own_open(rest_path, O_RDONLY, NULL);

	if (f->is_file) { /* the file that is hale's stdin now follows the rest */
		f->is_file = false;
		f->source = f->spool;
		f->spool = -1;
	}
	f->spool_begin = f->spool_end = f->fed = position;
	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		if (!spool_append(f, buf, (size_t)n))
			break;
	if (fd >= 0)
		close(fd);
}

void stdin_spool_keep_in(struct stdin_spool *f, const char *path)
{
	snprintf(f->keep, sizeof(f->keep), "%s", path);
}

void stdin_spool_continue_spool(struct stdin_spool *f, const char *path, uint64_t begin, bool ended)
{
	struct stat st;
	int fd = own_open(path, O_RDWR, NULL);

	if (f->is_file) { /* what is hale's stdin now follows */
		f->is_file = false;
		f->source = f->spool;
		f->spool = -1;
		f->spool_end = 0;
	}
	if (fd >= 0 && fstat(fd, &st) == 0) {
		f->spool = fd;
		f->spool_begin = begin;
		f->spool_end = (uint64_t)st.st_size;
	}
	if (ended) {
		f->source = -1;
		f->at_end = true;
	}
}

void stdin_spool_go_on(struct stdin_spool *f, uint64_t position, size_t waiting, bool open)
{
	f->open = open;
	f->fed = position;
	f->window = waiting < STDIN_WINDOW ? STDIN_WINDOW - waiting : 0;
	if (!f->is_file && f->fed > f->spool_end)
		f->spool_begin = f->spool_end = f->fed;
	pump(f);
}

static void stop_reading(struct stdin_spool *f)
{
	loop_remove(f->loop, &f->input);
	f->source = -1;
	f->at_end = true;
}

static void read_input(struct stdin_spool *f)
{
	char buf[PIECE];
	size_t done;
	ssize_t n;

	/* in the background of a terminal reading would stop us */
	if (isatty(f->source) && tcgetpgrp(f->source) != getpgrp()) {
		loop_remove(f->loop, &f->input);
		return;
	}
	n = read(f->source, buf, sizeof(buf));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		stop_reading(f);
		return;
	}
	done = spool_write(f, buf, (size_t)n);
	if (done == (size_t)n || wait_for_disk(f, buf + done, (size_t)n - done))
		return;
	log_warn("cannot keep the job's input: %m; rank 0 gets no more of it");
	stop_reading(f);
}

static void input_ready(void *arg, uint32_t events)
{
	struct stdin_spool *f = arg;

	read_input(f);
	if (f->at_end || f->rest_len > 0 || f->fed < f->spool_end) {
		loop_remove(f->loop, &f->input);
		pump(f);
	}
}

/* Wants more of hale's stdin; true when there is more at once. */
static bool want_input(struct stdin_spool *f)
{
	if (f->source < 0 || f->input.fd >= 0 || f->rest_len > 0)
		return false;
	if (loop_add(f->loop, &f->input, f->source, EPOLLIN, input_ready, f))
		return false;
	read_input(f); /* not a thing to wait for, /dev/null for instance */
	return true;
}

/* Sends bytes of the spool, one piece. */
static void stdin_spool_some(struct stdin_spool *f)
{
	char buf[PIECE];
	uint64_t left = f->spool_end - f->fed;
	size_t want = left < sizeof(buf) ? (size_t)left : sizeof(buf);
	ssize_t n;

	if (want > f->window)
		want = f->window;
	n = pread(f->spool, buf, want, (off_t)(f->fed + f->file_start));
	if (n < 0)
		log_warn("cannot read the job's input: %m; rank 0 gets no more of it");
	if (n <= 0) { /* the end of the file that is the input */
		f->spool_end = f->fed;
		f->at_end = true;
		return;
	}
	f->fed += (uint64_t)n;
	f->window -= (size_t)n;
	f->send(f->arg, buf, (size_t)n);
}

static void pump(struct stdin_spool *f)
{
	while (f->open) {
		if (f->fed < f->spool_end && f->window == 0) {
			break;
		} else if (f->fed < f->spool_end) {
			stdin_spool_some(f);
		} else if (f->at_end) {
			f->open = false;
			f->send_end(f->arg);
		} else if (!want_input(f)) {
			break;
		}
	}
}

void stdin_spool_open(struct stdin_spool *f, uint64_t position)
{
	f->open = true;
	f->window = STDIN_WINDOW;
	f->fed = position;
	if (f->is_file) { /* its end is to be found again */
		f->spool_end = UINT64_MAX;
		f->at_end = false;
	}
	if (f->fed > f->spool_end)
		f->spool_begin = f->spool_end = f->fed;
	pump(f);
}

void stdin_spool_taken(struct stdin_spool *f, size_t len)
{
	f->window += len;
	if (f->window > STDIN_WINDOW)
		f->window = STDIN_WINDOW;
	pump(f);
}

void stdin_spool_close(struct stdin_spool *f)
{
	f->open = false;
}

void stdin_spool_forget(struct stdin_spool *f, uint64_t position)
{
	if (f->is_file || f->spool < 0 || position <= f->spool_begin)
		return;
	fallocate(f->spool, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)position);
	f->spool_begin = position;
}

static hale_status_t copy_spool(struct stdin_spool *f, uint64_t from, int to, const char *path,
				struct error *err)
{
	char buf[PIECE];

	while (from < f->spool_end) {
		uint64_t left = f->spool_end - from;
		ssize_t n = pread(f->spool, buf, left < PIECE ? (size_t)left : PIECE, (off_t)from);
		if (n <= 0 || write(to, buf, (size_t)n) != n)
			return error_sys(err, HALE_ERR_STORE, "cannot write '%s'", path);
		from += (uint64_t)n;
	}
	if (write(to, f->rest, f->rest_len) != (ssize_t)f->rest_len)
		return error_sys(err, HALE_ERR_STORE, "cannot write '%s'", path);
	return fdatasync(to) == 0 ? HALE_OK
				  : error_sys(err, HALE_ERR_STORE, "cannot write '%s'", path);
}

hale_status_t stdin_spool_save_rest(struct stdin_spool *f, uint64_t position, const char *path,
				    uint64_t *bytes, struct error *err)
{
	hale_status_t status;
	int fd;

	*bytes = 0;
	if (f->is_file || f->spool < 0 || position >= f->spool_end + f->rest_len)
		return HALE_OK;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_sys(err, HALE_ERR_STORE, "cannot write '%s'", path);
	status = copy_spool(f, position, fd, path, err);
	*bytes = f->spool_end + f->rest_len - position;
	close(fd);
	return status;
}

void stdin_spool_retry(struct stdin_spool *f)
{
	pump(f);
}
