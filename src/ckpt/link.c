// SPDX-License-Identifier: BSD-3-Clause
/* This process's connection to its agent, and the node's segment. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/packets.h"
#include "base/yield.h"
#include "ckpt/migrate.h"
#include "ckpt/rank_private.h"
#include "image/image.h"
#include "journal/journal.h"
#include "node/living.h"

/* Our socket lives above the numbers that programs get, so that their first open is still 3. */
enum { LINK_FD_FLOOR = 900 };

static struct {
	struct link link;
	struct link_address address;
	int fd;	   /* to the agent; -1: none */
	pid_t pid; /* of the process that has opened it, not of its children */
	bool open;
	uintptr_t place; /* of the segment; 0: none was chosen yet */
	bool heard;	 /* the agent takes what it is told; not before its WELCOME */
	bool let_go;	 /* the newest WELCOME was a copy's, and will not be taken back */
} self = {.fd = -1};

const struct link *link_self(void)
{
	return &self.link;
}

static int env_int(const char *name, int fallback)
{
	long value;
	const char *text = getenv(name);
	return text && units_parse_int(text, 0, INT32_MAX, &value) ? (int)value : fallback;
}

bool link_address_from_env(struct link_address *address)
{
	const char *agent = getenv("HALE_AGENT"), *token = getenv("HALE_TOKEN");
	memset(address, 0, sizeof(*address));
	if (!agent || !token || strlen(agent) >= sizeof(address->agent) - 1 ||
	    strlen(token) >= sizeof(address->token))
		return false;
	memcpy(address->agent, agent, strlen(agent));
	memcpy(address->token, token, strlen(token));
	address->process = (uint32_t)env_int("HALE_PROCESS", env_int("HALE_RANK", 0));
	const char *journal = getenv("HALE_JOURNAL");
	if (journal && strlen(journal) < sizeof(address->journal))
		memcpy(address->journal, journal, strlen(journal));
	return true;
}

void link_address_set(const struct link_address *address)
{
	self.address = *address;
	self.link.process = address->process;
}

const struct link_address *link_address_now(void)
{
	return &self.address;
}

bool link_let_go(void)
{
	return self.let_go;
}

/* ---- the socket ---- */

static int connect_agent(struct error *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	size_t n = strlen(self.address.agent);
	memcpy(sa.sun_path + 1, self.address.agent, n);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		error_sys(err, HALE_ERR_SYSTEM, "can't make a socket to the agent");
		return -1;
	}
	if (syscall(SYS_connect, fd, (struct sockaddr *)&sa,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n))) {
		int why = errno;
		error_sys(err, HALE_ERR_NODE, "can't reach the agent of this job at @%s",
			  self.address.agent);
		close(fd);
		errno = why;
		return -1;
	}
	int high = fcntl(fd, F_DUPFD_CLOEXEC, LINK_FD_FLOOR);
	if (high < 0) /* a low RLIMIT_NOFILE: keep the number we got */
		return fd;
	close(fd);
	return high;
}

bool link_tell(const void *packet, size_t len)
{
	ssize_t k;
	if (self.fd < 0)
		return false;
	do
		k = send(self.fd, packet, len, MSG_NOSIGNAL);
	while (k < 0 && errno == EINTR);
	return k == (ssize_t)len;
}

bool link_say(const char *line, size_t len)
{
	struct proto_said p = {.type = PROTO_SAID, .len = (uint32_t)len};
	if (!self.heard || len > sizeof(p.text))
		return false;
	memcpy(p.text, line, len);
	return link_tell(&p, sizeof(p));
}

enum { AGENT_REFUSES = -1, AGENT_GONE = -2 };

static void close_agent(void)
{
	image_fd_disown(self.fd);
	close(self.fd);
	self.fd = -1;
}

/* The segment's descriptor, or why there is none. */
static int welcome_receive(struct proto_welcome *welcome, struct error *err)
{
	union {
		struct proto_welcome welcome;
		struct proto_plain plain;
		uint32_t type;
	} packet;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {&packet, sizeof(packet)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t k;
	k = packet_recvmsg(self.fd, &msg, MSG_CMSG_CLOEXEC);
	if (k == 0 || (k < 0 && errno == ECONNRESET)) {
		error_set(err, HALE_ERR_NODE, "the agent has closed the connection");
		close_agent();
		return AGENT_GONE;
	}
	if (k >= (ssize_t)sizeof(struct proto_plain) && packet.type == PROTO_REFUSED) {
		packet.plain.text[PROTO_TEXT - 1] = 0;
		error_set(err, HALE_ERR_STATE, "the agent refuses this process: %s",
			  packet.plain.text);
		return AGENT_REFUSES;
	}
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (k < (ssize_t)sizeof(struct proto_welcome) || packet.type != PROTO_WELCOME ||
	    packet.welcome.version != PROTO_VERSION || !c || c->cmsg_type != SCM_RIGHTS) {
		error_set(err, HALE_ERR_PROTOCOL,
			  "the agent did not answer as expected; is `hale` of another version than "
			  "its libraries?");
		return AGENT_REFUSES;
	}
	int fd;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	*welcome = packet.welcome;
	self.let_go = (welcome->flags & WELCOME_GO) != 0;
	return fd;
}

/* ---- the segment ---- */

/* There in a program that was built with -fsanitize=thread. */
extern void __tsan_init(void) __attribute__((weak));

static void *map_at(uintptr_t place, int fd, uint64_t bytes)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): a place that was chosen */
	return mmap((void *)place, bytes, PROT_READ | PROT_WRITE,
		    (fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | MAP_FIXED_NOREPLACE |
			MAP_NORESERVE,
		    fd, 0);
}

/* The place of the process's first segment is that of all others. */
static void *segment_map(int fd, uint64_t bytes)
{
	static const uintptr_t places[] = SEGMENT_PLACES;
	void *p = MAP_FAILED;
	if (!self.place && __tsan_init)
		self.place = SEGMENT_PLACE_TSAN;
	if (self.place)
		return map_at(self.place, fd, bytes);
	for (size_t i = 0; i < ARRAY_LEN(places) && p == MAP_FAILED; i++) {
		p = map_at(places[i], fd, bytes);
		if (p != MAP_FAILED)
			self.place = places[i];
		else if (errno != EEXIST)
			break;
	}
	return p;
}

static hale_status_t segment_attach(int fd, uint64_t bytes, struct error *err)
{
	if (self.link.segment) {
		image_exclude_remove(self.link.segment);
		munmap(self.link.segment, self.link.segment->bytes);
		self.link.segment = NULL;
	}
	void *p = segment_map(fd, bytes);
	if (p == MAP_FAILED)
		return error_sys(err, HALE_ERR_MEMORY, "can't map the node's segment of %lu bytes",
				 (unsigned long)bytes);
	/* images, which only an agent asks for, leave it out */
	if (self.fd >= 0)
		image_exclude_add(p, bytes);
	self.link.segment = p;
	return HALE_OK;
}

static hale_status_t segment_check(uint64_t bytes, struct error *err)
{
	const struct segment *s = self.link.segment;
	if (s->magic != SEGMENT_MAGIC || s->version != SEGMENT_VERSION || s->bytes != bytes ||
	    self.link.process >= s->nranks || s->degree == 0 || s->nranks % s->degree != 0)
		return error_set(err, HALE_ERR_PROTOCOL,
				 "the node's segment isn't one of this version of Hale");
	self.link.nprocesses = s->nranks;
	self.link.degree = s->degree;
	self.link.nranks = s->nranks / s->degree;
	self.link.rank = living_rank_of(self.link.process, self.link.nranks);
	self.link.generation = s->generation;
	self.link.mailbox = segment_mailbox(self.link.segment, self.link.process);
	return HALE_OK;
}

bool link_is_ours(void)
{
	return self.pid == getpid();
}

static _Atomic bool may_share; /* in images, too */

void link_note_may_share(void)
{
	atomic_store(&may_share, true);
	if (link_is_ours())
		atomic_store(&self.link.mailbox->may_share, 1);
}

/* Another rank may have said so in our mailbox: it writes a file that we write (writers.c). */
bool link_may_share(void)
{
	if (link_is_ours() && self.link.mailbox && atomic_load(&self.link.mailbox->may_share))
		atomic_store(&may_share, true);
	return atomic_load(&may_share) || image_ipc_is_used();
}

void link_show_fds(void)
{
	struct mailbox *m = self.link.mailbox;
	int fds[MAILBOX_OWN_FDS];
	size_t n = image_fds_owned(fds, MAILBOX_OWN_FDS);
	for (size_t i = 0; i < MAILBOX_OWN_FDS; i++)
		m->own_fd[i] = i < n ? fds[i] : -1;
}

static void mailbox_take(void)
{
	struct mailbox *m = self.link.mailbox;
	link_show_fds();
	atomic_store(&m->asleep, 0);
	/* who was restored has to invite its siblings anew, where Yama lets only parents look:
	 * before they see its pid, since they may wait for that to read what was under way */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	self.pid = getpid();
	atomic_store(&m->pid, self.pid);
	if (link_may_share())
		atomic_store(&m->may_share, 1);
	if (writers_show(&self.link))
		link_note_may_share();
	inject_read_mailbox();
}

/* One try: the segment's descriptor, or why there is none. */
static int meet_agent(struct proto_hello *hello, struct proto_welcome *welcome, struct error *err)
{
	int fd = connect_agent(err);
	if (fd < 0)
		return errno == ECONNREFUSED ? AGENT_GONE : AGENT_REFUSES;
	self.fd = hello->own_fd = fd;
	image_fd_own(fd);
	if (link_tell(hello, sizeof(*hello)))
		return welcome_receive(welcome, err);
	error_sys(err, HALE_ERR_NODE, "the agent has closed the connection");
	close_agent();
	return AGENT_GONE;
}

/* An agent may be killed just now, and another one goes on in its place within milliseconds. */
enum { JOIN_TRIES = 200, JOIN_PAUSE_NS = 25000000 };

static hale_status_t join_agent(uint32_t restored, const uint64_t *position, struct error *err)
{
	struct proto_hello hello = {.type = PROTO_HELLO,
				    .version = PROTO_VERSION,
				    .rank = self.link.process,
				    .pid = getpid(),
				    .restored = restored,
				    .mpi = env_int("HALE_NO_MPI", 0) == 0};
	memcpy(hello.token, self.address.token, sizeof(hello.token));
	if (position)
		memcpy(hello.position, position, sizeof(hello.position));
	struct proto_welcome welcome;
	int segment_fd = meet_agent(&hello, &welcome, err);
	for (int tries = 1; segment_fd == AGENT_GONE && tries < JOIN_TRIES; tries++) {
		nanosleep(&(struct timespec){.tv_nsec = JOIN_PAUSE_NS}, NULL);
		segment_fd = meet_agent(&hello, &welcome, err);
	}
	if (segment_fd < 0)
		return err->code;
	hale_status_t rc = segment_attach(segment_fd, welcome.segment_bytes, err);
	close(segment_fd);
	if (rc == HALE_OK)
		rc = segment_check(welcome.segment_bytes, err);
	self.heard = rc == HALE_OK;
	if (self.heard)
		log_set_sink(link_say);
	return rc;
}

/* Started by something else than an agent: a job of one, or ranks around an inherited segment. */
static hale_status_t join_alone(struct error *err)
{
	int fd = env_int("HALE_SEGMENT_FD", -1);
	if (fd < 0) {
		self.link.process = 0;
		hale_status_t rc = segment_attach(-1, segment_bytes(1), err);
		if (rc != HALE_OK)
			return rc;
		segment_layout(self.link.segment, 1, 1, 1);
		return segment_check(segment_bytes(1), err);
	}
	uint64_t bytes = segment_bytes((uint32_t)env_int("HALE_NRANKS", 1));
	hale_status_t rc = segment_attach(fd, bytes, err);
	return rc == HALE_OK ? segment_check(bytes, err) : rc;
}

hale_status_t link_open(struct error *err)
{
	struct error local;
	if (self.open)
		return HALE_OK;
	if (!err)
		err = &local;
	err->code = HALE_OK;
	self.link.process = (uint32_t)env_int("HALE_PROCESS", env_int("HALE_RANK", 0));
	hale_status_t rc;
	if (getenv("HALE_WORLD"))
		environment_keep();
	if (link_address_from_env(&self.address)) {
		rank_checkpoint_inherit((uint32_t)env_int("HALE_CKPT_LAST", 0));
		/* before the agent knows of us: its first request may come at once */
		rank_signal_install();
		rc = join_agent(0, NULL, err);
		self.link.connected = rc == HALE_OK;
	} else {
		rc = join_alone(err);
	}
	if (rc != HALE_OK)
		return rc;
	if (self.link.connected) {
		journal_is_rank();
		mailbox_take();
	} else {
		self.pid = getpid();
		atomic_store(&self.link.mailbox->pid, self.pid);
	}
	self.open = true;
	if (guard_attention && !guard_inside)
		guard_attend();
	return HALE_OK;
}

hale_status_t link_reopen(uint32_t restored, const uint64_t position[3], struct error *err)
{
	/* the descriptor and the mapping belonged to the process of which this is a copy */
	image_fd_disown(self.fd);
	image_exclude_remove(self.link.segment);
	self.fd = -1;
	self.heard = false;
	self.link.segment = NULL;
	hale_status_t rc = join_agent(restored, position, err);
	if (rc == HALE_OK)
		mailbox_take();
	return rc;
}

/* An agent that has taken another one's place may have said again what that had said last. */
hale_status_t link_segment_change(struct error *err)
{
	struct proto_welcome welcome;
	int fd = welcome_receive(&welcome, err);
	while (fd >= 0 && welcome.generation == self.link.generation) {
		close(fd);
		fd = welcome_receive(&welcome, err);
	}
	if (fd < 0)
		return err->code;
	hale_status_t rc = segment_attach(fd, welcome.segment_bytes, err);
	close(fd);
	if (rc == HALE_OK)
		rc = segment_check(welcome.segment_bytes, err);
	if (rc == HALE_OK)
		mailbox_take();
	return rc;
}

/* ---- telling ---- */

static void tell_plain(enum proto_type type, int value)
{
	struct proto_plain p = {.type = type, .value = value};
	link_tell(&p, sizeof(p));
}

void link_mpi_initialized(void)
{
	atomic_store(&self.link.mailbox->state, RANK_RUNNING);
	tell_plain(PROTO_INITIALIZED, 0);
}

void link_mpi_finalized(void)
{
	atomic_store(&self.link.mailbox->state, RANK_FINALIZED);
	tell_plain(PROTO_FINALIZED, 0);
}

void link_abort(int code)
{
	tell_plain(PROTO_ABORT, code);
	/* the agent ends everybody with this code; without one we do it ourselves */
	if (self.link.connected)
		for (int i = 0; i < 500; i++)
			usleep(10000);
	_exit(code ? code & 0xff : 1);
}

/* ---- sleeping ---- */

void link_address_publish(const void *bytes, uint32_t length)
{
	segment_address_put(self.link.segment, self.link.process, bytes, length);
	if (self.link.connected)
		tell_plain(PROTO_ADDRESS, 0);
}

bool link_net_tell(uint32_t rank, bool lost)
{
	if (self.link.connected)
		tell_plain(lost ? PROTO_NET_LOST : PROTO_NET_BACK, (int)rank);
	return self.link.connected;
}

void link_copy_tell(uint32_t process, bool joined)
{
	tell_plain(joined ? PROTO_JOINED : PROTO_KEPT, (int)process);
}

void link_sdc_tell(struct proto_sdc *found)
{
	found->type = PROTO_SDC;
	link_tell(found, sizeof(*found));
}

void link_shadow_tell(struct proto_shadow *say)
{
	say->type = PROTO_SHADOW;
	link_tell(say, sizeof(*say));
}

void link_sleep(uint32_t bell_seen, uint64_t max_ns)
{
	if (bell_sleep(bell_seen, max_ns))
		return;
	struct timespec t = {(time_t)(max_ns / 1000000000u), (long)(max_ns % 1000000000u)};
	syscall(SYS_futex, &self.link.mailbox->bell, FUTEX_WAIT, bell_seen, &t, NULL, 0);
}

void link_wait_step(int round)
{
	enum { YIELDS = 2000, SLEEP_NS = 1000000 };
	struct mailbox *m = self.link.mailbox;
	struct yields yields = {0};
	if (round < YIELDS && yield_core(&yields))
		return;
	uint32_t seen = mailbox_will_sleep(m);
	link_sleep(seen, SLEEP_NS);
	mailbox_awake(m);
}

void link_wake_self(void)
{
	if (!self.link.mailbox)
		return;
	mailbox_ring_slow(self.link.mailbox);
}
