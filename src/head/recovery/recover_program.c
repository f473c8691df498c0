/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's file, as it was when the job began. Whoever builds it anew meanwhile replaces the
 * file, and the ranks that run keep the old one. A job that began again with the new one would be
 * another job, whose output follows that of the old one. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "head/head.h"
#include "image/files.h"

/* False: nothing can be known of it, so it counts as the same. */
static bool stamp(const struct head *h, struct file_stamp *s)
{
	int fd = open(h->program->path, O_RDONLY | O_CLOEXEC);
	bool known = fd >= 0 && image_file_stamp(fd, s) == HALE_OK;

	if (fd >= 0)
		close(fd);
	return known;
}

void recover_program_note(struct head *h)
{
	h->recovery.program_known = stamp(h, &h->recovery.program);
}

bool recover_program_changed(const struct head *h)
{
	struct file_stamp now;

	return h->recovery.program_known && stamp(h, &now) &&
	       !image_file_same(&h->recovery.program, &now);
}

void recover_program_put(const struct head *h, struct json_out *j)
{
	const struct file_stamp *s = &h->recovery.program;
	char id[2 * BUILD_ID_MAX + 1] = "";

	if (!h->recovery.program_known)
		return;
	for (uint32_t i = 0; i < s->build_id_len; i++)
		snprintf(id + (size_t)2 * i, 3, "%02x", s->build_id[i]);
	json_uint(j, "program_size", s->size);
	json_int(j, "program_mtime_ns", s->mtime_ns);
	json_string(j, "program_build_id", id);
}

void recover_program_restore(struct head *h, const struct json_value *doc)
{
	struct file_stamp *s = &h->recovery.program;
	const char *id = json_text(json_get(doc, "program_build_id"), NULL);
	unsigned byte;

	*s = (struct file_stamp){
	    .size = (uint64_t)json_number_int(json_get(doc, "program_size"), 0),
	    .mtime_ns = json_number_int(json_get(doc, "program_mtime_ns"), 0)};
	h->recovery.program_known = id != NULL;
	for (; id && s->build_id_len < BUILD_ID_MAX && sscanf(id, "%2x", &byte) == 1; id += 2)
		s->build_id[s->build_id_len++] = (unsigned char)byte;
}
