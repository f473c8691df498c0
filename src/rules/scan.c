/* SPDX-License-Identifier: BSD-3-Clause */
#include "rules/scan.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/base.h"

bool scan_fail(struct scan_parser *p, const char *fmt, ...)
{
	char what[360];
	va_list ap;

	if (p->failed)
		return false;
	p->failed = true;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	error_set(p->err, HALE_ERR_ARGUMENT, "%s:%d: %s", p->name, p->line, what);
	return false;
}

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_.*?%/@+-", c));
}

static void skip_blanks(struct scan_parser *p)
{
	while (p->at < p->end) {
		if (*p->at == '#') {
			while (p->at < p->end && *p->at != '\n')
				p->at++;
		} else if (*p->at == '\n') {
			p->next_line++;
			p->at++;
		} else if (*p->at == ' ' || *p->at == '\t' || *p->at == '\r') {
			p->at++;
		} else {
			return;
		}
	}
}

static void scan_text(struct scan_parser *p)
{
	size_t n = 0;

	p->kind = TOKEN_TEXT;
	for (p->at++; p->at < p->end && *p->at != '"' && *p->at != '\n'; p->at++) {
		if (*p->at == '\\' && p->at + 1 < p->end && (p->at[1] == '"' || p->at[1] == '\\'))
			p->at++;
		if (!*p->at || n + 1 >= sizeof(p->text)) {
			p->kind = TOKEN_BAD;
			scan_fail(p, "a quoted text has at most %zu bytes, and none that is zero",
				  sizeof(p->text) - 1);
			return;
		}
		p->text[n++] = *p->at;
	}
	p->text[n] = 0;
	if (p->at >= p->end || *p->at != '"') {
		p->kind = TOKEN_BAD;
		scan_fail(p, "the quoted text is not closed on its line");
		return;
	}
	p->at++;
}

static void scan_word(struct scan_parser *p)
{
	size_t n = 0;

	p->kind = TOKEN_WORD;
	for (; p->at < p->end && word_char(*p->at); p->at++) {
		if (n + 1 >= RULES_WORD_MAX) {
			p->kind = TOKEN_BAD;
			scan_fail(p, "a word has at most %d characters", RULES_WORD_MAX - 1);
			return;
		}
		p->text[n++] = *p->at;
	}
	p->text[n] = 0;
}

void scan_next(struct scan_parser *p)
{
	if (p->failed) {
		p->kind = TOKEN_BAD;
		return;
	}
	skip_blanks(p);
	p->line = p->next_line;
	p->text[0] = 0;
	if (p->at >= p->end) {
		p->kind = TOKEN_END;
		snprintf(p->text, sizeof(p->text), "the end of the file");
	} else if (*p->at == '"') {
		scan_text(p);
	} else if (word_char(*p->at)) {
		scan_word(p);
	} else if (*p->at == ',' || *p->at == '>') {
		p->kind = TOKEN_MARK;
		p->text[0] = *p->at++;
		p->text[1] = 0;
		if (p->text[0] == '>' && p->at < p->end && *p->at == '=') {
			snprintf(p->text, sizeof(p->text), ">=");
			p->at++;
		}
	} else {
		unsigned char c = (unsigned char)*p->at;
		p->kind = TOKEN_BAD;
		if (isprint(c))
			scan_fail(p, "'%c' has no meaning here", c);
		else
			scan_fail(p, "a byte 0x%02x has no meaning here", c);
	}
}

bool scan_at_word(const struct scan_parser *p, const char *word)
{
	return p->kind == TOKEN_WORD && !strcmp(p->text, word);
}

bool scan_at_mark(const struct scan_parser *p, const char *mark)
{
	return p->kind == TOKEN_MARK && !strcmp(p->text, mark);
}

bool scan_take(struct scan_parser *p, const char *word)
{
	if (!scan_at_word(p, word))
		return false;
	scan_next(p);
	return true;
}

bool scan_need(struct scan_parser *p, const char *word)
{
	return scan_take(p, word) || scan_fail(p, "expected '%s' before '%.60s'", word, p->text);
}
