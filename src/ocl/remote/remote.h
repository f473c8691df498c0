/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl/remote/: OpenCL for a program whose runtime lives in another process, so that checkpoints of
 * the program need nothing of the runtime. client*.c and what they serve (objects, commands, …)
 * make libhale_opencl_remote.so, an ordinary OpenCL driver to the loader. server*.c make
 * hale-opencl-server, one for each process that uses OpenCL. May call: base/, rio/, and by dlsym
 * what node/guest.h shows. Called by: the OpenCL loader, cli/ (net_daemon.c).
 *
 *   program ─ loader ─ layer (ocl/) ─ this driver ══ ring ══ server ─ loader ─ vendor's runtime
 *
 * The server may be on another node: then relay.c makes the process at the ring (docs/opencl.md).
 * Handles are pointers to stubs, which belong to the program's memory and so to its image. */
#ifndef HALE_OCL_REMOTE_REMOTE_H
#define HALE_OCL_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ocl/cl.h"
#include "ocl/remote/wire.h"

typedef enum stub_kind {
	STUB_FREE,
	STUB_PLATFORM,
	STUB_DEVICE,
	STUB_CONTEXT,
	STUB_QUEUE,
	STUB_MEM,
	STUB_SAMPLER,
	STUB_PROGRAM,
	STUB_KERNEL,
	STUB_EVENT,
	STUB_SVM,      /* an allocation: a number for its address */
	STUB_RECORDED, /* a command buffer: of this side alone */
} stub_kind_t;

struct mapping {
	struct mapping *next;
	char *at;
	bool image, wrote;
	size_t origin[3], region[3], pitch[2];
};

struct destructor {
	struct destructor *next;
	union {
		void(CL_CALLBACK *of_mem)(cl_mem, void *);
		void(CL_CALLBACK *of_context)(cl_context, void *);
	};
	void *data;
};

struct stub_mem {
	cl_mem_flags flags;
	cl_mem_object_type type;
	size_t size, offset; /* bytes; in the parent */
	size_t element, region[3];
	char *host;  /* the program's (CL_MEM_USE_HOST_PTR); of STUB_SVM: where it is */
	bool shared; /* host is shared virtual memory: its content is there */
	size_t host_pitch[2];
	char *window; /* ours: where mappings are shown */
	struct mapping *maps;
	uint32_t map_count;
	struct destructor *destructors;
};

struct stub_sampler {
	cl_bool normalized;
	cl_addressing_mode addressing;
	cl_filter_mode filter;
};

/* A launch with the same shape as one that the runtime took will be taken, too. */
struct stub_kernel {
	uint32_t args;
	uint64_t *arg_size; /* by index: 1 + size of what was set; 0: never */
	uint64_t queue;	    /* of the last launch that was taken; 0: none */
	uint32_t dims;
	size_t offset[3], global[3], local[3];
};

struct callback;
struct remote_recorded;

struct stub_recorded {
	struct remote_recorded *first, **last;
	uint32_t points, state;
	bool simultaneous;
	cl_event running; /* of its newest run, ours; NULL: none */
};

struct stub_context {
	struct callback *notify; /* NULL: none */
	struct destructor *destructors;
};

struct stub {
	cl_icd_dispatch *dispatch; /* first, for the loader */
	struct stub *next_free;
	uint32_t kind, refs; /* the program's */
	uint32_t held;	     /* by other stubs */
	uint32_t id;
	uint32_t era;	      /* of a context: which servers know it */
	struct stub *context; /* held */
	struct stub *parent;  /* among holds */
	struct stub **holds;  /* what must outlive it */
	uint32_t hold_count;
	void *list; /* properties as the program gave them, 0-terminated; a kernel's name; or NULL
		     */
	struct stub **devices;
	uint32_t device_count;
	uint64_t type; /* of a device, a queue's properties, an event's command */
	union {
		struct stub_mem mem;
		struct stub_kernel kernel;
		struct stub_sampler sampler;
		struct stub_recorded recorded;
		struct stub_context of_context;
		struct division *division; /* of a part of a device: how it was made */
	};
};

/* ---- client.c, client_start.c, client_guest.c: the way to the server ---- */

struct call {
	uint32_t words;
	uint32_t refs;
	uint32_t era; /* of the context that it is about; 0: of none */
	uint16_t ref[WIRE_REFS];
	uint64_t word[WIRE_WORDS];
};

struct remote_answer {
	int32_t status;
	uint64_t value[4];
	uint64_t bytes;
	void *data; /* where up to room bytes of the reply's data go */
	size_t room;
};

static inline void put(struct call *c, uint64_t word)
{
	if (c->words < WIRE_WORDS)
		c->word[c->words] = word;
	c->words++;
}

void put_blob(struct call *c, const void *data, size_t size);
/* The number of what handle stands for; 0 when it stands for nothing of that kind. */
void put_handle(struct call *c, const void *handle, stub_kind_t kind);
void put_handles(struct call *c, cl_uint count, const void *list, stub_kind_t kind);

/* CL_SUCCESS once; starts the server. */
cl_int remote_start(void);
/* If the server has ended: another one, in which nothing of what was made before exists. */
void remote_renew(void);
/* Posts and waits. What the server says, or CL_DEVICE_NOT_AVAILABLE when there is none any more. */
cl_int remote_call(struct call *c, wire_op_t op, struct remote_answer *a);
/* Posts only; an error comes with a later wait. A blob that must be fetched makes it a call. */
cl_int remote_post(struct call *c, wire_op_t op);
/* Between these this thread isn't stopped for a checkpoint. */
void remote_enter(void);
void remote_leave(void);
struct remote_wire *remote_wire(void);
/* Which server this is, counted from 1; whether that one has ended. */
uint32_t remote_life(void);
/* The same, but one that has been told all that the one before it knew counts as that. */
uint32_t remote_era(void);
static inline uint32_t era_of(const struct stub *s)
{
	return s->context ? s->context->era : s->era;
}
bool remote_has_ended(uint32_t life);
/* False in a child of fork. */
bool remote_is_ours(void);
/* Memory that images leave out. */
void remote_leave_out(void *at, size_t size);

/* ---- callbacks.c ---- */

/* What waits to be called, once: when the server says so, or, with CL_DEVICE_NOT_AVAILABLE, when it
 * has ended. Begins a struct of the owner's; call may free it. */
struct callback {
	struct callback *next, **at;
	void (*call)(struct callback *self, int32_t status);
	uint32_t life;
	int32_t status;
	bool ready;
};

/* From here on it may be called at any moment. False: there is no thread to call it. */
bool callback_add(struct callback *b);
/* True: it is the caller's again, and won't be called. */
bool callback_remove(struct callback *b);
/* What w's server has said so far is kept here; before w is used for another one. */
void callbacks_collect(struct remote_wire *w);
/* The same where w soon has no more room for what its server says. For threads that wait for that
 * server: it may wait for room itself, and the thread that calls back may wait in a callback. */
void callbacks_make_room(struct remote_wire *w);
/* After a restart from an image; async-signal-safe. The new server knows all objects. */
void callbacks_restored(uint32_t life);

/* ---- stubs.c ---- */
struct stub *stub_create(stub_kind_t kind, struct stub *context);
uint32_t stub_contexts(void); /* that there are */
/* Whether p, which is no handle, has been one. */
bool stub_was(const void *p);
struct stub *stub_of(const void *handle, stub_kind_t kind);
void stub_hold(struct stub *holder, struct stub *what);
cl_int stub_retain(void *handle, stub_kind_t kind, cl_int wrong);
cl_int stub_release(void *handle, stub_kind_t kind, cl_int wrong);
/* For an object that the server refused to make. */
void stub_discard(struct stub *s);
void *stub_list_copy(const void *list);
/* It is of another context from now on. */
void stub_belongs(struct stub *s, struct stub *context);

/* ---- devices.c, objects.c, driver.c ---- */
enum { DEVICES_MAX = 128 };
extern struct stub *remote_platform[], *remote_device[];
extern uint32_t remote_platforms, remote_devices;
/* Fills the table and starts the server, at the first use; whether there is OpenCL. */
cl_int remote_fill_once(void);
cl_int devices_learn(void);
cl_int CL_API_CALL remote_get_platforms(cl_uint room, cl_platform_id *list, cl_uint *count);
cl_int CL_API_CALL remote_platform_info(cl_platform_id p, cl_platform_info name, size_t room,
					void *to, size_t *size_ret);
cl_int CL_API_CALL remote_get_devices(cl_platform_id p, cl_device_type type, cl_uint room,
				      cl_device_id *list, cl_uint *count);
/* In a new server: the parts of devices that the program has. send posts without a reply. */
void devices_again(bool (*send)(const struct call *, wire_op_t));
/* A part of a device ends. */
void devices_part_ends(struct stub *s);
/* Makes the object that c describes; NULL and *status when the server refuses. */
void *remote_make(struct stub *s, struct call *c, wire_op_t op, cl_int *status);
/* The context of this callback is gone. */
void notify_end(struct callback *b);
/* Device numbers: the list's, or 0 of them. */
void put_devices(struct call *c, cl_uint count, const cl_device_id *list);
struct stub **device_list(cl_uint count, const cl_device_id *list);
size_t element_size(const cl_image_format *f);

/* ---- events.c ---- */
/* The wait list and the number of the event that the command gets. */
void put_waits(struct call *c, cl_uint count, const cl_event *list, const struct stub *event);
/* Sends a command with its waits, and gives the program its event. quick: it can't fail for what
 * it asks, so no reply is waited for. */
cl_int remote_enqueue(struct call *c, wire_op_t op, struct stub *queue, cl_command_type type,
		      bool quick, cl_uint count, const cl_event *list, cl_event *event);

bool all_are_events(cl_uint count, const cl_event *list);

/* ---- commands.c, kernels.c: a request up to its waits; CL_SUCCESS or what is wrong ---- */
cl_int put_copy(struct call *c, cl_command_queue queue, cl_mem src, cl_mem dst, size_t from,
		size_t to, size_t size, struct stub **q);
cl_int put_copy_rect(struct call *c, cl_command_queue queue, cl_mem src, cl_mem dst,
		     const size_t *from, const size_t *to, const size_t *region,
		     const size_t pitch[4], struct stub **q);
cl_int put_fill(struct call *c, cl_command_queue queue, cl_mem mem, const void *pattern,
		size_t bytes, size_t offset, size_t size, struct stub **q);
cl_int put_copy_image(struct call *c, cl_command_queue queue, cl_mem src, cl_mem dst,
		      const size_t *from, const size_t *to, const size_t *region, struct stub **q);
cl_int put_image_and_buffer(struct call *c, cl_command_queue queue, cl_mem src, cl_mem dst,
			    const size_t *origin, const size_t *region, size_t offset,
			    struct stub **q);
cl_int put_fill_image(struct call *c, cl_command_queue queue, cl_mem mem, const void *colour,
		      const size_t *origin, const size_t *region, struct stub **q);
void put_launch(struct call *c, const struct stub *q, const struct stub *kernel, cl_uint dims,
		const size_t *offset, const size_t *global, const size_t *local);
enum { ORDER_MARKER, ORDER_BARRIER };
cl_int remote_order(struct stub *q, uint64_t kind, cl_command_type type, cl_uint count,
		    const cl_event *list, cl_event *event);
cl_kernel CL_API_CALL remote_clone_kernel(cl_kernel source, cl_int *status);

/* PoCL's cl_pocl_content_size. */
cl_int CL_API_CALL remote_set_content_size(cl_mem mem, cl_mem size);

/* ---- svm.c: shared virtual memory ---- */
/* For a new server: the descriptor that it is to map, or -1: there will be none. restored: this
 * process comes from an image, which has left the memory out. Async-signal-safe. */
int svm_begin(struct remote_wire *w, bool restored);
/* Whether the server could map it, or nobody misses it. Async-signal-safe. */
bool svm_agreed(const struct remote_wire *w, char *why, size_t size);
/* The allocation that p points into, or NULL. */
struct stub *svm_at(const void *p);
enum { SVM_ALIGN_MAX = 128 }; /* of the largest type, long16 */
/* CL_INVALID_OPERATION: the device has none; CL_DEVICE_NOT_AVAILABLE: the server has ended. */
cl_int svm_offer(const struct stub *device);
cl_int svm_offer_in(const struct stub *context);
void *svm_function(const char *name);
/* kernels.c; p is known to be right */
cl_int kernel_set_pointer(struct stub *kernel, cl_uint index, const void *p);

/* ---- recorded.c: command buffers ---- */
void *recorded_function(const char *name);
void recorded_free(struct stub *s);

/* ---- answers of information ---- */
cl_int give(const void *from, size_t bytes, size_t room, void *to, size_t *size_ret);
cl_int remote_info(wire_about_t about, const struct stub *s, uint64_t second, uint32_t name,
		   size_t room, void *to, size_t *size_ret);

extern cl_icd_dispatch remote_dispatch;

/* Each file puts its functions into the table. */
void devices_fill(cl_icd_dispatch *d);
void objects_fill(cl_icd_dispatch *d);
void memory_fill(cl_icd_dispatch *d);
void programs_fill(cl_icd_dispatch *d);
void kernels_fill(cl_icd_dispatch *d);
void events_fill(cl_icd_dispatch *d);
void transfers_fill(cl_icd_dispatch *d);
void commands_fill(cl_icd_dispatch *d);
void svm_fill_table(cl_icd_dispatch *d);
void svm_fill_commands(cl_icd_dispatch *d);

#endif
