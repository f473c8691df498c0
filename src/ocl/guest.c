/* SPDX-License-Identifier: BSD-3-Clause */
/* What the layer does when the whole process is checkpointed and restarted: its own descriptors are
 * left out of images. Everything else of it is ordinary memory. */
#include "node/guest.h"
#include <dlfcn.h>
#include <unistd.h>
#include "base/base.h"
#include "base/fmt.h"
#include "ocl/epoch/epoch.h"
#include "ocl/ocl.h"

static void (*descriptor)(int fd, bool in);

static bool prepare(char *why, size_t size)
{
	if (atomic_load(&ocl.recoveries) > 0) {
		fmt_print(why, size, "its device memory is being restored just now");
		return false;
	}
	ocl_pool_trim();
	return true;
}

static bool resume(bool restored, char *why, size_t size)
{
	if (restored) {
		atomic_fetch_add(&ocl.lives, 1);
		ocl.pid = (int)getpid();
		ocl_detect_reborn();
	}
	return true;
}

void ocl_guest_init(void)
{
	static const struct hale_guest us = {prepare, resume};
	void (*join)(const struct hale_guest *);

	*(void **)&join = dlsym(RTLD_DEFAULT, "hale_guest_join");
	*(void **)&descriptor = dlsym(RTLD_DEFAULT, "hale_guest_descriptor");
	if (join)
		join(&us);
}

void ocl_guest_descriptor(int fd, bool in)
{
	if (descriptor)
		descriptor(fd, in);
}
