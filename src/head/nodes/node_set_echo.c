/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of jobs with replicas (echo.h): of each rank once, whichever of its processes dies. */
#include <stdlib.h>
#include "base/base.h"
#include "head/nodes/node_set.h"
#include "head/nodes/node_set_private.h"
#include "node/living.h"

static uint32_t ranks_of(const struct node_set *c)
{
	return c->nranks / c->config.setup.degree;
}

static void echo_pass(void *arg, const char *text, size_t len)
{
	output_position_take(arg, text, len);
}

bool node_set_echo_create(struct node_set *c)
{
	uint32_t n = ranks_of(c);

	c->echoes = calloc(n, sizeof(*c->echoes));
	for (uint32_t r = 0; c->echoes && r < n; r++)
		for (int i = 0; i < 2; i++)
			if (!echo_init(&c->echoes[r][i], c->config.setup.degree, echo_pass,
				       &c->ranks[r].out[i]))
				return false;
	return c->echoes != NULL;
}

void node_set_echo_destroy(struct node_set *c)
{
	for (uint32_t r = 0; c->echoes && r < ranks_of(c); r++)
		for (int i = 0; i < 2; i++)
			echo_fini(&c->echoes[r][i]);
	free(c->echoes);
	c->echoes = NULL;
}

void node_set_echo_begin(struct node_set *c)
{
	for (uint32_t r = 0; c->echoes && r < ranks_of(c); r++)
		for (int i = 0; i < 2; i++)
			echo_begin(&c->echoes[r][i]);
}

void node_set_echo_take(struct node_set *c, uint32_t process, int i, const char *text, size_t len)
{
	uint32_t n = ranks_of(c), rank = living_rank_of(process, n);

	if (!echo_take(&c->echoes[rank][i], living_slot_of(process, n), text, len))
		log_warn(
		    "out of memory: output of rank %u is lost if the replica that prints it dies",
		    rank);
}

void node_set_echo_ended(struct node_set *c, uint32_t process)
{
	uint32_t n = ranks_of(c);

	for (int i = 0; i < 2; i++)
		echo_ended(&c->echoes[living_rank_of(process, n)][i], living_slot_of(process, n));
}

void node_set_echo_lost(struct node_set *c, uint32_t process)
{
	uint32_t n = ranks_of(c);

	for (int i = 0; c->echoes && i < 2; i++)
		echo_lost(&c->echoes[living_rank_of(process, n)][i], living_slot_of(process, n));
}

void node_set_echo_returned(struct node_set *c, uint32_t process, const uint64_t position[3])
{
	uint32_t n = ranks_of(c);

	for (int i = 0; c->echoes && i < 2; i++)
		echo_returned(&c->echoes[living_rank_of(process, n)][i], living_slot_of(process, n),
			      position[i + 1]);
}

void node_set_echo_restored(struct node_set *c, uint32_t process, const uint64_t position[3])
{
	uint32_t n = ranks_of(c), rank = living_rank_of(process, n);

	for (int i = 0; c->echoes && i < 2; i++) {
		echo_restored(&c->echoes[rank][i], living_slot_of(process, n), position[i + 1]);
		output_position_begin(&c->ranks[rank].out[i], c->echoes[rank][i].spoken);
	}
}

void node_set_echo_follow(struct node_set *c, uint32_t rank, int i, uint64_t printed)
{
	c->echoes[rank][i].spoken = printed;
	output_position_go_on(&c->ranks[rank].out[i], printed, printed);
	c->ranks[rank].passed[i] = c->ranks[rank].out[i].handed = printed;
}

void node_set_echo_again(struct node_set *c, uint32_t process, const uint64_t first[2])
{
	node_set_echo_returned(c, process, (const uint64_t[3]){0, first[0], first[1]});
}

bool node_set_echo_has(const struct node_set *c, uint32_t process, const uint64_t position[3])
{
	uint32_t rank = living_rank_of(process, ranks_of(c));

	return !c->echoes || (c->echoes[rank][0].spoken >= position[1] &&
			      c->echoes[rank][1].spoken >= position[2]);
}

struct history *node_set_history(struct node_set *c, uint32_t process, int i)
{
	return &c->ranks[living_rank_of(process, ranks_of(c))].out[i].history;
}
