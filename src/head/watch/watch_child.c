/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that the watch starts: monitors, which run as long as the job, and commands of rules.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "launch/launch.h"
#include "head/watch/watch_private.h"

enum { WORDS_MAX = 64, AGAIN_MAX_SECONDS = 60, END_LOOKS = 100, END_LOOK_US = 10000 };

static void child_drop(struct watch *w, struct watch_child *c)
{
	for (struct watch_child **p = &w->children; *p; p = &(*p)->next) {
		if (*p == c) {
			*p = c->next;
			break;
		}
	}
	loop_timer_clear(&w->head->loop, &c->again);
	w->commands -= !c->options;
	free(c->name);
	free(c);
}

static struct watch_child *child_new(struct watch *w, const char *name)
{
	struct watch_child *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->head = w->head;
	c->name = strdup(name);
	if (!c->name) {
		free(c);
		return NULL;
	}
	c->next = w->children;
	w->children = c;
	return c;
}

/* ---- monitors ---- */

/* "ipmi,load", or options of hale monitor as they are. Cuts text. */
static size_t monitor_words(char *text, char **word, char kinds[][16], size_t cap)
{
	bool verbatim = strncmp(text, "--", 2) == 0;
	size_t n = 0;
	char *rest = text, *w;

	while (n < cap && (w = strtok_r(rest, verbatim ? " \t" : ",", &rest))) {
		if (!verbatim) {
			snprintf(kinds[n], 16, "--%s", w);
			w = kinds[n];
		}
		word[n++] = w;
	}
	return n;
}

/* `hale monitor` with these options and then one of ours; its sentences go to out. */
static hale_status_t monitor_run(const char *options, const char *ours, const char *value, int out,
				 pid_t *pid, struct error *err)
{
	char exe[PATH_MAX], kinds[WORDS_MAX][16], *argv[WORDS_MAX + 5] = {"hale", "monitor"};
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *text = strdup(options);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct launch l = {.path = exe, .argv = argv, .env = environ, .fd = {null, out, out}};
	hale_status_t status;
	size_t at = 2;

	exe[n > 0 ? n : 0] = '\0';
	argv[at++] = (char *)ours;
	if (value)
		argv[at++] = (char *)value;
	if (text)
		monitor_words(text, argv + at, kinds, WORDS_MAX);
	if (!text || null < 0)
		status = error_sys(err, HALE_ERR_SYSTEM, "cannot start hale monitor");
	else
		status = launch_process(&l, pid, err);
	if (null >= 0)
		close(null);
	free(text);
	return status;
}

static hale_status_t monitor_start(struct watch_child *c, struct error *err)
{
	return monitor_run(c->options, "--node", c->head->id.node, STDERR_FILENO, &c->pid, err);
}

/* What a process that ends soon writes, without its last newline and our name before it. */
static void read_sentence(int fd, char *text, size_t cap)
{
	static const char name[] = "hale: ";
	size_t len = 0;
	ssize_t n;

	while (len < cap - 1 && (n = read(fd, text + len, cap - 1 - len)) != 0) {
		if (n > 0)
			len += (size_t)n;
		else if (errno != EINTR)
			break;
	}
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (strncmp(text, name, strlen(name)) == 0)
		memmove(text, text + strlen(name), strlen(text + strlen(name)) + 1);
}

static hale_status_t monitor_check(const char *options, struct error *err)
{
	char sentence[300];
	int fds[2], end = 0;
	pid_t pid = 0;
	hale_status_t status;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot start hale monitor");
	status = monitor_run(options, "--check", NULL, fds[1], &pid, err);
	close(fds[1]);
	if (status == HALE_OK) {
		read_sentence(fds[0], sentence, sizeof(sentence));
		while (waitpid(pid, &end, 0) < 0 && errno == EINTR)
			;
	}
	close(fds[0]);
	if (status == HALE_OK && end != 0)
		status = error_set(err, HALE_ERR_ARGUMENT, "--monitor '%s': %s", options,
				   *sentence ? sentence : "hale monitor does not start");
	return status;
}

hale_status_t watch_monitors_check(const struct options *o, struct error *err)
{
	hale_status_t status = HALE_OK;

	for (size_t i = 0; status == HALE_OK && i < o->monitor_count; i++)
		status = monitor_check(o->monitors[i], err);
	return status;
}

static void monitor_again(void *arg)
{
	struct watch_child *c = arg;
	struct error err;

	if (monitor_start(c, &err) != HALE_OK)
		log_warn("%s", err.text);
}

/* With wrong options it would only say so again. */
static void monitor_ended(struct watch *w, struct watch_child *c, int status)
{
	double wait = (double)(1u << (c->failures < 6 ? c->failures : 6));
	bool wrong = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE;

	c->failures++;
	if (wrong) {
		log_warn("'hale monitor %s' is not started again, since its options are wrong; the "
			 "job goes on without it",
			 c->options);
		child_drop(w, c);
		return;
	}
	head_say(w->head, "'hale monitor %s' has ended; it is started again", c->options);
	loop_timer_set(&w->head->loop, &c->again,
		       wait < AGAIN_MAX_SECONDS ? wait : AGAIN_MAX_SECONDS, monitor_again, c);
}

hale_status_t watch_monitors_start(struct watch *w, struct error *err)
{
	const struct options *o = w->head->o;

	for (size_t i = 0; i < o->monitor_count; i++) {
		struct watch_child *c = child_new(w, "monitor");
		hale_status_t status;

		if (!c)
			return error_set(err, HALE_ERR_MEMORY, "out of memory for a monitor");
		c->options = o->monitors[i];
		status = monitor_start(c, err);
		if (status != HALE_OK)
			return status;
	}
	return HALE_OK;
}

/* ---- commands ---- */

/* A file without a name: nobody has to wait until the command has read it. */
static int text_file(const char *text)
{
	int fd = memfd_create("event", MFD_CLOEXEC);
	size_t len = strlen(text);

	if (fd >= 0 && (write(fd, text, len) != (ssize_t)len || write(fd, "\n", 1) != 1 ||
			lseek(fd, 0, SEEK_SET) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

hale_status_t watch_command(struct watch *w, const char *name, char *const argv[], char **env,
			    const char *text, struct error *err)
{
	struct watch_child *c;
	hale_status_t status;
	int in;

	if (w->commands >= WATCH_COMMANDS_MAX)
		return error_set(err, HALE_ERR_STATE, "%d commands of rules run already",
				 WATCH_COMMANDS_MAX);
	in = text_file(text);
	c = in >= 0 ? child_new(w, name) : NULL;
	if (!c) {
		if (in >= 0)
			close(in);
		return error_sys(err, HALE_ERR_SYSTEM, "cannot start it");
	}
	w->commands++;
	/* what it prints goes where our sentences go */
	struct launch l = {.path = "/usr/bin/env",
			   .argv = argv,
			   .env = env,
			   .fd = {in, STDERR_FILENO, STDERR_FILENO}};
	status = launch_process(&l, &c->pid, err);
	close(in);
	if (status != HALE_OK)
		child_drop(w, c);
	return status;
}

static void command_ended(struct watch *w, struct watch_child *c, int status)
{
	if (WIFSIGNALED(status))
		head_say(w->head, "the %s of a rule was ended by signal %d", c->name,
			 WTERMSIG(status));
	else if (WEXITSTATUS(status) == EXIT_NOT_FOUND)
		head_say(w->head, "the %s of a rule found no such command", c->name);
	else if (WEXITSTATUS(status) != 0)
		head_say(w->head, "the %s of a rule ended with status %d", c->name,
			 WEXITSTATUS(status));
	child_drop(w, c);
}

/* ---- the end ---- */

bool watch_child(struct head *h, pid_t pid, int status)
{
	struct watch *w = h->watch;

	for (struct watch_child *c = w ? w->children : NULL; c; c = c->next) {
		if (c->pid != pid)
			continue;
		c->pid = 0;
		if (c->options)
			monitor_ended(w, c, status);
		else
			command_ended(w, c, status);
		return true;
	}
	return false;
}

/* Those that have ended; commands are given the time to end by themselves. */
static bool all_ended(struct watch *w)
{
	bool all = true;

	for (struct watch_child *c = w->children; c; c = c->next) {
		if (c->pid > 0 && waitpid(c->pid, NULL, WNOHANG) != 0)
			c->pid = 0;
		all = all && c->pid == 0;
	}
	return all;
}

void watch_children_stop(struct watch *w)
{
	for (struct watch_child *c = w->children; c; c = c->next)
		if (c->pid > 0 && c->options)
			kill(-c->pid, SIGTERM);
	for (int i = 0; i < END_LOOKS && !all_ended(w); i++)
		usleep(END_LOOK_US);
	while (w->children) {
		struct watch_child *c = w->children;

		if (c->pid > 0) {
			kill(-c->pid, SIGKILL);
			waitpid(c->pid, NULL, 0);
		}
		child_drop(w, c);
	}
}
