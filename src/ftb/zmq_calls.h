/* SPDX-License-Identifier: BSD-3-Clause */
/* ZeroMQ, loaded when a broker first needs it: only brokers of `hale backplane` speak it with each
 * other, and it brings some twenty libraries into a process. All of its functions that Hale calls
 * are here. */
#ifndef HALE_FTB_ZMQ_CALLS_H
#define HALE_FTB_ZMQ_CALLS_H

#include <zmq.h>
#include "base/error.h"

#define ZMQ_CALLS(X)                                                                               \
	X(has)                                                                                     \
	X(strerror)                                                                                \
	X(ctx_new) X(ctx_set) X(ctx_term) X(socket) X(close) X(bind) X(connect) X(setsockopt)      \
	    X(getsockopt) X(socket_monitor) X(send) X(msg_init) X(msg_recv) X(msg_gets)            \
		X(msg_data) X(msg_more) X(msg_close) X(z85_decode) X(curve_public)                 \
		    X(curve_keypair)

struct zmq_calls {
#define ZMQ_CALL_MEMBER(name) __typeof__(zmq_##name) *name;
	ZMQ_CALLS(ZMQ_CALL_MEMBER)
#undef ZMQ_CALL_MEMBER
};

/* Valid since the first success of zmq_calls_load(). */
extern struct zmq_calls zmq;

/* Loads ZeroMQ if that has not been done. HALE_ERR_UNSUPPORTED with a sentence where it is not
 * installed, or has no CURVE. From one thread at a time. */
hale_status_t zmq_calls_load(struct error *err);

#endif
