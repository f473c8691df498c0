/* SPDX-License-Identifier: BSD-3-Clause */
/* hale-offload: a device process. The daemon starts it with the host's connection as descriptor 3,
 * its own pipe as 4. */
#include <stdlib.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "image/image.h"
#include "offload/device/work.h"

/* Before main, and before other libraries have started threads: an image is rebuilt here. */
__attribute__((constructor)) static void offload_start(void)
{
	const char *image = getenv("HALE_OFFLOAD_IMAGE"), *folder = getenv("HALE_OFFLOAD_FOLDER");
	int now = personality(0xffffffff);

	if (!folder)
		return;
	/* what is to be captured lies where its image will */
	if (!(now & ADDR_NO_RANDOMIZE) &&
	    personality((unsigned long)now | ADDR_NO_RANDOMIZE) != -1) {
		char *argv[] = {"hale-offload", NULL};

		execv("/proc/self/exe", argv);
	}
	log_init_from_env();
	image_fd_own(WORK_FD);
	image_fd_own(WORK_DAEMON);
	if (image)
		freeze_become(image, folder);
	image_init(NULL, NULL);
}

int main(void)
{
	const char *folder = getenv("HALE_OFFLOAD_FOLDER"), *object = getenv("HALE_OFFLOAD_OBJECT");
	const char *memory = getenv("HALE_OFFLOAD_MEMORY");
	uint64_t bytes;

	if (!folder || !object || !memory || !units_parse_bytes(memory, &bytes)) {
		log_warn("hale-offload is started by `hale device serve`");
		return EXIT_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	snprintf(work.folder, sizeof(work.folder), "%s", folder);
	work_run(object, bytes);
}
