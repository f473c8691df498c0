/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/dynamic/: MPI_Comm_spawn, ports, published names. May call mpi/comm/ and what that may.
 *
 * `hale run --spawn N` starts N processes more than the program's world has, in reserve. They are
 * ranks of the job like all others: in checkpoints, in rollbacks, and they end with it. A process
 * in reserve sleeps in its MPI_Init until it finds an order in its room of the node's segment
 * (node/spawn_layout.h); then it executes the program that the order names. That program's MPI_Init
 * makes a world of those that the order names, and an intercommunicator with those who spawned it.
 *
 * Everybody can reach everybody through one hidden communicator of all processes of the job,
 * world_all() (mpi/comm/world.c): there leaders meet that have no communicator in common yet. */
#ifndef HALE_MPI_DYNAMIC_DYNAMIC_H
#define HALE_MPI_DYNAMIC_DYNAMIC_H

#include "mpi/comm/comm.h"
#include "node/spawn_layout.h"

/* ---- spawn.c ---- */
/* What MPI_Comm_get_parent gives; the reference becomes spawn.c's. */
void spawn_parent_set(struct comm *parent);

/* ---- orders (order.c) ---- */
struct order {
	struct order *next;
	int process;
	size_t length;
	char bytes[SPAWN_ORDER_MAX];
};
/* Processes in reserve on this node, taken for us; waits for those that start. False: fewer are
 * left. */
bool order_claim(int *processes, int count);
void order_unclaim(const int *processes, int count);
/* An empty order. NULL: no memory. */
struct order *order_new(int process);
bool order_add(struct order *o, const char *text);
/* The process starts what the order says; stays an open order, told again after a rollback, until
 * orders_done. */
void order_give(struct order *o);
void orders_done(void);
/* This process's own room: waits for an order and follows it; returns when the job ends. */
void order_await(void);
/* This process is in reserve no more: it runs a program; that has finalized; until the job ends. */
void order_begun(void);
void order_done(void);
void order_rest(void);

/* ---- names (names.c) ---- */
/* After a rollback: this process's names stand in the segment again. */
void names_restore(void);

#endif
