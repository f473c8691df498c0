// SPDX-License-Identifier: BSD-3-Clause
/* The table of delivery policies: one line each. */
#include "deliver/deliver.h"

#include <string.h>

static const struct deliver_ops *const policies[] = {
    &deliver_plain,
    &deliver_redundant,
};

const struct deliver_ops *deliver_policy = &deliver_plain;

hale_status_t deliver_choose(const char *name, struct error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		if (strcmp(policies[i]->name, name) != 0)
			continue;
		if (!policies[i]->other)
			return error_set(err, HALE_ERR_STATE,
					 "the delivery policy %s lacks a mandatory operation",
					 name);
		deliver_policy = policies[i];
		return HALE_OK;
	}
	return error_set(err, HALE_ERR_UNSUPPORTED, "there is no delivery policy named \"%s\"",
			 name);
}
