// SPDX-License-Identifier: BSD-3-Clause
/* Who descends from a process. */
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "image/tree/tree.h"

enum { STAT_EXIT_SIGNAL = 38, LIST = 8192, DIRENT_LEN = 16, DIRENT_NAME = 19 };

static int32_t take_number(const char **p)
{
	int32_t v = 0;
	while (**p == ' ' || **p == '\n')
		(*p)++;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		v = v * 10 + (**p - '0');
	return v;
}

/* False: it is gone, or one that writes an image, which has no exit signal. */
bool tree_look(int32_t pid, struct tree_process *p)
{
	char path[64], text[1024];
	fmt_print(path, sizeof(path), "/proc/%d/stat", pid);
	if (sys_read_small(path, text, sizeof(text)) <= 0)
		return false;
	const char *begin = strchr(text, '(');
	char *end = strrchr(text, ')');
	if (!begin || !end || end < begin || end[1] != ' ')
		return false;
	p->pid = pid;
	p->ended = end[2] == 'Z' || end[2] == 'X';
	const char *field = end + 3;
	p->parent = take_number(&field);
	p->group = take_number(&field);
	p->session = take_number(&field);
	for (int i = 7; i <= STAT_EXIT_SIGNAL && field; i++)
		if ((field = strchr(field, ' ')))
			field++;
	*end = 0;
	fmt_print(p->name, sizeof(p->name), "%.15s", begin + 1);
	return field && atoi(field) != 0;
}

bool tree_runs(int32_t pid)
{
	struct tree_process p = {.ended = true};
	tree_look(pid, &p); /* false for a writer, too */
	return !p.ended;
}

struct finding {
	struct tree_process *found;
	size_t max, count;
};

static void add_children(struct finding *f, const char *list)
{
	for (int32_t pid; (pid = take_number(&list)) > 0;) {
		struct tree_process p;
		if (!tree_look(pid, &p))
			continue;
		if (f->count < f->max)
			f->found[f->count] = p;
		if (f->count <= f->max)
			f->count++;
	}
}

/* Of all its threads. */
static bool children_of(struct finding *f, int32_t pid)
{
	char path[96], entries[1024], list[LIST];
	fmt_print(path, sizeof(path), "/proc/%d/task", pid);
	long n, fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while ((n = sys(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; at < n;) {
			uint16_t len;
			const char *name = entries + at + DIRENT_NAME;
			memcpy(&len, entries + at + DIRENT_LEN, sizeof(len));
			at += len;
			if (*name == '.')
				continue;
			fmt_print(path, sizeof(path), "/proc/%d/task/%.20s/children", pid, name);
			if (sys_read_small(path, list, sizeof(list)) > 0)
				add_children(f, list);
		}
	sys(SYS_close, fd);
	return n == 0;
}

bool tree_children(int32_t pid, struct tree_process *found, size_t max, size_t *count)
{
	struct finding f = {.found = found, .max = max};
	bool ok = children_of(&f, pid);

	*count = f.count;
	return ok;
}

bool tree_find(int32_t root, struct tree_process *found, size_t max, size_t *count)
{
	struct finding f = {.found = found, .max = max};
	bool ok = children_of(&f, root);
	for (size_t i = 0; i < f.count && i < max; i++)
		if (!found[i].ended)
			children_of(&f, found[i].pid); /* it may have ended */
	*count = f.count;
	return ok;
}

bool tree_is_member(int32_t pid)
{
	return tree_now() && tree_now()->root != pid;
}

size_t tree_pids(const struct tree_round *t, int32_t *pid, size_t max)
{
	size_t n = 0;
	if (max)
		pid[n++] = t->root;
	for (uint32_t i = 0; i < atomic_load(&t->count) && n < max; i++)
		if (atomic_load(&t->member[i].state) != TREE_GONE && !t->member[i].is.ended)
			pid[n++] = t->member[i].is.pid;
	return n;
}
