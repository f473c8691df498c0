/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a file of rules, one after the other (scan.c), for the parser. */
#ifndef HALE_RULES_SCAN_H
#define HALE_RULES_SCAN_H

#include "rules/private.h"

typedef enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_TEXT, TOKEN_MARK, TOKEN_BAD } token_kind_t;

struct scan_parser {
	const char *name; /* of the file */
	const char *at, *end;
	int line; /* of the token */
	int next_line;
	token_kind_t kind;
	char text[RULES_TEXT_MAX]; /* of the token */
	struct rules *rules;
	struct error *err;
	bool failed;
};

/* Always false, so that `return scan_fail(…)` reads well. Only the first is kept. */
bool scan_fail(struct scan_parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The next token. */
void scan_next(struct scan_parser *p);
bool scan_at_word(const struct scan_parser *p, const char *word);
bool scan_at_mark(const struct scan_parser *p, const char *mark);
/* Is it that word? Then the next one. */
bool scan_take(struct scan_parser *p, const char *word);
/* It must be. */
bool scan_need(struct scan_parser *p, const char *word);

#endif
