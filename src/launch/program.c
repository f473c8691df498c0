/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/program.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/base.h"
#include "launch/elf.h"
#include "node/job.h"

enum { LIBRARIES_MAX = 512, DIRECTORIES_MAX = 64 };

/* One walk over everything that the program is linked with, as the dynamic loader would do it. */
struct program_walk {
	struct program *program;
	char *found[LIBRARIES_MAX]; /* paths, owned */
	size_t count;
	char *system[DIRECTORIES_MAX]; /* where the loader looks last, owned */
	size_t system_count;
	char foreign[64]; /* a library of another MPI, and who wants it */
	char mixed[64];	  /* a second MPI that it wants */
	char first[64];	  /* the library that says which MPI it is */
	char wanted_by[PATH_MAX];
};

/* Not resolved any further: interpreters and the like look at the link they were started by. */
static bool found_as(const char *path, struct program *p)
{
	struct stat st;
	char cwd[PATH_MAX];

	if (stat(path, &st) != 0 || S_ISDIR(st.st_mode))
		return false;
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	if (path[0] == '/')
		return snprintf(p->path, sizeof(p->path), "%s", path) < PATH_MAX;
	return getcwd(cwd, sizeof(cwd)) &&
	       snprintf(p->path, sizeof(p->path), "%s/%s", cwd, path) < PATH_MAX;
}

static bool find_in_path(const char *name, struct program *p)
{
	const char *path = getenv("PATH");
	char candidate[PATH_MAX];

	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (path) {
		const char *colon = strchr(path, ':');
		int len = colon ? (int)(colon - path) : (int)strlen(path);

		snprintf(candidate, sizeof(candidate), "%.*s/%s", len, len ? path : ".", name);
		if (access(candidate, X_OK) == 0 && found_as(candidate, p))
			return true;
		path = colon ? colon + 1 : NULL;
	}
	return false;
}

static hale_status_t no_program(const char *path, int *exit_status, struct error *err)
{
	struct stat st;

	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return error_set(err, HALE_ERR_ARGUMENT, "program '%s' was not found", path);
	*exit_status = EXIT_NOT_EXECUTABLE;
	return error_set(err, HALE_ERR_ARGUMENT, "'%s' is a folder, not a program", path);
}

static hale_status_t find_program(const char *name, const char *wdir, struct program *p,
				  int *exit_status, struct error *err)
{
	char path[PATH_MAX];

	*exit_status = EXIT_NOT_FOUND;
	if (!strchr(name, '/')) {
		if (find_in_path(name, p))
			return HALE_OK;
		return error_set(err, HALE_ERR_ARGUMENT,
				 "program '%s' was not found in PATH; give its path, ./%s for "
				 "instance",
				 name, name);
	}
	snprintf(path, sizeof(path), "%s%s%s", wdir && name[0] != '/' ? wdir : "",
		 wdir && name[0] != '/' ? "/" : "", name);
	if (!found_as(path, p))
		return no_program(path, exit_status, err);
	if (access(path, X_OK) != 0) {
		*exit_status = EXIT_NOT_EXECUTABLE;
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s' is not executable; chmod +x it, or start it by its "
				 "interpreter",
				 path);
	}
	return HALE_OK;
}

static void add_system_directory(struct program_walk *w, const char *dir)
{
	if (w->system_count < DIRECTORIES_MAX)
		w->system[w->system_count++] = strdup(dir);
}

/* The loader's cache is made from these files; reading them spares a parser of the cache. */
static void read_loader_directories(struct program_walk *w)
{
	static const char *const fixed[] = {"/lib/x86_64-linux-gnu",
					    "/usr/lib/x86_64-linux-gnu",
					    "/lib64",
					    "/usr/lib64",
					    "/lib",
					    "/usr/lib"};
	char line[PATH_MAX];
	glob_t files;

	if (glob("/etc/ld.so.conf.d/*.conf", 0, NULL, &files) == 0) {
		for (size_t i = 0; i < files.gl_pathc; i++) {
			FILE *f = fopen(files.gl_pathv[i], "re");
			while (f && fgets(line, sizeof(line), f)) {
				line[strcspn(line, "\n")] = '\0';
				if (line[0] == '/')
					add_system_directory(w, line);
			}
			if (f)
				fclose(f);
		}
	}
	globfree(&files);
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		add_system_directory(w, fixed[i]);
}

/* Looks for a library in a colon-separated list in which $ORIGIN is the folder of origin. */
static bool find_in_list(const char *list, const char *origin, const char *library, char *out)
{
	while (list && *list) {
		size_t len = strcspn(list, ":");
		const char *rest = list;
		size_t skip = 0;
		char folder[PATH_MAX] = "";

		if (strncmp(list, "$ORIGIN", 7) == 0)
			skip = 7;
		else if (strncmp(list, "${ORIGIN}", 9) == 0)
			skip = 9;
		if (skip)
			snprintf(folder, sizeof(folder), "%.*s",
				 (int)(strrchr(origin, '/') - origin), origin);
		rest += skip;
		int n =
		    snprintf(out, PATH_MAX, "%s%.*s/%s", folder, (int)(len - skip), rest, library);
		if (n < PATH_MAX && access(out, R_OK) == 0)
			return true;
		list += len + (list[len] == ':');
	}
	return false;
}

static bool find_library(struct program_walk *w, const struct elf_file *f, const char *origin,
			 const char *library, char *out, bool *by_rpath)
{
	*by_rpath = !f->runpath && find_in_list(f->rpath, origin, library, out);
	if (*by_rpath || find_in_list(getenv("LD_LIBRARY_PATH"), origin, library, out) ||
	    find_in_list(f->runpath, origin, library, out))
		return true;
	for (size_t i = 0; i < w->system_count; i++)
		if (find_in_list(w->system[i], origin, library, out))
			return true;
	return false;
}

static void add_found(struct program_walk *w, const char *path)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->found[i], path) == 0)
			return;
	if (w->count < LIBRARIES_MAX)
		w->found[w->count++] = strdup(path);
}

/* Open MPI's name stays the same from 3.0 to 5.0, MPICH's and its relatives' from 3.1 on. */
static program_mpi_t mpi_of(const char *library)
{
	static const struct {
		const char *library;
		program_mpi_t mpi;
	} known[] = {
	    {"libmpi.so.40", PROGRAM_MPI_OPEN},	       {"libmpich.so.12", PROGRAM_MPI_MPICH},
	    {"libmpi.so.12", PROGRAM_MPI_MPICH},       {"libmpi_abi.so.1", PROGRAM_MPI_STANDARD},
	    {"libmpi_abi.so.0", PROGRAM_MPI_STANDARD},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(library, known[i].library) == 0)
			return known[i].mpi;
	return PROGRAM_MPI_NONE;
}

const char *program_mpi_library(program_mpi_t mpi)
{
	static const char *const library[] = {
	    [PROGRAM_MPI_NONE] = "",
	    [PROGRAM_MPI_OPEN] = "libmpi.so.40",
	    [PROGRAM_MPI_MPICH] = "libmpich.so.12",
	    [PROGRAM_MPI_STANDARD] = "libmpi_abi.so.1",
	};
	return (size_t)mpi < ARRAY_LEN(library) ? library[mpi] : "";
}

/* Older Open MPIs and MPICHs, HPE's, IBM's and Cray's: none of the ABIs that are here. */
static bool is_foreign_mpi(const char *library)
{
	static const char *const begins[] = {"libmpi.so",   "libmpich.so",   "libmpi_abi.so",
					     "libmpt.so",   "libmpi_ibm.so", "libmpi_cray.so",
					     "libmpi_gnu_", "libmpi_intel",  "libmpich_"};

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (strncmp(library, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static void note_library(struct program_walk *w, const char *library, const char *wanted_by,
			 const char *path, bool by_rpath)
{
	program_mpi_t mpi = mpi_of(library);

	if (mpi == PROGRAM_MPI_NONE) {
		if (is_foreign_mpi(library) && !w->foreign[0]) {
			snprintf(w->foreign, sizeof(w->foreign), "%s", library);
			snprintf(w->wanted_by, sizeof(w->wanted_by), "%s", wanted_by);
		}
		return;
	}
	if (w->program->mpi != PROGRAM_MPI_NONE && w->program->mpi != mpi) {
		if (!w->mixed[0]) {
			snprintf(w->mixed, sizeof(w->mixed), "%s", library);
			snprintf(w->wanted_by, sizeof(w->wanted_by), "%s", wanted_by);
		}
		return;
	}
	if (w->program->mpi == PROGRAM_MPI_NONE)
		snprintf(w->first, sizeof(w->first), "%s", library);
	w->program->mpi = mpi;
	if (by_rpath && !w->program->preload_mpi) {
		w->program->preload_mpi = mpi;
		snprintf(w->program->other_mpi, sizeof(w->program->other_mpi), "%s", path);
	}
}

/* Its runtime takes no other library before itself, and reserves terabytes for its notes. */
static void note_sanitizer(struct program_walk *w, const char *library, const char *path)
{
	static const struct {
		const char *library, *name;
	} known[] = {
	    {"libasan.so", "AddressSanitizer"},	     {"libclang_rt.asan", "AddressSanitizer"},
	    {"libhwasan.so", "HWAddressSanitizer"},  {"libtsan.so", "ThreadSanitizer"},
	    {"libclang_rt.tsan", "ThreadSanitizer"}, {"liblsan.so", "LeakSanitizer"}};
	struct program *p = w->program;

	for (size_t i = 0; !p->runtime[0] && i < ARRAY_LEN(known); i++) {
		if (strncmp(library, known[i].library, strlen(known[i].library)) != 0)
			continue;
		snprintf(p->runtime, sizeof(p->runtime), "%s", path);
		snprintf(p->unprotected, sizeof(p->unprotected),
			 "'%s' is built with %s, whose memory can't be saved; build it without "
			 "-fsanitize",
			 p->path, known[i].name);
	}
}

static void walk_libraries(struct program_walk *w)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < w->count; i++) {
		struct elf_file f;
		bool by_rpath;

		if (elf_open(w->found[i], &f) != ELF_OURS)
			continue;
		for (size_t k = 0; k < f.needed_count; k++) {
			bool there = find_library(w, &f, w->found[i], f.needed[k], path, &by_rpath);

			note_library(w, f.needed[k], w->found[i], path, by_rpath);
			if (there)
				note_sanitizer(w, f.needed[k], path);
			/* what our library replaces is not looked into */
			if (there && mpi_of(f.needed[k]) == PROGRAM_MPI_NONE)
				add_found(w, path);
		}
		elf_close(&f);
	}
}

static hale_status_t check_elf(struct program *p, struct error *err)
{
	struct program_walk *w = calloc(1, sizeof(*w));
	hale_status_t status = HALE_OK;

	if (!w)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	w->program = p;
	read_loader_directories(w);
	add_found(w, p->path);
	walk_libraries(w);
	if (w->mixed[0])
		status = error_set(err, HALE_ERR_UNSUPPORTED,
				   "'%s' is linked with two MPIs: with %s, and '%s' wants %s; "
				   "build both for the same one",
				   p->path, w->first, strrchr(w->wanted_by, '/') + 1, w->mixed);
	else if (w->foreign[0])
		status =
		    error_set(err, HALE_ERR_UNSUPPORTED,
			      "'%s' was built for an MPI that hale has no library for ('%s' wants "
			      "%s); build it for Open MPI 4 or 5 (libmpi.so.40), MPICH "
			      "(libmpich.so.12 or libmpi.so.12) or the MPI standard's ABI "
			      "(libmpi_abi.so.1)",
			      p->path, strrchr(w->wanted_by, '/') + 1, w->foreign);
	for (size_t i = 0; i < w->count; i++)
		free(w->found[i]);
	for (size_t i = 0; i < w->system_count; i++)
		free(w->system[i]);
	free(w);
	return status;
}

/* The kernel tells the loader of such a program not to heed LD_PRELOAD. */
static bool gains_rights(const char *path)
{
	struct stat st;
	struct statvfs fs;

	if (stat(path, &st) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	    (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID)))
		return false;
	return ((st.st_mode & S_ISUID) && st.st_uid != getuid()) ||
	       ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid()) ||
	       (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

/* What is executed when path is: an ELF program, or the script's interpreter, that one's, … as the
 * kernel and env(1) find it. False: that is not known. */
static bool find_executed(const char *path, char executed[PATH_MAX], struct elf_file *f)
{
	enum { NESTED = 5 };

	snprintf(executed, PATH_MAX, "%s", path);
	for (int i = 0; i < NESTED; i++) {
		char line[PATH_MAX] = "", *word, *save = NULL;
		elf_kind_t kind = elf_open(executed, f);
		struct program found;
		FILE *script;

		if (kind != ELF_NOT)
			return kind == ELF_OURS;
		script = fopen(executed, "re");
		if (!script)
			return false;
		if (!fgets(line, sizeof(line), script))
			line[0] = '\0';
		fclose(script);
		word = strncmp(line, "#!", 2) == 0 ? strtok_r(line + 2, " \t\n", &save) : NULL;
		if (word && strcmp(word, "/usr/bin/env") == 0) {
			word = strtok_r(NULL, " \t\n", &save);
			if (word && strcmp(word, "-S") == 0)
				word = strtok_r(NULL, " \t\n", &save);
			if (!word || !find_in_path(word, &found))
				return false;
			word = found.path;
		}
		if (!word)
			return false;
		snprintf(executed, PATH_MAX, "%s", word);
	}
	return false;
}

/* Programs into which the dynamic loader does not take our library. */
static void examine_entrance(struct program *p)
{
	char executed[PATH_MAX], by[PATH_MAX + 32] = "";
	struct elf_file f;

	if (!find_executed(p->path, executed, &f))
		return;
	if (strcmp(executed, p->path) != 0)
		snprintf(by, sizeof(by), "'%.2048s' is run by '%.2000s', which", p->path, executed);
	else
		snprintf(by, sizeof(by), "'%.4000s'", p->path);
	/* a loader that is called by its own name has none, and heeds LD_PRELOAD */
	if (!f.loader && !strstr(executed, "/ld-linux"))
		snprintf(p->unprotected, sizeof(p->unprotected),
			 "%s is linked statically, so hale's library does not get into it; link it "
			 "without -static",
			 by);
	else if (f.loader && !strstr(f.loader, "/ld-linux"))
		snprintf(p->unprotected, sizeof(p->unprotected),
			 "%s is for another C library (its loader is %.200s), so hale's library "
			 "does not "
			 "get into it; build it for glibc",
			 by, f.loader);
	else if (gains_rights(executed))
		snprintf(
		    p->unprotected, sizeof(p->unprotected),
		    "%s is executed with rights of another user or group, or with capabilities, so "
		    "hale's library does not get into it; copy it without them, or start it as "
		    "that user",
		    by);
	elf_close(&f);
}

hale_status_t program_examine(const char *name, const char *wdir, struct program *p,
			      int *exit_status, struct error *err)
{
	struct elf_file f;
	hale_status_t status;

	memset(p, 0, sizeof(*p));
	status = find_program(name, wdir, p, exit_status, err);
	if (status != HALE_OK)
		return status;
	*exit_status = EXIT_USAGE;
	examine_entrance(p);
	switch (elf_open(p->path, &f)) {
	case ELF_FOREIGN:
		*exit_status = EXIT_NOT_EXECUTABLE;
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s' is not a 64-bit x86 program, so it can't run here", p->path);
	case ELF_NOT:
	case ELF_UNREADABLE:
		return HALE_OK;
	case ELF_OURS:
		break;
	}
	p->elf = true;
	p->spawns = elf_names(&f, "MPI_Comm_spawn") || elf_names(&f, "MPI_Comm_spawn_multiple") ||
		    elf_names(&f, "mpi_comm_spawn_") || elf_names(&f, "mpi_comm_spawn_multiple_") ||
		    elf_names(&f, "mpi_comm_spawn_f08_");
	elf_close(&f);
	return check_elf(p, err);
}
