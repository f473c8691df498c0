/* SPDX-License-Identifier: BSD-3-Clause */
/* Between a program and the process that has its OpenCL runtime: one shared region with a ring of
 * requests, slots for replies, and a ring of callbacks. docs/opencl.md tells why and when.
 *
 * A request is an operation and 64-bit words. Objects are numbers that the program's side chooses,
 * so that a request that makes an object needs no reply, and so that the same requests, sent to
 * another server, make the same objects. Requests are carried out in the order in which they were
 * posted. A blob is two words, length and address, with its bytes behind it when the address is 0;
 * otherwise they lie in the program's memory and the server fetches them. */
#ifndef HALE_OCL_REMOTE_WIRE_H
#define HALE_OCL_REMOTE_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/base.h"

enum {
	WIRE_MAGIC = 0x68616c65,
	WIRE_RING = 1 << 20,
	WIRE_WORDS = 640,   /* of a request at most */
	WIRE_INLINE = 2048, /* bytes of a blob that travel in the ring; of a reply */
	WIRE_SLOTS = 64,
	WIRE_CALLBACKS = 4096,
	WIRE_NO_REPLY = 0xffff,
	WIRE_REFS = 4,	 /* blobs of a request that the server fetches */
	WIRE_FD = 3,	 /* the region's descriptor in a new server */
	WIRE_SVM_FD = 4, /* that of shared virtual memory, if there is some */
};

/* Operations. Those before OP_STATE are what snapshots keep to make objects again. */
typedef enum wire_op {
	OP_FILLER, /* the rest of the ring up to its end */
	OP_SUB_DEVICES,
	OP_CONTEXT,
	OP_QUEUE,
	OP_BUFFER,
	OP_SUB_BUFFER,
	OP_IMAGE,
	OP_SAMPLER,
	OP_PROGRAM_SOURCE,
	OP_PROGRAM_IL,
	OP_PROGRAM_BINARY,
	OP_PROGRAM_BUILT_IN,
	OP_PROGRAM_BUILD,
	OP_PROGRAM_COMPILE,
	OP_PROGRAM_LINK,
	OP_KERNEL,
	OP_KERNEL_CLONE,
	OP_KERNEL_ARG,
	OP_SVM,
	OP_CONTENT_SIZE, /* PoCL's: which object has the number of bytes in use */
	OP_DEVICE,	 /* only in snapshots: which device had which number */
	OP_EVENT_PAST,	 /* only in snapshots: an event that is complete */
	OP_CONTENT,	 /* only in snapshots: what a memory object held */
	OP_STATE,
	OP_DEVICES,
	OP_INFO,
	OP_BINARIES,
	OP_FORMATS,
	OP_RELEASE,
	OP_FLUSH,
	OP_FINISH,
	OP_WAIT,
	OP_USER_EVENT,
	OP_USER_EVENT_SET,
	OP_CALLBACK,
	OP_BOX,
	OP_BOX_IMAGE,
	OP_COPY,
	OP_COPY_RECT,
	OP_FILL,
	OP_COPY_IMAGE,
	OP_IMAGE_TO_BUFFER,
	OP_BUFFER_TO_IMAGE,
	OP_FILL_IMAGE,
	OP_LAUNCH,
	OP_MARKER,
	OP_MIGRATE,
	OP_SVM_COPY,
	OP_SVM_FILL,
	OP_SVM_MAP,
	OP_SVM_UNMAP,
	OP_QUIESCE,
	OP_SNAPSHOT,
	OP_RESTORE,
} wire_op_t;

/* What OP_INFO asks about. */
typedef enum wire_about {
	ABOUT_PLATFORM,
	ABOUT_DEVICE,
	ABOUT_CONTEXT,
	ABOUT_QUEUE,
	ABOUT_MEM,
	ABOUT_IMAGE,
	ABOUT_SAMPLER,
	ABOUT_PROGRAM,
	ABOUT_BUILD,
	ABOUT_KERNEL,
	ABOUT_ARG,
	ABOUT_WORK_GROUP,
	ABOUT_EVENT,
	ABOUT_PROFILE,
	ABOUT_DEVICES, /* of a type (second), for so many (name); words: whether there is a list,
			* and where their count goes */
} wire_about_t;

struct wire_request {
	uint32_t size; /* bytes with this header, a multiple of 8 */
	uint16_t op, slot;
	uint16_t ref[WIRE_REFS]; /* 1 + place of the blob's first word; 0: none */
	uint64_t word[];
};

struct wire_reply {
	_Atomic uint32_t state; /* enum wire_slot; a futex */
	int32_t status;
	uint64_t value[4];
	uint64_t bytes; /* of data, or of what the server put into the program's memory itself */
	char data[WIRE_INLINE];
};
/* Words of OP_BOX and OP_BOX_IMAGE, and the flags in one of them. */
enum {
	BOX_FLAGS = 2,
	BOX_REGION = 6, /* three */
	BOX_ADDRESS = 11,
	BOX_ROW_PITCH = 12,
	BOX_PLANE_PITCH = 13,
	BOX_ELEMENT = 14, /* bytes */
};
enum { BOX_WRITE = 1, BOX_BLOCKING = 2, BOX_LINEAR = 4 };
enum { ARG_BYTES, ARG_NULL, ARG_OBJECT, ARG_SVM }; /* of OP_KERNEL_ARG */
/* Of OP_SVM_COPY and OP_SVM_MAP. Host memory is what is no shared virtual memory. */
enum { SVM_BLOCKING = 1, SVM_TO_HOST = 2, SVM_FROM_HOST = 4 };

enum wire_slot { SLOT_FREE, SLOT_WAITING, SLOT_SLEEPING, SLOT_DONE };

struct wire_callback {
	uint64_t cookie;
	int32_t status;
};

/* What each side writes has cache lines of its own. */
struct remote_wire { /* NOLINT(clang-analyzer-optin.performance.Padding) */
	uint32_t magic, client_pid;
	_Atomic uint32_t ready; /* 1: the server runs; 2: it can't; a futex */
	_Atomic uint32_t server_pid;
	char trouble[256];	   /* why it can't */
	uint64_t client_at;	   /* where the program has this region; 0: nowhere yet */
	_Atomic int32_t deferred;  /* the first error of a request without reply; taken by waits */
	_Atomic uint32_t sleeping; /* the server sleeps on bell */
	_Atomic uint32_t bell;	   /* a futex */
	_Atomic uint32_t patience; /* microseconds for which each side looks for the other before it
				    * sleeps, after its first looks */
	/* of a server on another node; what it must have, until it is ready */
	uint64_t devices; /* devices_sum of server.h; 0: any */
	uint32_t node;	  /* its place in HALE_DEVICES; until it is ready: the first to be tried */
	_Atomic uint32_t several; /* threads of the program call: then waits don't hold up other
				   * requests */
	_Alignas(64) _Atomic uint64_t head; /* bytes posted */
	_Alignas(64) _Atomic uint64_t tail; /* bytes carried out */
	_Atomic uint32_t callback_bell;
	_Atomic uint64_t callback_head, callback_tail;
	uint64_t svm_base, svm_bytes; /* where shared virtual memory is mapped; 0 bytes: not */
	struct wire_callback callback[WIRE_CALLBACKS];
	struct wire_reply reply[WIRE_SLOTS];
	_Alignas(64) char ring[WIRE_RING];
};

/* Looks for the other side before sleeping: so many, then for wire.patience. */
struct patience {
	int looks;
	uint32_t us;
	double until; /* 0: the first looks are not over */
};

/* False: sleep now. */
static inline bool patience_left(struct patience *p)
{
	enum { LOOKS = 64 };
	double now;

	if (LIKELY(p->looks-- > 0)) {
		__builtin_ia32_pause();
		return true;
	}
	if (p->us == 0)
		return false;
	now = clock_seconds();
	if (p->until == 0)
		p->until = now + p->us * 1e-6;
	p->looks = LOOKS;
	return now < p->until;
}

/* Host memory of a transfer: rows of bytes, in planes. */
struct wire_box {
	uint64_t address, bytes, rows, planes, row_pitch, plane_pitch;
};

#endif
