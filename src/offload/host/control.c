/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that does what `hale swap` asks for. HALE_OFFLOAD_CONTROL=off: there is none. */
#include "offload/control.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "offload/host/guest.h"
#include "offload/host/process.h"
#include "offload/host/snap.h"

struct control_order {
	int to;	     /* the caller */
	char *word;  /* what is to be done */
	char *value; /* folder or device */
	int done, failed;
};

static void answer(struct control_order *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void answer(struct control_order *o, const char *fmt, ...)
{
	char line[600];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
	line[n++] = '\n';
	if (send(o->to, line, (size_t)n, MSG_NOSIGNAL) != n)
		log_info("offload: the caller of `hale swap` is gone");
}

static void failed(struct control_order *o)
{
	o->failed++;
	answer(o, "error %s", hale_offload_why());
}

static void swap_out(struct hale_process *p, struct control_order *o)
{
	char *folder;

	if (p->swapped || p->state == PROCESS_OUT)
		return;
	if (asprintf(&folder, "%s/%d.%d", o->value, (int)getpid(), (int)p->self.pid) < 0)
		return;
	mkdir(o->value, 0700);
	p->swapped = snapify_swapout(folder, p);
	if (!p->swapped) {
		failed(o);
		snap_remove(folder);
		free(folder);
		return;
	}
	o->done++;
	answer(o, "ok process %d is out of device %d: %s", (int)p->self.pid, p->device, folder);
}

static void swap_in(struct hale_process *p, struct control_order *o)
{
	char *folder;

	if (!p->swapped)
		return;
	folder = (char *)p->swapped->m_snapshot_path;
	if (!snapify_swapin(p->swapped, atoi(o->value))) {
		failed(o); /* it stays where it is */
		return;
	}
	p->swapped = NULL;
	snap_remove(folder);
	free(folder);
	o->done++;
	answer(o, "ok process %d is on device %d", (int)p->self.pid, p->device);
}

static void migrate(struct hale_process *p, struct control_order *o)
{
	if (p->swapped || p->state != PROCESS_RUNS)
		return;
	if (!snapify_migration(p, atoi(o->value))) {
		failed(o);
		return;
	}
	o->done++;
	answer(o, "ok process %d is on device %d", (int)p->self.pid, p->device);
}

static void list(struct hale_process *p, struct control_order *o)
{
	static const char *const states[] = {"runs", "paused", "swapped out", "coming back",
					     "has ended"};

	o->done++;
	answer(o, "ok process %d on device %d %s", (int)p->self.pid, p->device, states[p->state]);
}

static int carry_out(struct hale_process *p, void *arg)
{
	struct control_order *o = arg;

	if (strcmp(o->word, "out") == 0)
		swap_out(p, o);
	else if (strcmp(o->word, "in") == 0)
		swap_in(p, o);
	else if (strcmp(o->word, "migrate") == 0)
		migrate(p, o);
	else if (strcmp(o->word, "list") == 0)
		list(p, o);
	return 0;
}

static void serve(int fd)
{
	struct control_order o = {.to = fd};
	struct ucred who;
	socklen_t len = sizeof(who);
	char line[PATH_MAX + 32];
	size_t n = 0;
	ssize_t k;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 || who.uid != geteuid())
		return;
	while (n < sizeof(line) - 1 && (k = recv(fd, line + n, sizeof(line) - 1 - n, 0)) > 0) {
		n += (size_t)k;
		if (line[n - 1] == '\n')
			break;
	}
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	o.word = line;
	o.value = strchr(line, ' ');
	if (o.value)
		*o.value++ = 0;
	else
		o.value = line + strlen(line);
	process_each(carry_out, &o);
	if (o.done + o.failed == 0)
		answer(&o, "error no device process of this program is in a state for that");
}

/* The socket, whose name has this process's id; -1: none can be made. */
static int control_listen(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;
	socklen_t len = control_address(&at, (int)getpid());

	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0 && listen(fd, 4) == 0) {
		guest_descriptor(fd, true);
		return fd;
	}
	log_warn("offload: `hale swap` won't reach this program: %m");
	if (fd >= 0)
		close(fd);
	return -1;
}

static int control_wake = -1; /* an eventfd, which images have */

void control_restored(void)
{
	if (control_wake >= 0 && write(control_wake, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		log_warn("offload: `hale swap` won't reach this program");
}

static void *control_run(void *arg)
{
	int listener = (int)(intptr_t)arg, fd;

	while (listener >= 0) {
		struct pollfd p[2] = {{.fd = control_wake, .events = POLLIN},
				      {.fd = listener, .events = POLLIN}};
		uint64_t times;

		if (poll(p, 2, -1) <= 0)
			continue;
		if (read(control_wake, &times, sizeof(times)) >
		    0) { /* images leave the other out */
			guest_descriptor(listener, false);
			listener = control_listen();
			continue;
		}
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0) {
			usleep(20000);
			continue;
		}
		guest_descriptor(fd, true);
		serve(fd);
		guest_descriptor(fd, false);
		close(fd);
	}
	return NULL;
}

static void control_begin(void)
{
	const char *wish = getenv("HALE_OFFLOAD_CONTROL");
	sigset_t all, before;
	pthread_t thread;
	int fd;

	if (wish && strcmp(wish, "off") == 0)
		return;
	control_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = control_listen();
	if (fd < 0)
		return;
	/* signals are the program's business, but for those that stop all threads */
	sigfillset(&all);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		sigdelset(&all, sig);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, control_run, (void *)(intptr_t)fd) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void control_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, control_begin);
}
