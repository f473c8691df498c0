/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/image/[a-z]*.c src/image/fd/[a-z]*.c src/image/live/[a-z]*.c */
/* What comes to a process that is to become another one while that still runs: whatever it is, the
 * sink refuses it with a sentence, and has lost nothing. Frames get right checksums, rounds right
 * numbers and ends, and mappings lie where the ones before did, or the reader would look no
 * further; then a few bytes of each change. COMMIT is never sent. And words to the source, as they
 * come. */
#include "fuzz.h"
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "image/engine.h"
#include "image/frame.h"
#include "image/hash.h"
#include "image/image.h"
#include "image/live/live.h"
#include "image/live/live_wire.h"

enum {
	PAGE = 4096,
	TABLE_MAX = 1 << 16,
	STREAM_MAX = 4 << 20,
	MAPS_MAX = 6,
	FDS_MAX = 6,
	RUNS = 8,
	ROUNDS = 4,
	LOW_FDS = 64,
};

static struct input in;
static char folder[64];
static int folder_fd, home_fd;
static struct live_begin right; /* as this process would send it */

/* ---- the stream ---- */

static uint8_t stream[STREAM_MAX], table[TABLE_MAX], data[64 * PAGE];
static size_t stream_len;
static XXH3_state_t *order;
static uint64_t frames;

static void out(const void *bytes, size_t len)
{
	if (len > STREAM_MAX - stream_len)
		len = STREAM_MAX - stream_len;
	memcpy(stream + stream_len, bytes, len);
	stream_len += len;
}

/* What is in `table`, and data; most often with all that is right about it. */
static void put(unsigned kind, uint32_t count, size_t len, size_t data_len)
{
	struct frame f = {.kind = (uint16_t)kind,
			  .count = count,
			  .table_len = len,
			  .data_len = data_len,
			  .raw_len = data_len};
	uint8_t how = input_byte(&in);

	if (how % 4 == 1 && len)
		input_bend(&in, table, len);
	if (how % 16 == 2)
		input_bend(&in, &f, offsetof(struct frame, table_sum));
	if (f.kind == LIVE_COMMIT)
		f.kind = LIVE_WHOLE;
	if (data_len)
		memset(data, how, data_len);
	f.data_sum = hash64(data, data_len);
	f.magic = FRAME_MAGIC;
	f.table_sum = hash64(table, len);
	if (how % 32 == 3)
		f.table_sum++;
	f.sum = hash64(&f, offsetof(struct frame, sum));
	if (kind < FRAME_KINDS) {
		frames++;
		XXH3_64bits_update(order, &f, sizeof(f));
	}
	out(&f, sizeof(f));
	out(table, len);
	out(data, data_len);
}

static void put_record(unsigned kind, const void *record, size_t len)
{
	memcpy(table, record, len);
	put(kind, 1, len, 0);
}

/* ---- what a process consists of ---- */

static struct map_record map[MAPS_MAX];
static uint32_t maps;

/* Near the ones of the round before, as in a process that maps, unmaps and grows. */
static void put_maps(void)
{
	static const char *const places[] = {"/proc/self/exe", "file", "nothing", "/dev/null"};
	char text[64] = "";
	uint32_t text_len = 0;
	uint64_t at = 0x10000000;

	maps = 1 + input_byte(&in) % MAPS_MAX;
	for (uint32_t i = 0; i < maps; i++) {
		uint8_t kind = input_byte(&in);
		struct map_record *m = &map[i];

		at += (uint64_t)(input_byte(&in) % 8) * PAGE;
		if (kind & 0x40)
			at += 1ull << (28 + kind % 16);
		*m = (struct map_record){.start = at,
					 .kind = 1 + kind % 4,
					 .prot = input_byte(&in) % 8,
					 .flags = input_byte(&in) & ~MAP_FLAG_LOCKED,
					 .inode = kind % 3,
					 .pages = input_byte(&in) % 4};
		at += (1 + (uint64_t)(input_byte(&in) % 16)) * PAGE;
		m->end = at;
		if (m->kind == MAP_KIND_FILE || m->kind == MAP_KIND_SHARED_FILE) {
			const char *path = places[input_byte(&in) % 4];

			m->path_offset = text_len;
			m->path_len = (uint32_t)strlen(path) + 1;
			if (text_len + m->path_len > sizeof(text))
				m->path_offset = 0;
			else
				memcpy(text + text_len, path, m->path_len), text_len += m->path_len;
			m->stamp = right.header.program_stamp;
		}
	}
	memcpy(table, map, maps * sizeof(*map));
	memcpy(table + maps * sizeof(*map), text, sizeof(text));
	put(FRAME_MAPS, maps, maps * sizeof(*map) + sizeof(text), 0);
}

static uint64_t some_page(void)
{
	const struct map_record *m = maps ? &map[input_byte(&in) % maps] : &map[0];
	uint64_t pages = (m->end - m->start) / PAGE;

	return m->start + (pages ? input_byte(&in) % (pages + 1) : 0) * PAGE;
}

static void put_pages(unsigned kind)
{
	uint32_t runs = 1 + input_byte(&in) % RUNS;
	size_t pages = 0;

	for (uint32_t i = 0; i < runs; i++) {
		uint64_t n = 1 + input_byte(&in) % 8, run = run_make(some_page(), n);

		pages += n;
		memcpy(table + i * sizeof(run), &run, sizeof(run));
	}
	put(kind, runs, runs * sizeof(uint64_t), kind == FRAME_PAGES ? pages * PAGE : 0);
}

static void put_locks(void)
{
	struct lock_record r = {.address = some_page() + input_byte(&in) * 4ull, .tid = 1};

	put_record(FRAME_LOCKS, &r, sizeof(r));
}

static void put_fds(void)
{
	static const char *const places[] = {"file", "/dev/null", "gone", "/memfd:shared", "."};
	struct fd_record fd[FDS_MAX];
	char text[256] = "";
	uint32_t count = input_byte(&in) % FDS_MAX, text_len = 0;

	for (uint32_t i = 0; i < count; i++) {
		const char *path = places[input_byte(&in) % 5];
		struct fd_record *r = &fd[i];

		*r = (struct fd_record){
		    .fd = input_byte(&in) % 32,
		    .same_as = i && input_byte(&in) % 8 == 0 ? (int32_t)(input_byte(&in) % i) : -1,
		    .kind = 1 + input_byte(&in) % FD_BROKER,
		    .open_flags = input_byte(&in) % 4,
		    .mode = 0100600,
		    .inode = input_byte(&in) % 4,
		    .a = input_byte(&in) % 4,
		    .b = input_byte(&in) % 3,
		    .size = input_byte(&in),
		    .truncates = input_byte(&in) % 2,
		    .has_content = input_byte(&in) % 2,
		    .text_offset = text_len,
		    .text_len = (uint32_t)strlen(path) + 1};
		if (r->kind == FD_EPOLL) {
			struct epoll_record e = {.fd = input_byte(&in) % 32, .events = 1};

			r->a = 1;
			r->text_len = sizeof(e);
			memcpy(text + text_len, &e, sizeof(e));
		} else {
			memcpy(text + text_len, path, r->text_len);
		}
		text_len += r->text_len;
	}
	memcpy(table, fd, count * sizeof(*fd));
	memcpy(table + count * sizeof(*fd), text, text_len);
	put(FRAME_DESCRIPTORS, count, count * sizeof(*fd) + text_len, 0);
}

static void put_content(void)
{
	struct content_record r = {.fd_index = input_byte(&in) % FDS_MAX - 1,
				   .map_index = input_byte(&in) % MAPS_MAX - 1,
				   .offset = input_byte(&in),
				   .total = input_byte(&in)};

	memcpy(table, &r, sizeof(r));
	put(FRAME_CONTENT, 1, sizeof(r), (size_t)input_byte(&in) * (input_byte(&in) % 2 ? 512 : 1));
}

static void put_process(void)
{
	struct process_record p = {.pid = 1,
				   .resume = maps ? map[0].start : 0,
				   .vdso_sum = right.vdso_sum,
				   .cwd_len = 2,
				   .auxv_len = 16};

	memcpy(p.region, right.region, sizeof(p.region));
	/* the mappings come last: where the first one will lie */
	p.resume = 0x10000000 + input_byte(&in) % 4 * PAGE;
	memset(table, 0, sizeof(p) + 32);
	memcpy(table, &p, sizeof(p));
	table[sizeof(p)] = '.';
	put(FRAME_PROCESS, 1, sizeof(p) + p.cwd_len + p.auxv_len, 0);
}

static void put_threads(void)
{
	static struct thread_record t[2];
	uint32_t count = 1 + input_byte(&in) % 2;

	t[0] = (struct thread_record){.tid = 1, .leader = 1, .coordinator = 1};
	t[1] = (struct thread_record){.tid = 2};
	memcpy(table, t, sizeof(t));
	put(FRAME_THREADS, count, count * sizeof(*t), 0);
}

static void put_signals(void)
{
	uint32_t count = input_byte(&in) % 3;
	size_t len = sizeof(struct signals_record) + count * sizeof(struct timer_record);

	memset(table, 0, len);
	put(FRAME_SIGNALS, count, len, 0);
}

/* ---- rounds ---- */

static void put_memory(bool incremental)
{
	for (int i = input_byte(&in) % 4; i > 0; i--) {
		switch (input_byte(&in) % 4) {
		case 0:
			put_locks();
			break;
		case 1:
			if (incremental)
				put_pages(FRAME_DROPS);
			break;
		default:
			put_pages(FRAME_PAGES);
		}
	}
}

static void put_round(uint32_t number, bool last)
{
	struct live_round_record r = {
	    .round = number, .incremental = number && input_byte(&in) % 4, .last = last};
	struct live_end end = {.round = number};

	put_record(LIVE_ROUND, &r, sizeof(r));
	frames = 0;
	XXH3_64bits_reset(order);
	if (last) {
		put_process();
		put_signals();
		put_threads();
		put_fds();
		for (int i = input_byte(&in) % 4; i > 0; i--)
			put_content();
	}
	put_maps();
	put_memory(r.incremental);
	end.frames = frames;
	end.checksum = XXH3_64bits_digest(order);
	put_record(LIVE_END, &end, sizeof(end));
}

static void build(void)
{
	uint32_t rounds = 1 + input_byte(&in) % ROUNDS;
	struct live_begin begin = right;

	stream_len = 0;
	maps = 0;
	begin.then = input_byte(&in) % 2 ? LIVE_THEN_GO_ON : LIVE_THEN_END;
	put_record(LIVE_BEGIN, &begin, sizeof(begin));
	for (uint32_t i = 0; i < rounds; i++)
		put_round(i, i + 1 == rounds);
	if (input_byte(&in) % 2) { /* instead of COMMIT */
		struct live_word word = {.code = input_byte(&in)};

		put_record(input_byte(&in) % 2 ? LIVE_REFUSED : LIVE_DEAD, &word, sizeof(word));
	}
	if (input_byte(&in) % 8 == 0)
		stream_len -= input_byte(&in) % stream_len;
}

/* ---- what they are given to ---- */

static uint64_t low_fds(void)
{
	uint64_t open = 0;

	for (int fd = 0; fd < LOW_FDS; fd++)
		open |= (uint64_t)(fcntl(fd, F_GETFD) >= 0) << fd;
	return open;
}

/* A sink that has failed ends, with all that it has opened; here that is done by hand. */
static void close_new(uint64_t before)
{
	uint64_t now = low_fds();

	for (int fd = 0; fd < LOW_FDS; fd++)
		if ((now & ~before) >> fd & 1)
			close(fd);
	close_range(LOW_FDS, ~0u, 0);
}

static void to_sink(void)
{
	uint64_t before = low_fds();
	struct error err = {HALE_OK, ""};
	int fd = memfd_create("stream", MFD_CLOEXEC);

	build();
	must(fd >= 0 && write(fd, stream, stream_len) == (ssize_t)stream_len);
	must(lseek(fd, 0, SEEK_SET) == 0);
	must(fchdir(folder_fd) == 0);
	must(image_sink_live(fd, 0, &err) != HALE_OK);
	must(err.code != HALE_OK && err.text[0]);
	must(fchdir(home_fd) == 0);
	close_new(before);
}

static void to_source(void)
{
	struct live_word word = {.code = input_byte(&in)};
	int ends[2], kind;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	memset(word.text, 'x', sizeof(word.text)); /* without an end */
	stream_len = 0;
	for (int i = input_byte(&in) % 4; i > 0; i--)
		put_record(LIVE_ACCEPT + input_byte(&in) % 5, &word, sizeof(word));
	out(in.at, in.left);
	must(write(ends[0], stream, stream_len) == (ssize_t)stream_len);
	close(ends[0]);
	while ((kind = live_listen(ends[1], &word, 0)) > 0) {
		must(kind >= LIVE_COMMIT && kind < LIVE_KINDS_END);
		must(memchr(word.text, 0, sizeof(word.text)) != NULL);
	}
	close(ends[1]);
}

static int forget(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static void clean_up(void)
{
	nftw(folder, forget, 8, FTW_DEPTH | FTW_PHYS);
}

static void prepare(void)
{
	struct arena arena;
	struct list here;
	struct error err;
	char file[80];
	int fd;

	if (folder[0])
		return;
	order = XXH3_createState();
	snprintf(folder, sizeof(folder), "/dev/shm/hale-live-fuzz-%d", (int)getpid());
	must(mkdir(folder, 0700) == 0);
	atexit(clean_up);
	snprintf(file, sizeof(file), "%s/file", folder);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0 && ftruncate(fd, 16 * PAGE) == 0);
	close(fd);
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	home_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(arena_init(&arena, NULL, 1 << 24));
	must(maps_scan("/proc/thread-self/maps", &arena, &here, &err) == HALE_OK);
	right = (struct live_begin){.magic = LIVE_MAGIC, .version = LIVE_VERSION};
	right.header.version = IMAGE_VERSION;
	process_kernel_regions(&here, right.region, &right.vdso_sum);
	must(process_program(right.header.program, sizeof(right.header.program)));
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	must(file_stamp_read(fd, &right.header.program_stamp) == HALE_OK);
	close(fd);
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	in = (struct input){bytes, size};
	if (size == 0)
		return 0;
	prepare();
	if (input_byte(&in) % 8)
		to_sink();
	else
		to_source();
	return 0;
}
