// SPDX-License-Identifier: BSD-3-Clause
#include "image/stream.h"

#include <errno.h>
#include <string.h>

#include "image/hash.h"

enum { ALIGN_FROM = 2 << 20 };

struct frame_note {
	uint64_t at;
	struct frame frame;
};

const char *frame_kind_name(unsigned kind)
{
	static const char *const name[FRAME_KINDS] = {[FRAME_HEADER] = "header",
						      [FRAME_PROCESS] = "process",
						      [FRAME_SIGNALS] = "signals",
						      [FRAME_THREADS] = "threads",
						      [FRAME_MAPS] = "maps",
						      [FRAME_DESCRIPTORS] = "descriptors",
						      [FRAME_CONTENT] = "content",
						      [FRAME_PAGES] = "pages",
						      [FRAME_DROPS] = "drops",
						      [FRAME_LOCKS] = "locks",
						      [FRAME_SCHEDULING] = "scheduling",
						      [FRAME_FILE_LOCKS] = "file locks",
						      [FRAME_GUARDS] = "guard regions",
						      [FRAME_ADVICE] = "advice",
						      [FRAME_OWNERS] = "owners",
						      [FRAME_IPC] = "system v",
						      [FRAME_TREE] = "child processes",
						      [FRAME_TREE_PART] = "child process"};
	return kind < FRAME_KINDS && name[kind] ? name[kind] : "unknown";
}

void image_stream_lock(struct image_stream *s)
{
	while (atomic_exchange(&s->lock, 1))
		sys(SYS_sched_yield);
}

void image_stream_unlock(struct image_stream *s)
{
	atomic_store(&s->lock, 0);
}

void image_stream_fail(struct image_stream *s, int error)
{
	int none = 0;
	atomic_compare_exchange_strong(&s->error, &none, error);
}

bool image_stream_init(struct image_stream *s, struct arena *a, int fd, size_t note_len)
{
	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->root = -1;
	s->arena = a;
	s->header_len = frame_pad(sizeof(struct frame) + sizeof(struct image_header) + note_len);
	atomic_store(&s->end, s->header_len);
	list_init(&s->notes, a, sizeof(struct frame_note));
	s->header_page = arena_pages(a, s->header_len);
	return s->header_page != NULL;
}

bool image_stream_init_live(struct image_stream *s, struct arena *a, const struct live_round *live)
{
	memset(s, 0, sizeof(*s));
	s->fd = live->fd;
	s->root = -1;
	s->live = live;
	s->arena = a;
	s->order = arena_alloc(a, sizeof(*s->order));
	if (!s->order)
		return false;
	XXH3_64bits_reset(s->order);
	return true;
}

void image_stream_send(struct image_stream *s, struct frame *f, const void *table,
		       struct iovec *iov, int vecs)
{
	live_sign(f, table);
	XXH3_64bits_update(s->order, f, sizeof(*f));
	s->frames++;
	s->sent += sizeof(*f) + f->table_len + f->data_len;
	iov[0] = (struct iovec){f, sizeof(*f)};
	iov[1] = (struct iovec){(void *)(uintptr_t)table, f->table_len};
	int rc = image_stream_orphaned(s) ? 0 : live_write(s->fd, iov, 2 + vecs);
	if (rc)
		image_stream_fail(s, rc);
}

uint64_t image_stream_claim(struct image_stream *s, struct frame *f)
{
	image_stream_lock(s);
	uint64_t at = atomic_load(&s->end), end = at + frame_len(f);
	/* a hole costs nothing, but many of them make a small image look large */
	if (f->kind == FRAME_MAPS || f->data_len >= ALIGN_FROM)
		f->pad = (uint32_t)((ALIGN_UP(end, FRAME_ALIGN) - end) / HALE_PAGE);
	atomic_store(&s->end, at + frame_len(f));
	image_stream_unlock(s);
	return at;
}

/* Writes the frame's own struct and its table; the data are there already. */
void image_stream_seal(struct image_stream *s, struct frame *f, uint64_t at, const void *table)
{
	static const char zero[HALE_PAGE];
	uint64_t head = sizeof(*f) + f->table_len;
	live_sign(f, table);
	struct iovec iov[3] = {{f, sizeof(*f)},
			       {(void *)(uintptr_t)table, f->table_len},
			       {(void *)(uintptr_t)zero, frame_pad(head) - head}};
	int rc = sys_writev_at(s->fd, iov, 3, at);
	if (rc)
		image_stream_fail(s, rc);
	uint64_t data_end = at + frame_data_at(f) + f->data_len;
	rc = sys_write_at(s->fd, zero, frame_pad(f->data_len) - f->data_len, data_end);
	if (rc)
		image_stream_fail(s, rc);
	image_stream_lock(s);
	struct frame_note *note = list_add(&s->notes);
	if (note)
		*note = (struct frame_note){at, *f};
	image_stream_unlock(s);
	if (!note)
		image_stream_fail(s, -ENOMEM);
}

void image_stream_put(struct image_stream *s, enum frame_kind kind, uint32_t count,
		      const void *table, size_t table_len, const void *data, size_t data_len)
{
	struct frame f = {.kind = (uint16_t)kind,
			  .count = count,
			  .table_len = table_len,
			  .data_len = data_len,
			  .raw_len = data_len,
			  .data_sum = hash64(data, data_len)};
	if (s->live) {
		struct iovec iov[3] = {[2] = {(void *)(uintptr_t)data, data_len}};
		image_stream_send(s, &f, table, iov, 1);
		return;
	}
	uint64_t at = image_stream_claim(s, &f);
	int rc = sys_write_at(s->fd, data, data_len, at + frame_data_at(&f));
	if (rc)
		image_stream_fail(s, rc);
	image_stream_seal(s, &f, at, table);
}

/* Nearly sorted already: writers claim places in order and finish soon after. */
static void sort_notes(struct list *notes)
{
	struct frame_note *n = notes->items;
	for (size_t i = 1; i < notes->count; i++) {
		struct frame_note x = n[i];
		size_t j = i;
		for (; j > 0 && n[j - 1].at > x.at; j--)
			n[j] = n[j - 1];
		n[j] = x;
	}
}

static void finish_live(struct image_stream *s, struct image_header *header, const void *note)
{
	bool last = s->live->last;
	size_t note_len = last ? header->note_len : 0, len = sizeof(struct live_end) + note_len;
	char *table = arena_alloc(s->arena, len);
	if (!table) {
		image_stream_fail(s, -ENOMEM);
		return;
	}
	s->checksum = XXH3_64bits_digest(s->order);
	struct live_end end = {.frames = s->frames,
			       .checksum = s->checksum,
			       .pages = header->pages,
			       .round = s->live->round,
			       .note_len = (uint32_t)note_len};
	memcpy(table, &end, sizeof(end));
	if (note_len)
		memcpy(table + sizeof(end), note, note_len);
	header->file_len = s->sent;
	int rc = image_stream_orphaned(s) ? 0 : live_send(s->fd, LIVE_END, table, len);
	if (rc)
		image_stream_fail(s, rc);
}

void image_stream_finish(struct image_stream *s, struct image_header *header, const void *note)
{
	if (s->live) {
		finish_live(s, header, note);
		return;
	}
	XXH3_state_t sum;
	char *page = s->header_page;
	header->magic = IMAGE_MAGIC;
	header->version = IMAGE_VERSION;
	header->file_len = atomic_load(&s->end);
	header->frames = s->notes.count + 1;
	struct frame f = {.kind = FRAME_HEADER,
			  .count = 1,
			  .table_len = sizeof(*header) + header->note_len,
			  .data_sum = hash64(NULL, 0)};
	memcpy(page + sizeof(f), header, sizeof(*header));
	if (header->note_len)
		memcpy(page + sizeof(f) + sizeof(*header), note, header->note_len);
	live_sign(&f, page + sizeof(f));
	memcpy(page, &f, sizeof(f));
	if (image_stream_orphaned(s))
		return;
	int rc = (int)sys(SYS_ftruncate, s->fd, header->file_len);
	if (!rc)
		rc = sys_write_at(s->fd, page, s->header_len, 0);
	if (rc)
		image_stream_fail(s, rc);

	sort_notes(&s->notes);
	XXH3_64bits_reset(&sum);
	XXH3_64bits_update(&sum, &f, sizeof(f));
	for (size_t i = 0; i < s->notes.count; i++) {
		const struct frame_note *n = list_at(&s->notes, i);
		XXH3_64bits_update(&sum, &n->frame, sizeof(n->frame));
	}
	s->checksum = XXH3_64bits_digest(&sum);
}
