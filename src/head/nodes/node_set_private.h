/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the crew share. */
#ifndef HALE_HEAD_NODES_NODE_SET_PRIVATE_H
#define HALE_HEAD_NODES_NODE_SET_PRIVATE_H

#include "head/nodes/node_set.h"

static inline bool node_usable(const struct node *n)
{
	return n->state == NODE_READY || n->state == NODE_SPARE;
}
void node_send(struct node *n, const struct message *m);

/* node_set_start.c: an agent that never answered; adds to why what is known of its launcher. */
void crew_launcher_failed(struct node *n);

/* node_set_start.c, for node_set_adopt.c */
void crew_describe(struct crew *c);
hale_status_t crew_ranks_create(struct crew *c, struct error *err);
hale_status_t crew_session_add(struct node *n, int fd, struct error *err);
hale_status_t crew_launcher_start(struct node *n, int *fd, struct error *err);

/* node_set_adopt.c: MSG_ATTACHED, MSG_SUPERSEDED; the end of a session that has not attached */
void crew_adopt_take(struct node *n, const struct message *m);
void crew_adopt_address(struct crew *c, const struct message *m);
void crew_adopt_over(struct node *n, const char *why);

/* node_set_take.c */
void crew_take(void *node, const struct message *m);
void crew_tell_machines(struct crew *c);
void crew_all_ready(struct crew *c);
void crew_answers(struct crew *c); /* who was to answer is perhaps gone */
void crew_output_writer_drained(void *crew);

/* node_set.c: the rank is there, or is not wanted any more; those of this node that had no lease */
void crew_order_done(struct crew_rank *r);
void crew_order_again(struct node *n);

/* node_set_echo.c */
bool crew_echo_create(struct crew *c);
void crew_echo_destroy(struct crew *c);
void crew_echo_take(struct crew *c, uint32_t process, int i, const char *text, size_t len);
void crew_echo_ended(struct crew *c, uint32_t process);

/* node_set_lost.c */
void crew_session_over(void *node, const char *why);
void crew_lease_asked(struct node *n, uint64_t number);
/* The head has stood still: who could not reach it meanwhile gets another term to do so. */
void crew_lease_extend(struct node *n);
/* From now on it is lost; the handler hears of it. */
void crew_lose(struct node *n, const char *why);
bool crew_leased(const struct crew *c);

#endif
