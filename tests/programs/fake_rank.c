/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that speaks node/proto.h without an MPI and without an image engine: its "image" is a file
 * with its counter in it. So the launcher is tested apart from everything that makes a rank hard.
 *   fake_rank STEPS    with FAKE_… in the environment, see main; after them it waits as long as the
 *                      file "hold" exists */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "node/proto.h"
#include "node/segment.h"

static struct mailbox *box;
static int agent;
static unsigned rank, restored;
static long step;
static volatile sig_atomic_t asked;

static long option(const char *name, long fallback)
{
	const char *text = getenv(name);

	return text ? atol(text) : fallback;
}

static void on_request(int sig)
{
	(void)sig;
	asked = 1;
}

static void tell(const void *packet, size_t len)
{
	if (send(agent, packet, len, MSG_NOSIGNAL) != (ssize_t)len)
		_exit(99);
}

static void tell_plain(uint32_t type, int value)
{
	struct proto_plain p = {.type = type, .value = value};

	tell(&p, sizeof(p));
}

static int receive_welcome(struct proto_welcome *w)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {w, sizeof(*w)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(agent, &m, 0) != (ssize_t)sizeof(*w) || w->type != PROTO_WELCOME) {
		fprintf(stderr, "fake rank %u was refused\n", rank);
		_exit(98);
	}
	memcpy(&fd, CMSG_DATA(&control.align), sizeof(fd));
	return fd;
}

static void join(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const char *name = getenv("HALE_AGENT");
	struct proto_hello h = {.type = PROTO_HELLO,
				.version = PROTO_VERSION,
				.rank = rank,
				.pid = getpid(),
				.restored = restored,
				.mpi = !getenv("HALE_NO_MPI")};
	struct proto_welcome w;
	void *segment;
	int fd;

	strcpy(sa.sun_path + 1, name);
	agent = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connect(agent, (struct sockaddr *)&sa,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) != 0)
		_exit(97);
	snprintf(h.token, sizeof(h.token), "%s", getenv("HALE_TOKEN"));
	h.own_fd = agent;
	tell(&h, sizeof(h));
	fd = receive_welcome(&w);
	segment = mmap(NULL, w.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	box = segment_mailbox(segment, rank);
	box->pid = getpid();
	box->own_fd[0] = agent;
	box->state = RANK_RUNNING;
}

static void positions(uint64_t position[3])
{
	for (int i = 0; i < 3; i++) {
		int pending = 0;

		ioctl(i, FIONREAD, &pending);
		position[i] = i == 0 ? box->stream_taken[0] - (uint64_t)pending
				     : box->stream_taken[i] + (uint64_t)pending;
	}
}

static void fail(struct proto_ckpt *p, const char *text)
{
	p->type = PROTO_CKPT_FAILED;
	p->status = 1;
	strcpy(p->text, text);
	tell(p, sizeof(*p));
}

static void checkpoint(void)
{
	struct proto_ckpt p = {.type = PROTO_CKPT_RESUMED, .id = box->ckpt_wanted};
	FILE *f;

	asked = 0;
	if (p.id == 0 || p.id <= restored || box->ckpt_cancelled >= p.id)
		return;
	restored = p.id;
	if (option("FAKE_DEAF", -1) == (long)rank)
		return;
	if (option("FAKE_FAILS", -1) == (long)rank) {
		fail(&p, "this one always fails");
		return;
	}
	positions(p.position);
	f = fopen(box->ckpt_path, "w");
	if (!f) {
		fail(&p, "cannot write the image");
		return;
	}
	fprintf(f, "%ld %u\n", step + 1, p.id);
	p.bytes = (uint64_t)ftell(f);
	fclose(f);
	tell(&p, sizeof(p));
	usleep((useconds_t)option("FAKE_WRITE_US", 0));
	p.type = PROTO_CKPT_WRITTEN;
	tell(&p, sizeof(p));
}

static void become(const char *sink)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s", strchr(sink, ':') + 1);
	path[strcspn(path, ":")] = '\0';
	if (strrchr(path, '=')) /* its checksum */
		*strrchr(path, '=') = '\0';
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld %u", &step, &restored) != 2)
		_exit(70);
	fclose(f);
}

static void one_step(bool fresh)
{
	if (getenv("FAKE_READS") && rank == 0) {
		char c;
		printf("read %ld %d\n", step, read(0, &c, 1) == 1 ? c : -1);
	}
	printf("rank %u step %ld%s\n", rank, step, getenv("FAKE_DIFFERS") && !fresh ? "!" : "");
	fprintf(stderr, "rank %u err %ld\n", rank, step);
	usleep(5000);
	if (option("FAKE_ASKS", -1) == step && rank == 0 && fresh)
		tell_plain(PROTO_CKPT_ASK, (int)restored);
	if (option("FAKE_ABORTS", -1) == step && rank == 1) {
		tell_plain(PROTO_ABORT, 42);
		pause();
	}
	if (option("FAKE_CRASHES", -1) == step && rank == 1)
		raise(SIGSEGV);
}

int main(int argc, char **argv)
{
	const char *sink = getenv("HALE_SINK");
	long steps = argc > 1 ? atol(argv[1]) : 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	rank = (unsigned)option("HALE_RANK", 0);
	if (sink)
		become(sink);
	signal(PROTO_CKPT_SIGNAL, on_request);
	join();
	if (!sink)
		tell_plain(PROTO_INITIALIZED, 0);
	for (; step < steps; step++) {
		one_step(!sink);
		if (asked)
			checkpoint();
	}
	/* so that faults that are to come meet somebody */
	for (step--; access("hold", F_OK) == 0; usleep(5000))
		if (asked)
			checkpoint();
	if (!getenv("FAKE_NO_FINALIZE"))
		tell_plain(PROTO_FINALIZED, 0);
	return (int)option("FAKE_STATUS", 0);
}
