/* SPDX-License-Identifier: BSD-3-Clause */
/* Device processes as the host sees them: starting, receiving, ending. */
#include "offload/host/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/base.h"
#include "hale/rio.h"
#include "base/fmt.h"
#include "offload/host/futex.h"
#include "offload/host/guest.h"
#include "rio/rio.h"

enum { BLOCK = 1 << 20 }; /* unit of the hash of an object */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hale_process *list;

int process_fail(int error, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return rio_fail(error, "%s", text);
}

const char *hale_offload_why(void)
{
	return rio_why();
}

void process_take(sem_t *lock)
{
	while (sem_wait(lock) != 0)
		;
}

int process_each(int (*what)(struct hale_process *p, void *arg), void *arg)
{
	int n = 0;

	pthread_mutex_lock(&list_lock);
	for (struct hale_process *p = list; p; p = p->next, n++)
		if (what(p, arg) != 0) {
			n = -1;
			break;
		}
	pthread_mutex_unlock(&list_lock);
	return n;
}

struct hale_process *process_first(void)
{
	return list;
}

struct hale_process *process_next(struct hale_process *p)
{
	return p->next;
}

/* ---- devices ---- */

static int ask_devices(const char *node, struct offload_device device[OFFLOAD_DEVICES])
{
	struct wire_head h = {.op = OFF_LIST};
	char payload[RIO_PAYLOAD_MAX + 1];
	int fd = rio_call(node), n = -1;

	if (fd < 0)
		return -1;
	if (wire_say(fd, &h, NULL, 0) == 0 && wire_hear(fd, &h, payload, RIO_PAYLOAD_MAX) == 0 &&
	    h.op == OFF_DONE && h.number <= OFFLOAD_DEVICES &&
	    h.bytes == h.number * sizeof(device[0])) {
		n = (int)h.number;
		memcpy(device, payload, h.bytes);
	}
	close(fd);
	return n < 0 ? process_fail(EPROTO, "node '%.80s' has no devices", node) : n;
}

/* A node that does not answer keeps the numbers of its devices, so that those of the nodes behind it
 * stay what they are. That holds once it has answered this program. -1: it never has. */
static int count_devices(unsigned i, const char *node)
{
	enum { NODES = 1024 };
	static _Atomic int known[NODES];
	struct offload_device device[OFFLOAD_DEVICES];
	int n = ask_devices(node, device);

	if (n >= 0 && i < NODES)
		known[i] = n;
	return n < 0 && i < NODES && known[i] > 0 ? known[i] : n;
}

int hale_device_count(void)
{
	char node[RIO_NODE_MAX];
	int count = 0, n;

	for (unsigned i = 0; rio_node_name(i, node); i++) {
		n = count_devices(i, node);
		if (n < 0)
			return -1;
		count += n;
	}
	return count;
}

/* The node of a device, and its number there. */
static int find_device(int device, char node[RIO_NODE_MAX])
{
	int left = device, n;

	for (unsigned i = 0; device >= 0 && rio_node_name(i, node); i++, left -= n) {
		n = count_devices(i, node);
		if (n < 0)
			return -1;
		if (left < n)
			return left;
	}
	return process_fail(ENODEV,
			    "there is no device hale:%d; HALE_DEVICES (NAME=HOST:PORT,…) names "
			    "the nodes that have some",
			    device);
}

/* ---- starting ---- */

static int send_file(int fd, int file, uint64_t size)
{
	char *block = malloc(BLOCK);
	int rc = block ? 0 : -1;

	for (uint64_t done = 0; rc == 0 && done < size;) {
		ssize_t n = pread(file, block, BLOCK, (off_t)done);

		if (n <= 0 || (uint64_t)n > size - done) {
			errno = n < 0 ? errno : EIO;
			rc = -1;
		} else {
			rc = wire_say_bytes(fd, block, (size_t)n);
			done += (uint64_t)n;
		}
	}
	free(block);
	return rc;
}

static int read_object(struct hale_process *p, const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC), error;
	struct stat st;
	bool good = file >= 0 && fstat(file, &st) == 0 && st.st_size > 0 && st.st_size < 1l << 30;

	p->object = good ? malloc((size_t)st.st_size) : NULL;
	good = p->object && read(file, p->object, (size_t)st.st_size) == st.st_size;
	error = file < 0 ? errno : ENOEXEC;
	if (file >= 0)
		close(file);
	if (!good)
		return process_fail(error, "the shared object '%.200s' can't be read: %s", path,
				    strerror(error));
	p->object_size = (uint64_t)st.st_size;
	for (uint64_t done = 0; done < p->object_size; done += BLOCK)
		p->object_sum +=
		    wire_sum(p->object + done,
			     p->object_size - done < BLOCK ? p->object_size - done : BLOCK, done);
	return 0;
}

/* An answer, before there is a thread that receives them. */
static int hear_done(int fd, void *payload, size_t max, size_t *bytes)
{
	char text[RIO_PAYLOAD_MAX + 1];
	struct wire_head h;

	if (wire_hear(fd, &h, text, RIO_PAYLOAD_MAX) != 0)
		return process_fail(errno == ECONNRESET ? ESRCH : errno,
				    "the process has ended before it ran, or its node has");
	if (h.op != OFF_DONE)
		return process_fail(h.error ? h.error : EPROTO, "%.300s", text);
	*bytes = h.bytes < max ? h.bytes : max;
	memcpy(payload, text, *bytes);
	return 0;
}

static int send_image(int fd, const struct start_image *image)
{
	if (!image)
		return 0;
	return image->file >= 0 ? send_file(fd, image->file, image->size)
				: wire_say_bytes(fd, image->bytes, image->size);
}

static int send_start(int fd, const struct offload_start *s, const char *object,
		      const struct start_image *image, struct offload_self *self)
{
	struct wire_head h = {.op = OFF_CREATE};
	size_t bytes;

	if (wire_say(fd, &h, s, sizeof(*s)) != 0)
		return process_fail(errno, "the node of the device went away");
	if (hear_done(fd, self, 0, &bytes) != 0)
		return -1;
	if (wire_say_bytes(fd, object, s->object_size) != 0 || send_image(fd, image) != 0)
		return process_fail(errno, "the files of the process can't be sent: %s",
				    strerror(errno));
	if (hear_done(fd, self, sizeof(*self), &bytes) != 0)
		return -1;
	return bytes == sizeof(*self) ? 0 : process_fail(EPROTO, "no process has answered");
}

/* Is it a process of this kernel whose memory we may reach? It shows by what is there. */
static bool is_direct(const struct offload_self *self)
{
	uint64_t found = 0;
	struct iovec here = {&found, sizeof(found)},
		     there = {(void *)self->proof_at, sizeof(found)};
	char boot[40] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, boot, 36) != 36)
		boot[0] = 0;
	if (fd >= 0)
		close(fd);
	return boot[0] && memcmp(boot, self->boot, 36) == 0 && self->proof &&
	       process_vm_readv(self->pid, &here, 1, &there, 1, 0) == sizeof(found) &&
	       found == self->proof;
}

static void *receive(void *arg);

void process_close(struct hale_process *p)
{
	if (p->fd < 0)
		return;
	guest_descriptor(p->fd, false);
	close(p->fd);
	p->fd = -1;
}

int process_connect(struct hale_process *p, int device, const struct start_image *image)
{
	struct offload_start s = {.memory = p->memory,
				  .image_size = image ? image->size : 0,
				  .object_size = p->object_size,
				  .object_sum = p->object_sum};
	char node[RIO_NODE_MAX];
	int index = find_device(device, node), error;

	if (index < 0)
		return -1;
	s.device = (uint32_t)index;
	p->fd = rio_call(node);
	if (p->fd < 0)
		return -1;
	guest_descriptor(p->fd, true);
	if (send_start(p->fd, &s, p->object, image, &p->self) == 0) {
		p->broken = false;
		p->direct = is_direct(&p->self);
		p->device = device;
		return 0;
	}
	error = errno;
	wire_hang_up(p->fd); /* until the device has its memory back */
	process_close(p);
	errno = error;
	return -1;
}

int process_start(struct hale_process *p, int device, const struct start_image *image)
{
	int error;

	if (process_connect(p, device, image) != 0)
		return -1;
	error = pthread_create(&p->receiver, NULL, receive, p);
	p->received = !error;
	if (!error)
		return 0;
	process_close(p);
	return process_fail(error, "no thread to receive what a device process says");
}

/* The daemon hears the end of what is sent, ends the process, and closes the connection when the
 * device has its memory back. One that does not is not waited for longer than for any silence. */
void process_disconnect(struct hale_process *p)
{
	struct timespec limit;
	int ms = wire_timeout_ms();

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += ms / 1000 + 1;
	if (p->fd >= 0)
		shutdown(p->fd, SHUT_WR);
	if (p->received && pthread_timedjoin_np(p->receiver, NULL, &limit) != 0) {
		if (p->fd >= 0)
			shutdown(p->fd, SHUT_RDWR);
		pthread_join(p->receiver, NULL);
	}
	p->received = false;
	process_close(p);
}

/* ---- receiving ---- */

static void event_done(struct hale_event *e, int error, const char *why)
{
	e->error = error;
	fmt_print(e->why, sizeof(e->why), "%s", why); /* also in a signal handler */
	futex_set(&e->done);
}

static void answer_done(struct process_answer *a, int error, const char *why)
{
	if (error)
		a->head = (struct wire_head){.op = OFF_FAILED, .error = (uint16_t)error};
	if (error)
		snprintf(a->payload, sizeof(a->payload), "%s", why);
	futex_set(&a->done);
}

void process_gone(struct hale_process *p)
{
	static const char why[] =
	    "the device process has ended: it crashed, was killed, or its node "
	    "is lost";
	snapify_t *capture;

	pthread_mutex_lock(&p->lock);
	p->broken = true;
	if (p->state == PROCESS_OUT || p->state == PROCESS_RESTORING) {
		if (p->answer)
			answer_done(p->answer, ESRCH, why);
		p->answer = NULL;
		pthread_mutex_unlock(&p->lock);
		return;
	}
	p->state = PROCESS_GONE;
	for (struct hale_event *e = p->events, *next; e; e = next) {
		next = e->next;
		event_done(e, ESRCH, why);
	}
	p->events = NULL;
	if (p->answer)
		answer_done(p->answer, ESRCH, why);
	p->answer = NULL;
	capture = p->capture;
	p->capture = NULL;
	pthread_mutex_unlock(&p->lock);
	if (capture) {
		capture->m_error = ESRCH;
		sem_post(&capture->m_sem);
	}
}

void process_result(struct hale_process *p, const struct wire_head *h, const char *payload)
{
	struct hale_event **at = &p->events, *e;

	pthread_mutex_lock(&p->lock);
	while (*at && (*at)->number != h->number)
		at = &(*at)->next;
	e = *at;
	if (e) {
		*at = e->next;
		if (!h->error && e->result)
			memcpy(e->result, payload,
			       h->bytes < e->result_size ? h->bytes : e->result_size);
		event_done(e, h->error, h->error ? payload : "");
	}
	pthread_mutex_unlock(&p->lock);
}

/* Bytes behind an answer into a file. What can't be written is heard all the same. */
static bool take_into_file(struct hale_process *p, struct process_answer *a, uint64_t size)
{
	char *block = malloc(BLOCK);
	bool good = block;

	for (uint64_t done = 0; good && done < size;) {
		size_t n = size - done < BLOCK ? (size_t)(size - done) : BLOCK;

		good = wire_hear_bytes(p->fd, block, n) == 0;
		if (good && !a->error && pwrite(a->file, block, n, (off_t)done) != (ssize_t)n)
			a->error = errno ? errno : ENOSPC;
		p->image_sum += wire_sum(block, n, done);
		done += n;
	}
	free(block);
	if (good && !a->error && fsync(a->file) != 0)
		a->error = errno;
	return good;
}

static bool take_answer(struct hale_process *p, const struct wire_head *h, const char *payload)
{
	struct process_answer *a;

	pthread_mutex_lock(&p->lock);
	a = p->answer;
	p->answer = NULL;
	pthread_mutex_unlock(&p->lock);
	if (!a)
		return false; /* nobody has asked: what follows can't be told */
	a->head = *h;
	memcpy(a->payload, payload, h->bytes + 1);
	if (h->op == OFF_DONE && a->into && wire_hear_bytes(p->fd, a->into, h->size) != 0)
		answer_done(a, ESRCH, "the device process has ended in the middle of a copy");
	else if (h->op == OFF_DONE && a->file >= 0 && !take_into_file(p, a, h->size))
		answer_done(a, ESRCH, "the device process has ended in the middle of its image");
	else
		answer_done(a, 0, "");
	return true;
}

/* The answer of a capture: whoever waits for the semaphore reads captured. */
static void end_capture(struct hale_process *p)
{
	snapify_t *s;

	if (!atomic_load(&p->captured.done))
		return;
	pthread_mutex_lock(&p->lock);
	s = p->capture;
	p->capture = NULL;
	pthread_mutex_unlock(&p->lock);
	if (s)
		sem_post(&s->m_sem);
}

/* Waits outside, where a checkpoint of the program may stop this thread. */
static void await_message(struct hale_process *p)
{
	for (;;) {
		struct pollfd f[2] = {{.fd = p->fd, .events = POLLIN},
				      {.fd = p->wake, .events = POLLIN}};

		if (p->revive && !guest_revive(p))
			return;
		if (f[0].fd == p->fd && poll(f, 2, -1) > 0 && !p->revive && f[0].revents)
			return;
	}
}

static bool receive_one(struct hale_process *p)
{
	char payload[RIO_PAYLOAD_MAX + 1];
	struct wire_head h;

	if (p->fd < 0 || wire_hear(p->fd, &h, payload, RIO_PAYLOAD_MAX) != 0)
		return false;
	if (h.op == OFF_RESULT)
		process_result(p, &h, payload);
	else if (!take_answer(p, &h, payload))
		return false;
	if (p->capture)
		end_capture(p);
	return true;
}

static void *receive(void *arg)
{
	struct hale_process *p = arg;
	bool good;

	do {
		await_message(p);
		guest_enter();
		good = receive_one(p);
		if (!good)
			process_gone(p);
		guest_leave();
	} while (good);
	return NULL;
}

/* ---- asking ---- */

/* The next answer of the process is a's. */
static int process_expect(struct hale_process *p, struct process_answer *a)
{
	bool gone;

	pthread_mutex_lock(&p->lock);
	gone = p->broken || p->fd < 0;
	if (!gone)
		p->answer = a;
	pthread_mutex_unlock(&p->lock);
	return gone ? process_fail(ESRCH, "the device process has ended") : 0;
}

int process_begin(struct hale_process *p, struct wire_head *h, struct process_answer *a)
{
	if (process_expect(p, a) != 0)
		return -1;
	wire_say(p->fd, h, NULL, 0); /* if that fails, the thread hears of it */
	return 0;
}

int process_end(struct process_answer *a)
{
	futex_await(&a->done);
	if (a->head.op == OFF_DONE && a->error == 0)
		return 0;
	if (a->head.op == OFF_DONE)
		return process_fail(a->error, "the snapshot can't be written: %s",
				    strerror(a->error));
	return process_fail(a->head.error ? a->head.error : EPROTO, "%.300s", a->payload);
}

int process_ask(struct hale_process *p, struct wire_head *h, const void *payload, size_t bytes,
		const void *data, struct process_answer *a)
{
	a->done = 0;
	a->error = 0;
	if (process_expect(p, a) != 0)
		return -1;
	/* calls of other threads go the same way, under their own lock; while paused we have it */
	bool shared = p->state == PROCESS_RUNS && h->op != OFF_PAUSE;
	if (shared)
		process_take(&p->send);
	if (wire_say(p->fd, h, payload, bytes) == 0 && data)
		wire_say_bytes(p->fd, data, h->size);
	if (shared)
		sem_post(&p->send);
	return process_end(a);
}

/* ---- life ---- */

static void guest_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, guest_begin);
}

static struct hale_process *process_alloc(uint64_t memory)
{
	struct hale_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->fd = -1;
	p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->memory = memory ? memory : 256ul << 20;
	sem_init(&p->life, 0, 1);
	sem_init(&p->channel, 0, 1);
	sem_init(&p->send, 0, 1);
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

hale_process_t *hale_process_create(int device, const char *shared_object, uint64_t memory)
{
	struct hale_process *p;
	int error;

	if (!shared_object || strlen(shared_object) >= PATH_MAX)
		return process_fail(EINVAL, "a process needs a shared object"), NULL;
	guest_start();
	guest_enter();
	p = process_alloc(memory);
	if (p && (read_object(p, shared_object) != 0 || process_start(p, device, NULL) != 0)) {
		error = errno;
		close(p->wake);
		free(p->object);
		free(p);
		p = NULL;
		errno = error;
	} else if (p) {
		pthread_mutex_lock(&list_lock);
		p->next = list;
		list = p;
		pthread_mutex_unlock(&list_lock);
	} else {
		process_fail(ENOMEM, "no memory for a process");
	}
	guest_leave();
	if (p)
		control_start();
	return p;
}

void hale_process_destroy(hale_process_t *p)
{
	struct hale_process **at = &list;

	if (!p)
		return;
	guest_take(&p->life); /* not in the middle of a snapshot, nor of a checkpoint */
	pthread_mutex_lock(&list_lock);
	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
	pthread_mutex_unlock(&list_lock);
	process_disconnect(p);
	guest_leave();
	close(p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p->object);
	free(p);
}

int hale_process_device(const hale_process_t *p)
{
	return p->device;
}

int hale_process_pid(const hale_process_t *p)
{
	return p->self.pid;
}
