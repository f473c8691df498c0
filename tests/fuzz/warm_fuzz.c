/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/agent/standby/warm_files.c src/image/[a-z]*.c src/image/fd/[a-z]*.c
 * src/image/live/[a-z]*.c */
/* Lists of files that ranks have mapped, as a broken node might send them: a spare reads nothing
 * that isn't a file as the list says, not more than it was allowed to, and says what was wrong.
 * Most records are right, or the reader would look no further; then a few bytes change. */
#include "fuzz.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "image/files.h"
#include "agent/standby/warm_files.h"

/* As warm_files.c has it. */
struct record {
	uint64_t begin, end;
	struct file_stamp stamp;
	uint32_t flags, path_len;
};

enum { PAGE = 4096, PIECE = 1 << 20, FILE_SIZE = 5 * PAGE + 7, RECORDS = 8, LIST_MAX = 1 << 14 };

static char folder[64];
static struct file_stamp right;
static uint8_t list[LIST_MAX];
static size_t list_len;

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
	char path[96];
	int fd;

	if (folder[0])
		return;
	snprintf(folder, sizeof(folder), "/dev/shm/hale-warm-fuzz-%d", (int)getpid());
	must(mkdir(folder, 0700) == 0);
	atexit(clean_up);
	snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0 && ftruncate(fd, FILE_SIZE) == 0 && image_file_stamp(fd, &right) == HALE_OK);
	close(fd);
	snprintf(path, sizeof(path), "%s/empty", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/pipe", folder);
	must(mkfifo(path, 0600) == 0);
	snprintf(path, sizeof(path), "%s/loop", folder);
	must(symlink(path, path) == 0);
}

static void put(const void *bytes, size_t len)
{
	if (len > LIST_MAX - list_len)
		len = LIST_MAX - list_len;
	memcpy(list + list_len, bytes, len);
	list_len += len;
}

static void put_record(struct input *in)
{
	static const char *const names[] = {"file", "file", "file", "empty",
					    "pipe", "loop", "gone", ""};
	struct record r = {.stamp = right, .flags = input_byte(in) % 4};
	char path[96];
	int n =
	    snprintf(path, sizeof(path), "%s/%s", folder, names[input_byte(in) % ARRAY_LEN(names)]);

	r.begin = (uint64_t)(input_byte(in) % 8) * PAGE;
	r.end = r.begin + (uint64_t)input_byte(in) * PAGE;
	r.path_len = (uint32_t)n + 1;
	input_bend(in, &r, sizeof(r));
	put(&r, sizeof(r));
	put(path, (size_t)n + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = {bytes, size};
	struct warm_files_result result;
	uint64_t most = (uint64_t)input_byte(&in) * PAGE;
	uint8_t *copy;

	prepare();
	list_len = 0;
	for (int i = input_byte(&in) % (RECORDS + 1); i > 0; i--)
		put_record(&in);
	put(in.at, in.left); /* as it comes */
	copy = malloc(list_len ? list_len : 1);
	memcpy(copy, list, list_len);
	warm_files_read(copy, list_len, most, &result);
	free(copy);
	must(memchr(result.text, 0, sizeof(result.text)) != NULL);
	must(memchr(result.program, 0, sizeof(result.program)) != NULL);
	must(!result.program[0] || result.program[0] == '/');
	must(!result.good || (result.program[0] && !result.text[0]));
	must(result.bytes < most + PIECE);
	return 0;
}
