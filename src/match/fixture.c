// SPDX-License-Identifier: BSD-3-Clause
#include "ckpt/libc_replay.h"
#include "ckpt/mute.h"
#include "match/fixture.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/yield.h"
#include "channel/table.h"

enum { SEGMENTS = 8, NODES = 2, RANK_SECONDS = 240, RANKS_MAX = 64, RELAY_US = 300 };

struct comm world, other;
struct ompi_predefined_message_t {
	struct object obj;
} ompi_message_no_proc = {OBJECT_STATIC(OBJECT_MESSAGE, 0)};

/* What ranks share besides the segment. */
struct meeting {
	_Atomic uint32_t here;
	_Atomic bool stopping[RANKS_MAX]; /* on the way there, for a checkpoint */
	/* the first one's: */
	_Atomic uint32_t restored; /* of the checkpoint asked for */
	_Atomic uint32_t said[RANKS_MAX];
	_Atomic int pid[RANKS_MAX];
};

int fixture_overslept;

bool fixture_is_faulty(void)
{
	return strcmp(channel_table[0]->name, "faulty") == 0;
}

static struct link self;
static int segment_fd[SEGMENTS][NODES]; /* for each life of the job and node */
static uint32_t nodes[2] = {1, 1};	/* in lives 0, 2, 4, … and in the others */
static bool net_open;
static struct meeting *meetings; /* used one after the other */
static uint32_t met = 1, round_id, life;
static struct ckpt_participant *participants[4];
static unsigned nparticipants;
static int countdown = -1;
static bool countdown_restored;

/* ---- stand-ins ---- */

__thread volatile int guard_inside;
volatile int guard_attention;
bool guard_multiple;
_Atomic int call_gate;

void guard_lock_slow(void)
{
}

void guard_unlock_slow(void)
{
}

void guard_attend(void)
{
	if (countdown > 0 && --countdown > 0)
		return;
	guard_attention = 0;
	countdown = -1;
	guard_inside = 1;
	fixture_checkpoint(countdown_restored);
	guard_inside = 0;
}

void hale_libc_replay_begin(const struct libc_replay_hooks *hooks)
{
}

void hale_libc_replay_end(void)
{
}

const struct link *link_self(void)
{
	return &self;
}

void link_sleep(uint32_t seen, uint64_t max_ns)
{
	/* nor do descriptors */
	if (guard_attention || net_open) /* no signal interrupts us: see fixture_checkpoint_in */
		max_ns = 1000000;
	struct timespec t = {(time_t)(max_ns / 1000000000u), (long)(max_ns % 1000000000u)};
	if (syscall(SYS_futex, &self.mailbox->bell, FUTEX_WAIT, seen, &t, NULL, 0) &&
	    errno == ETIMEDOUT)
		fixture_overslept++;
}

hale_status_t link_bell_open(const int *fd, unsigned count, struct error *err)
{
	net_open = true;
	return HALE_OK;
}

void link_bell_close(void)
{
	net_open = false;
}

void link_address_publish(const void *bytes, uint32_t length)
{
	segment_address_put(self.segment, self.rank, bytes, length);
}

bool link_net_tell(uint32_t rank, bool lost)
{
	return true;
}

void hale_mute_begin(void)
{
}

void hale_mute_end(void)
{
}

void hale_mute_trim(void)
{
}

void link_shadow_tell(struct proto_shadow *say)
{
}

bool tick_start(int (*work)(void))
{
	return true;
}

void tick_stop(void)
{
}

void link_copy_tell(uint32_t process, bool joined)
{
}

void link_sdc_tell(struct proto_sdc *found)
{
}

void link_abort(int code)
{
	_exit(code);
}

void ckpt_participate(struct ckpt_participant *p)
{
	participants[nparticipants++] = p;
}

bool ckpt_is_alone(void)
{
	return false;
}

uint32_t ckpt_round(void)
{
	return round_id;
}

void comm_release(struct comm *c)
{
	object_drop(&c->obj);
}

/* ---- contents ---- */

enum { SHIFTS = 4096 };
static unsigned char noise[FIXTURE_MAX + SHIFTS];

static const unsigned char *contents(int from, int k)
{
	uint32_t x = 1;
	for (size_t i = 0; !noise[1] && i < sizeof(noise); i++) {
		x = x * 1664525u + 1013904223u;
		noise[i] = (unsigned char)(x >> 24 | 1);
	}
	return noise + ((unsigned)k * 13 + (unsigned)from * 1009) % SHIFTS;
}

void fixture_fill(unsigned char *p, size_t n, int from, int k)
{
	memcpy(p, contents(from, k), n);
}

bool fixture_holds(const unsigned char *p, size_t n, int from, int k)
{
	return memcmp(p, contents(from, k), n) == 0;
}

/* ---- ranks ---- */

void fixture_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "rank %u: %s:%d: not true: %s\n", self.rank, file, line, what);
	_exit(1);
}

void fixture_meet(void)
{
	struct meeting *m = &meetings[met++];
	atomic_fetch_add(&m->here, 1);
	while (atomic_load(&m->here) < self.nranks)
		yield_or_nap();
}

static uint32_t node_of(uint32_t rank, uint32_t of_life, uint32_t ranks)
{
	return rank * nodes[of_life % 2] / ranks;
}

static void segment_map(void)
{
	size_t bytes = segment_bytes(self.nranks);
	/* anywhere (sanitizers have other plans), but then at the same place */
	self.segment = mmap(self.segment, bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | (self.segment ? MAP_FIXED : 0),
			    segment_fd[life][node_of(self.rank, life, self.nranks)], 0);
	REQUIRE(self.segment != MAP_FAILED);
	self.generation = life + 1;
	self.mailbox = segment_mailbox(self.segment, self.rank);
	atomic_store(&self.mailbox->pid, getpid());
	atomic_store(&meetings[0].pid[self.rank], getpid());
}

void fixture_new_life(void)
{
	life++;
	segment_map();
}

void fixture_say(int rank, uint32_t number)
{
	atomic_store(&meetings[0].said[rank], number);
}

uint32_t fixture_said(int rank)
{
	return atomic_load(&meetings[0].said[rank]);
}

static void suspend(void)
{
	for (unsigned i = 0; i < nparticipants; i++)
		participants[i]->suspend_start();
	for (unsigned i = 0; i < nparticipants; i++)
		while (!participants[i]->suspend_poll())
			yield_or_nap();
}

/* Others may wait for records that could not leave yet. The real coordinator finds them in their
 * waits; here nobody would. But who stops already waits for none of ours, and takes none: what is
 * left for it goes into the image. */
void fixture_settle(void)
{
	for (uint32_t r = 0; match.peer && r < self.nranks; r++)
		while (match.peer[r].first && !atomic_load(&meetings[met].stopping[r]))
			match_progress();
}

void fixture_checkpoint(bool restored)
{
	atomic_store(&meetings[met].stopping[self.rank], true);
	fixture_settle();
	round_id++;
	suspend();
	for (unsigned i = 0; i < nparticipants; i++)
		participants[i]->save();
	fixture_meet();
	if (restored) {
		fixture_new_life();
		/* a rank that is late must find what the early ones send */
		if (self.rank % 2)
			usleep(2000);
	}
	for (unsigned i = nparticipants; i-- > 0;)
		participants[i]->resume(restored);
}

void fixture_checkpoint_in(int rounds, bool restored)
{
	countdown = rounds;
	countdown_restored = restored;
	guard_attention = 1;
}

static void on_request(int sig)
{
	countdown = 1;
	countdown_restored = atomic_load(&meetings[0].restored);
	guard_attention = 1;
}

void fixture_checkpoint_ask(bool again)
{
	atomic_store(&meetings[0].restored, again);
	for (uint32_t i = 0; i < self.nranks; i++)
		kill(atomic_load(&meetings[0].pid[i]), SIGUSR1);
}

void fixture_checkpoint_await(uint32_t count)
{
	while (round_id < count) {
		if (!match_progress())
			yield_or_nap();
		guard_safe_point();
	}
}

void fixture_checkpoint_cancelled(void)
{
	round_id++;
	for (unsigned i = 0; i < nparticipants; i++)
		participants[i]->suspend_start();
	for (int k = 0; k < 10; k++)
		for (unsigned i = 0; i < nparticipants; i++)
			participants[i]->suspend_poll();
	atomic_store(&self.mailbox->ckpt_cancelled, round_id);
	for (unsigned i = nparticipants; i-- > 0;)
		participants[i]->resume(false);
}

void fixture_round_skip(void)
{
	atomic_store(&self.mailbox->ckpt_cancelled, ++round_id);
}

static int ranks_of_all[RANKS_MAX];

static void comm_fill(struct comm *c, uint32_t context)
{
	object_init(&c->obj, OBJECT_COMM);
	c->obj.flags = OBJECT_PREDEFINED;
	c->context = context;
	c->rank = (int)self.rank;
	c->size = c->peers = (int)self.nranks;
	c->world = ranks_of_all;
}

/* A rank that only waits in fixture_meet doesn't move its last words on. */
static bool nothing_queued(void *arg)
{
	return !match.busy && !match.unsettled;
}

static void rank_main(uint32_t rank, uint32_t ranks, void (*body)(int), bool bare)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(RANK_SECONDS);
	signal(SIGUSR1, on_request);
	/* not cmocka's, which would go on with the next test in this process */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	self.rank = self.process = rank;
	self.nranks = self.nprocesses = ranks;
	self.degree = 1;
	segment_map();
	for (int i = 0; i < RANKS_MAX; i++)
		ranks_of_all[i] = i;
	comm_fill(&world, 0);
	comm_fill(&other, 2);
	guard_enter();
	if (bare) {
		body((int)rank);
		_exit(0);
	}
	REQUIRE(match_init() == MPI_SUCCESS);
	body((int)rank);
	match_wait_until(nothing_queued, NULL);
	/* as MPI_Finalize does, which begins with a barrier */
	struct meeting *last = &meetings[met++];
	atomic_fetch_add(&last->here, 1);
	while (atomic_load(&last->here) < ranks)
		if (!match_progress())
			yield_or_nap();
	match_fini();
	guard_leave();
	_exit(0);
}

static int segment_make(uint32_t ranks, uint32_t cores, uint32_t of_life, uint32_t node)
{
	size_t bytes = segment_bytes(ranks);
	unsigned char here[RANKS_MAX];
	int fd = memfd_create("segment", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		return -1;
	struct segment *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return -1;
	segment_layout(s, ranks, cores, of_life + 1);
	segment_secret_put(s, (const unsigned char *)"of 32 bytes, as secrets have to be");
	for (uint32_t r = 0; r < ranks; r++)
		here[r] = node_of(r, of_life, ranks) == node;
	segment_place(s, here, ranks);
	munmap(s, bytes);
	return fd;
}

static int segments_make(uint32_t ranks, uint32_t cores)
{
	for (uint32_t i = 0; i < SEGMENTS; i++)
		for (uint32_t k = 0; k < NODES; k++)
			if ((segment_fd[i][k] = segment_make(ranks, cores, i, k)) < 0)
				return -1;
	return 0;
}

/* ---- what agents do for nodes ---- */

static struct segment *relay_segment[SEGMENTS][NODES];
static uint32_t relay_seen[SEGMENTS][RANKS_MAX];

static void relay_entry(uint32_t of_life, uint32_t rank, uint32_t ranks)
{
	unsigned char bytes[SEGMENT_ADDRESS_MAX];
	uint32_t length, home = node_of(rank, of_life, ranks);
	uint32_t version = segment_address_get(relay_segment[of_life][home], rank, bytes, &length);
	if (version == 0 || version == relay_seen[of_life][rank])
		return;
	relay_seen[of_life][rank] = version;
	for (uint32_t k = 0; k < NODES; k++)
		if (k != home)
			segment_address_put(relay_segment[of_life][k], rank, bytes, length);
	for (uint32_t r = 0; r < ranks; r++)
		mailbox_ring(
		    segment_mailbox(relay_segment[of_life][node_of(r, of_life, ranks)], r));
}

static void relay_main(uint32_t ranks)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		for (uint32_t k = 0; k < NODES; k++)
			relay_segment[i][k] =
			    mmap(NULL, segment_bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED,
				 segment_fd[i][k], 0);
	for (;;) {
		for (uint32_t i = 0; i < SEGMENTS; i++)
			for (uint32_t r = 0; r < ranks; r++)
				relay_entry(i, r, ranks);
		usleep(RELAY_US);
	}
}

static pid_t relay_start(uint32_t ranks)
{
	if (nodes[0] == 1 && nodes[1] == 1)
		return 0;
	pid_t pid = fork();
	if (pid == 0)
		relay_main(ranks);
	return pid;
}

static void relay_end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void fixture_nodes(uint32_t first, uint32_t then)
{
	nodes[0] = first;
	nodes[1] = then;
}

/* ---- a run ---- */

static void ranks_kill(const pid_t *pid, uint32_t ranks)
{
	for (uint32_t i = 0; i < ranks; i++)
		if (pid[i] > 0)
			kill(pid[i], SIGKILL);
}

static int ranks_wait(pid_t *pid, uint32_t ranks, pid_t relay)
{
	int failed = 0, status;
	for (uint32_t left = ranks; left > 0;) {
		pid_t p = wait(&status);
		if (p == relay)
			continue;
		for (uint32_t i = 0; i < ranks; i++)
			if (pid[i] == p)
				pid[i] = 0;
		left--;
		if (status == 0 || failed)
			continue;
		failed = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		fprintf(stderr, "a rank ended with %s %d\n",
			WIFEXITED(status) ? "status" : "signal",
			WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
		ranks_kill(pid, ranks);
	}
	return failed;
}

static int run(uint32_t ranks, uint32_t cores, void (*body)(int rank), bool bare)
{
	pid_t pid[RANKS_MAX];
	size_t room = 8 << 20;
	meetings = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (segments_make(ranks, cores))
		return -1;
	pid_t relay = relay_start(ranks);
	uint32_t started = 0;
	while (started < ranks && (pid[started] = fork()) >= 0) {
		if (pid[started] == 0)
			rank_main(started, ranks, body, bare);
		started++;
	}
	if (started < ranks)
		ranks_kill(pid, started);
	int failed = ranks_wait(pid, started, relay);
	if (started < ranks)
		failed = -1;
	relay_end(relay);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		for (uint32_t k = 0; k < NODES; k++)
			close(segment_fd[i][k]);
	munmap(meetings, room);
	return failed;
}

int fixture_run(uint32_t ranks, uint32_t cores, void (*body)(int rank))
{
	return run(ranks, cores, body, false);
}

int fixture_run_bare(uint32_t ranks, uint32_t cores, void (*body)(int rank))
{
	return run(ranks, cores, body, true);
}
