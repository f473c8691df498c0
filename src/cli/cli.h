/* SPDX-License-Identifier: BSD-3-Clause */
/* cli/: the `hale` command. Each subcommand is one function: arguments in, exit status out.
 * May call: everything below. Called by nobody. */
#ifndef HALE_CLI_CLI_H
#define HALE_CLI_CLI_H

#include <stddef.h>

/* argv[0] is the subcommand. */
int cli_run(int argc, char **argv);
int cli_restart(int argc, char **argv);
int cli_agent(int argc, char **argv);
int cli_nodes(int argc, char **argv);
int cli_ckpt(int argc, char **argv);
/* hale ckpt list, rm, clean; -1: it is none of these. */
int cli_checkpoints(int argc, char **argv);
/* jobs_shadows.c: the shadowed sets of a job, as hale ps shows them; of one process, as JSON. */
struct json_out;
struct json_value;
void jobs_show_shadows(const struct json_value *job);
void jobs_copy_shadow(struct json_out *j, const struct json_value *r);
void jobs_copy_energy(struct json_out *j, const struct json_value *job);

int cli_ps(int argc, char **argv);
int cli_stack(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_web(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_inject(int argc, char **argv);
int cli_attach(int argc, char **argv);
int cli_migrate(int argc, char **argv);
int cli_replicate(int argc, char **argv);
int cli_clone(int argc, char **argv);
int cli_image(int argc, char **argv);
int cli_events(int argc, char **argv);
int cli_backplane(int argc, char **argv);
int cli_sim(int argc, char **argv);
int cli_model(int argc, char **argv);
int cli_advise(int argc, char **argv);
int cli_campaign(int argc, char **argv);
int cli_monitor(int argc, char **argv);
int cli_metrics(int argc, char **argv);
int cli_rules(int argc, char **argv);
int cli_cp(int argc, char **argv);
int cli_cc(int argc, char **argv);
int cli_cxx(int argc, char **argv);
int cli_f90(int argc, char **argv);
int cli_device(int argc, char **argv);
int cli_swap(int argc, char **argv);
int cli_offload(int argc, char **argv);
int cli_complete(int argc, char **argv);

/* `hale agent --attach TAG.NODE`: a new head speaks with an agent of this machine. */
int cli_attach_node(const char *name);

/* Prints the help of a command, or of all (NULL), on stdout; returns 0, or 64 for a name that is
 * no command. */
int cli_help(const char *command);
/* The i-th command that has a help, or NULL; its text; what the overview says of it in a line. */
const char *cli_help_name(size_t i);
const char *cli_help_text(const char *command);
/* " did you mean --seed?", or "": for the sentence about an option that a command does not have. */
const char *cli_meant(const char *command, const char *option);
const char *cli_help_about(const char *command, char about[96]);
int cli_version(void);

/* For commands that serve until they are ended: blocks SIGTERM, SIGINT and SIGHUP, also in threads
 * and children that come later, and returns a descriptor that is readable when one has come; -1
 * after a sentence. */
int cli_end_signals(void);

#endif
