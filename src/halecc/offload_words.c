/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a pragma:
 *
 *   pragma   = "offload" { "target" "(" "hale" ":" device ")" | way "(" part { "," part } ")" }
 *   way      = "in" | "out" | "inout"
 *   part     = variable [ "[" low ":" length "]" ]
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

static void target_parse(struct unit *u, struct halecc_offload *o, unsigned from, unsigned to)
{
	struct source *s = u->src;
	unsigned at = clause_blank(s, from, to), end = clause_word_end(s, at, to),
		 colon = clause_blank(s, end, to);
	char *rest;
	long number;

	if (strcmp(text_cut(s->text + at, end - at), "hale") != 0 || colon == to ||
	    s->text[colon] != ':') {
		source_error(s, at, "the target is hale:N, where N is the number of a device");
		return;
	}
	at = clause_blank(s, colon + 1, to);
	o->device = text_cut(s->text + at, to - at);
	number = strtol(o->device, &rest, 0);
	if (!*o->device)
		source_error(s, colon, "the number of the device is missing: target(hale:0)");
	else if (!*rest && (number < 0 || number > 1023))
		source_error(s, at, "devices have numbers from 0 to 1023, and not %s", o->device);
}

struct halecc_part *offload_part_new(struct unit *u, struct halecc_offload *o, unsigned at)
{
	if (o->parts == OFFLOAD_PARTS_MAX) {
		source_error(u->src, at, "more than %d variables in one offloaded statement",
			     OFFLOAD_PARTS_MAX);
		o->parts--;
	}
	o->part[o->parts].at = at;
	return &o->part[o->parts++];
}

/* "A", "A[low:length]" */
static void part_parse(struct unit *u, struct halecc_offload *o, unsigned from, unsigned to,
		       int how)
{
	struct source *s = u->src;
	unsigned at = clause_blank(s, from, to), name = clause_word_end(s, at, to),
		 open = clause_blank(s, name, to);
	unsigned close, colon, depth = 0;
	struct halecc_part *p = offload_part_new(u, o, at);

	p->how = how;
	p->named = true;
	p->name = text_cut(s->text + at, name - at);
	if (!*p->name || isdigit((unsigned char)*p->name)) {
		source_error(s, at < to ? at : from, "the name of a variable is missing here");
		p->name = "";
		return;
	}
	if (open == to)
		return;
	close = s->text[open] == '[' ? clause_closing(s, open + 1, to) : 0;
	for (colon = open + 1; colon < close; colon++) {
		depth += strchr("([{", s->text[colon]) != NULL;
		depth -= strchr(")]}", s->text[colon]) != NULL;
		if (!depth && s->text[colon] == ':')
			break;
	}
	if (!close || colon >= close || clause_blank(s, close + 1, to) != to) {
		source_error(s, open, "an extent is one [low:length], as in %s[0:n]", p->name);
		return;
	}
	p->low = text_cut(s->text + open + 1, colon - open - 1);
	p->length = text_cut(s->text + colon + 1, close - colon - 1);
	if (!*p->low || !*p->length)
		source_error(s, open, "the extent of '%s' is [low:length], both given", p->name);
}

static void list_parse(struct unit *u, struct halecc_offload *o, unsigned from, unsigned to,
		       int how)
{
	while (from < to) {
		unsigned end = clause_element_end(u->src, from, to);

		part_parse(u, o, from, end, how);
		from = end + 1;
	}
}

void offload_parse(struct unit *u, struct halecc_offload *o)
{
	struct source *s = u->src;
	unsigned at = clause_blank(s, o->words, o->end);

	while (at < o->end) {
		unsigned end = clause_word_end(s, at, o->end), open = clause_blank(s, end, o->end),
			 close;
		const char *word = text_cut(s->text + at, end - at);
		int how = strcmp(word, "in") == 0	? PART_IN
			  : strcmp(word, "out") == 0	? PART_OUT
			  : strcmp(word, "inout") == 0	? PART_IN | PART_OUT
			  : strcmp(word, "target") == 0 ? 0
							: -1;

		if (how < 0) {
			source_error(s, at,
				     "'%s' is unknown here; known are target(hale:N), in(…), "
				     "out(…), inout(…)",
				     *word ? word : text_cut(s->text + at, 1));
			return;
		}
		close =
		    open < o->end && s->text[open] == '(' ? clause_closing(s, open + 1, o->end) : 0;
		if (!close) {
			source_error(s, at, "%s wants a list in parentheses", word);
			return;
		}
		if (how)
			list_parse(u, o, open + 1, close, how);
		else
			target_parse(u, o, open + 1, close);
		at = clause_blank(s, close + 1, o->end);
	}
	if (!o->device && !s->errors)
		source_error(s, o->at, "the device is missing: target(hale:N)");
}
