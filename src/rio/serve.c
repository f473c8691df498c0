/* SPDX-License-Identifier: BSD-3-Clause */
/* A session is a file that is open for one program: it has a control connection and up to
 * RIO_STREAMS_MAX streams, each served by a thread. docs/rio.md, 'States'. */
#include "rio/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "rio/files.h"

enum {
	SERVE_STREAMS_MAX = 64, /* of all sessions: each has a buffer */
	PIECE = 256 << 10,	/* bytes that are received, then written, at once */
	BUFFERS_KEPT = 4,	/* buffers of streams that have ended, for later ones */
};
_Static_assert(RIO_BUFFER % PIECE == 0, "a block is whole pieces");

enum session_state {
	SESSION_OPEN,
	SESSION_KEEPING, /* a thread gives the file its name */
	SESSION_KEPT,	 /* the file has its name; or all of it has been read */
	SESSION_BROKEN,	 /* error says why; a file that was written is gone */
};

struct serve_session {
	struct serve_session *next;
	unsigned char token[RIO_TOKEN];
	unsigned flags;
	char path[RIO_PATH_MAX];
	struct rio_file file;
	unsigned holders, streams; /* threads that have it; streams among them */
	enum session_state state;
	int error;
	uint64_t size;	     /* of the file when it was opened for reading */
	uint64_t bytes, sum; /* that have gone through streams */
};

static struct {
	int root;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a session's streams, or its state */
	struct serve_session *first;
	unsigned streams;
} files = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

void serve_files_begin(int root)
{
	files.root = root;
}

void serve_refuse(int fd, int error, const char *fmt, ...)
{
	struct wire_head h = {.op = RIO_REFUSED, .error = (uint16_t)error};
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	wire_say(fd, &h, text, strlen(text));
}

/* ---- sessions ---- */

/* Under the lock. A session ends once: later errors change nothing. */
static void session_end(struct serve_session *s, enum session_state state, int error)
{
	if (s->state == SESSION_OPEN) {
		s->state = state;
		s->error = error;
	}
	pthread_cond_broadcast(&files.changed);
}

/* What was written gets its name, if all of it is there: once. Not under the lock, since a disk may
 * take long. */
static void session_keep(struct serve_session *s)
{
	int error = 0;

	pthread_mutex_lock(&files.lock);
	while (s->state == SESSION_KEEPING)
		pthread_cond_wait(&files.changed, &files.lock);
	bool ours = s->state == SESSION_OPEN;
	if (ours)
		s->state = SESSION_KEEPING;
	pthread_mutex_unlock(&files.lock);
	if (!ours)
		return;
	if (s->flags & RIO_F_WRITE)
		error = rio_file_keep(&s->file, s->flags & RIO_F_SYNC);
	pthread_mutex_lock(&files.lock);
	s->state = error ? SESSION_BROKEN : SESSION_KEPT;
	s->error = error;
	pthread_cond_broadcast(&files.changed);
	pthread_mutex_unlock(&files.lock);
}

static void session_leave(struct serve_session *s)
{
	struct serve_session **at = &files.first;

	pthread_mutex_lock(&files.lock);
	bool last = --s->holders == 0;
	for (; last && *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	pthread_mutex_unlock(&files.lock);
	if (!last)
		return;
	rio_file_close(&s->file);
	free(s);
}

static int session_open_file(struct serve_session *s, mode_t mode)
{
	struct stat st;
	int error = s->flags & RIO_F_WRITE
			? rio_file_write(&s->file, files.root, s->path, mode & 0777, true)
			: rio_file_read(&s->file, files.root, s->path);

	if (!error && fstat(s->file.fd, &st) == 0)
		s->size = (uint64_t)st.st_size;
	return error;
}

static struct serve_session *session_create(int fd, const struct wire_head *h, const char *path)
{
	struct serve_session *s = calloc(1, sizeof(*s));
	int error;

	if (!s || getrandom(s->token, RIO_TOKEN, 0) != RIO_TOKEN) {
		serve_refuse(fd, ENOMEM, "the node has no memory for another file");
		free(s);
		return NULL;
	}
	s->flags = (unsigned)h->number;
	s->holders = 1;
	snprintf(s->path, sizeof(s->path), "%s", path);
	error = session_open_file(s, (mode_t)h->size);
	if (error) {
		serve_refuse(fd, error, "'%.200s' can't be %s there: %s%s", path,
			     s->flags & RIO_F_WRITE ? "written" : "read", strerror(error),
			     error == EACCES ? " (paths stay below the daemon's --root)" : "");
		free(s);
		return NULL;
	}
	pthread_mutex_lock(&files.lock);
	s->next = files.first;
	files.first = s;
	pthread_mutex_unlock(&files.lock);
	return s;
}

/* ---- control ---- */

static void say_state(int fd, struct serve_session *s)
{
	char why[300] = "";

	pthread_mutex_lock(&files.lock);
	struct wire_head h = {.op = RIO_STATE,
			      .error = (uint16_t)s->error,
			      .number = s->bytes,
			      .size = s->size,
			      .sum = s->sum};
	pthread_mutex_unlock(&files.lock);
	if (h.error)
		snprintf(why, sizeof(why), "'%.200s' there: %s", s->path, strerror(h.error));
	wire_say(fd, &h, why, strlen(why));
}

/* The caller has closed its streams; what they have brought is waited for. */
static void session_finish(struct serve_session *s, const struct wire_head *h)
{
	pthread_mutex_lock(&files.lock);
	while (s->streams > 0)
		pthread_cond_wait(&files.changed, &files.lock);
	if (h->number != RIO_REST && h->number != s->bytes)
		session_end(s, SESSION_BROKEN, ECONNRESET);
	else if ((s->flags & RIO_F_CHECKED) && h->sum != s->sum)
		session_end(s, SESSION_BROKEN, EBADMSG);
	pthread_mutex_unlock(&files.lock);
	session_keep(s);
}

static bool serve_control(int fd, const struct wire_head *open, const char *path)
{
	struct serve_session *s = session_create(fd, open, path);
	struct wire_head h = {.op = RIO_OPENED};
	char payload[RIO_PAYLOAD_MAX + 1];

	if (!s)
		return false;
	h.size = s->size;
	if (wire_say(fd, &h, s->token, RIO_TOKEN) == 0)
		while (wire_hear(fd, &h, payload, RIO_PAYLOAD_MAX) == 0) {
			if (h.op == RIO_FINISH)
				session_finish(s, &h);
			else if (h.op != RIO_ASK)
				break;
			say_state(fd, s);
		}
	session_leave(s);
	return false;
}

/* ---- streams ---- */

/* The other side learns that this stream has failed, and doesn't take its end for one of a file. */
static void reset_on_close(int fd)
{
	struct linger at_once = {1, 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static int put(int file, const char *buffer, size_t len, uint64_t offset)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(file, buffer + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		done += (size_t)n;
	}
	return 0;
}

static void count(struct serve_session *s, size_t len, uint64_t sum)
{
	pthread_mutex_lock(&files.lock);
	s->bytes += len;
	s->sum += sum;
	pthread_mutex_unlock(&files.lock);
}

/* Takes one block, which belongs at `offset`, or what is left of the stream (*end). A block that is
 * hashed is whole in buffer afterwards. Each piece is written while the processor's cache has it,
 * and the next ones travel meanwhile. 0, or an errno. */
static int take_block(int fd, struct serve_session *s, char *buffer, uint64_t offset, bool *end)
{
	bool checked = s->flags & RIO_F_CHECKED;
	size_t len = 0;

	while (len < RIO_BUFFER && !*end) {
		char *to = checked ? buffer + len : buffer;
		ssize_t n = recv(fd, to, PIECE - len % PIECE, MSG_WAITALL);
		int error;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		*end = n == 0;
		error = put(s->file.fd, to, (size_t)n, offset + len);
		if (error)
			return error;
		len += (size_t)n;
	}
	/* to the disk, while the next block travels; no bytes would mean all to the file's end */
	if (len > 0)
		sync_file_range(s->file.fd, (off_t)offset, (off_t)len, SYNC_FILE_RANGE_WRITE);
	count(s, len, checked && len ? wire_sum(buffer, len, offset) : 0);
	return 0;
}

static int take_stream(int fd, struct serve_session *s, char *buffer, uint64_t offset)
{
	bool end = false;
	char first;

	/* the byte behind RIO_JOIN is none of the file's (rio_session_join) */
	if (wire_hear_bytes(fd, &first, 1) != 0)
		return errno;
	for (; !end; offset += RIO_BUFFER) {
		int error = take_block(fd, s, buffer, offset, &end);

		if (error)
			return error;
	}
	return 0;
}

/* A block of the file to the stream. 0, or an errno. */
static int give_block(int fd, struct serve_session *s, char *buffer, uint64_t offset, size_t len)
{
	off_t at = (off_t)offset;
	size_t done = 0;

	if (s->flags & RIO_F_CHECKED) {
		while (done < len) {
			ssize_t n =
			    pread(s->file.fd, buffer + done, len - done, (off_t)(offset + done));

			if (n <= 0)
				return n < 0 ? errno : EIO; /* it has become shorter */
			done += (size_t)n;
		}
		count(s, len, wire_sum(buffer, len, offset));
		return wire_say_bytes(fd, buffer, len) == 0 ? 0 : errno;
	}
	while (done < len) {
		ssize_t n = sendfile(fd, s->file.fd, &at, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		done += (size_t)n;
	}
	count(s, len, 0);
	return 0;
}

static int give_stream(int fd, struct serve_session *s, char *buffer, uint64_t offset,
		       uint64_t size)
{
	uint64_t left = offset < s->size ? s->size - offset : 0;
	char byte;

	for (left = size < left ? size : left; left > 0;) {
		size_t len = left < RIO_BUFFER ? (size_t)left : RIO_BUFFER;
		int error = give_block(fd, s, buffer, offset, len);

		if (error)
			return error;
		offset += len;
		left -= len;
	}
	/* Now an end is one: the byte is taken, and the reader's own end waited for. */
	if (wire_hear_bytes(fd, &byte, 1) != 0)
		return errno;
	shutdown(fd, SHUT_WR);
	recv(fd, &byte, 1, 0);
	return 0;
}

/* The session that the token names gets another stream; NULL: refused. */
static struct serve_session *session_join(int fd, const struct wire_head *h, const void *token)
{
	struct serve_session *s;
	const char *why = NULL;

	pthread_mutex_lock(&files.lock);
	for (s = files.first; s; s = s->next)
		if (h->bytes == RIO_TOKEN && memcmp(s->token, token, RIO_TOKEN) == 0)
			break;
	if (!s || s->state != SESSION_OPEN || s->streams == RIO_STREAMS_MAX)
		why = "no file is open there that this stream could be of";
	else if (files.streams == SERVE_STREAMS_MAX)
		why = "the node has as many streams open as it can serve: try later";
	if (!why) {
		s->holders++;
		s->streams++;
		files.streams++;
	}
	pthread_mutex_unlock(&files.lock);
	if (why)
		serve_refuse(fd, s ? EAGAIN : ENOENT, "%s", why);
	return why ? NULL : s;
}

static void stream_ends(int fd, struct serve_session *s, int error)
{
	bool write = s->flags & RIO_F_WRITE, last;

	if (error)
		reset_on_close(fd);
	pthread_mutex_lock(&files.lock);
	s->streams--;
	files.streams--;
	if (error && (write || error == EIO))
		session_end(s, SESSION_BROKEN, error);
	last = s->streams == 0;
	pthread_cond_broadcast(&files.changed);
	pthread_mutex_unlock(&files.lock);
	if (last && write && !(s->flags & RIO_F_WHOLE))
		session_keep(s); /* as with close(2) of a local file */
	if (error && write)
		log_info("device: '%s' was not written: %s", s->path, strerror(error));
	session_leave(s);
}

/* ---- buffers: to touch memory for the first time costs as much as a copy into it ---- */

static struct {
	char *at[BUFFERS_KEPT];
	unsigned count;
	pthread_mutex_t lock;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char *buffer_take(void)
{
	char *b = NULL;

	pthread_mutex_lock(&kept.lock);
	if (kept.count > 0)
		b = kept.at[--kept.count];
	pthread_mutex_unlock(&kept.lock);
	if (b)
		return b;
	b = mmap(NULL, RIO_BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return b == MAP_FAILED ? NULL : b;
}

static void buffer_give(char *b)
{
	pthread_mutex_lock(&kept.lock);
	if (kept.count < BUFFERS_KEPT) {
		kept.at[kept.count++] = b;
		b = NULL;
	}
	pthread_mutex_unlock(&kept.lock);
	if (b)
		munmap(b, RIO_BUFFER);
}

static bool serve_stream(int fd, const struct wire_head *join, const void *token)
{
	struct serve_session *s = session_join(fd, join, token);
	struct wire_head h = {.op = RIO_JOINED};
	char *buffer;
	int error;

	if (!s)
		return false;
	buffer = buffer_take();
	if (!buffer) {
		serve_refuse(fd, ENOMEM, "the node has no memory for another stream");
		stream_ends(fd, s, ENOMEM);
		return false;
	}
	if (wire_say(fd, &h, NULL, 0) != 0)
		error = errno;
	else if (s->flags & RIO_F_WRITE)
		error = take_stream(fd, s, buffer, join->number);
	else
		error = give_stream(fd, s, buffer, join->number, join->size);
	buffer_give(buffer);
	stream_ends(fd, s, error);
	return false;
}

bool serve_files(int fd, const struct wire_head *h, const void *payload)
{
	return h->op == RIO_OPEN ? serve_control(fd, h, payload) : serve_stream(fd, h, payload);
}
