/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>
#include "base/base.h"
#include "job/agent_private.h"
#include "job/environment.h"
#include "job/launch.h"

static void streams_resume(void *arg)
{
	struct agent *a = arg;

	for (uint32_t r = 0; r < a->config.nranks; r++)
		for (int i = 0; i < 2; i++)
			if (!outlet_full(a->ranks[r].out[i].outlet))
				stream_resume(&a->ranks[r].out[i]);
}

static void stream_differs(void *arg, struct stream *s)
{
	struct agent *a = arg;

	a->handler.differs(a->handler.arg, s->rank, s->which);
}

static void ranks_init(struct agent *a)
{
	for (uint32_t r = 0; r < a->config.nranks; r++) {
		struct agent_rank *k = &a->ranks[r];

		k->rank = r;
		for (int i = 0; i < 2; i++) {
			stream_init(&k->out[i], a->loop, &a->out[i], r, i + 1, a->config.tag,
				    a->config.nranks == 1);
			k->out[i].differs = stream_differs;
			k->out[i].arg = a;
		}
	}
}

hale_status_t agent_create(struct agent *a, struct loop *loop, const struct agent_config *config,
			   const struct agent_handler *handler, struct error *err)
{
	hale_status_t status;

	*a = (struct agent){.config = *config,
			    .handler = *handler,
			    .loop = loop,
			    .listener = -1,
			    .listening.fd = -1};
	outlet_init(&a->out[0], loop, STDOUT_FILENO, "stdout", streams_resume, a);
	outlet_init(&a->out[1], loop, STDERR_FILENO, "stderr", streams_resume, a);
	feed_init(&a->feed, loop, STDIN_FILENO);
	a->ranks = calloc(config->nranks, sizeof(*a->ranks));
	if (!a->ranks) {
		a->config.nranks = 0;
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u ranks",
				 config->nranks);
	}
	a->nodes = calloc(config->placement->nodes, sizeof(*a->nodes));
	if (!a->nodes)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u nodes",
				 config->placement->nodes);
	for (uint32_t k = 0; k < config->placement->nodes; k++)
		a->nodes[k].segment_fd = -1;
	ranks_init(a);
	pin_plan_make(&a->pin, config->nranks, config->bind);
	/* writers of images outlive the ranks they were forked from, and come to us then */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	status = guardian_start(&a->guardian, config->nranks, err);
	return status == HALE_OK ? agent_listen(a, err) : status;
}

static void segments_drop(struct agent *a)
{
	for (uint32_t k = 0; a->nodes && k < a->config.placement->nodes; k++) {
		struct agent_node *n = &a->nodes[k];

		if (n->segment)
			munmap(n->segment, n->segment->bytes);
		if (n->segment_fd >= 0)
			close(n->segment_fd);
		n->segment = NULL;
		n->segment_fd = -1;
	}
	a->segment = NULL;
}

void agent_destroy(struct agent *a)
{
	if (!a->loop) /* never created */
		return;
	for (uint32_t r = 0; a->ranks && r < a->config.nranks; r++)
		for (int i = 0; i < 2; i++)
			stream_fini(&a->ranks[r].out[i]);
	feed_fini(&a->feed);
	agent_conns_close(a);
	loop_remove(a->loop, &a->listening);
	if (a->listener >= 0)
		close(a->listener);
	for (int i = 0; i < 2; i++) {
		outlet_flush(&a->out[i]);
		outlet_fini(&a->out[i]);
	}
	segments_drop(a);
	free(a->nodes);
	a->nodes = NULL;
	guardian_end(&a->guardian);
	pin_plan_fini(&a->pin);
	free(a->ranks);
	a->ranks = NULL;
}

static hale_status_t segment_make(struct agent *a, struct agent_node *n, struct error *err)
{
	size_t bytes = segment_bytes(a->config.nranks);
	void *at;

	n->segment_fd = memfd_create("hale-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (n->segment_fd < 0 || ftruncate(n->segment_fd, (off_t)bytes) != 0 ||
	    fcntl(n->segment_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
		return error_sys(err, HALE_ERR_MEMORY, "cannot make the shared segment");
	at =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, n->segment_fd, 0);
	if (at == MAP_FAILED)
		return error_sys(err, HALE_ERR_MEMORY, "cannot map the shared segment");
	n->segment = at;
	return HALE_OK;
}

/* Several nodes on this machine have a share of its cores each. */
static hale_status_t segment_fill(struct agent *a, uint32_t node, uint32_t generation,
				  struct error *err)
{
	const struct placement *p = a->config.placement;
	struct segment *s = a->nodes[node].segment;
	unsigned char *here = calloc(a->config.nranks, 1);
	uint32_t count = 0;

	if (!here)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	for (uint32_t r = 0; r < a->config.nranks; r++)
		count += here[r] = p->node_of[r] == node;
	uint32_t cores = (uint32_t)((uint64_t)a->pin.cores * count / a->config.nranks);
	segment_layout(s, a->config.nranks, cores ? cores : 1, generation);
	segment_place(s, here);
	segment_secret_put(s, a->secret);
	if (p->nodes > 1)
		snprintf(s->node, sizeof(s->node), "node%u", node);
	free(here);
	return HALE_OK;
}

hale_status_t agent_segment_renew(struct agent *a, uint32_t generation, struct error *err)
{
	hale_status_t status = HALE_OK;

	segments_drop(a);
	for (uint32_t k = 0; k < a->config.placement->nodes && status == HALE_OK; k++) {
		status = segment_make(a, &a->nodes[k], err);
		if (status == HALE_OK)
			status = segment_fill(a, k, generation, err);
	}
	a->segment = a->nodes[0].segment;
	return status;
}

struct segment *agent_segment(const struct agent *a, uint32_t rank)
{
	return a->nodes[a->config.placement->node_of[rank]].segment;
}

struct mailbox *agent_mailbox(const struct agent *a, uint32_t rank)
{
	return segment_mailbox(agent_segment(a, rank), rank);
}

void agent_node_name(const struct agent *a, uint32_t rank, char *name, size_t cap)
{
	name[0] = '\0';
	if (a->config.placement->nodes > 1)
		snprintf(name, cap, "node%u", a->config.placement->node_of[rank]);
	else
		gethostname(name, cap);
	name[cap - 1] = '\0';
}

void agent_address_relay(struct agent *a, uint32_t rank)
{
	const struct placement *p = a->config.placement;
	unsigned char bytes[SEGMENT_ADDRESS_MAX];
	uint32_t length;

	/* half written: the rank tells again when it is whole */
	if (segment_address_get(agent_segment(a, rank), rank, bytes, &length) == 0)
		return;
	for (uint32_t k = 0; k < p->nodes; k++)
		if (k != p->node_of[rank])
			segment_address_put(a->nodes[k].segment, rank, bytes, length);
	for (uint32_t r = 0; r < a->config.nranks; r++)
		if (p->node_of[r] != p->node_of[rank])
			mailbox_ring(agent_mailbox(a, r));
}

/* ---- starting ---- */

static void close_three(int fd[3])
{
	for (int i = 0; i < 3; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

static hale_status_t open_streams(struct agent *a, uint32_t rank, const uint64_t position[3],
				  int fd[3], struct error *err)
{
	struct agent_rank *r = &a->ranks[rank];
	struct mailbox *m = agent_mailbox(a, rank);

	fd[0] = rank == 0 ? feed_open(&a->feed, m, position[0])
			  : open("/dev/null", O_RDONLY | O_CLOEXEC);
	fd[1] = stream_open(&r->out[0], m, position[1]);
	fd[2] = stream_open(&r->out[1], m, position[2]);
	if (fd[0] >= 0 && fd[1] >= 0 && fd[2] >= 0)
		return HALE_OK;
	error_sys(err, HALE_ERR_SYSTEM, "cannot make the pipes of rank %u", rank);
	close_three(fd);
	return HALE_ERR_SYSTEM;
}

static char **make_environment(const struct agent *a, uint32_t rank, const char *sink)
{
	const struct agent_config *c = &a->config;
	const uint32_t *node_of = c->placement->node_of;
	uint32_t local_rank = 0, local_size = 0;

	for (uint32_t r = 0; r < c->nranks; r++) {
		local_rank += r < rank && node_of[r] == node_of[rank];
		local_size += node_of[r] == node_of[rank];
	}
	struct environment_params p = {.inherited = c->environ,
				       .exports = c->exports,
				       .libdir = c->libdir,
				       .preload_mpi = c->preload_mpi,
				       .agent = a->address,
				       .token = a->token,
				       .job = c->job,
				       .rank = rank,
				       .nranks = c->nranks,
				       .local_rank = local_rank,
				       .local_size = local_size,
				       .no_mpi = c->no_mpi,
				       .sink = sink};
	return environment_make(&p);
}

hale_status_t agent_spawn(struct agent *a, uint32_t rank, const char *program, const char *sink,
			  const uint64_t position[3], struct error *err)
{
	struct agent_rank *r = &a->ranks[rank];
	struct launch l = {.path = program,
			   .argv = a->config.argv,
			   .wdir = a->config.wdir,
			   .cpus = a->pin.bound ? &a->pin.sets[rank] : NULL};
	hale_status_t status;

	l.env = make_environment(a, rank, sink);
	if (!l.env)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	status = open_streams(a, rank, position, l.fd, err);
	if (status == HALE_OK) {
		r->met = r->initialized = r->finalized = r->mpi = false;
		r->member = 0;
		status = launch_process(&l, &r->pid, err);
		close_three(l.fd);
		r->group = r->pid;
		guardian_watch(&a->guardian, rank, r->group);
	}
	environment_free(l.env);
	return status;
}

/* ---- watching ---- */

void agent_signal(struct agent *a, uint32_t rank, int sig)
{
	if (a->ranks[rank].group > 0)
		kill(-a->ranks[rank].group, sig);
}

void agent_signal_all(struct agent *a, int sig)
{
	for (uint32_t r = 0; r < a->config.nranks; r++)
		agent_signal(a, r, sig);
}

bool agent_signal_member(struct agent *a, uint32_t rank, int sig)
{
	pid_t pid = a->ranks[rank].member;

	/* to the main thread: a signal to the process might pick one that sleeps in a park */
	return pid > 0 && syscall(SYS_tgkill, pid, pid, sig) == 0;
}

static void rank_ended(struct agent *a, struct agent_rank *r, int status)
{
	struct agent_conn *c = r->conn;

	/* what it said and printed last comes before the news of its end */
	while (c && r->conn == c && c->source.fd >= 0) {
		char peek;
		if (recv(c->source.fd, &peek, 1, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC) <= 0)
			break;
		c->source.ready(c->source.arg, EPOLLIN);
	}
	r->pid = 0;
	for (int i = 0; i < 2; i++)
		stream_drain(&r->out[i]);
	if (r->rank == 0)
		feed_close(&a->feed);
	a->handler.ended(a->handler.arg, r->rank, status);
}

static struct agent_rank *rank_of_pid(struct agent *a, pid_t pid)
{
	for (uint32_t r = 0; r < a->config.nranks; r++)
		if (a->ranks[r].pid == pid)
			return &a->ranks[r];
	return NULL;
}

void agent_reap(struct agent *a)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct agent_rank *r = rank_of_pid(a, pid);

		if (r)
			rank_ended(a, r, status);
		else
			a->handler.other(a->handler.arg, pid, status);
	}
}

uint32_t agent_alive(const struct agent *a)
{
	uint32_t alive = 0;

	for (uint32_t r = 0; r < a->config.nranks; r++)
		alive += a->ranks[r].pid > 0;
	return alive;
}

bool agent_clear(struct agent *a)
{
	bool clear = true;

	for (uint32_t i = 0; i < a->config.nranks; i++) {
		struct agent_rank *r = &a->ranks[i];

		if (r->group == 0)
			continue;
		if (kill(-r->group, SIGKILL) == 0 || errno != ESRCH || r->pid > 0) {
			clear = false;
			continue;
		}
		r->group = 0;
		guardian_watch(&a->guardian, i, 0);
		agent_conn_drop(a, r);
	}
	return clear;
}

void agent_tell(struct agent *a, uint32_t rank, const struct proto_plain *packet)
{
	struct agent_conn *c = a->ranks[rank].conn;

	if (c)
		send(c->source.fd, packet, sizeof(*packet), MSG_DONTWAIT | MSG_NOSIGNAL);
}
