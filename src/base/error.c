/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include "base/error.h"
#include "base/fmt.h"

hale_status_t error_set(struct error *err, hale_status_t code, const char *fmt, ...)
{
	if (!err)
		return code;
	va_list ap;
	va_start(ap, fmt);
	err->code = code;
	fmt_vprint(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

hale_status_t error_sys(struct error *err, hale_status_t code, const char *fmt, ...)
{
	int saved_errno = errno;
	if (!err)
		return code;
	va_list ap;
	va_start(ap, fmt);
	err->code = code;
	fmt_vprint(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	size_t n = strlen(err->text);
	const char *why = strerrordesc_np(saved_errno);
	if (why)
		fmt_print(err->text + n, sizeof(err->text) - n, ": %s", why);
	else
		fmt_print(err->text + n, sizeof(err->text) - n, ": error %d", saved_errno);
	errno = saved_errno;
	return code;
}

const char *hale_status_name(hale_status_t code)
{
	switch (code) {
	case HALE_OK:
		return "ok";
	case HALE_ERR_ARGUMENT:
		return "bad argument";
	case HALE_ERR_UNSUPPORTED:
		return "unsupported";
	case HALE_ERR_STATE:
		return "wrong state";
	case HALE_ERR_MEMORY:
		return "out of memory";
	case HALE_ERR_SYSTEM:
		return "system error";
	case HALE_ERR_TIMEOUT:
		return "timed out";
	case HALE_ERR_AGAIN:
		return "try again";
	case HALE_ERR_PROCESS:
		return "process lost";
	case HALE_ERR_REPLICA:
		return "replica lost";
	case HALE_ERR_NODE:
		return "node lost";
	case HALE_ERR_LINK:
		return "link lost";
	case HALE_ERR_PROTOCOL:
		return "protocol error";
	case HALE_ERR_STORE:
		return "store error";
	case HALE_ERR_STORE_FULL:
		return "store full";
	case HALE_ERR_IMAGE_TORN:
		return "image torn";
	case HALE_ERR_IMAGE_CORRUPT:
		return "image corrupt";
	case HALE_ERR_IMAGE_MISSING:
		return "image missing";
	case HALE_ERR_IMAGE_MISMATCH:
		return "image of another program or job";
	case HALE_ERR_DEVICE:
		return "device error";
	}
	return "unknown error";
}
