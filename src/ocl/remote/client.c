/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to the server: starting it, posting, waiting for replies; what checkpoints of this
 * process ask of it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
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
#include "base/yield.h"
#include "node/guest.h"
#include "ocl/remote/remote.h"

enum { LOOK_NS = 50000000 };
static int spins; /* looks at the reply before sleeping */
#define WIRE_BYTES ALIGN_UP(sizeof(struct remote_wire), HALE_PAGE)

static struct {
	struct remote_wire *wire;
	pthread_mutex_t lock; /* of the ring's head */
	bool started, dead, tried;
	pid_t pid; /* the process that it belongs to: not a child of fork */
	char server[PATH_MAX];
	char **env;		      /* the server's */
	_Atomic(const void *) caller; /* the thread that has called last */
	_Atomic double changed;	      /* when it was another one; 0: never, or long ago */
	void *snapshot;		      /* while a checkpoint is taken */
	size_t snapshot_bytes;
	_Atomic uint32_t life; /* servers so far */
	_Atomic uint32_t era;  /* of these, those that knew nothing when they began */
	bool far;	       /* the server is on another node */
	uint32_t node;	       /* the first one to be tried */
	uint64_t devices;      /* that it must have; 0: any */
} remote = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* libhale.so's, or nothing */
static struct {
	void (*join)(const struct hale_guest *);
	void (*enter)(void);
	void (*leave)(void);
	void (*memory)(void *, size_t, bool);
} guest;

void remote_enter(void)
{
	if (guest.enter)
		guest.enter();
}

void remote_leave(void)
{
	if (guest.leave)
		guest.leave();
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, long ns)
{
	struct timespec t = {0, ns};

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- starting: async-signal-safe, since a restored process does it in a signal handler ---- */

/* A zombie that nobody collects counts as dead. */
static bool server_lives(void)
{
	char path[32], text[128];
	const char *end;
	ssize_t n;
	int fd, saved = errno;

	fmt_print(path, sizeof(path), "/proc/%u/stat", atomic_load(&remote.wire->server_pid));
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
	char *const argv[] = {(char *)(remote.far ? "hale-opencl-relay" : "hale-opencl-server"),
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
	execve(remote.server, argv, remote.env);
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
			atomic_store(&remote.wire->server_pid, (uint32_t)server);
		syscall(SYS_exit_group, server < 0);
	}
	while (middle > 0 && waitpid(middle, &status, __WCLONE) < 0 && errno == EINTR)
		;
}

/* 0: it has ended before it was ready. */
static uint32_t wait_until_ready(void)
{
	struct remote_wire *w = remote.wire;

	for (int i = 0; atomic_load(&w->ready) == 0 && i < 1200; i++) {
		futex_wait(&w->ready, 0, LOOK_NS);
		if (atomic_load(&w->ready) == 0 && atomic_load(&w->server_pid) && !server_lives())
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

	atomic_fetch_add(&remote.life, 1); /* first: who waits looks at it after the region */
	if (fd >= 0 && ftruncate(fd, sizeof(struct remote_wire)) == 0)
		p = mmap(remote.wire, sizeof(struct remote_wire), PROT_READ | PROT_WRITE,
			 MAP_SHARED | (remote.wire ? MAP_FIXED : 0), fd, 0);
	if (p == MAP_FAILED) {
		fmt_print(why, size, "no memory to share with the OpenCL server: %s",
			  strerrordesc_np(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (remote.wire && guest.memory)
		guest.memory(p, WIRE_BYTES, false);
	if (guest.memory)
		guest.memory(p, WIRE_BYTES, true);
	remote.wire = p;
	if (!restored)
		atomic_fetch_add(&remote.era, 1);
	remote.wire->magic = WIRE_MAGIC;
	remote.wire->client_pid = (uint32_t)getpid();
	remote.wire->client_at = (uint64_t)(uintptr_t)remote.wire;
	remote.wire->node = remote.node;
	remote.wire->devices = restored ? 0 : remote.devices;
	atomic_store(&remote.wire->several, atomic_load(&remote.changed) > 0);
	remote.dead = false;
	/* where ptrace is restricted, the server must be allowed to read our memory */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	svm = remote.far ? -1 : svm_begin(remote.wire, !mapped);
	spawn(fd, svm);
	close(fd);
	if (svm >= 0)
		close(svm);
	if (wait_until_ready() != 1) {
		*early = atomic_load(&remote.wire->ready) == 0 &&
			 atomic_load(&remote.wire->server_pid) != 0;
		fmt_print(why, size, "'%s' %s", remote.server,
			  atomic_load(&remote.wire->ready) == 2 ? remote.wire->trouble
								: "could not be started");
		return false;
	}
	remote.node = remote.wire->node + 1; /* after a loss */
	remote.devices = remote.wire->devices;
	if (!guest.memory) /* or other ranks read it, too */
		prctl(PR_SET_PTRACER, (unsigned long)atomic_load(&remote.wire->server_pid), 0, 0,
		      0);
	return svm_agreed(remote.wire, why, size);
}

enum { TRIES = 3 }; /* a server that is killed before it has done anything is begun again */

/* A new region, where the old one was if there was one, and a new server. restored: this process
 * comes from an image. mapped: as connect_once has it. */
static bool connect_server(bool restored, bool mapped, char *why, size_t size)
{
	for (int i = 0; i < TRIES; i++) {
		bool early = false;

		if (connect_once(restored, mapped || i > 0, &early, why, size))
			return true;
		if (!early)
			return false;
	}
	return false;
}

/* ---- posting ---- */

void put_blob(struct call *c, const void *data, size_t size)
{
	size_t words = (size + 7) / 8;
	bool fits = size <= WIRE_INLINE && c->words + 2 + words <= WIRE_WORDS;

	if (!fits && c->refs < WIRE_REFS)
		c->ref[c->refs++] = (uint16_t)(c->words + 1);
	put(c, size);
	put(c, fits ? 0 : (uint64_t)(uintptr_t)data);
	if (!fits || size == 0)
		return;
	c->word[c->words + words - 1] = 0;
	memcpy(&c->word[c->words], data, size);
	c->words += (uint32_t)words;
}

void put_handle(struct call *c, const void *handle, stub_kind_t kind)
{
	const struct stub *s = stub_of(handle, kind);

	put(c, s ? s->id : 0);
}

/* count, whether there is a list, its length, the list: up to the first that is wrong, since a
 * count may be wrong as well */
void put_handles(struct call *c, cl_uint count, const void *list, stub_kind_t kind)
{
	const void *const *at = list;
	uint32_t length = c->words + 2;
	cl_uint n = 0;

	put(c, count);
	put(c, list != NULL);
	put(c, 0);
	while (list && n < count && c->words <= WIRE_WORDS) {
		put_handle(c, at[n], kind);
		if (!stub_of(at[n++], kind))
			break;
	}
	if (length < WIRE_WORDS)
		c->word[length] = n;
}

static void bell(struct remote_wire *w)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&w->sleeping, memory_order_relaxed))
		return;
	atomic_fetch_add(&w->bell, 1);
	futex_wake(&w->bell);
}

/* False: the server has ended. */
static bool wait_for_room(struct remote_wire *w, uint64_t head, size_t size)
{
	for (uint32_t i = 1; head + size - atomic_load(&w->tail) > WIRE_RING; i++) {
		bell(w);
		yield_or_nap();
		if (i % 4096 == 0 && !server_lives())
			return false;
	}
	return true;
}

static bool append(struct remote_wire *w, const struct call *c, wire_op_t op, uint16_t slot)
{
	uint32_t size = (uint32_t)(sizeof(struct wire_request) + c->words * 8);
	uint64_t head = atomic_load_explicit(&w->head, memory_order_relaxed);
	uint32_t left = WIRE_RING - (uint32_t)(head % WIRE_RING);
	struct wire_request *r = (struct wire_request *)(w->ring + head % WIRE_RING);

	if (left < size) {
		if (!wait_for_room(w, head, left))
			return false;
		r->size = left;
		r->op = OP_FILLER;
		head += left;
		r = (struct wire_request *)w->ring;
	}
	if (!wait_for_room(w, head, size))
		return false;
	r->size = size;
	r->op = (uint16_t)op;
	r->slot = slot;
	memcpy(r->ref, c->ref, sizeof(r->ref));
	memcpy(r->word, c->word, c->words * 8ul);
	atomic_store_explicit(&w->head, head + size, memory_order_release);
	return true;
}

/* WIRE_SLOTS: none is free. */
static uint16_t take_slot(struct remote_wire *w)
{
	for (int i = 0; i < WIRE_SLOTS; i++) {
		if (atomic_load_explicit(&w->reply[i].state, memory_order_acquire) != SLOT_FREE)
			continue;
		atomic_store_explicit(&w->reply[i].state, SLOT_WAITING, memory_order_relaxed);
		return (uint16_t)i;
	}
	return WIRE_SLOTS;
}

typedef enum posted { POSTED, SERVER_ENDED, FROM_BEFORE } posted_t;

/* Where a reply is: in the region of one server, which another one's takes the place of. */
struct client_place {
	uint16_t slot;
	uint32_t life;
};

/* place: for the reply; NULL: none is wanted. It is taken with the lock held under which another
 * server begins, so that all of this comes before it, or behind it. */
static posted_t post(const struct call *c, wire_op_t op, struct client_place *place)
{
	posted_t posted = FROM_BEFORE;
	uint16_t slot = WIRE_NO_REPLY;

	pthread_mutex_lock(&remote.lock);
	while (place && (slot = take_slot(remote.wire)) == WIRE_SLOTS) {
		pthread_mutex_unlock(&remote.lock); /* who gives one back may need it */
		yield_or_nap();
		pthread_mutex_lock(&remote.lock);
	}
	/* what another thread has put in the place of its server would not know it */
	if (LIKELY(!c->era || c->era == atomic_load(&remote.era)))
		posted = append(remote.wire, c, op, slot) ? POSTED : SERVER_ENDED;
	if (UNLIKELY(place && posted != POSTED))
		atomic_store(&remote.wire->reply[slot].state, SLOT_FREE);
	if (place)
		*place = (struct client_place){slot, atomic_load(&remote.life)};
	pthread_mutex_unlock(&remote.lock);
	if (LIKELY(posted == POSTED))
		bell(remote.wire);
	return posted;
}

/* False: the server has ended, or another one has taken its place since life. */
static bool wait_for_reply(struct wire_reply *r, uint32_t life)
{
	struct patience p = {.looks = spins, .us = atomic_load(&remote.wire->patience)};

	do {
		if (atomic_load_explicit(&r->state, memory_order_acquire) == SLOT_DONE)
			return true;
	} while (patience_left(&p));
	for (;;) {
		uint32_t state = SLOT_WAITING;
		atomic_compare_exchange_strong(&r->state, &state, SLOT_SLEEPING);
		if (state == SLOT_DONE)
			return true;
		futex_wait(&r->state, SLOT_SLEEPING, LOOK_NS);
		if (atomic_load(&r->state) == SLOT_DONE)
			return true;
		if (atomic_load(&remote.life) != life)
			return false;
		if (!server_lives())
			return atomic_load(&r->state) == SLOT_DONE;
	}
}

static cl_int server_gone(void)
{
	if (!remote.dead && remote.pid == getpid())
		log_warn("opencl: the process with the OpenCL runtime (pid %u) has ended; what it "
			 "wrote to stderr may say why",
			 remote.wire ? atomic_load(&remote.wire->server_pid) : 0);
	remote.dead = true;
	return CL_DEVICE_NOT_AVAILABLE;
}

struct remote_wire *remote_wire(void)
{
	return remote.wire;
}

uint32_t remote_era(void)
{
	return atomic_load(&remote.era);
}

uint32_t remote_life(void)
{
	return atomic_load(&remote.life);
}

bool remote_has_ended(uint32_t life)
{
	if (remote.pid != getpid() || atomic_load(&remote.life) != life)
		return remote.pid == getpid();
	if (!remote.dead && !server_lives())
		server_gone();
	return remote.dead;
}

bool remote_is_ours(void)
{
	return remote.pid == getpid();
}

void remote_leave_out(void *at, size_t size)
{
	if (guest.memory)
		guest.memory(at, size, true);
}

/* In a child of fork, or when the server has ended, there is no device. */
static bool usable(void)
{
	return LIKELY(remote.started && !remote.dead) && remote.pid == getpid();
}

static void take_reply(struct wire_reply *r, struct remote_answer *a)
{
	a->status = r->status;
	memcpy(a->value, r->value, sizeof(a->value));
	a->bytes = r->bytes;
	if (a->data && r->bytes <= WIRE_INLINE)
		memcpy(a->data, r->data, r->bytes < a->room ? r->bytes : a->room);
}

static void give_slot(struct wire_reply *r, uint32_t life)
{
	pthread_mutex_lock(&remote.lock);
	if (atomic_load(&remote.life) == life)
		atomic_store(&r->state, SLOT_FREE);
	pthread_mutex_unlock(&remote.lock);
}

static cl_int exchange(struct call *c, wire_op_t op, struct remote_answer *a)
{
	uint32_t done = SLOT_DONE;
	struct wire_reply *r;
	struct client_place at;
	posted_t posted;

	a->status = CL_OUT_OF_RESOURCES;
	if (c->words > WIRE_WORDS)
		return a->status;
	posted = post(c, op, &at);
	if (posted != POSTED)
		return a->status = posted == SERVER_ENDED ? server_gone() : CL_DEVICE_NOT_AVAILABLE;
	r = &remote.wire->reply[at.slot];
	if (wait_for_reply(r, at.life)) {
		take_reply(r, a);
		atomic_compare_exchange_strong(&r->state, &done, SLOT_FREE);
	} else {
		if (atomic_load(&remote.life) == at.life)
			server_gone();
		a->status = CL_DEVICE_NOT_AVAILABLE;
		give_slot(r, at.life);
	}
	if (atomic_load(&remote.life) != at.life) /* what was taken may be of the next region */
		a->status = CL_DEVICE_NOT_AVAILABLE;
	return a->status;
}

/* Whether several threads call: for some time after another one has called. */
static void note_caller(void)
{
	static const double alone_after = 10; /* seconds */
	static __thread char here;
	const void *before = atomic_load_explicit(&remote.caller, memory_order_relaxed);
	double changed = atomic_load_explicit(&remote.changed, memory_order_relaxed);

	if (before == &here && changed == 0)
		return;
	if (before != &here) {
		atomic_store(&remote.caller, &here);
		changed = before ? clock_seconds() : 0;
	} else if (clock_seconds() - changed > alone_after) {
		changed = 0;
	}
	atomic_store(&remote.changed, changed);
	atomic_store(&remote.wire->several, changed > 0);
}

cl_int remote_call(struct call *c, wire_op_t op, struct remote_answer *a)
{
	struct remote_answer unwanted = {0};
	cl_int status;

	if (!usable())
		return CL_DEVICE_NOT_AVAILABLE;
	remote_enter();
	note_caller();
	status = exchange(c, op, a ? a : &unwanted);
	remote_leave();
	return status;
}

cl_int remote_post(struct call *c, wire_op_t op)
{
	cl_int status = CL_SUCCESS;
	posted_t posted;

	if (c->refs > 0 || c->words > WIRE_WORDS)
		return remote_call(c, op, NULL);
	if (!usable())
		return CL_DEVICE_NOT_AVAILABLE;
	remote_enter();
	posted = post(c, op, NULL);
	if (UNLIKELY(posted != POSTED))
		status = posted == SERVER_ENDED ? server_gone() : CL_DEVICE_NOT_AVAILABLE;
	remote_leave();
	return status;
}

/* ---- checkpoints of this process ---- */

static const char ended[] = "the process with its OpenCL runtime has ended";

static bool prepare(char *why, size_t size)
{
	struct call c = {0};
	char text[160] = "";
	struct remote_answer a = {.data = text, .room = sizeof(text) - 1};

	if (!remote.started)
		return true;
	if (remote.dead) {
		fmt_print(why, size, "%s", ended);
		return false;
	}
	if (exchange(&c, OP_QUIESCE, &a) != CL_SUCCESS) {
		fmt_print(why, size, "%s", *text ? text : ended);
		return false;
	}
	callbacks_collect(remote.wire);
	remote.snapshot_bytes = ALIGN_UP(a.value[0] + 1, HALE_PAGE);
	remote.snapshot = mmap(NULL, remote.snapshot_bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (remote.snapshot == MAP_FAILED) {
		remote.snapshot = NULL;
		fmt_print(why, size, "no memory for %lu bytes of its devices",
			  (unsigned long)remote.snapshot_bytes);
		return false;
	}
	put(&c, (uint64_t)(uintptr_t)remote.snapshot);
	put(&c, remote.snapshot_bytes);
	if (exchange(&c, OP_SNAPSHOT, &a) == CL_SUCCESS)
		return true;
	fmt_print(why, size, "its device memory could not be copied: %s", *text ? text : ended);
	return false;
}

static bool restore(char *why, size_t size)
{
	char text[160] = "";

	remote.pid = getpid();
	for (int i = 0; i < TRIES; i++) {
		struct call c = {0};
		struct remote_answer a = {.data = text, .room = sizeof(text) - 1};

		if (!connect_server(true, i > 0, why, size))
			return false;
		callbacks_restored(atomic_load(&remote.life));
		put(&c, (uint64_t)(uintptr_t)remote.snapshot);
		put(&c, remote.snapshot_bytes);
		if (exchange(&c, OP_RESTORE, &a) == CL_SUCCESS)
			return true;
		if (!remote.dead) /* it has said what is wrong */
			break;
	}
	fmt_print(why, size, "its OpenCL objects can't be made again: %s", *text ? text : ended);
	return false;
}

static bool resume(bool restored, char *why, size_t size)
{
	bool good = true;

	if (remote.started && restored)
		good = restore(why, size);
	if (remote.snapshot)
		munmap(remote.snapshot, remote.snapshot_bytes);
	remote.snapshot = NULL;
	return good;
}

/* ---- the beginning ---- */

static const struct hale_guest us = {prepare, resume};

static void find_guest(void)
{
	*(void **)&guest.join = dlsym(RTLD_DEFAULT, "hale_guest_join");
	*(void **)&guest.enter = dlsym(RTLD_DEFAULT, "hale_guest_enter");
	*(void **)&guest.leave = dlsym(RTLD_DEFAULT, "hale_guest_leave");
	*(void **)&guest.memory = dlsym(RTLD_DEFAULT, "hale_guest_memory");
}

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

	remote.far = is_wanted_far();
	if (!dladdr(&remote, &info) || !(end = strrchr(info.dli_fname, '/')))
		return false;
	return snprintf(remote.server, sizeof(remote.server), "%.*s/hale-opencl-%s",
			(int)(end - info.dli_fname), info.dli_fname,
			remote.far ? "relay" : "server") < PATH_MAX;
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
	remote.env = calloc(n + 2, sizeof(*remote.env));
	if (!remote.env)
		return false;
	n = 0;
	for (char **e = environ; *e; e++) {
		bool left_out = false;
		for (size_t i = 0; i < ARRAY_LEN(without); i++)
			left_out |= strncmp(*e, without[i], strlen(without[i])) == 0;
		if (!left_out && !(remote.env[n++] = strdup(*e)))
			return false;
	}
	if (vendors && *vendors && asprintf(&remote.env[n], "OCL_ICD_VENDORS=%s", vendors) < 0)
		return false;
	return true;
}

cl_int remote_start(void)
{
	char why[300] = "out of memory";

	find_guest();
	/* where there are cores for both sides nobody sleeps: to be woken takes 30 us and more */
	spins = cpus_allowed() >= 4 ? 5000 : 400;
	remote_enter();
	pthread_mutex_lock(&remote.lock);
	if (!remote.tried) {
		remote.tried = true;
		remote.pid = getpid();
		log_init_from_env();
		hale_guest_log();
		if (guest.join)
			guest.join(&us);
		remote.started =
		    find_server() && make_environment() &&
		    (connect_server(false, true, why, sizeof(why)) ||
		     (remote.wire && atomic_load(&remote.wire->ready) == 0 && /* it was killed */
		      connect_server(false, true, why, sizeof(why))));
		if (!remote.started)
			log_warn("opencl: there is no OpenCL: %s", why);
	}
	pthread_mutex_unlock(&remote.lock);
	remote_leave();
	return remote.started ? CL_SUCCESS : CL_DEVICE_NOT_AVAILABLE;
}

/* Under the lock: nothing that others post comes before. */
static bool send_first(const struct call *c, wire_op_t op)
{
	return c->words <= WIRE_WORDS && append(remote.wire, c, op, WIRE_NO_REPLY);
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

	if (UNLIKELY(remote.pid != getpid()))
		tell_of_child();
	if (LIKELY(!remote.dead) || remote.pid != getpid())
		return;
	remote_enter();
	pthread_mutex_lock(&remote.lock);
	was_dead = remote.dead; /* another thread may have been here first */
	if (was_dead)
		callbacks_collect(remote.wire);
	if (was_dead && connect_server(false, true, why, sizeof(why))) {
		devices_again(send_first);
		bell(remote.wire);
	} else if (was_dead) {
		log_warn("opencl: %s", why);
		remote.dead = true;
	}
	pthread_mutex_unlock(&remote.lock);
	remote_leave();
}
