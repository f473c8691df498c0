// SPDX-License-Identifier: BSD-3-Clause
#include "launch/rank_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool number_take(const char **at, unsigned long *n)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	*n = strtoul(*at, &end, 10);
	*at = end;
	return *n < UINT32_MAX;
}

static bool range_take(const char **at, unsigned long *first, unsigned long *last)
{
	if (!number_take(at, first))
		return false;
	*last = *first;
	if (**at != '-')
		return true;
	++*at;
	return number_take(at, last) && *last >= *first;
}

hale_status_t rank_list_parse(const char *text, uint32_t nranks, unsigned char *listed,
			      struct error *err)
{
	const char *at = text;
	unsigned long first, last;

	if (listed)
		memset(listed, 0, nranks);
	if (strcmp(text, "none") == 0)
		return HALE_OK;
	do {
		if (!range_take(&at, &first, &last))
			return error_set(err, HALE_ERR_ARGUMENT,
					 "'%s' is no list of ranks, as 0-3,7 or none", text);
		if (last >= nranks)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "'%s' names rank %lu, and the ranks are 0 to %u", text,
					 last, nranks - 1);
		for (unsigned long r = first; listed && r <= last; r++)
			listed[r] = 1;
	} while (*at++ == ',');
	return at[-1] == '\0' ? HALE_OK
			      : error_set(err, HALE_ERR_ARGUMENT,
					  "'%s' is no list of ranks, as 0-3,7 or none", text);
}
