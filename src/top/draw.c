/* SPDX-License-Identifier: BSD-3-Clause */
/* The screen: a line about it, a table, events, a line for keys or questions. Nothing is wider than
 * the terminal; columns that find no room are left out, the least needed ones first. */
#include <curses.h>
#include <stdarg.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "base/units.h"
#include "top/top.h"

enum { HEAD_LINES = 5, NARROW = 100, WIDE = 160 };
enum { RANK_AT = 0, PID_AT = 7, STATE_AT = 25, CPU_AT = 39, NODE_AT = 73 };
enum { GOOD = 1, BUSY, BAD, FAINT };

struct top_job *top_current(const struct top *t)
{
	return top_data_find(&t->data, t->job);
}

/* The head line of the events, and a line for each that there is, within the room that they may take. */
static int event_lines(const struct top *t)
{
	int most = LINES < 16 ? 0 : LINES < 40 ? 5 : 12, n = most > 0 ? 1 : 0;

	for (const char *at = follow_last(&t->events, 12); *at && n < most; n++) {
		at += strcspn(at, "\n");
		at += *at == '\n';
	}
	return n;
}

/* The table's own head line is not of its room. */
size_t top_draw_room(const struct top *t)
{
	int used = (t->view == TOP_JOBS ? 1 : HEAD_LINES) + 1 + event_lines(t) + 1;

	return LINES > used ? (size_t)(LINES - used) : 1;
}

/* At a place, up to the edge. */
__attribute__((format(printf, 3, 4))) static void put(int y, int x, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text[strcspn(text, "\n")] = '\0';
	for (char *c = text; *c; c++) /* what a program's name or an event may hold */
		if ((unsigned char)*c < 32 || *c == 127)
			*c = ' ';
	if (x < COLS && y < LINES)
		mvaddnstr(y, x, text, COLS - x);
}

static int color_of(const char *state)
{
	static const struct {
		const char *state;
		int color;
	} all[] = {{"running", GOOD},	   {"READY", GOOD},    {"checkpointing", BUSY},
		   {"restoring", BUSY},	   {"starting", BUSY}, {"ARM", BUSY},
		   {"INACTIVE", BUSY},	   {"STARTING", BUSY}, {"down", BAD},
		   {"lost", BAD},	   {"LOST", BAD},      {"stopped", BAD},
		   {"not answering", BAD}, {"headless", BAD},  {"has died", BAD},
		   {"SPARE", FAINT},	   {"ended", FAINT},   {"finalized", FAINT}};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(all[i].state, state) == 0)
			return all[i].color;
	return 0;
}

static void put_state(int y, int x, int width, const char *state)
{
	int color = color_of(state);

	attron(COLOR_PAIR(color));
	put(y, x, "%-*.*s", width, width, state);
	attroff(COLOR_PAIR(color));
}

static void bar(int y, const char *text)
{
	attron(A_REVERSE);
	move(y, 0);
	for (int i = 0; i < COLS; i++)
		addch(' ');
	put(y, 0, "%s", text);
	attroff(A_REVERSE);
}

static const char *checkpoint_text(const struct top_job *job, char text[64])
{
	char bytes[16], age[16];

	if (!job->has_checkpoint) {
		snprintf(text, 64, job->checkpoint ? "%" PRId64 : "none", job->checkpoint);
		return text;
	}
	snprintf(text, 64, "%" PRId64 ": %s, %s ago", job->checkpoint,
		 units_show_bytes((uint64_t)job->checkpoint_bytes, bytes),
		 units_show_seconds(job->checkpoint_age, age));
	return text;
}

/* ---- all jobs ---- */

static void draw_jobs(struct top *t, int y)
{
	char text[96], age[16], checkpoint[64], nodes[24] = "";
	size_t room = top_draw_room(t);
	/* narrow screens show the newest checkpoint whole, and neither nodes nor the ends of names */
	int id = COLS >= NARROW ? 24 : 20, at = COLS >= NARROW ? 67 : 57;

	snprintf(text, sizeof(text), "%-*s %-13s %5s%s %9s %5s  %s", id, "JOB", "STATE", "RANKS",
		 COLS >= NARROW ? " NODES" : "", "RUNS", "BACK", "CHECKPOINT");
	bar(y++, text);
	if (COLS >= NARROW) {
		attron(A_REVERSE);
		put(y - 1, 92, "PROGRAM");
		attroff(A_REVERSE);
	}
	if (t->data.count == 0)
		put(y, 0, "No job of yours runs on this machine.");
	for (size_t i = t->first; i < t->data.count && i < t->first + room; i++, y++) {
		const struct top_job *job = &t->data.jobs[i];

		if (i == t->at)
			attron(A_BOLD | A_UNDERLINE);
		put(y, 0, "%-*.*s", id, id, job->id);
		attroff(A_BOLD | A_UNDERLINE);
		put_state(y, id + 1, 13, job->state);
		if (COLS >= NARROW)
			snprintf(nodes, sizeof(nodes), " %5zu", job->node_count);
		put(y, id + 15, "%5zu%s %9s %5" PRId64 "  %.27s", job->rank_count, nodes,
		    units_show_seconds(job->seconds, age), job->restarts,
		    checkpoint_text(job, checkpoint));
		if (COLS >= NARROW)
			put(y, 92, "%s", job->program);
		if (job->unprotected) {
			attron(COLOR_PAIR(BAD));
			put(y, at, "UNPROTECTED");
			attroff(COLOR_PAIR(BAD));
		}
	}
}

/* ---- one job ---- */

static const char *rate_text(double rate, const char *of, char text[40])
{
	if (rate < 0)
		text[0] = '\0';
	else if (rate >= 10e6)
		snprintf(text, 40, "  %.0f M %s/s", rate * 1e-6, of);
	else if (rate >= 10e3)
		snprintf(text, 40, "  %.0f k %s/s", rate * 1e-3, of);
	else
		snprintf(text, 40, "  %.0f %s/s", rate, of);
	return text;
}

static void draw_head(const struct top_job *job)
{
	char a[64], b[40], c[16], calls[40], messages[40];
	char spares[32] = "", lost[48] = "";
	size_t used = 0, spare = 0, away = 0;

	for (size_t k = 0; k < job->node_count; k++) {
		const struct top_node *n = &job->nodes[k];

		if (!n->usable || strcmp(n->state, "LOST") == 0)
			away++;
		else if (n->ranks > 0)
			used++;
		else
			spare++;
	}
	if (spare)
		snprintf(spares, sizeof(spares), ", %zu spare", spare);
	if (away)
		snprintf(lost, sizeof(lost), ", %zu lost or not usable", away);
	put_state(1, 0, 14, job->state);
	put(1, 15, "%zu rank%s on %zu node%s%s%s, runs for %s: %s", job->rank_count,
	    job->rank_count == 1 ? "" : "s", used, used == 1 ? "" : "s", spares, lost,
	    units_show_seconds(job->seconds, c), job->program);
	if (job->unprotected) {
		attron(COLOR_PAIR(BAD));
		put(2, 0, "no checkpoint since %s after its start: %s",
		    units_show_seconds(job->unprotected_since, c), job->why);
		attroff(COLOR_PAIR(BAD));
	} else {
		if (job->dirty >= 0)
			snprintf(b, sizeof(b), "; %s/s of memory change",
				 units_show_bytes((uint64_t)job->dirty, c));
		put(2, 0, "checkpoint %s%s", checkpoint_text(job, a), job->dirty >= 0 ? b : "");
	}
	put(3, 0,
	    "faults %" PRId64 ", recovered %" PRId64 "; rollbacks %" PRId64 ", %s of work lost",
	    job->faults, job->recovered, job->restarts, units_show_seconds(job->lost_seconds, c));
	if (job->calls.at <= 0) {
		put(4, 0, "MPI: nothing is measured of it");
		return;
	}
	snprintf(b, sizeof(b), "%s", "");
	if (job->bytes.rate >= 0)
		snprintf(b, sizeof(b), "  %s/s", units_show_bytes((uint64_t)job->bytes.rate, c));
	put(4, 0, "MPI: %.0f %% of the time%s%s%s", job->mpi_share >= 0 ? job->mpi_share * 100 : 0,
	    rate_text(job->calls.rate, "calls", calls),
	    rate_text(job->messages.rate, "messages", messages), b);
}

static void draw_node_row(const struct top_job *job, int node, int y, bool here)
{
	const struct top_node *n = &job->nodes[node];
	char summary[96];

	top_node_summary(job, node, summary, sizeof(summary));
	if (here)
		attron(A_UNDERLINE);
	attron(A_BOLD);
	put(y, 0, "%c %-20.20s", n->folded ? '+' : '-', n->name);
	attroff(A_BOLD | A_UNDERLINE);
	put_state(y, 23, 9, n->state);
	put(y, 33, "%s%s  (%d cores, %s)", summary, n->usable ? "" : ", unusable", n->cores,
	    n->host);
}

/* with_node: no line of its node stands above. */
static void draw_rank_row(const struct top_job *job, const struct top_rank *r, int y, bool here,
			  bool with_node)
{
	char memory[16] = "", cpu[16] = "";

	if (r->kernel)
		units_show_bytes(r->memory, memory);
	if (r->kernel && r->cpu >= 0)
		snprintf(cpu, sizeof(cpu), "%.0f%%", r->cpu * 100);
	if (here)
		attron(A_BOLD | A_UNDERLINE);
	put(y, RANK_AT, "%6d", r->rank);
	attroff(A_BOLD | A_UNDERLINE);
	put(y, PID_AT, "%8d  %s", (int)r->pid,
	    !job->replicas ? ""
	    : r->leader	   ? "leader"
			   : "replica");
	put_state(y, STATE_AT, 13, r->state);
	put(y, CPU_AT, "%5s %9s  %.16s", cpu, memory, top_does(r));
	if (with_node || r->node < 0)
		put(y, NODE_AT, "%s", r->node >= 0 ? job->nodes[r->node].name : "?");
}

static void draw_ranks(struct top *t, int y)
{
	const struct top_job *job = top_current(t);
	size_t room = top_draw_room(t);

	bar(y, "");
	attron(A_REVERSE);
	put(y, RANK_AT, "%6s %8s", "RANK", "PID");
	put(y, STATE_AT, "%-13s %5s %9s  %s", "STATE", "CPU", "MEMORY", "DOES");
	if (t->sort != TOP_SORT_NODE)
		put(y, NODE_AT, "NODE");
	y++;
	attroff(A_REVERSE);
	for (size_t i = t->first; i < t->row_count && i < t->first + room; i++, y++) {
		const struct top_row *row = &t->rows[i];

		if (row->rank < 0)
			draw_node_row(job, row->node, y, i == t->at);
		else
			draw_rank_row(job, &job->ranks[row->rank], y, i == t->at,
				      t->sort != TOP_SORT_NODE);
	}
	if (t->row_count == 0)
		put(y, 0, t->filter[0] ? "No rank has '%s' in its line." : "%s", t->filter);
}

/* ---- one rank ---- */

static const struct top_rank *looked_at(const struct top *t, const struct top_job *job)
{
	for (size_t i = 0; i < job->rank_count; i++)
		if (job->ranks[i].rank == t->rank && job->ranks[i].slot == t->slot)
			return &job->ranks[i];
	return NULL;
}

static void draw_rank(struct top *t, int y)
{
	const struct top_job *job = top_current(t);
	const struct top_rank *r = looked_at(t, job);
	const char *text = t->stack.len ? t->stack.text : t->described ? t->described : "";
	size_t room = top_draw_room(t), line = 0;
	char head[160];

	if (!r) {
		put(y, 0, "Rank %d is gone.", t->rank);
		return;
	}
	snprintf(head, sizeof(head), "rank %d%s  pid %d on %s: %s, %s", r->rank,
		 !job->replicas ? ""
		 : r->leader	? " (leader)"
				: " (replica)",
		 (int)r->pid, r->node >= 0 ? job->nodes[r->node].name : "?", r->state,
		 top_does(r));
	bar(y++, head);
	if (!r->local)
		text = "It runs on another machine: what its kernel says is to be had there.";
	for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n', line++)
		if (line >= t->scroll && line < t->scroll + room)
			put(y + (int)(line - t->scroll), 1, "%.*s", (int)strcspn(at, "\n"), at);
}

/* ---- around it ---- */

static void put_event(int y, const char *line, size_t len)
{
	char text[1024];

	top_event_text(line, len, text, sizeof(text));
	if (COLS < WIDE && COLS > 3 && strlen(text) > (size_t)COLS)
		put(y, 0, "%.*s...", COLS - 3, text);
	else if (COLS < WIDE)
		put(y, 0, "%s", text);
	else
		put(y, 0, "%.*s", (int)len, line);
}

static void draw_events(const struct top *t)
{
	int n = event_lines(t), y = LINES - 1 - n;
	char head[160];
	const char *at;

	if (n == 0)
		return;
	snprintf(head, sizeof(head), "events of %s%s",
		 t->events_of[0] ? t->events_of : "a job: none is chosen",
		 t->events_of[0] && n == 1 ? ": none yet" : "");
	bar(y++, head);
	at = n > 1 ? follow_last(&t->events, (size_t)n - 1) : "";
	for (; *at && y < LINES - 1; at += strcspn(at, "\n"), at += *at == '\n')
		put_event(y++, at, strcspn(at, "\n"));
}

static void draw_help(void)
{
	static const char *const lines[] = {
	    "arrows, PgUp, PgDn   another line",
	    "Enter                into a job, a rank; folds and unfolds a node",
	    "Esc, q               back; out",
	    "o                    order: by node, rank, state, cpu, memory",
	    "/                    only ranks with a text in their line (Enter ends it)",
	    "F                    folds or unfolds all nodes",
	    "s                    a rank's stack (needs eu-stack or gdb; stops it a moment)",
	    "C                    takes a checkpoint; asked twice",
	    "M                    lets a node's ranks go elsewhere; asked twice",
	    "K                    kills a rank, to see what happens; asked twice",
	    "?                    this"};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		put(3 + (int)i, 2, " %-76s ", lines[i]);
}

static void draw_last_line(const struct top *t)
{
	int y = LINES - 1;

	if (t->asked) {
		attron(A_BOLD);
		put(y, 0, "%s %s (y, anything else: no)", t->asked_times ? "Really?" : "",
		    t->asked_about);
		attroff(A_BOLD);
	} else if (t->filtering) {
		put(y, 0, "/%s_", t->filter);
	} else if (t->said[0]) {
		put(y, 0, "%s", t->said);
	} else {
		put(y, 0,
		    t->view == TOP_JOBS	 ? "Enter: look into it  C: checkpoint  ?: keys  q: out"
		    : t->view == TOP_JOB ? "Enter: look into it  o: order  /: filter  C "
					   "M K: act  ?: keys  Esc: back"
		    : !top_current(t)	 ? "Esc: back  ?: keys"
					 : "s: stack  K: kill  Esc: back  ?: keys");
	}
}

void top_draw(struct top *t)
{
	static const char *const orders[TOP_SORTS] = {"node", "rank", "state", "cpu", "memory"};
	const struct top_job *job = top_current(t);
	char title[256];

	erase();
	snprintf(title, sizeof(title), "hale top  %s%zu job%s", t->view != TOP_JOBS ? t->job : "",
		 t->data.count, t->data.count == 1 ? "" : "s");
	if (t->view == TOP_JOB)
		snprintf(title, sizeof(title), "hale top  %s  by %s%s%s", t->job, orders[t->sort],
			 t->filter[0] ? ", with " : "", t->filter);
	else if (t->view == TOP_RANK)
		snprintf(title, sizeof(title), "hale top  %s", t->job);
	attron(A_BOLD);
	put(0, 0, "%s", title);
	attroff(A_BOLD);
	if (t->view == TOP_JOBS) {
		draw_jobs(t, 1);
	} else if (!job || !job->answers) {
		put(2, 0,
		    job ? "The job does not answer: its hale run is stopped or too busy."
			: "The job is over.");
	} else {
		draw_head(job);
		if (t->view == TOP_JOB)
			draw_ranks(t, HEAD_LINES);
		else
			draw_rank(t, HEAD_LINES);
	}
	draw_events(t);
	if (t->help)
		draw_help();
	draw_last_line(t);
	refresh();
}
