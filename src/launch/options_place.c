/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that say how many ranks there are, and where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "node/job.h"
#include "launch/options_private.h"
#include "launch/rank_list.h"
#include "node/living.h"

static hale_status_t take_ranks(struct parser *p)
{
	if (!units_parse_int(p->value, 1, 1000000000, &p->o->ranks))
		return options_bad_value(p, "a number of ranks from 1 on");
	if (p->o->ranks > JOB_RANKS_MAX)
		return error_set(p->err, HALE_ERR_ARGUMENT,
				 "%s ranks are more than one machine can run (at most %d)",
				 p->value, JOB_RANKS_MAX);
	p->o->given_ranks = true;
	return HALE_OK;
}

static hale_status_t take_number_of_nodes(struct parser *p, long least, long *number)
{
	char wanted[64];

	if (units_parse_int(p->value, least, JOB_NODES_MAX, number))
		return HALE_OK;
	snprintf(wanted, sizeof(wanted), "a number of nodes from %ld to %d", least, JOB_NODES_MAX);
	return options_bad_value(p, wanted);
}

static hale_status_t take_nodes(struct parser *p)
{
	return take_number_of_nodes(p, 1, &p->o->nodes);
}

hale_status_t options_take_per_node(struct parser *p)
{
	return units_parse_int(p->value, 1, JOB_RANKS_MAX, &p->o->per_node)
		   ? HALE_OK
		   : options_bad_value(p, "a number of ranks from 1 on");
}

static hale_status_t take_spares(struct parser *p)
{
	return take_number_of_nodes(p, 0, &p->o->spares);
}

static hale_status_t take_hosts(struct parser *p)
{
	p->o->hosts = p->value;
	return *p->value ? HALE_OK : options_bad_value(p, "a file");
}

static hale_status_t take_host_list(struct parser *p)
{
	p->o->host_list = p->value;
	return *p->value ? HALE_OK : options_bad_value(p, "names of hosts with commas between");
}

static hale_status_t take_launcher(struct parser *p)
{
	p->o->launcher = p->value;
	return strstr(p->value, "%c")
		   ? HALE_OK
		   : options_bad_value(
			 p, "a command with %h for the host and %c for what is to run there");
}

static hale_status_t take_node_timeout(struct parser *p)
{
	return units_parse_seconds(p->value, &p->o->node_timeout) && p->o->node_timeout >= 0.5 &&
		       p->o->node_timeout <= 86400
		   ? HALE_OK
		   : options_bad_value(p, "a time from 500ms to a day");
}

static hale_status_t take_net_security(struct parser *p)
{
	p->o->given_net_security = true;
	p->o->net_encrypt = strcmp(p->value, "encrypt") == 0;
	return p->o->net_encrypt || strcmp(p->value, "auth") == 0
		   ? HALE_OK
		   : options_bad_value(
			 p, "auth (who connects proves that it is of this job) or encrypt "
			    "(and all that is sent is encrypted and authenticated)");
}

static hale_status_t take_head_grace(struct parser *p)
{
	return units_parse_seconds(p->value, &p->o->head_grace) &&
		       (p->o->head_grace == 0 || p->o->head_grace >= 1) &&
		       p->o->head_grace <= 30 * 86400.0
		   ? HALE_OK
		   : options_bad_value(p,
				       "a time from 1s to 30 days (0: the job ends with hale run)");
}

static hale_status_t take_agent_lost(struct parser *p)
{
	p->o->agent_lost_ends = strcmp(p->value, "end") == 0;
	return p->o->agent_lost_ends || strcmp(p->value, "adopt") == 0
		   ? HALE_OK
		   : options_bad_value(p, "adopt (when a node's agent dies another one goes on in "
					  "its place, and the ranks run on) or end (its ranks end "
					  "with it)");
}

static hale_status_t take_warm_sinks(struct parser *p)
{
	p->o->warm_sinks = WARM_OFF;
	return strcmp(p->value, "off") == 0 ||
		       units_parse_int(p->value, 0, JOB_RANKS_MAX, &p->o->warm_sinks)
		   ? HALE_OK
		   : options_bad_value(p, "a number of processes from 0 on (0: only files are kept "
					  "in memory) or off");
}

static hale_status_t take_replicas(struct parser *p)
{
	const char *colon = strchr(p->value, ':');
	char degree[8];

	p->o->given_replicas = true;
	snprintf(degree, sizeof(degree), "%.*s",
		 colon ? (int)(colon - p->value) : (int)sizeof(degree) - 1, p->value);
	p->o->replicas_of = colon ? colon + 1 : NULL;
	return units_parse_int(degree, 1, LIVING_DEGREE_MAX, &p->o->replicas)
		   ? HALE_OK
		   : options_bad_value(p, "1, 2 or 3: processes that run each rank; 2:0-3,7: those "
					  "ranks only, 2:none: none yet");
}

static hale_status_t take_shadows(struct parser *p)
{
	if (!units_parse_int(p->value, 1, JOB_RANKS_MAX, &p->o->shadows))
		return options_bad_value(
		    p, "how many shadows share a core, from 1 on; each rank has one");
	p->o->replicas = LIVING_SHADOW_SLOTS;
	return HALE_OK;
}

static hale_status_t take_shadow_rate(struct parser *p)
{
	char *end;

	p->o->shadow_rate = strtod(p->value, &end);
	return *p->value && !*end && p->o->shadow_rate >= 0.001 && p->o->shadow_rate <= 1
		   ? HALE_OK
		   : options_bad_value(
			 p, "the share of a core that each shadow may use, from 0.001 to 1");
}

static hale_status_t take_rejuvenate_after(struct parser *p)
{
	p->o->given_shadows = true;
	if (strcmp(p->value, "never") == 0) {
		p->o->rejuvenate_after = 0;
		return HALE_OK;
	}
	return units_parse_int(p->value, 1, 1000000, &p->o->rejuvenate_after)
		   ? HALE_OK
		   : options_bad_value(p, "a number of failures from 1 on, or never");
}

static hale_status_t take_jump_at(struct parser *p)
{
	p->o->given_shadows = true;
	if (strcmp(p->value, "off") == 0) {
		p->o->jumps_off = true;
		return HALE_OK;
	}
	p->o->jumps_off = false;
	return units_parse_bytes(p->value, &p->o->jump_at) && p->o->jump_at > 0
		   ? HALE_OK
		   : options_bad_value(p,
				       "a size of the log (64MiB) at which a shadow jumps, or off");
}

static hale_status_t take_spawn(struct parser *p)
{
	return units_parse_int(p->value, 0, JOB_RANKS_MAX, &p->o->spawn)
		   ? HALE_OK
		   : options_bad_value(p, "a number of processes from 0 on, which MPI_Comm_spawn "
					  "may start");
}

/* Why a job can have no processes in reserve for MPI_Comm_spawn; NULL: it can. */
static const char *cannot_spawn(const struct options *o)
{
	if (o->no_mpi)
		return "--no-mpi";
	if (o->replicas > 1)
		return "--replicas";
	if (o->tasks)
		return "--tasks";
	return NULL;
}

hale_status_t options_reserve(struct options *o, bool spawns, struct error *err)
{
	enum { RESERVE_DEFAULT = 8 };
	long wanted = o->spawn >= 0 ? o->spawn : spawns ? RESERVE_DEFAULT : 0;
	const char *why = cannot_spawn(o);
	char *world;

	if (why && o->spawn > 0)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "--spawn and %s don't go together in this version", why);
	if (why || wanted == 0)
		return HALE_OK;
	wanted++; /* the keeper (mpi/dynamic/keeper.c) */
	if (o->ranks + wanted > JOB_RANKS_MAX)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "%ld ranks and %ld processes for MPI_Comm_spawn are more than %d",
				 o->ranks, wanted - 1, JOB_RANKS_MAX);
	if (asprintf(&world, "HALE_WORLD=0-%ld", o->ranks - 1) < 0)
		world = NULL;
	o->ranks += wanted;
	o->reserve = wanted;
	return options_export(o, world, err);
}

static hale_status_t take_replenish(struct parser *p)
{
	p->o->replenish = strcmp(p->value, "on") == 0;
	return p->o->replenish || strcmp(p->value, "off") == 0
		   ? HALE_OK
		   : options_bad_value(p, "on (replicas that have died come back) or off");
}

/* TIME, compute=TIME or both. */
static hale_status_t take_hang_after(struct parser *p)
{
	char copy[64];
	char *save = NULL;
	bool good = strlen(p->value) < sizeof(copy);

	p->o->hang_after = p->o->hang_compute = p->o->hang_wait = 0;
	if (strcmp(p->value, "off") == 0)
		return HALE_OK;
	snprintf(copy, sizeof(copy), "%s", p->value);
	for (char *part = strtok_r(copy, ",", &save); good && part;
	     part = strtok_r(NULL, ",", &save)) {
		bool computes = strncmp(part, "compute=", 8) == 0;
		bool waits = strncmp(part, "wait=", 5) == 0;
		double *to = computes ? &p->o->hang_compute
			     : waits  ? &p->o->hang_wait
				      : &p->o->hang_after;

		good = units_parse_seconds(part + (computes ? 8 : waits ? 5 : 0), to) && *to >= 0.1;
	}
	return good && (p->o->hang_after > 0 || p->o->hang_compute > 0 || p->o->hang_wait > 0)
		   ? HALE_OK
		   : options_bad_value(
			 p, "a time of 100ms at least, after which a rank that is "
			    "stopped by a signal counts as dead; compute=TIME for one that "
			    "computes and calls no MPI; wait=TIME for one that waits; or off");
}

static hale_status_t take_sdc(struct parser *p)
{
	p->o->sdc = strcmp(p->value, "off") == 0 ? NULL : p->value;
	return !p->o->sdc || strcmp(p->value, "hash") == 0 || strcmp(p->value, "full") == 0
		   ? HALE_OK
		   : options_bad_value(p, "hash (messages of a rank's replicas are compared by "
					  "their hashes), full (byte by byte) or off");
}

static hale_status_t take_on_sdc(struct parser *p)
{
	p->o->given_on_sdc = true;
	p->o->on_sdc = strcmp(p->value, "rollback") == 0 ? ON_SDC_ROLLBACK : ON_SDC_STOP;
	return p->o->on_sdc == ON_SDC_ROLLBACK || strcmp(p->value, "stop") == 0
		   ? HALE_OK
		   : options_bad_value(p, "stop (the job ends when nobody knows which message is "
					  "right) or rollback (it goes back)");
}

static hale_status_t take_audit(struct parser *p)
{
	p->o->given_audit = true;
	if (strcmp(p->value, "off") == 0) {
		p->o->audit = 0;
		return HALE_OK;
	}
	p->o->replicas =
	    LIVING_DEGREE_MAX; /* room for two copies of each, of which nobody has any */
	p->o->replicas_of = "none";
	return units_parse_seconds(p->value, &p->o->audit) && p->o->audit >= 0.1 &&
		       p->o->audit <= 30 * 86400.0
		   ? HALE_OK
		   : options_bad_value(p, "a time from 100ms to 30 days, for which each rank is "
					  "visited, or off");
}

hale_status_t options_check_audit(struct options *o, struct error *err)
{
	char *wish;

	if (o->audit <= 0)
		return HALE_OK;
	if (o->given_replicas || o->shadows || o->sdc)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "--audit makes copies of one rank after the other, and compares by "
		    "itself; leave out --replicas, --sdc and --shadows, or --audit");
	if (asprintf(&wish, "HALE_SDC=audit") < 0)
		wish = NULL;
	return options_export(o, wish, err);
}

hale_status_t options_check_sdc(struct options *o, struct error *err)
{
	char *wish;

	if ((o->hang_compute > 0 || o->hang_wait > 0) && o->replicas < 2)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--hang-after %s=TIME: whether a process hangs or has long to "
				 "%s only another one of its rank can tell; add --replicas 2",
				 o->hang_compute > 0 ? "compute" : "wait",
				 o->hang_compute > 0 ? "compute" : "wait");
	if (o->sdc && o->replicas < 2)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--sdc compares what the replicas of a rank send, and there is "
				 "one process for each rank; add --replicas 2");
	if (o->given_on_sdc && !o->sdc && o->audit <= 0)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--on-sdc says what follows when messages differ, and none are "
				 "compared; add --sdc hash");
	if (!o->sdc)
		return HALE_OK;
	if (asprintf(&wish, "HALE_SDC=%s", o->sdc) < 0)
		wish = NULL;
	return options_export(o, wish, err);
}

static hale_status_t no_shadows(struct error *err)
{
	return error_set(
	    err, HALE_ERR_ARGUMENT,
	    "--shadow-rate, --jump-at and --rejuvenate-after are about shadows, and this "
	    "job has none; add --shadows 4");
}

/* With --shadows, or without. */
hale_status_t options_check_shadows(struct options *o, struct error *err)
{
	char *wish;

	if (!o->shadows)
		return o->shadow_rate > 0 || o->given_shadows ? no_shadows(err) : HALE_OK;
	if (o->given_replicas)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "--shadows and --replicas don't go together: the second process of "
		    "a rank is a shadow, or its equal; leave out one of the two");
	if (o->sdc)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--sdc compares what equals send, and shadows send nothing; use "
				 "--replicas 2 instead of --shadows");
	if (o->head_grace > 0)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "--shadows and --head-grace don't go together in this version: no "
				 "other head knows what a shadow's log has; use --replicas 2, or "
				 "leave out --head-grace");
	if (o->shadows > o->ranks)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "--shadows %ld: of %ld rank%s no more than %ld shadow%s can share a "
		    "core; lower it, or raise -n",
		    o->shadows, o->ranks, o->ranks > 1 ? "s" : "", o->ranks,
		    o->ranks > 1 ? "s" : "");
	if (asprintf(&wish, "HALE_SHADOWS=%ld", o->shadows) < 0)
		wish = NULL;
	if (options_export(o, wish, err) != HALE_OK)
		return err->code;
	if (o->jump_at == 0 && !o->jumps_off)
		return HALE_OK;
	if ((o->jumps_off ? asprintf(&wish, "HALE_JUMP_AT=off")
			  : asprintf(&wish, "HALE_JUMP_AT=%lu", (unsigned long)o->jump_at)) < 0)
		wish = NULL;
	return options_export(o, wish, err);
}

hale_status_t options_check_replicas(struct options *o, struct error *err)
{
	const char *what = o->audit > 0 ? "--audit" : "--replicas";
	struct error list;

	if (o->no_mpi)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "%s needs MPI, by which the processes of a rank know of each other; leave out "
		    "--no-mpi",
		    what);
	if (o->ckpt_local && o->shadows)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "--shadows and --ckpt-local don't go together in this version; "
				 "leave out --ckpt-local, and the checkpoints go to --ckpt-dir");
	if (o->ckpt_auto && (o->given_every || o->given_auto))
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "--ckpt-every auto counts on failures that cost a rollback, and "
				 "replicas survive most; with --replicas say a time");
	if (o->ranks * o->replicas > JOB_RANKS_MAX)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "%ld ranks with room for %ld processes each are more than %d",
				 o->ranks, o->replicas, JOB_RANKS_MAX);
	if (o->replicas_of &&
	    rank_list_parse(o->replicas_of, (uint32_t)o->ranks, NULL, &list) != HALE_OK)
		return error_set(err, HALE_ERR_ARGUMENT, "--replicas: %s", list.text);
	if (o->merged)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "%s and several programs (':') don't go together in this version",
				 what);
	if (o->tasks)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "%s and --tasks don't go together in this version", what);
	o->ckpt_auto = false;
	return HALE_OK;
}

/* What a checkpoint of a job with replicas, or without, can be restarted with. */
hale_status_t options_restart_replicas(struct options *o, uint32_t ranks, uint32_t degree,
				       uint32_t shadows, struct error *err)
{
	struct error list;
	long wanted = o->replicas;
	bool about_shadows = o->given_shadows || o->shadow_rate > 0;

	o->ranks = ranks;
	o->replicas = degree;
	o->shadows = shadows;
	if (about_shadows && !shadows)
		return no_shadows(err);
	if (shadows && o->given_replicas)
		return error_set(
		    err, HALE_ERR_UNSUPPORTED,
		    "the checkpoint is of a job with shadows, which comes back with them; "
		    "leave out --replicas");
	if (degree > 1 && o->requeue)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the checkpoint is of a job with replicas, for which there is no "
				 "--requeue in this version; leave it out");
	if (shadows && o->ckpt_local)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the checkpoint is of a job with shadows, for which there is no "
				 "--ckpt-local in this version; leave it out");
	if (degree > 1 && !o->given_every)
		o->ckpt_auto = false;
	if (degree > 1 && o->ckpt_auto)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the checkpoint is of a job with replicas, for which there is no "
				 "--ckpt-every auto in this version; say a time");
	if (!o->given_replicas)
		return HALE_OK;
	if (wanted > degree && degree == 1)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the job of this checkpoint was begun without room for replicas, "
				 "so it gets none; leave out --replicas");
	if (wanted > degree)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the job of this checkpoint was begun with room for %u processes "
				 "of each rank; --replicas takes 1 to %u",
				 degree, degree);
	if (o->replicas_of && rank_list_parse(o->replicas_of, ranks, NULL, &list) != HALE_OK)
		return error_set(err, HALE_ERR_ARGUMENT, "--replicas: %s", list.text);
	o->replicas_first = wanted;
	return HALE_OK;
}

hale_status_t options_restart_audit(struct options *o, double audit, struct error *err)
{
	if (!(audit >= 0.1 && audit <= 30 * 86400.0) || o->replicas != LIVING_DEGREE_MAX)
		audit = 0;
	if (!o->given_audit)
		o->audit = audit;
	else
		o->replicas_of = NULL;
	if (o->audit > 0 && audit == 0)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the job of this checkpoint was begun without --audit, and its "
				 "processes don't compare what they get; leave out --audit");
	if (o->audit > 0 && o->given_replicas)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "the job of this checkpoint is audited, which takes the processes "
				 "that it has room for; leave out --replicas, or add --audit off");
	return HALE_OK;
}

const struct option options_place[] = {
    {"-n|-np|-c|--np|--n", 1, true, take_ranks},
    {"--replicas", 1, false, take_replicas},
    {"--shadows", 1, true, take_shadows},
    {"--shadow-rate", 1, false, take_shadow_rate},
    {"--rejuvenate-after", 1, false, take_rejuvenate_after},
    {"--jump-at", 1, true, take_jump_at},
    {"--hang-after", 1, true, take_hang_after},
    {"--sdc", 1, true, take_sdc},
    {"--audit", 1, false, take_audit},
    {"--on-sdc", 1, true, take_on_sdc},
    {"--spawn", 1, true, take_spawn},
    {"--replenish", 1, false, take_replenish},
    {"--nodes", 1, false, take_nodes},
    {"--ppn|-ppn|-N|--npernode|-npernode", 1, false, options_take_per_node},
    {"--spares", 1, false, take_spares},
    {"--hosts|--hostfile|-hostfile|--machinefile|-machinefile|-f", 1, false, take_hosts},
    {"--host|-host|-H|-hosts", 1, false, take_host_list},
    {"--launcher", 1, false, take_launcher},
    {"--node-timeout", 1, false, take_node_timeout},
    {"--net-security", 1, false, take_net_security},
    {"--head-grace", 1, false, take_head_grace},
    {"--agent-lost", 1, false, take_agent_lost},
    {"--warm-sinks", 1, false, take_warm_sinks},
    {0},
};
