// SPDX-License-Identifier: BSD-3-Clause
/* The process that becomes another one while that one still runs. Rounds are put into the staging
 * area as they come; after the last, what remains is what a restart from files does too. Nothing
 * that comes is believed: lengths, addresses and checksums are looked at before they count. */
#include "image/live/live.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fmt.h"
#include "image/hash.h"
#include "image/live/live_offer.h"
#include "image/live/live_stage.h"
#include "image/live/live_wire.h"

enum { READ_VECS = 256, RUNS_MAX = 1024, NOWHERE = FRAME_DATA_MAX };

struct live_sink_receiver {
	struct sink *sink;
	bool answers;
	int beside; /* the process that has pages already; 0: none */
	struct live_stage stage;
	struct live_begin begin;
	struct live_round_record round; /* that is coming in */
	struct live_end end;
	uint32_t rounds; /* complete */
	uint64_t frames; /* of this round */
	XXH3_state_t *order;
	struct list contents; /* struct content */
	uint64_t *runs;	      /* of a PAGES frame */
	char *nowhere;	      /* pages that nobody wants */
	char *packed, *raw;   /* of compressed ones; NULL: none has come */
	struct iovec iov[READ_VECS];
};

static hale_status_t no_memory(struct error *err)
{
	return error_set(err, HALE_ERR_MEMORY, "no memory to build the copy of the process");
}

static hale_status_t damaged(struct live_sink_receiver *r, const char *what, struct error *err)
{
	return image_file_corrupt(&r->sink->file[0], what, err);
}

static hale_status_t lost(int rc, struct error *err)
{
	return error_set(err, HALE_ERR_LINK,
			 rc == -EPIPE
			     ? "the process that was to be copied has gone, or the "
			       "connection to it has broken"
			     : "nothing can be read from the process that is to be copied");
}

/* ---- reading ---- */

static hale_status_t read_head(struct live_sink_receiver *r, struct frame *f, struct error *err)
{
	int rc = live_read(r->sink->live_fd, f, sizeof(*f), 0);
	if (rc)
		return lost(rc, err);
	return live_head_good(f) ? HALE_OK : damaged(r, "head of a frame", err);
}

static hale_status_t read_table(struct live_sink_receiver *r, const struct frame *f, void *table,
				struct error *err)
{
	int rc = live_read(r->sink->live_fd, table, f->table_len, 0);
	if (rc)
		return lost(rc, err);
	return hash64(table, f->table_len) == f->table_sum
		   ? HALE_OK
		   : damaged(r, f->kind < FRAME_KINDS ? frame_kind_name(f->kind) : "word", err);
}

/* Of exactly that size. */
static hale_status_t read_record(struct live_sink_receiver *r, const struct frame *f, void *record,
				 size_t len, struct error *err)
{
	return f->table_len == len ? read_table(r, f, record, err) : damaged(r, "record", err);
}

static hale_status_t read_vectors(struct live_sink_receiver *r, struct iovec *iov, int count,
				  XXH3_state_t *sum, struct error *err)
{
	int from = 0;
	for (int i = 0; i < count;) {
		long k = sys(SYS_readv, r->sink->live_fd, iov + i, count - i);
		if (k == -EINTR)
			continue;
		if (k <= 0)
			return lost(k == 0 || k == -ECONNRESET ? -EPIPE : (int)k, err);
		while (i < count && (size_t)k >= iov[i].iov_len)
			k -= (long)iov[i++].iov_len;
		/* summed up while it is in the cache */
		for (; from < i; from++)
			XXH3_64bits_update(sum, iov[from].iov_base, iov[from].iov_len);
		if (i < count && k) {
			XXH3_64bits_update(sum, iov[i].iov_base, (size_t)k);
			iov[i].iov_base = (char *)iov[i].iov_base + k;
			iov[i].iov_len -= (size_t)k;
		}
	}
	return HALE_OK;
}

/* ---- pages ---- */

static hale_status_t check_runs(struct live_sink_receiver *r, const struct frame *f,
				const uint64_t *runs, struct error *err)
{
	const struct frame_at n = {.frame = *f, .table = runs};
	return image_file_check_runs(&r->sink->file[0], &n, err);
}

static hale_status_t take_packed(struct live_sink_receiver *r, const struct frame *f,
				 struct error *err)
{
	struct sink_cursor c = {.run = r->runs, .runs = f->count};
	const char *from;
	char *to;
	size_t map;
	if (!r->raw) {
		r->packed = arena_pages(&r->sink->arena, FRAME_DATA_MAX);
		r->raw = arena_pages(&r->sink->arena, FRAME_DATA_MAX);
	}
	if (!r->raw || !r->packed)
		return no_memory(err);
	int rc = live_read(r->sink->live_fd, r->packed, f->data_len, 0);
	if (rc)
		return lost(rc, err);
	if (hash64(r->packed, f->data_len) != f->data_sum ||
	    LZ4_decompress_safe(r->packed, r->raw, (int)f->data_len, FRAME_DATA_MAX) !=
		(int)f->raw_len)
		return damaged(r, "pages", err);
	from = r->raw;
	for (uint64_t len; (len = sink_next_stretch(r->sink, &c, ~0ull, &to, &map)) != 0;
	     from += len)
		if (to)
			memcpy(to, from, len);
	return HALE_OK;
}

static hale_status_t take_pages(struct live_sink_receiver *r, const struct frame *f,
				struct error *err)
{
	if (f->table_len > RUNS_MAX * sizeof(uint64_t))
		return damaged(r, "number of runs", err);
	hale_status_t rc = read_table(r, f, r->runs, err);
	if (rc == HALE_OK)
		rc = check_runs(r, f, r->runs, err);
	if (rc == HALE_OK && f->compress != IMAGE_PLAIN)
		return take_packed(r, f, err);
	struct sink_cursor c = {.run = r->runs, .runs = f->count};
	XXH3_state_t sum;
	XXH3_64bits_reset(&sum);
	for (bool more = true; more && rc == HALE_OK;) {
		uint64_t len = 0;
		int vecs = 0;
		char *to;
		size_t map;
		while (vecs < READ_VECS &&
		       (len = sink_next_stretch(r->sink, &c, NOWHERE, &to, &map)) != 0) {
			r->iov[vecs++] = (struct iovec){to ? to : r->nowhere, len};
			if (!to) /* as in load.c: a second one would be read over it */
				break;
		}
		more = len != 0;
		rc = read_vectors(r, r->iov, vecs, &sum, err);
	}
	if (rc == HALE_OK && XXH3_64bits_digest(&sum) != f->data_sum)
		return damaged(r, "pages", err);
	return rc;
}

/* ---- tables ---- */

/* Kept until the round's end, for image_file_tables. */
static hale_status_t take_table(struct live_sink_receiver *r, const struct frame *f,
				struct error *err)
{
	struct image_file *file = &r->sink->file[0];
	char *table = arena_alloc(&r->sink->arena, f->table_len + 1);
	struct frame_at *n = table ? list_add(&file->frames) : NULL;
	if (!n)
		return no_memory(err);
	n->frame = *f;
	hale_status_t rc = read_table(r, f, table, err);
	n->table = table;
	return rc;
}

static hale_status_t take_drops(struct live_sink_receiver *r, const struct frame *f,
				struct error *err)
{
	struct image_file *file = &r->sink->file[0];
	hale_status_t rc = take_table(r, f, err);
	if (rc != HALE_OK)
		return rc;
	const struct frame_at *n = list_at(&file->frames, file->frames.count - 1);
	rc = check_runs(r, f, n->table, err);
	if (rc == HALE_OK)
		sink_drop_pages(r->sink, n->table, f->count);
	return rc;
}

static hale_status_t take_locks(struct live_sink_receiver *r, const struct frame *f,
				struct error *err)
{
	struct image_file *file = &r->sink->file[0];
	hale_status_t rc = take_table(r, f, err);
	if (rc != HALE_OK)
		return rc;
	const struct frame_at *n = list_at(&file->frames, file->frames.count - 1);
	return sink_add_locks(r->sink, n->table, f->table_len) ? HALE_OK : no_memory(err);
}

static hale_status_t take_content(struct live_sink_receiver *r, const struct frame *f,
				  struct error *err)
{
	struct content *c = list_add(&r->contents);
	char *data = c ? arena_pages(&r->sink->arena, f->data_len + 1) : NULL;
	if (!data)
		return no_memory(err);
	hale_status_t rc = read_record(r, f, &c->record, sizeof(c->record), err);
	if (rc != HALE_OK)
		return rc;
	c->data = data;
	c->len = f->data_len;
	int failed = live_read(r->sink->live_fd, data, f->data_len, 0);
	if (failed)
		return lost(failed, err);
	return hash64(data, f->data_len) == f->data_sum ? HALE_OK : damaged(r, "content", err);
}

/* ---- the last round ---- */

/* The files are where the source left them, and others may have written to them since it stopped:
 * they are only opened, not set back. Files of a node that doesn't share the source's are other ones,
 * and are set back. A clone's (all) never are: its source goes on writing them. */
static void leave_files(struct sink *s, bool all)
{
	s->keep_files = all;
	for (size_t i = 0; i < s->t.fd_count; i++) {
		struct fd_record *f = (struct fd_record *)(uintptr_t)&s->t.fds[i];
		struct stat st = {0};
		if (f->kind != FD_FILE || sys(SYS_fstat, s->fds.temp[i], &st))
			continue;
		if (all || st.st_ino == f->inode)
			f->truncates = f->has_content = 0;
	}
}

/* Everything but memory is here, and the maps. */
static hale_status_t take_last_tables(struct live_sink_receiver *r, struct error *err)
{
	struct sink *s = r->sink;
	hale_status_t rc = image_file_tables(&s->file[0], &s->t, err);
	if (rc == HALE_OK)
		rc = sink_check_entry(s, err);
	if (rc == HALE_OK)
		rc = sink_check_kernel(s, s->t.process->region, s->t.process->vdso_sum, err);
	if (rc == HALE_OK)
		rc = sink_enter_folder(s, err);
	if (rc != HALE_OK)
		return rc;
	s->contents = r->contents.items;
	s->content_count = r->contents.count;
	rc = sink_open_descriptors(s, err);
	if (rc == HALE_OK)
		leave_files(s, r->begin.then == LIVE_THEN_GO_ON);
	return rc;
}

static hale_status_t take_maps(struct live_sink_receiver *r, const struct frame *f,
			       struct error *err)
{
	struct sink *s = r->sink;
	hale_status_t rc = take_table(r, f, err);
	if (rc == HALE_OK)
		rc = r->round.last ? take_last_tables(r, err)
				   : image_file_maps(&s->file[0], &s->t, err);
	if (rc == HALE_OK)
		rc = live_stage_maps(s, &r->stage, r->round.last, err);
	return rc == HALE_OK && r->beside && r->round.round == 0 ? beside_offer(s, r->beside, err)
								 : rc;
}

/* ---- a round ---- */

static hale_status_t begin_round(struct live_sink_receiver *r, const struct frame *f,
				 struct error *err)
{
	hale_status_t rc = read_record(r, f, &r->round, sizeof(r->round), err);
	if (rc != HALE_OK)
		return rc;
	if (r->round.round != r->rounds || (r->rounds == 0 && r->round.incremental))
		return damaged(r, "order of rounds", err);
	if (!r->round.incremental) {
		live_stage_clear(&r->stage);
		r->sink->locks.count = 0;
	}
	r->sink->t = (struct image_tables){0};
	list_init(&r->sink->file[0].frames, &r->sink->arena, sizeof(struct frame_at));
	r->frames = 0;
	XXH3_64bits_reset(r->order);
	return HALE_OK;
}

static hale_status_t end_round(struct live_sink_receiver *r, const struct frame *f,
			       struct error *err)
{
	char *table = arena_alloc(&r->sink->arena, f->table_len + 1);
	if (!table)
		return no_memory(err);
	hale_status_t rc = read_table(r, f, table, err);
	if (rc != HALE_OK)
		return rc;
	if (f->table_len < sizeof(r->end))
		return damaged(r, "end of a round", err);
	memcpy(&r->end, table, sizeof(r->end));
	if (r->end.round != r->round.round || r->end.frames != r->frames || !r->sink->t.map_count ||
	    r->end.checksum != XXH3_64bits_digest(r->order))
		return damaged(r, "a frame is missing", err);
	r->rounds++;
	return HALE_OK;
}

/* In the last round only, but for what all rounds have. */
static bool is_in_order(const struct live_sink_receiver *r, unsigned kind)
{
	bool has_maps = r->sink->t.map_count != 0;
	switch (kind) {
	case FRAME_MAPS:
		return !has_maps;
	case FRAME_PAGES:
	case FRAME_LOCKS:
		return has_maps;
	case FRAME_DROPS:
		return has_maps && (r->round.incremental || r->beside);
	default:
		return kind < FRAME_KINDS && r->round.last && !has_maps;
	}
}

static hale_status_t take_frame(struct live_sink_receiver *r, const struct frame *f,
				struct error *err)
{
	r->frames++;
	XXH3_64bits_update(r->order, f, sizeof(*f));
	if (!is_in_order(r, f->kind))
		return damaged(r, "order of frames", err);
	switch (f->kind) {
	case FRAME_MAPS:
		return take_maps(r, f, err);
	case FRAME_PAGES:
		return take_pages(r, f, err);
	case FRAME_DROPS:
		return take_drops(r, f, err);
	case FRAME_LOCKS:
		return take_locks(r, f, err);
	case FRAME_CONTENT:
		return take_content(r, f, err);
	default:
		return take_table(r, f, err);
	}
}

static hale_status_t take_round(struct live_sink_receiver *r, struct error *err)
{
	struct frame f;
	hale_status_t rc = read_head(r, &f, err);
	if (rc == HALE_OK && f.kind != LIVE_ROUND)
		return damaged(r, "begin of a round", err);
	if (rc == HALE_OK)
		rc = begin_round(r, &f, err);
	while (rc == HALE_OK && (rc = read_head(r, &f, err)) == HALE_OK) {
		if (f.kind == LIVE_END)
			return end_round(r, &f, err);
		rc = take_frame(r, &f, err);
	}
	return rc;
}

/* ---- begin and end ---- */

static uint64_t available_memory(void)
{
	char text[1024];
	uint64_t kib = 0;
	if (sys_read_small("/proc/meminfo", text, sizeof(text)) <= 0)
		return ~0ull;
	const char *p = strstr(text, "MemAvailable:");
	if (!p)
		return ~0ull;
	for (p += 13; *p == ' '; p++)
		;
	for (; *p >= '0' && *p <= '9'; p++)
		kib = kib * 10 + (uint64_t)(*p - '0');
	return kib << 10;
}

static hale_status_t check_begin(struct live_sink_receiver *r, struct error *err)
{
	struct sink *s = r->sink;
	const struct live_begin *b = &r->begin;
	if (b->version != LIVE_VERSION || b->header.version != IMAGE_VERSION)
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "the process that is to be copied runs with Hale's format %u.%u, "
				 "here it is %u.%u: use the same Hale on both nodes",
				 b->version, b->header.version, LIVE_VERSION, IMAGE_VERSION);
	s->file[0].header = b->header;
	s->file[0].header.program[sizeof(b->header.program) - 1] = 0;
	hale_status_t rc = sink_check_program(s, err);
	if (rc == HALE_OK)
		rc = sink_check_kernel(s, b->region, b->vdso_sum, err);
	uint64_t available = available_memory();
	if (rc == HALE_OK && b->resident > available)
		return error_set(err, HALE_ERR_MEMORY,
				 "the process has %lu MiB of memory, and this node has %lu MiB "
				 "left: free some, or choose another node",
				 (unsigned long)(b->resident >> 20),
				 (unsigned long)(available >> 20));
	return rc;
}

static hale_status_t take_begin(struct live_sink_receiver *r, struct error *err)
{
	struct frame f;
	hale_status_t rc = read_head(r, &f, err);
	if (rc != HALE_OK)
		return rc;
	if (f.kind != LIVE_BEGIN)
		return damaged(r, "no begin", err);
	/* another version's may be longer: only the first words are alike for ever */
	if (f.table_len < 16 || f.table_len > FRAME_DATA_MAX)
		return damaged(r, "begin", err);
	char *table = arena_alloc(&r->sink->arena, f.table_len);
	if (!table)
		return no_memory(err);
	rc = read_table(r, &f, table, err);
	if (rc != HALE_OK)
		return rc;
	memcpy(&r->begin, table, f.table_len < sizeof(r->begin) ? f.table_len : sizeof(r->begin));
	if (r->begin.magic != LIVE_MAGIC ||
	    (r->begin.version == LIVE_VERSION && f.table_len != sizeof(r->begin)))
		return damaged(r, "begin", err);
	return check_begin(r, err);
}

/* From WHOLE on nothing but COMMIT lets this process become the other one. */
static hale_status_t await_commit(struct live_sink_receiver *r, struct error *err)
{
	struct live_word word;
	int kind = live_listen(r->sink->live_fd, &word, 0);
	if (kind == LIVE_COMMIT)
		return HALE_OK;
	return kind == -EPROTO ? damaged(r, "word", err) : lost(kind < 0 ? kind : -EPIPE, err);
}

/* To the source, if it isn't a file. That it has gone is noticed when the next frame is read. */
static void say(const struct live_sink_receiver *r, enum live_kind kind, int code)
{
	if (r->answers)
		live_say(r->sink->live_fd, kind, (hale_status_t)code, NULL);
}

static hale_status_t receive(struct live_sink_receiver *r, struct error *err)
{
	struct sink *s = r->sink;
	hale_status_t rc = live_stage_init(s, &r->stage, err);
	if (rc == HALE_OK)
		rc = take_begin(r, err);
	if (rc == HALE_OK)
		say(r, LIVE_ACCEPT, r->beside ? LIVE_HAS_SOME : 0);
	while (rc == HALE_OK && !(r->rounds && r->round.last))
		rc = take_round(r, err);
	if (rc == HALE_OK)
		rc = sink_stage_protect(s, err);
	if (rc == HALE_OK)
		rc = sink_make_plan(s, err);
	if (rc == HALE_OK)
		say(r, LIVE_WHOLE, 0);
	if (rc == HALE_OK)
		rc = await_commit(r, err);
	return rc == HALE_OK ? sink_become(s, err) : rc;
}

static struct live_sink_receiver *receiver_create(struct sink *s, int fd, int beside)
{
	struct live_sink_receiver *r = arena_alloc(&s->arena, sizeof(*r));
	if (!r)
		return NULL;
	r->sink = s;
	r->answers = live_answers(fd);
	r->beside = r->answers ? beside : 0;
	r->order = arena_alloc(&s->arena, sizeof(*r->order));
	r->runs = arena_alloc(&s->arena, RUNS_MAX * sizeof(*r->runs));
	r->nowhere = arena_pages(&s->arena, NOWHERE);
	list_init(&r->contents, &s->arena, sizeof(struct content));
	return r->order && r->runs && r->nowhere ? r : NULL;
}

hale_status_t image_sink_live(int fd, int beside, struct error *err)
{
	struct error local;
	if (!err)
		err = &local;
	struct sink *s = sink_create(err);
	struct live_sink_receiver *r = s ? receiver_create(s, fd, beside) : NULL;
	if (!r) {
		live_say(fd, LIVE_REFUSED, HALE_ERR_MEMORY, "no memory to build the copy");
		return no_memory(err);
	}
	s->live_fd = fd;
	s->how = IMAGE_FULL;
	s->files = 1;
	s->file[0] = (struct image_file){
	    .path = "the running process", .fd = -1, .arena = &s->arena, .live = true};
	image_fd_own(fd);
	hale_status_t rc = receive(r, err);
	if (r->answers)
		live_say(s->live_fd, LIVE_REFUSED, rc, err->text);
	image_fd_disown(s->live_fd);
	sys(SYS_close, s->live_fd);
	sink_destroy(s);
	return rc;
}
