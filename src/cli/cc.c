/* SPDX-License-Identifier: BSD-3-Clause */
/* hale cc, hale cxx: a compiler with what a program of the MPI standard's ABI needs. As hale-mpicc and
 * hale-mpicxx, too, for build systems that want one word, and with MPICH's -show and Open MPI's
 * -showme, by which CMake asks. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "cli/cli.h"
#include "launch/environment.h"

enum cc_part { CC_COMPILE = 1, CC_LINK = 2, CC_ALL = 3 };

struct cc_line {
	char include[PATH_MAX + 16], libdir[PATH_MAX + 8], rpath[PATH_MAX + 16];
	const char **word;
	size_t count;
};

/* The folder of the standard's mpi.h: of an installation, or of the tree where it was built. */
static bool find_header(const char *libdir, char *include, size_t room)
{
	static const char *const from_libdir[] = {"../../../include/hale/mpi",
						  "../../include/hale/mpi", "include/mpi"};
	char path[PATH_MAX + 48], real[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(from_libdir); i++) {
		snprintf(path, sizeof(path), "%s/%s", libdir, from_libdir[i]);
		if (!realpath(path, real))
			continue;
		snprintf(path, sizeof(path), "%s/mpi.h", real);
		if (access(path, R_OK) != 0)
			continue;
		snprintf(include, room, "-I%s", real);
		return true;
	}
	return false;
}

/* Does this compiler's call end with a program? */
static bool links(int argc, char **argv)
{
	static const char *const no[] = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only",
					 "--version", "-dumpversion", "-dumpmachine"};
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < ARRAY_LEN(no); k++)
			if (strcmp(argv[i], no[k]) == 0)
				return false;
	return argc > 1;
}

static void add_flags(struct cc_line *l, unsigned parts, int argc, char **argv)
{
	if (parts & CC_COMPILE)
		l->word[l->count++] = l->include;
	for (int i = 1; i < argc; i++)
		l->word[l->count++] = argv[i];
	if (parts & CC_LINK) {
		l->word[l->count++] = l->libdir;
		l->word[l->count++] = l->rpath;
		l->word[l->count++] = "-Wl,--enable-new-dtags";
		l->word[l->count++] = "-lmpi_abi";
	}
}

static bool line_begin(struct cc_line *l, const char *name, int argc)
{
	char libdir[PATH_MAX];
	struct error err;

	if (environment_find_libdir(libdir, &err) != HALE_OK) {
		log_warn("%s: %s", name, err.text);
		return false;
	}
	if (!find_header(libdir, l->include, sizeof(l->include))) {
		log_warn("%s: there is no mpi.h of the MPI standard's ABI near %s; install hale with its "
			 "headers",
			 name, libdir);
		return false;
	}
	snprintf(l->libdir, sizeof(l->libdir), "-L%s", libdir);
	snprintf(l->rpath, sizeof(l->rpath), "-Wl,-rpath,%s", libdir);
	l->word = calloc((size_t)argc + 8, sizeof(*l->word));
	l->count = 0;
	return l->word != NULL;
}

static int show(const struct cc_line *l)
{
	for (size_t i = 0; i < l->count; i++)
		printf("%s%s", i ? " " : "", l->word[i]);
	printf("\n");
	return 0;
}

/* What a word asks to be shown; 0: it is none of these. */
static unsigned asked(const char *word)
{
	if (strcmp(word, "-showme:compile") == 0 || strcmp(word, "-compile-info") == 0)
		return CC_COMPILE;
	if (strcmp(word, "-showme:link") == 0 || strcmp(word, "-link-info") == 0)
		return CC_LINK;
	return strcmp(word, "-show") == 0 || strcmp(word, "-showme") == 0 ? CC_ALL : 0;
}

static int compile(const char *name, const char *compiler, int argc, char **argv)
{
	struct cc_line l;

	if (!line_begin(&l, name, argc))
		return 1;
	unsigned what = argc > 1 ? asked(argv[1]) : 0;
	if (what) {
		/* Open MPI's two print flags alone */
		if (what == CC_ALL || strncmp(argv[1], "-showme", 7) != 0)
			l.word[l.count++] = compiler;
		add_flags(&l, what, argc - 1, argv + 1);
		return show(&l);
	}
	l.word[l.count++] = compiler;
	add_flags(&l, CC_COMPILE | (links(argc, argv) ? CC_LINK : 0u), argc, argv);
	execvp(compiler, (char **)l.word);
	log_warn("%s: can't start the compiler %s: %s; set HALE_CC or HALE_CXX to yours", name, compiler,
		 strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

static bool help_asked(int argc, char **argv)
{
	return argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

int cli_cc(int argc, char **argv)
{
	const char *compiler = getenv("HALE_CC");

	if (help_asked(argc, argv))
		return cli_help("cc");
	return compile("hale cc", compiler && *compiler ? compiler : "cc", argc, argv);
}

int cli_cxx(int argc, char **argv)
{
	const char *compiler = getenv("HALE_CXX");

	if (help_asked(argc, argv))
		return cli_help("cxx");
	return compile("hale cxx", compiler && *compiler ? compiler : "c++", argc, argv);
}

int cli_f90(int argc, char **argv)
{
	if (help_asked(argc, argv))
		return cli_help("f90");
	log_warn("hale f90: the MPI standard's ABI has no Fortran library here; compile with mpif90.openmpi "
		 "or mpif90.mpich, and `hale run` takes the program as it is");
	return EXIT_USAGE;
}
