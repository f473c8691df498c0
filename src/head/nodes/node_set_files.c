/* SPDX-License-Identifier: BSD-3-Clause */
/* Which files the ranks of each node write, as their agents say. Those that ranks of several nodes
 * write are known by one inode number everywhere, but by different devices. A number that two files
 * have by chance costs a longer stop. */
#include <stdlib.h>
#include <string.h>
#include "head/nodes/node_set.h"
#include "head/nodes/node_set_private.h"

void node_set_files_take(struct node *n, const struct message *m)
{
	struct node_asks *k = &n->asks;
	uint64_t *files = m->len % sizeof(*files) == 0 ? malloc(m->len + 1) : NULL;

	if (!files) /* it has not said */
		return;
	memcpy(files, m->bytes, m->len);
	free(k->files);
	k->files = files;
	k->files_count = m->len / sizeof(*files);
	k->files_check = m->id;
}

struct file_there {
	uint64_t inode;
	uint32_t node;
};

static int by_inode(const void *a, const void *b)
{
	const struct file_there *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* Of all nodes; those that have not said, or have too many, may write any. NULL: so it is for some.
 */
static struct file_there *gather(const struct node_set *c, size_t *count)
{
	struct file_there *all;
	size_t most = 1;

	*count = 0;
	for (uint32_t k = 0; k < c->count; k++)
		most += c->nodes[k].asks.files_count;
	all = calloc(most, sizeof(*all));
	for (uint32_t k = 0; all && k < c->count; k++) {
		const struct node_asks *n = &c->nodes[k].asks;

		if (!node_usable(&c->nodes[k]))
			continue;
		if (n->files_check != c->asks.last_check ||
		    (n->files_count > 0 && n->files[n->files_count - 1] == UINT64_MAX)) {
			free(all);
			return NULL;
		}
		for (size_t i = 0; i < n->files_count; i++)
			all[(*count)++] = (struct file_there){n->files[i], k};
	}
	return all;
}

bool node_set_files_meet(const struct node_set *c)
{
	size_t count;
	struct file_there *all = gather(c, &count);
	bool meet = !all;

	if (all)
		qsort(all, count, sizeof(*all), by_inode);
	for (size_t i = 1; i < count && !meet; i++)
		meet = all[i].inode == all[i - 1].inode && all[i].node != all[i - 1].node;
	free(all);
	return meet;
}
