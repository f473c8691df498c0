/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processes a world has, and how those of different worlds reach each other. */
#include <stdlib.h>
#include "channel/carry/carry.h"
#include "mpi/comm/comm.h"
#include "node/spawn_layout.h"

static struct comm *all;
static int tags;

const char *world_text(void)
{
	return link_self()->degree > 1 ? NULL : getenv("HALE_WORLD");
}

/* The segment's room of a process that was never in reserve stays SPAWN_NONE. */
bool world_in_reserve(void)
{
	const char *text = world_text();
	return text && !spawn_world_has(text, link_self()->rank);
}

int *world_members(int *count)
{
	const char *text = world_in_reserve() ? NULL : world_text(), *rest = text;
	uint32_t first = 0, last = link_self()->nranks - 1;
	int n = 0;
	if (world_in_reserve())
		first = last = link_self()->rank;
	while (text && spawn_world_run(&rest, &first, &last))
		n += (int)(last - first + 1);
	if (!text)
		n = (int)(last - first + 1);
	int *world = heap_alloc((size_t)n * sizeof(int));
	if (!world)
		return NULL;
	*count = 0;
	do {
		if (text && !spawn_world_run(&text, &first, &last))
			break;
		for (uint32_t p = first; p <= last; p++)
			world[(*count)++] = (int)p;
	} while (text);
	return world;
}

struct comm *world_all(void)
{
	return all;
}

/* Its context is the last one, far from those that have cells of shared memory: no collective is
 * ever called on it. */
int world_all_make(void)
{
	int n = (int)link_self()->nranks;
	if (link_self()->degree > 1)
		return MPI_SUCCESS;
	int *world = heap_alloc((size_t)n * sizeof(int));
	if (!world)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < n; i++)
		world[i] = i;
	struct group *g = group_create(world, n);
	if (!g)
		return MPI_ERR_NO_MEM;
	all = comm_create(COMM_WORLD, g, NULL);
	group_release(g);
	if (!all)
		return MPI_ERR_NO_MEM;
	comm_know(all, COMM_CONTEXT_MAX - COMM_CONTEXTS);
	return MPI_SUCCESS;
}

void world_all_end(void)
{
	if (all)
		comm_unknow(all);
	all = NULL;
}

void world_carry(struct carry *c)
{
	carry_bytes(c, &tags, sizeof(tags));
}

/* Each side counts for itself; the lowest bit says whose count it is. */
int world_tag(int peer)
{
	tags = (tags + 1) & 0xffffff;
	return tags << 1 | ((int)link_self()->rank < peer);
}
