// SPDX-License-Identifier: BSD-3-Clause
/* The engine with real processes: each scenario runs in a process of its own, is captured, runs on
 * to its end, and is then rebuilt from its image and runs to its end again. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/fmt.h"
#include "image/hash.h"
#include "image/image.h"
#include "image/read.h"
#include "image/test/scenario.h"

/* ---- around them ---- */

struct image_fixture {
	char dir[PATH_LEN];
	char said[2048]; /* stdout and stderr of the last process */
};

static int set_up(void **state)
{
	struct image_fixture *f = calloc(1, sizeof(*f));
	strcpy(f->dir, "/tmp/hale-image-test-XXXXXX");
	if (!f || !mkdtemp(f->dir))
		return -1;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct image_fixture *f = *state;
	char command[PATH_LEN + 16];
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	int rc = system(command);
	free(f);
	return rc;
}

/* For another scenario in the same folder. */
static void tear_down_files(const struct image_fixture *f)
{
	char command[2 * PATH_LEN + 32];
	snprintf(command, sizeof(command), "rm -rf %s && mkdir -m 700 %s", f->dir, f->dir);
	assert_int_equal(system(command), 0);
}

/* Runs this executable in another role and returns its exit status. */
static int run(struct image_fixture *f, const char *scenario, const char *how, const char *sink)
{
	int out[2], status;
	size_t n = 0;
	assert_int_equal(pipe(out), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(out[1], 1);
		dup2(out[1], 2);
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		close(0);
		open("/dev/null", O_RDONLY);
		setenv("T_SCENARIO", scenario, 1);
		setenv("T_FOLDER", f->dir, 1);
		setenv("T_MODE", how, 1);
		if (strstr(how, "hash"))
			setenv("HALE_TRACK", "hash", 1);
		if (sink)
			setenv("T_SINK", sink, 1);
		alarm(100);
		personality(ADDR_NO_RANDOMIZE);
		execl("/proc/thread-self/exe", "image_test", NULL);
		_exit(127);
	}
	close(out[1]);
	for (ssize_t k; n < sizeof(f->said) - 1 &&
			(k = read(out[0], f->said + n, sizeof(f->said) - 1 - n)) > 0;)
		n += (size_t)k;
	f->said[n] = 0;
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void run_well(struct image_fixture *f, const char *scenario, const char *how,
		     const char *sink)
{
	int rc = run(f, scenario, how, sink);
	if (rc)
		print_error("%s%s: exit %d: %s\n", scenario, sink ? " restored" : "", rc, f->said);
	assert_int_equal(rc, 0);
}

static uint32_t newest(const struct image_fixture *f)
{
	char path[PATH_LEN + 16];
	for (uint32_t id = 120; id; id--) {
		snprintf(path, sizeof(path), "%s/%u", f->dir, id);
		if (!access(path, R_OK))
			return id;
	}
	return 0;
}

/* "newest:base:…", each verified. Returns how many. */
static int chain_of(const struct image_fixture *f, uint32_t id, char *list, size_t cap)
{
	int n = 0;
	list[0] = 0;
	for (; id || !n; n++) {
		struct image_info info;
		struct error err = {HALE_OK, ""};
		char path[PATH_LEN + 16];
		snprintf(path, sizeof(path), "%s/%u", f->dir, id);
		hale_status_t rc = image_read_info(path, &info, &err);
		if (rc == HALE_OK)
			rc = image_verify(path, NULL, &err);
		if (rc != HALE_OK)
			print_error("%s\n", err.text);
		assert_int_equal(rc, HALE_OK);
		assert_int_equal(info.identity.id, id);
		snprintf(list + strlen(list), cap - strlen(list), "%s%s", n ? ":" : "", path);
		id = info.identity.base;
	}
	return n;
}

static void both_ways(void **state, const char *scenario, const char *how)
{
	struct image_fixture *f = *state;
	char list[8192];
	run_well(f, scenario, how, NULL);
	assert_int_not_equal(newest(f), 0);
	chain_of(f, newest(f), list, sizeof(list));
	run_well(f, scenario, how, list);
}

#define SCENARIO(test, name, how)                                                                  \
	static void test(void **state)                                                             \
	{                                                                                          \
		both_ways(state, name, how);                                                       \
	}

SCENARIO(private_memory_comes_back, "private_memory", "")
SCENARIO(private_memory_comes_back_lazily, "private_memory", "lazy")
SCENARIO(private_memory_comes_back_from_a_synchronous_image, "private_memory", "sync")
SCENARIO(private_memory_comes_back_from_lz4, "private_memory", "lz4")
SCENARIO(private_memory_comes_back_from_zstd, "private_memory", "zstd lazy")
SCENARIO(advice_of_memory_comes_back, "advice", "sync")
SCENARIO(guard_regions_come_back, "guards", "")
SCENARIO(guard_regions_come_back_lazily, "guards", "lazy")
SCENARIO(memory_that_is_left_out_counts_in_pages, "left_out", "")
SCENARIO(file_mappings_come_back, "file_mappings", "")
SCENARIO(file_mappings_come_back_lazily, "file_mappings", "lazy")
SCENARIO(shared_memory_stays_shared, "shared_memory", "")
SCENARIO(a_hundred_images_leak_nothing, "many", "")
SCENARIO(fifty_differences_leak_nothing, "some", "track")
SCENARIO(files_are_as_they_were, "files", "")
SCENARIO(pipes_and_counters_keep_their_content, "pipes_and_counters", "")
SCENARIO(signals_and_timers_go_on, "signals", "")
SCENARIO(a_timer_whose_signal_waits_goes_on, "timer_with_waiting_signal", "")
SCENARIO(attributes_come_back, "attributes", "")
SCENARIO(the_command_line_is_the_program_s_own, "command_line", "")
SCENARIO(computing_threads_go_on, "computing_threads", "")
SCENARIO(computing_threads_go_on_lazily, "computing_threads", "lazy sync")
SCENARIO(any_thread_may_capture, "other_thread", "")
SCENARIO(a_main_thread_may_be_gone, "main_thread_gone", "")
SCENARIO(held_mutexes_know_their_owner, "held_mutexes", "")
SCENARIO(robust_and_inheriting_mutexes_know_their_owner, "robust_mutexes", "")
SCENARIO(interrupted_calls_are_not_noticed, "interrupted_calls", "")
SCENARIO(threads_run_as_the_program_has_set_them, "scheduling", "")
SCENARIO(limits_of_resources_come_back, "limits", "")
SCENARIO(more_memory_than_there_is_comes_back, "unreserved_memory", "")
SCENARIO(growing_memory_goes_on_growing, "growing_memory", "")
SCENARIO(locked_memory_is_locked_again, "locked_memory", "")
SCENARIO(locked_memory_is_locked_again_lazily, "locked_memory", "lazy sync")
SCENARIO(locks_on_files_are_kept, "file_locks", "")
SCENARIO(named_pipes_come_back, "named_pipes", "")
SCENARIO(signals_of_descriptors_and_leases_come_back, "owners_and_leases", "")
SCENARIO(registrations_and_seals_come_back, "registrations_and_seals", "")
SCENARIO(tcp_connections_inside_the_process_come_back, "tcp_connections", "")
SCENARIO(connections_over_ipv6_come_back, "ipv6_connections", "")
SCENARIO(sockets_for_datagrams_come_back, "datagrams", "")
SCENARIO(datagrams_that_nobody_has_read_come_back, "unread_datagrams", "")
SCENARIO(sockets_with_names_come_back, "named_sockets", "")
SCENARIO(pairs_of_sockets_keep_their_messages, "pairs_of_sockets", "")
SCENARIO(signals_that_wait_keep_their_values, "queued_signals", "")
SCENARIO(thousands_of_mappings_come_back, "many_mappings", "")

/* ---- chains ---- */

static void chain_comes_back(struct image_fixture *f, const char *scenario, const char *how)
{
	char list[8192], out[PATH_LEN + 16];
	const char *paths[IMAGE_CHAIN_MAX];
	struct error err = {HALE_OK, ""};
	size_t n = 0;
	run_well(f, scenario, how, NULL);
	assert_int_equal(chain_of(f, 4, list, sizeof(list)), 4);
	/* hardly anything was written before the third, and nothing at all in whole mappings */
	struct image_info info;
	snprintf(out, sizeof(out), "%s/3", f->dir);
	assert_int_equal(image_read_info(out, &info, &err), HALE_OK);
	assert_in_range(info.pages, 1, 500);
	run_well(f, scenario, how, list);
	/* as one full image */
	for (char *p = strtok(list, ":"); p; p = strtok(NULL, ":"))
		paths[n++] = p;
	snprintf(out, sizeof(out), "%s/whole", f->dir);
	assert_int_equal(image_consolidate(paths, n, out, &err), HALE_OK);
	assert_int_equal(image_verify(out, NULL, &err), HALE_OK);
	run_well(f, scenario, how, out);
	/* without its base it is no image */
	assert_int_equal(image_consolidate(paths, n - 1, "/nowhere", &err), HALE_ERR_IMAGE_MISSING);
	char broken[2 * PATH_LEN + 64];
	snprintf(broken, sizeof(broken), "%s:%s", paths[0], paths[2]);
	assert_int_equal(run(f, scenario, how, broken), HALE_ERR_IMAGE_MISMATCH);
}

static void differences_add_up(void **state)
{
	chain_comes_back(*state, "chain", "track");
}

static void differences_add_up_lazily(void **state)
{
	chain_comes_back(*state, "chain", "track lazy");
}

static void differences_by_checksums_add_up(void **state)
{
	chain_comes_back(*state, "chain", "track hash");
}

static void differences_add_up_compressed(void **state)
{
	chain_comes_back(*state, "chain", "track zstd");
}

static void differences_of_large_mappings_add_up(void **state)
{
	chain_comes_back(*state, "large_chain", "track");
}

static void differences_of_large_mappings_add_up_lazily(void **state)
{
	chain_comes_back(*state, "large_chain", "track lazy");
}

static void restored_processes_are_captured_again(void **state)
{
	struct image_fixture *f = *state;
	static const char *const how[] = {"", "lazy", "track lazy"};
	for (size_t i = 0; i < ARRAY_LEN(how); i++) {
		char first[PATH_LEN + 16], second[PATH_LEN + 16];
		snprintf(first, sizeof(first), "%s/1", f->dir);
		snprintf(second, sizeof(second), "%s/2", f->dir);
		run_well(f, "twice", how[i], NULL);
		run_well(f, "twice", how[i], first);
		run_well(f, "twice", how[i], second);
		assert_false(unlink(first) || unlink(second));
	}
}

/* ---- damage ---- */

static void flip(const char *path, off_t at)
{
	unsigned char c;
	int fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &c, 1, at), 1);
	c ^= 0x10;
	assert_int_equal(pwrite(fd, &c, 1, at), 1);
	close(fd);
}

static hale_status_t verdict(const char *path)
{
	struct error err = {HALE_OK, ""};
	hale_status_t rc = image_verify(path, NULL, &err);
	if (rc != HALE_OK)
		assert_non_null(strstr(err.text, "earlier checkpoint"));
	return rc;
}

/* Bytes between table and data, and behind the data, up to the next page or piece. */
static bool fills_up(const struct frame_at *n, uint64_t place)
{
	uint64_t at = place - n->at, data = frame_data_at(&n->frame);

	return (at >= sizeof(n->frame) + n->frame.table_len && at < data) ||
	       at >= data + n->frame.data_len;
}

static void flipped_bits_are_found(void **state)
{
	struct image_fixture *f = *state;
	struct arena arena;
	struct image_file image;
	struct error err;
	char path[PATH_LEN + 16];
	unsigned seen = 0;
	off_t in_pages = 0, fills = 0;
	snprintf(path, sizeof(path), "%s/1", f->dir);
	run_well(f, "files", "", NULL);
	assert_true(arena_init(&arena, NULL, 1ul << 30));
	assert_int_equal(image_file_open(&image, &arena, path, &err), HALE_OK);
	for (size_t i = 0; i < image.frames.count; i++) {
		const struct frame_at *n = list_at(&image.frames, i);
		const struct frame *frame = &n->frame;
		if (seen & 1u << frame->kind)
			continue;
		seen |= 1u << frame->kind;
		uint64_t data = n->at + frame_data_at(frame);
		if (frame->kind == FRAME_PAGES)
			in_pages = (off_t)(data + frame->data_len / 2);
		const uint64_t place[] = {n->at + 8,
					  n->at + 40,
					  n->at + 60,
					  n->at + sizeof(*frame),
					  n->at + sizeof(*frame) + frame->table_len / 2,
					  data - 1,
					  data,
					  data + frame->data_len / 2,
					  n->at + frame_len(frame) - 1};
		for (size_t k = 0; k < ARRAY_LEN(place); k++) {
			if (place[k] >= n->at + frame_len(frame))
				continue;
			hale_status_t wanted = HALE_ERR_IMAGE_CORRUPT;
			if (fills_up(n, place[k])) {
				fills = (off_t)place[k];
				wanted = HALE_OK;
			}
			flip(path, (off_t)place[k]);
			hale_status_t rc = verdict(path);
			if (rc != wanted)
				print_error(
				    "%s frame, byte %lu: %s\n", frame_kind_name(frame->kind),
				    (unsigned long)(place[k] - n->at), hale_status_name(rc));
			assert_int_equal(rc, wanted);
			flip(path, (off_t)place[k]);
		}
	}
	assert_int_equal(seen & 0x1fe & ~(1u << FRAME_DROPS), 0x1fe & ~(1u << FRAME_DROPS));
	assert_int_equal(verdict(path), HALE_OK);
	/* a restart judges as image_verify does, also about what only fills up */
	assert_true(fills > 0);
	flip(path, fills);
	assert_int_equal(verdict(path), HALE_OK);
	run_well(f, "files", "", path);
	flip(path, in_pages);
	assert_int_equal(run(f, "files", "", path), HALE_ERR_IMAGE_CORRUPT);
	image_file_close(&image);
	arena_fini(&arena);
}

/* libc's, and counted. Helper threads of the engine, of which libc does not know, would break its
 * heap. */
extern void *__libc_malloc(size_t n);
static volatile unsigned mallocs;

void *malloc(size_t n)
{
	mallocs++;
	return __libc_malloc(n);
}

static void compressed_images_are_read_without_malloc(void **state)
{
	static const char *const how[] = {"zstd", "lz4", ""};
	struct image_fixture *f = *state;
	for (size_t i = 0; i < 3; i++) {
		struct error err = {HALE_OK, ""};
		char path[PATH_LEN + 16];
		run_well(f, "private_memory", how[i], NULL);
		snprintf(path, sizeof(path), "%s/1", f->dir);
		unsigned before = mallocs;
		hale_status_t rc = image_verify(path, NULL, &err);
		assert_int_equal(mallocs - before, 0);
		assert_int_equal(rc, HALE_OK);
		unlink(path);
	}
}

static void cut_and_missing_images_are_found(void **state)
{
	struct image_fixture *f = *state;
	char path[PATH_LEN + 16];
	struct stat st = {0};
	struct error err;
	struct image_info info;
	snprintf(path, sizeof(path), "%s/1", f->dir);
	run_well(f, "files", "", NULL);
	assert_int_equal(stat(path, &st), 0);
	for (off_t len = st.st_size - 1; len > 0; len /= 3) {
		assert_int_equal(truncate(path, len), 0);
		assert_int_equal(verdict(path), HALE_ERR_IMAGE_TORN);
		assert_int_equal(image_read_info(path, &info, &err), HALE_ERR_IMAGE_TORN);
	}
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(verdict(path), HALE_ERR_IMAGE_TORN);
	assert_int_equal(run(f, "files", "", path), HALE_ERR_IMAGE_TORN);
	assert_int_equal(truncate(path, 1 << 20), 0); /* zeroes: the writer never finished */
	assert_int_equal(verdict(path), HALE_ERR_IMAGE_TORN);
	unlink(path);
	assert_int_equal(verdict(path), HALE_ERR_IMAGE_MISSING);
	assert_int_equal(run(f, "files", "", path), HALE_ERR_IMAGE_MISSING);
}

/* ---- what can't be restored ---- */

static void read_at(const char *path, void *to, size_t len, off_t at)
{
	int fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, to, len, at), (ssize_t)len);
	close(fd);
}

/* The header of image 1, changed as change says, with the checksums that it then has. */
static void change_header(const struct image_fixture *f, void (*change)(struct image_header *h))
{
	struct frame frame;
	char path[PATH_LEN + 16];
	snprintf(path, sizeof(path), "%s/1", f->dir);
	read_at(path, &frame, sizeof(frame), 0);
	char *table = malloc(frame.table_len);
	assert_non_null(table);
	read_at(path, table, frame.table_len, sizeof(frame));
	change((struct image_header *)table);
	frame.table_sum = hash64(table, frame.table_len);
	frame.sum = hash64(&frame, offsetof(struct frame, sum));
	int fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, &frame, sizeof(frame), 0), (ssize_t)sizeof(frame));
	assert_int_equal(pwrite(fd, table, frame.table_len, sizeof(frame)),
			 (ssize_t)frame.table_len);
	close(fd);
	free(table);
}

static void add_feature(struct image_header *h)
{
	h->xfeatures |= 1ull << 62;
}

/* The image of a processor with a register set that no processor has yet. */
static void an_image_of_a_richer_processor_is_refused(void **state)
{
	struct image_fixture *f = *state;
	char path[PATH_LEN + 16];
	snprintf(path, sizeof(path), "%s/1", f->dir);
	run_well(f, "files", "", NULL);
	change_header(f, add_feature);
	assert_int_equal(run(f, "files", "", path), HALE_ERR_IMAGE_MISMATCH);
	assert_non_null(strstr(f->said, "processor with more features"));
}

static void make_newer(struct image_header *h)
{
	h->version = IMAGE_VERSION + 1;
}

static void make_too_old(struct image_header *h)
{
	h->version = IMAGE_VERSION_OLDEST - 1;
}

static void make_older(struct image_header *h)
{
	h->version = IMAGE_VERSION_OLDEST;
}

static uint32_t older;

/* Whoever wrote it said nothing of what the program chose by its processor. */
static void make_as_old(struct image_header *h)
{
	h->version = older;
	h->xfeatures &= 0xffffffffu;
}

/* Of each format that has what the scenario needs. Nobody has the Hale that wrote it: what is in
 * the frames has not changed since, but for those that came with a newer format, and that these
 * programs do not need. */
static void images_of_older_formats_are_restored(void **state)
{
	static const struct {
		const char *scenario;
		uint32_t since;
	} cases[] = {{"private_memory", IMAGE_VERSION_OLDEST},
		     {"file_mappings", IMAGE_VERSION_OLDEST},
		     {"files", IMAGE_VERSION_OLDEST},
		     {"pipes_and_counters", IMAGE_VERSION_OLDEST},
		     {"computing_threads", IMAGE_VERSION_OLDEST},
		     {"signals", IMAGE_VERSION_OLDEST},
		     {"pairs_of_sockets", IMAGE_VERSION_OLDEST},
		     {"tcp_connections", IMAGE_VERSION_OLDEST},
		     {"named_pipes", IMAGE_VERSION_OLDEST}};
	struct image_fixture *f = *state;
	char path[PATH_LEN + 16];
	snprintf(path, sizeof(path), "%s/1", f->dir);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (older = cases[i].since; older < IMAGE_VERSION; older++) {
			tear_down_files(f);
			run_well(f, cases[i].scenario, "", NULL);
			change_header(f, make_as_old);
			run_well(f, cases[i].scenario, "", path);
		}
}

/* Libraries in images of formats before the oldest one take another plan than today's. */
static void images_of_other_formats_are_refused_by_number(void **state)
{
	static const struct {
		void (*make)(struct image_header *);
		int number;
	} cases[] = {{make_newer, IMAGE_VERSION + 1}, {make_too_old, IMAGE_VERSION_OLDEST - 1}};
	struct image_fixture *f = *state;
	char path[PATH_LEN + 16], said[80];
	snprintf(path, sizeof(path), "%s/1", f->dir);
	run_well(f, "attributes", "", NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		change_header(f, cases[i].make);
		assert_int_equal(run(f, "attributes", "", path), HALE_ERR_IMAGE_MISMATCH);
		snprintf(said, sizeof(said), "has format %d, this Hale reads formats %d to %d",
			 cases[i].number, IMAGE_VERSION_OLDEST, IMAGE_VERSION);
		assert_non_null(strstr(f->said, said));
	}
	change_header(f, make_older);
	run_well(f, "attributes", "", path);
}

static void changed_files_are_refused_by_name(void **state)
{
	struct image_fixture *f = *state;
	char image[PATH_LEN + 16], path[PATH_LEN + 16];
	snprintf(image, sizeof(image), "%s/1", f->dir);
	snprintf(path, sizeof(path), "%s/private", f->dir);
	run_well(f, "file_mappings", "", NULL);
	int fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_int_equal(run(f, "file_mappings", "", image), HALE_ERR_IMAGE_MISMATCH);
	assert_non_null(strstr(f->said, path));
}

static void vanished_files_are_named(void **state)
{
	struct image_fixture *f = *state;
	char image[PATH_LEN + 16], path[PATH_LEN + 16];
	snprintf(image, sizeof(image), "%s/1", f->dir);
	snprintf(path, sizeof(path), "%s/log", f->dir);
	run_well(f, "files", "", NULL);
	assert_int_equal(truncate(path, 3), 0);
	assert_int_equal(run(f, "files", "", image), HALE_ERR_STORE);
	assert_non_null(strstr(f->said, path));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(run(f, "files", "", image), HALE_ERR_STORE);
	assert_non_null(strstr(f->said, "no longer exists"));
}

static void a_full_disk_leaves_no_image(void **state)
{
	struct image_fixture *f = *state;
	char path[PATH_LEN + 16], text[64] = "";
	if (mount("none", f->dir, "tmpfs", 0, "size=2m"))
		skip(); /* only root may */
	run(f, "private_memory", "", NULL);
	snprintf(path, sizeof(path), "%s/1", f->dir);
	bool exists = access(path, F_OK) == 0;
	snprintf(path, sizeof(path), "%s/1.done", f->dir);
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
	assert_true(n > 0 && !exists);
	assert_int_equal(atoi(text), HALE_ERR_STORE_FULL);
}

/* ---- what can't be captured ---- */

static bool is_socket(const char *link)
{
	return !strncmp(link, "socket:", 7);
}

static void sockets_are_refused_by_number_and_name(void **state)
{
	struct error err = {HALE_OK, ""};
	int ready[2], quit[2];
	char byte = 0;
	assert_false(pipe(ready) || pipe(quit));
	pid_t pid = fork();
	if (pid == 0) {
		for (int fd = 3; fd < 1024; fd++)
			if (fd != ready[1] && fd != quit[0])
				close(fd);
		if (dup2(socket(AF_NETLINK, SOCK_RAW, 0), 77) != 77 || write(ready[1], "x", 1) != 1)
			_exit(1);
		_exit(read(quit[0], &byte, 1) == 1 ? 0 : 1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	int low[] = {0, 0, 0};
	for (int fd = 3, n = 0; fd < 1024 && n < 3; fd++)
		if (fd == ready[1] || fd == quit[0])
			low[n++] = fd;
	int own[] = {low[0], low[1], 3, 77};
	hale_status_t rc = image_check(pid, own, 3, NULL, &err);
	assert_int_equal(rc, HALE_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "descriptor 77 (socket:["));
	assert_int_equal(image_check(pid, own, 4, NULL, &err), HALE_OK);
	assert_int_equal(image_check(pid, own, 3, is_socket, &err), HALE_OK);
	assert_int_equal(write(quit[1], "q", 1), 1);
	waitpid(pid, NULL, 0);
	assert_int_equal(image_check(pid, own, 4, NULL, &err), HALE_ERR_PROCESS);
	close(ready[0]);
	close(ready[1]);
	close(quit[0]);
	close(quit[1]);
}

int main(int argc, char **argv)
{
	const char *scenario = getenv("T_SCENARIO");
	if (scenario) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		{
			const struct scenario *all[] = {scenarios_memory, scenarios_kernel,
							scenarios_threads, scenarios_rest,
							scenarios_sockets};
			return scenario_run(all, ARRAY_LEN(all), scenario);
		}
	}
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    T(private_memory_comes_back),
	    T(private_memory_comes_back_lazily),
	    T(private_memory_comes_back_from_a_synchronous_image),
	    T(private_memory_comes_back_from_lz4),
	    T(private_memory_comes_back_from_zstd),
	    T(advice_of_memory_comes_back),
	    T(guard_regions_come_back),
	    T(memory_that_is_left_out_counts_in_pages),
	    T(guard_regions_come_back_lazily),
	    T(file_mappings_come_back),
	    T(file_mappings_come_back_lazily),
	    T(shared_memory_stays_shared),
	    T(files_are_as_they_were),
	    T(pipes_and_counters_keep_their_content),
	    T(signals_and_timers_go_on),
	    T(a_timer_whose_signal_waits_goes_on),
	    T(attributes_come_back),
	    T(the_command_line_is_the_program_s_own),
	    T(computing_threads_go_on),
	    T(computing_threads_go_on_lazily),
	    T(any_thread_may_capture),
	    T(a_main_thread_may_be_gone),
	    T(held_mutexes_know_their_owner),
	    T(robust_and_inheriting_mutexes_know_their_owner),
	    T(threads_run_as_the_program_has_set_them),
	    T(limits_of_resources_come_back),
	    T(tcp_connections_inside_the_process_come_back),
	    T(connections_over_ipv6_come_back),
	    T(sockets_for_datagrams_come_back),
	    T(datagrams_that_nobody_has_read_come_back),
	    T(sockets_with_names_come_back),
	    T(pairs_of_sockets_keep_their_messages),
	    T(signals_that_wait_keep_their_values),
	    T(images_of_other_formats_are_refused_by_number),
	    T(images_of_older_formats_are_restored),
	    T(more_memory_than_there_is_comes_back),
	    T(growing_memory_goes_on_growing),
	    T(locked_memory_is_locked_again),
	    T(locked_memory_is_locked_again_lazily),
	    T(locks_on_files_are_kept),
	    T(named_pipes_come_back),
	    T(signals_of_descriptors_and_leases_come_back),
	    T(registrations_and_seals_come_back),
	    T(thousands_of_mappings_come_back),
	    T(interrupted_calls_are_not_noticed),
	    T(a_hundred_images_leak_nothing),
	    T(fifty_differences_leak_nothing),
	    T(differences_add_up),
	    T(differences_add_up_lazily),
	    T(differences_by_checksums_add_up),
	    T(differences_add_up_compressed),
	    T(differences_of_large_mappings_add_up),
	    T(differences_of_large_mappings_add_up_lazily),
	    T(an_image_of_a_richer_processor_is_refused),
	    T(restored_processes_are_captured_again),
	    T(flipped_bits_are_found),
	    T(compressed_images_are_read_without_malloc),
	    T(cut_and_missing_images_are_found),
	    T(changed_files_are_refused_by_name),
	    T(vanished_files_are_named),
	    T(a_full_disk_leaves_no_image),
	    T(sockets_are_refused_by_number_and_name),
	};
	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
