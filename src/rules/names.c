/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of severities and actions; patterns. */
#include <strings.h>
#include "base/base.h"
#include "rules/private.h"

static const char *const severities[] = {"INFO", "WARNING", "ERROR", "FATAL"};

bool rules_severity_parse(const char *text, rules_severity_t *severity)
{
	for (size_t i = 0; i < ARRAY_LEN(severities); i++) {
		if (strcasecmp(text, severities[i]) == 0) {
			*severity = (rules_severity_t)i;
			return true;
		}
	}
	return false;
}

const char *rules_severity_name(rules_severity_t severity)
{
	return severities[severity];
}

const char *rules_do_name(rules_do_t what)
{
	static const char *const names[RULES_DO_COUNT] = {[RULES_CHECKPOINT] = "checkpoint",
							  [RULES_MIGRATE] = "migrate",
							  [RULES_CLONE] = "clone",
							  [RULES_MARK_UNUSABLE] = "mark unusable",
							  [RULES_MARK_USABLE] = "mark usable",
							  [RULES_RAISE_REDUNDANCY] =
							      "raise redundancy",
							  [RULES_RUN] = "run",
							  [RULES_WEBHOOK] = "webhook",
							  [RULES_MAIL] = "mail"};

	return names[what];
}

/* Only the last star is ever gone back to, since an earlier one can gain nothing by taking more. */
bool rules_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *mark = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			mark = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++mark;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
