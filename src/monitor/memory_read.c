/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of EDAC (sysfs), rasdaemon (its SQLite file) and GPUs (NVML); the kernel's log; mcelog.
 * None of them needs to be there. */
#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/base.h"
#include "monitor/kind.h"

/* ---- EDAC ---- */

static bool counter_file(const char *folder, const char *name, uint64_t *value)
{
	char text[32];

	if (!reader_file(folder, name, text, sizeof(text)))
		return false;
	text[strcspn(text, "\n")] = 0;
	return line_count(text, value);
}

/* A DIMM where the driver counts by DIMM: its label names what to replace. */
static bool dimm_look(struct reader *r, const char *folder)
{
	uint64_t corrected, uncorrected;
	char label[64];

	if (!counter_file(folder, "dimm_ce_count", &corrected) ||
	    !counter_file(folder, "dimm_ue_count", &uncorrected))
		return false;
	if (!reader_file(folder, "dimm_label", label, sizeof(label)) || *label == '\n')
		snprintf(label, sizeof(label), "%.63s", strrchr(folder, '/') + 1);
	label[strcspn(label, "\"\n")] = 0;
	reader_line(r, "count edac \"%s\" %llu %llu", label, (unsigned long long)corrected,
		    (unsigned long long)uncorrected);
	return true;
}

static void controller_look(struct reader *r, const char *folder, const char *name)
{
	uint64_t corrected, uncorrected;
	DIR *d = opendir(folder);
	struct dirent *e;
	bool dimms = false;

	while (d && (e = readdir(d))) {
		char dimm[4096];

		if (strncmp(e->d_name, "dimm", 4) != 0 && strncmp(e->d_name, "rank", 4) != 0)
			continue;
		snprintf(dimm, sizeof(dimm), "%.3500s/%s", folder, e->d_name);
		dimms |= dimm_look(r, dimm);
	}
	if (d)
		closedir(d);
	if (!dimms && counter_file(folder, "ce_count", &corrected) &&
	    counter_file(folder, "ue_count", &uncorrected))
		reader_line(r, "count edac %s %llu %llu", name, (unsigned long long)corrected,
			    (unsigned long long)uncorrected);
}

static void edac_look(struct reader *r)
{
	const char *base = r->options->edac ? r->options->edac : "/sys/devices/system/edac";
	char folder[4096];
	struct dirent *e;
	DIR *d;

	snprintf(folder, sizeof(folder), "%.3000s/mc", base);
	d = opendir(folder);
	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, "mc", 2) != 0)
			continue;
		snprintf(folder, sizeof(folder), "%.3000s/mc/%s", base, e->d_name);
		controller_look(r, folder, e->d_name);
	}
	if (d)
		closedir(d);
}

/* ---- rasdaemon ---- */

#define SQLITE_FUNCTIONS(X)                                                                        \
	X(sqlite3_open_v2)                                                                         \
	X(sqlite3_prepare_v2)                                                                      \
	X(sqlite3_step)                                                                            \
	X(sqlite3_column_text)                                                                     \
	X(sqlite3_column_int64)                                                                    \
	X(sqlite3_finalize)                                                                        \
	X(sqlite3_close)

struct records {
#define X(name) __typeof__ (&(name))(name);
	SQLITE_FUNCTIONS(X)
#undef X
	bool loaded, tried;
	struct timespec changed; /* the file, when it was last read */
};

static bool records_load(struct records *m)
{
	if (!m->tried) {
		void *lib = reader_library("libsqlite3.so.0");
		m->tried = true;
		m->loaded = lib;
#define X(name) m->name = reader_symbol(lib, #name, &m->loaded);
		SQLITE_FUNCTIONS(X)
#undef X
	}
	return m->loaded;
}

static void records_query(struct reader *r, struct records *m, const char *path)
{
	static const char query[] =
	    "SELECT coalesce(nullif(label, ''), 'mc' || mc),"
	    " sum(CASE WHEN err_type = 'Corrected' THEN err_count ELSE 0 END),"
	    " sum(CASE WHEN err_type = 'Corrected' THEN 0 ELSE err_count END)"
	    " FROM mc_event GROUP BY 1";
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;

	if (m->sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
	    m->sqlite3_prepare_v2(db, query, -1, &s, NULL) == SQLITE_OK)
		while (m->sqlite3_step(s) == SQLITE_ROW)
			reader_line(r, "count rasdaemon \"%.63s\" %lld %lld",
				    (const char *)m->sqlite3_column_text(s, 0),
				    (long long)m->sqlite3_column_int64(s, 1),
				    (long long)m->sqlite3_column_int64(s, 2));
	m->sqlite3_finalize(s);
	m->sqlite3_close(db);
}

static void records_look(struct reader *r, struct records *m)
{
	const char *path =
	    r->options->rasdaemon ? r->options->rasdaemon : "/var/lib/rasdaemon/ras-mc_event.db";
	struct stat st;

	if (stat(path, &st) != 0 || !records_load(m) ||
	    !memcmp(&st.st_mtim, &m->changed, sizeof(m->changed)))
		return;
	m->changed = st.st_mtim;
	records_query(r, m, path);
}

/* ---- GPUs ---- */

/* NVML's interface, as far as it is used here; its header is not among Debian's free packages. */
struct gpus {
	int (*init)(void);
	int (*count)(unsigned *n);
	int (*handle)(unsigned i, void **device);
	int (*ecc)(void *device, int type, int counter, unsigned long long *n);
	bool there;
};

static void gpus_open(struct gpus *g)
{
	void *lib = reader_library("libnvidia-ml.so.1");
	bool all = lib;

	*(void **)&g->init = reader_symbol(lib, "nvmlInit_v2", &all);
	*(void **)&g->count = reader_symbol(lib, "nvmlDeviceGetCount_v2", &all);
	*(void **)&g->handle = reader_symbol(lib, "nvmlDeviceGetHandleByIndex_v2", &all);
	*(void **)&g->ecc = reader_symbol(lib, "nvmlDeviceGetTotalEccErrors", &all);
	g->there = all && g->init() == 0;
}

static void gpus_look(struct reader *r, struct gpus *g)
{
	enum { CORRECTED = 0, UNCORRECTED = 1, VOLATILE = 0 };
	unsigned n = 0;

	if (!g->there || g->count(&n) != 0)
		return;
	for (unsigned i = 0; i < n; i++) {
		unsigned long long corrected, uncorrected;
		void *device;

		if (g->handle(i, &device) == 0 &&
		    g->ecc(device, CORRECTED, VOLATILE, &corrected) == 0 &&
		    g->ecc(device, UNCORRECTED, VOLATILE, &uncorrected) == 0)
			reader_line(r, "count nvml gpu%u %llu %llu", i, corrected, uncorrected);
	}
}

void monitor_memory_read(struct reader *r)
{
	static struct records records;
	static struct tail kernel, mcelog;
	struct gpus gpus = {0};

	tail_open(&kernel, r->options->kernel_log ? r->options->kernel_log : "/dev/kmsg", false);
	tail_open(&mcelog, r->options->mcelog ? r->options->mcelog : "/var/log/mcelog", false);
	if (!r->options->no_gpu)
		gpus_open(&gpus);
	for (;;) {
		edac_look(r);
		records_look(r, &records);
		gpus_look(r, &gpus);
		reader_log(r, &kernel, "kernel");
		reader_log(r, &mcelog, "mcelog");
		reader_end(r);
		reader_wait(r, tail_fd(&kernel));
	}
}
