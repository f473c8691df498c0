// SPDX-License-Identifier: BSD-3-Clause
/* Objects of the kernel that a program makes. They are no files, belong to this machine and this
 * namespace, and outlive processes. */
#include <string.h>

#include "base/fmt.h"
#include "image/sys.h"
#include "journal/private.h"

static void kernel_made(const char *path, int key)
{
	struct stat st = {0};
	char boot[64] = "";
	int saved;

	if (!journal_begin(path, &saved))
		return;
	sys(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/ipc", &st, 0);
	sys_read_small(JOURNAL_BOOT, boot, sizeof(boot));
	const struct journal_file f = {.device = st.st_ino,
				       .inode = (uint32_t)key,
				       .born_ns = journal_boot_number(boot),
				       .modified_ns = -1};
	journal_write(JOURNAL_IPC, path, NULL, &f);
	journal_end(saved);
}

void journal_ipc_made(int kind, int id, int key)
{
	char path[64];

	fmt_print(path, sizeof(path), "/%d/%d", kind, id);
	kernel_made(path, key);
}

void journal_queue_made(const char *name)
{
	char path[300];

	fmt_print(path, sizeof(path), "/%d/%s", JOURNAL_IPC_QUEUE,
		  name && *name == '/' ? name + 1 : "");
	kernel_made(path, 0);
}
