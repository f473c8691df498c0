/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/hosts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"

enum { FILE_MAX = 1 << 20 };

/* Names go into command lines: letters, digits and what else is in names of hosts. */
static bool good_name(const char *name, size_t len)
{
	if (len == 0 || len >= JOB_NODE_NAME || name[0] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("._-@:%", name[i]))
			return false;
	return true;
}

static hale_status_t add(struct hosts *h, const char *name, size_t len, uint32_t slots,
			 const char *what, struct error *err)
{
	struct host *more;

	if (!good_name(name, len))
		return error_set(err, HALE_ERR_ARGUMENT, "'%.*s' in %s is no name of a host",
				 (int)(len < 80 ? len : 80), name, what);
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

static hale_status_t parse_line(struct hosts *h, char *line, const char *what, struct error *err)
{
	char *save = NULL, *name, *word;
	uint32_t slots = 0;

	line[strcspn(line, "#")] = '\0';
	name = strtok_r(line, " \t\r", &save);
	if (!name)
		return HALE_OK;
	while ((word = strtok_r(NULL, " \t\r", &save)))
		if (strncmp(word, "slots=", 6) != 0 || !parse_slots(word + 6, &slots))
			return error_set(err, HALE_ERR_ARGUMENT,
					 "%s: behind a host may stand slots=N, not '%s'", what,
					 word);
	return add(h, name, strlen(name), slots, what, err);
}

hale_status_t hosts_parse(struct hosts *h, const char *text, const char *what, struct error *err)
{
	char *copy = strdup(text), *save = NULL;
	hale_status_t status = HALE_OK;

	if (!copy)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the hosts");
	for (char *line = strtok_r(copy, "\n", &save); line && status == HALE_OK;
	     line = strtok_r(NULL, "\n", &save))
		status = parse_line(h, line, what, err);
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
	status = ferror(f) ? error_sys(err, HALE_ERR_ARGUMENT, "cannot read %s", what)
			   : hosts_parse(h, text, what, err);
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
		size_t len = strcspn(list, ","), name = len;
		const char *colon = memrchr(list, ':', len);
		uint32_t slots = 0;
		char text[16];

		if (colon && (size_t)(list + len - colon) <= sizeof(text)) {
			snprintf(text, sizeof(text), "%.*s", (int)(list + len - colon - 1),
				 colon + 1);
			if (parse_slots(text, &slots))
				name = (size_t)(colon - list);
		}
		status = add(h, list, name, slots, "--host", err);
		list += len + (list[len] == ',');
	}
	if (status == HALE_OK && h->count == 0)
		status = error_set(err, HALE_ERR_ARGUMENT, "--host names no host");
	return status;
}

hale_status_t hosts_slurm(struct hosts *h, struct error *err)
{
	const char *list = getenv("SLURM_JOB_NODELIST");
	hale_status_t status;
	FILE *f;

	/* inside a step (srun hale run …) the nodes are srun's business */
	if (!list || !*list || getenv("SLURM_STEP_ID"))
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

hale_status_t hosts_place(const struct hosts *h, uint32_t nranks, long nodes, long per_node,
			  long spares, struct placement *p, struct error *err)
{
	uint32_t usable = h->count - (uint32_t)spares;
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
