/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/head/control/control_serve.c src/head/control/control_metrics.c
 * src/control/control_client.c src/wire/session/loop.c src/launch/options_fault.c
 * src/head/faults/inject.c src/node/task_settings.c src/head/failover/succession_read.c
 * src/head/failover/succession_replicas.c src/head/recovery/recover_program.c
 * src/wire/attach/head_record.c src/report/report.c
 * src/report/report_events.c src/report/report_nodes.c src/report/report_profile.c
 * src/report/report_shadows.c src/report/report_audit.c src/report/report_replicas.c
 * src/head/job/job_audit.c src/head/job/job_energy.c src/head/job/job_shadows.c src/policy/energy.c
 * src/policy/shadows.c src/report/profile.c src/node/living.c src/model/catalog.c src/model/check.c
 * src/model/contest.c src/model/entries.c src/model/entries_shadow.c src/model/entries_system.c
 * src/model/interval.c src/model/law.c src/model/lvf.c src/model/quad.c src/model/quantity.c
 * src/model/redundancy.c src/model/shadow.c src/model/unified.c src/model/unified_play.c */
/* What comes to the socket of `hale ps`, `hale ckpt`, `hale migrate`: in pieces, cut off, as
 * garbage, more than was asked for. Every connection ends, with at most one answer, which is JSON.
 * And what a head has left for `hale attach`: refused with a sentence, or a state of the job. */
#include "fuzz.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "control/control.h"
#include "head/head.h"
#include "head/control/control_serve.h"
#include "head/migration/migrate.h"
#include "head/failover/succession.h"
#include "head/watch/watch.h"

enum { RANKS = 3, CLIENTS = 3 };

static struct options options;
static struct program program = {.path = "/bin/program"};
static struct node node = {.name = "node0", .host = "host"};
static struct head head;
static struct input in;
static int next_client = -1; /* accepted next */
static uint32_t looks;

/* ---- what the socket's side asks of the rest of the head ---- */

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	int client = next_client;

	next_client = -1;
	errno = EAGAIN;
	return client;
}

int setenv(const char *name, const char *value, int overwrite)
{
	return 0;
}

hale_status_t checkpoint_request(struct head *h, ckpt_origin_t origin, struct error *err)
{
	switch (input_byte(&in) % 3) {
	case 0:
		return HALE_OK;
	case 1: /* found out at once, after it was promised */
		control_checkpoint_over(h, NULL, "a rank is in MPI_Finalize");
		return HALE_OK;
	default:
		return error_set(err, HALE_ERR_STATE, "no");
	}
}

bool replicas_is_wanted(const struct head *h, uint32_t process)
{
	return false;
}

const struct node *migrate_node(const struct head *h, const char *name)
{
	return NULL;
}

hale_status_t clone_degree(struct head *h, uint32_t degree, struct error *err)
{
	return error_set(err, HALE_ERR_UNSUPPORTED, "nothing is cloned here");
}

hale_status_t clone_rank(struct head *h, uint32_t rank, const struct node *to, uint32_t *slot,
			 struct error *err)
{
	return error_set(err, HALE_ERR_UNSUPPORTED, "nothing is cloned here");
}

hale_status_t migrate_request(struct head *h, enum migrate_asker asker, const char *from,
			      const char *to, const char *via, uint32_t *id, struct error *err)
{
	unsigned n = input_byte(&in) % 4;

	must(asker == MIGRATE_USER && from && (!via || *via) && *id == 0);
	if (n < 2)
		return error_set(err, HALE_ERR_ARGUMENT, "%s? %s?", from, to ? to : "");
	*id = n - 1;
	return HALE_OK;
}

uint32_t migrate_waits(const struct head *h, uint32_t at)
{
	must(at < h->node_set.count);
	return 0;
}

bool migrate_withdraw(struct head *h, enum migrate_asker asker, uint32_t id)
{
	must(asker == MIGRATE_USER && (id == 1 || id == 2));
	return id == 1;
}

void head_rank_reset(struct head *h, uint32_t rank, int ended_with)
{
	must(rank < h->nranks && ended_with >= -1 && ended_with < 256);
}

void levels_restore(struct head *h, const struct json_value *doc)
{
}

uint32_t node_set_look(struct node_set *c, bool processes)
{
	looks = input_byte(&in) % 3;
	return looks;
}

const struct node *node_set_node_of(const struct node_set *c, uint32_t rank)
{
	must(rank < RANKS);
	return &node;
}

bool node_set_present(const struct node_set *c, uint32_t rank)
{
	must(rank < RANKS);
	return true;
}

void node_set_task_due(struct node_set *c, uint32_t number, const char *due)
{
}

void node_set_inject(struct node_set *c, uint32_t rank, const char *call, uint64_t count,
		     int signal)
{
	must(rank < RANKS && count > 0 && signal > 0 && signal < 65 && strlen(call) < 64);
}

void node_set_signal(struct node_set *c, uint32_t rank, int sig)
{
}

void node_set_echo_lost(struct node_set *c, uint32_t process)
{
}

void node_set_signal_program(struct node_set *c, uint32_t rank, int signal)
{
	must(rank < RANKS && signal > 0 && signal < 65);
}

uint32_t node_set_ranks_on(const struct node_set *c, const struct node *n)
{
	return RANKS;
}

const char *leave_node_state(const struct head *h, const struct node *n)
{
	return "ready";
}

const char *head_state_name(const struct head *h)
{
	return "running";
}

double head_seconds(const struct head *h)
{
	return 1;
}

void watch_print(const struct head *h, struct json_out *j)
{
}

/* ---- requests ---- */

static void stop(void *arg)
{
	loop_stop(arg);
}

/* All that is there to be done. */
static void turn(void)
{
	for (int i = 0; i < 2 * CLIENTS + 2; i++) {
		struct loop_timer end = {0};

		head.loop.stop = false;
		loop_timer_set(&head.loop, &end, -1, stop, &head.loop);
		loop_run(&head.loop);
		loop_timer_clear(&head.loop, &end);
	}
}

static int call(void)
{
	static int knock = -1;
	struct sockaddr_un sa;
	socklen_t len = (socklen_t)control_address(head.id.job, geteuid(), &sa);
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	next_client = ends[0];
	/* so that the listening socket becomes readable; who is accepted is the other one */
	knock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(connect(knock, (struct sockaddr *)&sa, len) == 0);
	turn();
	close(knock);
	must(next_client < 0);
	return ends[1];
}

/* As a request should be, with texts of the input's. */
static void say_request(int fd)
{
	static const char *const ops[] = {"ps",	     "nodes",  "profile", "ckpt",
					  "migrate", "inject", "other",	  ""};
	static const char *const keys[] = {"from", "to", "via", "fault", "now"};
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "op", ops[input_byte(&in) % ARRAY_LEN(ops)]);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct input part = input_part(&in);
		char text[256] = "";

		if (part.left == 0)
			continue;
		memcpy(text, part.at, part.left);
		json_string(&j, keys[i], text);
	}
	json_close_object(&j);
	if (send(fd, j.text, j.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0;
	json_out_fini(&j);
}

static void say(int fd)
{
	static char garbage[2 * CONTROL_REQUEST_MAX];
	struct input part;

	switch (input_byte(&in) % 8) {
	case 0:
		part = input_part(&in);
		if (send(fd, part.at, part.left, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			errno = 0;
		break;
	case 1:
		memset(garbage, 'x', sizeof(garbage));
		if (send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			errno = 0;
		break;
	case 2:
		shutdown(fd, SHUT_WR);
		break;
	case 3:
		if (send(fd, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			errno = 0;
		break;
	default:
		say_request(fd);
		if (send(fd, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			errno = 0;
	}
	turn();
}

static void happens(void)
{
	static const struct report_migration moved = {.from = "node0", .to = "node1", .ranks = 2};
	struct error err = {HALE_ERR_NODE, "it failed"};

	switch (input_byte(&in) % 5) {
	case 0:
		control_checkpoint_over(&head, "/folder/1", NULL);
		break;
	case 1:
		control_checkpoint_over(&head, NULL, "no");
		break;
	case 2:
		control_migrated(&head, 1 + input_byte(&in) % 2, &moved, NULL);
		break;
	case 3:
		control_migrated(&head, 1 + input_byte(&in) % 2, NULL, &err);
		break;
	default:
		head.report.profile.ranks = input_byte(&in) % 2 ? RANKS : 0;
		control_looked(&head, 1 + input_byte(&in) % 2);
	}
}

static void hear(int fd)
{
	static char text[1 << 20];
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, text + len, sizeof(text) - len, MSG_DONTWAIT)) > 0)
		len += (size_t)n;
	must(n == 0 || errno == ECONNRESET); /* it has been closed */
	if (len > 0) {
		struct json_value *v = json_parse(text, len);

		must(v != NULL);
		json_free(v);
	}
	close(fd);
}

static void requests(void)
{
	struct error err;
	int fd[CLIENTS], count = 1 + input_byte(&in) % CLIENTS;
	int before = dup(0), after;

	close(before);
	must(control_start(&head, &err) == HALE_OK);
	for (int i = 0; i < count; i++)
		fd[i] = call();
	while (in.left > 0) {
		if (input_byte(&in) % 4 == 0)
			happens();
		else
			say(fd[input_byte(&in) % count]);
	}
	control_stop(&head);
	for (int i = 0; i < count; i++)
		hear(fd[i]);
	inject_fini(&head);
	head.faults.count = 0;
	after = dup(0);
	close(after);
	must(before == after); /* no descriptor is left */
}

/* ---- what a head has left ---- */

static void inheritance(const uint8_t *data, size_t size)
{
	struct json_value *doc = json_parse((const char *)data, size);
	struct options o = {0};
	struct program p;
	struct error err = {HALE_OK, ""};
	struct node *nodes = NULL;
	uint32_t count = 0;

	if (!doc)
		return;
	if (succession_options(doc, &o, &p, &err) == HALE_OK && o.ranks <= 64) {
		struct head h = {.o = &o, .nranks = (uint32_t)o.ranks};

		must(o.program && o.program[0] && o.ranks > 0 && o.head_grace > 0);
		must(o.compress >= IMAGE_PLAIN && o.compress <= IMAGE_ZSTD);
		must(o.restart >= IMAGE_FULL && o.restart <= IMAGE_LAZY);
		if (succession_restore(doc, &h, &nodes, &count, &err) == HALE_OK) {
			must(count > 0 && count <= JOB_NODES_MAX);
			for (uint32_t r = 0; r < h.nranks; r++)
				must(h.node_set.placement.node_of[r] < count);
			for (uint32_t k = 0; k < count; k++)
				must(nodes[k].state <= NODE_LOST);
		} else {
			must(err.text[0] != '\0');
		}
		free(nodes);
		free(h.node_set.placement.node_of);
		free(h.hosts.at);
		report_fini(&h.report);
	} else if (o.ranks <= 64) {
		must(err.text[0] != '\0');
	}
	free(o.program);
	json_free(doc);
}

static void prepare(void)
{
	if (head.o)
		return;
	options = (struct options){.ckpt_dir = "/checkpoints", .ranks = RANKS};
	head.o = &options;
	head.program = &program;
	head.nranks = RANKS;
	head.degree = 1;
	head.view = (struct living){.nranks = RANKS, .degree = 1, .lost = calloc(RANKS, 1)};
	head.ranks = calloc(RANKS, sizeof(*head.ranks));
	head.node_set.ranks = calloc(RANKS, sizeof(*head.node_set.ranks));
	head.ckpt.ranks = calloc(RANKS, sizeof(*head.ckpt.ranks));
	head.node_set.nodes = &node;
	head.node_set.count = 1;
	head.node_set.laid_out = true;
	head.report = (struct report){.job = head.id.job, .ranks = RANKS};
	snprintf(head.id.job, sizeof(head.id.job), "fuzz-%d", (int)getpid());
	log_set_level(LOG_QUIET);
	must(loop_init(&head.loop));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	prepare();
	in = (struct input){data + 1, size - 1};
	if (data[0] == '{')
		inheritance(data, size);
	else
		requests();
	return 0;
}
