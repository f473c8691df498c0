/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/dynamic/: MPI_Comm_spawn, ports, published names. May call mpi/comm/ and what that may.
 *
 * `hale run --spawn N` starts N processes more than the program's world has, in reserve, and one
 * that keeps count of them. They are ranks of the job like all others: in checkpoints, in
 * rollbacks, and they end with it. A process in reserve sleeps in its MPI_Init until an order comes
 * as a message; then it executes the program that the order names. That program's MPI_Init makes a
 * world of those that the order names, and an intercommunicator with those who spawned it. Behind
 * its MPI_Finalize the process is in reserve again. docs/spawn.md has the pictures.
 *
 * Everybody can reach everybody through one hidden communicator of all processes of the job,
 * world_all() (mpi/comm/world.c): there leaders meet that have no communicator in common yet. */
#ifndef HALE_MPI_DYNAMIC_DYNAMIC_H
#define HALE_MPI_DYNAMIC_DYNAMIC_H

#include "mpi/comm/comm.h"
#include "node/spawn_layout.h"

/* Tags in world_all(). Those of meetings of leaders stand in its collective context. */
enum {
	TAG_CALL = 1 << 26,   /* port.c */
	TAG_KEEPER,	      /* to the keeper: keeper.c */
	TAG_ORDER,	      /* to a process in reserve: order.c */
	TAG_OVER,	      /* to a process in reserve: it is needed no more */
	TAG_ANSWER = 1 << 27, /* of a port; plus the tag of the meeting, which has 25 bits */
	TAG_KEPT = 1 << 28,   /* of the keeper; plus the number of the question, 25 bits */
};

/* ---- spawn.c ---- */
/* What MPI_Comm_get_parent gives; the reference becomes spawn.c's. */
void spawn_parent_set(struct comm *parent);

/* ---- orders (order.c) ---- */
enum { SPAWN_ORDER_MAX = 48 << 10 };
struct order {
	struct order *next;
	int process;
	size_t length;
	char bytes[SPAWN_ORDER_MAX];
};
/* An empty order. NULL: no memory. */
struct order *order_new(int process);
bool order_add(struct order *o, const char *text);
/* Sends it; the order is freed. */
int order_give(struct order *o);
/* This process is in reserve: waits for an order and follows it; returns when the job ends. */
void order_await(void);
/* It runs a program now; that has finalized. */
void order_begun(void);
void order_done(void);
/* The program has ended with that status: the process is in reserve again, until the job ends. */
void order_rest(int status);
/* Has the job no use for processes in reserve any more? */
bool order_job_ends(void);

/* ---- the keeper (keeper.c) ---- */
/* This process is the one that counts: serves until the job ends. */
bool keeper_is_me(void);
void keeper_serve(void);
/* So many processes for this one; MPI_ERR_SPAWN: fewer are left. */
int keeper_claim(int *processes, int count);
/* They are not wanted after all. */
void keeper_give_back(const int *processes, int count);
/* The program of this process, spawned before, has ended; and the process can be used again. */
void keeper_rests(void);
void keeper_return(void);
/* The first world has finalized. */
void keeper_first_world_over(void);

/* ---- for progress hooks and those who wait ---- */
/* The first message with that tag in world_all(), as so many bytes at most; its source, or -1: none
 * has come. *bytes: its length. */
int message_take(int tag, void *to, size_t room, size_t *bytes);

/* ---- names (names.c) ---- */
/* The program that published them is gone. */
void names_forget(void);

/* ---- ports (port.c) ---- */
/* Numbers of ports go on in the next program, which answers calls for those of this one. */
struct carry;
void port_carry(struct carry *c);

#endif
