/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "base/own.h"
#include "head/head.h"
#include "head/failover/succession.h"
#include "head/failover/succession_replicas.h"

static hale_status_t bad(struct error *err, const char *what)
{
	return error_set(err, HALE_ERR_IMAGE_CORRUPT,
			 "what the job's last head has left is damaged: %s", what);
}

/* ---- options ---- */

static char *text_or_null(const struct json_value *o, const char *key)
{
	const char *text = json_text(json_get(o, key), NULL);

	return text && *text ? (char *)(uintptr_t)text : NULL;
}

static long number(const struct json_value *o, const char *key)
{
	return (long)json_number_int(json_get(o, key), 0);
}

static bool truth(const struct json_value *o, const char *key)
{
	return json_truth(json_get(o, key), false);
}

hale_status_t succession_options(const struct json_value *doc, struct options *o, struct program *p,
				 struct error *err)
{
	const struct json_value *v = json_get(doc, "options"), *argv = json_get(v, "argv");
	const char *library_path = json_text(json_get(v, "library_path"), NULL);
	size_t argc = json_count(argv);

	*o = (struct options){.ranks = number(v, "ranks"),
			      .launcher = text_or_null(v, "launcher"),
			      .node_timeout = json_number(json_get(v, "node_timeout"), 10),
			      .head_grace = json_number(json_get(v, "head_grace"), 0),
			      .agent_lost_ends = truth(v, "agent_lost_ends"),
			      .warm_sinks = number(v, "warm_sinks"),
			      .wdir = text_or_null(v, "wdir"),
			      .no_mpi = truth(v, "no_mpi"),
			      .net_encrypt = truth(v, "net_encrypt"),
			      .ckpt_every = json_number(json_get(v, "ckpt_every"), 0),
			      .ckpt_auto = truth(v, "ckpt_auto"),
			      .ckpt_first = json_number(json_get(v, "ckpt_first"), 30),
			      .overhead = json_number(json_get(v, "overhead"), 0.01),
			      .mtbf = json_number(json_get(v, "mtbf"), 0),
			      .on_success = (on_success_t)number(v, "on_success"),
			      .ckpt_wait = json_number(json_get(v, "ckpt_wait"), 10),
			      .ckpt_required = truth(v, "ckpt_required"),
			      .ckpt_local = text_or_null(v, "ckpt_local"),
			      .shared_every = number(v, "shared_every"),
			      .keep = number(v, "keep"),
			      .max_restarts = number(v, "max_restarts"),
			      .incremental = truth(v, "incremental"),
			      .no_fsync = truth(v, "no_fsync"),
			      .leave_files = truth(v, "leave_files"),
			      .compress = (image_compress_t)number(v, "compress"),
			      .restart = (image_restart_t)number(v, "restart"),
			      .tag = truth(v, "tag"),
			      .timestamp = truth(v, "timestamp"),
			      .bind = (bind_to_t)number(v, "bind"),
			      .on_closed_output = (closed_output_t)number(v, "on_closed_output"),
			      .verbose = truth(v, "verbose"),
			      .quiet = truth(v, "quiet"),
			      .report = text_or_null(v, "report"),
			      .profile = text_or_null(v, "profile"),
			      .rules = text_or_null(v, "rules"),
			      .events = truth(v, "events"),
			      .no_events = truth(v, "no_events"),
			      .seed = (uint64_t)number(v, "seed"),
			      .replicas = json_number_int(json_get(v, "replicas"), 1),
			      .replenish = truth(v, "replenish"),
			      .hang_after = json_number(json_get(v, "hang_after"), 0),
			      .hang_compute = json_number(json_get(v, "hang_compute"), 0),
			      .hang_wait = json_number(json_get(v, "hang_wait"), 0),
			      .sdc = text_or_null(v, "sdc"),
			      .on_sdc = (on_sdc_t)number(v, "on_sdc"),
			      .audit = json_number(json_get(v, "audit"), 0),
			      .tasks = json_text(json_get(v, "tasks"), NULL),
			      .due = text_or_null(v, "due")};
	if (o->ranks < 1 || o->ranks > JOB_RANKS_MAX || argc == 0 || !(o->head_grace > 0) ||
	    o->replicas < 1 || o->replicas > LIVING_DEGREE_MAX ||
	    o->ranks * o->replicas > JOB_RANKS_MAX || !(o->audit >= 0) || !(o->node_timeout > 0) ||
	    !(o->ckpt_every >= 0) || !(o->ckpt_wait >= 0) || !(o->ckpt_first > 0) ||
	    !(o->overhead > 0 && o->overhead <= 0.5) || !(o->mtbf >= 0) ||
	    number(v, "on_success") < SUCCESS_DEFAULT || number(v, "on_success") > SUCCESS_REMOVE ||
	    o->keep < 1 || number(v, "bind") < 0 || number(v, "bind") >= BIND_KINDS || number(v, "on_closed_output") < CLOSED_DEFAULT ||
	    number(v, "on_closed_output") > CLOSED_CONTINUE ||
	    number(v, "compress") < IMAGE_PLAIN || number(v, "compress") > IMAGE_ZSTD ||
	    number(v, "restart") < IMAGE_FULL || number(v, "restart") > IMAGE_LAZY)
		return bad(err, "its options");
	if (number(doc, "state") < 0 || number(doc, "state") >= JOB_STATES)
		return bad(err, "its state");
	for (size_t i = 0; i < json_count(json_get(v, "monitors")) && i < OPTIONS_MONITORS_MAX; i++)
		o->monitors[o->monitor_count++] =
		    json_text(json_at(json_get(v, "monitors"), i), "load");
	o->program = calloc(argc + 1, sizeof(*o->program));
	if (!o->program)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	for (size_t i = 0; i < argc; i++)
		o->program[i] = (char *)(uintptr_t)json_text(json_at(argv, i), "");
	*p = (struct program){.elf = truth(doc, "elf"),
			      .preload_mpi =
				  (program_mpi_t)json_number(json_get(doc, "preload_mpi"), 0)};
	snprintf(p->path, sizeof(p->path), "%s", json_text(json_get(doc, "program"), ""));
	snprintf(p->unprotected, sizeof(p->unprotected), "%s",
		 json_text(json_get(doc, "unprotected"), ""));
	snprintf(p->runtime, sizeof(p->runtime), "%s", json_text(json_get(doc, "runtime"), ""));
	if (library_path)
		setenv("LD_LIBRARY_PATH", library_path, 1);
	return HALE_OK;
}

/* ---- the rest ---- */

static hale_status_t read_nodes(const struct json_value *doc, struct head *h, struct node **nodes,
				uint32_t *count, struct error *err)
{
	const struct json_value *list = json_get(doc, "nodes"), *of = json_get(doc, "node_of");
	uint32_t n = (uint32_t)json_count(list);

	if (n == 0 || n > JOB_NODES_MAX || h->nranks == 0 || json_count(of) != h->nranks)
		return bad(err, "its nodes");
	*nodes = calloc(n, sizeof(**nodes));
	h->node_set.placement.node_of = calloc(h->nranks, sizeof(uint32_t));
	if (!*nodes || !h->node_set.placement.node_of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the nodes");
	*count = n;
	h->node_set.placement.nodes = (uint32_t)number(doc, "placed_nodes");
	for (uint32_t k = 0; k < n; k++) {
		const struct json_value *v = json_at(list, k);
		struct node *node = &(*nodes)[k];
		long state = number(v, "state");

		snprintf(node->name, sizeof(node->name), "%s", json_text(json_get(v, "name"), ""));
		snprintf(node->host, sizeof(node->host), "%s", json_text(json_get(v, "host"), ""));
		node->state = state >= 0 && state <= NODE_LOST ? (node_state_t)state : NODE_LOST;
		node->unusable = truth(v, "unusable");
		node->wrong = truth(v, "wrong");
		snprintf(node->leave.wanted, sizeof(node->leave.wanted), "%s",
			 json_text(json_get(v, "wanted"), ""));
		node->slots = (uint32_t)number(v, "slots");
		node->cores = (uint32_t)number(v, "cores");
	}
	for (uint32_t r = 0; r < h->nranks; r++) {
		int64_t k = json_number_int(json_at(of, r), -1);

		if (k < 0 || k >= n)
			return bad(err, "its layout");
		h->node_set.placement.node_of[r] = (uint32_t)k;
	}
	return HALE_OK;
}

/* Remote nodes are hosts again, for launchers. */
static hale_status_t read_hosts(const struct json_value *doc, struct head *h,
				const struct node *nodes, uint32_t count, struct error *err)
{
	if (truth(doc, "local"))
		return HALE_OK;
	h->hosts.at = calloc(count, sizeof(*h->hosts.at));
	if (!h->hosts.at)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the nodes");
	h->hosts.count = count;
	h->hosts.slurm = truth(doc, "slurm");
	for (uint32_t k = 0; k < count; k++) {
		snprintf(h->hosts.at[k].name, sizeof(h->hosts.at[k].name), "%s", nodes[k].name);
		h->hosts.at[k].slots = nodes[k].slots;
	}
	return HALE_OK;
}

static void read_ended(const struct json_value *doc, struct head *h)
{
	const struct json_value *list = json_get(doc, "ended");

	for (size_t i = 0; i + 1 < json_count(list); i += 2) {
		int64_t r = json_number_int(json_at(list, i), -1);

		if (r >= 0 && r < h->nranks)
			head_rank_reset(h, (uint32_t)r,
					(int)json_number_int(json_at(list, i + 1), 0) & 0xff);
	}
}

hale_status_t succession_restore(const struct json_value *doc, struct head *h, struct node **nodes,
				 uint32_t *count, struct error *err)
{
	hale_status_t status;

	snprintf(h->succession.tag, sizeof(h->succession.tag), "%s",
		 json_text(json_get(doc, "agents"), ""));
	snprintf(h->id.run, sizeof(h->id.run), "%s", json_text(json_get(doc, "run"), ""));
	h->began = head_record_since(doc, "began");
	h->job_began = head_record_since(doc, "job_began");
	h->end.decided = truth(doc, "exit_decided");
	h->end.status = (int)number(doc, "exit_status");
	h->restarted = truth(doc, "restarted");
	h->mpi_seen = truth(doc, "mpi_seen");
	h->node_set.generation = (uint32_t)number(doc, "generation");
	h->node_set.laid_out = h->node_set.generation > 0;
	h->generation = (uint32_t)number(doc, "last_generation");
	h->recovery.target = (uint32_t)number(doc, "target");
	recover_program_restore(h, doc);
	h->recovery.environment_lost = truth(doc, "environment_lost");
	snprintf(h->recovery.folder, sizeof(h->recovery.folder), "%s",
		 json_text(json_get(doc, "recovery_folder"), ""));
	h->recovery.skip.above = (uint32_t)number(doc, "skip_above");
	h->recovery.skip.to = (uint32_t)number(doc, "skip_to");
	h->ckpt.last_id = (uint32_t)number(doc, "checkpoint");
	h->ckpt.id = (uint32_t)number(doc, "last_id");
	h->ckpt.timed.asked_for = truth(doc, "ckpt_asked_for");
	snprintf(h->faults.task_due, sizeof(h->faults.task_due), "%s",
		 json_text(json_get(doc, "task_due"), ""));
	h->faults.task_due_number = (uint32_t)number(doc, "task_due_number");
	levels_restore(h, json_get(doc, "levels"));
	for (uint32_t r = 0; r < h->nranks; r++)
		head_rank_reset(h, r, -1);
	read_ended(doc, h);
	status = read_nodes(doc, h, nodes, count, err);
	if (status == HALE_OK && !succession_replicas_restore(h, doc, *count))
		status = bad(err, "its replicas");
	if (status == HALE_OK && *nodes)
		status = read_hosts(doc, h, *nodes, *count, err);
	if (status == HALE_OK)
		report_read(&h->report, json_at(json_get(doc, "report"), 0));
	return status;
}
