/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftb/zmq_calls.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The ABI of zmq.h that Hale is built with. */
#define ZMQ_FILE "libzmq.so.5"

struct zmq_calls zmq;

static bool zmq_call_find(void *lib, const char *name, void *to)
{
	void *symbol = dlsym(lib, name);

	memcpy(to, &symbol, sizeof(symbol));
	return symbol;
}

static hale_status_t zmq_calls_find(void *lib, struct zmq_calls *z, struct error *err)
{
#define ZMQ_CALL_FIND(name) zmq_call_find(lib, "zmq_" #name, &z->name) &&
	if (ZMQ_CALLS(ZMQ_CALL_FIND) true)
		return z->has("curve")
			   ? HALE_OK
			   : error_set(err, HALE_ERR_UNSUPPORTED,
				       "this ZeroMQ has no CURVE; Debian's libzmq5 has");
#undef ZMQ_CALL_FIND
	return error_set(err, HALE_ERR_UNSUPPORTED, "%s lacks functions of ZeroMQ 4: %s", ZMQ_FILE,
			 dlerror());
}

hale_status_t zmq_calls_load(struct error *err)
{
	struct zmq_calls found;
	hale_status_t st;
	void *lib;

	if (zmq.has)
		return HALE_OK;
	lib = dlopen(ZMQ_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "brokers speak with each other by ZeroMQ, which can't be loaded "
				 "(%s); install it (Debian's package libzmq5)",
				 dlerror());
	st = zmq_calls_find(lib, &found, err);
	if (st == HALE_OK)
		zmq = found;
	else
		dlclose(lib);
	return st;
}
