/* SPDX-License-Identifier: BSD-3-Clause */
/* What several processes of a tree have: found in their images, made in the rebuilt root. */
#ifndef HALE_IMAGE_TREE_OBJECTS_H
#define HALE_IMAGE_TREE_OBJECTS_H

#include "image/sink.h"
#include "image/tree/tree.h"

struct objects_image {
	int32_t pid;
	struct image_file *file;
	struct image_tables t;
	struct fd_restore fds;
};

struct objects {
	struct sink *sink; /* of the root */
	struct tree_sink *tree;
	struct objects_image image[TREE_MAX + 1];
	size_t images;
};

/* The root's tables are there. NULL with err. */
struct tree_sink *objects_init(struct objects *o, struct sink *s, struct error *err);
hale_status_t objects_take_image(struct objects *o, int32_t pid, int fd, struct error *err);
hale_status_t objects_make(struct objects *o, struct error *err);
/* What is there of that kind so far; NULL: nothing. */
struct tree_object *objects_find(struct objects *o, uint32_t kind, uint64_t device, uint64_t inode);
/* The open file of record n of image i once more, to be sent to another process; -1: it can't be
 * had. */
int objects_way_open(struct objects *o, size_t i, size_t n, struct error *err);
/* A new one, which has nothing yet; NULL: no room, with err. */
struct tree_object *objects_add(struct objects *o, uint32_t kind, uint64_t device, uint64_t inode,
				struct error *err);
/* What is in a pipe or socket, but parcels (fd/fd_way.c); NULL: nothing. */
const struct content *objects_content(const struct objects *o, uint32_t kind, uint64_t inode,
				      const struct fd_restore **of);
/* Out of the way, and for those who are executed, too. */
int objects_lift(int fd);

/* objects_sockets.c */
bool objects_make_pair(struct objects *o, const struct fd_record *r, struct error *err);
bool objects_make_connection(struct objects *o, const struct fd_record *r, struct error *err);
void objects_set_flags(struct objects *o, const struct fd_record *r);
/* What has to wait until all connections are there. */
bool objects_listen(struct objects *o, struct error *err);
/* objects_way.c: sends what was on its way in sockets with descriptors, when all sockets are there.
 */
bool objects_way_deliver(struct objects *o, struct error *err);
const char *objects_program(const struct objects *o, int32_t pid);
/* The descriptor of struct tree_sink, for who is executed. */
int objects_control_fd(void);

#endif
