/* SPDX-License-Identifier: BSD-3-Clause */
/* CR: copies of named data, in memory, or in files without a name in the folder of
 * HALE_PROTECT=ckpt=DIR. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"
#include "protect/protect.h"

struct hale_kept {
	void *base, *copy;
	size_t bytes;
	bool in_file;
	struct sums sums; /* the hash of the copy */
};

static void *file_map(const char *folder, size_t bytes)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	void *p = MAP_FAILED;

	/* allocated now, so that a full disk is a sentence here and no SIGBUS later */
	if (fd >= 0 && (errno = posix_fallocate(fd, 0, (off_t)bytes)) == 0)
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		protect_die(HALE_EXIT_UNRECOVERABLE,
			    "can't keep a copy of %zu bytes in %s: %s. Give another folder in "
			    "HALE_PROTECT=ckpt=DIR, or none for copies in memory",
			    bytes, folder, strerror(errno));
	close(fd);
	return p;
}

static void kept_drop(struct hale_kept *k)
{
	if (k->in_file)
		munmap(k->copy, k->bytes);
	else
		free(k->copy);
	k->copy = NULL;
}

void hale_create_ckpt(struct hale_copy *c, const void *base, size_t bytes)
{
	struct hale_kept *k = c->kept;
	const char *folder;

	protect_start();
	folder = protect_setting("ckpt=");
	if (!k)
		k = c->kept = calloc(1, sizeof *k);
	if (k && (k->bytes != bytes || !k->copy)) {
		if (k->copy)
			kept_drop(k);
		k->bytes = bytes;
		k->in_file = folder && bytes;
		k->copy = k->in_file ? file_map(folder, bytes) : malloc(bytes ? bytes : 1);
	}
	if (!k || !k->copy)
		protect_die(HALE_EXIT_UNRECOVERABLE,
			    "no memory for a copy of %zu bytes; HALE_PROTECT=ckpt=DIR keeps copies "
			    "in files",
			    bytes);
	k->base = (void *)(uintptr_t)base;
	memcpy(k->copy, base, bytes);
	sums_take(&k->sums, k->copy, bytes, false); /* no words, no memory */
}

bool hale_restore(struct hale_copy *c)
{
	struct hale_kept *k = c->kept;

	if (!k || !k->copy || sums_verify(&k->sums, k->copy) != SUMS_RIGHT)
		return false;
	memcpy(k->base, k->copy, k->bytes);
	return true;
}

void hale_copy_forget(struct hale_copy *c)
{
	if (c->kept) {
		kept_drop(c->kept);
		free(c->kept);
	}
	c->kept = NULL;
}
