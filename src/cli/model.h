/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two files of `hale model` share. */
#ifndef HALE_CLI_MODEL_H
#define HALE_CLI_MODEL_H

#include <stdbool.h>
#include "model/catalog.h"

extern const char cli_model_help[];

#define MODEL_SCHEMES_MAX 8

struct model_request {
	const struct model_entry *entry;
	double values[MODEL_KEYS_MAX];
	const char *schemes[MODEL_SCHEMES_MAX]; /* one NULL for models without */
	size_t scheme_count;
	bool compared, json;
	const char *plot; /* file, or NULL */
	char given[120];  /* the values on the command line, as a picture shows them */
	const char *y;	  /* answer, or NULL: the model's own */
	int x;		  /* key that is swept; -1: none */
	double from, to;
	long steps;
	bool log_x;
};

/* Solves over the swept key and draws, or prints a table of tab-separated values or JSON. Exit
 * status. */
int model_sweep(const struct model_request *q);
/* Reads "nodes=10k..2M", "nodes=10k..2M/50", "mtbf=1h..30d/50/log" into q. */
hale_status_t model_sweep_read(struct model_request *q, const char *text, struct error *err);
/* Takes the model's own picture where nothing was asked. */
hale_status_t model_sweep_complete(struct model_request *q, struct error *err);

#endif
