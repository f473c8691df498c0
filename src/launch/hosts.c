/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/hosts.h"
#include "launch/slurm_step.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/address.h"
#include "base/base.h"

enum { FILE_MAX = 1 << 20 };

/* Names go into command lines: letters, digits and what else is in names of hosts. Addresses of
 * IPv6 have two colons or more. */
static bool good_name(const char *name, size_t len)
{
	const char *colon = memchr(name, ':', len);

	if (len == 0 || len >= JOB_NODE_NAME || name[0] == '-' ||
	    (colon && colon == memrchr(name, ':', len)))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("._-@:%", name[i]))
			return false;
	return true;
}

static hale_status_t add(struct hosts *h, const char *name, size_t len, uint32_t slots,
			 const char *what, struct error *err)
{
	char whole[ADDRESS_MAX];
	struct host *more;

	if (!good_name(name, len))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%.*s' in %s is no name of a host, nor one with slots (n1:4)",
				 (int)(len < 80 ? len : 80), name, what);
	name = address_whole(whole, name, len); /* the node's name stands in events */
	len = strlen(name);
	for (uint32_t i = 0; i < h->count; i++) {
		if (strlen(h->at[i].name) == len && memcmp(h->at[i].name, name, len) == 0) {
			h->at[i].slots =
			    (h->at[i].slots ? h->at[i].slots : 1) + (slots ? slots : 1);
			return HALE_OK;
		}
	}
	if (h->count == JOB_NODES_MAX)
		return error_set(err, HALE_ERR_ARGUMENT, "%s names more than %d hosts", what,
				 JOB_NODES_MAX);
	more = realloc(h->at, (h->count + 1) * sizeof(*more));
	if (!more)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the hosts");
	h->at = more;
	more[h->count] = (struct host){.slots = slots};
	memcpy(more[h->count].name, name, len);
	h->count++;
	return HALE_OK;
}

static bool parse_slots(const char *text, uint32_t *slots)
{
	long n;

	if (!units_parse_int(text, 1, JOB_RANKS_MAX, &n))
		return false;
	*slots = (uint32_t)n;
	return true;
}

/* "n1:4", "[fd00::1]:4": the slots stand behind the colon, as mpirun has them. */
static const char *cut_slots(const char *word, size_t *len, uint32_t *slots)
{
	const char *colon = memrchr(word, ':', *len);
	size_t behind = colon ? (size_t)(word + *len - colon) - 1 : 0;
	bool bracket = word[0] == '[';
	char text[16];

	if (colon && behind < sizeof(text) &&
	    (bracket ? colon[-1] == ']' : colon == memchr(word, ':', *len))) {
		snprintf(text, sizeof(text), "%.*s", (int)behind, colon + 1);
		if (parse_slots(text, slots))
			*len = (size_t)(colon - word);
	}
	if (!bracket || *len < 2 || word[*len - 1] != ']')
		return word;
	*len -= 2;
	return word + 1;
}

static hale_status_t add_word(struct hosts *h, const char *word, size_t len, uint32_t slots,
			      const char *what, struct error *err)
{
	const char *name = cut_slots(word, &len, &slots);

	return add(h, name, len, slots, what, err);
}

/* Files for Open MPI may limit slots, too; more ranks than slots are never placed here. */
static bool is_limit(const char *word)
{
	uint32_t n;

	return (strncmp(word, "max_slots=", 10) == 0 || strncmp(word, "max-slots=", 10) == 0) &&
	       parse_slots(word + 10, &n);
}

static hale_status_t parse_line(struct hosts *h, char *line, const char *what, struct error *err)
{
	char *save = NULL, *name, *word;
	uint32_t slots = 0;

	line[strcspn(line, "#")] = '\0';
	name = strtok_r(line, " \t\r", &save);
	if (!name)
		return HALE_OK;
	while ((word = strtok_r(NULL, " \t\r", &save)))
		if (!is_limit(word) &&
		    (strncmp(word, "slots=", 6) != 0 || !parse_slots(word + 6, &slots)))
			return error_set(err, HALE_ERR_ARGUMENT,
					 "%s: behind a host may stand slots=N, not '%.80s'", what,
					 word);
	return add_word(h, name, strlen(name), slots, what, err);
}

hale_status_t hosts_parse(struct hosts *h, const char *text, const char *what, struct error *err)
{
	bool marked = strncmp(text, "\xef\xbb\xbf", 3) == 0; /* as some editors mark UTF-8 */
	char *copy = strdup(text + (marked ? 3 : 0));
	hale_status_t status = HALE_OK;
	unsigned number = 0;
	char where[340];

	if (!copy)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the hosts");
	for (char *line = copy, *next; line && status == HALE_OK; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		snprintf(where, sizeof(where), "line %u of %.300s", ++number, what);
		status = parse_line(h, line, where, err);
	}
	free(copy);
	return status;
}

static hale_status_t parse_stream(struct hosts *h, FILE *f, const char *what, struct error *err)
{
	char *text = malloc(FILE_MAX);
	hale_status_t status;
	size_t n;

	if (!text)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the hosts");
	n = fread(text, 1, FILE_MAX - 1, f);
	text[n] = '\0';
	if (ferror(f))
		status = error_sys(err, HALE_ERR_ARGUMENT, "cannot read %s", what);
	else if (strlen(text) < n || !feof(f))
		status = error_set(err, HALE_ERR_ARGUMENT, "%s is no list of hosts: it %s", what,
				   strlen(text) < n ? "has bytes that are zero"
						    : "is larger than 1 MiB");
	else
		status = hosts_parse(h, text, what, err);
	free(text);
	return status;
}

hale_status_t hosts_read(struct hosts *h, const char *path, struct error *err)
{
	FILE *f = fopen(path, "re");
	char what[300];
	hale_status_t status;

	if (!f)
		return error_sys(err, HALE_ERR_ARGUMENT, "cannot read the file of hosts '%s'",
				 path);
	snprintf(what, sizeof(what), "the file of hosts '%.250s'", path);
	status = parse_stream(h, f, what, err);
	fclose(f);
	if (status == HALE_OK && h->count == 0)
		status = error_set(err, HALE_ERR_ARGUMENT, "%s names no host", what);
	return status;
}

hale_status_t hosts_list(struct hosts *h, const char *list, struct error *err)
{
	hale_status_t status = HALE_OK;

	while (*list && status == HALE_OK) {
		size_t len = strcspn(list, ",");

		status = add_word(h, list, len, 0, "--host", err);
		list += len + (list[len] == ',');
	}
	if (status == HALE_OK && h->count == 0)
		status = error_set(err, HALE_ERR_ARGUMENT, "--host names no host");
	return status;
}

/* The nodes of the step whose tasks are the ranks. */
static hale_status_t slurm_step_read(struct hosts *h, struct error *err)
{
	const char *list = getenv("SLURM_STEP_NODELIST");
	const char *tasks = getenv("SLURM_STEP_TASKS_PER_NODE");
	hale_status_t status = HALE_OK;
	FILE *f = popen("scontrol show hostnames \"$SLURM_STEP_NODELIST\"", "re");

	if (!f)
		return error_sys(err, HALE_ERR_SYSTEM,
				 "cannot ask scontrol for the nodes of the step");
	status = parse_stream(h, f, "the Slurm step", err);
	if (pclose(f) != 0 || !list || !tasks || (status == HALE_OK && !slurm_step_slots(h, tasks)))
		return error_set(err, HALE_ERR_SYSTEM,
				 "can't tell which tasks of the Slurm step are on which node; name "
				 "the nodes with --host");
	h->slurm = true;
	return status;
}

hale_status_t hosts_slurm(struct hosts *h, bool step, struct error *err)
{
	const char *list = getenv("SLURM_JOB_NODELIST");
	hale_status_t status;
	FILE *f;

	if (step)
		return slurm_step_read(h, err);
	/* of a step with a job of its own in each task the nodes are srun's business */
	if (!list || !*list || slurm_in_step())
		return HALE_OK;
	f = popen("scontrol show hostnames \"$SLURM_JOB_NODELIST\"", "re");
	if (!f)
		return error_sys(err, HALE_ERR_SYSTEM,
				 "cannot ask scontrol for the nodes of the "
				 "allocation");
	status = parse_stream(h, f, "the Slurm allocation", err);
	if (pclose(f) != 0 || (status == HALE_OK && h->count == 0))
		return error_set(err, HALE_ERR_SYSTEM,
				 "scontrol can't say which nodes '%s' are; name them with --host",
				 list);
	h->slurm = true;
	return status;
}

static hale_status_t fill_slots(const struct hosts *h, uint32_t nranks, uint32_t usable,
				struct placement *p, struct error *err)
{
	struct place_node *nodes = calloc(usable, sizeof(*nodes));
	hale_status_t status;

	if (!nodes)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the hosts");
	for (uint32_t k = 0; k < usable; k++)
		nodes[k].slots = h->at[k].slots ? h->at[k].slots : 1;
	status = placement_fill(p, nranks, nodes, usable, err);
	free(nodes);
	return status;
}

/* What to do about it depends on where the number of nodes comes from. */
static hale_status_t check_room(const struct hosts *h, uint32_t nranks, long nodes, long per_node,
				long spares, uint32_t usable, struct error *err)
{
	char kept[80] = "";

	if ((uint64_t)usable * (uint64_t)per_node >= nranks)
		return HALE_OK;
	if (nodes > 0 && (uint64_t)(h->count - spares) * (uint64_t)per_node >= nranks)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "%u of the %u hosts (--nodes) with %ld ranks each (--ppn) are too "
				 "few for %u ranks; raise --nodes or --ppn",
				 usable, h->count, per_node, nranks);
	if (spares > 0)
		snprintf(kept, sizeof(kept), " besides %ld spare%s", spares,
			 spares == 1 ? "" : "s");
	return error_set(err, HALE_ERR_ARGUMENT,
			 "%u host%s%s with %ld ranks each (--ppn) are too few for %u ranks; name "
			 "more hosts, or raise --ppn%s",
			 h->count - (uint32_t)spares, h->count - spares == 1 ? "" : "s", kept,
			 per_node, nranks, spares > 0 ? ", or lower --spares" : "");
}

hale_status_t hosts_place(const struct hosts *h, uint32_t nranks, long nodes, long per_node,
			  long spares, struct placement *p, struct error *err)
{
	uint32_t usable = h->count - (uint32_t)spares;
	hale_status_t status = HALE_OK;
	bool said = false;

	if (spares >= h->count)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "%ld spares of %u hosts leave none to run on; lower --spares",
				 spares, h->count);
	if (nodes > usable)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "there are %u hosts besides the spares, not %ld; lower --nodes",
				 usable, nodes);
	if (nodes > 0)
		usable = (uint32_t)nodes;
	for (uint32_t k = 0; k < usable; k++)
		said = said || h->at[k].slots > 0;
	if (said && per_node == 0)
		return fill_slots(h, nranks, usable, p, err);
	if (per_node > 0)
		status = check_room(h, nranks, nodes, per_node, spares, usable, err);
	if (status != HALE_OK)
		return status;
	if (per_node > 0 && nodes == 0 && (uint64_t)usable * (uint64_t)per_node >= nranks)
		usable = (nranks + (uint32_t)per_node - 1) / (uint32_t)per_node;
	else if (nodes == 0 && usable > nranks)
		usable = nranks;
	return placement_make(p, nranks, usable, (uint32_t)per_node, err);
}

void hosts_fini(struct hosts *h)
{
	free(h->at);
	*h = (struct hosts){0};
}
