/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/advise_silent.h"

#include <math.h>
#include <stdio.h>
#include "base/base.h"
#include "model/advise.h"
#include "model/quantity.h"

void advise_silent_show(const struct advise_measure *m)
{
	struct advise_silent c[ADVISE_SILENT];
	char found[MODEL_QUANTITY_TEXT];

	advise_silent(m, c);
	printf(
	    "\nsilent errors, which no machine notices, are found by one of these beside that:\n");
	for (size_t i = 0; i < ADVISE_SILENT; i++) {
		printf("    %-30s %.2g %% more of nodes x time; ", c[i].flags, 100 * c[i].cost);
		if (isinf(c[i].found_s))
			printf("the job stops at the first difference\n");
		else if (c[i].found_s > 0)
			printf("a wrong node is named within %s\n",
			       model_quantity_show(c[i].found_s, MODEL_TIME_S, found));
		else
			printf("each message is right, and a wrong process is replaced at once\n");
	}
}

void advise_silent_print(const struct advise_measure *m, struct json_out *j)
{
	struct advise_silent c[ADVISE_SILENT];

	advise_silent(m, c);
	json_open_array(j, "silent_errors");
	for (size_t i = 0; i < ADVISE_SILENT; i++) {
		json_open_object(j, NULL);
		json_string(j, "name", c[i].name);
		json_string(j, "flags", c[i].flags);
		json_double(j, "cost", c[i].cost);
		if (isfinite(c[i].found_s))
			json_double(j, "found_s", c[i].found_s);
		json_bool(j, "corrects", c[i].corrects);
		json_close_object(j);
	}
	json_close_array(j);
}
