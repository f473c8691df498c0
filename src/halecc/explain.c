/* SPDX-License-Identifier: BSD-3-Clause */
/* --explain: the table of the seed's Table 4.1, with lines and last uses. */
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

static void row_print(struct unit *u, struct chain *c, const struct halecc_region *r,
		      const struct method *m, bool left_out)
{
	const struct guarded *v = chain_var(c, m->decl);
	const struct access *last;
	struct text recover = {0};

	for (int n = 0; n <= r->node && !left_out; n++)
		for (int k = 0; k < c->node[n].regions; k++) {
			const struct halecc_region *from = &u->region[c->node[n].region[k]];
			for (int i = 0; i < from->recovers && (n < r->node || from == r); i++)
				if (clang_equalCursors(from->recover[i].decl, m->decl))
					text_add(&recover, "%s%s", recover.len ? ", " : "",
						 from->recover[i].text);
		}
	if (v && v->copied && m->reference && !left_out)
		text_add(&recover, "%sits copy", recover.len ? ", " : "");
	if (v && v->producer >= 0 && !left_out)
		text_add(&recover, "%sregion %d", recover.len ? ", " : "",
			 u->region[c->node[v->producer].region[0]].number);
	last = access_last(u, m->decl, 0, c->outer, ACCESS_READ | ACCESS_ESCAPE);
	printf("%-6d  %-5u  %-12s  %-28s  %-40s  line %u\n", r->number, r->line, m->var,
	       left_out ? "(in a later region)" : m->text,
	       left_out	     ? ""
	       : recover.len ? recover.s
			     : "none: the program ends",
	       last ? source_line(u->src, last->at) : r->line);
}

void explain_unit(struct unit *u)
{
	static const char *const hows[] = {"", "CR", "Redundancy"};

	printf("%s: %d regions in %d chains\n", u->src->path, u->regions, u->chains);
	printf("%-6s  %-5s  %-12s  %-28s  %-40s  %s\n", "region", "line", "variable", "check",
	       "recover", "last use");
	for (int i = 0; i < u->regions; i++) {
		struct halecc_region *r = &u->region[i];
		struct chain *c = &u->chain[r->chain];
		if (!r->bound)
			continue;
		for (int k = 0; k < r->checks; k++)
			row_print(u, c, r, &r->check[k], r->from_check & 1u << k);
		if (!r->checks)
			printf("%-6d  %-5u  -\n", r->number, r->line);
		if (r->how != PLAIN || r->comm)
			printf("%-6d  %-5u  runs with %s%s%s\n", r->number, r->line, hows[r->how],
			       r->how != PLAIN && r->comm ? ", " : "", r->comm ? "Comm" : "");
	}
}
