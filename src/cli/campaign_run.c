/* SPDX-License-Identifier: BSD-3-Clause */
/* One run of a campaign: started, struck, waited for, judged. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "base/json.h"
#include "cli/campaign.h"
#include "node/job.h"

/* The whole file with a NUL behind it, or NULL. */
static char *file_read(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t cap = 0, n;

	*len = 0;
	while (f) {
		if (cap - *len < 65536) {
			char *more = realloc(text, cap = 2 * cap + 131072);
			if (!more)
				break;
			text = more;
		}
		n = fread(text + *len, 1, cap - *len - 1, f);
		*len += n;
		if (!n)
			break;
	}
	if (f)
		fclose(f);
	if (text)
		text[*len] = '\0';
	return text;
}

static uint64_t file_hash(const char *path)
{
	size_t len;
	char *text = file_read(path, &len);
	uint64_t hash = text ? XXH3_64bits(text, len) : 0;

	free(text);
	return hash;
}

static void path_in(const struct campaign *c, const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", c->folder, name);
}

/* Exponential gaps by rate, or so many moments of the program's time: seconds from the start. */
static size_t times_draw(const struct campaign *c, uint64_t *state, double *at, size_t max)
{
	size_t n = 0;
	double t = 0;

	for (long i = 0; c->rate <= 0 && i < c->faults && n < max; i++)
		at[n++] = (double)(campaign_draw(state) >> 11) * 0x1p-53 * c->alone_s;
	for (size_t i = 1; i < n; i++) /* in order */
		for (size_t k = i; k > 0 && at[k] < at[k - 1]; k--) {
			double swap = at[k];
			at[k] = at[k - 1];
			at[k - 1] = swap;
		}
	while (c->rate > 0 && n < max && t < c->limit_s) {
		t += -log(1 - (double)(campaign_draw(state) >> 11) * 0x1p-53) / c->rate;
		at[n++] = t;
	}
	return n;
}

static void environment_set(const struct campaign *c, long number, const double *at, size_t times)
{
	char path[128], text[4096];
	int len;

	path_in(c, "report.%p", path);
	snprintf(text, sizeof text, "report=%s", path);
	setenv("HALE_PROTECT", text, 1);
	unsetenv("HALE_PROTECT_INJECT");
	if (!number || c->outside)
		return;
	path_in(c, "log", path);
	if (c->rate > 0) {
		snprintf(text, sizeof text, "rate=%.9g,seed=%ld,log=%s", c->rate, c->seed + number,
			 path);
	} else {
		len = snprintf(text, sizeof text, "seed=%ld,log=%s,times=", c->seed + number, path);
		for (size_t i = 0; i < times; i++)
			len += snprintf(text + len, sizeof text - (size_t)len, "%s%.6f",
					i ? ":" : "", at[i]);
	}
	setenv("HALE_PROTECT_INJECT", text, 1);
}

static void child(const struct campaign *c, long number, const double *at, size_t times)
{
	char path[128];
	int fd, in = open("/dev/null", O_RDONLY);

	path_in(c, "out", path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	setpgid(0, 0); /* a run that hangs is ended with all that it has started */
	dup2(in, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	path_in(c, "err", path);
	fd = number ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600) : -1;
	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
	environment_set(c, number, at, times);
	execvp(c->argv[0], c->argv);
	if (!number)
		log_warn("can't run '%s': %s", c->argv[0], strerror(errno));
	_exit(EXIT_NOT_FOUND);
}

/* Waits until `when` (of clock_seconds) or the program's end: true. */
static bool ended_until(int pidfd, double when)
{
	struct pollfd p = {pidfd, POLLIN, 0};
	double left;

	while ((left = when - clock_seconds()) > 0)
		if (poll(&p, 1, left > 1000 ? 1000000 : (int)(left * 1000) + 1) > 0)
			return true;
	return false;
}

static void strike_outside(struct campaign *c, struct campaign_run *r, pid_t pid, int pidfd,
			   const double *at, size_t times, double began, uint64_t seed)
{
	struct outside *o = NULL;

	for (size_t i = 0; i < times && r->flips < CAMPAIGN_FLIPS_MAX; i++) {
		double when = began + at[i];
		if (when > began + c->limit_s || ended_until(pidfd, when))
			break;
		if (!o)
			o = outside_open(pid, c->argv[0], c->data, seed);
		if (!o)
			break;
		r->flips += outside_flip(o, &r->flip[r->flips]);
	}
	outside_close(o);
}

static bool is_report(const char *name)
{
	return strncmp(name, "report.", 7) == 0;
}

void campaign_reports_remove(const struct campaign *c)
{
	DIR *d = opendir(c->folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (is_report(e->d_name))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

static bool flips_of_process(const struct campaign *c, const char *name, struct campaign_run *r)
{
	char path[512], *text;
	size_t len;
	struct json_value *doc;
	const struct json_value *list;

	snprintf(path, sizeof path, "%s/%s", c->folder, name);
	text = file_read(path, &len);
	doc = text ? json_parse(text, len) : NULL;
	free(text);
	list = json_get(doc, "injected");
	for (size_t i = 0; i < json_count(list) && r->flips < CAMPAIGN_FLIPS_MAX; i++) {
		const struct json_value *one = json_at(list, i);
		struct campaign_flip *f = &r->flip[r->flips++];
		snprintf(f->var, sizeof f->var, "%s", json_text(json_get(one, "var"), "?"));
		f->mended = strcmp(json_text(json_get(one, "outcome"), "none"), "none") != 0;
	}
	json_free(doc);
	return doc != NULL;
}

/* Each process with protected regions has written one: of a job, each rank. */
static bool flips_from_reports(const struct campaign *c, struct campaign_run *r)
{
	DIR *d = opendir(c->folder);
	struct dirent *e;
	bool any = false;

	while (d && (e = readdir(d)))
		if (is_report(e->d_name))
			any |= flips_of_process(c, e->d_name, r);
	if (d)
		closedir(d);
	return any;
}

/* Of a program that wrote no report. */
static void flips_from_log(const struct campaign *c, struct campaign_run *r)
{
	char path[128], line[256];
	FILE *f;

	path_in(c, "log", path);
	f = fopen(path, "r");
	while (f && r->flips < CAMPAIGN_FLIPS_MAX && fgets(line, sizeof line, f)) {
		struct campaign_flip *flip = &r->flip[r->flips++];
		flip->mended = false;
		snprintf(flip->var, sizeof flip->var, "%.*s", (int)strcspn(line, " "), line);
	}
	if (f)
		fclose(f);
}

static bool judge_right(struct campaign *c, long number)
{
	char path[128];
	uint64_t out, file;

	path_in(c, "out", path);
	if (c->judge) {
		setenv("HALE_CAMPAIGN_OUT", path, 1);
		fflush(NULL);
		return system(c->judge) == 0;
	}
	out = file_hash(path);
	file = c->output ? file_hash(c->output) : 0;
	if (number == 0) {
		c->right_out = out;
		c->right_file = file;
		if (c->output && access(c->output, R_OK) != 0) {
			log_warn("the program wrote no %s, which --output names", c->output);
			return false;
		}
	}
	return out == c->right_out && file == c->right_file;
}

/* The first runs that crash or hang say how: a campaign is to be explained, not only counted. */
static void crash_tell(struct campaign *c, long number, campaign_end_t end, int status)
{
	char path[128], how[64], *text, *line;
	size_t len;

	if ((end != END_CRASHED && end != END_HUNG) || c->told++ >= CAMPAIGN_TOLD_MAX)
		return;
	path_in(c, "err", path);
	text = file_read(path, &len);
	while (text && len && strchr("\n\r ", text[len - 1]))
		text[--len] = '\0';
	line = text ? strrchr(text, '\n') : NULL;
	line = line ? line + 1 : text ? text : "";
	if (end == END_HUNG)
		snprintf(how, sizeof how, "did not end within %.3g s", c->limit_s);
	else if (WIFSIGNALED(status))
		snprintf(how, sizeof how, "ended by signal %d (SIG%s)", WTERMSIG(status),
			 sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
	else
		snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(status));
	log_warn("run %ld of seed %ld %s%s%.300s", number, c->seed, how,
		 *line ? "; its last line: " : ", and said nothing", line);
	free(text);
}

bool campaign_run_once(struct campaign *c, long number, struct campaign_run *r)
{
	uint64_t state = ((uint64_t)c->seed << 32) + (uint64_t)number * 0x9e3779b97f4a7c15u;
	static double at[CAMPAIGN_FLIPS_MAX];
	size_t times =
	    number ? times_draw(c, &state, at, c->rate > 0 ? CAMPAIGN_FLIPS_MAX : 64) : 0;
	char path[128];
	double began = clock_seconds();
	int status = 0, pidfd, executed[2];
	bool hung;
	pid_t pid;
	char byte;

	*r = (struct campaign_run){0};
	campaign_reports_remove(c);
	path_in(c, "log", path);
	unlink(path);
	if (c->output)
		unlink(c->output);
	fflush(NULL);
	if (pipe2(executed, O_CLOEXEC) != 0) {
		log_warn("can't start a run: %s", strerror(errno));
		return false;
	}
	pid = fork();
	if (pid == 0)
		child(c, number, at, times);
	close(executed[1]);
	/* Before its exec the child is still hale, whose symbols are not those of the program. */
	while (pid > 0 && read(executed[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(executed[0]);
	pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (pidfd < 0) {
		log_warn("can't start a run: %s", strerror(errno));
		return false;
	}
	setpgid(pid, pid);
	if (number && c->outside)
		strike_outside(c, r, pid, pidfd, at, times, began, state);
	hung = !ended_until(pidfd, began + (number ? c->limit_s : 1e9));
	if (hung)
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	close(pidfd);
	r->seconds = clock_seconds() - began;
	if (!c->outside && number && !flips_from_reports(c, r))
		flips_from_log(c, r);
	r->end = hung								  ? END_HUNG
		 : WIFEXITED(status) && WEXITSTATUS(status) == EXIT_UNRECOVERABLE ? END_REPORTED
		 : !WIFEXITED(status) || WEXITSTATUS(status)			  ? END_CRASHED
		 : judge_right(c, number)					  ? END_RIGHT
										  : END_WRONG;
	crash_tell(c, number, r->end, status);
	return true;
}
