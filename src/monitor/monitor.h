/* SPDX-License-Identifier: BSD-3-Clause */
/* monitor/: what watches a node and publishes events: IPMI sensors, InfiniBand ports, memory
 * errors, load. (Seed 001, 3.3.3, 3.3.4, appendices A and B.)
 *
 *   sensor ─▶ reader (a child process)  ─ lines through a pipe ─▶  judge ─▶ events ─▶ publish
 *             waits, polls, may hang                              pure, remembers
 *
 * Whatever touches hardware or a vendor's library does so in a child process that writes readings
 * as text, so that a hung BMC or a crashed driver library never touches the owner, whose part is a
 * descriptor to wait for. The same text in a file takes the place of a sensor (docs/monitors.md has
 * the format). A judge compares a reading with the ones before and does no I/O.
 *
 * The libraries (libipmimonitoring, libibumad, libibmad, libibverbs, libsqlite3, NVML) are loaded
 * by the reader that needs them, if they are there; nothing else of Hale depends on them. Not
 * thread-safe. May call: base/. Called by: head/watch, cli/.
 */
#ifndef HALE_MONITOR_MONITOR_H
#define HALE_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

enum {
	MONITOR_NODE_MAX = 64, /* bytes with the NUL, as are the next */
	MONITOR_PAYLOAD_MAX = 368,
	MONITOR_LINE_MAX = 1024,
	MONITOR_PATHS_MAX = 16, /* file systems, processes */
};

typedef enum monitor_severity {
	MONITOR_INFO,
	MONITOR_WARNING,
	MONITOR_ERROR,
	MONITOR_FATAL
} monitor_severity_t;

const char *monitor_severity_name(monitor_severity_t severity);

struct monitor_event {
	double time;	   /* seconds since 1970 */
	const char *space; /* namespace, "FTB.FTB_IPMI" */
	const char *name;  /* "FTB_IPMI_FANFAIL" */
	monitor_severity_t severity;
	const char *node;    /* that the event is about */
	const char *payload; /* "" for none */
};

/* The strings live until it returns. It must not call the set. */
typedef void monitor_publish_fn(void *arg, const struct monitor_event *event);

/* Strings are borrowed and must outlive the set. A zero is the default in every field. */
struct monitor_options {
	const char *node; /* name of the node; default: this host's */
	const char *file; /* readings from there instead of the sensor */
	double every;	  /* seconds between two looks; default: the kind's own */
	/* ipmi */
	const char *bmc;	   /* HOST[:PORT]; NULL: this node's, in-band */
	const char *user;	   /* NULL: none */
	const char *password_file; /* its first line; NULL: none */
	bool critical_only; /* OVERTEMP from the critical threshold on, not the non-critical */
	/* memory */
	const char *edac;	/* default /sys/devices/system/edac */
	const char *rasdaemon;	/* default /var/lib/rasdaemon/ras-mc_event.db */
	const char *mcelog;	/* default /var/log/mcelog */
	const char *kernel_log; /* memory, load; default /dev/kmsg */
	bool no_gpu;
	/* load */
	const char *proc;		      /* default /proc */
	const char *disks[MONITOR_PATHS_MAX]; /* file systems that should not be full */
	int disk_count;
	int pids[MONITOR_PATHS_MAX]; /* processes that should not be stuck */
	int pid_count;
	double stuck_after; /* seconds; default 60 */
	double disk_min;    /* fraction that is to be free; default 0.05 */
	double pressure[3]; /* percent: cpu some, io full, memory full; 90, 50, 10 */
};

struct monitor_set;

hale_status_t monitor_set_create(monitor_publish_fn *publish, void *arg, struct monitor_set **set,
				 struct error *err);
/* Ends and reaps every reader; NULL is fine. */
void monitor_set_destroy(struct monitor_set *set);

/* Starts one monitor: "ipmi", "ib", "memory" or "load"; options are copied. A kind may be added
 * several times (a BMC for each node of a rack). HALE_ERR_ARGUMENT for an unknown kind,
 * HALE_ERR_SYSTEM when no process could be made. That the sensor can't be read is no error here but
 * an event. */
hale_status_t monitor_set_add(struct monitor_set *set, const char *kind,
			      const struct monitor_options *options, struct error *err);

/* One descriptor for an event loop, readable when monitor_set_work has something to do. It belongs
 * to the set. */
int monitor_set_fd(const struct monitor_set *set);
/* Takes what readers have written, publishes, starts readers again that have ended. Never blocks.
 */
void monitor_set_work(struct monitor_set *set);

/* Whether every monitor has given a reading, or has said that its sensor can't be read. */
bool monitor_set_ready(const struct monitor_set *set);
/* Whether all have ended for good: files that stand for sensors, read to their `end`. */
bool monitor_set_over(const struct monitor_set *set);

/* The process that reads for the i-th monitor, 0 while there is none; -1 beyond the last. */
int monitor_set_reader(const struct monitor_set *set, int i);

/* Runs the reader of a kind in this process and writes its readings to descriptor fd until that is
 * closed; once: one reading only. For `hale monitor --readings`. */
hale_status_t monitor_read(const char *kind, const struct monitor_options *options, int fd,
			   bool once, struct error *err);

#endif
