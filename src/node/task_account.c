/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/task_account.h"
#include "base/base.h"

static const char *const counts[] = {"run",    "protected", "reexecuted", "fell_back",
				     "struck", "mended",    "replayed",	  "skipped"};
static const char *const reasons[] = {"no_depend", "undeferred", "taskloop", "untied", "objects",
				      "inoutset",  "chosen",	 "ranges",   "deep"};
static const char *const bytes[] = {"checkpoint_bytes", "copied_bytes", "log_bytes",
				    "log_peak_bytes"};
static const char *const shares[] = {"tasks",	"protected", "serial", "checkpoint",
				     "restore", "lost",	     "log"};

_Static_assert(ARRAY_LEN(counts) == TASK_COUNTS, "a name each");
_Static_assert(ARRAY_LEN(reasons) == TASK_REASONS, "a name each");
_Static_assert(ARRAY_LEN(bytes) == TASK_BYTES, "a name each");
_Static_assert(ARRAY_LEN(shares) == TASK_SHARES, "a name each");

double task_account_coverage(const struct task_account *a)
{
	double mended = (double)(a->count[TASK_STRUCK] - a->count[TASK_FELL_BACK]);
	double exposed = a->share[TASK_S_TASKS] + a->share[TASK_S_SERIAL];

	if (a->count[TASK_STRUCK] > 0)
		return mended / (double)a->count[TASK_STRUCK];
	return exposed > 0 ? a->share[TASK_S_PROTECTED] / exposed : 0;
}

void task_account_add(struct task_account *a, const struct json_value *of)
{
	const struct json_value *r = json_get(of, "unprotected"), *s = json_get(of, "seconds");

	a->processes += (uint64_t)json_number_int(json_get(of, "processes"), 0);
	for (int i = 0; i < TASK_COUNTS; i++)
		a->count[i] += (uint64_t)json_number_int(json_get(of, counts[i]), 0);
	for (int i = 0; i < TASK_REASONS; i++)
		a->reason[i] += (uint64_t)json_number_int(json_get(r, reasons[i]), 0);
	for (int i = 0; i < TASK_BYTES; i++)
		a->bytes[i] += (uint64_t)json_number_int(json_get(of, bytes[i]), 0);
	for (int i = 0; i < TASK_SHARES; i++)
		a->share[i] += json_number(json_get(s, shares[i]), 0);
}

void task_account_json(const struct task_account *a, struct json_out *j)
{
	json_open_object(j, NULL);
	json_uint(j, "processes", a->processes);
	for (int i = 0; i < TASK_COUNTS; i++)
		json_uint(j, counts[i], a->count[i]);
	for (int i = 0; i < TASK_BYTES; i++)
		json_uint(j, bytes[i], a->bytes[i]);
	json_double(j, "coverage", task_account_coverage(a));
	json_open_object(j, "unprotected");
	for (int i = 0; i < TASK_REASONS; i++)
		json_uint(j, reasons[i], a->reason[i]);
	json_close_object(j);
	json_open_object(j, "seconds");
	for (int i = 0; i < TASK_SHARES; i++)
		json_double(j, shares[i], a->share[i]);
	json_close_object(j);
	json_close_object(j);
}
