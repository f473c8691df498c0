/* SPDX-License-Identifier: BSD-3-Clause */
/* hale-top HALE [JOB] EVERY: started by `hale top`. */
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/clock.h"
#include "top/top.h"

enum { KEY_ESC = 27 };

static volatile sig_atomic_t ended;

static void end(int signal)
{
	ended = signal;
}

/* ---- what is shown ---- */

static void keep_cursor_in_view(struct top *t)
{
	size_t count = t->view == TOP_JOBS ? t->data.count : t->row_count, room = top_draw_room(t);

	if (t->at >= count)
		t->at = count ? count - 1 : 0;
	if (t->at < t->first)
		t->first = t->at;
	if (t->at >= t->first + room)
		t->first = t->at - room + 1;
	if (t->first + room > count)
		t->first = count > room ? count - room : 0;
}

/* The cursor stays on what it is on, wherever that goes. */
static void make_rows(struct top *t)
{
	struct top_job *job = top_current(t);
	struct top_row was = t->at < t->row_count ? t->rows[t->at] : (struct top_row){-1, -1};

	free(t->rows);
	t->rows = NULL;
	t->row_count = 0;
	if (!job)
		return;
	t->rows = calloc(job->rank_count + job->node_count + 1, sizeof(*t->rows));
	if (t->rows)
		t->row_count = top_rows(job, t->sort, t->filter, t->rows);
	for (size_t i = 0; i < t->row_count; i++)
		if (t->rows[i].node == was.node && t->rows[i].rank == was.rank)
			t->at = i;
}

/* Events are those of the job that is looked at, or of the one under the cursor. */
static void follow_events(struct top *t)
{
	const char *job = t->view != TOP_JOBS ? t->job : "";
	char *argv[] = {(char *)t->hale, "events", t->events_of, "--follow", NULL};

	if (t->view == TOP_JOBS && t->at < t->data.count)
		job = t->data.jobs[t->at].id;
	if (strcmp(job, t->events_of) == 0)
		return;
	if (!*job || !top_data_find(&t->data, job)) /* it is over: its last events stay */
		return;
	snprintf(t->events_of, sizeof(t->events_of), "%s", job);
	follow_start(&t->events, argv);
}

static void describe(struct top *t)
{
	struct top_job *job = top_current(t);

	free(t->described);
	t->described = NULL;
	for (size_t i = 0; t->view == TOP_RANK && job && i < job->rank_count; i++)
		if (job->ranks[i].rank == t->rank && job->ranks[i].slot == t->slot &&
		    job->ranks[i].local)
			t->described = top_local_describe(job->ranks[i].pid);
}

static void look(struct top *t)
{
	char under[JOB_ID_MAX] = "";

	if (t->view == TOP_JOBS && t->at < t->data.count)
		snprintf(under, sizeof(under), "%s", t->data.jobs[t->at].id);
	top_data_read(&t->data, t->view == TOP_JOBS ? NULL : t->job);
	for (size_t i = 0; *under && i < t->data.count; i++)
		if (strcmp(t->data.jobs[i].id, under) == 0)
			t->at = i;
	if (t->view != TOP_JOBS)
		make_rows(t);
	describe(t);
	keep_cursor_in_view(t);
	follow_events(t);
}

/* ---- what is done ---- */

static const struct top_rank *rank_here(const struct top *t)
{
	const struct top_job *job = top_current(t);

	if (!job)
		return NULL;
	if (t->view == TOP_JOB)
		return t->at < t->row_count && t->rows[t->at].rank >= 0
			   ? &job->ranks[t->rows[t->at].rank]
			   : NULL;
	for (size_t i = 0; t->view == TOP_RANK && i < job->rank_count; i++)
		if (job->ranks[i].rank == t->rank && job->ranks[i].slot == t->slot)
			return &job->ranks[i];
	return NULL;
}

static const char *node_here(const struct top *t)
{
	const struct top_job *job = top_current(t);
	const struct top_rank *r = rank_here(t);

	if (r)
		return r->node >= 0 ? job->nodes[r->node].name : NULL;
	return job && t->view == TOP_JOB && t->at < t->row_count
		   ? job->nodes[t->rows[t->at].node].name
		   : NULL;
}

static void ask(struct top *t, int key)
{
	const char *job = t->view != TOP_JOBS	  ? t->job
			  : t->at < t->data.count ? t->data.jobs[t->at].id
						  : NULL;
	const struct top_rank *r = rank_here(t);

	t->asked_times = 0;
	if (!job) {
		snprintf(t->said, sizeof(t->said), "There is no job here.");
	} else if (key == 'C') {
		t->asked = TOP_CHECKPOINT;
		snprintf(t->asked_about, sizeof(t->asked_about), "Take a checkpoint of %s?", job);
	} else if (key == 'M' && node_here(t)) {
		t->asked = TOP_MIGRATE;
		snprintf(t->target, sizeof(t->target), "%s", node_here(t));
		snprintf(t->asked_about, sizeof(t->asked_about),
			 "Let all ranks of %s go to another node?", t->target);
	} else if (key == 'K' && r) {
		t->asked = TOP_INJECT;
		snprintf(t->target, sizeof(t->target), "%d %d", r->rank, r->slot);
		snprintf(t->asked_about, sizeof(t->asked_about), "Kill rank %d (pid %d) of %s?",
			 r->rank, (int)r->pid, job);
	} else {
		snprintf(t->said, sizeof(t->said), "Go into a job, to a %s first.",
			 key == 'M' ? "node" : "rank");
	}
}

static void act(struct top *t)
{
	char *job = t->view == TOP_JOBS && t->at < t->data.count ? t->data.jobs[t->at].id : t->job;
	char *slot = strchr(t->target, ' ');
	char *take[] = {(char *)t->hale, "ckpt", job, NULL};
	char *move[] = {(char *)t->hale, "migrate", job, "--from", t->target, NULL};
	char *kill[] = {(char *)t->hale,       "inject", "kill", job, "--rank", t->target, "--slot",
			slot ? slot + 1 : "0", NULL};

	if (t->asked == TOP_INJECT && slot)
		*slot = '\0';
	if (t->action.pid > 0)
		snprintf(t->said, sizeof(t->said), "What was asked for before is still under way.");
	else if (follow_start(&t->action, t->asked == TOP_CHECKPOINT ? take
					     : t->asked == TOP_MIGRATE	? move
									: kill))
		snprintf(t->said, sizeof(t->said), "%s",
			 t->asked == TOP_CHECKPOINT ? "A checkpoint is being taken."
			 : t->asked == TOP_MIGRATE  ? "The ranks are on their way."
						    : "The rank is being killed.");
}

static void answered(struct top *t, int key)
{
	if (key != 'y' && key != 'Y') {
		snprintf(t->said, sizeof(t->said), "Nothing has been done.");
		t->asked = TOP_NOTHING;
	} else if (t->asked_times++ == 1) {
		act(t);
		t->asked = TOP_NOTHING;
	}
}

static void action_over(struct top *t)
{
	const char *text = follow_last(&t->action, 1);
	int status = t->action.status;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !*text)
		snprintf(t->said, sizeof(t->said), "Done.");
	else if (*text)
		snprintf(t->said, sizeof(t->said), "%.*s", (int)strcspn(text, "\n"), text);
	else
		snprintf(t->said, sizeof(t->said), "It has failed, and said nothing.");
}

/* ---- keys ---- */

static void enter(struct top *t)
{
	struct top_job *job = top_current(t);

	if (t->view == TOP_JOBS && t->at < t->data.count) {
		snprintf(t->job, sizeof(t->job), "%s", t->data.jobs[t->at].id);
		t->view = TOP_JOB;
		t->at = t->first = 0;
		t->filter[0] = '\0';
		look(t);
	} else if (t->view == TOP_JOB && job && t->at < t->row_count) {
		const struct top_row *row = &t->rows[t->at];

		if (row->rank < 0) {
			job->nodes[row->node].folded = !job->nodes[row->node].folded;
			make_rows(t);
			return;
		}
		t->rank = job->ranks[row->rank].rank;
		t->slot = job->ranks[row->rank].slot;
		t->view = TOP_RANK;
		t->scroll = 0;
		follow_end(&t->stack);
		t->stack.len = 0;
		describe(t);
	}
}

static void take_stack(struct top *t)
{
	const struct top_rank *r = rank_here(t);
	char pid[16];
	char *argv[] = {"sh",
			"-c",
			"if command -v eu-stack >/dev/null; then exec eu-stack -p $1; fi; "
			"if command -v gdb >/dev/null; then exec gdb -p $1 -batch -nx "
			"-ex 'thread apply all backtrace' 2>/dev/null; fi; "
			"echo Neither eu-stack nor gdb is installed.",
			"sh",
			pid,
			NULL};

	if (!r) {
		snprintf(t->said, sizeof(t->said), "Go into a job, to a rank first.");
		return;
	}
	if (!r->local) {
		snprintf(t->said, sizeof(t->said), "This rank runs on another machine.");
		return;
	}
	if (t->view == TOP_JOB)
		enter(t);
	snprintf(pid, sizeof(pid), "%d", (int)r->pid);
	t->scroll = 0;
	follow_start(&t->stack, argv);
}

/* False: out. */
static bool back(struct top *t)
{
	if (t->view == TOP_JOBS)
		return false;
	if (t->view == TOP_JOB && t->filter[0]) {
		t->filter[0] = '\0';
		make_rows(t);
		return true;
	}
	t->view = t->view == TOP_RANK ? TOP_JOB : TOP_JOBS;
	t->at = t->view == TOP_JOBS ? 0 : t->at;
	look(t);
	return true;
}

static void move_cursor(struct top *t, int key)
{
	size_t room = top_draw_room(t), *at = t->view == TOP_RANK ? &t->scroll : &t->at;

	if (key == KEY_UP || key == 'k')
		*at -= *at > 0;
	else if (key == KEY_DOWN || key == 'j')
		*at += 1;
	else if (key == KEY_PPAGE)
		*at -= *at > room ? room : *at;
	else if (key == KEY_NPAGE)
		*at += room;
	else if (key == KEY_HOME)
		*at = 0;
	else if (key == KEY_END && t->view != TOP_RANK)
		*at = t->view == TOP_JOBS ? t->data.count : t->row_count;
}

static void fold_all(struct top *t)
{
	struct top_job *job = top_current(t);
	bool open = false;

	for (size_t k = 0; job && k < job->node_count; k++)
		open |= !job->nodes[k].folded;
	for (size_t k = 0; job && k < job->node_count; k++)
		job->nodes[k].folded = open;
	make_rows(t);
}

static void edit_filter(struct top *t, int key)
{
	size_t len = strlen(t->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER)
		t->filtering = false;
	else if (key == KEY_ESC) {
		t->filtering = false;
		t->filter[0] = '\0';
	} else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && len > 0)
		t->filter[len - 1] = '\0';
	else if (key >= 32 && key < 127 && len + 1 < sizeof(t->filter))
		t->filter[len] = (char)key;
	if (key >= 32 && key < 127 && len + 1 < sizeof(t->filter))
		t->filter[len + 1] = '\0';
	t->at = 0;
	make_rows(t);
}

/* False: out. */
static bool take_key(struct top *t, int key)
{
	bool out = false;

	t->help = key == '?' && !t->help && !t->filtering;
	if (key == KEY_RESIZE || t->help) {
		keep_cursor_in_view(t);
		return true;
	}
	if (t->asked) {
		answered(t, key);
		return true;
	}
	if (t->filtering) {
		edit_filter(t, key);
		return true;
	}
	t->said[0] = '\0';
	if (key == 'q' || key == KEY_ESC)
		out = !back(t);
	else if (key == '\n' || key == '\r' || key == KEY_ENTER)
		enter(t);
	else if (key == 'C' || key == 'M' || key == 'K')
		ask(t, key);
	else if (key == 's')
		take_stack(t);
	else if (key == 'F' && t->view == TOP_JOB)
		fold_all(t);
	else if (key == '/' && t->view == TOP_JOB)
		t->filtering = true;
	else if (key == 'o' && t->view == TOP_JOB) {
		t->sort = (t->sort + 1) % TOP_SORTS;
		t->at = t->first = 0;
		make_rows(t);
	} else
		move_cursor(t, key);
	keep_cursor_in_view(t);
	follow_events(t);
	return !out;
}

/* ---- time ---- */

static bool take_keys(struct top *t)
{
	int key;

	while ((key = getch()) != ERR)
		if (!take_key(t, key))
			return false;
	return true;
}

static void watch(struct top *t, double every)
{
	double next = clock_seconds() + every;

	for (;;) {
		double left = next - clock_seconds();
		struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
				     {.fd = t->events.fd, .events = POLLIN},
				     {.fd = t->action.fd, .events = POLLIN},
				     {.fd = t->stack.fd, .events = POLLIN}};
		int n = poll(p, 4, left > 0 ? (int)(left * 1000) + 1 : 0);

		if (ended || (n < 0 && errno != EINTR) || p[0].revents & (POLLHUP | POLLERR))
			return;
		if (!take_keys(t))
			return;
		while (follow_read(&t->events))
			;
		while (follow_read(&t->stack))
			;
		while (follow_read(&t->action))
			if (t->action.ended)
				action_over(t);
		if (clock_seconds() >= next) {
			look(t);
			next = clock_seconds() + every;
		}
		top_draw(t);
	}
}

static void start_screen(void)
{
	setlocale(LC_ALL, "");
	initscr();
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	start_color();
	use_default_colors();
	for (short i = 1; i <= 4; i++)
		init_pair(i,
			  (const short[]){COLOR_GREEN, COLOR_YELLOW, COLOR_RED, COLOR_CYAN}[i - 1],
			  -1);
}

int main(int argc, char **argv)
{
	static struct top t;
	double every;

	log_init_from_env();
	if (argc != 4 || !units_parse_seconds(argv[3], &every)) {
		log_warn("hale-top is started by hale top");
		return EXIT_USAGE;
	}
	t.hale = argv[1];
	follow_init(&t.events);
	follow_init(&t.action);
	follow_init(&t.stack);
	if (argv[2][0]) {
		snprintf(t.job, sizeof(t.job), "%s", argv[2]);
		t.view = TOP_JOB;
	}
	signal(SIGTERM, end);
	signal(SIGHUP, end);
	signal(SIGINT, end);
	signal(SIGPIPE, SIG_IGN);
	start_screen();
	look(&t);
	top_draw(&t);
	watch(&t, every);
	endwin();
	follow_end(&t.events);
	follow_end(&t.action);
	follow_end(&t.stack);
	top_data_fini(&t.data);
	free(t.rows);
	free(t.described);
	return 0;
}
