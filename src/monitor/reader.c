/* SPDX-License-Identifier: BSD-3-Clause */
/* What readers share: lines out, waiting, files that grow, libraries.
 *
 * A reading is lines and an empty line; "! sentence" in place of it says that there is none. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "monitor/kind.h"

static void append(struct reader *r, const char *fmt, va_list ap)
{
	size_t room = sizeof(r->text) - r->len;
	int n;

	if (room <= MONITOR_LINE_MAX)
		return; /* a reading of 60 KiB: what is behind that is not looked at */
	n = vsnprintf(r->text + r->len, MONITOR_LINE_MAX - 1, fmt, ap);
	if (n > MONITOR_LINE_MAX - 2)
		n = MONITOR_LINE_MAX - 2;
	for (int i = 0; i < n; i++) /* or a sensor's name could end the line */
		if (r->text[r->len + (size_t)i] == '\n')
			r->text[r->len + (size_t)i] = ' ';
	if (n > 0)
		r->len += (size_t)n;
	r->text[r->len++] = '\n';
}

void reader_line(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	append(r, fmt, ap);
	va_end(ap);
}

void reader_end(struct reader *r)
{
	size_t done = 0;

	r->text[r->len++] = '\n';
	while (done < r->len) {
		ssize_t n = write(r->fd, r->text + done, r->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		done += (size_t)n;
	}
	r->len = 0;
	if (r->once)
		_exit(0);
}

void reader_lost(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	r->len = 0;
	r->text[r->len++] = '!';
	r->text[r->len++] = ' ';
	va_start(ap, fmt);
	append(r, fmt, ap);
	va_end(ap);
	reader_end(r);
}

/* The pipe's other end is waited for too: a reader without an owner ends at once. */
bool reader_wait(struct reader *r, int fd)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = r->fd}};
	double until = clock_seconds() + r->every;

	for (;;) {
		double left = until - clock_seconds();
		int n = poll(p, 2, left <= 0 ? 0 : (int)(left * 1e3) + 1);

		if (p[1].revents & (POLLERR | POLLNVAL))
			_exit(0);
		if (n > 0 && p[0].revents & POLLIN)
			return true;
		if (n > 0 && p[0].revents)
			p[0].fd = -1; /* broken: time alone wakes us from now on */
		if (n == 0)
			return false;
	}
}

void *reader_library(const char *file)
{
	return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

void *reader_symbol(void *library, const char *name, bool *all)
{
	void *symbol = library ? dlsym(library, name) : NULL;

	*all = *all && symbol;
	return symbol;
}

bool reader_file(const char *folder, const char *name, char *text, size_t cap)
{
	char path[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s%s%s", folder, *name ? "/" : "", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, cap - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return n >= 0;
}

/* ---- files that grow ---- */

void tail_open(struct tail *t, const char *path, bool from_start)
{
	struct stat st;

	*t = (struct tail){.path = path, .fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
	if (t->fd < 0)
		return;
	if (fstat(t->fd, &st) == 0) {
		t->inode = st.st_ino;
		t->records = S_ISCHR(st.st_mode);
	}
	if (!from_start)
		lseek(t->fd, 0, SEEK_END);
}

void tail_close(struct tail *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

int tail_fd(const struct tail *t)
{
	return t->records ? t->fd : -1;
}

/* Another file of that name (rotated), the same one cut short, or one that was not there before. */
static bool tail_reopen(struct tail *t)
{
	struct stat st;

	if (t->records || stat(t->path, &st) != 0)
		return false;
	if (t->fd >= 0 && st.st_ino == t->inode && st.st_size >= lseek(t->fd, 0, SEEK_CUR))
		return false;
	tail_close(t);
	tail_open(t, t->path, true);
	return t->fd >= 0;
}

static bool tail_fill(struct tail *t)
{
	ssize_t n = -1;

	if (t->fd >= 0)
		n = read(t->fd, t->text + t->len, sizeof(t->text) - 1 - t->len);
	if (n < 0 && t->records && errno == EPIPE)
		return tail_fill(
		    t); /* records were overwritten before we came; the next is there */
	if (n <= 0)
		return tail_reopen(t) && tail_fill(t);
	t->len += (size_t)n;
	t->text[t->len] = 0;
	return true;
}

char *tail_next(struct tail *t)
{
	static char line[sizeof(t->text)];
	char *end = memchr(t->text, '\n', t->len);
	size_t used;

	while (!end) {
		if (t->len >= sizeof(t->text) - 1)
			t->len = 0; /* nobody's line is that long */
		if (!tail_fill(t))
			return NULL;
		end = memchr(t->text, '\n', t->len);
	}
	used = (size_t)(end - t->text) + 1;
	memcpy(line, t->text, used);
	line[used - 1] = 0;
	memmove(t->text, t->text + used, t->len - used);
	t->len -= used;
	return line;
}

/* "6,1234,5678,-;text" is a record of /dev/kmsg; what follows with a blank is more about it. */
void reader_log(struct reader *r, struct tail *t, const char *as)
{
	char *line;

	while ((line = tail_next(t))) {
		char *text = t->records ? strchr(line, ';') : NULL;
		if (!t->records || *line != ' ')
			reader_line(r, "%s %.900s", as, text ? text + 1 : line);
		if (r->len > sizeof(r->text) / 2)
			reader_end(r);
	}
}

/* ---- a file in place of a sensor ---- */

/* False: that was the end. */
static bool take_line(struct reader *r, const char *rest)
{
	double pause, every = r->every;

	if (!*rest || *rest == '#')
		return true;
	if (!strcmp(rest, "end")) {
		reader_line(r, "end");
		reader_end(r);
		return false;
	}
	if (!strncmp(rest, "wait ", 5) && units_parse_seconds(rest + 5, &pause)) {
		reader_end(r);
		r->every = pause;
		reader_wait(r, -1);
		r->every = every;
		return true;
	}
	reader_line(r, "%s", rest);
	if (r->len > sizeof(r->text) / 2)
		reader_end(r);
	return true;
}

static bool is_folder(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Lines as readings have them. "wait TIME" ends a reading and waits, "end" ends the monitor; what
 * is appended later is one more reading, and a file that was replaced is read anew. A last line
 * without a newline counts when nothing has been added to it from one look to the next. */
void monitor_file_read(struct reader *r)
{
	bool any = false, good = true;
	size_t unfinished = 0;
	struct tail t;

	tail_open(&t, r->options->file, true);
	if (t.fd < 0 || is_folder(t.fd)) {
		if (t.fd >= 0)
			errno = EISDIR;
		reader_lost(r, "can't read '%s': %m", r->options->file);
		tail_close(&t);
		return;
	}
	while (good) {
		char *line;

		while (good && (line = tail_next(&t))) {
			const char *rest = line_rest(line);

			any = any || (*rest && *rest != '#');
			good = take_line(r, rest);
		}
		if (good && t.len > 0 && t.len == unfinished) {
			any = true;
			t.text[t.len] = 0;
			t.len = 0;
			good = take_line(r, line_rest(t.text));
		}
		unfinished = t.len;
		if (good && r->len)
			reader_end(r);
		if (good && !any && unfinished == 0) {
			reader_lost(r, "'%s' has no reading", r->options->file);
			any = true;
		}
		if (good)
			reader_wait(r, -1);
	}
	tail_close(&t);
}
