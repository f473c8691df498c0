/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/fmt.h"

struct fmt_out {
	char *buf;
	size_t cap, len;
};

/* One conversion: %[flags][width][.precision][length]conv */
struct spec {
	bool left, zero, plus, space, alt;
	int width;
	int precision; /* -1: none given */
	int longs; /* 0 int, 1 long, 2 long long; -1 short, -2 char; size_t, intmax_t, ptrdiff_t: 1
		    */
	char conv;
};

static void put(struct fmt_out *o, char c)
{
	if (o->len + 1 < o->cap)
		o->buf[o->len] = c;
	o->len++;
}

static void put_many(struct fmt_out *o, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(o, s[i]);
}

static void pad(struct fmt_out *o, char c, long n)
{
	while (n-- > 0)
		put(o, c);
}

static const char *parse_number(const char *f, int *value, va_list *ap)
{
	if (*f == '*') {
		*value = va_arg(*ap, int);
		return f + 1;
	}
	int v = 0;
	while (*f >= '0' && *f <= '9') {
		if (v < 100000)
			v = v * 10 + (*f - '0');
		f++;
	}
	*value = v;
	return f;
}

static const char *parse_spec(const char *f, struct spec *s, va_list *ap)
{
	*s = (struct spec){.precision = -1};
	for (;; f++) {
		if (*f == '-')
			s->left = true;
		else if (*f == '0')
			s->zero = true;
		else if (*f == '+')
			s->plus = true;
		else if (*f == ' ')
			s->space = true;
		else if (*f == '#')
			s->alt = true;
		else
			break;
	}
	f = parse_number(f, &s->width, ap);
	if (s->width < 0) {
		s->left = true;
		s->width = -s->width;
	}
	if (*f == '.')
		f = parse_number(f + 1, &s->precision, ap);
	for (;; f++) {
		if (*f == 'l')
			s->longs++;
		else if (*f == 'h')
			s->longs--;
		else if (*f == 'z' || *f == 'j' || *f == 't')
			s->longs = 1;
		else
			break;
	}
	s->conv = *f;
	return *f ? f + 1 : f;
}

static void put_text(struct fmt_out *o, const struct spec *s, const char *text)
{
	if (!text)
		text = "(null)";
	size_t n = s->precision >= 0 ? strnlen(text, (size_t)s->precision) : strlen(text);
	if (!s->left)
		pad(o, ' ', s->width - (long)n);
	put_many(o, text, n);
	if (s->left)
		pad(o, ' ', s->width - (long)n);
}

static void put_number(struct fmt_out *o, const struct spec *s, uint64_t v, bool negative, int base,
		       const char *prefix)
{
	const char *digits = s->conv == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	char text[24];
	int n = 0;
	for (; v; v /= (unsigned)base)
		text[n++] = digits[v % (unsigned)base];
	int least = s->precision >= 0 ? s->precision : 1;
	int zeros = least > n ? least - n : 0;
	char sign = negative ? '-' : s->plus ? '+' : s->space ? ' ' : 0;
	long used = (long)strlen(prefix) + (sign ? 1 : 0) + zeros + n;
	if (s->zero && !s->left && s->precision < 0 && s->width > used) {
		zeros += (int)(s->width - used);
		used = s->width;
	}
	if (!s->left)
		pad(o, ' ', s->width - used);
	if (sign)
		put(o, sign);
	put_many(o, prefix, strlen(prefix));
	pad(o, '0', zeros);
	while (n)
		put(o, text[--n]);
	if (s->left)
		pad(o, ' ', s->width - used);
}

static void put_signed(struct fmt_out *o, const struct spec *s, va_list *ap)
{
	int64_t v = s->longs > 0 ? va_arg(*ap, long) : va_arg(*ap, int);
	if (s->longs == -1)
		v = (short)v;
	else if (s->longs <= -2)
		v = (signed char)v;
	put_number(o, s, v < 0 ? -(uint64_t)v : (uint64_t)v, v < 0, 10, "");
}

static void put_unsigned(struct fmt_out *o, const struct spec *s, va_list *ap)
{
	uint64_t v = s->longs > 0 ? va_arg(*ap, unsigned long) : va_arg(*ap, unsigned);
	if (s->longs == -1)
		v = (unsigned short)v;
	else if (s->longs <= -2)
		v = (unsigned char)v;
	struct spec t = *s;
	t.plus = t.space = false;
	int base = s->conv == 'u' ? 10 : s->conv == 'o' ? 8 : 16;
	const char *prefix = !s->alt || !v ? "" : base == 16 ? (s->conv == 'X' ? "0X" : "0x") : "";
	if (s->alt && base == 8)
		prefix = "0";
	put_number(o, &t, v, false, base, prefix);
}

static void put_double(struct fmt_out *o, const struct spec *s, double v)
{
	char f[16], text[400];
	size_t n = 0;
	f[n++] = '%';
	if (s->left)
		f[n++] = '-';
	if (s->zero)
		f[n++] = '0';
	if (s->plus)
		f[n++] = '+';
	if (s->space)
		f[n++] = ' ';
	if (s->alt)
		f[n++] = '#';
	f[n++] = '*';
	f[n++] = '.';
	f[n++] = '*';
	f[n++] = s->conv;
	f[n] = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	int len =
	    snprintf(text, sizeof(text), f, s->width, s->precision >= 0 ? s->precision : 6, v);
#pragma GCC diagnostic pop
	if (len > 0)
		put_many(o, text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1);
}

static void put_one(struct fmt_out *o, const struct spec *s, va_list *ap, int saved_errno)
{
	char c[2] = {0};
	switch (s->conv) {
	case 'd':
	case 'i':
		put_signed(o, s, ap);
		break;
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		put_unsigned(o, s, ap);
		break;
	case 'c':
		c[0] = (char)va_arg(*ap, int);
		put_text(o, s, c);
		break;
	case 's':
		put_text(o, s, va_arg(*ap, const char *));
		break;
	case 'm':
		put_text(o, s, strerrordesc_np(saved_errno));
		break;
	case 'p':
		put_number(o, s, (uintptr_t)va_arg(*ap, void *), false, 16, "0x");
		break;
	case 'f':
	case 'F':
	case 'e':
	case 'E':
	case 'g':
	case 'G':
		put_double(o, s, va_arg(*ap, double));
		break;
	default: /* '%' itself, or something unknown: shown as it is */
		put(o, s->conv);
	}
}

size_t fmt_vprint(char *buf, size_t cap, const char *fmt, va_list args)
{
	int saved_errno = errno;
	struct fmt_out o = {.buf = buf, .cap = cap};
	va_list ap;
	va_copy(ap, args);
	while (*fmt) {
		if (*fmt != '%') {
			put(&o, *fmt++);
			continue;
		}
		struct spec s;
		fmt = parse_spec(fmt + 1, &s, &ap);
		if (s.conv)
			put_one(&o, &s, &ap, saved_errno);
	}
	va_end(ap);
	if (cap)
		buf[o.len < cap ? o.len : cap - 1] = 0;
	errno = saved_errno;
	return o.len;
}

size_t fmt_print(char *buf, size_t cap, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	size_t n = fmt_vprint(buf, cap, fmt, ap);
	va_end(ap);
	return n;
}
