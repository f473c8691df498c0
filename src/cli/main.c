/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "base/base.h"
#include "base/closest.h"
#include "cli/cli.h"
#include "node/job.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
    {"monitor", cli_monitor},	{"rules", cli_rules},
    {"events", cli_events},	{"backplane", cli_backplane},
    {"run", cli_run},		{"restart", cli_restart},
    {"ckpt", cli_ckpt},		{"ps", cli_ps},
    {"inject", cli_inject},	{"image", cli_image},
    {"advise", cli_advise},	{"sim", cli_sim},
    {"model", cli_model},	{"nodes", cli_nodes},
    {"agent", cli_agent},	{"migrate", cli_migrate},
    {"attach", cli_attach},	{"metrics", cli_metrics},
    {"campaign", cli_campaign}, {"complete", cli_complete},
    {"top", cli_top},		{"report", cli_report},
    {"web", cli_web},		{"cp", cli_cp},
    {"device", cli_device},	{"swap", cli_swap},
    {"offload", cli_offload},	{"stack", cli_stack},
    {"replicate", cli_replicate}, {"clone", cli_clone},
    {"cc", cli_cc},		{"cxx", cli_cxx},
    {"f90", cli_f90},
};

int cli_version(void)
{
	printf("hale %s (runs programs built for Open MPI 4, libmpi.so.40)\n", HALE_VERSION);
	return 0;
}

int cli_end_signals(void)
{
	sigset_t ends;
	int fd;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	fd = signalfd(-1, &ends, SFD_CLOEXEC);
	if (fd < 0)
		log_warn("can't wait for signals");
	return fd;
}

static int unknown_command(const char *name)
{
	struct closest c;

	closest_init(&c, name, strlen(name));
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		closest_try(&c, commands[i].name, strlen(commands[i].name));
	if (access(name, X_OK) == 0 && strchr(name, '/'))
		log_warn("'%s' is no command of hale; to run the program: hale run -n 4 %s", name,
			 name);
	else if (c.word[0])
		log_warn(
		    "'%s' is no command of hale; did you mean `hale %s`? `hale help` lists all",
		    name, c.word);
	else
		log_warn("'%s' is no command of hale; `hale help` lists them", name);
	return EXIT_USAGE;
}

/* Tries each option that the text of a command's --help has. */
static void try_options(struct closest *c, const char *help)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	for (const char *at = strstr(help, "--"); at; at = strstr(at, "--")) {
		size_t length = strspn(at, letters);

		closest_try(c, at, length);
		at += length;
	}
}

/* The option of a command that is like option, which has no such one; "": none is, or told already.
 */
static const char *meant(const char *command, const char *option, struct closest *c)
{
	static bool told;
	const char *help = cli_help_text(command);

	closest_init(c, option, strcspn(option, "="));
	if (help && !told)
		try_options(c, help);
	if (c->distance == 0 || !c->word[0])
		return "";
	told = true;
	return c->word;
}

const char *cli_meant(const char *command, const char *option)
{
	static char text[96];
	struct closest c;
	const char *word = meant(command, option, &c);

	snprintf(text, sizeof(text), *word ? " did you mean %s?" : "%s", word);
	return text;
}

/* hale run and hale restart look for what is like an unknown option by themselves. */
static int run_command(size_t i, int argc, char **argv)
{
	int status = commands[i].run(argc, argv);

	if (status != EXIT_USAGE || commands[i].run == cli_run || commands[i].run == cli_restart)
		return status;
	for (int k = 1; k < argc && strcmp(argv[k], "--") != 0; k++) {
		struct closest c;
		const char *word =
		    strncmp(argv[k], "--", 2) == 0 ? meant(argv[0], argv[k], &c) : "";

		if (*word)
			log_warn("'%.*s': did you mean %s?", (int)c.len, argv[k], word);
	}
	return status;
}

/* Or a descriptor of ours would take the place of a closed stream. */
static void open_streams(void)
{
	int fd = open("/dev/null", O_RDWR);

	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = open("/dev/null", O_RDWR);
	if (fd >= 0)
		close(fd);
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";

	open_streams();
	log_init_from_env();
	/* `hale cc` as one word */
	if (strcmp(base_name(argv[0]), "hale-mpicc") == 0)
		return cli_cc(argc, argv);
	if (strcmp(base_name(argv[0]), "hale-mpicxx") == 0)
		return cli_cxx(argc, argv);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return run_command(i, argc - 1, argv + 1);
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		return cli_version();
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		int status = cli_help(argc > 2 ? argv[2] : NULL);
		return argc > 1 ? status : EXIT_USAGE;
	}
	return unknown_command(name);
}
