/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries beside the program that take part in its checkpoints without knowing of MPI: the OpenCL
 * runtime in a process of its own (ocl/remote/). They don't link with libhale.so, since they also
 * work without it; they find these functions by dlsym.
 *
 * A thread between hale_guest_enter and hale_guest_leave is never stopped there: a checkpoint waits
 * until it leaves. Both nest and cost a few instructions. prepare and resume are called in the
 * thread that does the checkpoint, often in a signal handler, with all other threads stopped and
 * none inside: no malloc, no stdio, no locks. */
#ifndef HALE_NODE_GUEST_H
#define HALE_NODE_GUEST_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/log.h"

struct hale_guest {
	/* Puts what stands outside of this process into its memory. False: it can't be captured
	 * now; why gets a sentence. resume is called in either case. */
	bool (*prepare)(char *why, size_t size);
	/* The same process goes on, or it is a new one, in which nothing outside exists yet. False:
	 * this process can't go on; why gets a sentence. */
	bool (*resume)(bool restored, char *why, size_t size);
};

/* The struct stays the caller's. At most 4. */
void hale_guest_join(const struct hale_guest *g);
void hale_guest_enter(void);
void hale_guest_leave(void);
/* A line of the library's for people (base/log.h, log_sink_t): it is none of the program's output. */
bool hale_guest_say(const char *line, size_t len);
/* Where this process is a rank, the calling library's lines go that way. */
static inline void hale_guest_log(void)
{
	log_sink_t say;

	*(void **)&say = dlsym(RTLD_DEFAULT, "hale_guest_say");
	log_set_sink(say);
}
/* Memory that images leave out, from now on (in) or no longer. */
void hale_guest_memory(void *addr, size_t len, bool in);
/* A descriptor that images leave out; it isn't there in a restored process. */
void hale_guest_descriptor(int fd, bool in);

#endif
