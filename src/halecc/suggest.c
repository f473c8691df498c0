/* SPDX-License-Identifier: BSD-3-Clause */
#include "halecc/halecc.h"

void suggest_unit(struct unit *u)
{
}
