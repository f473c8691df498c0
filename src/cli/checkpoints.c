/* SPDX-License-Identifier: BSD-3-Clause */
/* hale ckpt list, rm, clean: the checkpoints that jobs have left. */
#include "cli/checkpoints.h"

#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "node/job.h"
#include "store/store.h"

#define DEFAULT_DIR "hale-ckpt"

static int usage(const char *what)
{
	log_warn("%s; `hale help ckpt` says how", what);
	return EXIT_USAGE;
}

static double age_of(const struct left *l)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - l->newest_at;
}

static const char *state_text(const struct left *l, char buf[48])
{
	switch (l->state) {
	case LEFT_ENDED:
		snprintf(buf, 48, "ended, status %d", l->exit_status);
		return buf;
	case LEFT_RUNNING:
		return "running";
	case LEFT_KILLED:
		return "killed";
	default:
		return "ended or elsewhere";
	}
}

/* ---- all folders of jobs in a --ckpt-dir ---- */

static int compare_age(const void *a, const void *b)
{
	const struct left *x = a, *y = b;

	return (x->newest_at > y->newest_at) - (x->newest_at < y->newest_at);
}

/* malloc'ed, oldest first; -1: dir can't be read. */
static ssize_t look_all(const char *dir, struct left **all)
{
	DIR *d = opendir(dir);
	size_t count = 0;
	struct dirent *e;

	*all = NULL;
	while (d && (e = readdir(d))) {
		struct left *more = realloc(*all, (count + 1) * sizeof(*more));
		char path[PATH_MAX];

		if (!more)
			break;
		*all = more;
		snprintf(path, sizeof(path), "%.2048s/%s", dir, e->d_name);
		if (e->d_name[0] != '.' && left_look(path, &more[count], NULL) == HALE_OK)
			count++;
	}
	if (d)
		closedir(d);
	if (count > 1)
		qsort(*all, count, sizeof(**all), compare_age);
	return d ? (ssize_t)count : -1;
}

static void free_all(struct left *all, ssize_t count)
{
	for (ssize_t i = 0; i < count; i++)
		left_fini(&all[i]);
	free(all);
}

/* ---- list ---- */

static void print_json(const struct left *all, ssize_t count)
{
	struct json_out j;
	char text[48];

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_open_array(&j, "jobs");
	for (ssize_t i = 0; i < count; i++) {
		json_open_object(&j, NULL);
		json_string(&j, "job", all[i].job);
		json_string(&j, "folder", all[i].folder);
		json_string(&j, "state", state_text(&all[i], text));
		json_uint(&j, "bytes", all[i].bytes);
		json_double(&j, "age_seconds", age_of(&all[i]));
		json_open_array(&j, "checkpoints");
		for (size_t k = 0; k < all[i].count; k++)
			json_uint(&j, NULL, all[i].ids[k]);
		json_close_array(&j);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_close_object(&j);
	if (j.text)
		puts(j.text);
	json_out_fini(&j);
}

static void print_line(const struct left *l)
{
	char bytes[16], age[16], text[48], ids[64] = "none whole";

	if (l->count == 1)
		snprintf(ids, sizeof(ids), "checkpoint %u", l->ids[0]);
	else if (l->count > 1)
		snprintf(ids, sizeof(ids), "checkpoints %u to %u", l->ids[0], l->ids[l->count - 1]);
	printf("%-28s %-22s %10s  %8s old  %s\n", l->job, ids, units_show_bytes(l->bytes, bytes),
	       units_show_seconds(age_of(l), age), state_text(l, text));
}

static void say_no_folder(const char *dir)
{
	log_warn("there is no folder '%s': no job has kept checkpoints here, or it was given "
		 "another --ckpt-dir",
		 dir);
}

static int list(int argc, char **argv)
{
	const char *dir = DEFAULT_DIR;
	char total[16];
	bool json = false, given = false;
	uint64_t bytes = 0;
	struct left *all;
	ssize_t count;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else if (argv[i][0] != '-' && !given) {
			dir = argv[i];
			given = true;
		} else {
			return usage("hale ckpt list takes a folder and --json");
		}
	}
	count = look_all(dir, &all);
	if (count < 0) {
		say_no_folder(dir);
		return given ? EXIT_USAGE : 0;
	}
	for (ssize_t i = 0; i < count; i++) {
		bytes += all[i].bytes;
		if (!json)
			print_line(&all[i]);
	}
	if (json)
		print_json(all, count);
	else
		printf("%zd job%s, %s in %s\n", count, count == 1 ? "" : "s",
		       units_show_bytes(bytes, total), dir);
	free_all(all, count);
	return 0;
}

/* ---- rm ---- */

static bool may_go(const struct left *l, bool force)
{
	if (l->state == LEFT_RUNNING)
		log_warn("job %s is running; its checkpoints stay", l->job);
	else if (l->state == LEFT_UNKNOWN && !force)
		log_warn("job %s may still run on %s: its record has no end; --force removes its "
			 "checkpoints all the same",
			 l->job, l->node[0] ? l->node : "another machine");
	else
		return true;
	return false;
}

static int remove_path(const char *path, bool force)
{
	struct left l;
	struct error err;
	char copy[PATH_MAX], *end;
	const char *last = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	unsigned long id = strtoul(last, &end, 10);
	bool one = last[0] >= '1' && last[0] <= '9' && *end == '\0' && id <= UINT32_MAX;
	hale_status_t status;
	char bytes[16];

	snprintf(copy, sizeof(copy), "%s", path);
	status = left_look(one ? dirname(copy) : copy, &l, &err);
	if (status == HALE_OK && !may_go(&l, force)) {
		left_fini(&l);
		return 1;
	}
	if (status == HALE_OK)
		status = one ? left_remove_one(&l, (uint32_t)id, &err) : left_remove(&l, &err);
	if (status != HALE_OK)
		log_warn("%s", err.text);
	else if (!one)
		printf("%s: %s freed\n", path, units_show_bytes(l.bytes, bytes));
	left_fini(&l);
	return status == HALE_OK ? 0 : status == HALE_ERR_IMAGE_MISSING ? EXIT_USAGE : 1;
}

static int rm(int argc, char **argv)
{
	bool force = false;
	int status = 0, paths = 0;

	for (int i = 1; i < argc; i++) {
		force = force || strcmp(argv[i], "--force") == 0;
		if (argv[i][0] == '-' && strcmp(argv[i], "--force") != 0)
			return usage(
			    "hale ckpt rm takes folders of jobs or checkpoints, and --force");
		paths += argv[i][0] != '-';
	}
	if (paths == 0)
		return usage("which ones? hale ckpt rm hale-ckpt/JOB, or hale-ckpt/JOB/3");
	for (int i = 1; i < argc; i++) {
		int one = argv[i][0] == '-' ? 0 : remove_path(argv[i], force);

		status = one > status ? one : status;
	}
	return status;
}

/* ---- clean ---- */

struct cleaning {
	const char *dir;
	bool dry;
	double older; /* < 0: only those of jobs that ended well */
};

static bool parse_cleaning(int argc, char **argv, struct cleaning *c)
{
	*c = (struct cleaning){.dir = DEFAULT_DIR, .older = -1};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--dry-run") == 0)
			c->dry = true;
		else if (strcmp(argv[i], "--older-than") == 0 && i + 1 < argc) {
			if (!units_parse_seconds(argv[++i], &c->older))
				return false;
		} else if (argv[i][0] != '-')
			c->dir = argv[i];
		else
			return false;
	}
	return true;
}

/* The checkpoints of a job that failed may be all that is left of its work: only age removes them.
 */
static bool is_over(const struct cleaning *c, const struct left *l)
{
	if (l->state == LEFT_RUNNING)
		return false;
	if (c->older >= 0)
		return age_of(l) >= c->older;
	return l->state == LEFT_ENDED && l->exit_status == 0;
}

static int clean(int argc, char **argv)
{
	struct cleaning c;
	uint64_t freed = 0;
	size_t removed = 0;
	struct left *all;
	struct error err;
	ssize_t count;
	char bytes[16];
	int status = 0;

	if (!parse_cleaning(argc, argv, &c))
		return usage("hale ckpt clean takes a folder, --older-than TIME and --dry-run");
	count = look_all(c.dir, &all);
	if (count < 0) {
		say_no_folder(c.dir);
		return EXIT_USAGE;
	}
	for (ssize_t i = 0; i < count; i++) {
		if (!is_over(&c, &all[i]))
			continue;
		if (c.dry) {
			print_line(&all[i]);
		} else if (left_remove(&all[i], &err) != HALE_OK) {
			log_warn("%s", err.text);
			status = 1;
			continue;
		}
		removed++;
		freed += all[i].bytes;
	}
	printf("%zu of %zd jobs' checkpoints %s, %s%s\n", removed, count,
	       c.dry ? "would be removed" : "removed", units_show_bytes(freed, bytes),
	       c.dry ? "" : " freed");
	free_all(all, count);
	return status;
}

int cli_checkpoints(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} known[] = {{"list", list}, {"ls", list}, {"rm", rm}, {"clean", clean}};

	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(known); i++)
		if (strcmp(argv[1], known[i].name) == 0)
			return known[i].run(argc - 1, argv + 1);
	return -1;
}
