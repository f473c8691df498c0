/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cpus.h"
#include "agent/agent_private.h"
#include "base/procstat.h"
#include "report/profile.h"

#define CLEAR_SECONDS	  0.002
#define LEFT_SECONDS	  3.0
#define LEFT_LOOK_SECONDS 0.01
#define FLUSH_SECONDS	  1.0

/* ---- the end ---- */

void agent_leave_if_clear(void *arg)
{
	struct agent *a = arg;

	a->end.waiting = BOOK_LEAVING;
	agent_reap(a);
	if (agent_clear(a) || agent_clear_all(a)) {
		/* no head has taken leave: nobody else takes its half of a checkpoint away */
		if (a->end.status != 0)
			agent_ckpt_forget(a);
		loop_stop(&a->loop);
	} else {
		loop_timer_set(&a->loop, &a->end.clear, CLEAR_SECONDS, agent_leave_when_clear, a);
	}
}

/* Ranks that stand still die without another instruction: they may be at work elsewhere by now. */
void agent_leave_job(struct agent *a)
{
	agent_signal_all(a, SIGKILL);
	agent_hang_stop(a);
	agent_lease_stop(a);
	agent_leave_when_clear(a);
}

void agent_head_lost(void *arg, const char *why)
{
	struct agent *a = arg;

	if (agent_wait_for_head(a))
		return;
	a->end.status = 1;
	if (a->ready)
		log_info("the head is gone (%s): the ranks of this node are ended", why);
	agent_leave(a);
}

/* The word of it comes after the deed: the head may take it for proof. */
void agent_end_by_fence(struct agent *a, const char *why)
{
	log_warn("%s: the ranks of this node are ended", why);
	a->end.status = 1;
	agent_lease_stop(a);
	/* the ends of ranks are no news any more, but a part of the node's */
	supervisor_fence(&a->supervisor);
	while (!supervisor_kill_all(a->supervisor.book))
		;
	agent_reap(a);
	for (uint32_t r = 0; a->ranks && r < a->setup.nranks; r++)
		a->ranks[r].group = 0; /* zombies, perhaps */
	agent_send(a, &(struct message){.type = MSG_BYE, .text = why});
	agent_written(a);
	if (durable_session_flush(&a->link, FLUSH_SECONDS))
		durable_session_linger(&a->link, FLUSH_SECONDS);
	loop_stop(&a->loop);
}

/* ---- what the head says ---- */

/* Containers and network namespaces of one machine have one kernel, which was booted once. */
static uint32_t machine(void)
{
	uint32_t hash = 2166136261u;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f)
		return 0;
	for (int c; (c = fgetc(f)) != EOF;)
		hash = (hash ^ (uint32_t)c) * 16777619u;
	fclose(f);
	return hash;
}

/* What follows from the description for any agent of the node. */
hale_status_t agent_begin_job(struct agent *a, struct error *err)
{
	const struct setup *s = &a->setup;
	char prefix[32];

	if (s->flags & SETUP_NAMED) {
		snprintf(prefix, sizeof(prefix), "%.28s: ", s->name);
		log_set_prefix(prefix);
	}
	if (s->nranks == 0 || s->nranks > JOB_RANKS_MAX || !s->argv[0])
		return error_set(err, HALE_ERR_PROTOCOL,
				 "the head's description of the job is none");
	snprintf(a->supervisor.book->job, sizeof(a->supervisor.book->job), "%s", s->job);
	if (!(s->flags & SETUP_LOCAL) && !setup_localize(&a->setup, environ))
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the environment");
	return agent_ranks_create(a, err);
}

static hale_status_t begin(struct agent *a, const struct message *m, struct error *err)
{
	const struct setup *s = &a->setup;
	struct book *b = a->supervisor.book;
	hale_status_t status = agent_begin_again(a, err);

	if (status != HALE_OK)
		return status;
	a->heads.epoch = s->epoch;
	memcpy(b->setup, m->bytes, m->len);
	b->setup_len = m->len;
	/* before it is known that there is a job */
	atomic_store(&b->leased, s->lease_ns != 0);
	atomic_store(&b->count, s->nranks);
	if (!(s->flags & SETUP_ADOPT))
		atomic_store(&b->adopt, 0);
	agent_kept_open(a);
	status = agent_heads_listen(a, err);
	if (status == HALE_OK)
		status = agent_listen(a, err);
	return status == HALE_OK ? agent_copies_start(a, err) : status;
}

static void take_setup(struct agent *a, const struct message *m)
{
	struct error err;
	char host[JOB_NODE_NAME] = "";

	if (a->ready || !setup_read(m->bytes, m->len, &a->setup)) {
		error_set(&err, HALE_ERR_PROTOCOL, "the head's description of the job is none");
		agent_failed(a, &err);
		return;
	}
	a->ready = true;
	if (begin(a, m, &err) != HALE_OK) {
		agent_failed(a, &err);
		return;
	}
	gethostname(host, sizeof(host) - 1);
	if (a->setup.flags & SETUP_EVENTS)
		agent_events_start(a);
	agent_lease_start(a);
	agent_hang_start(a);
	agent_send(a, &(struct message){.type = MSG_READY,
					.id = machine(),
					.value = (int32_t)getpid(),
					.number = cpus_allowed(),
					.text = host});
}

static void take_layout(struct agent *a, const struct message *m)
{
	struct error err;
	uint32_t *node_of = malloc(m->len ? m->len : 1); /* aligned */

	if (!node_of || m->len != a->setup.nranks * sizeof(*node_of)) {
		error_set(&err, HALE_ERR_PROTOCOL, "the head's layout is none");
		agent_failed(a, &err);
	} else {
		memcpy(node_of, m->bytes, m->len);
		if (agent_layout(a, m->id, node_of, &err) != HALE_OK)
			agent_failed(a, &err);
	}
	free(node_of);
}

static void take_signal(struct agent *a, const struct message *m)
{
	/* what lets them go on is a lease, and not a word that may have been on its way for long */
	if (m->value == SIGCONT && a->lease.paused)
		return;
	if (m->rank == MESSAGE_ALL)
		agent_signal_all(a, m->value);
	else if (m->rank < a->setup.nranks && m->flags == SIGNAL_PROGRAM)
		agent_signal_program(a, m->rank, m->value);
	else if (m->rank < a->setup.nranks)
		agent_signal(a, m->rank, m->value);
}

/* The job has ended well. What its ranks have started in the background may be about to end by
 * itself, and tidy up meanwhile, as R's workers remove their folders. True: it may still run. */
static bool is_patient(struct agent *a)
{
	if (a->end.patient_until == 0)
		return false;
	if (!agent_has_left_behind(a)) {
		a->end.patient_until = 0;
		return false;
	}
	if (clock_seconds() < a->end.patient_until)
		return true;
	log_warn("what the program has started in the background still runs %.0f s after its end; "
		 "it is ended, too",
		 LEFT_SECONDS);
	a->end.patient_until = 0;
	return false;
}

void agent_clear_more(void *arg)
{
	struct agent *a = arg;

	a->end.waiting = BOOK_CLEARING;
	agent_reap(a);
	if (is_patient(a)) {
		loop_timer_set(&a->loop, &a->end.clear, LEFT_LOOK_SECONDS, agent_clear_again, a);
		return;
	}
	if (agent_clear_all(a)) {
		a->end.waiting = BOOK_NOTHING;
		agent_send(a, &(struct message){.type = MSG_CLEARED, .id = a->end.clear_id});
	} else {
		loop_timer_set(&a->loop, &a->end.clear, CLEAR_SECONDS, agent_clear_again, a);
	}
}

static void take_clear(struct agent *a, const struct message *m)
{
	a->end.clear_id = m->id;
	a->end.patient_until = m->value ? clock_seconds() + LEFT_SECONDS : 0;
	agent_move_drop(a);
	agent_ckpt_over(a);
	agent_clear_again(a);
}

static void look_at(struct agent *a, uint32_t rank, struct profile_process *p)
{
	const struct rank_meter *m = segment_meter(a->view.segment, rank);
	struct procstat s;

	p->process = rank;
	memcpy(p->inside, m->inside, sizeof(p->inside) - 1);
	if (procstat_read(a->ranks[rank].member ? a->ranks[rank].member : a->ranks[rank].pid, &s)) {
		p->cpu_seconds = s.cpu_seconds;
		p->memory = s.memory;
	}
}

static void take_look(struct agent *a, const struct message *m)
{
	struct profile_answer fewer = {0}, *p = &fewer, *room = NULL;
	struct message answer = {.type = MSG_LOOKED, .id = m->id, .len = sizeof(*p)};
	uint32_t count = 0;

	if (m->value)
		room = calloc(1, sizeof(*p) + a->setup.nranks * sizeof(p->each[0]));
	if (room)
		p = room;
	if (a->view.segment) {
		profile_add_node(&p->all, a->view.segment, a->setup.nranks);
		answer.number = profile_progress(a->view.segment, a->setup.nranks);
		for (uint32_t r = 0; room && r < a->setup.nranks; r++)
			if (agent_has(a, r))
				look_at(a, r, &p->each[count++]);
	}
	answer.bytes = p;
	answer.len += count * sizeof(p->each[0]);
	agent_send(a, &answer);
	free(room);
}

static void take_taken(struct agent *a, const struct message *m)
{
	struct stream_window *w;

	if (m->value < 1 || m->value > 2)
		return;
	w = &a->streams.window[m->value - 1];
	w->out -= m->number < w->out ? m->number : w->out;
	for (uint32_t r = 0; !stream_window_full(w) && r < a->setup.nranks; r++)
		if (!agent_is_copy(a, r))
			stream_resume(&a->ranks[r].out[m->value - 1]);
}

/* The address of a rank that lives elsewhere. */
static void take_address(struct agent *a, const struct message *m)
{
	if (!a->view.segment || m->rank >= a->setup.nranks || agent_has(a, m->rank) ||
	    m->id != a->view.generation || m->len > SEGMENT_ADDRESS_MAX)
		return;
	segment_address_put(a->view.segment, m->rank, m->bytes, (uint32_t)m->len);
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (agent_has(a, r))
			mailbox_ring(agent_mailbox(a, r));
}

static void take_quit(struct agent *a)
{
	a->end.status = 0;
	agent_leave(a);
}

/* False: m is not of a checkpoint. */
static bool take_ckpt(struct agent *a, const struct message *m)
{
	switch (m->type) {
	case MSG_CHECK:
		agent_ckpt_check(a, m->id, m->value != 0);
		return true;
	case MSG_CKPT_ON:
		agent_ckpt_on(a, m->id, (uint32_t)m->value);
		return true;
	case MSG_BACK:
		agent_ckpt_back(a, m->id);
		return true;
	case MSG_CKPT:
		agent_ckpt_start(a, m);
		return true;
	case MSG_CKPT_CANCEL:
		agent_ckpt_cancel(a, m->id);
		return true;
	case MSG_CKPT_OVER:
		agent_ckpt_over(a);
		return true;
	case MSG_CKPT_REFUSE:
		agent_ckpt_refuse(a);
		return true;
	default:
		return false;
	}
}

void agent_take(void *arg, const struct message *m)
{
	struct agent *a = arg;
	struct error err;

	if (m->type == MSG_SETUP) {
		take_setup(a, m);
		return;
	}
	if (m->type == MSG_QUIT || !a->ranks) {
		take_quit(a);
		return;
	}
	switch (m->type) {
	case MSG_VIEW:
		agent_view(a, m);
		break;
	case MSG_MACHINES:
		agent_machines(a, m);
		break;
	case MSG_LAYOUT:
		take_layout(a, m);
		break;
	case MSG_SPAWN:
		agent_spawn(a, m);
		break;
	case MSG_SIGNAL:
		take_signal(a, m);
		break;
	case MSG_CLEAR:
		take_clear(a, m);
		break;
	case MSG_LOOK:
		take_look(a, m);
		break;
	case MSG_INJECT:
		agent_inject(a, m);
		break;
	case MSG_TASK_DUE:
		agent_task_due(a, m);
		break;
	case MSG_FEED:
		stdin_sink_put(&a->streams.stdin_sink, m->bytes, m->len);
		break;
	case MSG_FEED_END:
		stdin_sink_finish(&a->streams.stdin_sink);
		break;
	case MSG_TAKEN:
		take_taken(a, m);
		break;
	case MSG_ADDRESS:
		take_address(a, m);
		break;
	case MSG_PASSED:
		agent_kept_passed(a, m);
		break;
	case MSG_LEASE:
		agent_lease_granted(a, m->number);
		break;
	case MSG_LET_GO:
		agent_reserve_end(a);
		break;
	case MSG_PAUSE:
		agent_pause(a, m->value != 0);
		break;
	case MSG_EVENTS:
	case MSG_EVENTS_TAKEN:
		agent_events_take(a, m);
		break;
	default:
		if (take_ckpt(a, m) || agent_move_take(a, m) || agent_copies_take(a, m) ||
		    agent_warm_take(a, m))
			break;
		error_set(&err, HALE_ERR_PROTOCOL,
			  "the head has sent what is not for an agent (%s)", message_name(m->type));
		agent_failed(a, &err);
		break;
	}
}

/* ---- life ---- */

static void fed(void *arg, size_t len)
{
	agent_send(arg, &(struct message){.type = MSG_FED, .number = len});
}

static void stdin_spool_closed(void *arg)
{
	agent_send(arg, &(struct message){.type = MSG_FEED_CLOSED});
}

static void input_dropped(void *arg)
{
	agent_drop_later(arg, HOLD_INPUT, 0);
}

static void signals_ready(void *arg, uint32_t events)
{
	struct agent *a = arg;
	struct signalfd_siginfo info;

	if (read(a->signal_source.fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		agent_reap(a);
}

static bool signals_start(struct agent *a)
{
	sigset_t set;
	int fd;

	/* what hale run has blocked, or a launcher, is not for us */
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigaddset(&set, SIGCHLD);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a limit on files (ulimit -f) is an error like others */
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd >= 0 && loop_add(&a->loop, &a->signal_source, fd, EPOLLIN, signals_ready, a);
}

static void destroy(struct agent *a)
{
	agent_move_drop(a);
	agent_events_stop(a);
	agent_copies_stop(a);
	agent_warm_stop(a);
	agent_heads_close(a);
	agent_conns_close(a);
	if (a->door.listener >= 0)
		close(a->door.listener);
	agent_kept_close(a);
	agent_ranks_destroy(a);
	durable_session_close(&a->link);
	setup_fini(&a->setup);
	loop_remove(&a->loop, &a->ward_source);
	free(a->drops.list);
	if (a->signal_source.fd >= 0)
		close(a->signal_source.fd);
	loop_fini(&a->loop);
}

static void message_taken(void *arg)
{
	struct agent *a = arg;

	a->done.frames++;
	agent_written(a);
}

static void init(struct agent *a, struct supervisor *g)
{
	a->up = &agent_calls;
	a->supervisor = *g;
	a->heads.listener = a->heads.listening.fd = -1;
	a->door.listener = a->move.listener = a->move.listening.fd = a->view.segment_fd = -1;
	a->signal_source.fd = a->ward_source.fd = a->copies.source.fd = -1;
	a->link.in_fd = a->link.out_fd = a->link.in.fd = a->link.out.fd = -1;
	a->view.slot = a->move.coming.slot = a->move.old.slot = -1;
	a->link.book = g->book;
	a->link.message = agent_take;
	a->link.taken = message_taken;
	a->link.over = agent_head_lost;
	a->link.arg = a;
	agent_warm_init(a);
	stdin_sink_init(&a->streams.stdin_sink, &a->loop);
	a->streams.stdin_sink.book = g->book;
	a->streams.stdin_sink.feeds = &a->done.feeds;
	a->streams.stdin_sink.taken = fed;
	a->streams.stdin_sink.closed = stdin_spool_closed;
	a->streams.stdin_sink.dropped = input_dropped;
	a->streams.stdin_sink.arg = a;
	a->loop.after = agent_written;
	a->loop.after_arg = a;
}

bool agent_begin_first(struct agent *a)
{
	int in = supervisor_claim(&a->supervisor, HOLD_LINK_IN, 0, NULL);
	int out = supervisor_claim(&a->supervisor, HOLD_LINK_OUT, 0, NULL);

	supervisor_claimed(&a->supervisor);
	if (in < 0 || out < 0 ||
	    !durable_session_open(&a->link, &a->loop, a->supervisor.book, in, out))
		return false;
	agent_ward_start(a);
	durable_session_greet(&a->link);
	agent_written(a);
	return true;
}

static int run(struct supervisor *g)
{
	struct agent *a = calloc(1, sizeof(*a));
	struct error err = {HALE_ERR_SYSTEM, "it can't wait for its children"};
	int status;

	if (!a || !loop_init(&a->loop)) {
		log_warn("out of memory for an agent");
		free(a);
		return 1;
	}
	init(a, g);
	if (g->successor && !(signals_start(a) && agent_adopt(a, &err))) {
		log_warn("the agent of this node has died, and another one can't go on: %s",
			 err.text);
		return 1; /* the supervisor ends what is there */
	}
	if (g->successor || (signals_start(a) && agent_begin(a))) {
		loop_run(&a->loop);
	} else {
		log_warn("an agent can't wait for its head: %m");
		a->end.status = 1;
	}
	status = a->end.status;
	supervisor_done(&a->supervisor, status);
	destroy(a);
	free(a);
	return status;
}

int agent_run(int in_fd, int out_fd)
{
	return supervisor_run(in_fd, out_fd, run, agent_bye);
}
