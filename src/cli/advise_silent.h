/* SPDX-License-Identifier: BSD-3-Clause */
/* hale advise: what finds silent errors, for people and for programs. */
#ifndef HALE_CLI_ADVISE_SILENT_H
#define HALE_CLI_ADVISE_SILENT_H

#include "base/json.h"

struct advise_measure;

void advise_silent_show(const struct advise_measure *m);
/* "silent_errors":[…] into the open object of j. */
void advise_silent_print(const struct advise_measure *m, struct json_out *j);

#endif
