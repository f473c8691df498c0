/* SPDX-License-Identifier: BSD-3-Clause */
/* base/: what every layer stands on: errors, log, clock, units, a private heap, wire encoding,
 * JSON. May call: libc, xxHash. May be called by: everybody.
 *
 * Two kinds of code use it. Ordinary processes (hale run, the agent) and the library inside the
 * user's process, which runs in a signal handler when a checkpoint interrupts the program
 * anywhere, inside malloc for instance. So whatever base/ does here is async-signal-safe unless
 * its comment says otherwise: no malloc, no stdio, no locks.
 */
#ifndef HALE_BASE_BASE_H
#define HALE_BASE_BASE_H

#include "base/error.h"
#include "base/log.h"
#include "base/clock.h"
#include "base/timestamp.h"
#include "base/heap.h"
#include "base/units.h"

#define ARRAY_LEN(a)	   (sizeof(a) / sizeof((a)[0]))
#define CACHE_LINE	   64
#define ALIGN_UP(x, a)	   (((x) + (a)-1) / (a) * (a))
#define LIKELY(x)	   __builtin_expect(!!(x), 1)
#define UNLIKELY(x)	   __builtin_expect(!!(x), 0)
#define CONTAINER(p, t, m) ((t *)((char *)(p)-offsetof(t, m)))
#define HALE_PAGE	   4096ul

#endif
