/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's side of the control socket. */
#include "control/control.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "head/head.h"
#include "head/control/control_serve.h"
#include "head/migration/migrate.h"
#include "head/watch/watch.h"
#include "wire/session/peer.h"

enum { CLIENTS_MAX = 64 };

struct control_serve_client {
	struct control_server *control;
	struct loop_source source;
	char request[CONTROL_REQUEST_MAX];
	size_t len;
	bool waits;	/* for the checkpoint */
	uint32_t moves; /* waits for this migration; 0: for none */
	uint32_t looks; /* for this look, for the profile; 0: not */
	enum { WANTS_PROFILE, WANTS_REPORT, WANTS_PROCESSES } wants; /* of what is looked at */
	struct control_serve_client *next;
};

struct control_server {
	struct head *head;
	int listener;
	struct loop_source source;
	struct control_serve_client *clients;
	size_t count;
};

/* Whoever has asked for a migration doesn't wait for it any more. */
static void stop_waiting(struct control_serve_client *c)
{
	uint32_t id = c->moves;

	c->moves = 0;
	for (const struct control_serve_client *o = c->control->clients; o; o = o->next)
		if (o->moves == id)
			return;
	if (migrate_withdraw(c->control->head, MIGRATE_USER, id))
		log_info("nobody waits for a migration any more, so it doesn't begin");
}

static void client_close(struct control_serve_client *c)
{
	struct control_server *k = c->control;
	int fd = c->source.fd;

	if (c->moves)
		stop_waiting(c);

	loop_remove(&k->head->loop, &c->source);
	close(fd);
	for (struct control_serve_client **p = &k->clients; *p; p = &(*p)->next) {
		if (*p == c) {
			*p = c->next;
			break;
		}
	}
	k->count--;
	free(c);
}

/* Answers fit into the socket's buffer but for jobs of thousands of ranks; whoever takes more
 * than a second to read one has lost interest, however little he takes at a time. */
static void answer(struct control_serve_client *c, struct json_out *j)
{
	double until = clock_seconds() + 1;
	size_t done = 0;

	while (j->text && done < j->len && clock_seconds() < until) {
		ssize_t n = send(c->source.fd, j->text + done, j->len - done, MSG_NOSIGNAL);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	json_out_fini(j);
	client_close(c);
}

static void answer_text(struct control_serve_client *c, const char *key, const char *text)
{
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	if (key)
		json_string(&j, key, text);
	json_close_object(&j);
	answer(c, &j);
}

/* ---- requests ---- */

static const char *rank_state(const struct head *h, uint32_t rank)
{
	const struct node_set_rank *r = &h->node_set.ranks[rank];
	const struct checkpoint_rank *k = &h->ckpt.ranks[rank];

	if (replicas_is_lost(h, rank))
		return replicas_is_wanted(h, rank) ? "lost" : "absent";
	if (h->ranks[rank].ended)
		return "ended";
	if (h->state == JOB_CLEARING)
		return "down";
	if (h->state == JOB_RESTORING)
		return r->met ? "running" : "restoring";
	if (r->finalized)
		return "finalized";
	if (h->ckpt.phase == CKPT_CAPTURING && k->asked && !k->resumed)
		return r->halted ? "stopped" : "checkpointing";
	return r->initialized || h->o->no_mpi ? "running" : "starting";
}

static void print_rank(const struct head *h, uint32_t rank, struct json_out *j)
{
	const struct node_set_rank *r = &h->node_set.ranks[rank];

	json_open_object(j, NULL);
	uint32_t logical = living_rank_of(rank, h->view.nranks);
	uint32_t slot = living_slot_of(rank, h->view.nranks);

	json_uint(j, "rank", logical);
	json_uint(j, "slot", slot);
	if (h->shadows.of)
		shadows_print(h, rank, j);
	else if (h->view.audits)
		json_string(j, "role", audit_role(h, rank));
	else
		json_string(j, "role",
			    living_leader(&h->view, logical) == (int)slot ? "leader" : "replica");
	json_string(j, "node", node_set_node_of(&h->node_set, rank)->name);
	json_int(j, "pid", r->member > 0 ? r->member : r->pid);
	json_string(j, "state", rank_state(h, rank));
	json_close_object(j);
}

/* How fast memory changes, each page counted once: what an incremental checkpoint has, by the time
 * since the one that it builds on. Not of compressed ones, whose size says something else. */
static void print_changes(const struct report *r, const struct report_checkpoint *c,
			  struct json_out *j)
{
	for (size_t i = 0; i < r->checkpoint_count; i++) {
		const struct report_checkpoint *base = &r->checkpoints[i];

		if (c->base && base->id == c->base && !c->compressed &&
		    c->at_seconds > base->at_seconds)
			json_double(j, "dirty_bytes_per_second",
				    (double)c->bytes / (c->at_seconds - base->at_seconds));
	}
}

/* Size and age of the newest checkpoint. */
static void print_newest(const struct head *h, struct json_out *j)
{
	const struct report *r = &h->report;

	for (size_t i = r->checkpoint_count; i-- > 0;) {
		const struct report_checkpoint *c = &r->checkpoints[i];

		if (!c->complete)
			continue;
		json_uint(j, "checkpoint_bytes", c->bytes);
		json_double(j, "checkpoint_age_seconds",
			    head_seconds(h) - c->at_seconds - c->seconds);
		print_changes(r, c, j);
		return;
	}
}

static void answer_ps(struct control_serve_client *c)
{
	const struct head *h = c->control->head;
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "id", h->id.job);
	json_string(&j, "program", h->program->path);
	json_string(&j, "state", head_state_name(h));
	json_open_array(&j, "ranks");
	for (uint32_t r = 0; r < h->nranks; r++)
		if (!shadows_is_room(h, r))
			print_rank(h, r, &j);
	json_close_array(&j);
	if (h->shadows.of) {
		energy_turn(c->control->head);
		const struct report_energy e = energy_report(h);
		report_print_energy(&e, &j);
	}
	json_int(&j, "pid", getpid());
	json_double(&j, "seconds", head_seconds(h));
	json_uint(&j, "restarts", h->report.restarts);
	json_uint(&j, "checkpoint", h->ckpt.last_id);
	print_newest(h, &j);
	json_uint(&j, "epoch", h->succession.epoch);
	json_string(&j, "folder", h->files.is_open ? h->files.store.job_folder : "");
	report_print_unprotected(&h->report, &j);
	watch_print(h, &j);
	json_close_object(&j);
	answer(c, &j);
}

static void answer_metrics(struct control_serve_client *c)
{
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	control_print_metrics(c->control->head, &j);
	json_close_object(&j);
	answer(c, &j);
}

/* As --report would write it if the job ended now, but for its exit status. */
static void answer_report(struct control_serve_client *c)
{
	const struct head *h = c->control->head;
	struct json_out j;

	energy_into_report(c->control->head);
	json_out_init(&j);
	report_print(&h->report, 0, clock_seconds() - h->began, &j);
	answer(c, &j);
}

/* What each process does now; those whose node has not answered are missing. */
static void answer_processes(struct control_serve_client *c)
{
	const struct node_set *n = &c->control->head->node_set;
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_open_array(&j, "processes");
	for (uint32_t r = 0; c->looks && r < n->nranks; r++) {
		const struct profile_process *p = &n->ranks[r].seen;

		if (n->ranks[r].seen_by < c->looks)
			continue;
		json_open_object(&j, NULL);
		json_uint(&j, "process", r);
		json_string(&j, "inside", p->inside);
		json_double(&j, "cpu_seconds", p->cpu_seconds);
		json_uint(&j, "memory", p->memory);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_close_object(&j);
	answer(c, &j);
}

static void answer_profile(struct control_serve_client *c)
{
	const struct head *h = c->control->head;
	struct json_out j;

	if (c->wants == WANTS_REPORT) {
		answer_report(c);
		return;
	}
	if (c->wants == WANTS_PROCESSES) {
		answer_processes(c);
		return;
	}
	if (h->report.profile.ranks == 0) {
		answer_text(c, "error", "no rank has called MPI_Init yet, so nothing is measured");
		return;
	}
	json_out_init(&j);
	report_print_profile(&h->report, NULL, clock_seconds() - h->began, &j);
	answer(c, &j);
}

static void ask_profile(struct control_serve_client *c, const char *op)
{
	struct head *h = c->control->head;

	c->wants = strcmp(op, "report") == 0	  ? WANTS_REPORT
		   : strcmp(op, "processes") == 0 ? WANTS_PROCESSES
						  : WANTS_PROFILE;
	c->looks =
	    h->node_set.laid_out ? node_set_look(&h->node_set, c->wants == WANTS_PROCESSES) : 0;
	if (c->looks == 0)
		answer_profile(c);
}

void control_looked(struct head *h, uint32_t look)
{
	struct control_serve_client *next;

	for (struct control_serve_client *c = h->control ? h->control->clients : NULL; c;
	     c = next) {
		next = c->next;
		if (c->looks == look)
			answer_profile(c);
	}
}

static void answer_nodes(struct control_serve_client *c)
{
	const struct node_set *node_set = &c->control->head->node_set;
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "id", c->control->head->id.job);
	json_open_array(&j, "nodes");
	for (uint32_t k = 0; k < node_set->count; k++) {
		const struct node *n = &node_set->nodes[k];

		json_open_object(&j, NULL);
		json_string(&j, "node", n->name);
		json_string(&j, "state", leave_node_state(c->control->head, n));
		json_bool(&j, "usable", !n->unusable);
		json_bool(&j, "waits", migrate_waits(c->control->head, k) != 0);
		json_string(&j, "unfit", n->state == NODE_SPARE ? n->warm.unfit : "");
		json_uint(&j, "standing", n->state == NODE_SPARE ? n->warm.standing : 0);
		json_uint(&j, "warm_bytes", n->state == NODE_SPARE ? n->warm.bytes : 0);
		json_uint(&j, "ranks", node_set_ranks_on(node_set, n));
		json_uint(&j, "slots", n->slots);
		json_uint(&j, "cores", n->cores);
		json_string(&j, "host", n->host);
		json_int(&j, "pid", n->agent.pid);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_close_object(&j);
	answer(c, &j);
}

static void answer_ckpt(struct control_serve_client *c)
{
	struct error err;

	c->waits = true;
	/* a refusal found out at once has answered and closed c already */
	if (checkpoint_request(c->control->head, ORIGIN_USER, &err) != HALE_OK)
		answer_text(c, "error", err.text);
}

static void answer_inject(struct control_serve_client *c, const struct json_value *request)
{
	const char *text = json_text(json_get(request, "fault"), "");
	struct fault f;
	struct error err;
	hale_status_t status;

	if (strncmp(text, "due:", 4) == 0)
		status = inject_task_due(c->control->head, text + 4, &err);
	else if ((status = options_parse_fault(text, &f, &err)) == HALE_OK)
		status = inject_add(c->control->head, &f, &err);
	if (status != HALE_OK)
		answer_text(c, "error", err.text);
	else
		answer_text(c, NULL, NULL);
}

static void answer_migrate(struct control_serve_client *c, const struct json_value *request)
{
	const char *from = json_text(json_get(request, "from"), "");
	const char *to = json_text(json_get(request, "to"), NULL);
	const char *via = json_text(json_get(request, "via"), NULL);
	struct error err;

	if (via && !*via)
		via = c->control->head->o->ckpt_dir;
	if (migrate_request(c->control->head, MIGRATE_USER, from, to, via, &c->moves, &err) !=
	    HALE_OK)
		answer_text(c, "error", err.text);
}

static void answer_replicate(struct control_serve_client *c, const struct json_value *request)
{
	int64_t to = json_number_int(json_get(request, "to"), 0);
	struct error err;

	if (clone_degree(c->control->head, to > 0 ? (uint32_t)to : 0, &err) != HALE_OK)
		answer_text(c, "error", err.text);
	else
		answer_text(c, NULL, NULL);
}

static void answer_clone(struct control_serve_client *c, const struct json_value *request)
{
	int64_t rank = json_number_int(json_get(request, "rank"), -1);
	const char *name = json_text(json_get(request, "to"), NULL);
	struct head *h = c->control->head;
	const struct node *to = name ? migrate_node(h, name) : NULL;
	struct error err;
	struct json_out j;
	uint32_t slot;

	if (name && !to) {
		error_set(&err, HALE_ERR_ARGUMENT,
			  "there is no node %s in this job; `hale nodes` lists them", name);
		answer_text(c, "error", err.text);
	} else if (clone_rank(h, rank < 0 ? UINT32_MAX : (uint32_t)rank, to, &slot, &err) !=
		   HALE_OK) {
		answer_text(c, "error", err.text);
	} else {
		json_out_init(&j);
		json_open_object(&j, NULL);
		json_uint(&j, "slot", slot);
		json_close_object(&j);
		answer(c, &j);
	}
}

static void answer_migrated(struct control_serve_client *c, const struct report_migration *m)
{
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	report_print_migration(m, &j);
	json_close_object(&j);
	answer(c, &j);
}

void control_migrated(struct head *h, uint32_t id, const struct report_migration *m,
		      const struct error *why)
{
	struct control_serve_client *next;

	for (struct control_serve_client *c = h->control ? h->control->clients : NULL; c;
	     c = next) {
		next = c->next;
		if (id == 0 || c->moves != id)
			continue;
		c->moves = 0;
		if (m)
			answer_migrated(c, m);
		else
			answer_text(c, "error", why->text);
	}
}

static void take_request(struct control_serve_client *c)
{
	struct json_value *v = json_parse(c->request, c->len);
	const char *op = json_text(json_get(v, "op"), "");

	if (strcmp(op, "ps") == 0)
		answer_ps(c);
	else if (strcmp(op, "nodes") == 0)
		answer_nodes(c);
	else if (strcmp(op, "metrics") == 0)
		answer_metrics(c);
	else if (strcmp(op, "profile") == 0 || strcmp(op, "report") == 0 ||
		 strcmp(op, "processes") == 0)
		ask_profile(c, op);
	else if (strcmp(op, "ckpt") == 0)
		answer_ckpt(c);
	else if (strcmp(op, "migrate") == 0)
		answer_migrate(c, v);
	else if (strcmp(op, "replicate") == 0)
		answer_replicate(c, v);
	else if (strcmp(op, "clone") == 0)
		answer_clone(c, v);
	else if (strcmp(op, "inject") == 0)
		answer_inject(c, v);
	else
		answer_text(c, "error", "this version of hale does not know that request");
	json_free(v);
}

static void client_ready(void *arg, uint32_t events)
{
	struct control_serve_client *c = arg;
	ssize_t n =
	    recv(c->source.fd, c->request + c->len, sizeof(c->request) - c->len, MSG_DONTWAIT);
	char *newline;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || c->waits || c->moves || c->looks) {
		client_close(c);
		return;
	}
	c->len += (size_t)n;
	newline = memchr(c->request, '\n', c->len);
	if (newline) {
		c->len = (size_t)(newline - c->request);
		take_request(c);
	} else if (c->len == sizeof(c->request)) {
		client_close(c);
	}
}

/* There is always room for one more: of those that have asked for nothing, who has waited longest
 * has to go. */
static void make_room(struct control_server *k)
{
	struct control_serve_client *idle = NULL;

	for (struct control_serve_client *c = k->clients; k->count >= CLIENTS_MAX && c; c = c->next)
		if (!c->waits && !c->moves && !c->looks)
			idle = c;
	if (idle)
		client_close(idle);
}

static void accept_one(void *arg, uint32_t events)
{
	struct control_server *k = arg;
	int fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);
	const struct timeval patience = {.tv_sec = 1};
	struct control_serve_client *c;

	if (fd < 0)
		return;
	if (!peer_may_command(fd)) {
		close(fd);
		return;
	}
	make_room(k);
	c = k->count < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c || !loop_add(&k->head->loop, &c->source, fd, EPOLLIN, client_ready, c)) {
		free(c);
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	c->control = k;
	c->next = k->clients;
	k->clients = c;
	k->count++;
}

void control_checkpoint_over(struct head *h, const char *folder, const char *why)
{
	struct control_serve_client *next;

	for (struct control_serve_client *c = h->control ? h->control->clients : NULL; c;
	     c = next) {
		next = c->next;
		if (c->waits)
			answer_text(c, folder ? "path" : "error", folder ? folder : why);
	}
}

hale_status_t control_start(struct head *h, struct error *err)
{
	struct control_server *k = calloc(1, sizeof(*k));

	if (!k)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	h->control = k;
	k->head = h;
	k->source.fd = -1;
	k->listener = control_listen(h->id.job, "ctl", h->succession.epoch);
	if (k->listener < 0 ||
	    !loop_add(&h->loop, &k->source, k->listener, EPOLLIN, accept_one, k)) {
		if (errno == EADDRINUSE)
			return error_set(err, HALE_ERR_STATE, "job %s is already running",
					 h->id.job);
		return error_sys(err, HALE_ERR_SYSTEM, "cannot listen for hale ps and hale ckpt");
	}
	return HALE_OK;
}

void control_stop(struct head *h)
{
	struct control_server *k = h->control;

	if (!k)
		return;
	for (struct control_serve_client *c = k->clients, *next; c; c = next) {
		next = c->next;
		client_close(c);
	}
	loop_remove(&h->loop, &k->source);
	if (k->listener >= 0)
		close(k->listener);
	free(k);
	h->control = NULL;
}
