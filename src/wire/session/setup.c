/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/session/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

static void put_u32(FILE *f, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, f);
}

static void put_text(FILE *f, const char *text)
{
	fwrite(text ? text : "", strlen(text ? text : "") + 1, 1, f);
}

static void put_list(FILE *f, char *const *list)
{
	uint32_t count = 0;

	while (list && list[count])
		count++;
	put_u32(f, count);
	for (uint32_t i = 0; i < count; i++)
		put_text(f, list[i]);
}

void *setup_write(const struct setup *s, size_t *len)
{
	char *bytes = NULL;
	FILE *f = open_memstream(&bytes, len);

	if (!f)
		return NULL;
	put_u32(f, s->flags);
	put_u32(f, s->nranks);
	put_u32(f, s->degree);
	put_u32(f, s->shadows);
	put_u32(f, s->shadow_rate);
	put_u32(f, s->node);
	put_u32(f, s->bind);
	fwrite(&s->lease_ns, sizeof(s->lease_ns), 1, f);
	fwrite(&s->grace_ns, sizeof(s->grace_ns), 1, f);
	fwrite(&s->hang_ns, sizeof(s->hang_ns), 1, f);
	fwrite(&s->compute_ns, sizeof(s->compute_ns), 1, f);
	fwrite(&s->wait_ns, sizeof(s->wait_ns), 1, f);
	put_u32(f, s->epoch);
	fwrite(s->secret, sizeof(s->secret), 1, f);
	put_text(f, s->job);
	put_text(f, s->name);
	put_text(f, s->program);
	put_text(f, s->wdir);
	put_text(f, s->local);
	put_text(f, s->folder);
	put_text(f, s->tag);
	put_list(f, s->argv);
	put_list(f, s->environ);
	put_list(f, s->exports);
	if (fclose(f) == 0)
		return bytes;
	free(bytes);
	return NULL;
}

/* ---- reading ---- */

struct setup_in {
	char *at;
	size_t left;
	bool good;
};

static void get(struct setup_in *in, void *to, size_t len)
{
	in->good = in->good && in->left >= len;
	if (!in->good)
		return;
	memcpy(to, in->at, len);
	in->at += len;
	in->left -= len;
}

static char *get_text(struct setup_in *in)
{
	char *text = in->at;
	const char *end = in->good ? memchr(in->at, '\0', in->left) : NULL;

	in->good = end != NULL;
	if (!end)
		return NULL;
	in->left -= (size_t)(end + 1 - in->at);
	in->at += end + 1 - in->at;
	return text;
}

static char **get_list(struct setup_in *in)
{
	uint32_t count = 0;
	char **list = NULL;

	get(in, &count, sizeof(count));
	in->good = in->good && count <= in->left; /* each has a byte at least */
	if (in->good)
		list = calloc((size_t)count + 1, sizeof(*list));
	in->good = in->good && list;
	for (uint32_t i = 0; in->good && i < count; i++)
		list[i] = get_text(in);
	return list;
}

bool setup_read(const void *bytes, size_t len, struct setup *s)
{
	struct setup_in in = {NULL, len, true};

	*s = (struct setup){.owned = malloc(len ? len : 1)};
	if (!s->owned)
		return false;
	memcpy(s->owned, bytes, len);
	in.at = s->owned;
	get(&in, &s->flags, sizeof(s->flags));
	get(&in, &s->nranks, sizeof(s->nranks));
	get(&in, &s->degree, sizeof(s->degree));
	get(&in, &s->shadows, sizeof(s->shadows));
	get(&in, &s->shadow_rate, sizeof(s->shadow_rate));
	get(&in, &s->node, sizeof(s->node));
	get(&in, &s->bind, sizeof(s->bind));
	get(&in, &s->lease_ns, sizeof(s->lease_ns));
	get(&in, &s->grace_ns, sizeof(s->grace_ns));
	get(&in, &s->hang_ns, sizeof(s->hang_ns));
	get(&in, &s->compute_ns, sizeof(s->compute_ns));
	get(&in, &s->wait_ns, sizeof(s->wait_ns));
	get(&in, &s->epoch, sizeof(s->epoch));
	get(&in, s->secret, sizeof(s->secret));
	s->job = get_text(&in);
	s->name = get_text(&in);
	s->program = get_text(&in);
	s->wdir = get_text(&in);
	s->local = get_text(&in);
	s->folder = get_text(&in);
	s->tag = get_text(&in);
	s->argv = get_list(&in);
	s->environ = get_list(&in);
	s->exports = get_list(&in);
	if (in.good && in.left == 0 && s->degree != 0 && s->nranks % s->degree == 0)
		return true;
	setup_fini(s);
	return false;
}

/* Names that are another thing on each machine, or for each task of a Slurm step. */
static bool is_local(const char *assignment)
{
	static const char *const begins[] = {"HOSTNAME=",	 "SSH_",
					     "DISPLAY=",	 "XAUTHORITY=",
					     "XDG_RUNTIME_DIR=", "SLURMD_NODENAME=",
					     "SLURM_NODEID=",	 "SLURM_PROCID=",
					     "SLURM_LOCALID=",	 "SLURM_TASK_PID=",
					     "SLURM_GTIDS=",	 "SLURM_TOPOLOGY_ADDR=",
					     "SLURM_LAUNCH_",	 "SLURM_STEP",
					     "HALE_LIBDIR="};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(assignment, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

bool setup_localize(struct setup *s, char *const *own)
{
	size_t count = 0, kept = 0;
	char **list;

	for (char **e = s->environ; *e; e++)
		count++;
	for (char *const *e = own; *e; e++)
		count++;
	list = calloc(count + 1, sizeof(*list));
	if (!list)
		return false;
	for (char **e = s->environ; *e; e++)
		if (!is_local(*e))
			list[kept++] = *e;
	for (char *const *e = own; *e; e++)
		if (is_local(*e))
			list[kept++] = *e;
	free(s->environ);
	s->environ = list;
	return true;
}

void setup_fini(struct setup *s)
{
	free(s->argv);
	free(s->environ);
	free(s->exports);
	free(s->owned);
	*s = (struct setup){0};
}
