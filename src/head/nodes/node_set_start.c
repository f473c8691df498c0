/* SPDX-License-Identifier: BSD-3-Clause */
/* How agents begin and end. */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "head/nodes/node_set.h"
#include "head/nodes/node_set_private.h"
#include "head/output/said.h"

#define LEAVE_SECONDS  5.0
#define PASSED_SECONDS 0.03

/* ---- this machine ---- */

/* A group of its own: Ctrl-C is for hale run, which passes it on. */
static void be_agent(agent_main_t *agent, int fd)
{
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	setpgid(0, 0);
	/* one that takes another's place is forked when the head blocks signals */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || (fd != 3 && dup2(fd, 3) < 0))
		_exit(1);
	close_range(4, ~0u, 0);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	_exit(agent(3, 3));
}

static hale_status_t fork_agent(struct node *n, int *fd, struct error *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot make a socket for an agent");
	n->agent.pid = fork();
	if (n->agent.pid == 0)
		be_agent(n->node_set->config.agent, ends[1]);
	close(ends[1]);
	if (n->agent.pid < 0) {
		n->agent.pid = 0;
		close(ends[0]);
		return error_sys(err, HALE_ERR_SYSTEM, "cannot start an agent");
	}
	setpgid(n->agent.pid, n->agent.pid);
	n->agent.group = n->agent.pid;
	*fd = ends[0];
	return HALE_OK;
}

/* ---- other machines ---- */

static void put_quoted(FILE *f, const char *word)
{
	fputc('\'', f);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", f);
		else
			fputc(*word, f);
	}
	fputc('\'', f);
}

/* What runs there, as a shell's words: the same hale, by the same path. */
static char *agent_command(const struct node *n)
{
	char exe[PATH_MAX], *text = NULL;
	ssize_t k = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	exe[k > 0 ? k : 0] = '\0';
	put_quoted(f, exe);
	fputs(" agent --job ", f);
	put_quoted(f, n->node_set->config.setup.job);
	fputs(" --node ", f);
	put_quoted(f, n->name);
	if (n->node_set->adopting)
		fprintf(f, " --attach %s.%u", n->node_set->config.setup.tag, n->index);
	return fclose(f) == 0 ? text : NULL;
}

/* %h is the host, %c the command, %% a percent sign. */
static char *expand(const char *template, const char *host, const char *command)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (const char *t = template; *t; t++) {
		if (t[0] == '%' && t[1] == 'h')
			fputs(host, f);
		else if (t[0] == '%' && t[1] == 'c')
			fputs(command, f);
		else
			fputc(*t, f);
		if (t[0] == '%' && t[1] && strchr("hc%", t[1]))
			t++;
	}
	return fclose(f) == 0 ? text : NULL;
}

/* Needs no ssh to itself. */
static bool is_this_machine(const char *name)
{
	char own[HOST_NAME_MAX + 1] = "";

	gethostname(own, sizeof(own) - 1);
	return strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 ||
	       strcmp(name, "::1") == 0 || (own[0] && strcmp(name, own) == 0);
}

static void be_launcher(const struct node *n, char *command)
{
	const struct node_set_config *g = &n->node_set->config;
	char *const ssh[] = {"ssh",
			     "-T",
			     "-x",
			     "-o",
			     "BatchMode=yes",
			     "-o",
			     "ServerAliveInterval=15",
			     (char *)(uintptr_t)n->name,
			     command,
			     NULL};
	char list[JOB_NODE_NAME + 16];
	char *const srun[] = {
	    "srun",    "--nodes=1",  "--ntasks=1", "--overlap", "--quiet", "--kill-on-bad-exit=0",
	    "--mem=0", "--mpi=none", /* an agent is no rank of anybody */
	    list,      "sh",	     "-c",	   command,	NULL};
	char *const sh[] = {"sh", "-c", g->launcher ? expand(g->launcher, n->name, command) : NULL,
			    NULL};
	char *const here[] = {"sh", "-c", command, NULL};
	char *const *argv = g->launcher		       ? sh
			    : g->hosts->slurm	       ? srun
			    : is_this_machine(n->name) ? here
						       : ssh;
	sigset_t none;

	snprintf(list, sizeof(list), "--nodelist=%s", n->name);
	setpgid(0, 0);
	/* it may be the agent itself, which outlives the head then */
	if (n->node_set->config.setup.grace_ns == 0 || n->node_set->adopting)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (!g->launcher || sh[2])
		execvp(argv[0], argv);
	log_warn("cannot start '%s', which should start an agent on %s: %m", argv[0], n->name);
	_exit(127);
}

static bool hush(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	return dup2(null, STDERR_FILENO) >= 0;
}

hale_status_t node_set_launcher_start(struct node *n, int *fd, struct error *err)
{
	char *command = agent_command(n);
	int ends[2];

	if (!command || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		free(command);
		return error_sys(err, HALE_ERR_SYSTEM, "cannot make a socket for an agent");
	}
	n->agent.pid = fork();
	if (n->agent.pid > 0)
		setpgid(n->agent.pid, n->agent.pid);
	if (n->agent.pid == 0) {
		if (dup2(ends[1], 0) < 0 || dup2(ends[1], 1) < 0 ||
		    (n->attach.again_in > 0 && !hush())) /* it has said why, the first time */
			_exit(1);
		be_launcher(n, command);
	}
	free(command);
	close(ends[1]);
	*fd = ends[0];
	if (n->agent.pid > 0)
		return HALE_OK;
	n->agent.pid = 0;
	close(ends[0]);
	return error_sys(err, HALE_ERR_SYSTEM, "cannot start an agent on %s", n->name);
}

/* ---- all of them ---- */

hale_status_t node_set_session_add(struct node *n, int fd, struct error *err)
{
	n->session.message = node_set_take;
	n->session.over = node_set_session_over;
	n->session.arg = n;
	if (!session_open(&n->session, n->node_set->loop, fd, fd))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot wait for an agent");
	session_expect_greeting(&n->session);
	return HALE_OK;
}

static void stdin_spool_send(void *arg, const void *bytes, size_t len)
{
	struct node_set *c = arg;

	node_send(&c->nodes[c->placement.node_of[0]],
		  &(struct message){.type = MSG_FEED, .bytes = bytes, .len = len});
}

static void stdin_spool_send_end(void *arg)
{
	struct node_set *c = arg;

	node_send(&c->nodes[c->placement.node_of[0]], &(struct message){.type = MSG_FEED_END});
}

static void output_position_differs(void *arg, struct output_position *p)
{
	struct node_set *c = arg;

	c->handler.differs(c->handler.arg, p->rank, p->which);
}

static void passed_say(struct node_set *c, uint32_t process, int which, uint64_t at)
{
	node_send(
	    &c->nodes[c->placement.node_of[process]],
	    &(struct message){.type = MSG_PASSED, .rank = process, .value = which, .number = at});
}

/* Of replicas each keeps what none has printed for certain. */
static void passed_tell(void *arg)
{
	struct node_set *c = arg;

	uint32_t ranks = c->nranks / c->config.setup.degree;

	for (uint32_t r = 0; c->laid_out && r < ranks; r++) {
		for (int i = 0; i < 2; i++) {
			uint64_t at = c->ranks[r].out[i].handed;

			if (at == c->ranks[r].passed[i])
				continue;
			c->ranks[r].passed[i] = at;
			for (uint32_t p = r; p < c->nranks; p += ranks)
				passed_say(c, p, i + 1, at);
		}
	}
}

static void passed(void *arg, int which, uint32_t rank, uint64_t position)
{
	struct node_set *c = arg;

	c->ranks[rank].out[which - 1].handed = position;
	if (!c->passed.armed)
		loop_timer_set(c->loop, &c->passed, PASSED_SECONDS, passed_tell, c);
}

static void output_daemon_gone(void *arg)
{
	struct node_set *c = arg;

	if (c->handler.output_daemon_gone(c->handler.arg))
		for (int i = 0; i < 2; i++)
			output_writer_keep_on(&c->out[i]);
}

static void output_closed(void *arg, const struct output_writer *o)
{
	struct node_set *c = arg;

	c->handler.output_closed(c->handler.arg, o->name);
}

hale_status_t node_set_ranks_create(struct node_set *c, struct error *err)
{
	output_writer_init(&c->out[0], c->loop, STDOUT_FILENO, "stdout",
			   node_set_output_writer_drained, c);
	output_writer_init(&c->out[1], c->loop, STDERR_FILENO, "stderr",
			   node_set_output_writer_drained, c);
	for (int i = 0; i < 2; i++) {
		c->out[i].policy = c->config.on_closed;
		c->out[i].closed = output_closed;
	}
	for (int i = 0; c->config.output_daemon && i < 2; i++) {
		c->out[i].passed = passed;
		c->out[i].output_daemon_gone = output_daemon_gone;
		output_writer_keep(&c->out[i], c->config.output_daemon, i + 1);
	}
	said_begin(c->loop, &c->out[1]);
	stdin_spool_init(&c->stdin_spool, c->loop, c->config.setup.degree > 1 ? -1 : STDIN_FILENO);
	c->stdin_spool.send = stdin_spool_send;
	c->stdin_spool.send_end = stdin_spool_send_end;
	c->stdin_spool.arg = c;
	c->ranks = calloc(c->config.setup.nranks, sizeof(*c->ranks));
	if (!c->ranks)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u ranks",
				 c->config.setup.nranks);
	c->nranks = c->config.setup.nranks;
	for (uint32_t r = 0; r < c->nranks; r++) {
		for (int i = 0; i < 2; i++) {
			output_position_init(&c->ranks[r].out[i], c->loop, &c->out[i], r, i + 1,
					     c->config.tag, c->nranks == c->config.setup.degree);
			c->ranks[r].out[i].stamp = c->config.stamp;
			c->ranks[r].out[i].differs = output_position_differs;
			c->ranks[r].out[i].arg = c;
		}
	}
	if (c->config.setup.degree > 1 && !node_set_echo_create(c))
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u ranks", c->nranks);
	return HALE_OK;
}

void node_set_describe(struct node_set *c)
{
	const struct node_set_config *g = &c->config;

	for (uint32_t k = 0; k < c->count; k++) {
		struct node *n = &c->nodes[k];

		n->node_set = c;
		n->index = k;
		n->local = g->hosts == NULL;
		n->spare = k >= c->count - g->spares || k >= c->placement.nodes;
		n->session.in_fd = n->session.out_fd = -1;
		if (g->hosts) {
			snprintf(n->name, sizeof(n->name), "%s", g->hosts->at[k].name);
			n->slots = g->hosts->at[k].slots;
		} else if (c->count > 1) {
			snprintf(n->name, sizeof(n->name), "node%u", k);
		} else {
			gethostname(n->name, sizeof(n->name) - 1);
		}
	}
}

hale_status_t node_set_create(struct node_set *c, struct loop *loop,
			      const struct node_set_config *config,
			      const struct node_set_handler *handler, struct error *err)
{
	hale_status_t status = HALE_OK;

	c->config = *config;
	c->handler = *handler;
	c->loop = loop;
	c->count = config->hosts ? config->hosts->count : config->nodes + config->spares;
	c->nodes = calloc(c->count, sizeof(*c->nodes));
	if (!c->nodes) {
		c->count = 0;
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the nodes");
	}
	node_set_describe(c);
	/* a single node of this machine has nobody who could start its ranks a second time */
	if (config->hosts || c->count > 1)
		c->config.setup.lease_ns = (uint64_t)(config->node_timeout * 1e9);
	/* what agents leave behind comes to us */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (uint32_t k = 0; !config->hosts && status == HALE_OK && k < c->count; k++) {
		int fd = -1;

		status = fork_agent(&c->nodes[k], &fd, err);
		if (status == HALE_OK)
			status = node_set_session_add(&c->nodes[k], fd, err);
	}
	return status == HALE_OK ? node_set_ranks_create(c, err) : status;
}

static hale_status_t introduce(struct node *n, struct error *err)
{
	struct setup s = n->node_set->config.setup;
	struct message m = {.type = MSG_SETUP};
	void *bytes;

	s.node = n->index;
	s.name = n->name;
	if (n->local)
		s.flags = (s.flags | SETUP_LOCAL) & ~(uint32_t)SETUP_EVENTS;
	if (n->local && n->node_set->count > 1)
		s.flags |= SETUP_TOGETHER;
	if (n->agent.heir)
		s.flags |= SETUP_HEIR;
	if (!n->local || n->node_set->count > 1)
		s.flags |= SETUP_NAMED;
	bytes = setup_write(&s, &m.len);
	if (!bytes)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	m.bytes = bytes;
	session_send(&n->session, &m);
	free(bytes);
	return HALE_OK;
}

hale_status_t node_set_start(struct node_set *c, struct error *err)
{
	hale_status_t status = HALE_OK;

	for (uint32_t k = 0; status == HALE_OK && k < c->count; k++) {
		struct node *n = &c->nodes[k];
		int fd = -1;

		if (!n->local) {
			status = node_set_launcher_start(n, &fd, err);
			if (status == HALE_OK)
				status = node_set_session_add(n, fd, err);
		}
		if (status == HALE_OK)
			status = introduce(n, err);
	}
	return status;
}

/* ---- once more ---- */

static bool can_renew(const struct node *n)
{
	return n->local && !n->spare && n->state == NODE_LOST;
}

bool node_set_renewable(const struct node_set *c)
{
	for (uint32_t k = 0; k < c->count; k++)
		if (can_renew(&c->nodes[k]))
			return true;
	return false;
}

/* What the lost one had said and was told is over. */
static hale_status_t renew(struct node *n, struct error *err)
{
	int fd = -1;
	hale_status_t status;

	n->end.bye = n->end.silent = n->end.gone = n->paused = n->warm.told = false;
	n->end.proven = false;
	n->asks.clearing = n->asks.checking = n->ckpt.idle = n->ckpt.disk = false;
	n->attach.generation = n->asks.looked = n->warm.standing = 0;
	n->lease.granted_at = n->lease.asked = n->ckpt.bytes = 0;
	n->taken[0] = n->taken[1] = 0;
	n->end.why[0] = n->warm.stands[0] = '\0';
	status = fork_agent(n, &fd, err);
	if (status == HALE_OK)
		status = node_set_session_add(n, fd, err);
	if (status == HALE_OK)
		status = introduce(n, err);
	if (status == HALE_OK)
		n->state = NODE_READY;
	return status;
}

/* May processes get ids that the job had before? Nobody may be left who would kill by these ids. */
static bool all_proven(const struct node_set *c)
{
	for (uint32_t k = 0; k < c->count; k++)
		if (!c->nodes[k].end.proven)
			return false;
	return true;
}

hale_status_t node_set_renew(struct node_set *c, struct error *err)
{
	bool heirs = all_proven(c);
	struct setup *s = &c->config.setup;
	static const unsigned char no_secret[SEGMENT_SECRET];
	hale_status_t status = HALE_OK;

	/* a head that has taken the job over has started no agent before */
	if (!s->environ)
		s->environ = environ;
	if (memcmp(s->secret, no_secret, sizeof(no_secret)) == 0 &&
	    getrandom(s->secret, sizeof(s->secret), 0) != (ssize_t)sizeof(s->secret))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot make a secret for the ranks");
	for (uint32_t k = 0; status == HALE_OK && k < c->count; k++)
		if (can_renew(&c->nodes[k])) {
			c->nodes[k].agent.heir = heirs;
			status = renew(&c->nodes[k], err);
		}
	if (status == HALE_OK)
		node_set_tell_machines(c);
	return status;
}

/* ---- leaving ---- */

bool node_set_child(struct node_set *c, pid_t pid, int status)
{
	for (uint32_t k = 0; k < c->count; k++) {
		if (c->nodes[k].agent.pid != pid)
			continue;
		c->nodes[k].agent.pid = 0;
		c->nodes[k].agent.status = status;
		return true;
	}
	return false;
}

/* pid is 0 afterwards, unless it is still there then. */
static void wait_for(struct node *n, double until)
{
	struct pollfd p = {.fd = n->agent.pid > 0 ? (int)syscall(SYS_pidfd_open, n->agent.pid, 0)
						  : -1,
			   .events = POLLIN};
	double left = until - clock_seconds();

	if (p.fd >= 0) {
		poll(&p, 1, left > 0 ? (int)(left * 1e3) + 1 : 0);
		close(p.fd);
	}
	if (n->agent.pid > 0 && waitpid(n->agent.pid, &n->agent.status, WNOHANG) != 0)
		n->agent.pid = 0;
}

void node_set_launcher_failed(struct node *n)
{
	char why[sizeof(n->end.why)];

	wait_for(n, clock_seconds() + 1);
	snprintf(why, sizeof(why), "%s", n->end.why);
	if (n->agent.pid == 0 && WIFEXITED(n->agent.status))
		snprintf(n->end.why, sizeof(n->end.why),
			 "%.110s; its launcher has ended with status %d: %s", why,
			 WEXITSTATUS(n->agent.status),
			 WEXITSTATUS(n->agent.status) == 127
			     ? "is hale installed there, under the same path?"
			     : "is it up, and can commands be started there?");
}

static void let_go(struct node_set *c)
{
	double until;

	c->leaving = true;
	for (uint32_t k = 0; k < c->count; k++) {
		session_send(&c->nodes[k].session, &(struct message){.type = MSG_QUIT});
		session_flush(&c->nodes[k].session, 1);
	}
	until = clock_seconds() + LEAVE_SECONDS;
	for (uint32_t k = 0; k < c->count; k++) {
		struct node *n = &c->nodes[k];

		wait_for(n, until);
		if (n->agent.pid == 0)
			continue;
		kill(-n->agent.pid, SIGKILL);
		wait_for(n, clock_seconds() + 1);
	}
}

void node_set_destroy(struct node_set *c)
{
	if (!c->loop) /* never created */
		return;
	for (uint32_t r = 0; c->ranks && !c->abandoned && r < c->nranks; r++)
		for (int i = 0; i < 2; i++)
			output_position_end(&c->ranks[r].out[i]);
	if (!c->abandoned)
		let_go(c);
	loop_timer_clear(c->loop, &c->passed);
	for (uint32_t r = 0; c->ranks && r < c->nranks; r++) {
		node_set_order_done(&c->ranks[r]);
		for (int i = 0; i < 2; i++)
			output_position_fini(&c->ranks[r].out[i]);
	}
	node_set_echo_destroy(c);
	if (c->ranks) {
		stdin_spool_fini(&c->stdin_spool);
		said_end();
		for (int i = 0; i < 2; i++) {
			if (!c->abandoned)
				output_writer_flush(&c->out[i]);
			c->output_lost = c->output_lost || c->out[i].lost;
			output_writer_fini(&c->out[i]);
		}
	}
	for (uint32_t k = 0; k < c->count; k++) {
		loop_timer_clear(c->loop, &c->nodes[k].lease.lost);
		loop_timer_clear(c->loop, &c->nodes[k].attach.again);
		session_close(&c->nodes[k].session);
		free(c->nodes[k].asks.files);
	}
	for (struct node_set_look *l = c->looks.list, *next; l; l = next) {
		next = l->next;
		free(l);
	}
	c->looks.list = NULL;
	free(c->nodes);
	free(c->ranks);
	placement_fini(&c->placement);
	c->nodes = NULL;
	c->ranks = NULL;
	c->count = 0;
}
