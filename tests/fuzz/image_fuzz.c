/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/image/[a-z]*.c src/image/fd/[a-z]*.c src/image/live/[a-z]*.c */
/* Whatever stands in an image file, reading, verifying, showing and consolidating it ends with a
 * status and a sentence. The bytes are a short form of an image: each frame's kind, lengths, table
 * and data, which are put on pages here with right checksums, under a header that is right about
 * length and count: a fuzzer would never guess those. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "image/frame.h"
#include "image/hash.h"
#include "image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_MAX = 1 << 20, PAGE = 4096 };

static uint8_t file[FILE_MAX];
static char out[64];

struct short_frame {
	uint8_t kind, compress, count, text; /* bytes behind the records */
	uint16_t data_len, raw_len;
};

/* Tables of whole records, mostly, or the readers would look no further than their length. */
static size_t record_len(unsigned kind)
{
	static const size_t len[FRAME_KINDS] = {[FRAME_THREADS] = sizeof(struct thread_record),
						[FRAME_MAPS] = sizeof(struct map_record),
						[FRAME_DESCRIPTORS] = sizeof(struct fd_record),
						[FRAME_SIGNALS] = sizeof(struct timer_record),
						[FRAME_PAGES] = sizeof(uint64_t),
						[FRAME_DROPS] = sizeof(uint64_t),
						[FRAME_LOCKS] = sizeof(struct lock_record)};
	return kind < FRAME_KINDS ? len[kind] : 0;
}

static size_t fixed_len(unsigned kind)
{
	return kind == FRAME_PROCESS   ? sizeof(struct process_record)
	       : kind == FRAME_SIGNALS ? sizeof(struct signals_record)
	       : kind == FRAME_CONTENT ? sizeof(struct content_record)
				       : 0;
}

/* Takes up to `len` bytes of the input; what is missing is zero. */
static void take(const uint8_t **data, size_t *size, void *to, size_t len)
{
	size_t n = *size < len ? *size : len;
	memset(to, 0, len);
	memcpy(to, *data, n);
	*data += n;
	*size -= n;
}

static void put(uint8_t *at, struct frame *f)
{
	f->table_sum = hash64(at + sizeof(*f), f->table_len);
	f->data_sum = hash64(at + frame_data_at(f), f->data_len);
	f->sum = hash64(f, offsetof(struct frame, sum));
	memcpy(at, f, sizeof(*f));
}

static size_t build(const uint8_t *data, size_t size)
{
	struct frame head = {.magic = FRAME_MAGIC,
			     .kind = FRAME_HEADER,
			     .count = 1,
			     .table_len = sizeof(struct image_header)};
	struct image_header h;
	memset(file, 0, sizeof(file));
	take(&data, &size, &h, sizeof(h));
	size_t at = frame_len(&head);
	h.frames = 1;
	while (size && at + 40 * PAGE < FILE_MAX) {
		struct short_frame s;
		take(&data, &size, &s, sizeof(s));
		unsigned kind = s.kind % (FRAME_KINDS + 1);
		struct frame f = {
		    .magic = FRAME_MAGIC,
		    .kind = (uint16_t)kind,
		    .compress = s.compress % 4,
		    .count = s.count,
		    .table_len = fixed_len(kind) + s.count * record_len(kind) + s.text,
		    .data_len = kind == FRAME_PAGES && !(s.compress % 4) ? s.raw_len % 4 * PAGE
									 : s.data_len % PAGE,
		};
		f.raw_len = s.compress % 4 ? s.raw_len % 4 * PAGE : f.data_len;
		uint8_t *table = file + at + sizeof(f);
		take(&data, &size, table, f.table_len);
		if (kind == FRAME_PROCESS) {
			struct process_record r;
			memcpy(&r, table, sizeof(r));
			r.cwd_len = s.text;
			r.auxv_len = 0;
			memcpy(table, &r, sizeof(r));
		}
		take(&data, &size, file + at + frame_data_at(&f), f.data_len);
		put(file + at, &f);
		at += frame_len(&f);
		h.frames++;
	}
	h.magic = IMAGE_MAGIC;
	h.version = IMAGE_VERSION;
	h.file_len = at;
	h.note_len = 0;
	memcpy(file + sizeof(head), &h, sizeof(h));
	put(file, &head);
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct image_info info;
	struct error err;
	size_t len = build(data, size);
	int fd = memfd_create("image", MFD_CLOEXEC);
	if (fd < 0 || write(fd, file, len) != (ssize_t)len)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(out, sizeof(out), "/dev/shm/hale-image-fuzz-%d", (int)getpid());
	const char *paths[] = {path};
	if (!freopen("/dev/null", "w", stdout))
		abort();
	image_read_info(path, &info, &err);
	image_verify(path, NULL, &err);
	image_show(path, false, &err);
	image_show(path, true, &err);
	image_consolidate(paths, 1, out, &err);
	unlink(out);
	close(fd);
	return 0;
}
