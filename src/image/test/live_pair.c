// SPDX-License-Identifier: BSD-3-Clause
#include "image/test/live_pair.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "image/test/live_roles.h"
#include "image/test/scenario.h"

int pair_set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	if (!f)
		return -1;
	strcpy(f->dir, "/tmp/hale-live-test-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	*state = f;
	return 0;
}

int pair_tear_down(void **state)
{
	struct fixture *f = *state;
	char command[PATH_LEN + 16];
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	int rc = system(command);
	if (f->source > 0 && f->source_status < 0)
		kill(f->source, SIGKILL);
	if (f->sink > 0 && f->sink_status < 0)
		kill(f->sink, SIGKILL);
	free(f);
	return rc;
}

pid_t pair_spawn(struct fixture *f, const char *role, const char *scenario, const char *how,
		 int stream, int out)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	dup2(out, 1);
	dup2(out, 2);
	dup2(stream, 100);
	dup2(100, STREAM_FD);
	for (int fd = STREAM_FD + 1; fd < 1024; fd++)
		close(fd);
	close(0);
	open("/dev/null", O_RDONLY);
	setenv("T_ROLE", role, 1);
	setenv("T_SCENARIO", scenario, 1);
	setenv("T_FOLDER", f->dir, 1);
	setenv("T_MODE", how, 1);
	if (f->beside > 0) {
		char text[16];
		snprintf(text, sizeof(text), "%d", (int)f->beside);
		setenv("T_BESIDE", text, 1);
	}
	if (strstr(how, "hash"))
		setenv("HALE_TRACK", "hash", 1);
	alarm(60);
	personality(ADDR_NO_RANDOMIZE);
	execl("/proc/thread-self/exe", "live_test", NULL);
	_exit(127);
}

static void read_out(struct fixture *f)
{
	size_t n = strlen(f->said);
	for (ssize_t k; n < sizeof(f->said) - 1 &&
			(k = read(f->out, f->said + n, sizeof(f->said) - 1 - n)) > 0;)
		n += (size_t)k;
	f->said[n] = 0;
}

void pair_start(struct fixture *f, const char *scenario, const char *how, bool relayed)
{
	int a[2], b[2], out[2];
	memset(f->said, 0, sizeof(f->said));
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b), 0);
	f->source = pair_spawn(f, "source", scenario, how, a[0], out[1]);
	/* no older copy is as good as the source itself, which changes while it is read */
	f->beside = strstr(how, "beside") && f->older == 0 ? f->source : f->older;
	f->sink = pair_spawn(f, "sink", scenario, how, relayed ? b[1] : a[1], out[1]);
	f->beside = 0;
	f->source_status = f->sink_status = -1;
	close(a[0]);
	close(b[1]);
	close(out[1]);
	f->source_fd = a[1];
	f->sink_fd = b[0];
	f->out = out[0];
	if (!relayed) {
		close(f->source_fd);
		close(f->sink_fd);
		f->source_fd = f->sink_fd = -1;
	}
}

void pair_wait(struct fixture *f)
{
	read_out(f);
	close(f->out);
	if (f->source_status < 0)
		assert_int_equal(waitpid(f->source, &f->source_status, 0), f->source);
	if (f->sink_status < 0)
		assert_int_equal(waitpid(f->sink, &f->sink_status, 0), f->sink);
}
