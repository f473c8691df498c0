/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cancel.h"
#include "base/fmt.h"
#include "base/log.h"

static log_level_t current = LOG_WARN;
static char prefix[32];
static log_sink_t sink;

void log_init_from_env(void)
{
	static const char *const names[] = {"quiet", "warn", "info", "debug"};
	const char *v = getenv("HALE_LOG");
	for (int i = 0; v && i < 4; i++)
		if (!strcmp(v, names[i]))
			current = (log_level_t)i;
}

void log_set_level(log_level_t level)
{
	current = level;
}

log_level_t log_level(void)
{
	return current;
}

void log_set_prefix(const char *text)
{
	fmt_print(prefix, sizeof(prefix), "%s", text);
}

void log_set_sink(log_sink_t to)
{
	sink = to;
}

/* A pipe that is full or a signal may cut a write short: the rest follows, or the line is lost. */
void log_pass(const char *text, size_t len)
{
	UNCANCELLED;

	while (len) {
		ssize_t n = write(STDERR_FILENO, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

void log_at(log_level_t level, const char *fmt, ...)
{
	if (level > current || level == LOG_QUIET)
		return;
	int saved_errno = errno;
	char line[LOG_LINE];
	size_t n = fmt_print(line, sizeof(line), "hale: %s", prefix);
	va_list ap;
	va_start(ap, fmt);
	errno = saved_errno;
	n += fmt_vprint(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	if (n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (!sink || !sink(line, n))
		log_pass(line, n);
	errno = saved_errno;
}
