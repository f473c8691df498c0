/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/output/output_position.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"

#define MOMENT_SECONDS 0.1

void output_position_init(struct output_position *p, struct loop *loop,
			  struct output_writer *output_writer, uint32_t rank, int which, bool tag,
			  bool alone)
{
	*p = (struct output_position){.loop = loop,
				      .output_writer = output_writer,
				      .rank = rank,
				      .which = which,
				      .tag = tag,
				      .alone = alone};
	history_init(&p->history, 0);
}

void output_position_fini(struct output_position *p)
{
	loop_timer_clear(p->loop, &p->moment);
	history_fini(&p->history);
	free(p->line);
	p->line = NULL;
	p->line_len = p->line_cap = 0;
}

/* Something goes before each line, so that it is written as a whole. */
static bool by_line(const struct output_position *p)
{
	return p->tag || p->stamp;
}

static size_t put_before(const struct output_position *p, char *buf, size_t cap)
{
	char stamp[TIMESTAMP_SIZE];
	size_t n = 0;

	if (p->stamp)
		n = (size_t)snprintf(buf, cap, "%s ", timestamp_print(stamp, timestamp_now()));
	if (p->tag)
		n += (size_t)snprintf(buf + n, cap - n, "[%u] ", p->rank);
	return n;
}

static void write_line(struct output_position *p, const char *text, size_t len)
{
	char before[64];

	output_writer_write_of(p->output_writer, p->rank, p->passed, before,
			       put_before(p, before, sizeof(before)));
	p->passed += p->line_len;
	output_writer_write_of(p->output_writer, p->rank, p->passed, p->line, p->line_len);
	p->passed += len;
	output_writer_write_of(p->output_writer, p->rank, p->passed, text, len);
	p->line_len = 0;
}

static void moment_over(void *arg)
{
	write_line(arg, NULL, 0);
}

static void keep_line(struct output_position *p, const char *text, size_t len)
{
	if (p->line_len + len > p->line_cap) {
		size_t cap = p->line_len + len + 256;
		char *more = realloc(p->line, cap);
		if (!more) { /* better in two pieces than lost */
			write_line(p, text, len);
			return;
		}
		p->line = more;
		p->line_cap = cap;
	}
	memcpy(p->line + p->line_len, text, len);
	p->line_len += len;
	if (!by_line(p))
		loop_timer_set(p->loop, &p->moment, MOMENT_SECONDS, moment_over, p);
}

/* Without tags there is nothing to put between lines: all whole ones at once. */
static size_t next_piece(const struct output_position *p, const char *text, size_t len, bool *whole)
{
	const char *newline = by_line(p) ? memchr(text, '\n', len) : memrchr(text, '\n', len);

	*whole = newline != NULL;
	return newline ? (size_t)(newline - text) + 1 : len;
}

static void pass_on(struct output_position *p, const char *text, size_t len)
{
	if (p->alone && !by_line(p)) {
		p->passed += len;
		output_writer_write_of(p->output_writer, p->rank, p->passed, text, len);
		return;
	}
	while (len > 0) {
		bool whole;
		size_t n = next_piece(p, text, len, &whole);

		if (whole || p->line_len + n > OUTPUT_LINE_MAX) {
			loop_timer_clear(p->loop, &p->moment);
			write_line(p, text, n);
		} else {
			keep_line(p, text, n);
		}
		text += n;
		len -= n;
	}
}

void output_position_take(struct output_position *p, const char *text, size_t len)
{
	size_t again = history_take(&p->history, text, len);

	if (p->history.differs && !p->told) {
		p->told = true;
		p->differs(p->arg, p);
	}
	p->used = p->used || again < len;
	pass_on(p, text + again, len - again);
}

void output_position_begin(struct output_position *p, uint64_t position)
{
	/* while nothing was passed on there is nothing that could come twice: hale restart begins
	 * where the checkpoint says that was restored in the end */
	if (p->used) {
		history_rewind(&p->history, position);
	} else {
		history_fini(&p->history);
		history_init(&p->history, position);
	}
	p->passed = p->history.printed - p->line_len;
}

void output_position_go_on(struct output_position *p, uint64_t passed, uint64_t position)
{
	history_fini(&p->history);
	history_init(&p->history, passed > position ? passed : position);
	p->history.at = position;
	p->passed = p->history.printed;
	p->used = true;
}

void output_position_end(struct output_position *p)
{
	loop_timer_clear(p->loop, &p->moment);
	if (p->line_len > 0)
		write_line(p, "\n", by_line(p) ? 1 : 0);
}
