// SPDX-License-Identifier: BSD-3-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "image/test/scenario.h"

/* ---- files ---- */

static bool content_is(const char *name, const char *expected)
{
	char buf[256];
	int fd = open(in_folder(name), O_RDONLY);
	ssize_t n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[n < 0 ? 0 : n] = 0;
	return !strcmp(buf, expected);
}

static void put(int fd, const char *text)
{
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void files(void)
{
	int out = open(in_folder("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int log = open(in_folder("log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int both = open(in_folder("both"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	int unlinked = open(in_folder("unlinked"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	int dir = open(folder(), O_RDONLY | O_DIRECTORY);
	char buf[64] = "";
	put(out, "one ");
	int twin = dup(out), null = open("/dev/null", O_RDWR);
	put(log, "first\n");
	put(both, "0123456789");
	put(unlinked, "no name");
	unlink(in_folder("unlinked"));
	CHECK(lseek(both, 4, SEEK_SET) == 4 && lseek(unlinked, 3, SEEK_SET) == 3);
	int in = open(in_folder("both"), O_RDONLY);
	CHECK(read(in, buf, 2) == 2);
	CHECK(!chdir(folder()));
	umask(027);
	struct stat then, now;
	CHECK(!fstat(both, &then));
	take();
	CHECK(content_is("out", "one ") && content_is("log", "first\n"));
	CHECK(content_is("both", "0123456789"));
	CHECK(!fstat(both, &now) && now.st_mtim.tv_sec == then.st_mtim.tv_sec &&
	      now.st_mtim.tv_nsec == then.st_mtim.tv_nsec);
	put(out, "two ");
	put(twin, "three"); /* one offset for both */
	CHECK(content_is("out", "one two three"));
	put(log, "second\n");
	CHECK(content_is("log", "first\nsecond\n"));
	put(both, "XY");
	CHECK(content_is("both", "0123XY6789") && ftruncate(both, 3) == 0);
	CHECK(read(in, buf, sizeof(buf)) == 1 && buf[0] == '2');
	CHECK(read(unlinked, buf, sizeof(buf)) == 4 && !memcmp(buf, "name", 4));
	CHECK(fcntl(log, F_GETFD) == FD_CLOEXEC && fcntl(out, F_GETFD) == 0);
	CHECK(faccessat(dir, "out", F_OK, 0) == 0 && write(null, "x", 1) == 1);
	char *cwd = getcwd(NULL, 0);
	CHECK(!strcmp(cwd, folder()) && umask(0) == 027);
	/* put back for the restored one: one file is gone, one written anew */
	unlink(in_folder("both"));
	int anew = open(in_folder("out"), O_WRONLY | O_TRUNC);
	put(anew, "1");
	close(anew);
}

/* ---- pipes and counters ---- */

static void pipes_and_counters(void)
{
	int pipe_fd[2], big[2], ep = epoll_create1(EPOLL_CLOEXEC);
	uint64_t n = 5;
	static char block[60000];
	CHECK(!pipe2(pipe_fd, O_NONBLOCK) && !pipe(big));
	int event = eventfd(7, EFD_NONBLOCK), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec at = {{0, 0}, {0, 200000000}};
	CHECK(!timerfd_settime(timer, 0, &at, NULL));
	struct epoll_event want = {.events = EPOLLIN, .data.u64 = 0x1234567890};
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, pipe_fd[0], &want));
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int sig = signalfd(-1, &set, 0);
	put(pipe_fd[1], "in flight");
	memset(block, 'b', sizeof(block));
	CHECK(write(big[1], block, sizeof(block)) == (ssize_t)sizeof(block));
	CHECK(write(event, &n, sizeof(n)) == sizeof(n));
	int twin = dup(pipe_fd[1]), wake[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, wake));
	put(wake[0], "wake up");
	struct epoll_event woken = {.events = EPOLLIN | EPOLLET, .data.u64 = 77};
	int loop = epoll_create1(0);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, wake[1], &woken));
	/* two were added by a number that is free by now, and by one that is another file's */
	int gone[2], other = epoll_create1(0);
	struct epoll_event first = {.events = EPOLLIN, .data.u64 = 1}, second = first;
	second.data.u64 = 2;
	CHECK(!pipe(gone) && dup2(gone[0], 300) == 300 && dup2(gone[0], 301) == 301);
	CHECK(!epoll_ctl(other, EPOLL_CTL_ADD, 300, &first) && !close(300));
	CHECK(!epoll_ctl(other, EPOLL_CTL_ADD, 301, &second) && dup2(event, 301) == 301);
	char buf[64];
	take();
	struct epoll_event both[3];
	CHECK(epoll_wait(other, both, 3, 0) == 0);
	put(gone[1], "x");
	CHECK(epoll_wait(other, both, 3, 0) == 2 && both[0].data.u64 + both[1].data.u64 == 3);
	CHECK(!epoll_ctl(other, EPOLL_CTL_ADD, 301, &first) && fcntl(300, F_GETFD) == -1);
	CHECK(epoll_wait(loop, &woken, 1, 0) == 1 && woken.data.u64 == 77);
	CHECK(read(wake[1], buf, sizeof(buf)) == 7 && !memcmp(buf, "wake up", 7));
	CHECK(read(wake[1], buf, sizeof(buf)) == -1 && errno == EAGAIN);
	put(wake[1], "back");
	CHECK(read(wake[0], buf, sizeof(buf)) == 4);
	CHECK(epoll_wait(ep, &want, 1, 0) == 1 && want.data.u64 == 0x1234567890);
	CHECK(read(pipe_fd[0], buf, sizeof(buf)) == 9 && !memcmp(buf, "in flight", 9));
	CHECK(read(pipe_fd[0], buf, sizeof(buf)) == -1 && errno == EAGAIN);
	put(twin, "more");
	CHECK(read(pipe_fd[0], buf, sizeof(buf)) == 4);
	memset(block, 0, sizeof(block));
	size_t got = 0;
	for (ssize_t k; got < sizeof(block); got += (size_t)k)
		CHECK((k = read(big[0], block + got, sizeof(block) - got)) > 0);
	CHECK(block[0] == 'b' && block[59999] == 'b');
	CHECK(read(event, &n, sizeof(n)) == sizeof(n) && n == 12);
	CHECK(read(timer, &n, sizeof(n)) == sizeof(n) && n == 1);
	struct signalfd_siginfo info;
	raise(SIGUSR2);
	CHECK(read(sig, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR2);
}

/* ---- signals and timers ---- */

static volatile sig_atomic_t usr1, alarms, ticks;
static uintptr_t on_stack;

static void on_usr1(int sig)
{
	on_stack = (uintptr_t)__builtin_frame_address(0);
	usr1++;
}

static void on_alarm(int sig)
{
	alarms++;
}

static void on_tick(int sig, siginfo_t *info, void *context)
{
	ticks += info->si_value.sival_int;
}

static void signals(void)
{
	static char stack[65536];
	stack_t ss = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction a = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK}, old;
	sigset_t set, pending;
	CHECK(!sigaltstack(&ss, NULL) && !sigaction(SIGUSR1, &a, NULL));
	a = (struct sigaction){.sa_handler = on_alarm};
	CHECK(!sigaction(SIGALRM, &a, NULL));
	a = (struct sigaction){.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGRTMIN, &a, NULL));
	signal(SIGTERM, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	struct itimerval it = {{0, 50000}, {0, 50000}};
	CHECK(!setitimer(ITIMER_REAL, &it, NULL));
	timer_t first, timer, last;
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	ev.sigev_value.sival_int = 3;
	CHECK(!timer_create(CLOCK_MONOTONIC, &ev, &first) &&
	      !timer_create(CLOCK_MONOTONIC, &ev, &timer) && !timer_delete(first) &&
	      !timer_create(CLOCK_REALTIME, &ev, &last));
	struct itimerspec its = {{0, 40000000}, {0, 40000000}};
	CHECK(!timer_settime(timer, 0, &its, NULL));
	take();
	CHECK(!sigpending(&pending) && sigismember(&pending, SIGUSR1));
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &set) && sigismember(&set, SIGHUP) &&
	      !sigismember(&set, SIGALRM));
	sigdelset(&set, SIGUSR1);
	sigprocmask(SIG_SETMASK, &set, NULL);
	CHECK(usr1 == 1 && on_stack - (uintptr_t)stack < sizeof(stack));
	CHECK(!sigaction(SIGTERM, NULL, &old) && old.sa_handler == SIG_IGN);
	int was = alarms, ticked = ticks;
	for (int i = 0; i < 2000 && (alarms < was + 3 || ticks < ticked + 9); i++)
		usleep(1000);
	CHECK(alarms >= was + 3 && ticks >= ticked + 9);
	CHECK(!timer_delete(timer) && !timer_gettime(last, &its) && !timer_delete(last));
}

/* Of a timer whose signal waits the kernel tells no time: it starts anew when that is taken. */
static void timer_with_waiting_signal(void)
{
	struct itimerval it = {{0, 20000}, {0, 20000}};
	struct sigaction a = {.sa_handler = on_alarm};
	sigset_t set, before;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK(!sigaction(SIGALRM, &a, NULL) && !sigprocmask(SIG_BLOCK, &set, &before));
	CHECK(!setitimer(ITIMER_REAL, &it, NULL));
	do
		CHECK(!sigpending(&set));
	while (!sigismember(&set, SIGALRM));
	take();
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (int i = 0; i < 10000 && alarms < 4; i++)
		usleep(1000);
	CHECK(alarms >= 4);
}

/* ---- small things ---- */

static void attributes(void)
{
	struct rlimit limit = {100, 100};
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 200;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	int high = dup2(1, 150), reaps = 0;
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	take();
	CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &reaps, 0, 0, 0) && reaps == 1);
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur == 200);
	CHECK(dprintf(high, "said\n") == 5);
	size_t len;
	CHECK(!memcmp(image_note(&len), "a note", 6) && len == 6);
	setenv("NEW", "value", 1);
	const char *set = getenv("NEW");
	CHECK(set && !strcmp(set, "value"));
	FILE *p = popen("echo child", "r");
	CHECK(p);
	char line[16];
	CHECK(fgets(line, sizeof(line), p) && !strcmp(line, "child\n") && !pclose(p));
}

/* What ps shows lies in the program's own memory; the kernel only knows where. */
static size_t read_proc(const char *name, char *to, size_t cap)
{
	char path[64];
	size_t len = 0;
	snprintf(path, sizeof(path), "/proc/self/%s", name);
	int fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	for (ssize_t k; len < cap && (k = read(fd, to + len, cap - len)) > 0;)
		len += (size_t)k;
	close(fd);
	return len;
}

static void command_line(void)
{
	static char line[256], environment[65536], auxv[4096], now[65536];
	unsigned size;
	memset(program_invocation_name, 'x', strlen(program_invocation_name));
	size_t lines = read_proc("cmdline", line, sizeof(line));
	size_t words = read_proc("environ", environment, sizeof(environment));
	size_t numbers = read_proc("auxv", auxv, sizeof(auxv));
	CHECK(lines > 1 && line[0] == 'x' && !memmem(environment, words, "T_SINK", 6));
	take();
	/* a kernel without checkpoint/restore can't be told */
	if (prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0))
		return;
	CHECK(read_proc("cmdline", now, sizeof(now)) == lines && !memcmp(now, line, lines));
	CHECK(read_proc("environ", now, sizeof(now)) == words && !memcmp(now, environment, words));
	CHECK(read_proc("auxv", now, sizeof(now)) == numbers && !memcmp(now, auxv, numbers));
}

const struct scenario scenarios_kernel[] = {{"files", files},
					    {"pipes_and_counters", pipes_and_counters},
					    {"signals", signals},
					    {"timer_with_waiting_signal", timer_with_waiting_signal},
					    {"attributes", attributes},
					    {"command_line", command_line},
					    {NULL, NULL}};
