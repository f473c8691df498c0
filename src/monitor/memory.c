/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of memory, processors and GPUs.
 *
 * Lines of a reading:
 *   count SOURCE UNIT CORRECTED UNCORRECTED   counters since boot, of edac, rasdaemon or nvml
 *   kernel TEXT                               a line of the kernel's log
 *   mcelog TEXT                               a line of mcelog's
 *
 * Several of them may tell of the same error. Counters win: where EDAC counts, the kernel's lines
 * about memory and rasdaemon's records are not counted again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "monitor/kind.h"

/* DIMMs, banks, GPUs: far above what a node has. */
enum { UNITS_MAX = 8192 };

struct memory_unit {
	char source[16], name[64];
	uint64_t corrected, uncorrected;
};

struct memory_state {
	struct memory_unit units[UNITS_MAX];
	int count;
	bool edac;	/* counts by itself */
	int mcelog_cpu; /* of the record whose lines are coming */
	int mcelog_bank;
};

static void errors(const struct judge *j, bool corrected, const char *source, const char *unit,
		   uint64_t count)
{
	judge_publish(j, corrected ? "FTB_MEM_CORRECTED" : "FTB_MEM_UNCORRECTED",
		      corrected ? MONITOR_WARNING : MONITOR_ERROR, "SOURCE:%s::UNIT:%s::COUNT:%llu",
		      source, unit, (unsigned long long)count);
}

/* False if there is no room for another unit. */
static bool counter_line(struct judge *j, const char *source, const char *name, uint64_t corrected,
			 uint64_t uncorrected)
{
	struct memory_state *s = j->state;
	struct memory_unit *u = s->units, *end = u + s->count;

	s->edac |= !strcmp(source, "edac");
	if (s->edac && !strcmp(source, "rasdaemon"))
		return true;
	while (u < end && (strcmp(u->source, source) != 0 || strcmp(u->name, name) != 0))
		u++;
	if (u == end) { /* what was counted before we came is not new */
		if (s->count == UNITS_MAX)
			return false;
		s->count++;
		snprintf(u->source, sizeof(u->source), "%s", source);
		snprintf(u->name, sizeof(u->name), "%s", name);
	} else {
		if (corrected > u->corrected)
			errors(j, true, source, name, corrected - u->corrected);
		if (uncorrected > u->uncorrected)
			errors(j, false, source, name, uncorrected - u->uncorrected);
	}
	u->corrected = corrected; /* smaller than before: somebody has set it back */
	u->uncorrected = uncorrected;
	return true;
}

static void machine_check(const struct judge *j, const char *source, int cpu, int bank,
			  uint64_t status)
{
	const struct memory_state *s = j->state;
	char unit[32];

	if (status >> 61 & 1) { /* IA32_MCi_STATUS.UC */
		judge_publish(j, "FTB_MEM_MACHINE_CHECK", MONITOR_ERROR,
			      "CPU:%d::BANK:%d::STATUS:%016llx", cpu, bank,
			      (unsigned long long)status);
	} else if (!s->edac) {
		snprintf(unit, sizeof(unit), "cpu%d.bank%d", cpu, bank);
		errors(j, true, source, unit, 1);
	}
}

/* "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 …" */
static void edac_text(struct judge *j, const char *text)
{
	const struct memory_state *s = j->state;
	char unit[16], kind[4], place[64] = "";
	unsigned long count;

	if (s->edac || sscanf(text, "%15[A-Za-z0-9]: %lu %3s", unit, &count, kind) != 3)
		return;
	const char *on = strstr(text, " on ");
	if (on)
		sscanf(on, " on %63[^ (]", place);
	if (!strcmp(kind, "CE") || !strcmp(kind, "UE"))
		errors(j, *kind == 'C', "kernel", *place ? place : unit, count ? count : 1);
}

/* NVIDIA's codes of ECC errors: row remapped, many single bits; double bit, remapping failed,
 * contained, not contained. */
static void xid_text(const struct judge *j, const char *text)
{
	static const int mended[] = {63, 92}, broken[] = {48, 64, 94, 95};
	char gpu[48];
	int code;

	if (sscanf(text, "(PCI:%47[^)]): %d", gpu, &code) != 2)
		return;
	for (size_t i = 0; i < ARRAY_LEN(mended); i++)
		if (mended[i] == code)
			errors(j, true, "xid", gpu, 1);
	for (size_t i = 0; i < ARRAY_LEN(broken); i++)
		if (broken[i] == code)
			judge_publish(j, "FTB_MEM_GPU_ERROR", MONITOR_ERROR, "GPU:%s::XID:%d", gpu,
				      code);
}

static void kernel_line(struct judge *j, const char *text)
{
	unsigned long long status;
	char page[24], outcome[24] = "";
	const char *p;
	int cpu, bank;

	if (strstr(text, "Machine Check") && (p = strstr(text, "CPU ")) &&
	    (sscanf(p, "CPU %d: Machine Check: %*x Bank %d: %llx", &cpu, &bank, &status) == 3 ||
	     sscanf(p, "CPU %d: Machine Check Exception: %*x Bank %d: %llx", &cpu, &bank,
		    &status) == 3)) {
		machine_check(j, "kernel", cpu, bank, status);
	} else if ((p = strstr(text, "Memory failure: ")) &&
		   sscanf(p, "Memory failure: %23[0-9a-fx]:", page) == 1 &&
		   (p = strstr(p, "recovery action"))) {
		if ((p = strrchr(p, ' ')))
			snprintf(outcome, sizeof(outcome), "%s", p + 1);
		judge_publish(j, "FTB_MEM_PAGE_FAILED", MONITOR_ERROR, "PAGE:%s::OUTCOME:%s", page,
			      outcome);
	} else if ((p = strstr(text, "EDAC "))) {
		edac_text(j, p + 5);
	} else if ((p = strstr(text, "NVRM: Xid "))) {
		xid_text(j, p + 10);
	}
}

/* "CPU 0 BANK 8 …" comes before "STATUS 8c00004000010090 MCGSTATUS 0". */
static void mcelog_line(struct judge *j, const char *text)
{
	struct memory_state *s = j->state;
	unsigned long long status;
	int cpu, bank;

	if (sscanf(text, "CPU %d BANK %d", &cpu, &bank) == 2 ||
	    sscanf(text, "CPU %d %d ", &cpu, &bank) == 2) {
		s->mcelog_cpu = cpu;
		s->mcelog_bank = bank;
	} else if (sscanf(text, "STATUS %llx", &status) == 1) {
		machine_check(j, "mcelog", s->mcelog_cpu, s->mcelog_bank, status);
	}
}

static hale_status_t memory_line(struct judge *j, char *line, struct error *err)
{
	char *rest = line;
	const char *what = line_word(&rest);

	if (what && !strcmp(what, "kernel")) {
		kernel_line(j, rest);
		return HALE_OK;
	}
	if (what && !strcmp(what, "mcelog")) {
		mcelog_line(j, line_rest(rest));
		return HALE_OK;
	}
	if (what && !strcmp(what, "count")) {
		const char *source = line_word(&rest), *unit = line_word(&rest);
		uint64_t corrected, uncorrected;

		if (source && unit && line_count(line_word(&rest), &corrected) &&
		    line_count(line_word(&rest), &uncorrected)) {
			if (counter_line(j, source, unit, corrected, uncorrected))
				return HALE_OK;
			return error_set(err, HALE_ERR_STATE,
					 "more than %d units of memory are counted", UNITS_MAX);
		}
	}
	return line_unknown(
	    what, "'count SOURCE UNIT CORRECTED UNCORRECTED', 'kernel TEXT', 'mcelog TEXT'", err);
}

static void memory_end(struct judge *j)
{
	(void)j; /* every line speaks for itself */
}

const struct monitor_kind monitor_memory = {.name = "memory",
					    .space = "FTB.FTB_MEM",
					    .every = 5,
					    .state_size = sizeof(struct memory_state),
					    .line = memory_line,
					    .end = memory_end,
					    .read = monitor_memory_read};
