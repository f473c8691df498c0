/* SPDX-License-Identifier: BSD-3-Clause */
/* What each kind of monitor is made of. A new one is two functions and a line in kind.c. */
#ifndef HALE_MONITOR_KIND_H
#define HALE_MONITOR_KIND_H

#include <stdarg.h>
#include <stddef.h>
#include "monitor/monitor.h"

/* ---- judges: in the owner's process, no I/O ---- */

struct judge {
	const struct monitor_kind *kind;
	const struct monitor_options *options;
	const char *node;
	double now; /* clock_seconds() when the reading came */
	monitor_publish_fn *publish;
	void *publish_arg;
	void *state; /* kind->state_size bytes, zero at first */
};

/* Publishes with the kind's namespace and the judge's node. */
void judge_publish(const struct judge *j, const char *name, monitor_severity_t severity,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Cuts the next word off *rest: without blanks around; a word in double quotes may have blanks
 * inside. NULL at the end. */
char *line_word(char **rest);
/* The rest without blanks before it; never NULL. */
char *line_rest(char *rest);
bool line_number(const char *word, double *value);
bool line_count(const char *word, uint64_t *value);

/* A line of which the judge does not know the first word, or what belongs to it. */
hale_status_t line_unknown(const char *word, const char *known, struct error *err);

/* ---- readers: in a process of their own, may block ---- */

struct reader {
	const struct monitor_options *options;
	double every;
	int fd;
	bool once;
	size_t len;
	char text[1 << 16];
};

/* A line of the reading. */
void reader_line(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The reading is whole: it goes to the judge. Ends the process when nobody listens any more, or
 * once was asked for. */
void reader_end(struct reader *r);
/* The sensor can't be read, for this reason; what was said of this reading is dropped. */
void reader_lost(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sleeps until the next look is due, or fd (-1: none) is readable: true then. */
bool reader_wait(struct reader *r, int fd);
/* Loads a shared library; what is asked for by name must be in it. NULL when it is not there. */
void *reader_library(const char *file);
void *reader_symbol(void *library, const char *name, bool *all);

/* A text file or /dev/kmsg that grows: lines that were not there when it was opened. */
struct tail {
	int fd;	      /* -1: can't be read */
	bool records; /* one read is one record: /dev/kmsg */
	const char *path;
	uint64_t inode;
	size_t len;
	char text[8192];
};

void tail_open(struct tail *t, const char *path, bool from_start);
/* The next line, cut out of t and without its end; NULL when there is none for now. */
char *tail_next(struct tail *t);
void tail_close(struct tail *t);
/* A descriptor to wait for, or -1 where only looking helps. */
int tail_fd(const struct tail *t);

/* The new lines of a log, each behind the word `as`; of /dev/kmsg only the text. */
void reader_log(struct reader *r, struct tail *t, const char *as);

/* Reads a small file; false when that can't be done. text is a string afterwards. */
bool reader_file(const char *folder, const char *name, char *text, size_t cap);

struct monitor_kind {
	/* all are mandatory but fini */
	const char *name, *space;
	double every; /* seconds, when options say nothing */
	size_t state_size;
	/* A line of a reading, which it may write in. HALE_ERR_ARGUMENT when it is none. */
	hale_status_t (*line)(struct judge *j, char *line, struct error *err);
	/* The reading is whole. */
	void (*end)(struct judge *j);
	/* Frees what the state points to. May be NULL. */
	void (*fini)(struct judge *j);
	/* The reader. Returns when the sensor is gone or never was: then it is started again later.
	 */
	void (*read)(struct reader *r);
};

extern const struct monitor_kind monitor_ipmi, monitor_ib, monitor_memory, monitor_load;

const struct monitor_kind *monitor_kind_find(const char *name);
const struct monitor_kind *monitor_kind_at(size_t i); /* NULL: there are fewer */

/* The readers. */
void monitor_ipmi_read(struct reader *r);
void monitor_ib_read(struct reader *r);
void monitor_memory_read(struct reader *r);
void monitor_load_read(struct reader *r);
/* The one that reads a file in place of any sensor. */
void monitor_file_read(struct reader *r);

#endif
