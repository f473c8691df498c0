/* SPDX-License-Identifier: BSD-3-Clause */
/* What one head writes down is what the next one reads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/base.h"
#include "head/head.h"
#include "head/failover/succession.h"

enum { RANKS = 5, NODES = 3 };

/* A head of a job of five ranks on two nodes and a spare, in the middle of its life. */
struct succession_fixture {
	char dir[64];
	char *argv[3];
	struct options o;
	struct program program;
	struct head_rank ranks[RANKS];
	uint32_t node_of[RANKS];
	struct node nodes[NODES];
	struct head h;
};

static void fill_options(struct succession_fixture *f)
{
	f->argv[0] = "prog";
	f->argv[1] = "a \"quoted\" word";
	f->o = (struct options){.ranks = RANKS,
				.launcher = "ssh -x %h %c",
				.node_timeout = 2.5,
				.head_grace = 60,
				.agent_lost_ends = true,
				.warm_sinks = WARM_OFF,
				.wdir = "/work",
				.no_mpi = true,
				.net_encrypt = true,
				.ckpt_every = 0.5,
				.ckpt_auto = true,
				.ckpt_first = 7,
				.overhead = 0.02,
				.mtbf = 3600,
				.on_success = SUCCESS_REMOVE,
				.ckpt_local = "/local/%n",
				.shared_every = 4,
				.keep = 3,
				.max_restarts = 9,
				.incremental = true,
				.no_fsync = true,
				.ckpt_required = true,
				.compress = IMAGE_ZSTD,
				.restart = IMAGE_LAZY,
				.tag = true,
				.quiet = true,
				.report = "/r.json",
				.events = true,
				.rules = "/rules",
				.monitors = {"load", "memory"},
				.monitor_count = 2,
				.seed = 4711,
				.tasks = "",
				.due = "prob=0.5",
				.program = f->argv};
}

static void fill_places(struct succession_fixture *f)
{
	static const char *const names[NODES] = {"n0", "n1", "s0"};

	for (uint32_t k = 0; k < NODES; k++) {
		struct node *n = &f->nodes[k];

		snprintf(n->name, sizeof(n->name), "%s", names[k]);
		snprintf(n->host, sizeof(n->host), "host-%s", names[k]);
		n->slots = 4 + k;
		n->cores = 8 + k;
		n->state = k == 2 ? NODE_SPARE : k == 1 ? NODE_LOST : NODE_READY;
		n->unusable = k == 1;
	}
	snprintf(f->nodes[0].leave.wanted, sizeof(f->nodes[0].leave.wanted), "a fan");
	for (uint32_t r = 0; r < RANKS; r++)
		f->node_of[r] = r < 3 ? 0 : 2;
	f->h.node_set.nodes = f->nodes;
	f->h.node_set.count = NODES;
	f->h.node_set.placement = (struct placement){.nodes = 2, .node_of = f->node_of};
	f->h.hosts = (struct hosts){.count = NODES, .slurm = true};
}

static int set_up(void **state)
{
	struct succession_fixture *f = calloc(1, sizeof(*f));
	struct head *h = &f->h;

	snprintf(f->dir, sizeof(f->dir), "/tmp/hale-succession-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	fill_options(f);
	f->program.elf = true;
	snprintf(f->program.path, sizeof(f->program.path), "/usr/bin/prog");
	h->up = &head_calls;
	h->o = &f->o;
	h->program = &f->program;
	h->succession.epoch = 2;
	h->nranks = RANKS;
	h->ranks = f->ranks;
	h->state = JOB_RUNNING;
	snprintf(h->id.job, sizeof(h->id.job), "prog.1");
	snprintf(h->succession.tag, sizeof(h->succession.tag), "0123456789abcdef");
	snprintf(h->files.store.job_folder, sizeof(h->files.store.job_folder), "%s", f->dir);
	fill_places(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct succession_fixture *f = *state;

	succession_end(&f->h);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

/* The head that follows; what it stands on is freed by it. */
struct follower {
	struct json_value *doc;
	struct options o;
	struct program program;
	struct head_rank ranks[RANKS];
	struct node *nodes;
	uint32_t count;
	struct head h;
};

static hale_status_t try_follow(const struct succession_fixture *f, struct follower *g,
				struct error *err)
{
	hale_status_t status;

	memset(g, 0, sizeof(*g));
	status = head_record_read(f->dir, f->h.succession.epoch, &g->doc, err);
	if (status == HALE_OK)
		status = succession_options(g->doc, &g->o, &g->program, err);
	g->h.up = &head_calls;
	g->h.o = &g->o;
	g->h.nranks = RANKS;
	g->h.ranks = g->ranks;
	if (status == HALE_OK)
		status = succession_restore(g->doc, &g->h, &g->nodes, &g->count, err);
	return status;
}

static void follower_free(struct follower *g)
{
	free(g->nodes);
	free(g->h.node_set.placement.node_of);
	free(g->h.hosts.at);
	free(g->o.program);
	report_fini(&g->h.report);
	json_free(g->doc);
}

static void follow(struct succession_fixture *f, struct follower *g)
{
	struct error err = {HALE_OK, ""};
	hale_status_t status;

	head_save(&f->h);
	status = try_follow(f, g, &err);
	if (status != HALE_OK)
		fail_msg("%s", err.text);
}

static void options_are_those_of_the_head_before(void **state)
{
	struct succession_fixture *f = *state;
	struct follower g;

	follow(f, &g);
	assert_int_equal(g.o.ranks, RANKS);
	assert_string_equal(g.o.launcher, "ssh -x %h %c");
	assert_true(g.o.node_timeout == 2.5 && g.o.head_grace == 60 && g.o.ckpt_every == 0.5);
	assert_true(g.o.ckpt_auto && g.o.ckpt_first == 7 && g.o.overhead == 0.02 &&
		    g.o.mtbf == 3600 && g.o.on_success == SUCCESS_REMOVE);
	assert_true(g.o.agent_lost_ends && g.o.no_mpi && g.o.net_encrypt && g.o.incremental);
	assert_true(g.o.no_fsync && g.o.ckpt_required && g.o.tag && g.o.quiet && g.o.events);
	assert_false(g.o.verbose || g.o.no_events);
	assert_int_equal(g.o.warm_sinks, WARM_OFF);
	assert_string_equal(g.o.wdir, "/work");
	assert_string_equal(g.o.ckpt_local, "/local/%n");
	assert_int_equal(g.o.shared_every, 4);
	assert_int_equal(g.o.keep, 3);
	assert_int_equal(g.o.max_restarts, 9);
	assert_int_equal(g.o.compress, IMAGE_ZSTD);
	assert_int_equal(g.o.restart, IMAGE_LAZY);
	assert_string_equal(g.o.report, "/r.json");
	assert_null(g.o.profile);
	assert_string_equal(g.o.rules, "/rules");
	assert_int_equal(g.o.monitor_count, 2);
	assert_string_equal(g.o.monitors[1], "memory");
	assert_int_equal(g.o.seed, 4711);
	assert_string_equal(g.o.tasks, "");
	assert_string_equal(g.o.due, "prob=0.5");
	assert_string_equal(g.o.program[1], f->argv[1]);
	assert_null(g.o.program[2]);
	assert_true(g.program.elf && !g.program.preload_mpi);
	assert_string_equal(g.program.path, "/usr/bin/prog");
	follower_free(&g);
}

static void exit_statuses_are_those_of_the_ranks_that_have_ended(void **state)
{
	static const int status[RANKS] = {-1, 0, 3, 139, 255};
	struct succession_fixture *f = *state;
	struct follower g;

	for (int r = 0; r < RANKS; r++) {
		f->ranks[r].ended = status[r] >= 0;
		f->ranks[r].exit_status = status[r];
	}
	follow(f, &g);
	for (int r = 0; r < RANKS; r++) {
		assert_int_equal(g.ranks[r].ended, status[r] >= 0);
		if (status[r] >= 0)
			assert_int_equal(g.ranks[r].exit_status, status[r]);
	}
	follower_free(&g);
	/* those that were killed to be rolled back have not ended, nor those that get new places */
	f->h.state = JOB_CLEARING;
	follow(f, &g);
	for (int r = 0; r < RANKS; r++)
		assert_false(g.ranks[r].ended);
	follower_free(&g);
	f->h.state = JOB_RESTORING;
	f->h.placing = true;
	follow(f, &g);
	assert_false(g.ranks[2].ended);
	follower_free(&g);
	f->h.placing = false;
	follow(f, &g);
	assert_true(g.ranks[2].ended);
	follower_free(&g);
}

static void places_and_nodes_are_where_they_were(void **state)
{
	struct succession_fixture *f = *state;
	struct follower g;

	follow(f, &g);
	assert_int_equal(g.count, NODES);
	for (uint32_t k = 0; k < NODES; k++) {
		assert_string_equal(g.nodes[k].name, f->nodes[k].name);
		assert_string_equal(g.nodes[k].host, f->nodes[k].host);
		assert_int_equal(g.nodes[k].state, f->nodes[k].state);
		assert_int_equal(g.nodes[k].slots, f->nodes[k].slots);
		assert_int_equal(g.nodes[k].cores, f->nodes[k].cores);
		assert_int_equal(g.nodes[k].unusable, f->nodes[k].unusable);
		assert_string_equal(g.nodes[k].leave.wanted, f->nodes[k].leave.wanted);
		assert_int_equal(head_record_node_lost(g.doc, k), k == 1);
		assert_string_equal(g.h.hosts.at[k].name, f->nodes[k].name);
		assert_int_equal(g.h.hosts.at[k].slots, f->nodes[k].slots);
	}
	assert_int_equal(g.h.hosts.count, NODES);
	assert_true(g.h.hosts.slurm);
	assert_memory_equal(g.h.node_set.placement.node_of, f->node_of, sizeof(f->node_of));
	assert_int_equal(g.h.node_set.placement.nodes, 2);
	follower_free(&g);
	/* nodes of this machine are no hosts; one that was to be a spare is one */
	f->h.hosts.count = 0;
	f->nodes[2].state = NODE_STARTING;
	f->nodes[2].spare = true;
	follow(f, &g);
	assert_int_equal(g.h.hosts.count, 0);
	assert_int_equal(g.nodes[2].state, NODE_SPARE);
	follower_free(&g);
}

/* Of two ranks in two slots of three: one is dead, one convicted. */
struct view_fixture {
	unsigned char lost[6], wanted[2], dropped[6], insists[6];
	uint32_t homes[6], node_of[6];
	double died_at[6];
	struct head_rank ranks[6];
};

static void view_give(struct view_fixture *v, struct head *h)
{
	h->nranks = 6;
	h->degree = 3;
	h->ranks = v->ranks;
	h->view = (struct living){.nranks = 2, .degree = 3, .lost = v->lost, .audits = true};
	h->moves.clones.homes = v->homes;
	h->moves.clones.died_at = v->died_at;
	h->moves.clones.wanted = v->wanted;
	h->moves.clones.dropped = v->dropped;
	h->moves.clones.insists = v->insists;
}

static void view_fill(struct succession_fixture *f, struct view_fixture *v)
{
	struct head *h = &f->h;

	*v = (struct view_fixture){.lost = {0, 0, LIVING_LOST, 0, LIVING_CONVICTED, 0},
				   .wanted = {3, 2},
				   .dropped = {0, 0, 0, 1, 0, 0},
				   .insists = {0, 0, 1, 0, 0, 0},
				   .homes = {0, 0, 2, 1, 0, 0},
				   .node_of = {0, 0, 0, 1, 0, 2},
				   .ranks = {[5] = {.convicted = true}}};
	v->died_at[2] = clock_seconds() - 50;
	f->o.ranks = 2;
	f->o.replicas = 3;
	f->o.sdc = "hash";
	f->o.hang_wait = 7;
	f->o.audit = 90;
	view_give(v, h);
	h->node_set.placement.node_of = v->node_of;
	h->view.number = 12;
	h->moves.clones.only = 4;
	h->moves.clones.asked = true;
	h->audit = (struct head_audit){.phase = AUDIT_COMPARES,
				       .rank = 1,
				       .main = 1,
				       .twin = 3,
				       .witness = 5,
				       .guilty = 6,
				       .called = true,
				       .lost = true,
				       .phase_began = clock_seconds() - 9};
	snprintf(h->audit.visit.twin, sizeof(h->audit.visit.twin), "n1");
}

static void the_view_and_the_visit_go_on(void **state)
{
	struct succession_fixture *f = *state;
	struct view_fixture *v = calloc(1, sizeof(*v)), *w = calloc(1, sizeof(*w));
	struct error err = {HALE_OK, ""};
	struct follower g;
	const struct clones *c = &g.h.moves.clones;

	assert_true(v && w);
	view_fill(f, v);
	head_save(&f->h);
	memset(&g, 0, sizeof(g));
	assert_int_equal(head_record_read(f->dir, f->h.succession.epoch, &g.doc, &err), HALE_OK);
	assert_int_equal(succession_options(g.doc, &g.o, &g.program, &err), HALE_OK);
	g.h.up = &head_calls;
	g.h.o = &g.o;
	view_give(w, &g.h);
	assert_int_equal(succession_restore(g.doc, &g.h, &g.nodes, &g.count, &err), HALE_OK);
	assert_int_equal(g.o.replicas, 3);
	assert_string_equal(g.o.sdc, "hash");
	assert_true(g.o.hang_wait == 7 && g.o.audit == 90);
	assert_int_equal(g.h.view.number, 12);
	assert_memory_equal(w->lost, v->lost, sizeof(v->lost));
	assert_memory_equal(w->wanted, v->wanted, sizeof(v->wanted));
	assert_memory_equal(w->dropped, v->dropped, sizeof(v->dropped));
	assert_memory_equal(w->insists, v->insists, sizeof(v->insists));
	assert_memory_equal(w->homes, v->homes, sizeof(v->homes));
	assert_true(fabs(w->died_at[2] - v->died_at[2]) < 1 && c->only == 4 && c->asked);
	assert_true(w->ranks[5].convicted && !w->ranks[4].convicted);
	/* who is dead has ended, and comes back where it was at home */
	assert_true(w->ranks[2].ended && w->ranks[4].ended && !w->ranks[3].ended);
	assert_int_equal(g.h.node_set.placement.node_of[2], 2);
	assert_int_equal(g.h.node_set.placement.node_of[3], 1);
	assert_int_equal(g.h.audit.phase, AUDIT_COMPARES);
	assert_true(g.h.audit.main == 1 && g.h.audit.twin == 3 && g.h.audit.witness == 5);
	assert_true(g.h.audit.guilty == 6 && g.h.audit.called && g.h.audit.lost && !g.h.audit.stuck);
	assert_true(fabs(g.h.audit.phase_began - f->h.audit.phase_began) < 1);
	assert_string_equal(g.h.audit.visit.twin, "n1");
	follower_free(&g);
	free(v);
	free(w);
	f->h.degree = 1;
}

static void the_state_of_the_job_goes_on(void **state)
{
	struct succession_fixture *f = *state;
	struct follower g;
	struct head *h = &f->h;

	h->end.decided = h->restarted = h->mpi_seen = true;
	h->end.status = 12;
	h->generation = 7;
	h->node_set.generation = 6;
	h->node_set.laid_out = true;
	h->recovery.target = 5;
	h->recovery.skip.above = 3;
	h->recovery.skip.to = 9;
	snprintf(h->recovery.folder, sizeof(h->recovery.folder), "/ckpt/older");
	h->ckpt.last_id = 10;
	h->ckpt.id = 11;
	snprintf(h->faults.task_due, sizeof(h->faults.task_due), "prob=0.25,seed=3");
	h->faults.task_due_number = 2;
	h->levels.since_shared = 2;
	h->levels.alone_said = true;
	h->began = clock_seconds() - 100;
	h->job_began = clock_seconds() - 1000;
	follow(f, &g);
	assert_true(g.h.end.decided && g.h.restarted && g.h.mpi_seen);
	assert_int_equal(g.h.end.status, 12);
	assert_int_equal(g.h.generation, 7);
	assert_int_equal(g.h.node_set.generation, 6);
	assert_true(g.h.node_set.laid_out);
	assert_int_equal(g.h.recovery.target, 5);
	assert_int_equal(g.h.recovery.skip.above, 3);
	assert_int_equal(g.h.recovery.skip.to, 9);
	assert_string_equal(g.h.recovery.folder, "/ckpt/older");
	assert_int_equal(g.h.ckpt.last_id, 10);
	assert_int_equal(g.h.ckpt.id, 11);
	assert_string_equal(g.h.faults.task_due, "prob=0.25,seed=3");
	assert_int_equal(g.h.faults.task_due_number, 2);
	assert_int_equal(g.h.levels.since_shared, 2);
	assert_true(g.h.levels.alone_said);
	assert_string_equal(g.h.succession.tag, h->succession.tag);
	/* moments cross over by the clock of the day */
	assert_true(fabs(g.h.began - h->began) < 1 && fabs(g.h.job_began - h->job_began) < 1);
	follower_free(&g);
	/* ranks without a segment have no generation */
	h->node_set.laid_out = false;
	follow(f, &g);
	assert_int_equal(g.h.node_set.generation, 0);
	assert_false(g.h.node_set.laid_out);
	follower_free(&g);
}

static void one_head_takes_an_epoch(void **state)
{
	struct succession_fixture *f = *state;
	struct error err;

	assert_int_equal(head_record_newest(f->dir), 0);
	assert_int_equal(head_record_newest("/no/such/folder"), 0);
	assert_int_equal(succession_claim(&f->h, &err), HALE_OK);
	assert_int_equal(head_record_newest(f->dir), 2);
	assert_int_equal(succession_claim(&f->h, &err), HALE_ERR_STATE);
	assert_non_null(strstr(err.text, "prog.1"));
	f->h.succession.epoch = 10;
	assert_int_equal(succession_claim(&f->h, &err), HALE_OK);
	assert_int_equal(head_record_newest(f->dir), 10);
	succession_end(&f->h);
	assert_int_equal(head_record_newest(f->dir), 0);
}

/* A head that nobody may follow, that has no epoch yet, or that another one has followed. */
static void what_does_not_count_is_not_written(void **state)
{
	struct succession_fixture *f = *state;

	f->o.head_grace = 0;
	head_save(&f->h);
	f->o.head_grace = 60;
	f->h.succession.epoch = 0;
	head_save(&f->h);
	f->h.succession.epoch = 2;
	f->h.succession.superseded = true;
	head_save(&f->h);
	assert_int_equal(head_record_newest(f->dir), 0);
	f->h.succession.superseded = false;
	head_save(&f->h);
	assert_int_equal(head_record_newest(f->dir), 2);
	/* what the last head has left stays, whoever ends without being it */
	f->h.succession.superseded = true;
	succession_end(&f->h);
	assert_int_equal(head_record_newest(f->dir), 2);
	f->h.succession.superseded = false;
}

static void put_record(const struct succession_fixture *f, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/head.2.json", f->dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static char *record(const struct succession_fixture *f)
{
	char path[128], *text = calloc(1, 65536);
	FILE *file;

	snprintf(path, sizeof(path), "%s/head.2.json", f->dir);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(text, 1, 65535, file) > 0);
	fclose(file);
	return text;
}

/* The record with one value changed. */
static void put_changed(struct succession_fixture *f, const char *from, const char *to)
{
	char *text, *at, *changed = calloc(1, 65536);

	head_save(&f->h);
	text = record(f);
	at = strstr(text, from);
	assert_non_null(at);
	snprintf(changed, 65536, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	put_record(f, changed);
	free(changed);
	free(text);
}

static void damaged_records_are_refused(void **state)
{
	static const struct {
		const char *from, *to, *why;
	} cases[] = {
	    {"\"ranks\":5", "\"ranks\":0", "options"},
	    {"\"head_grace\":60", "\"head_grace\":0", "options"},
	    {"\"node_timeout\":2.5", "\"node_timeout\":0", "options"},
	    {"\"ckpt_every\":0.5", "\"ckpt_every\":-1", "options"},
	    {"\"ckpt_first\":7", "\"ckpt_first\":0", "options"},
	    {"\"overhead\":0.02", "\"overhead\":2", "options"},
	    {"\"on_success\":2", "\"on_success\":3", "options"},
	    {"\"keep\":3", "\"keep\":0", "options"},
	    {"\"compress\":2", "\"compress\":3", "options"},
	    {"\"compress\":2", "\"compress\":-1", "options"},
	    {"\"restart\":1", "\"restart\":2", "options"},
	    {"\"restart\":1", "\"restart\":-1", "options"},
	    {"\"argv\":[\"prog\",", "\"argw\":[\"prog\",", "options"},
	    {"\"state\":1", "\"state\":6", "state"},
	    {"\"state\":1", "\"state\":-1", "state"},
	    {"\"node_of\":[0,", "\"node_of\":[", "nodes"},
	    {"\"node_of\":[0,", "\"node_of\":[3,", "layout"},
	    {"\"node_of\":[0,", "\"node_of\":[-1,", "layout"},
	    {"\"nodes\":[", "\"nodet\":[", "nodes"},
	};
	struct succession_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct follower g;
		struct error err;

		put_changed(f, cases[i].from, cases[i].to);
		assert_int_equal(try_follow(f, &g, &err), HALE_ERR_IMAGE_CORRUPT);
		assert_non_null(strstr(err.text, cases[i].why));
		follower_free(&g);
	}
}

static void records_that_cannot_be_read_are_told_apart(void **state)
{
	struct succession_fixture *f = *state;
	struct json_value *doc;
	struct error err;

	assert_int_equal(head_record_read(f->dir, 2, &doc, &err), HALE_ERR_IMAGE_MISSING);
	put_record(f, "{\"hale\":");
	assert_int_equal(head_record_read(f->dir, 2, &doc, &err), HALE_ERR_IMAGE_CORRUPT);
	assert_null(doc);
	put_record(f, "{\"hale\":\"0.0.0\"}");
	assert_int_equal(head_record_read(f->dir, 2, &doc, &err), HALE_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "0.0.0"));
	assert_null(doc);
}

int main(void)
{
#define WITH_HEAD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    WITH_HEAD(options_are_those_of_the_head_before),
	    WITH_HEAD(exit_statuses_are_those_of_the_ranks_that_have_ended),
	    WITH_HEAD(places_and_nodes_are_where_they_were),
	    WITH_HEAD(the_view_and_the_visit_go_on),
	    WITH_HEAD(the_state_of_the_job_goes_on),
	    WITH_HEAD(one_head_takes_an_epoch),
	    WITH_HEAD(what_does_not_count_is_not_written),
	    WITH_HEAD(damaged_records_are_refused),
	    WITH_HEAD(records_that_cannot_be_read_are_told_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
