/* SPDX-License-Identifier: BSD-3-Clause */
/* Launching and what goes with it, with real processes and files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "launch/elf.h"
#include "launch/environment.h"
#include "agent/supervisor/supervisor_private.h"
#include "launch/launch.h"
#include "launch/pin.h"
#include "policy/place.h"
#include "launch/program.h"

static const char *value_of(char **env, const char *name)
{
	size_t len = strlen(name);

	for (char **e = env; *e; e++)
		if (strncmp(*e, name, len) == 0 && (*e)[len] == '=')
			return *e + len + 1;
	return NULL;
}

static void the_environment_is_the_users_and_ours(void **state)
{
	char *inherited[] = {"HOME=/home/x", "LD_LIBRARY_PATH=/opt/lib", "LD_PRELOAD=/my.so",
			     "HALE_RANK=99", "HALE_LOG=debug",		 NULL};
	char *exports[] = {"COLOUR=blue", "HOME=/else", NULL};
	struct environment_params p = {.inherited = inherited,
				       .exports = exports,
				       .libdir = "/lib/hale",
				       .agent = "a",
				       .token = "t",
				       .job = "j.1",
				       .rank = 2,
				       .nranks = 5};
	char **env = environment_make(&p);

	assert_non_null(env);
	assert_string_equal(value_of(env, "HOME"), "/else");
	assert_string_equal(value_of(env, "COLOUR"), "blue");
	assert_string_equal(value_of(env, "LD_LIBRARY_PATH"), "/lib/hale:/opt/lib");
	assert_string_equal(value_of(env, "LD_PRELOAD"), "/my.so:/lib/hale/libhale.so");
	assert_string_equal(value_of(env, "HALE_RANK"), "2");
	assert_string_equal(value_of(env, "HALE_NRANKS"), "5");
	assert_string_equal(value_of(env, "HALE_LOG"), "debug");
	assert_string_equal(value_of(env, "OMPI_COMM_WORLD_RANK"), "2");
	assert_string_equal(value_of(env, "OMPI_COMM_WORLD_SIZE"), "5");
	assert_string_equal(value_of(env, "PMI_RANK"), "2");
	assert_null(value_of(env, "HALE_NO_MPI"));
	assert_null(value_of(env, "HALE_SINK"));
	environment_set_pid(env, 4711);
	assert_string_equal(value_of(env, "HALE_LAUNCH_PID"), "4711");
	environment_free(env);
}

/* Runs sh -c script; returns waitpid's status and what it wrote. */
static int run(const char *script, char *out, size_t cap)
{
	char *argv[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
	struct environment_params p = {.inherited = environ,
				       .libdir = "/nowhere",
				       .agent = "a",
				       .token = "t",
				       .job = "j",
				       .nranks = 1};
	struct launch l = {.path = "/bin/sh", .argv = argv, .env = environment_make(&p)};
	struct error err;
	int ends[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	l.fd[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	l.fd[1] = ends[1];
	l.fd[2] = STDERR_FILENO;
	/* the library isn't where the environment says */
	for (char **e = l.env; *e; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) == 0)
			(*e)[11] = '\0';
	assert_int_equal(launch_process(&l, &pid, &err), HALE_OK);
	close(ends[1]);
	close(l.fd[0]);
	while ((n = read(ends[0], out + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	environment_free(l.env);
	return status;
}

static void a_launched_process_leads_its_group_without_randomisation(void **state)
{
	char out[256];
	unsigned pid, group, persona, launched;

	run("echo $$ $(cut -d' ' -f5 /proc/$$/stat) $(cat /proc/$$/personality) $HALE_LAUNCH_PID",
	    out, sizeof(out));
	assert_int_equal(sscanf(out, "%u %u %x %u", &pid, &group, &persona, &launched), 4);
	assert_int_equal(pid, group);
	assert_int_equal(pid, launched);
	assert_true(persona & ADDR_NO_RANDOMIZE);
}

static void a_launched_process_has_three_descriptors_and_no_blocked_signal(void **state)
{
	char out[512];
	int extra = open("/dev/zero", O_RDONLY); /* as something that our caller left open */
	sigset_t some, before;

	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigprocmask(SIG_BLOCK, &some, &before);
	run("for i in 0 1 2 3 4 5 6 7 8 9 10 11 12; do [ -e /proc/$$/fd/$i ] && echo fd $i; done;"
	    /* no other process for this: a shell that forks has signals blocked for a moment */
	    "while read -r line; do case $line in SigBlk*) echo \"$line\";; esac; done "
	    "</proc/$$/status",
	    out, sizeof(out));
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(extra);
	assert_string_equal(out, "fd 0\nfd 1\nfd 2\nSigBlk:\t0000000000000000\n");
}

static void what_cannot_be_executed_is_an_error_and_leaves_no_child(void **state)
{
	char *argv[] = {"/etc/passwd", NULL};
	char *env[] = {NULL};
	struct launch l = {.path = "/etc/passwd", .argv = argv, .env = env, .fd = {0, 1, 2}};
	struct error err;
	pid_t pid;

	assert_int_equal(launch_process(&l, &pid, &err), HALE_ERR_PROCESS);
	assert_int_equal(pid, 0);
	l.path = "/bin/true";
	l.wdir = "/no/such/folder";
	assert_int_equal(launch_process(&l, &pid, &err), HALE_ERR_PROCESS);
	assert_non_null(strstr(err.text, "/no/such/folder"));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* ---- the supervisor ---- */

static int told; /* where agents of the tests write what they have found */

static bool always(void *arg)
{
	return true;
}

static void tell(pid_t pid)
{
	if (write(told, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		_exit(2);
}

static pid_t launch_sleeper(struct supervisor *g, int out[3])
{
	char *argv[] = {"sh", "-c", "echo begun; exec sleep 1000", NULL};
	char *env[] = {"PATH=/usr/bin:/bin", NULL};
	struct supervisor_launch l = {
	    .rank = 0, .number = 7, .path = "/bin/sh", .argv = argv, .env = env};
	struct error err;
	pid_t pid;

	atomic_store(&g->book->count, 1);
	if (supervisor_spawn(g, &l, &pid, out, always, NULL, &err) != HALE_OK)
		_exit(3);
	return pid;
}

static int agent_that_waits(struct supervisor *g)
{
	int out[3];

	atomic_store(&g->book->adopt, 0);
	tell(getpid());
	tell(launch_sleeper(g, out));
	while (pause() != 0)
		;
	return 0;
}

/* It was killed after it had launched, and before it could know; its successor launches again. */
static int agent_with_a_successor(struct supervisor *g)
{
	char text[16] = "";
	int out[3];
	pid_t pid;

	tell(getpid());
	if (!g->successor) {
		atomic_store(&g->book->adopt, 1);
		tell(launch_sleeper(g, out));
		raise(SIGKILL);
	}
	tell(supervisor_claim(g, HOLD_OUT, 0, NULL) >= 0 && g->ended == SIGKILL);
	pid = launch_sleeper(g, out);
	tell(pid);
	while (read(out[1], text, sizeof(text) - 1) < 0 && errno == EAGAIN)
		usleep(1000);
	tell(strcmp(text, "begun\n") == 0);
	while (!supervisor_kill_all(g->book))
		;
	supervisor_done(g, 5);
	return 5;
}

static int agent_that_dies(struct supervisor *g)
{
	atomic_store(&g->book->adopt, 1);
	tell(getpid());
	return 1;
}

/* Its rank ends at once, and leaves a process that signals who is its parent then. */
static int agent_with_an_orphan(struct supervisor *g)
{
	char script[] =
	    "sh -c 'while read -r pid name state parent rest </proc/$$/stat &&"
	    "       [ $parent != '$PPID' ]; do :; done; trap \"\" USR1;"
	    "       for s in USR1 USR2 ALRM TERM INT HUP QUIT; do kill -$s $parent; done;"
	    "       echo told' &";
	char *argv[] = {"sh", "-c", script, NULL};
	char *env[] = {"PATH=/usr/bin:/bin", NULL};
	struct supervisor_launch l = {
	    .rank = 0, .number = 7, .path = "/bin/sh", .argv = argv, .env = env};
	char text[16] = "";
	struct error err;
	int out[3];
	pid_t pid;

	atomic_store(&g->book->adopt, 0);
	atomic_store(&g->book->count, 1);
	if (supervisor_spawn(g, &l, &pid, out, always, NULL, &err) != HALE_OK)
		return 3;
	while (read(out[1], text, sizeof(text) - 1) < 0 && errno == EAGAIN)
		usleep(1000);
	/* the supervisor looks at signals before it answers */
	supervisor_spawn(g, &l, &pid, out, always, NULL, &err);
	supervisor_done(g, strcmp(text, "told\n") == 0 ? 6 : 4);
	return 0;
}

static int agent_that_ends(struct supervisor *g)
{
	supervisor_done(g, 4);
	return 4;
}

static int agent_that_cannot_launch(struct supervisor *g)
{
	char *argv[] = {"/etc/passwd", NULL};
	char *env[] = {NULL};
	struct supervisor_launch l = {.path = argv[0], .argv = argv, .env = env, .number = 1};
	struct error err = {HALE_OK, ""};
	int fd[3];
	pid_t pid;

	atomic_store(&g->book->count, 1);
	supervisor_done(g,
			supervisor_spawn(g, &l, &pid, fd, always, NULL, &err) == HALE_ERR_PROCESS &&
			    strstr(err.text, "passwd") && pid == 0);
	return 0;
}

/* In a process of its own; its exit status is supervisor_run's. */
static pid_t run_supervisor(int (*agent)(struct supervisor *g), int *from)
{
	int ends[2], link[2];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(pipe2(link, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		told = ends[1];
		_exit(supervisor_run(link[0], link[1], agent, NULL));
	}
	close(ends[1]);
	close(link[0]);
	close(link[1]);
	*from = ends[0];
	return pid;
}

static pid_t hear(int from)
{
	pid_t pid = -1;

	assert_int_equal(read(from, &pid, sizeof(pid)), sizeof(pid));
	return pid;
}

static int status_of(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool is_gone(pid_t pid)
{
	for (int i = 0; i < 5000 && kill(pid, 0) == 0; i++)
		usleep(1000);
	return kill(pid, 0) != 0;
}

static void ranks_die_when_the_agent_is_killed(void **state)
{
	int from;
	pid_t supervisor = run_supervisor(agent_that_waits, &from), agent = hear(from);
	pid_t rank = hear(from);

	assert_int_equal(kill(rank, 0), 0);
	kill(agent, SIGKILL);
	assert_int_equal(status_of(supervisor), 1);
	assert_true(is_gone(rank));
	close(from);
}

static void ranks_die_when_the_supervisor_is_killed(void **state)
{
	int from;
	pid_t supervisor = run_supervisor(agent_that_waits, &from), agent = hear(from);
	pid_t rank = hear(from);

	kill(supervisor, SIGKILL);
	assert_int_equal(status_of(supervisor), -SIGKILL);
	assert_true(is_gone(rank));
	kill(agent, SIGKILL);
	assert_true(is_gone(agent));
	close(from);
}

static void what_is_launched_for_the_same_message_is_launched_once(void **state)
{
	int from;
	pid_t supervisor = run_supervisor(agent_with_a_successor, &from);
	pid_t first = hear(from), rank = hear(from);

	assert_int_not_equal(first, hear(from));
	assert_true(hear(from));
	assert_int_equal(hear(from), rank);
	assert_true(hear(from));
	assert_int_equal(status_of(supervisor), 5);
	assert_true(is_gone(rank));
	close(from);
}

static void agents_that_die_at_once_get_three_successors(void **state)
{
	int from, agents = 0;
	pid_t supervisor = run_supervisor(agent_that_dies, &from), pid;

	while (read(from, &pid, sizeof(pid)) == (ssize_t)sizeof(pid))
		agents++;
	assert_int_equal(agents, 4);
	assert_int_equal(status_of(supervisor), 1);
	close(from);
}

static void a_supervisor_goes_when_it_is_told(void **state)
{
	int from;

	assert_int_equal(status_of(run_supervisor(agent_that_ends, &from)), 4);
	close(from);
	assert_int_equal(status_of(run_supervisor(agent_that_cannot_launch, &from)), 1);
	close(from);
}

static void a_supervisor_outlives_signals_of_what_ranks_leave(void **state)
{
	int from;

	assert_int_equal(status_of(run_supervisor(agent_with_an_orphan, &from)), 6);
	close(from);
}

static void a_supervisor_ends_by_a_signal_of_somebody_else(void **state)
{
	int from;
	pid_t supervisor = run_supervisor(agent_that_waits, &from), agent = hear(from);
	pid_t rank = hear(from);

	kill(supervisor, SIGUSR1);
	kill(supervisor, SIGTERM);
	assert_int_equal(status_of(supervisor), 1);
	assert_true(is_gone(rank) && is_gone(agent));
	close(from);
}

/* An agent that dies has mostly not read all that its supervisor has said. */
static void the_last_words_of_an_agent_are_heard(void **state)
{
	struct ward_packet p = {.type = WARD_SPAWNED};
	int ends[2], null = open("/dev/null", O_RDONLY), fd[WARD_FDS], fds;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_true(ward_say(ends[0], &p, NULL, 0, 0));
	p.type = WARD_HOLD;
	assert_true(ward_say(ends[1], &p, &null, 1, 0));
	p.type = WARD_DONE;
	assert_true(ward_say(ends[1], &p, NULL, 0, 0));
	close(ends[1]);
	assert_int_equal(ward_hear(ends[0], &p, fd, &fds, MSG_DONTWAIT), 1);
	assert_true(p.type == WARD_HOLD && fds == 1);
	close(fd[0]);
	assert_int_equal(ward_hear(ends[0], &p, fd, &fds, MSG_DONTWAIT), 1);
	assert_int_equal(p.type, WARD_DONE);
	assert_int_equal(ward_hear(ends[0], &p, fd, &fds, MSG_DONTWAIT), -1);
	close(ends[0]);
	close(null);
}

static void cores_are_shared_out_evenly(void **state)
{
	for (uint32_t cores = 1; cores <= 40; cores++) {
		for (uint32_t ranks = 1; ranks <= cores; ranks++) {
			uint32_t next = 0;

			for (uint32_t r = 0; r < ranks; r++) {
				uint32_t first, count;

				place_share(cores, ranks, r, &first, &count);
				assert_int_equal(first, next);
				assert_in_range(count, cores / ranks, cores / ranks + 1);
				next = first + count;
			}
			assert_int_equal(next, cores);
		}
	}
}

static void programs_are_found_as_a_shell_finds_them(void **state)
{
	struct program p;
	struct error err;
	int status;

	assert_int_equal(program_examine("sh", NULL, &p, &status, &err), HALE_OK);
	assert_int_equal(p.path[0], '/');
	assert_true(p.elf);
	assert_int_equal(program_examine("no-such-program", NULL, &p, &status, &err),
			 HALE_ERR_ARGUMENT);
	assert_int_equal(status, 127);
	assert_int_equal(program_examine("/etc/passwd", NULL, &p, &status, &err),
			 HALE_ERR_ARGUMENT);
	assert_int_equal(status, 126);
	assert_int_equal(program_examine("/etc", NULL, &p, &status, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(program_examine("./passwd", "/etc", &p, &status, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(status, 126);
}

static void our_own_elf_file_is_read(void **state)
{
	struct elf_file f;
	bool libc = false;

	assert_int_equal(elf_open("/proc/self/exe", &f), ELF_OURS);
	assert_true(f.dynamic);
	for (size_t i = 0; i < f.needed_count; i++)
		libc = libc || strcmp(f.needed[i], "libc.so.6") == 0;
	assert_true(libc);
	elf_close(&f);
	assert_int_equal(elf_open("/etc/passwd", &f), ELF_NOT);
	assert_int_equal(elf_open("/no/such/file", &f), ELF_UNREADABLE);
}

/* Damage everywhere in the headers and the dynamic section: any answer, but no crash. */
static void damaged_elf_files_are_survived(void **state)
{
	char path[] = "/tmp/hale-elf-test-XXXXXX";
	static unsigned char bytes[1 << 20];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = mkstemp(path);
	ssize_t len = read(from, bytes, sizeof(bytes));
	unsigned seed = 1;

	assert_true(len > 4096);
	for (int round = 0; round < 2000; round++) {
		struct elf_file f;
		size_t at =
		    round < 1000 ? (size_t)(round % 1024) : (size_t)rand_r(&seed) % (size_t)len;
		unsigned char good = bytes[at];
		size_t cut = round % 3 == 0 ? (size_t)rand_r(&seed) % (size_t)len : (size_t)len;

		bytes[at] = (unsigned char)rand_r(&seed);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bytes, cut, 0), (ssize_t)cut);
		bytes[at] = good;
		if (elf_open(path, &f) == ELF_OURS)
			elf_close(&f);
	}
	close(fd);
	close(from);
	unlink(path);
}

/* LD_PRELOAD is split at blanks. */
static void libraries_in_a_folder_with_a_blank_are_preloaded_by_name(void **state)
{
	char *inherited[] = {"LD_PRELOAD=/my.so", NULL};
	struct environment_params p = {.inherited = inherited,
				       .libdir = "/my apps/hale",
				       .agent = "a",
				       .token = "t",
				       .job = "j.1",
				       .nranks = 1};
	char **env = environment_make(&p);

	assert_non_null(env);
	assert_string_equal(value_of(env, "LD_PRELOAD"), "/my.so:libhale.so");
	assert_string_equal(value_of(env, "LD_LIBRARY_PATH"), "/my apps/hale");
	environment_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_environment_is_the_users_and_ours),
	    cmocka_unit_test(libraries_in_a_folder_with_a_blank_are_preloaded_by_name),
	    cmocka_unit_test(a_launched_process_leads_its_group_without_randomisation),
	    cmocka_unit_test(a_launched_process_has_three_descriptors_and_no_blocked_signal),
	    cmocka_unit_test(what_cannot_be_executed_is_an_error_and_leaves_no_child),
	    cmocka_unit_test(ranks_die_when_the_agent_is_killed),
	    cmocka_unit_test(ranks_die_when_the_supervisor_is_killed),
	    cmocka_unit_test(what_is_launched_for_the_same_message_is_launched_once),
	    cmocka_unit_test(agents_that_die_at_once_get_three_successors),
	    cmocka_unit_test(a_supervisor_goes_when_it_is_told),
	    cmocka_unit_test(a_supervisor_outlives_signals_of_what_ranks_leave),
	    cmocka_unit_test(a_supervisor_ends_by_a_signal_of_somebody_else),
	    cmocka_unit_test(the_last_words_of_an_agent_are_heard),
	    cmocka_unit_test(cores_are_shared_out_evenly),
	    cmocka_unit_test(programs_are_found_as_a_shell_finds_them),
	    cmocka_unit_test(our_own_elf_file_is_read),
	    cmocka_unit_test(damaged_elf_files_are_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
