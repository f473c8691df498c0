// SPDX-License-Identifier: BSD-3-Clause
/* The engine's state in this process. */
#include <string.h>
#include <sys/prctl.h>
#include <asm/prctl.h>

#include "image/capture.h"
#include "image/hash.h"

enum { THREAD_BLOCK = 4096 };

struct engine engine = {.tid_offset = -1};

/* Where glibc keeps a thread's id: the kernel knows, since it clears it when the thread ends;
 * where it doesn't say, look for it in the thread block. */
static int32_t find_tid_offset(void)
{
	uint64_t fs = 0, address = 0;
	int32_t tid = (int32_t)sys(SYS_gettid);
	sys(SYS_arch_prctl, ARCH_GET_FS, &fs);
	if (!fs)
		return -1;
	if (!sys(SYS_prctl, PR_GET_TID_ADDRESS, &address) && address > fs &&
	    address - fs < THREAD_BLOCK)
		return (int32_t)(address - fs);
	for (int32_t at = 64; at < 2048; at += 4)
		if (*(int32_t *)(fs + (uint64_t)at) == tid)
			return at;
	return -1;
}

void engine_streams(struct file_identity stream[3])
{
	for (int i = 0; i < 3; i++) {
		struct stat st = {0};
		stream[i] = (struct file_identity){0};
		if (!sys(SYS_fstat, i, &st))
			stream[i] = (struct file_identity){st.st_dev, st.st_ino};
	}
}

void image_init(bool (*thread_busy)(void), void (*thread_revived)(void))
{
	engine.thread_busy = thread_busy;
	engine.thread_revived = thread_revived;
	if (engine.ready)
		return;
	engine.tid_offset = find_tid_offset();
	engine_streams(engine.stream);
	scheduling_read(&engine.began, 0);
	engine.oom_began = process_oom_read();
	engine.processor = processor_chosen();
	capture_init();
	track_reset();
	engine.ready = threads_init();
	if (!engine.ready)
		log_warn("checkpoints of this process are not possible: no memory for its threads");
}

void image_exclude_add(const void *addr, size_t len)
{
	for (int i = 0; i < ENGINE_OWN_MAX; i++) {
		if (engine.exclude[i].end)
			continue;
		/* Mappings are cut there, so these are whole pages. */
		engine.exclude[i].start = (uint64_t)addr & ~(uint64_t)(HALE_PAGE - 1);
		engine.exclude[i].end =
		    ((uint64_t)addr + len + HALE_PAGE - 1) & ~(uint64_t)(HALE_PAGE - 1);
		return;
	}
	log_warn("memory at %p can't be left out of images: too many such regions", addr);
}

void image_exclude_remove(const void *addr)
{
	for (int i = 0; i < ENGINE_OWN_MAX; i++)
		if (engine.exclude[i].end &&
		    engine.exclude[i].start == ((uint64_t)addr & ~(uint64_t)(HALE_PAGE - 1)))
			engine.exclude[i].start = engine.exclude[i].end = 0;
}

void image_fd_own(int fd)
{
	if (engine.own_count < ENGINE_FDS_MAX)
		engine.own[engine.own_count++] = fd;
	else
		log_warn("descriptor %d can't be left out of images: too many such descriptors",
			 fd);
}

size_t image_fds_owned(int *fds, size_t max)
{
	size_t n = engine.own_count < max ? engine.own_count : max;
	memcpy(fds, engine.own, n * sizeof(*fds));
	return n;
}

void image_fd_disown(int fd)
{
	for (unsigned i = 0; i < engine.own_count; i++)
		if (engine.own[i] == fd) {
			engine.own[i] = engine.own[--engine.own_count];
			return;
		}
}

const void *image_note(size_t *len)
{
	*len = engine.note_len;
	return engine.note;
}

hale_status_t image_pass(const void *bytes, size_t len)
{
	if (len > IMAGE_PASS_MAX)
		return HALE_ERR_ARGUMENT;
	memcpy(engine.passed, bytes, len);
	engine.passed_len = len;
	engine.has_passed = true;
	return HALE_OK;
}

void image_meet(const void *bytes, size_t len)
{
	engine.meeting = hash64(bytes, len);
}

const void *image_passed(size_t *len)
{
	*len = engine.has_passed ? engine.passed_len : 0;
	return engine.has_passed ? engine.passed : NULL;
}
