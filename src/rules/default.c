/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules that hold when nobody gives others; the text is data/rules/default.rules. */
#include "rules/rules.h"

static const char text[] = {
#include "rules/default_rules.inc"
};

hale_status_t rules_default(struct rules **rules, struct error *err)
{
	return rules_parse("default.rules", text, sizeof(text), rules, err);
}
