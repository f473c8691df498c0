/* SPDX-License-Identifier: BSD-3-Clause */
/* hale stack: where the processes of a job are, all at once: their stacks, merged from the
 * outermost function on, as debuggers of large jobs show them. eu-stack reads a stack, or else gdb.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "control/control.h"

enum { FRAMES_MAX = 96, NAME_MAX_BYTES = 96, AT_ONCE = 8, LABEL = 32 };

struct stack {
	char label[LABEL]; /* "3", or with replicas "3.1" */
	pid_t pid;
	FILE *from;
	int frames;		      /* 0: nothing could be read */
	char (*name)[NAME_MAX_BYTES]; /* [FRAMES_MAX], innermost first */
};

/* ---- reading ---- */

static const char *reader_find(void)
{
	if (access("/usr/bin/eu-stack", X_OK) == 0)
		return "exec /usr/bin/eu-stack -1 -p %d 2>/dev/null";
	if (access("/usr/bin/gdb", X_OK) == 0)
		return "exec /usr/bin/gdb -nx -batch -p %d -ex bt 2>/dev/null </dev/null";
	return NULL;
}

/* Is it a process of that job, here? Its number may be one of another machine. */
static bool is_of_job(pid_t pid, const char *job)
{
	char path[64], *text = NULL, wanted[JOB_ID_MAX + 16];
	size_t room = 0;
	bool found = false;
	FILE *f;

	snprintf(wanted, sizeof(wanted), "HALE_JOB=%s", job);
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	f = fopen(path, "re");
	while (f && !found && getdelim(&text, &room, '\0', f) > 0)
		found = strcmp(text, wanted) == 0;
	if (f)
		fclose(f);
	free(text);
	return found;
}

/* "#3  0x00007f12 in name (args) at file" or "#3  0x00007f12 name" or "#3  name (args)". */
static bool frame_read(const char *line, char name[NAME_MAX_BYTES])
{
	size_t len;

	if (line[0] != '#' || !isdigit((unsigned char)line[1]))
		return false;
	line += 1 + strspn(line + 1, "0123456789");
	line += strspn(line, " ");
	if (strncmp(line, "0x", 2) == 0) {
		line += 2 + strspn(line + 2, "0123456789abcdef");
		line += strspn(line, " ");
		if (strncmp(line, "in ", 3) == 0)
			line += 3;
	}
	len = strcspn(line, " (\n");
	snprintf(name, NAME_MAX_BYTES, "%.*s", (int)(len < 90 ? len : 90), len ? line : "?");
	return true;
}

static void stack_open(struct stack *s, const char *reader)
{
	char command[160];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(command, sizeof(command), reader, (int)s->pid);
#pragma GCC diagnostic pop
	s->from = popen(command, "re");
}

static void stack_take(struct stack *s)
{
	char *line = NULL;
	size_t room = 0;

	while (s->from && getline(&line, &room, s->from) > 0)
		if (s->frames < FRAMES_MAX && frame_read(line, s->name[s->frames]))
			s->frames++;
	free(line);
	if (s->from)
		pclose(s->from);
	s->from = NULL;
}

/* ---- showing ---- */

static const char *frame_at(const struct stack *s, int level)
{
	return level < s->frames ? s->name[s->frames - 1 - level] : NULL;
}

static void labels_print(struct stack *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%s%s", i ? "," : "", list[i]->label);
}

/* Those of list, which have all come the same way to this level. */
static void tree_print(struct stack **list, size_t n, int level)
{
	while (n > 0) {
		const char *name = frame_at(list[0], level);
		size_t same = 1;

		for (size_t i = 1; i < n; i++) {
			const char *other = frame_at(list[i], level);
			if ((!name && !other) || (name && other && strcmp(name, other) == 0)) {
				struct stack *s = list[i];
				memmove(list + same + 1, list + same, (i - same) * sizeof(*list));
				list[same++] = s;
			}
		}
		if (name) {
			printf("%*s%s  %zu: ", 2 * level, "", name, same);
			labels_print(list, same);
			printf("\n");
			tree_print(list, same, level + 1);
		}
		list += same;
		n -= same;
	}
}

static void stacks_read(struct stack *all, size_t n, const char *reader)
{
	for (size_t i = 0; i < n; i += AT_ONCE) {
		for (size_t k = i; k < n && k < i + AT_ONCE; k++)
			stack_open(&all[k], reader);
		for (size_t k = i; k < n && k < i + AT_ONCE; k++)
			stack_take(&all[k]);
	}
}

static int stacks_show(struct stack *all, size_t n, size_t elsewhere)
{
	struct stack **list = calloc(n + 1, sizeof(*list));
	size_t read = 0;

	for (size_t i = 0; list && i < n; i++)
		if (all[i].frames > 0)
			list[read++] = &all[i];
	if (list)
		tree_print(list, read, 0);
	free(list);
	if (read < n)
		log_warn(
		    "the stacks of %zu process%s could not be read: hale stack needs the rights "
		    "of a debugger (root, or sysctl kernel.yama.ptrace_scope=0)",
		    n - read, n - read > 1 ? "es" : "");
	if (elsewhere > 0)
		log_warn(
		    "%zu process%s not on this machine: run hale stack there, too, or ask with "
		    "gdb -p",
		    elsewhere, elsewhere > 1 ? "es are" : " is");
	return read > 0 ? 0 : 1;
}

/* ---- the command ---- */

static size_t stacks_find(const struct json_value *ranks, const char *job, struct stack *all,
			  size_t *elsewhere)
{
	size_t n = 0, count = json_count(ranks);
	bool replicas = false;

	for (size_t i = 0; i < count; i++)
		replicas |= json_number_int(json_get(json_at(ranks, i), "slot"), 0) > 0;
	for (size_t i = 0; i < count; i++) {
		const struct json_value *r = json_at(ranks, i);
		int rank = (int)json_number_int(json_get(r, "rank"), 0);
		int slot = (int)json_number_int(json_get(r, "slot"), 0);
		pid_t pid = (pid_t)json_number_int(json_get(r, "pid"), 0);
		const char *state = json_text(json_get(r, "state"), "");

		if (pid <= 0 || strcmp(state, "lost") == 0 || strcmp(state, "ended") == 0)
			continue;
		if (!is_of_job(pid, job)) {
			++*elsewhere;
			continue;
		}
		all[n].pid = pid;
		all[n].name = calloc(FRAMES_MAX, sizeof(*all[n].name));
		if (!all[n].name)
			continue;
		if (replicas)
			snprintf(all[n].label, LABEL, "%d.%d", rank, slot);
		else
			snprintf(all[n].label, LABEL, "%d", rank);
		n++;
	}
	return n;
}

int cli_stack(int argc, char **argv)
{
	const char *reader = reader_find(), *wanted = argc > 1 ? argv[1] : NULL;
	struct json_value *answer = NULL;
	char job[JOB_ID_MAX];
	struct error err;
	struct stack *all;
	size_t n, elsewhere = 0;
	int status;

	if (wanted && (strcmp(wanted, "--help") == 0 || strcmp(wanted, "-h") == 0))
		return cli_help("stack");
	if (argc > 2 || (wanted && wanted[0] == '-')) {
		log_warn("hale stack takes the name of a job and nothing else: hale stack [JOB]");
		return EXIT_USAGE;
	}
	if (!reader) {
		log_warn(
		    "hale stack reads stacks with eu-stack or gdb, and neither is here: install "
		    "elfutils or gdb");
		return EXIT_USAGE;
	}
	if (control_choose(wanted, job, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	if (control_ask(job, "{\"op\":\"ps\"}", &answer, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return 1;
	}
	all = calloc(json_count(json_get(answer, "ranks")) + 1, sizeof(*all));
	if (!all) {
		log_warn("out of memory");
		json_free(answer);
		return 1;
	}
	n = stacks_find(json_get(answer, "ranks"), job, all, &elsewhere);
	stacks_read(all, n, reader);
	status = stacks_show(all, n, elsewhere);
	for (size_t i = 0; i < n; i++)
		free(all[i].name);
	free(all);
	json_free(answer);
	return status;
}
