/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/json.h"

enum { DEPTH_MAX = 32 };

/* ---- out ---- */

void json_out_init(struct json_out *j)
{
	*j = (struct json_out){.cap = 256, .text = malloc(256)};
	if (!j->text)
		abort();
	j->text[0] = 0;
}

void json_out_fini(struct json_out *j)
{
	free(j->text);
	*j = (struct json_out){0};
}

static void put(struct json_out *j, const char *s, size_t n)
{
	if (j->len + n + 1 > j->cap) {
		while (j->len + n + 1 > j->cap)
			j->cap *= 2;
		j->text = realloc(j->text, j->cap);
		if (!j->text)
			abort();
	}
	memcpy(j->text + j->len, s, n);
	j->len += n;
	j->text[j->len] = 0;
}

/* Length of the well-formed UTF-8 sequence at s (n bytes are left), 0 if it isn't one. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (len <= 1)
		return len;
	if (len > n || s[0] > 0xf4)
		return 0;
	uint32_t c = s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	bool surrogate = c >= 0xd800 && c <= 0xdfff;
	return c < least[len] || surrogate || c > 0x10ffff ? 0 : len;
}

/* File names and output may hold any bytes; what isn't UTF-8 becomes U+FFFD. */
static void put_quoted(struct json_out *j, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text);
	put(j, "\"", 1);
	while (left) {
		char esc[8];
		size_t n = utf8_length(s, left);
		if (!n) {
			put(j, "\\ufffd", 6);
			n = 1;
		} else if (*s == '"' || *s == '\\') {
			put(j, (char[]){'\\', (char)*s}, 2);
		} else if (*s == '\n') {
			put(j, "\\n", 2);
		} else if (*s == '\t') {
			put(j, "\\t", 2);
		} else if (*s < 0x20) {
			put(j, esc, (size_t)snprintf(esc, sizeof(esc), "\\u%04x", *s));
		} else {
			put(j, (const char *)s, n);
		}
		s += n;
		left -= n;
	}
	put(j, "\"", 1);
}

static void begin_value(struct json_out *j, const char *key)
{
	if (j->comma)
		put(j, ",", 1);
	j->comma = true;
	if (key) {
		put_quoted(j, key);
		put(j, ":", 1);
	}
}

static void open_with(struct json_out *j, const char *key, const char *bracket)
{
	begin_value(j, key);
	put(j, bracket, 1);
	j->comma = false;
}

static void close_with(struct json_out *j, const char *bracket)
{
	put(j, bracket, 1);
	j->comma = true;
}

void json_open_object(struct json_out *j, const char *key)
{
	open_with(j, key, "{");
}

void json_close_object(struct json_out *j)
{
	close_with(j, "}");
}

void json_open_array(struct json_out *j, const char *key)
{
	open_with(j, key, "[");
}

void json_close_array(struct json_out *j)
{
	close_with(j, "]");
}

void json_string(struct json_out *j, const char *key, const char *value)
{
	begin_value(j, key);
	if (value)
		put_quoted(j, value);
	else
		put(j, "null", 4);
}

void json_int(struct json_out *j, const char *key, int64_t value)
{
	char text[32];
	begin_value(j, key);
	put(j, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, value));
}

void json_uint(struct json_out *j, const char *key, uint64_t value)
{
	char text[32];
	begin_value(j, key);
	put(j, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, value));
}

void json_double(struct json_out *j, const char *key, double value)
{
	char text[40];
	begin_value(j, key);
	if (!isfinite(value)) {
		put(j, "null", 4);
		return;
	}
	size_t n = (size_t)snprintf(text, sizeof(text), "%.17g", value);
	/* the shortest text that reads back as the same number */
	for (int digits = 6; digits < 17; digits += 3) {
		char shorter[40];
		size_t m = (size_t)snprintf(shorter, sizeof(shorter), "%.*g", digits, value);
		if (strtod(shorter, NULL) == value) {
			memcpy(text, shorter, m + 1);
			n = m;
			break;
		}
	}
	for (char *c = text; *c; c++)
		if (*c == ',') /* a locale's decimal point */
			*c = '.';
	put(j, text, n);
}

void json_bool(struct json_out *j, const char *key, bool value)
{
	begin_value(j, key);
	put(j, value ? "true" : "false", value ? 4 : 5);
}

/* ---- in ---- */

enum kind { KIND_NULL, KIND_BOOL, KIND_NUMBER, KIND_STRING, KIND_ARRAY, KIND_OBJECT };

struct json_value {
	enum kind kind;
	bool truth;
	bool whole; /* a number without fraction or exponent that fits int64_t: integer is exact */
	int64_t integer;
	double number;
	char *key;  /* when it is a member of an object */
	char *text; /* of a string */
	struct json_value *first, *last, *next;
	size_t count;
};

struct json_reader {
	const char *at, *end;
	int depth;
};

static struct json_value *read_value(struct json_reader *r);

static void skip_space(struct json_reader *r)
{
	while (r->at < r->end &&
	       (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

static bool take(struct json_reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static bool read_hex4(struct json_reader *r, uint32_t *value)
{
	uint32_t v = 0;
	if (r->end - r->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		char c = *r->at++;
		uint32_t d;
		if (c >= '0' && c <= '9')
			d = (uint32_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			d = (uint32_t)((c | 32) - 'a' + 10);
		else
			return false;
		v = v << 4 | d;
	}
	*value = v;
	return true;
}

static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(lead[n] | c);
	return n;
}

/* Behind a backslash; writes at most 4 bytes. 0: malformed. NUL is refused: texts are C strings. */
static size_t read_escape(struct json_reader *r, char *to)
{
	static const char from[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	if (r->at == r->end)
		return 0;
	char c = *r->at++;
	if (c != 'u') {
		const char *p = c ? strchr(from, c) : NULL;
		if (!p)
			return 0;
		*to = meant[p - from];
		return 1;
	}
	uint32_t u, low;
	if (!read_hex4(r, &u) || u == 0 || (u >= 0xdc00 && u <= 0xdfff))
		return 0;
	if (u >= 0xd800 && u <= 0xdbff) {
		if (!take(r, '\\') || !take(r, 'u') || !read_hex4(r, &low) || low < 0xdc00 ||
		    low > 0xdfff)
			return 0;
		u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
	}
	return put_utf8(to, u);
}

/* The text between quotes, malloc'ed; NULL: malformed. */
static char *read_string(struct json_reader *r)
{
	if (!take(r, '"'))
		return NULL;
	const char *close = r->at;
	while (close < r->end && *close != '"')
		close += *close == '\\' ? 2 : 1;
	if (close >= r->end)
		return NULL;
	char *text = malloc((size_t)(close - r->at) + 1);
	if (!text)
		return NULL;
	size_t n = 0;
	while (r->at < close) {
		unsigned char c = (unsigned char)*r->at;
		size_t len;
		if (c == '\\') {
			r->at++;
			len = read_escape(r, text + n);
		} else {
			len = c < 0x20 ? 0
				       : utf8_length((const unsigned char *)r->at,
						     (size_t)(close - r->at));
			memcpy(text + n, r->at, len);
			r->at += len;
		}
		if (!len) {
			free(text);
			return NULL;
		}
		n += len;
	}
	r->at = close + 1;
	text[n] = 0;
	return text;
}

static bool skip_digits(struct json_reader *r)
{
	const char *start = r->at;
	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return r->at > start;
}

static bool read_number(struct json_reader *r, struct json_value *v)
{
	const char *start = r->at;
	bool whole = true;
	take(r, '-');
	if (!take(r, '0') && !skip_digits(r))
		return false;
	if (take(r, '.')) {
		whole = false;
		if (!skip_digits(r))
			return false;
	}
	if (r->at < r->end && (*r->at | 32) == 'e') {
		whole = false;
		r->at++;
		if (!take(r, '+'))
			take(r, '-');
		if (!skip_digits(r))
			return false;
	}
	char text[400];
	size_t n = (size_t)(r->at - start);
	if (n >= sizeof(text))
		return false;
	memcpy(text, start, n);
	text[n] = 0;
	v->kind = KIND_NUMBER;
	v->number = strtod(text, NULL);
	if (whole && fabs(v->number) <= 9.3e18) {
		char *end;
		errno = 0;
		v->integer = strtoll(text, &end, 10);
		v->whole = errno == 0;
	}
	return isfinite(v->number);
}

static bool read_word(struct json_reader *r, const char *word)
{
	size_t n = strlen(word);
	if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n))
		return false;
	r->at += n;
	return true;
}

static void append(struct json_value *parent, struct json_value *child)
{
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->count++;
}

/* What stands between the brackets of an array or object, up to and with the closing one. */
static bool read_members(struct json_reader *r, struct json_value *v, char close)
{
	skip_space(r);
	if (take(r, close))
		return true;
	do {
		char *key = NULL;
		skip_space(r);
		if (v->kind == KIND_OBJECT) {
			key = read_string(r);
			if (!key)
				return false;
			skip_space(r);
			if (!take(r, ':')) {
				free(key);
				return false;
			}
		}
		struct json_value *child = read_value(r);
		if (!child) {
			free(key);
			return false;
		}
		child->key = key;
		append(v, child);
		skip_space(r);
	} while (take(r, ','));
	return take(r, close);
}

static bool read_into(struct json_reader *r, struct json_value *v)
{
	switch (r->at < r->end ? *r->at : 0) {
	case '{':
	case '[':
		v->kind = *r->at == '{' ? KIND_OBJECT : KIND_ARRAY;
		if (r->depth == DEPTH_MAX)
			return false;
		r->at++;
		r->depth++;
		if (!read_members(r, v, v->kind == KIND_OBJECT ? '}' : ']'))
			return false;
		r->depth--;
		return true;
	case '"':
		v->kind = KIND_STRING;
		v->text = read_string(r);
		return v->text != NULL;
	case 't':
		v->kind = KIND_BOOL;
		v->truth = true;
		return read_word(r, "true");
	case 'f':
		v->kind = KIND_BOOL;
		return read_word(r, "false");
	case 'n':
		return read_word(r, "null");
	default:
		return read_number(r, v);
	}
}

static struct json_value *read_value(struct json_reader *r)
{
	skip_space(r);
	struct json_value *v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	if (!read_into(r, v)) {
		json_free(v);
		return NULL;
	}
	return v;
}

struct json_value *json_parse(const char *text, size_t len)
{
	struct json_reader r = {.at = text, .end = text + len};
	struct json_value *v = read_value(&r);
	skip_space(&r);
	if (v && r.at != r.end) {
		json_free(v);
		return NULL;
	}
	return v;
}

void json_free(struct json_value *doc)
{
	while (doc) {
		struct json_value *next = doc->next;
		json_free(doc->first);
		free(doc->key);
		free(doc->text);
		free(doc);
		doc = next;
	}
}

const struct json_value *json_get(const struct json_value *object, const char *key)
{
	if (!object || object->kind != KIND_OBJECT)
		return NULL;
	for (const struct json_value *v = object->first; v; v = v->next)
		if (!strcmp(v->key, key))
			return v;
	return NULL;
}

const struct json_value *json_at(const struct json_value *array, size_t i)
{
	if (!array || (array->kind != KIND_ARRAY && array->kind != KIND_OBJECT))
		return NULL;
	const struct json_value *v = array->first;
	while (v && i--)
		v = v->next;
	return v;
}

size_t json_count(const struct json_value *v)
{
	return v ? v->count : 0;
}

const char *json_text(const struct json_value *v, const char *fallback)
{
	return v && v->kind == KIND_STRING ? v->text : fallback;
}

int64_t json_number_int(const struct json_value *v, int64_t fallback)
{
	if (!v || v->kind != KIND_NUMBER)
		return fallback;
	if (v->whole)
		return v->integer;
	if (fabs(v->number) < 9.2e18 && v->number == (double)(int64_t)v->number)
		return (int64_t)v->number;
	return fallback;
}

double json_number(const struct json_value *v, double fallback)
{
	return v && v->kind == KIND_NUMBER ? v->number : fallback;
}

bool json_truth(const struct json_value *v, bool fallback)
{
	return v && v->kind == KIND_BOOL ? v->truth : fallback;
}
