/* SPDX-License-Identifier: BSD-3-Clause */
/* printf into a buffer without malloc, locks or locale, for signal handlers and for the frozen
 * child of a fork, where vsnprintf isn't promised to work. */
#ifndef HALE_BASE_FMT_H
#define HALE_BASE_FMT_H

#include <stdarg.h>
#include <stddef.h>

/* Formats like vsnprintf: always NUL-terminates when cap > 0, returns the length that the whole
 * text would have. Knows d i u x X o c s p % and m (text of errno), flags "-0 +#", width and
 * precision (also *), and hh h l ll z j t. Floating point (f F e E g G) is handed to snprintf:
 * fine everywhere but in a signal handler. */
size_t fmt_vprint(char *buf, size_t cap, const char *fmt, va_list ap);
size_t fmt_print(char *buf, size_t cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
