/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: halecc takes what cc takes. Sources with pragmas go through libclang into a folder of
 * their own under $TMPDIR, with their own names, so that cc names its outputs as it would anyhow.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "halecc/halecc.h"

static const char help[] =
    "halecc [options of cc] files\n"
    "\n"
    "A C compiler for programs with protected regions: finds `#pragma hale protect` in C sources "
    "(and in\n"
    "C++ sources that keep to what C has), writes them as plain C that calls libhale_protect, and "
    "hands\n"
    "that to cc. Of `#pragma offload target(hale:N)` it makes calls of device processes, too\n"
    "(`man halecc`). All else goes to cc as it is. HALE_CC names another compiler: HALE_CC=mpicc.\n"
    "\n"
    "  --explain   print a table instead: region, variable, check, recover, last use\n"
    "  --show      print the C that is compiled instead\n"
    "  --suggest   print which variables of which regions are worth protecting instead\n"
    "\n"
    "environment: HALE_CC (cc); HALE_INCDIR, HALE_LIBDIR: folders of hale/protect.h and\n"
    "libhale_protect.so, where these are neither beside halecc nor where they were installed.\n";

static char scratch[256];

/* A tree that was built and not installed, or was moved since, has its files beside this program.
 * The folder `way` from ours, if that file is in it; else NULL. */
static const char *beside(const char *way, const char *file)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self);
	char *folder, *real;

	if (n <= 0 || n == sizeof self)
		return NULL;
	while (n > 0 && self[n - 1] != '/')
		n--;
	folder = text_format("%.*s%s", (int)n, self, way);
	real = access(text_format("%s/%s", folder, file), R_OK) == 0 ? realpath(folder, NULL)
								      : NULL;
	return real;
}

static const char *incdir(void)
{
	static const char *found;

	if (!found)
		found = getenv("HALE_INCDIR");
	if (!found)
		found = beside("../include", "hale/protect.h");
	if (!found)
		found = HALE_INCDIR;
	return found;
}

static const char *libdir(void)
{
	static const char *found;

	if (!found)
		found = getenv("HALE_LIBDIR");
	if (!found)
		found = beside(".", "libhale_protect.so");
	if (!found)
		found = beside("../" HALE_LIBDIR_NAME, "libhale_protect.so");
	if (!found)
		found = HALE_LIBDIR;
	return found;
}

/* HALE_CC may have words: "ccache gcc". */
static int compiler_words(const char **out, int max)
{
	static char copy[1024];
	const char *cc = getenv("HALE_CC");
	char *more = NULL;
	int n = 0;

	snprintf(copy, sizeof copy, "%s", cc && *cc ? cc : "cc");
	for (char *w = strtok_r(copy, " ", &more); w && n < max; w = strtok_r(NULL, " ", &more))
		out[n++] = w;
	return n;
}

static int run(const char **argv)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		execvp(argv[0], (char *const *)argv);
		log_warn("halecc: can't run the compiler '%s': %s. HALE_CC names another one",
			 argv[0], strerror(errno));
		_exit(127);
	}
	if (pid < 0) {
		log_warn("halecc: can't start a process: %s", strerror(errno));
		return 1;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The folders in which the compiler looks for <…>, so that libclang finds what mpicc finds. */
static void search_dirs(struct command *c)
{
	const char *words[8];
	int n = compiler_words(words, 8);
	struct text t = {0};
	char line[4096];
	bool inside = false;
	FILE *f;

	for (int i = 0; i < n; i++)
		text_add(&t, "'%s' ", words[i]);
	text_add(&t, "-E -v -x c /dev/null 2>&1 >/dev/null");
	f = popen(t.s, "r"); /* the words are the user's own */
	while (f && fgets(line, sizeof line, f)) {
		size_t len = strcspn(line, "\n");
		if (strncmp(line, "#include <", 10) == 0)
			inside = true;
		else if (line[0] != ' ')
			inside = false;
		else if (inside && c->clang_count < 240) {
			c->clang[c->clang_count++] = "-idirafter";
			c->clang[c->clang_count++] = text_cut(line, len);
		}
	}
	if (f)
		pclose(f);
}

static bool has_pragma(const struct source *s)
{
	const char *p = s->text;

	if (strstr(p, "_Pragma") && (strstr(p, "protect") || strstr(p, "\"offload ")))
		return true;
	while ((p = strstr(p, "pragma"))) {
		p += 6;
		p += strspn(p, " \t");
		if (strncmp(p, "hale", 4) == 0 || strncmp(p, "protect", 7) == 0 ||
		    strncmp(p, "offload", 7) == 0)
			return true;
	}
	return false;
}

static void clang_prepare(struct command *c, const struct source *s)
{
	c->clang[c->clang_count++] = "-x";
	c->clang[c->clang_count++] = s->cxx ? "c++" : "c";
	c->clang[c->clang_count++] = "-I";
	c->clang[c->clang_count++] = incdir();
	if (c->openmp)
		c->clang[c->clang_count++] = "-D_OPENMP=201511";
	c->clang[c->clang_count++] = "-w";
}

static bool is_cxx(const char *path, const char *language)
{
	const char *dot = strrchr(path, '.');

	if (language && strcmp(language, "none") != 0)
		return strcmp(language, "c++") == 0;
	return dot && strcmp(dot, ".c") != 0;
}

static bool file_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool fine = f && fputs(text, f) >= 0;

	if (f && fclose(f) != 0)
		fine = false;
	if (!fine)
		log_warn("halecc: can't write %s: %s. TMPDIR names another folder", path,
			 strerror(errno));
	return fine;
}

/* The folder of a source, so that it finds its own headers from somewhere else. */
static const char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? text_cut(path, (size_t)(slash - path) + !(slash - path)) : ".";
}

/* An option that says what is made, and not how: a shared object is. */
static bool is_of_output(const char *a)
{
	static const char *const out[] = {"-c",	   "-S",	   "-E",      "-static",
					  "-pie",  "-no-pie",	   "-shared", "-fPIE",
					  "-fpie", "-fsyntax-only"};

	for (size_t i = 0; i < ARRAY_LEN(out); i++)
		if (strcmp(a, out[i]) == 0)
			return true;
	return false;
}

/* Compiles the shared object with the user's options, without those that say what is made, and
 * without the other files. */
static int device_compile(const struct command *c, const char *original, const char *source,
			  const char *object)
{
	const char **argv = text_memory(((size_t)c->argc + 40) * sizeof *argv);
	int n = compiler_words(argv, 8);

	argv[n++] = source; /* before libraries */
	for (int i = 0; i < c->argc; i++) {
		const char *a = c->argv[i];

		if (strcmp(a, "-o") == 0 || (strcmp(a, "-x") == 0 && i + 1 < c->argc))
			i++;
		else if (args_has_value(a) && i + 1 < c->argc) {
			argv[n++] = a;
			argv[n++] = c->argv[++i];
		} else if (*a != '-')
			continue; /* a file */
		else if (!is_of_output(a) && strncmp(a, "-o", 2) != 0)
			argv[n++] = a;
	}
	argv[n++] = "-w";
	argv[n++] = "-iquote";
	argv[n++] = folder_of(original);
	argv[n++] = "-I";
	argv[n++] = incdir();
	argv[n++] = "-shared";
	argv[n++] = "-fPIC";
	argv[n++] = "-o";
	argv[n++] = object;
	/* what statements don't need is left out, and what they need is there */
	argv[n++] = "-fvisibility=hidden";
	argv[n++] = "-ffunction-sections";
	argv[n++] = "-fdata-sections";
	argv[n++] = "-Wl,--gc-sections,-z,defs";
	argv[n++] = "-lm";
	argv[n] = NULL;
	return run(argv);
}

/* A file's bytes as initializers. NULL: it can't be read. */
static char *bytes_of(const char *path)
{
	struct source s = {0};
	struct text t = {0};

	if (!source_read(&s, path))
		return NULL;
	for (size_t i = 0; i < s.len; i++)
		text_add(&t, "%u,", (unsigned char)s.text[i]);
	return t.s;
}

/* The shared object of a file with offloaded statements, as initializers. NULL: errors, said. */
static char *device_object(struct command *c, struct unit *u, int which)
{
	char *source = text_format("%s/%d/device.c", scratch, which),
	     *object = text_format("%s/%d/device.so", scratch, which), *bytes = NULL;

	if (file_write(source, emit_device(u, true)) &&
	    device_compile(c, u->src->path, source, object) == 0)
		bytes = bytes_of(object);
	unlink(source);
	unlink(object);
	if (!bytes) {
		log_warn("halecc: %s: the code for the device can't be made", u->src->path);
		u->src->errors++;
	}
	return bytes;
}

/* The source's path for the compiler: its own, or that of the file made of it. NULL: errors. */
static const char *translate(struct command *c, const char *path, int which, bool print)
{
	struct source s = {.quiet = c->quiet, .cxx = is_cxx(path, c->language)};
	static struct unit u;
	int clang_before = c->clang_count;
	const char *base = strrchr(path, '/'), *made = NULL;
	char *text, *object = "0", *folder = text_format("%s/%d", scratch, which);

	if (!source_read(&s, path))
		return print ? NULL : path; /* the compiler says what is wrong */
	if (!has_pragma(&s) && !c->suggest)
		return path;
	clang_prepare(c, &s);
	search_dirs(c);
	for (int i = 0; i < c->inputs; i++)
		if (i != which && is_cxx(c->argv[c->input[i]], c->language) == s.cxx)
			s.other[s.others++] = c->argv[c->input[i]];
	if (unit_open(&u, &s, c->clang, c->clang_count) && !c->suggest) {
		chain_build(&u);
		verify_regions(&u);
	}
	c->clang_count = clang_before;
	if (!print && !s.errors && mkdir(folder, 0700) != 0) {
		log_warn("halecc: can't make a folder %s: %s. TMPDIR names another place", folder,
			 strerror(errno));
		s.errors++;
	}
	if (!print && u.offloads && !s.errors)
		object = device_object(c, &u, which);
	text = s.errors ? NULL : emit_unit(&u, object);
	if (!s.errors && c->explain)
		explain_unit(&u);
	else if (!s.errors && c->suggest)
		suggest_unit(&u);
	else if (!s.errors && c->show) {
		fputs(text, stdout);
		if (u.offloads)
			printf("\n/* ---- of the device ---- */\n%s", emit_device(&u, false));
	} else if (!s.errors) {
		made = text_format("%s/%s", folder, base ? base + 1 : path);
		if (!file_write(made, text))
			made = NULL;
	}
	unit_close(&u);
	return s.errors ? NULL : print ? path : made;
}

static void scratch_remove(int inputs, const char *const *files)
{
	for (int i = 0; i < inputs; i++) {
		if (files[i] && strncmp(files[i], scratch, strlen(scratch)) == 0)
			unlink(files[i]);
		rmdir(text_format("%s/%d", scratch, i));
	}
	rmdir(scratch);
}

/* -MD, -MMD: from the user's source. */
static int depend_write(const struct command *c, const char *source, bool with_output)
{
	const char *argv[1024], *base = strrchr(source, '/');
	int n = compiler_words(argv, 8), fixed = 512;
	char *stem, *name;

	base = base ? base + 1 : source;
	stem = text_format("%s", with_output ? c->output : base);
	name = strrchr(stem, '/') ? strrchr(stem, '/') + 1 : stem;
	if (strrchr(name, '.')) /* folders may have dots, too */
		*strrchr(name, '.') = '\0';
	for (int i = 0; i < c->argc && n < fixed; i++) {
		bool input = false;
		for (int k = 0; k < c->inputs; k++)
			input |= c->input[k] == i;
		if (strcmp(c->argv[i], "-o") == 0)
			i++;
		else if (!input && strcmp(c->argv[i], "-c") != 0 && strcmp(c->argv[i], "-S") != 0 &&
			 strcmp(c->argv[i], "-E") != 0)
			argv[n++] = c->argv[i];
	}
	argv[n++] = c->depend_user ? "-MM" : "-M";
	if (c->depend_phony)
		argv[n++] = "-MP";
	argv[n++] = "-w";
	argv[n++] = "-MF";
	argv[n++] = c->depend_file ? c->depend_file : text_format("%s.d", stem);
	argv[n++] = "-MT";
	argv[n++] = c->depend_target ? c->depend_target
		    : with_output    ? c->output
				     : text_format("%s.o", stem);
	argv[n++] = "-I";
	argv[n++] = incdir();
	argv[n++] = source;
	argv[n] = NULL;
	return run(argv);
}

static int compile(struct command *c)
{
	const char *files[256] = {NULL}, *originals[256] = {NULL};
	const char **argv = text_memory(((size_t)c->argc + 600) * sizeof *argv);
	const char *tmp = getenv("TMPDIR");
	int n = compiler_words(argv, 8), status = 0, begin = n;

	snprintf(scratch, sizeof scratch, "%s/halecc.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(scratch)) {
		log_warn("halecc: can't make a folder %s: %s. TMPDIR names another place", scratch,
			 strerror(errno));
		return 1;
	}
	for (int i = 0; i < c->inputs && !c->to_stop; i++) {
		originals[i] = c->argv[c->input[i]];
		files[i] = translate(c, originals[i], i, false);
		status |= !files[i];
	}
	for (int i = 0; i < c->argc; i++)
		argv[n++] = c->argv[i];
	for (int i = 0; i < c->inputs && !c->to_stop && !status; i++)
		if (files[i] != originals[i]) {
			argv[begin + c->input[i]] = files[i];
			argv[n++] = "-iquote";
			argv[n++] = folder_of(originals[i]);
		}
	argv[n++] = "-I";
	argv[n++] = incdir();
	if (c->link && !c->to_stop) {
		argv[n++] = text_format("-L%s", libdir());
		argv[n++] = text_format("-Wl,-rpath,%s", libdir());
		argv[n++] = "-lhale_protect";
		argv[n++] = "-Wl,--push-state,--as-needed";
		argv[n++] = "-lhale_offload"; /* objects of other calls may need it */
		argv[n++] = "-Wl,--pop-state";
	}
	argv[n] = NULL;
	if (!status)
		status = run(argv);
	for (int i = 0; i < c->inputs && c->depend && !status && !c->to_stop; i++)
		status = depend_write(c, originals[i], c->output && !c->link && c->inputs == 1);
	scratch_remove(c->inputs, files);
	return status;
}

int main(int argc, char **argv)
{
	struct command c;
	int status;

	log_init_from_env();
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(help, stdout);
		return 0;
	}
	status = args_read(&c, argc, argv);
	if (status)
		return status;
	if (c.explain || c.suggest || c.show) {
		if (!c.inputs) {
			log_warn("halecc: name a source: halecc --explain chain.c");
			return 64;
		}
		for (int i = 0; i < c.inputs; i++)
			if (!translate(&c, c.argv[c.input[i]], i, true))
				status = 1;
		return status;
	}
	if (!c.argc || (c.argc == 1 && c.argv[0][0] == '-')) { /* -v, -dumpmachine, nothing */
		const char *plain[16];
		int n = compiler_words(plain, 8);
		if (c.argc)
			plain[n++] = c.argv[0];
		plain[n] = NULL;
		return run(plain);
	}
	signal(SIGINT, SIG_IGN); /* the compiler ends by it, then we clean up */
	signal(SIGTERM, SIG_IGN);
	return compile(&c);
}
