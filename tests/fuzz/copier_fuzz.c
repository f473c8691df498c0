/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/agent/copier/copier_wire.c src/agent/copier/copier_work.c
 * src/agent/copier/copier_folder.c src/wire/seal/sealed.c src/wire/seal/send_all.c
 * src/wire/seal/tcp_seal.c src/store/manifest.c src/store/seal.c src/store/store.c
 * src/store/verify.c src/image/[a-z]*.c src/image/fd/[a-z]*.c src/image/live/[a-z]*.c */
/* What comes to a copier of images: callers that do and don't know the job's secret, what they give
 * and ask for, and what a copier that was called answers. Nobody else gets anything; no copy has
 * its name that isn't a whole image; nothing of one that failed is left. The random numbers are
 * known here, so that all that the other side says can be said beforehand. */
#include "fuzz.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "image/frame.h"
#include "image/hash.h"
#include "image/image.h"
#include "agent/copier/copier_wire.h"

static char there[STORE_FOLDER_MAX]; /* what can be asked for */

enum { IMAGE_BYTES = 6 * 4096, NODE = 1 };

static struct input in;
static int called = -1; /* who is connected to next */
static struct copier copier = {.node = NODE, .secret = "nobody else knows this"};

/* ---- the outside ---- */

ssize_t getrandom(void *to, size_t len, unsigned flags)
{
	memset(to, 7, len);
	return (ssize_t)len;
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	if (called < 0) {
		errno = ECONNREFUSED;
		return -1;
	}
	must(dup3(called, fd, O_CLOEXEC) == fd);
	return 0;
}

/* ---- an image ---- */

static void put_frame(uint8_t *at, struct frame f, const void *table)
{
	f.magic = FRAME_MAGIC;
	if (f.table_len)
		memcpy(at + sizeof(f), table, f.table_len);
	f.table_sum = hash64(table, f.table_len);
	f.data_sum = hash64(NULL, 0);
	f.sum = hash64(&f, offsetof(struct frame, sum));
	memcpy(at, &f, sizeof(f));
}

static uint8_t image[IMAGE_BYTES];
static uint64_t image_sum;

/* A process with nothing in it. */
static void make_image(void)
{
	static struct {
		struct process_record record;
		char cwd[2];
	} p = {.record = {.cwd_len = 2}, .cwd = "/"};
	static struct signals_record signals;
	static struct thread_record thread;
	static struct image_header h = {.magic = IMAGE_MAGIC,
					.version = IMAGE_VERSION,
					.file_len = IMAGE_BYTES,
					.frames = IMAGE_BYTES / 4096,
					.program = "/bin/program"};
	static const struct {
		uint16_t kind;
		uint32_t count;
		size_t len;
		const void *table;
	} frame[] = {{FRAME_HEADER, 1, sizeof(h), &h},
		     {FRAME_PROCESS, 1, sizeof(p.record) + sizeof(p.cwd), &p},
		     {FRAME_SIGNALS, 0, sizeof(signals), &signals},
		     {FRAME_THREADS, 1, sizeof(thread), &thread},
		     {FRAME_MAPS, 0, 0, NULL},
		     {FRAME_DESCRIPTORS, 0, 0, NULL}};
	_Static_assert(ARRAY_LEN(frame) * 4096 == IMAGE_BYTES, "a page each");

	for (size_t i = 0; i < ARRAY_LEN(frame); i++)
		put_frame(image + 4096 * i,
			  (struct frame){.kind = frame[i].kind,
					 .count = frame[i].count,
					 .table_len = frame[i].len},
			  frame[i].table);
}

/* ---- what is said ---- */

static void mac(unsigned char to[COPIER_MAC], const char *who, const struct hello *h,
		const unsigned char *nonce)
{
	struct said said = {.hello = *h};

	memcpy(said.who, who, strlen(who));
	memcpy(said.nonce, nonce, COPIER_NONCE);
	crypto_auth_hmacsha512256(to, (unsigned char *)&said, sizeof(said), copier.secret);
}

static void put(int fd, const void *bytes, size_t len)
{
	if (input_byte(&in) % 16 == 0)
		len = input_byte(&in) % (len + 1);
	if (send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		errno = 0;
}

static void put_image(int fd)
{
	uint8_t bent[IMAGE_BYTES];

	memcpy(bent, image, sizeof(bent));
	if (input_byte(&in) % 2)
		input_bend(&in, bent, sizeof(bent));
	put(fd, bent, sizeof(bent));
}

/* ---- the folder ---- */

static bool may_have; /* something new */

static int look_at(const char *path, const struct stat *st, int type, struct FTW *at)
{
	struct error err;

	if (type == FTW_F) {
		must(!strstr(path, ".img.")); /* of one that failed */
		must(may_have && image_verify(path, NULL, &err) == HALE_OK);
		unlink(path);
	} else if (at->level > 0) {
		rmdir(path);
	}
	return 0;
}

/* Whole images under their names, and nothing else; then it is empty again. */
static void look_at_folder(bool may)
{
	may_have = may;
	nftw(copier.folder, look_at, 8, FTW_DEPTH | FTW_PHYS);
}

/* Images of checkpoint 5, ranks 0 and 1. */
static void place(const char *folder)
{
	char path[STORE_FOLDER_MAX + 64];
	struct error err;

	snprintf(path, sizeof(path), "%s/5", folder);
	must(store_make_folders(path, &err) == HALE_OK);
	for (unsigned r = 0; r < 2; r++) {
		snprintf(path, sizeof(path), "%s/5/" JOB_IMAGE_NAME, folder, r);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		must(fd >= 0 && write(fd, image, sizeof(image)) == (ssize_t)sizeof(image));
		close(fd);
	}
}

static void be_called(void)
{
	struct hello h = {.magic = "HALECOPY", .version = 1, .from = 2, .to = NODE};
	struct copier_wire_request r = {.type = 1 + input_byte(&in) % 3,
					.rank = input_byte(&in) % 4,
					.id = 5,
					.bytes = IMAGE_BYTES,
					.checksum = image_sum};
	unsigned char nonce[COPIER_NONCE], proof[COPIER_MAC], honest[COPIER_MAC];
	struct copier_link l = {.fd = -1};
	bool served;
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	memset(h.nonce, 1, COPIER_NONCE);
	memset(nonce, 7, COPIER_NONCE);
	input_bend(&in, &h, sizeof(h));
	mac(honest, "caller", &h, nonce);
	memcpy(proof, honest, COPIER_MAC);
	input_bend(&in, proof, COPIER_MAC);
	put(ends[1], &h, sizeof(h));
	put(ends[1], proof, COPIER_MAC);
	snprintf(r.folder, sizeof(r.folder), "%s", there);
	input_bend(&in, &r, sizeof(r));
	put(ends[1], &r, sizeof(r));
	put_image(ends[1]);
	shutdown(ends[1], SHUT_WR);
	l.fd = ends[0];
	served = copier_answer(&copier, &l);
	/* nobody here agrees on keys */
	must(!served || (memcmp(honest, proof, COPIER_MAC) == 0 && !copier.encrypt));
	if (served)
		copier_serve(&copier, &l);
	copier_hang_up(&l);
	close(ends[1]);
	look_at_folder(served && r.type == 1);
}

static void call(void)
{
	struct hello h = {.magic = "HALECOPY", .version = 1, .from = NODE, .to = 2};
	struct challenge c;
	struct answer a[2] = {{.bytes = IMAGE_BYTES}, {.bytes = IMAGE_BYTES}};
	struct copier_order o = {.type = ORDER_COPY,
				 .kind = input_byte(&in) % 4,
				 .rank = input_byte(&in) % 4,
				 .id = 5,
				 .peer = 2,
				 .bytes = IMAGE_BYTES,
				 .checksum = image_sum,
				 .address = "127.0.0.1:1"};
	struct copier_done done = {.order = o};
	unsigned char honest[COPIER_MAC];
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	called = ends[0];
	memset(h.nonce, 7, COPIER_NONCE);
	memset(c.nonce, 1, COPIER_NONCE);
	mac(honest, "called", &h, c.nonce);
	memcpy(c.mac, honest, COPIER_MAC);
	input_bend(&in, &c, sizeof(c));
	for (int i = 0; i < 2; i++) {
		a[i].what = input_byte(&in) % 4;
		a[i].status = input_byte(&in) % 8 ? 0 : (int32_t)input_byte(&in) * 7919 - 100000;
		memset(a[i].text, 'x', sizeof(a[i].text)); /* without an end */
	}
	snprintf(o.folder, sizeof(o.folder), "%s", there);
	if (o.kind != COPY_FETCH)
		place(copier.folder);
	if (input_byte(&in) % 4 == 0)
		input_bend(&in, o.address, 12);
	put(ends[1], &c, sizeof(c));
	put(ends[1], &a[0], sizeof(a[0]));
	if (o.kind == COPY_FETCH)
		put_image(ends[1]);
	put(ends[1], &a[1], sizeof(a[1]));
	shutdown(ends[1], SHUT_WR);
	copier_work(&copier, &o, &done);
	must(memchr(done.text, 0, sizeof(done.text)) != NULL);
	must(done.status == HALE_OK || done.text[0]);
	close(ends[0]);
	close(ends[1]);
	called = -1;
	look_at_folder(done.status == HALE_OK || o.kind != COPY_FETCH);
}

static int forget(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static void clean_up(void)
{
	nftw(copier.folder, forget, 8, FTW_DEPTH | FTW_PHYS);
	nftw(there, forget, 8, FTW_DEPTH | FTW_PHYS);
}

static void prepare(void)
{
	const struct rlimit limit = {1 << 20, 1 << 20};
	char path[STORE_FOLDER_MAX + 64];
	struct error err;

	if (copier.folder[0])
		return;
	setenv("HALE_NET_TIMEOUT", "0.05", 1);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit); /* who asks for a terabyte doesn't get it */
	snprintf(copier.folder, sizeof(copier.folder), "/dev/shm/hale-copier-fuzz-%d",
		 (int)getpid());
	snprintf(there, sizeof(there), "/dev/shm/hale-copier-fuzz-%d.there", (int)getpid());
	atexit(clean_up);
	make_image();
	must(store_make_folders(copier.folder, &err) == HALE_OK);
	place(there);
	snprintf(path, sizeof(path), "%s/5/" JOB_IMAGE_NAME, there, 1u);
	must(image_verify(path, &image_sum, &err) == HALE_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	in = (struct input){data, size};
	prepare();
	copier.encrypt = input_byte(&in) % 8 == 1;
	if (input_byte(&in) % 2)
		be_called();
	else
		call();
	return 0;
}
