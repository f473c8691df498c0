/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/own.h"
#include "image/image.h"
#include "store/store.h"

hale_status_t store_verify_part(const char *folder, const struct store_manifest *m, uint32_t rank,
				bool deep, struct error *err)
{
	const struct store_part *p = &m->parts[rank];
	char path[PATH_MAX];

	if (!p->file[0] || p->local)
		return HALE_OK;
	snprintf(path, sizeof(path), "%s/%s", folder, p->file);
	if (m->degree > 1)
		rank %= m->nranks / m->degree;
	return store_verify_file(path, rank, p->bytes, p->checksum, deep, err);
}

hale_status_t store_verify_file(const char *path, uint32_t rank, uint64_t bytes, uint64_t checksum,
				bool deep, struct error *err)
{
	struct stat st;
	uint64_t found;
	struct error why = {HALE_OK, ""};
	int fd = own_open(path, O_RDONLY, &why);

	if (fd < 0 || fstat(fd, &st) != 0) {
		if (fd >= 0)
			close(fd);
		return error_set(err, fd < 0 ? why.code : HALE_ERR_IMAGE_MISSING,
				 "the image of rank %u: %.400s", rank, why.text);
	}
	close(fd);
	if ((uint64_t)st.st_size != bytes)
		return error_set(err, HALE_ERR_IMAGE_TORN,
				 "the image of rank %u, '%s', has %" PRIu64 " of %" PRIu64 " bytes",
				 rank, path, (uint64_t)st.st_size, bytes);
	if (!deep)
		return HALE_OK;
	hale_status_t status = image_verify(path, &found, err);
	if (status == HALE_OK && found != checksum)
		return error_set(err, HALE_ERR_IMAGE_CORRUPT,
				 "the image of rank %u, '%s', is not the one that was written: its "
				 "checksum differs from the manifest's",
				 rank, path);
	return status;
}
