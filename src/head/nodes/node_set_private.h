/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the node set share. */
#ifndef HALE_HEAD_NODES_NODE_SET_PRIVATE_H
#define HALE_HEAD_NODES_NODE_SET_PRIVATE_H

#include "head/nodes/node_set.h"

static inline bool node_usable(const struct node *n)
{
	return n->state == NODE_READY || n->state == NODE_SPARE;
}
void node_send(struct node *n, const struct message *m);

/* node_set_start.c: an agent that never answered; adds to why what is known of its launcher. */
void node_set_launcher_failed(struct node *n);

/* node_set_start.c, for node_set_adopt.c */
void node_set_describe(struct node_set *c);
hale_status_t node_set_ranks_create(struct node_set *c, struct error *err);
hale_status_t node_set_session_add(struct node *n, int fd, struct error *err);
hale_status_t node_set_launcher_start(struct node *n, int *fd, struct error *err);

/* node_set_adopt.c: MSG_ATTACHED, MSG_SUPERSEDED; the end of a session that has not attached */
void node_set_adopt_take(struct node *n, const struct message *m);
void node_set_adopt_address(struct node_set *c, const struct message *m);
void node_set_adopt_over(struct node *n, const char *why);

/* node_set_take.c */
void node_set_take(void *node, const struct message *m);
void node_set_tell_machines(struct node_set *c);
void node_set_all_ready(struct node_set *c);
void node_set_answers(struct node_set *c); /* who was to answer is perhaps gone */
void node_set_output_writer_drained(void *node_set);

/* node_set_files.c: what MSG_CHECKED says of files */
void node_set_files_take(struct node *n, const struct message *m);

/* node_set.c: the rank is there, or is not wanted any more; those of this node that had no lease */
void node_set_order_done(struct node_set_rank *r);
void node_set_order_again(struct node *n);

/* node_set_echo.c */
bool node_set_echo_create(struct node_set *c);
void node_set_echo_destroy(struct node_set *c);
void node_set_echo_take(struct node_set *c, uint32_t process, int i, const char *text, size_t len);
void node_set_echo_ended(struct node_set *c, uint32_t process);

/* node_set_lost.c */
void node_set_session_over(void *node, const char *why);
void node_set_lease_asked(struct node *n, uint64_t number);
/* The head has stood still: who could not reach it meanwhile gets another term to do so. */
void node_set_lease_extend(struct node *n);
/* From now on it is lost; the handler hears of it. */
void node_set_lose(struct node *n, const char *why);
bool node_set_leased(const struct node_set *c);

#endif
