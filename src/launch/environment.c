/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/environment.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"

#ifndef HALE_LIBDIR
#define HALE_LIBDIR "/usr/local/lib/x86_64-linux-gnu/hale"
#endif

struct environment_list {
	char **at;
	size_t count, cap;
	bool failed;
};

static size_t name_length(const char *assignment)
{
	return strcspn(assignment, "=");
}

/* Takes over assignment (NULL: out of memory); replaces an earlier one of the same name. */
static void list_put(struct environment_list *l, char *assignment)
{
	size_t len;

	if (!assignment) {
		l->failed = true;
		return;
	}
	len = name_length(assignment) + 1;
	for (size_t i = 0; i < l->count; i++) {
		if (strncmp(l->at[i], assignment, len) == 0) {
			free(l->at[i]);
			l->at[i] = assignment;
			return;
		}
	}
	if (l->count + 2 > l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		char **at = realloc(l->at, cap * sizeof(*at));
		if (!at) {
			free(assignment);
			l->failed = true;
			return;
		}
		l->at = at;
		l->cap = cap;
	}
	l->at[l->count++] = assignment;
	l->at[l->count] = NULL;
}

__attribute__((format(printf, 2, 3))) static void list_printf(struct environment_list *l,
							      const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	list_put(l, text);
}

static const char *list_get(const struct environment_list *l, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < l->count; i++)
		if (strncmp(l->at[i], name, len) == 0 && l->at[i][len] == '=')
			return l->at[i] + len + 1;
	return NULL;
}

/* What an outer `hale run` gave to this one is not for the ranks of this one. */
static bool is_ours(const char *assignment)
{
	static const char *const kept[] = {"HALE_LOG=", "HALE_LIBDIR="};

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (strncmp(assignment, kept[i], strlen(kept[i])) == 0)
			return false;
	static const char *const dropped[] = {
	    "HALE_AGENT=",    "HALE_PROCESS=",	  "HALE_TOKEN=",  "HALE_RANK=",	  "HALE_NRANKS=",
	    "HALE_JOB=",      "HALE_LAUNCH_PID=", "HALE_NO_MPI=", "HALE_SINK=",	  "HALE_JOURNAL=",
	    "HALE_WORLD=",    "HALE_SPAWNED=",	  "HALE_CARRY=",  "HALE_APPNUM=", "HALE_CKPT_LAST=",
	    "HALE_REPLICAS=", "HALE_SDC="};
	for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
		if (strncmp(assignment, dropped[i], strlen(dropped[i])) == 0)
			return true;
	return false;
}

static void put_libraries(struct environment_list *l, const struct environment_params *p)
{
	const char *preload = list_get(l, "LD_PRELOAD");
	const char *path = list_get(l, "LD_LIBRARY_PATH");

	/* a blank ends a name there, but not in LD_LIBRARY_PATH, where names alone are looked for
	 */
	bool blank = strchr(p->libdir, ' ') != NULL;

	const char *mpi = p->preload_mpi ? p->preload_mpi : "";

	list_printf(l, "LD_PRELOAD=%s%s%s%slibhale.so%s%s%s%s", preload ? preload : "",
		    preload && *preload ? ":" : "", blank ? "" : p->libdir, blank ? "" : "/",
		    *mpi ? ":" : "", *mpi ? p->libdir : "", *mpi ? "/" : "", mpi);
	list_printf(l, "LD_LIBRARY_PATH=%s%s%s", p->libdir, path && *path ? ":" : "",
		    path ? path : "");
}

static void put_rank(struct environment_list *l, const struct environment_params *p)
{
	static const char *const rank_names[] = {"HALE_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
						 "PMI_RANK"};
	static const char *const size_names[] = {"HALE_NRANKS", "OMPI_COMM_WORLD_SIZE",
						 "OMPI_UNIVERSE_SIZE", "PMI_SIZE"};

	for (size_t i = 0; i < ARRAY_LEN(rank_names); i++)
		list_printf(l, "%s=%u", rank_names[i], p->rank);
	for (size_t i = 0; i < ARRAY_LEN(size_names); i++)
		list_printf(l, "%s=%u", size_names[i], p->nranks);
	list_printf(l, "OMPI_COMM_WORLD_LOCAL_RANK=%u", p->local_rank);
	list_printf(l, "OMPI_COMM_WORLD_LOCAL_SIZE=%u", p->local_size);
	list_printf(l, "OMPI_COMM_WORLD_NODE_RANK=%u", p->local_rank);
}

char **environment_make(const struct environment_params *p)
{
	struct environment_list l = {0};

	for (char *const *e = p->inherited; e && *e; e++)
		if (strchr(*e, '=') && !is_ours(*e))
			list_put(&l, strdup(*e));
	for (char *const *e = p->exports; e && *e; e++)
		list_put(&l, strdup(*e));
	put_libraries(&l, p);
	put_rank(&l, p);
	list_printf(&l, "HALE_AGENT=%s", p->agent);
	list_printf(&l, "HALE_TOKEN=%s", p->token);
	list_printf(&l, "HALE_JOB=%s", p->job);
	list_printf(&l, "HALE_PROCESS=%u", p->process);
	if (p->degree > 1)
		list_printf(&l, "HALE_REPLICAS=%u", p->degree);
	list_printf(&l, "HALE_LAUNCH_PID=%16s", "");
	if (p->no_mpi)
		list_printf(&l, "HALE_NO_MPI=1");
	if (p->sink)
		list_printf(&l, "HALE_SINK=%s", p->sink);
	if (l.failed) {
		environment_free(l.at);
		return NULL;
	}
	return l.at;
}

void environment_free(char **env)
{
	for (char **e = env; e && *e; e++)
		free(*e);
	free(env);
}

void environment_set_pid(char **env, int pid)
{
	static const char name[] = "HALE_LAUNCH_PID=";
	char digits[16];
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + pid % 10);
		pid /= 10;
	} while (pid > 0);
	for (char **e = env; *e; e++) {
		if (strncmp(*e, name, sizeof(name) - 1) == 0) {
			char *to = *e + sizeof(name) - 1;
			while (n > 0)
				*to++ = digits[--n];
			*to = '\0';
			return;
		}
	}
}

static bool has_file(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < PATH_MAX &&
	       access(path, R_OK) == 0;
}

/* Without the second one the system's own MPI would be found, and each rank be a job of one. */
static bool has_library(const char *dir)
{
	return has_file(dir, "libhale.so") && has_file(dir, "libmpi.so.40");
}

static bool find_beside_executable(char libdir[PATH_MAX])
{
	char exe[PATH_MAX];
	char pattern[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	bool found = false;
	glob_t match;

	if (n <= 0)
		return false;
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	if (has_library(exe)) {
		snprintf(libdir, PATH_MAX, "%s", exe);
		return true;
	}
	snprintf(pattern, sizeof(pattern), "%s/../lib*/{hale,*/hale}", exe);
	if (glob(pattern, GLOB_BRACE, NULL, &match) == 0)
		for (size_t i = 0; i < match.gl_pathc && !found; i++)
			found =
			    has_library(match.gl_pathv[i]) && realpath(match.gl_pathv[i], libdir);
	globfree(&match);
	return found;
}

/* The dynamic loader splits and expands its lists at these. */
static hale_status_t can_be_named(const char *libdir, struct error *err)
{
	if (!strpbrk(libdir, ":;$\n\t"))
		return HALE_OK;
	return error_set(
	    err, HALE_ERR_ARGUMENT,
	    "hale's libraries are in '%s', and the dynamic loader takes no folder with "
	    "one of : ; $ in its name; install hale elsewhere, or set HALE_LIBDIR to a "
	    "symbolic link to it",
	    libdir);
}

static hale_status_t find_libdir(char libdir[PATH_MAX], struct error *err)
{
	const char *given = getenv("HALE_LIBDIR");

	if (given && *given) {
		/* a link stays one: it may be there because of the name that it stands for */
		bool found = given[0] == '/' ? snprintf(libdir, PATH_MAX, "%s", given) < PATH_MAX
					     : realpath(given, libdir) != NULL;

		if (!found || !has_library(libdir))
			return error_set(
			    err, HALE_ERR_ARGUMENT,
			    "HALE_LIBDIR is %s, but libhale.so and libmpi.so.40 are not in it",
			    given);
		return HALE_OK;
	}
	if (find_beside_executable(libdir))
		return HALE_OK;
	snprintf(libdir, PATH_MAX, "%s", HALE_LIBDIR);
	if (has_library(libdir))
		return HALE_OK;
	return error_set(
	    err, HALE_ERR_SYSTEM,
	    "libhale.so and libmpi.so.40 are neither beside hale nor in %s; install them, or set "
	    "HALE_LIBDIR",
	    HALE_LIBDIR);
}

hale_status_t environment_find_libdir(char libdir[PATH_MAX], struct error *err)
{
	hale_status_t status = find_libdir(libdir, err);

	return status == HALE_OK ? can_be_named(libdir, err) : status;
}
