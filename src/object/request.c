// SPDX-License-Identifier: BSD-3-Clause
#include "object/request.h"

uint32_t request_completions = REQUEST_COMPLETE;
