/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences for people, on stderr: "hale: …\n", one write(2) each, so lines never mix.
 * HALE_LOG=quiet|warn|info|debug (default warn; `hale run --verbose` sets info). */
#ifndef HALE_BASE_LOG_H
#define HALE_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum { LOG_LINE = 1024 }; /* bytes of a line at most, with its newline */

typedef enum log_level { LOG_QUIET = 0, LOG_WARN, LOG_INFO, LOG_DEBUG } log_level_t;

void log_init_from_env(void);
void log_set_level(log_level_t level);
log_level_t log_level(void);

/* Takes a whole line, with its newline, and returns true; false: it goes to stderr. As signal-safe
 * as log_at. NULL: all lines go to stderr, as at first. */
typedef bool (*log_sink_t)(const char *line, size_t len);
void log_set_sink(log_sink_t sink);

/* A line, with its newline, that another process has made: to stderr as it is. */
void log_pass(const char *line, size_t len);

/* Prefix put after "hale: ", "rank 3: " for instance; copied, at most 31 bytes. */
void log_set_prefix(const char *prefix);

/* Async-signal-safe as long as fmt uses only integers, %p, %c and %s. */
void log_at(log_level_t level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
