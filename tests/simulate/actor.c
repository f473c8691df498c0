/* SPDX-License-Identifier: BSD-3-Clause */
/* What is no code under test: ranks, which speak node/proto.h and have a counter for an image, and
 * remote shells, whose connections are slow, and can be cut. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "actor.h"
#include "image/image.h"
#include "agent/agent.h"
#include "globals.h"
#include "node/proto.h"
#include "node/segment.h"
#include "head/failover/takeover.h"
#include "kernel.h"
#include "plan.h"
#include "libc.h"

enum { NET_IN = 10, NET_OUT = 11, CHUNK = 16384, QUEUE_MAX = 64 };

static void *keep(size_t len)
{
	return kernel_keep(len);
}

static char *keep_text(const char *text)
{
	return strcpy(keep(strlen(text) + 1), text);
}

static char **keep_list(char *const *list)
{
	size_t n = 0;
	char **copy;

	while (list && list[n])
		n++;
	copy = keep((n + 1) * sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = keep_text(list[i]);
	return copy;
}

/* ---- remote shells ---- */

struct chunk {
	uint64_t due;
	size_t len;
	unsigned char bytes[];
};

/* One direction. */
struct flow {
	int from, to;
	bool over; /* the end of `from` has been seen */
	struct chunk *queue[QUEUE_MAX];
	size_t first, count;
	double slow; /* probability that a chunk takes its time */
};

struct shell {
	struct machine *host;
	char command[8192];
	int status; /* of the command, as waitpid has it */
};

static uint64_t delay(double slow)
{
	return kernel_chance(slow) ? kernel_random(200 * NS_PER_MS)
				   : 50000 + kernel_random(NS_PER_MS);
}

/* True: something has been done. */
static bool flow_step(struct flow *f, bool cut)
{
	OWN static unsigned char bytes[CHUNK];
	struct object *from = proc_fd(f->from), *to = proc_fd(f->to);
	struct chunk *c;
	ssize_t n;

	if (!to)
		return false;
	if (f->count > 0 && !cut) {
		c = f->queue[f->first];
		if (c->due <= kernel->now) {
			n = object_write(to, c->bytes, c->len);
			if (n < 0 && errno == EAGAIN)
				return false;
			if (n < 0 || (size_t)n == c->len) {
				f->first = (f->first + 1) % QUEUE_MAX;
				f->count--;
			} else {
				memmove(c->bytes, c->bytes + n, c->len - (size_t)n);
				c->len -= (size_t)n;
			}
			return true;
		}
	}
	if (!f->over && from && f->count < QUEUE_MAX) {
		n = object_read(from, bytes, CHUNK);
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) {
			f->over = true;
			return true;
		}
		c = keep(sizeof(*c) + (size_t)n);
		memcpy(c->bytes, bytes, (size_t)n);
		f->queue[(f->first + f->count) % QUEUE_MAX] = c;
		c->len = (size_t)n;
		c->due = kernel->now + delay(f->slow);
		f->count++;
		return true;
	}
	if (f->over && f->count == 0 && !cut) {
		proc_fd_close(kernel->running, f->to);
		return true;
	}
	return false;
}

static uint64_t flow_due(const struct flow *f)
{
	return f->count > 0 ? f->queue[f->first]->due : NS_NEVER;
}

/* Silence after which either end gives the connection up, as ServerAliveInterval=15 has it. */
#define SILENCE_NS (45 * NS_PER_S)

/* flow[0] leads to the far process, flow[1] from it: its end is the connection's. */
static void relay(struct flow flow[2], const struct machine *far)
{
	uint64_t silent_since = 0;

	for (;;) {
		bool cut[2] = {far->cut_out > kernel->now || !far->up,
			       far->cut_in > kernel->now || !far->up};
		struct object *o[4];
		size_t count = 0;
		uint64_t until = NS_NEVER;

		if (!proc_fd(flow[1].to))
			return;
		silent_since = !(cut[0] || cut[1]) ? 0 : silent_since ? silent_since : kernel->now;
		if (silent_since && kernel->now - silent_since > SILENCE_NS)
			proc_exit(255 << 8);
		if (flow_step(&flow[0], cut[0]) | flow_step(&flow[1], cut[1]))
			continue;
		for (int i = 0; i < 2; i++) {
			if (!flow[i].over && proc_fd(flow[i].from) && flow[i].count < QUEUE_MAX)
				o[count++] = proc_fd(flow[i].from);
			if (flow[i].count > 0 && proc_fd(flow[i].to))
				o[count++] = proc_fd(flow[i].to);
			if (!cut[i] && flow_due(&flow[i]) < until)
				until = flow_due(&flow[i]);
		}
		/* a cut may end, and a host come back */
		if (until == NS_NEVER || until <= kernel->now)
			until = kernel->now + (cut[0] || cut[1] ? 50 : 2000) * NS_PER_MS;
		proc_block(o, count, NULL, NULL, until);
	}
}

/* Here: between the head and the network. */
static void ssh_main(void *arg)
{
	struct shell *s = arg;
	struct flow flow[2] = {{.from = 0, .to = NET_OUT, .slow = 0.05},
			       {.from = NET_IN, .to = 1, .slow = 0.05}};

	relay(flow, s->host);
	proc_exit(s->status);
}

static void agent_main(void *arg)
{
	const struct shell *s = arg;
	const char *attach = strstr(s->command, "--attach ");

	kernel_say("is started: %s", s->command);
	if (attach) {
		char tag[ATTACH_TAG] = "";
		unsigned node = 0;

		sscanf(attach + 9, "%16[^.].%u", tag, &node);
		proc_exit(attach_pass_on(tag, node) << 8);
	}
	proc_exit(agent_run(simulate_dup(0), simulate_dup(1)) << 8);
}

/* Until the command has closed its output, or the connection is lost: then the command's streams
 * are closed, and it goes on or not. */
static void shell_relay(struct flow flow[2], struct shell *s, pid_t pid)
{
	relay(flow, s->host);
	if (proc_wait(pid, &s->status, WNOHANG) == 0 && !flow[0].over)
		proc_wait(pid, &s->status, 0);
}

/* There: its child is what the shell was asked to run. */
static void sshd_main(void *arg)
{
	struct shell *s = arg;
	int in[2], out[2];
	pid_t pid;
	static const char name[] = "agent";

	simulate_pipe2(in, 0);
	simulate_pipe2(out, 0);
	pid = simulate_fork();
	if (pid == 0) {
		simulate_setsid();
		simulate_dup2(in[0], 0);
		simulate_dup2(out[1], 1);
		simulate_close_range(3, ~0u, 0);
		proc_become(kernel->running, name, agent_main, s);
	}
	simulate_close(in[0]);
	simulate_close(out[1]);
	{
		struct flow flow[2] = {{.from = NET_IN, .to = in[1]},
				       {.from = out[0], .to = NET_OUT}};

		shell_relay(flow, s, pid);
	}
	proc_exit(0);
}

static void put(struct proc *p, int fd, struct object *o)
{
	p->fd[fd] = (struct fd){o, false};
}

static void become_shell(struct proc *p, char *const *argv)
{
	size_t n = 0;
	struct shell *s = keep(sizeof(*s));
	struct object *in[2], *out[2];
	struct proc *far;

	while (argv[n])
		n++;
	s->host = kernel_host(argv[n - 2]);
	snprintf(s->command, sizeof(s->command), "%s", argv[n - 1]);
	if (!s->host->up || s->host->cut_out > kernel->now) {
		proc_sleep(3 * NS_PER_S); /* no route to host */
		proc_exit(255 << 8);
	}
	if (s->host->no_login > kernel->now)
		proc_exit(255 << 8);
	object_pipe(&in[0], &in[1]);
	object_pipe(&out[0], &out[1]);
	far = proc_create(s->host, "sshd", 1, sshd_main, s);
	far->env = p->env;
	put(far, NET_IN, in[0]);
	put(far, NET_OUT, out[1]);
	p->fd[2].o->refs++;
	put(far, 2, p->fd[2].o);
	for (int i = 3; i < FDS_MAX; i++)
		if (p->fd[i].o)
			proc_fd_close(p, i);
	put(p, NET_OUT, in[1]);
	put(p, NET_IN, out[0]);
	proc_become(p, "ssh", ssh_main, s);
}

/* ---- ranks ---- */

struct rank {
	struct actor_rank k;
	long steps;
	uint32_t newest; /* checkpoint that it has taken part in, or come from */
	int agent;
	struct mailbox *box;
};

static uint64_t sum_of(const char *text)
{
	uint64_t hash = 1469598103934665603ull;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ull;
	return hash;
}

/* Reads the image at path; false: it is none. */
static bool image_of(const char *path, char text[128], long *step, uint32_t *id, uint32_t *rank)
{
	struct object *o = disk_open(path, O_RDONLY);
	ssize_t n = o ? disk_read(o, text, 127, 0) : -1;

	if (o)
		object_drop(o);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 && sscanf(text, "image of rank %u at %u: %ld.", rank, id, step) == 3 &&
	       strchr(text, '\n');
}

static void tell(const struct rank *r, const void *packet, size_t len)
{
	if (simulate_send(r->agent, packet, len, MSG_NOSIGNAL) != (ssize_t)len)
		proc_exit(99 << 8);
}

static void tell_plain(const struct rank *r, uint32_t type, int value)
{
	struct proto_plain p = {.type = type, .value = value};

	tell(r, &p, sizeof(p));
}

/* One try: false when there is no agent, or it ends before it has answered. */
static bool welcomed(struct rank *r, const struct sockaddr_un *sa, socklen_t len,
		     struct proto_hello *h, struct msghdr *m, const struct proto_welcome *w)
{
	size_t room = m->msg_controllen;

	r->agent = simulate_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	h->own_fd = r->agent;
	if (simulate_connect(r->agent, (const struct sockaddr *)sa, len) == 0 &&
	    simulate_send(r->agent, h, sizeof(*h), MSG_NOSIGNAL) == (ssize_t)sizeof(*h) &&
	    simulate_recvmsg(r->agent, m, 0) == (ssize_t)sizeof(*w)) {
		if (w->type != PROTO_WELCOME)
			proc_exit(97 << 8); /* refused */
		return true;
	}
	simulate_close(r->agent);
	m->msg_controllen = room;
	return false;
}

/* As ckpt/link.c does it. */
enum { JOIN_TRIES = 200, JOIN_PAUSE_US = 50000 };

static void join(struct rank *r)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const char *name = simulate_getenv("HALE_AGENT");
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	struct proto_hello h = {.type = PROTO_HELLO,
				.version = PROTO_VERSION,
				.rank = r->k.rank,
				.pid = kernel->running->pid,
				.restored = r->k.restored,
				.mpi = 1};
	struct proto_welcome w;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {&w, sizeof(w)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct segment *segment;
	int fd = -1;

	strcpy(sa.sun_path + 1, name);
	snprintf(h.token, sizeof(h.token), "%s", simulate_getenv("HALE_TOKEN"));
	if (r->k.restored) { /* as its image has them */
		long lines = r->k.step;

		for (long s = 0; s < lines; s++)
			h.position[1] +=
			    (uint64_t)snprintf(NULL, 0, "rank %u step %ld\n", r->k.rank, s);
	}
	for (int tries = 0; !welcomed(r, &sa, len, &h, &m, &w); tries++) {
		if (tries == JOIN_TRIES)
			proc_exit(98 << 8);
		simulate_usleep(JOIN_PAUSE_US);
	}
	memcpy(&fd, CMSG_DATA(&control.align), sizeof(fd));
	segment = simulate_mmap64(NULL, w.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	simulate_close(fd);
	r->k.generation = segment->generation;
	r->newest = r->k.restored;
	r->box = segment_mailbox(segment, r->k.rank);
	atomic_store(&r->box->pid, kernel->running->pid);
	r->box->own_fd[0] = r->agent;
	atomic_store(&r->box->state, RANK_RUNNING);
}

static void write_image(struct rank *r, struct proto_ckpt *p, const char *path)
{
	char text[128];
	int fd = simulate_open64(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int n = snprintf(text, sizeof(text), "image of rank %u at %u: %ld.\n", r->k.rank, p->id,
			 r->k.step);

	p->checksum = sum_of(text);
	p->bytes = (uint64_t)n;
	if (fd < 0 || simulate_write(fd, text, (size_t)n) != n) {
		p->type = PROTO_CKPT_FAILED;
		p->status = HALE_ERR_IMAGE_MISSING;
		snprintf(p->text, sizeof(p->text), "the image can't be written");
	} else {
		p->type = PROTO_CKPT_WRITTEN;
	}
	kernel_say("%s: %s%.*s", path, p->type == PROTO_CKPT_FAILED ? "not " : "", n - 1, text);
	if (fd >= 0)
		simulate_close(fd);
}

/* Its writer is a child, as in a real rank, so it can go on. */
static void checkpoint(struct rank *r)
{
	struct proto_ckpt p = {.type = PROTO_CKPT_RESUMED, .id = atomic_load(&r->box->ckpt_wanted)};
	char path[MAILBOX_PATH];
	pid_t pid;

	if (p.id == 0 || p.id <= r->newest || atomic_load(&r->box->ckpt_cancelled) >= p.id)
		return;
	r->newest = p.id;
	/* the mailbox may say another one before the image is written */
	snprintf(path, sizeof(path), "%s", r->box->ckpt_path);
	actor_checkpoint_begins();
	for (int i = 1; i < 3; i++) {
		int pending = 0;

		simulate_ioctl(i, FIONREAD, &pending);
		p.position[i] = atomic_load(&r->box->stream_taken[i]) + (uint64_t)pending;
	}
	atomic_store(&r->box->state, RANK_CHECKPOINTING);
	simulate_usleep((unsigned)kernel_random(20000));
	pid = simulate_fork();
	if (pid == 0) {
		simulate_usleep((unsigned)kernel_random(kernel_chance(0.1) ? 2000000 : 30000));
		write_image(r, &p, path);
		tell(r, &p, sizeof(p));
		proc_exit(0);
	}
	tell(r, &p, sizeof(p));
	atomic_store(&r->box->state, RANK_RUNNING);
}

static void become(struct rank *r, const char *sink)
{
	char path[PATH_MAX], text[128];
	uint64_t sum = 0;
	uint32_t rank;
	char *equals;

	snprintf(path, sizeof(path), "%s", strchr(sink, ':') + 1);
	path[strcspn(path, ":")] = '\0';
	actor_restore_begins();
	while (faults_hang())
		proc_block(NULL, 0, NULL, NULL, NS_NEVER);
	simulate_usleep(actor_back_time());
	equals = strrchr(path, '=');
	if (equals) {
		*equals = '\0';
		sum = strtoull(equals + 1, NULL, 16);
	}
	if (!image_of(path, text, &r->k.step, &r->k.restored, &rank) || rank != r->k.rank ||
	    (sum && sum != sum_of(text))) {
		kernel_say("the image %s is none: '%s' (%lx, not %lx)", path, text,
			   (unsigned long)sum_of(text), (unsigned long)sum);
		proc_exit(EXIT_IMAGE_BAD << 8);
	}
}

static void on_request(int sig)
{
	(void)sig;
}

/* As in a receive: checkpoints are taken there, too. */
static void wait_for_others(struct rank *r)
{
	while (!actor_rank_may_step(&r->k, true)) {
		uint64_t until = faults_stalled(r->k.rank);
		bool stalls = until > kernel->now;

		if (stalls)
			proc_block(NULL, 0, NULL, NULL, until);
		else
			proc_block(NULL, 0, NULL, NULL, kernel->now + 20 * NS_PER_S);
		if (!stalls)
			checkpoint(r);
	}
	actor_rank_may_step(&r->k, false);
}

static void rank_main(void *arg)
{
	struct rank r = {.steps = *(long *)arg};
	struct proc *p = kernel->running;
	const char *sink = simulate_getenv("HALE_SINK");

	r.k.rank = (uint32_t)atol(simulate_getenv("HALE_RANK"));
	p->rank = r.k.rank;
	if (sink)
		become(&r, sink);
	simulate_signal(PROTO_CKPT_SIGNAL, on_request);
	join(&r);
	actor_rank_begins(&r.k);
	if (!sink)
		tell_plain(&r, PROTO_INITIALIZED, 0);
	for (; r.k.step < r.steps; r.k.step++) {
		char line[64];
		int n = snprintf(line, sizeof(line), "rank %u step %ld\n", r.k.rank, r.k.step);

		kernel->running->rank_runs = true;
		wait_for_others(&r);
		actor_rank_steps(kernel->running);
		simulate_usleep(actor_step_time());
		simulate_write(1, line, (size_t)n);
		r.k.step++; /* what an image of now has done */
		actor_rank_has_done(&r.k);
		checkpoint(&r);
		r.k.step--;
	}
	tell_plain(&r, PROTO_FINALIZED, 0);
	proc_exit(0);
}

void actor_exec(struct proc *p, const char *path, char *const *argv, char *const *env)
{
	if (env)
		p->env = keep_list(env);
	if (!strcmp(path, "ssh"))
		become_shell(p, argv);
	if (!strcmp(path, ACTOR_PROGRAM)) {
		long *steps = keep(sizeof(*steps));

		*steps = argv[1] ? atol(argv[1]) : 10;
		proc_become(p, "rank", rank_main, steps);
	}
}

/* ---- what the image engine would say (simulate.syms) ---- */

hale_status_t simulate_image_check_in(pid_t pid, const int *own, size_t own_count,
				      bool (*passed)(const char *link),
				      const struct image_tree *tree, struct error *err);
hale_status_t simulate_image_check_threads(pid_t pid, struct error *err);
hale_status_t simulate_image_check_ipc(pid_t pid, struct error *err);
hale_status_t simulate_image_check_children(pid_t pid, const int *own, size_t own_count,
					    struct image_tree *tree, struct error *err);
hale_status_t simulate_image_read_info(const char *path, struct image_info *info,
				       struct error *err);
hale_status_t simulate_image_verify(const char *path, uint64_t *checksum, struct error *err);

hale_status_t simulate_image_check_in(pid_t pid, const int *own, size_t own_count,
				      bool (*passed)(const char *link),
				      const struct image_tree *tree, struct error *err)
{
	(void)pid, (void)own, (void)own_count, (void)passed, (void)tree, (void)err;
	return HALE_OK;
}

hale_status_t simulate_image_check_threads(pid_t pid, struct error *err)
{
	(void)pid, (void)err;
	return HALE_OK;
}

hale_status_t simulate_image_check_ipc(pid_t pid, struct error *err)
{
	(void)pid, (void)err;
	return HALE_OK;
}

hale_status_t simulate_image_check_children(pid_t pid, const int *own, size_t own_count,
					    struct image_tree *tree, struct error *err)
{
	(void)pid, (void)own, (void)own_count, (void)err;
	tree->count = 0;
	return HALE_OK;
}

static hale_status_t bad_image(struct error *err, hale_status_t code)
{
	if (err) {
		err->code = code;
		snprintf(err->text, sizeof(err->text), "it is no image");
	}
	return code;
}

hale_status_t simulate_image_read_info(const char *path, struct image_info *info, struct error *err)
{
	char text[128];
	long step;
	uint32_t id, rank;

	memset(info, 0, sizeof(*info));
	if (!disk_find(path))
		return bad_image(err, HALE_ERR_IMAGE_MISSING);
	if (!image_of(path, text, &step, &id, &rank))
		return bad_image(err, HALE_ERR_IMAGE_TORN);
	snprintf(info->program, sizeof(info->program), "%s", ACTOR_PROGRAM);
	info->identity.id = id;
	info->bytes = strlen(text);
	info->checksum = sum_of(text);
	return HALE_OK;
}

hale_status_t simulate_image_verify(const char *path, uint64_t *checksum, struct error *err)
{
	struct image_info info;
	hale_status_t status = simulate_image_read_info(path, &info, err);

	*checksum = info.checksum;
	return status;
}
