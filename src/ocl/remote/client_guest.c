/* SPDX-License-Identifier: BSD-3-Clause */
/* This driver as a guest of libhale.so (node/guest.h), where the program has that: no thread is
 * stopped inside the driver, and images have what the server holds. */
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"
#include "base/fmt.h"
#include "node/guest.h"
#include "ocl/remote/client.h"

/* libhale.so's, or nothing */
static struct {
	void (*join)(const struct hale_guest *);
	void (*enter)(void);
	void (*leave)(void);
	void (*memory)(void *, size_t, bool);
} guest;

static struct {
	void *at; /* NULL: no checkpoint is being taken */
	size_t bytes;
} snapshot;

void client_guest_find(void)
{
	*(void **)&guest.join = dlsym(RTLD_DEFAULT, "hale_guest_join");
	*(void **)&guest.enter = dlsym(RTLD_DEFAULT, "hale_guest_enter");
	*(void **)&guest.leave = dlsym(RTLD_DEFAULT, "hale_guest_leave");
	*(void **)&guest.memory = dlsym(RTLD_DEFAULT, "hale_guest_memory");
}

bool client_guest_is_one(void)
{
	return guest.memory != NULL;
}

void remote_enter(void)
{
	if (guest.enter)
		guest.enter();
}

void remote_leave(void)
{
	if (guest.leave)
		guest.leave();
}

void remote_leave_out(void *at, size_t size)
{
	if (guest.memory)
		guest.memory(at, size, true);
}

void client_guest_take_in(void *at, size_t size)
{
	if (guest.memory)
		guest.memory(at, size, false);
}

/* ---- checkpoints of this process ---- */

static const char ended[] = "the process with its OpenCL runtime has ended";

static bool prepare(char *why, size_t size)
{
	struct call c = {0};
	char text[160] = "";
	struct remote_answer a = {.data = text, .room = sizeof(text) - 1};

	if (!client.started)
		return true;
	if (client.dead) {
		fmt_print(why, size, "%s", ended);
		return false;
	}
	if (client_exchange(&c, OP_QUIESCE, &a) != CL_SUCCESS) {
		fmt_print(why, size, "%s", *text ? text : ended);
		return false;
	}
	callbacks_collect(client.wire);
	snapshot.bytes = ALIGN_UP(a.value[0] + 1, HALE_PAGE);
	snapshot.at = mmap(NULL, snapshot.bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (snapshot.at == MAP_FAILED) {
		snapshot.at = NULL;
		fmt_print(why, size, "no memory for %lu bytes of its devices",
			  (unsigned long)snapshot.bytes);
		return false;
	}
	put(&c, (uint64_t)(uintptr_t)snapshot.at);
	put(&c, snapshot.bytes);
	if (client_exchange(&c, OP_SNAPSHOT, &a) == CL_SUCCESS)
		return true;
	fmt_print(why, size, "its device memory could not be copied: %s", *text ? text : ended);
	return false;
}

static bool restore(char *why, size_t size)
{
	char text[160] = "";

	client.pid = getpid();
	for (int i = 0; i < CLIENT_TRIES; i++) {
		struct call c = {0};
		struct remote_answer a = {.data = text, .room = sizeof(text) - 1};

		if (!client_connect(true, i > 0, why, size))
			return false;
		callbacks_restored(atomic_load(&client.life));
		put(&c, (uint64_t)(uintptr_t)snapshot.at);
		put(&c, snapshot.bytes);
		if (client_exchange(&c, OP_RESTORE, &a) == CL_SUCCESS)
			return true;
		if (!client.dead) /* it has said what is wrong */
			break;
	}
	fmt_print(why, size, "its OpenCL objects can't be made again: %s", *text ? text : ended);
	return false;
}

static bool resume(bool restored, char *why, size_t size)
{
	bool good = true;

	if (client.started && restored)
		good = restore(why, size);
	if (snapshot.at)
		munmap(snapshot.at, snapshot.bytes);
	snapshot.at = NULL;
	return good;
}

static const struct hale_guest us = {prepare, resume};

void client_guest_join(void)
{
	if (guest.join)
		guest.join(&us);
}
