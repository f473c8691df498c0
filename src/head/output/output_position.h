/* SPDX-License-Identifier: BSD-3-Clause */
/* One of a rank's two output streams at the head: what comes from its agent is compared with what
 * was printed before, so that nothing is printed twice, and goes to hale's own output.
 *
 * Lines of several ranks are not mixed: the beginning of a line waits for its end. Tagged it waits
 * as long as that takes; otherwise for a moment only, as it may be a question to somebody. */
#ifndef HALE_HEAD_OUTPUT_OUTPUT_POSITION_H
#define HALE_HEAD_OUTPUT_OUTPUT_POSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "head/output/output_history.h"
#include "wire/session/loop.h"
#include "head/output/output_writer.h"

enum { OUTPUT_LINE_MAX = 65536 };

struct output_position {
	struct loop *loop;
	struct output_writer *output_writer;
	uint32_t rank;
	int which;  /* 1: stdout, 2: stderr */
	bool tag;   /* "[rank] " goes before each line */
	bool stamp; /* and before that the time */
	bool alone; /* the only rank, there is nobody to mix with */
	struct history history;
	char *line; /* the beginning of a line */
	size_t line_len, line_cap;
	struct loop_timer moment;
	void (*differs)(void *arg, struct output_position *p); /* told once */
	void *arg;
	bool told;
	bool used;	 /* something was passed on */
	uint64_t handed; /* what the output daemon has for certain */
	uint64_t passed; /* position of the next byte for the output writer */
};

void output_position_init(struct output_position *p, struct loop *loop,
			  struct output_writer *output_writer, uint32_t rank, int which, bool tag,
			  bool alone);
void output_position_fini(struct output_position *p);

/* A new process of the rank is about to start with its stream at position. */
void output_position_begin(struct output_position *p, uint64_t position);
/* Another head has printed up to passed (of which nothing more is known), and the rank goes on at
 * position. */
void output_position_go_on(struct output_position *p, uint64_t passed, uint64_t position);
void output_position_take(struct output_position *p, const char *text, size_t len);
/* The rank prints no more: lets go of an unfinished line. */
void output_position_end(struct output_position *p);

#endif
