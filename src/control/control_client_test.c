/* SPDX-License-Identifier: BSD-3-Clause */
/* Any user can take the name of an abstract socket: who listens under a job's name is believed only
 * when it is a process of the same user. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/base.h"
#include "control/control.h"
#include "wire/attach/attach.h"

enum { NOBODY = 65534 };

static const char answer[] = "{\"folder\":\"/somewhere/else\",\"printed\":[]}";

/* A process of that user (0: ours) that answers everybody at this address. */
static pid_t listen_as(unsigned uid, const struct sockaddr_un *at, size_t len)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0), client;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if ((uid && setuid(uid) != 0) ||
		    bind(fd, (const struct sockaddr *)at, (socklen_t)len) != 0 ||
		    listen(fd, 4) != 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		while ((client = accept(fd, NULL, NULL)) >= 0) {
			char request[256];

			if (recv(client, request, sizeof(request), 0) > 0)
				send(client, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
			close(client);
		}
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void job_name(char job[JOB_ID_MAX], const char *what)
{
	snprintf(job, JOB_ID_MAX, "test-%s-%d", what, (int)getpid());
}

static void ones_own_job_is_asked(void **state)
{
	char job[JOB_ID_MAX];
	struct sockaddr_un sa;
	struct json_value *v = NULL;
	struct error err;
	pid_t pid;

	job_name(job, "own");
	pid = listen_as(0, &sa, control_address(job, geteuid(), &sa));
	assert_int_equal(control_ask(job, "{\"op\":\"ps\"}", &v, &err), HALE_OK);
	assert_string_equal(json_text(json_get(v, "folder"), ""), "/somewhere/else");
	json_free(v);
	end(pid);
}

static void another_users_socket_is_not(void **state)
{
	char job[JOB_ID_MAX], jobs[1][JOB_ID_MAX];
	struct sockaddr_un sa;
	struct json_value *v = NULL;
	struct error err;
	hale_status_t status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	job_name(job, "other");
	pid = listen_as(NOBODY, &sa, control_address(job, geteuid(), &sa));
	assert_int_equal(control_connect(job), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(control_ask(job, "{\"op\":\"ps\"}", &v, &err), HALE_ERR_STATE);
	assert_non_null(strstr(err.text, "somebody else"));
	assert_null(v);
	snprintf(jobs[0], sizeof(jobs[0]), "%s", job);
	control_ask_each(jobs, 1, "{\"op\":\"ps\"}", &v, &status);
	assert_null(v);
	assert_int_equal(status, HALE_ERR_STATE);
	assert_null(control_ask_at(job, "ctl", 0, "{\"op\":\"where\"}", 2));
	end(pid);
}

static size_t address_of(const char *job, const char *name, struct sockaddr_un *sa)
{
	size_t len = control_address(job, geteuid(), sa) - strlen("ctl");

	return len + (size_t)snprintf((char *)sa + len, sizeof(*sa) - len, "%s", name);
}

static void nor_are_those_that_claim_to_be_newer(void **state)
{
	static const char *const taken[] = {"ctl.2", "ctl.99", "ctl.4294967295",
					    "output.99"};
	char job[JOB_ID_MAX];
	struct sockaddr_un sa;
	struct json_value *v = NULL;
	struct error err;
	pid_t pid[6];

	if (geteuid() != 0)
		skip();
	job_name(job, "newer");
	for (int i = 0; i < 4; i++)
		pid[i] = listen_as(NOBODY, &sa, address_of(job, taken[i], &sa));
	assert_int_equal(control_connect(job), -1);
	assert_int_equal(errno, EPERM);
	assert_null(control_ask_at(job, "output", 0, "{\"op\":\"where\"}", 2));
	pid[4] = listen_as(0, &sa, address_of(job, "ctl", &sa));
	pid[5] = listen_as(0, &sa, address_of(job, "output.1", &sa));
	assert_int_equal(control_ask(job, "{\"op\":\"ps\"}", &v, &err), HALE_OK);
	json_free(v);
	v = control_ask_at(job, "output", 0, "{\"op\":\"where\"}", 2);
	assert_non_null(v);
	json_free(v);
	assert_null(control_ask_at(job, "output", 99, "{\"op\":\"where\"}", 2));
	for (int i = 0; i < 6; i++)
		end(pid[i]);
}

/* All names that a job and its next heads would take are taken: they are found all the same. */
static void a_name_that_is_taken_is_no_hindrance(void **state)
{
	static const char *const taken[] = {"ctl", "ctl.2", "output.1"};
	char job[JOB_ID_MAX];
	struct sockaddr_un sa;
	pid_t pid[3];
	int first, second, output_daemon, fd, other;

	if (geteuid() != 0)
		skip();
	job_name(job, "taken");
	for (int i = 0; i < 3; i++)
		pid[i] = listen_as(NOBODY, &sa, address_of(job, taken[i], &sa));
	first = control_listen(job, "ctl", 1);
	assert_true(first >= 0);
	fd = control_connect(job);
	assert_true(fd >= 0);
	other = accept(first, NULL, NULL);
	assert_true(other >= 0);
	close(other);
	close(fd);
	second = control_listen(job, "ctl", 2); /* the newer one is asked now */
	fd = control_connect(job);
	assert_true(second >= 0 && fd >= 0);
	other = accept(second, NULL, NULL);
	assert_true(other >= 0);
	close(other);
	close(fd);
	output_daemon = control_listen(job, "output", 1);
	assert_true(output_daemon >= 0);
	for (int i = 0; i < 3; i++)
		end(pid[i]);
	close(first);
	close(second);
	close(output_daemon);
	/* but where one of ours listens, there is one */
	first = control_listen(job, "ctl", 1);
	assert_true(first >= 0);
	assert_int_equal(control_listen(job, "ctl", 1), -1);
	assert_int_equal(errno, EADDRINUSE);
	close(first);
}

static void nor_one_in_an_agents_place(void **state)
{
	struct sockaddr_un sa;
	char tag[ATTACH_TAG];
	pid_t pid;
	int fd;

	if (geteuid() != 0)
		skip();
	snprintf(tag, sizeof(tag), "%016x", (unsigned)getpid());
	pid = listen_as(NOBODY, &sa, attach_address(tag, 0, &sa));
	assert_int_equal(attach_connect(tag, 0), -1);
	assert_int_equal(errno, EPERM);
	end(pid);
	pid = listen_as(0, &sa, attach_address(tag, 0, &sa));
	fd = attach_connect(tag, 0);
	assert_true(fd >= 0);
	close(fd);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ones_own_job_is_asked),
	    cmocka_unit_test(another_users_socket_is_not),
	    cmocka_unit_test(nor_are_those_that_claim_to_be_newer),
	    cmocka_unit_test(a_name_that_is_taken_is_no_hindrance),
	    cmocka_unit_test(nor_one_in_an_agents_place),
	};
	return cmocka_run_group_tests_name("control_client", tests, NULL, NULL);
}
