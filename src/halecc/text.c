/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "halecc/halecc.h"

void *text_memory(size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);

	if (!p) {
		log_warn("halecc: no memory");
		exit(1);
	}
	return p;
}

void text_add_bytes(struct text *t, const char *s, size_t len)
{
	if (t->len + len + 1 > t->cap) {
		size_t cap = (t->len + len + 1) * 2;
		char *more = text_memory(cap);
		if (t->len)
			memcpy(more, t->s, t->len);
		free(t->s);
		t->s = more;
		t->cap = cap;
	}
	memcpy(t->s + t->len, s, len);
	t->len += len;
	t->s[t->len] = '\0';
}

static void text_vadd(struct text *t, const char *fmt, va_list ap)
{
	va_list again;
	int len;
	char *s;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	s = text_memory((size_t)len + 1);
	vsnprintf(s, (size_t)len + 1, fmt, ap);
	text_add_bytes(t, s, (size_t)len);
	free(s);
}

void text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	text_vadd(t, fmt, ap);
	va_end(ap);
}

char *text_format(const char *fmt, ...)
{
	struct text t = {0};
	va_list ap;

	va_start(ap, fmt);
	text_vadd(&t, fmt, ap);
	va_end(ap);
	return t.s;
}

char *text_cut(const char *from, size_t len)
{
	char *out = text_memory(len + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = from[i];
		if (c == '\\' && i + 1 < len && (from[i + 1] == '\n' || from[i + 1] == '\r'))
			continue;
		if (isspace((unsigned char)c)) {
			if (n && out[n - 1] != ' ')
				out[n++] = ' ';
			continue;
		}
		out[n++] = c;
	}
	if (n && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
	return out;
}

bool source_read(struct source *s, const char *path)
{
	FILE *f = fopen(path, "rb");
	struct text t = {0};
	char block[65536];
	size_t n;

	s->path = path;
	if (!f)
		return false;
	text_add_bytes(&t, "", 0);
	while ((n = fread(block, 1, sizeof block, f)) > 0)
		text_add_bytes(&t, block, n);
	if (ferror(f)) {
		fclose(f);
		return false;
	}
	fclose(f);
	s->text = t.s;
	s->len = t.len;
	return true;
}

unsigned source_line(const struct source *s, size_t offset)
{
	unsigned line = 1;

	for (size_t i = 0; i < offset && i < s->len; i++)
		line += s->text[i] == '\n';
	return line;
}

static void complain(struct source *s, size_t offset, const char *kind, const char *fmt, va_list ap)
{
	struct text t = {0};
	size_t begin = offset, end = offset;

	while (begin > 0 && s->text[begin - 1] != '\n')
		begin--;
	while (end < s->len && s->text[end] != '\n')
		end++;
	text_add(&t, "%s:%u:%zu: %s: ", s->path, source_line(s, offset), offset - begin + 1, kind);
	text_vadd(&t, fmt, ap);
	text_add(&t, "\n%.*s\n", (int)(end - begin), s->text + begin);
	for (size_t i = begin; i < offset; i++)
		text_add(&t, "%c", s->text[i] == '\t' ? '\t' : ' ');
	text_add(&t, "^\n");
	fwrite(t.s, 1, t.len, stderr);
	free(t.s);
}

void source_error(struct source *s, size_t offset, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(s, offset, "error", fmt, ap);
	va_end(ap);
	s->errors++;
}

void source_warn(struct source *s, size_t offset, const char *fmt, ...)
{
	va_list ap;

	s->warnings++;
	if (s->quiet)
		return;
	va_start(ap, fmt);
	complain(s, offset, "warning", fmt, ap);
	va_end(ap);
}
