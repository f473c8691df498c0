/* SPDX-License-Identifier: BSD-3-Clause */
/* Pause, capture, resume; and what a fresh process does to become a captured one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "base/base.h"
#include "base/fmt.h"
#include "image/image.h"
#include "offload/device/work.h"

static struct image_result written;

static void on_written(void *arg, const struct image_result *r)
{
	written = *r;
}

/* The channel from the host is empty: OFF_PAUSE was the last message. That to the host becomes so
 * by the lock; then nobody else runs. */
void freeze_pause(void)
{
	int busy;

	while (sem_wait(&work.send) != 0)
		;
	busy = image_park();
	if (busy) {
		work_failed(EAGAIN, "its threads can't be stopped now");
		sem_post(&work.send);
		return;
	}
	work.paused = true;
	work_tell('p');
	work_done(0, 0, NULL, 0);
}

void freeze_resume(void)
{
	work.paused = false;
	image_unpark();
	work_tell('r');
	work_done(0, 0, NULL, 0);
	sem_post(&work.send);
}

static void send_image(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t at = 0;

	unlink(path);
	if (fd < 0) {
		work_failed(errno, "its image can't be read back: %m");
		return;
	}
	work_done(0, written.bytes, NULL, 0);
	while ((uint64_t)at < written.bytes)
		if (sendfile(WORK_FD, fd, &at, written.bytes - (uint64_t)at) <= 0)
			break; /* the host sees that it is too short */
	close(fd);
}

/* In another process, perhaps on another node. */
static void live_again(void)
{
	size_t len;
	const char *folder = image_passed(&len);
	char path[PATH_MAX];

	fmt_print(work.folder, sizeof(work.folder), "%.*s", (int)len, folder);
	fmt_print(path, sizeof(path), "%s/%d.sink", work.folder, (int)getpid());
	unlink(path);
	if (!store_map(&work.store)) {
		work_failed(errno, "no memory for the buffers of the process: %m");
		_exit(0); /* the host knows */
	}
	work_tell('p');
	work_introduce();
}

void freeze_capture(void)
{
	struct error err = {HALE_OK, ""};
	char path[PATH_MAX];
	struct image_params p = {.identity = {.job = "offload", .nranks = 1, .id = 1},
				 .path = path,
				 .mode = IMAGE_SYNC,
				 .written = on_written};
	uint64_t pause;

	if (!work.paused) {
		work_failed(EINVAL, "a process is captured while it is paused");
		return;
	}
	fmt_print(path, sizeof(path), "%s/%d.image", work.folder, (int)getpid());
	unlink(path);
	written = (struct image_result){.error = {HALE_ERR_STATE, "nothing was written"}};
	image_exclude_add((void *)ARENA_AT, work.store.size);
	switch (image_capture(&p, &pause, &err)) {
	case IMAGE_RESTORED:
		image_exclude_remove((void *)ARENA_AT);
		live_again();
		return;
	case IMAGE_CAPTURED:
		if (written.error.code == HALE_OK) {
			image_exclude_remove((void *)ARENA_AT);
			send_image(path);
			return;
		}
		err = written.error;
		break;
	default:
		break;
	}
	image_exclude_remove((void *)ARENA_AT);
	unlink(path);
	work_failed(EIO, "it can't be captured: %.350s", err.text);
}

void freeze_become(const char *image, const char *folder)
{
	struct error err = {HALE_OK, ""};
	char path[PATH_MAX];
	const char *paths[1] = {path};

	fmt_print(path, sizeof(path), "%s/%d.sink", folder, (int)getpid());
	if (rename(image, path) != 0)
		error_sys(&err, HALE_ERR_IMAGE_MISSING, "%s", image);
	else if (image_pass(folder, strlen(folder)) == HALE_OK)
		image_sink(paths, NULL, 1, IMAGE_FULL, &err);
	unlink(path);
	work_failed(EIO, "the process can't be restored: %.350s", err.text);
	_exit(0); /* the host knows */
}
