/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a program that run on a device: cores and memory of this node or another one, given out
 * by `hale device serve`. Link with -lhale_offload. docs/offload.md tells how it works; seed 000,
 * section 2.2, has the model. All functions return 0, a handle or a number; -1 or NULL with errno
 * and a sentence of hale_offload_why() otherwise:
 *
 *   ENODEV  no such device           ENOSPC  its memory is given out, or that of the process is
 *   ENOENT  no such function         ESRCH   the device process has ended (crashed, killed, cut
 * off)
 *
 * and what connecting to a node may give (hale/rio.h). Any thread may call them; calls on a process
 * that is paused or swapped out wait until it runs again. */
#ifndef HALE_OFFLOAD_H
#define HALE_OFFLOAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- on the device ---- */

/* What a function of the shared object is called with. */
struct hale_call {
	void *const *buffer;  /* of the device process */
	const uint64_t *size; /* bytes of each */
	unsigned buffers;
	const void *args;
	size_t args_size;
	void *result; /* result_size bytes, all 0 at first; they go to the host */
	size_t result_size;
};
typedef void hale_device_function(struct hale_call *call);

/* ---- on the host ---- */

enum { HALE_CALL_BUFFERS = 64, HALE_CALL_BYTES = 4096 /* of arguments, of a result */ };

typedef struct hale_process hale_process_t;
typedef struct hale_pipeline hale_pipeline_t;
typedef struct hale_event hale_event_t;
typedef uint64_t hale_buffer_t; /* its address in the device process; stays over snapshots */

/* Devices are numbered over the nodes of HALE_DEVICES ("node1=10.0.0.1:7420,…"), in that order:
 * first all of the first node. */
int hale_device_count(void);

/* Starts a process on a device, which loads the shared object (a file of this node, that is sent)
 * and has memory bytes for buffers; 0: 256 MiB. Blocks until it runs. */
hale_process_t *hale_process_create(int device, const char *shared_object, uint64_t memory);
/* Ends it, also in the middle of functions, and frees p. NULL: nothing. */
void hale_process_destroy(hale_process_t *p);
/* The number of the device it is on; its process id there. */
int hale_process_device(const hale_process_t *p);
int hale_process_pid(const hale_process_t *p);

/* size bytes in the device process, all 0; 0 with errno. */
hale_buffer_t hale_buffer_create(hale_process_t *p, uint64_t size);
int hale_buffer_destroy(hale_process_t *p, hale_buffer_t b);
/* Copies; complete when they return. */
int hale_buffer_write(hale_process_t *p, hale_buffer_t b, uint64_t offset, const void *data,
		      size_t size);
int hale_buffer_read(hale_process_t *p, hale_buffer_t b, uint64_t offset, void *data, size_t size);

/* The number of a function of the shared object, a hale_device_function; -1: there is none. */
int hale_function_find(hale_process_t *p, const char *name);

/* Functions in one pipeline run one after the other, those of several side by side; at most 64. */
hale_pipeline_t *hale_pipeline_create(hale_process_t *p);
/* Waits until its functions have ended. NULL: nothing. */
int hale_pipeline_destroy(hale_pipeline_t *q);

/* Runs a function and waits for its end. result (may be NULL) gets result_size bytes. */
int hale_run(hale_pipeline_t *q, int function, const hale_buffer_t *buffer, unsigned buffers,
	     const void *args, size_t args_size, void *result, size_t result_size);
/* Starts it. result stays the caller's, and is there when the event has been waited for. */
hale_event_t *hale_run_async(hale_pipeline_t *q, int function, const hale_buffer_t *buffer,
			     unsigned buffers, const void *args, size_t args_size, void *result,
			     size_t result_size);
/* Waits for its end, and frees e. */
int hale_event_wait(hale_event_t *e);
/* 1: hale_event_wait won't wait; 0 otherwise. */
int hale_event_test(const hale_event_t *e);

/* About the last error of this thread in these functions; never NULL. */
const char *hale_offload_why(void);

#ifdef __cplusplus
}
#endif
#endif
