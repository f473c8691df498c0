// SPDX-License-Identifier: BSD-3-Clause
/* eventfd, timerfd and signalfd: small counters in the kernel, told by fdinfo. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { FLAGS = O_NONBLOCK };
#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t)
#endif

static int made(long fd, const char *what, struct error *err)
{
	if (fd < 0)
		error_set(err, HALE_ERR_SYSTEM, "can't make %s again (error %ld)", what, -fd);
	return (int)fd;
}

/* ---- eventfd ---- */

static bool event_match(const struct fd_table *t, const struct fd_probe *p)
{
	return fd_is_anon(p, "[eventfd]");
}

static hale_status_t event_capture(struct fd_table *t, const struct fd_probe *p,
				   struct fd_record *r, struct error *err)
{
	r->a = fd_info_number(p, "eventfd-count:", 16, 0);
	r->b = fd_info_number(p, "eventfd-semaphore:", 10, 0);
	return HALE_OK;
}

static int event_open(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	int flags = EFD_CLOEXEC | (r->b ? EFD_SEMAPHORE : 0) | (r->open_flags & FLAGS);
	long fd = sys(SYS_eventfd2, 0, flags);
	if (fd >= 0 && r->a)
		sys(SYS_write, fd, &r->a, sizeof(r->a));
	return made(fd, "an eventfd", err);
}

const struct fd_ops fd_event = {.kind = FD_EVENT,
				.name = "eventfd",
				.match = event_match,
				.capture = event_capture,
				.open = event_open};

/* ---- timerfd ---- */

static bool timer_match(const struct fd_table *t, const struct fd_probe *p)
{
	return fd_is_anon(p, "[timerfd]");
}

/* it_value: (4, 999942350) */
static void timer_pair(const struct fd_probe *p, const char *key, int64_t *s, int64_t *ns)
{
	const char *at = strstr(p->info, key);
	const char *comma = at ? strchr(at, ',') : NULL;
	*s = (int64_t)fd_info_number(p, key, 10, 0);
	*ns = 0;
	for (comma = comma ? comma + 2 : ""; *comma >= '0' && *comma <= '9'; comma++)
		*ns = *ns * 10 + (*comma - '0');
}

/* Of one that repeats the kernel counts the ticks when it is asked for its time, not before. */
static const struct fd_probe *count_ticks(const struct fd_table *t, const struct fd_probe *p)
{
	struct itimerspec spec;
	char path[64];
	struct fd_probe *now = arena_alloc(t->arena, sizeof(*now));
	fmt_print(path, sizeof(path), "%s/fdinfo/%d", t->proc, p->fd);
	if (!now)
		return p;
	*now = *p;
	return !sys(SYS_timerfd_gettime, p->fd, &spec) &&
		       sys_read_small(path, now->info, sizeof(now->info)) > 0
		   ? now
		   : p;
}

static hale_status_t timer_capture(struct fd_table *t, const struct fd_probe *p,
				   struct fd_record *r, struct error *err)
{
	if (!t->other)
		p = count_ticks(t, p);
	r->a = fd_info_number(p, "clockid:", 10, 1);
	r->b = fd_info_number(p, "ticks:", 10, 0);
	timer_pair(p, "it_value:", &r->value_s, &r->value_ns);
	timer_pair(p, "it_interval:", &r->interval_s, &r->interval_ns);
	return HALE_OK;
}

static int timer_open(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	struct itimerspec spec = {{r->interval_s, r->interval_ns}, {r->value_s, r->value_ns}};
	long fd = sys(SYS_timerfd_create, r->a, TFD_CLOEXEC | (r->open_flags & FLAGS));
	if (fd < 0)
		return made(fd, "a timerfd", err);
	if (spec.it_value.tv_sec || spec.it_value.tv_nsec)
		sys(SYS_timerfd_settime, fd, 0, &spec, NULL);
	/* it had fired, and nobody had read that; a kernel that takes no number of ticks has one */
	if (r->b && sys(SYS_ioctl, fd, TFD_IOC_SET_TICKS, &r->b)) {
		spec.it_value = (struct timespec){0, 1};
		sys(SYS_timerfd_settime, fd, 0, &spec, NULL);
	}
	return (int)fd;
}

const struct fd_ops fd_timer = {.kind = FD_TIMER,
				.name = "timerfd",
				.match = timer_match,
				.capture = timer_capture,
				.open = timer_open};

/* ---- signalfd ---- */

static bool signal_match(const struct fd_table *t, const struct fd_probe *p)
{
	return fd_is_anon(p, "[signalfd]");
}

static hale_status_t signal_capture(struct fd_table *t, const struct fd_probe *p,
				    struct fd_record *r, struct error *err)
{
	r->a = fd_info_number(p, "sigmask:", 16, 0);
	return HALE_OK;
}

static int signal_open(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	return made(
	    sys(SYS_signalfd4, -1, &r->a, sizeof(r->a), SFD_CLOEXEC | (r->open_flags & FLAGS)),
	    "a signalfd", err);
}

const struct fd_ops fd_signal = {.kind = FD_SIGNAL,
				 .name = "signalfd",
				 .match = signal_match,
				 .capture = signal_capture,
				 .open = signal_open};
