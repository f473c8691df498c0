/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting a server, or a relay to one on another node: at the first use, after a loss, and in a
 * process that comes from an image. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cpus.h"
#include "base/fmt.h"
#include "node/guest.h"
#include "ocl/remote/client.h"

#define WIRE_BYTES ALIGN_UP(sizeof(struct remote_wire), HALE_PAGE)

static struct {
	bool tried;
	char server[PATH_MAX]; /* the program */
	char **env;	       /* the server's */
	bool far;	       /* the server is on another node, and a relay stands here */
	uint32_t node;	       /* the first one to be tried */
	uint64_t devices;      /* that it must have (remote_wire.devices); 0: any */
} start;

/* ---- async-signal-safe, since a restored process does it in a signal handler ---- */

/* A zombie that nobody collects counts as dead. */
bool client_server_lives(void)
{
	char path[32], text[128];
	const char *end;
	ssize_t n;
	int fd, saved = errno;

	fmt_print(path, sizeof(path), "/proc/%u/stat", atomic_load(&client.wire->server_pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	if (fd >= 0)
		close(fd);
	errno = saved;
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
}

static void become_server(int region, int svm)
{
	char *const argv[] = {(char *)(start.far ? "hale-opencl-relay" : "hale-opencl-server"),
			      NULL};
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);

	sigemptyset(&none);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
	if (null >= 0 && null != 0)
		dup2(null, 0);
	region = fcntl(region, F_DUPFD, WIRE_SVM_FD + 1);
	svm = fcntl(svm, F_DUPFD, WIRE_SVM_FD + 1);
	dup2(region, WIRE_FD);
	dup2(svm, WIRE_SVM_FD);
	syscall(SYS_close_range, WIRE_SVM_FD + (svm >= 0), ~0u, 0);
	execve(start.server, argv, start.env);
	_exit(127);
}

/* The server is no child of the program: its wait() and its SIGCHLD are its own. The process
 * between them leaves its id, so that an end before its first instruction is noticed, too. */
static void spawn(int region, int svm)
{
	pid_t middle = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL), server;
	int status;

	if (middle == 0) {
		server = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
		if (server == 0)
			become_server(region, svm);
		if (server > 0)
			atomic_store(&client.wire->server_pid, (uint32_t)server);
		syscall(SYS_exit_group, server < 0);
	}
	while (middle > 0 && waitpid(middle, &status, __WCLONE) < 0 && errno == EINTR)
		;
}

/* 0: it has ended before it was ready. */
static uint32_t wait_until_ready(void)
{
	struct remote_wire *w = client.wire;

	for (int i = 0; atomic_load(&w->ready) == 0 && i < 1200; i++) {
		client_futex_wait(&w->ready, 0, CLIENT_LOOK_NS);
		if (atomic_load(&w->ready) == 0 && atomic_load(&w->server_pid) &&
		    !client_server_lives())
			break;
		if (i > 100 && !atomic_load(&w->server_pid))
			break;
	}
	return atomic_load(&w->ready);
}

/* connect_server once. mapped: shared virtual memory is where it belongs. *early: the server has
 * ended before it was ready. */
static bool connect_once(bool restored, bool mapped, bool *early, char *why, size_t size)
{
	int fd = (int)syscall(SYS_memfd_create, "hale-opencl", MFD_CLOEXEC);
	void *p = MAP_FAILED;
	int svm;

	atomic_fetch_add(&client.life, 1); /* first: who waits looks at it after the region */
	if (fd >= 0 && ftruncate(fd, sizeof(struct remote_wire)) == 0)
		p = mmap(client.wire, sizeof(struct remote_wire), PROT_READ | PROT_WRITE,
			 MAP_SHARED | (client.wire ? MAP_FIXED : 0), fd, 0);
	if (p == MAP_FAILED) {
		fmt_print(why, size, "no memory to share with the OpenCL server: %s",
			  strerrordesc_np(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (client.wire)
		client_guest_take_in(p, WIRE_BYTES);
	remote_leave_out(p, WIRE_BYTES);
	client.wire = p;
	if (!restored)
		atomic_fetch_add(&client.era, 1);
	client.wire->magic = WIRE_MAGIC;
	client.wire->client_pid = (uint32_t)getpid();
	client.wire->client_at = (uint64_t)(uintptr_t)client.wire;
	client.wire->node = start.node;
	client.wire->devices = restored ? 0 : start.devices;
	atomic_store(&client.wire->several, atomic_load(&client.changed) > 0);
	client.dead = false;
	/* where ptrace is restricted, the server must be allowed to read our memory */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	svm = start.far ? -1 : svm_begin(client.wire, !mapped);
	spawn(fd, svm);
	close(fd);
	if (svm >= 0)
		close(svm);
	if (wait_until_ready() != 1) {
		*early = atomic_load(&client.wire->ready) == 0 &&
			 atomic_load(&client.wire->server_pid) != 0;
		fmt_print(why, size, "'%s' %s", start.server,
			  atomic_load(&client.wire->ready) == 2 ? client.wire->trouble
								: "could not be started");
		return false;
	}
	start.node = client.wire->node + 1; /* after a loss */
	start.devices = client.wire->devices;
	if (!client_guest_is_one()) /* or other ranks read it, too */
		prctl(PR_SET_PTRACER, (unsigned long)atomic_load(&client.wire->server_pid), 0, 0,
		      0);
	return svm_agreed(client.wire, why, size);
}

/* A new region, where the old one was if there was one, and a new server. restored: this process
 * comes from an image. mapped: as connect_once has it. */
bool client_connect(bool restored, bool mapped, char *why, size_t size)
{
	for (int i = 0; i < CLIENT_TRIES; i++) {
		bool early = false;

		if (connect_once(restored, mapped || i > 0, &early, why, size))
			return true;
		if (!early)
			return false;
	}
	return false;
}

/* ---- the beginning ---- */

static bool is_wanted_far(void)
{
	const char *text = getenv("HALE_OFFLOAD");

	return text && *text && strcmp(text, "0") != 0;
}

/* Beside this library. */
static bool find_server(void)
{
	Dl_info info;
	const char *end;

	start.far = is_wanted_far();
	if (!dladdr(&client, &info) || !(end = strrchr(info.dli_fname, '/')))
		return false;
	return snprintf(start.server, sizeof(start.server), "%.*s/hale-opencl-%s",
			(int)(end - info.dli_fname), info.dli_fname,
			start.far ? "relay" : "server") < PATH_MAX;
}

/* The server's environment: the loader there finds the vendors' drivers, and no layers of ours; it
 * is no rank. */
static bool make_environment(void)
{
	static const char *const without[] = {
	    "OPENCL_LAYERS=", "OCL_ICD_VENDORS=", "OCL_ICD_FILENAMES=", "HALE_RANK=",
	    "HALE_AGENT=",    "HALE_SINK=",	  "LD_PRELOAD="};
	const char *vendors = getenv("HALE_OPENCL_VENDORS");
	size_t n = 0;

	while (environ[n])
		n++;
	start.env = calloc(n + 2, sizeof(*start.env));
	if (!start.env)
		return false;
	n = 0;
	for (char **e = environ; *e; e++) {
		bool left_out = false;
		for (size_t i = 0; i < ARRAY_LEN(without); i++)
			left_out |= strncmp(*e, without[i], strlen(without[i])) == 0;
		if (!left_out && !(start.env[n++] = strdup(*e)))
			return false;
	}
	if (vendors && *vendors && asprintf(&start.env[n], "OCL_ICD_VENDORS=%s", vendors) < 0)
		return false;
	return true;
}

cl_int remote_start(void)
{
	char why[300] = "out of memory";

	client_guest_find();
	/* where there are cores for both sides nobody sleeps: to be woken takes 30 us and more */
	client.spins = cpus_allowed() >= 4 ? 5000 : 400;
	remote_enter();
	pthread_mutex_lock(&client.lock);
	if (!start.tried) {
		start.tried = true;
		client.pid = getpid();
		log_init_from_env();
		hale_guest_log();
		client_guest_join();
		client.started =
		    find_server() && make_environment() &&
		    (client_connect(false, true, why, sizeof(why)) ||
		     (client.wire && atomic_load(&client.wire->ready) == 0 && /* it was killed */
		      client_connect(false, true, why, sizeof(why))));
		if (!client.started)
			log_warn("opencl: there is no OpenCL: %s", why);
	}
	pthread_mutex_unlock(&client.lock);
	remote_leave();
	return client.started ? CL_SUCCESS : CL_DEVICE_NOT_AVAILABLE;
}

/* Under the lock: nothing that others post comes before. */
static bool send_first(const struct call *c, wire_op_t op)
{
	return c->words <= WIRE_WORDS && client_append(client.wire, c, op, WIRE_NO_REPLY);
}

static void tell_of_child(void)
{
	static bool told;

	if (!told)
		log_warn("opencl: this process is a copy, by fork, of one that uses OpenCL: it has "
			 "none. Let it begin with OpenCL after the fork, or take "
			 "HALE_OPENCL=server=off");
	told = true;
}

void remote_renew(void)
{
	char why[300];
	bool was_dead;

	if (UNLIKELY(client.pid != getpid()))
		tell_of_child();
	if (LIKELY(!client.dead) || client.pid != getpid())
		return;
	remote_enter();
	pthread_mutex_lock(&client.lock);
	was_dead = client.dead; /* another thread may have been here first */
	if (was_dead)
		callbacks_collect(client.wire);
	if (was_dead && client_connect(false, true, why, sizeof(why))) {
		devices_again(send_first);
		client_bell(client.wire);
	} else if (was_dead) {
		log_warn("opencl: %s", why);
		client.dead = true;
	}
	pthread_mutex_unlock(&client.lock);
	remote_leave();
}
