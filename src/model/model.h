/* SPDX-License-Identifier: BSD-3-Clause */
/* model/: what resilience costs, as formulas: checkpoint intervals, redundancy with and without
 * cloning, task-level coverage, lazy shadows, live vulnerability; and, in files of their own, the
 * simulator (sim*) that goes where no formula goes and the advisor (advise*) that chooses.
 * May call: base/. May be called by: report/, cli/. Nothing here does I/O.
 *
 * Everywhere: times are in seconds (_s), powers in watts (_w), energies in joules (_j), rates in
 * hertz (_hz), sizes in bytes; fractions lie in [0, 1]. A function that can be asked for something
 * outside its domain returns HALE_ERR_ARGUMENT and a sentence that says which value is out of which
 * range; the result is then untouched. All are pure and safe in any number of threads.
 * Sources are named as "000 eq. 3.4": docs/models.md says what the numbers are.
 */
#ifndef HALE_MODEL_MODEL_H
#define HALE_MODEL_MODEL_H

#include "base/error.h"
#include "model/quantity.h"
#include "model/law.h"
#include "model/interval.h"
#include "model/redundancy.h"
#include "model/unified.h"
#include "model/shadow.h"
#include "model/contest.h"
#include "model/lvf.h"

#endif
