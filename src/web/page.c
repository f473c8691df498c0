/* SPDX-License-Identifier: BSD-3-Clause */
#include "web/page.h"

#include <string.h>
#include "page.inc"

/* Nothing in a string of it, a program's name for instance, ends the element that it stands in. */
static void print_json(FILE *to, const char *json)
{
	for (; *json; json++) {
		if (*json == '<')
			fputs("\\u003c", to);
		else
			fputc(*json, to);
	}
}

bool page_print(FILE *to, const char *json)
{
	static const char mark[] = "@DATA@";
	const char *at = strstr(page, mark);

	fwrite(page, 1, (size_t)(at - page), to);
	print_json(to, json);
	fputs(at + sizeof(mark) - 1, to);
	return !ferror(to);
}
