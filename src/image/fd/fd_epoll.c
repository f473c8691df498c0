// SPDX-License-Identifier: BSD-3-Clause
/* epoll: the list of what it watches, told by fdinfo:
 *   tfd:        5 events:       1d data:                5  pos:0 ino:61af sdev:7 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { INFO_MAX = 256 << 10 };

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	return fd_is_anon(p, "[eventpoll]");
}

static uint64_t take(const char **at, const char *key, int base)
{
	const char *p = strstr(*at, key);
	uint64_t v = 0;
	if (!p)
		return 0;
	for (p += strlen(key); *p == ' '; p++)
		;
	for (;; p++) {
		int digit = *p >= '0' && *p <= '9'   ? *p - '0'
			    : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
						     : 99;
		if (digit >= base)
			break;
		v = v * (uint64_t)base + (uint64_t)digit;
	}
	*at = p;
	return v;
}

static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	char path[64], *info = arena_alloc(t->arena, INFO_MAX);
	fmt_print(path, sizeof(path), "%s/fdinfo/%d", t->proc, p->fd);
	if (!info || sys_read_small(path, info, INFO_MAX) < 0)
		return error_set(err, HALE_ERR_SYSTEM, "can't read %s", path);
	size_t begin = t->text.len;
	for (const char *at = info; (at = strstr(at, "tfd:")) != NULL;) {
		struct epoll_record e = {0};
		void *to = bytes_extend(&t->text, sizeof(e));
		if (!to)
			return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
		e.fd = (int32_t)take(&at, "tfd:", 10);
		e.events = (uint32_t)take(&at, "events:", 16);
		e.data = take(&at, "data:", 16);
		memcpy(to, &e, sizeof(e)); /* texts before it may have any length */
		r->a++;
	}
	r->text_offset = (uint32_t)begin;
	r->text_len = (uint32_t)(t->text.len - begin);
	return HALE_OK;
}

static int open_epoll(struct fd_restore *f, size_t index, struct error *err)
{
	long fd = sys(SYS_epoll_create1, EPOLL_CLOEXEC);
	if (fd < 0)
		error_set(err, HALE_ERR_SYSTEM, "can't make an epoll descriptor again (error %ld)",
			  -fd);
	return (int)fd;
}

/* A watched open file whose number was closed or reused while a duplicate lives on can't be told
 * from the new one at that number; programs that do this are broken without us too. */
static bool connect_epoll(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	for (uint64_t i = 0; i < r->a; i++) {
		struct epoll_record e;
		memcpy(&e, fd_text(f, r) + i * sizeof(e), sizeof(e));
		struct epoll_event event = {.events = e.events, .data.u64 = e.data};
		long rc = sys(SYS_epoll_ctl, r->fd, EPOLL_CTL_ADD, e.fd, &event);
		if (rc < 0 && rc != -EBADF && rc != -EEXIST) {
			error_set(err, HALE_ERR_SYSTEM,
				  "can't watch descriptor %d again by epoll %d (error %ld)", e.fd,
				  r->fd, -rc);
			return false;
		}
	}
	return true;
}

const struct fd_ops fd_epoll = {.kind = FD_EPOLL,
				.name = "epoll",
				.match = match,
				.capture = capture,
				.open = open_epoll,
				.connect = connect_epoll};
