/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors: one enum, grouped by what is broken or gone, and an object that carries the sentence
 * for people. The first who knows fills the object; callers only pass it on. */
#ifndef HALE_BASE_ERROR_H
#define HALE_BASE_ERROR_H

#include <stdbool.h>

typedef enum hale_status {
	HALE_OK = 0,
	/* what the caller gave */
	HALE_ERR_ARGUMENT = 1,
	HALE_ERR_UNSUPPORTED,
	HALE_ERR_STATE,
	/* this machine */
	HALE_ERR_MEMORY = 16,
	HALE_ERR_SYSTEM,
	HALE_ERR_TIMEOUT,
	HALE_ERR_AGAIN,
	/* a process of the job */
	HALE_ERR_PROCESS = 32,
	HALE_ERR_REPLICA,
	/* a node or a link to it */
	HALE_ERR_NODE = 48,
	HALE_ERR_LINK,
	HALE_ERR_PROTOCOL,
	/* a checkpoint store or an image in it */
	HALE_ERR_STORE = 64,
	HALE_ERR_STORE_FULL,
	HALE_ERR_IMAGE_TORN,
	HALE_ERR_IMAGE_CORRUPT,
	HALE_ERR_IMAGE_MISSING,
	HALE_ERR_IMAGE_MISMATCH,
	/* an accelerator */
	HALE_ERR_DEVICE = 80,
} hale_status_t;

struct error {
	hale_status_t code;
	char text[480];
};

/* Fills err (may be NULL) with a code and a sentence; returns code, so that
 * `return error_set(err, HALE_ERR_STORE, "…")` reads well. Async-signal-safe. */
hale_status_t error_set(struct error *err, hale_status_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with ": " and the text of errno appended. */
hale_status_t error_sys(struct error *err, hale_status_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A code's name for logs, "store full" for instance; never NULL. */
const char *hale_status_name(hale_status_t code);

#endif
