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
const char *objects_program(const struct objects *o, int32_t pid);
/* The descriptor of struct tree_sink, for who is executed. */
int objects_control_fd(void);

#endif
