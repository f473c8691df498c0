/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's part: gives devices out, starts device processes, and knows how they ended. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "offload/device/work.h"
#include "offload/offload.h"
#include "rio/rio.h"
#include "rio/serve.h"

enum { BLOCK = 1 << 20 }; /* of a file that is taken; unit of its hash */

static struct {
	struct offload_service is;
	char folder[200];
	pthread_mutex_t lock;
	struct offload_device device[OFFLOAD_DEVICES];
} served = {.lock = PTHREAD_MUTEX_INITIALIZER};

void offload_serve_begin(const struct offload_service *s)
{
	served.is = *s;
	for (unsigned i = 0; i < s->devices; i++)
		served.device[i] = (struct offload_device){
		    .memory = s->memory, .cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN)};
}

/* Objects have the same path on all nodes: images name it. */
static bool have_folder(void)
{
	const char *named = getenv("HALE_OFFLOAD_CACHE");
	struct stat st;

	if (named && named[0] == '/')
		snprintf(served.folder, sizeof(served.folder), "%.150s", named);
	else
		snprintf(served.folder, sizeof(served.folder), "/tmp/hale-offload-%u",
			 (unsigned)getuid());
	mkdir(served.folder, 0700);
	return lstat(served.folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 022);
}

/* ---- what comes with OFF_CREATE ---- */

static int take_file(int fd, const char *path, uint64_t size, uint64_t *sum)
{
	int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), error = 0;
	char *block = malloc(BLOCK);
	uint64_t done = 0;

	if (out < 0)
		error = errno;
	while (block && done < size) {
		size_t n = size - done < BLOCK ? (size_t)(size - done) : BLOCK;

		if (wire_hear_bytes(fd, block, n) != 0) {
			error = errno;
			break;
		}
		*sum += wire_sum(block, n, done);
		/* the rest is heard all the same, or the answer would not be */
		if (!error && write(out, block, n) != (ssize_t)n)
			error = errno ? errno : ENOSPC;
		done += n;
	}
	if (!block)
		error = ENOMEM;
	free(block);
	if (out >= 0)
		close(out);
	if (error)
		unlink(path);
	return error;
}

/* The object by the name of its hash; what is there under that name is the same. */
static int take_object(int fd, const struct offload_start *s, char path[PATH_MAX])
{
	char temporary[PATH_MAX];
	uint64_t sum = 0;
	int error;

	snprintf(path, PATH_MAX, "%s/%016lx-%lx.so", served.folder, (unsigned long)s->object_sum,
		 (unsigned long)s->object_size);
	snprintf(temporary, sizeof(temporary), "%s/%d-%lx.part", served.folder, (int)getpid(),
		 (unsigned long)pthread_self());
	error = take_file(fd, temporary, s->object_size, &sum);
	if (!error && sum != s->object_sum)
		error = EBADMSG;
	/* images know a file without a build id by its time */
	struct timespec when[2] = {{1, 0}, {1, 0}};
	if (!error &&
	    (utimensat(AT_FDCWD, temporary, when, 0) != 0 || rename(temporary, path) != 0))
		error = errno;
	unlink(temporary);
	return error;
}

/* ---- processes ---- */

static bool reserve(int fd, const struct offload_start *s)
{
	struct offload_device *d = &served.device[s->device];
	uint64_t left;

	pthread_mutex_lock(&served.lock);
	left = d->memory - d->used;
	if (s->memory <= left) {
		d->used += s->memory;
		d->processes++;
	}
	pthread_mutex_unlock(&served.lock);
	if (s->memory <= left)
		return true;
	serve_refuse(fd, ENOSPC, "the device is full: %lu of its %lu bytes are left",
		     (unsigned long)left, (unsigned long)d->memory);
	return false;
}

static void release(const struct offload_start *s, bool out, bool crashed)
{
	struct offload_device *d = &served.device[s->device];

	pthread_mutex_lock(&served.lock);
	d->used -= s->memory;
	d->processes--;
	d->out += out;
	d->crashed += crashed;
	pthread_mutex_unlock(&served.lock);
}

/* Each device has its share of the cores that the daemon may use. */
static void bind_device(unsigned device)
{
	cpu_set_t all, mine;
	int seen = 0;

	if (sched_getaffinity(0, sizeof(all), &all) != 0)
		return;
	if ((unsigned)CPU_COUNT(&all) < served.is.devices)
		return;
	CPU_ZERO(&mine);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && (unsigned)seen++ % served.is.devices == device)
			CPU_SET(i, &mine);
	sched_setaffinity(0, sizeof(mine), &mine);
}

static pid_t spawn(int fd, int pipe, const struct offload_start *s, const char *object,
		   const char *image)
{
	char folder[256], so[PATH_MAX + 32], memory[64], from[PATH_MAX + 32];
	char *argv[] = {"hale-offload", NULL};
	char *env[64] = {folder, so, memory, NULL};
	const int fds[] = {fd, pipe}; /* WORK_FD, WORK_DAEMON */
	unsigned n = 3;

	snprintf(folder, sizeof(folder), "HALE_OFFLOAD_FOLDER=%s", served.folder);
	snprintf(so, sizeof(so), "HALE_OFFLOAD_OBJECT=%s", object);
	snprintf(memory, sizeof(memory), "HALE_OFFLOAD_MEMORY=%lu", (unsigned long)s->memory);
	snprintf(from, sizeof(from), "HALE_OFFLOAD_IMAGE=%s", image);
	if (s->image_size)
		env[n++] = from;
	for (char **e = environ; *e && n < 63; e++)
		if (strncmp(*e, "PATH=", 5) == 0 || strncmp(*e, "OMP_", 4) == 0 ||
		    strncmp(*e, "LD_LIBRARY_PATH=", 16) == 0 || strncmp(*e, "HOME=", 5) == 0)
			env[n++] = *e;
	return serve_spawn(served.is.program, argv, env, fds, ARRAY_LEN(fds));
}

/* What it leaves in the folder when it is killed in the middle of a capture. */
static void remove_images(pid_t pid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d.image", served.folder, (int)pid);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%d.sink", served.folder, (int)pid);
	unlink(path);
}

/* Waits until the process has ended; if its host hangs up or is lost, it is made to. True: that was
 * it. *state: the last that it said. A child of it may have its descriptors for longer. */
static bool await_end(pid_t pid, int pipe, int host, char *state)
{
	struct pollfd f[3] = {{.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN},
			      {.fd = pipe, .events = POLLIN},
			      {.fd = host, .events = POLLRDHUP}};
	bool alone = false, ended = false;

	fcntl(pipe, F_SETFL, O_NONBLOCK);
	while (!ended) {
		if (poll(f, 3, -1) < 0)
			continue;
		if (f[1].revents && read(pipe, state, 1) == 0) {
			f[1].fd = -1;
			ended = f[0].fd < 0;
		}
		if (f[2].revents) {
			alone = true;
			f[2].fd = -1;
			kill(pid, SIGKILL);
		}
		ended = ended || f[0].revents;
	}
	while (read(pipe, state, 1) == 1)
		;
	if (f[0].fd >= 0)
		close(f[0].fd);
	return alone;
}

/* Follows a process to its end. A swapped-out one has said so: it has not crashed. */
static void follow(pid_t pid, int pipe, int host, const struct offload_start *s)
{
	char state = 0;
	int status = 0;
	bool alone = await_end(pid, pipe, host, &state), out, crashed;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	remove_images(pid);
	out = state == 's';
	crashed = !out && !alone && status != 0;
	release(s, out, crashed);
	if (crashed)
		log_warn("device %u: process %d has ended with %s %d", s->device, (int)pid,
			 WIFSIGNALED(status) ? "signal" : "status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void start(int fd, const struct offload_start *s, const char *object, const char *image)
{
	int ends[2];
	pid_t pid = -1;

	if (pipe2(ends, O_CLOEXEC) == 0) {
		bind_device(s->device); /* of this thread, and what it starts */
		pid = spawn(fd, ends[1], s, object, image);
		close(ends[1]);
	}
	if (pid < 0) {
		serve_refuse(fd, EAGAIN, "%.200s can't be started: %s", served.is.program,
			     strerror(errno));
		release(s, false, false);
		return;
	}
	follow(pid, ends[0], fd, s);
	close(ends[0]);
}

/* Returns when the process has ended. The connection is closed after that: a host that waits for
 * it knows that the device has its memory back. */
static void create(int fd, const struct wire_head *h, const void *payload)
{
	struct wire_head go = {.op = OFF_DONE}; /* the files are wanted */
	struct offload_start s;
	char object[PATH_MAX], image[PATH_MAX];
	uint64_t ignored = 0;
	int error;

	if (h->bytes != sizeof(s))
		return;
	memcpy(&s, payload, sizeof(s));
	if (s.device >= served.is.devices) {
		serve_refuse(fd, ENODEV, "there is no device %u on this node", s.device);
		return;
	}
	if (!have_folder()) {
		serve_refuse(fd, EACCES, "the folder %s of the daemon is not its own",
			     served.folder);
		return;
	}
	if (!reserve(fd, &s))
		return;
	wire_say(fd, &go, NULL, 0);
	snprintf(image, sizeof(image), "%s/%d-%lx.image", served.folder, (int)getpid(),
		 (unsigned long)pthread_self());
	error = take_object(fd, &s, object);
	if (!error && s.image_size)
		error = take_file(fd, image, s.image_size, &ignored);
	if (error) {
		serve_refuse(fd, error, "the node can't keep the process's files: %s",
			     strerror(error));
		release(&s, false, false);
	} else {
		start(fd, &s, object, image);
	}
	unlink(image);
}

bool offload_serve(int fd, const struct wire_head *h, const void *payload)
{
	struct wire_head done = {.op = OFF_DONE, .number = served.is.devices};
	struct offload_device now[OFFLOAD_DEVICES];

	if (h->op == OFF_CREATE) {
		create(fd, h, payload);
		return false;
	}
	pthread_mutex_lock(&served.lock);
	memcpy(now, served.device, sizeof(now));
	pthread_mutex_unlock(&served.lock);
	wire_say(fd, &done, now, served.is.devices * sizeof(now[0]));
	return false;
}
