/* SPDX-License-Identifier: BSD-3-Clause */
/* web/: the page of `hale report --html` and `hale web`: one file, nothing of the network.
 * May call: base/, node/, control/ (the client). Called by: cli/, and hale-web, a program of its
 * own. */
#ifndef HALE_WEB_PAGE_H
#define HALE_WEB_PAGE_H

#include <stdbool.h>
#include <stdio.h>

/* The page with that JSON in it: {"report":…} with "advice" perhaps; "null": it asks where it came
 * from. False: it could not be written. */
bool page_print(FILE *to, const char *json);

#endif
