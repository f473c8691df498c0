/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to the server, in three files: client.c posts requests and waits for replies,
 * client_start.c starts servers, client_guest.c does what checkpoints of this process ask for. */
#ifndef HALE_OCL_REMOTE_CLIENT_H
#define HALE_OCL_REMOTE_CLIENT_H

#include <pthread.h>
#include <sys/types.h>
#include "ocl/remote/remote.h"

struct remote_client {
	struct remote_wire *wire;
	pthread_mutex_t lock; /* of the ring's head */
	bool started, dead;
	pid_t pid;		      /* the process that it belongs to: not a child of fork */
	int spins;		      /* looks at a reply before sleeping */
	_Atomic(const void *) caller; /* the thread that has called last */
	_Atomic double changed;	      /* when it was another one; 0: never, or long ago */
	_Atomic uint32_t life;	      /* servers so far */
	_Atomic uint32_t era;	      /* of these, those that knew nothing when they began */
};
extern struct remote_client client;

/* ---- client.c ---- */
enum { CLIENT_LOOK_NS = 50000000 }; /* between two looks at whether the server is there */
void client_futex_wait(_Atomic uint32_t *word, uint32_t seen, long ns);
/* Under the lock. False: the server has ended. */
bool client_append(struct remote_wire *w, const struct call *c, wire_op_t op, uint16_t slot);
/* Wakes the server if it sleeps. */
void client_bell(struct remote_wire *w);
/* Posts a request, waits, and takes the reply. */
cl_int client_exchange(struct call *c, wire_op_t op, struct remote_answer *a);

/* ---- client_start.c; both are async-signal-safe ---- */
bool client_server_lives(void);
/* How often a server that is killed before it has done anything is begun again, with the first. */
enum { CLIENT_TRIES = 3 };
/* A new region, where the old one was if there was one, and a new server. restored: this process
 * comes from an image. mapped: shared virtual memory is where it belongs. */
bool client_connect(bool restored, bool mapped, char *why, size_t size);

/* ---- client_guest.c ---- */
/* Looks for libhale.so, whose guest this driver is. */
void client_guest_find(void);
bool client_guest_is_one(void);
/* Has checkpoints call this driver. */
void client_guest_join(void);
/* Images have this memory again (remote_leave_out). */
void client_guest_take_in(void *at, size_t size);

#endif
