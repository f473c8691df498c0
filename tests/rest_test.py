#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel keeps for a process beside its memory: kept over a rollback, or the checkpoint is
refused by name before anything stops. And a start from the beginning is never silent."""

import errno

from lib import *

KILLED = ["--no-mpi", "--ckpt-every", "100ms", "--inject", "kill:rank=0,after=0.7s", "--report", "report.json"]


def build(s, name, source, *flags):
    r = s.run("gcc", "-O1", "-Wall", "-o", s.path(name), s.write(name + ".c", source), "-pthread", *flags)
    expect(r.status == 0, r)
    return s.path(name)


def rolled_back(s, *program):
    """Its output, after a rollback to a checkpoint. On a busy machine none may be whole when the kill comes: then once
    more, a few times."""
    for _ in range(6):
        r = s.hale_run(1, *program, options=KILLED)
        expect(r.status == 0, r)
        failures = s.report()["failures"]
        if len(failures) == 1 and failures[0]["rolled_back_to"] > 0:
            return r.out
    expect(False, "it has never gone back to a checkpoint", s.report())


def gone_back(s, program):
    """Its output. It has made the file "begun", and waits for the file "go": between the two it is killed, and goes back."""
    job = s.hale_start(1, program, options=["--no-mpi", "--ckpt-every", "1h"])
    job.until(lambda: os.path.exists(s.path("begun")), "the program")
    job.checkpoint()
    os.kill(job.info()["ranks"][0]["pid"], signal.SIGKILL)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and "rolling back to checkpoint 1" in r.err and "from its beginning" not in r.err, r)
    return r.out


MUTEXES = """
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { THREADS = 10, KINDS = 5 };
static pthread_mutex_t m[KINDS];
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long sums[KINDS];
static volatile int stop, done[THREADS];
#define OK(x) do { int rc_ = (x); if (rc_) { printf("%s: %d\\n", #x, rc_); exit(1); } } while (0)
static void *work(void *arg)
{
	size_t me = (size_t)arg;
	while (!stop) {
		int k = (me + done[me]) % KINDS;
		OK(pthread_mutex_lock(&m[k]));
		if (k == 1 || k == 2)
			OK(pthread_mutex_lock(&m[k])); /* recursive ones */
		sums[k]++;
		if (k == 0 && done[me] % 3 == 0) {
			pthread_cond_signal(&cond);
			struct timespec t;
			clock_gettime(CLOCK_REALTIME, &t);
			t.tv_nsec = (t.tv_nsec + 2000000) % 1000000000;
			int rc = pthread_cond_timedwait(&cond, &m[k], &t);
			if (rc && rc != ETIMEDOUT)
				OK(rc);
		}
		usleep(300);
		OK(pthread_mutex_unlock(&m[k]));
		if (k == 1 || k == 2)
			OK(pthread_mutex_unlock(&m[k]));
		done[me]++;
	}
	return NULL;
}
static void make(int k, int robust, int protocol, int type)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	OK(pthread_mutexattr_setrobust(&a, robust));
	OK(pthread_mutexattr_setprotocol(&a, protocol));
	OK(pthread_mutexattr_settype(&a, type));
	OK(pthread_mutex_init(&m[k], &a));
}
int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	long all = 0, sum = 0;
	make(0, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ERRORCHECK);
	make(1, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_RECURSIVE);
	make(2, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_RECURSIVE);
	make(3, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL);
	make(4, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_NORMAL);
	for (int k = 0; k < KINDS; k++)
		OK(pthread_mutex_lock(&m[k]));
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 130; i++) {
		usleep(10000);
		for (int k = 0; i == 100 && k < KINDS; k++)
			OK(pthread_mutex_unlock(&m[k]));
	}
	stop = 1;
	for (int i = 0; i < THREADS; i++) {
		OK(pthread_join(t[i], NULL));
		all += done[i];
	}
	for (int k = 0; k < KINDS; k++)
		sum += sums[k];
	printf("%s\\n", all == sum && all ? "right" : "wrong");
	return 0;
}
"""


@test
def mutexes_that_name_their_owner_go_on_after_a_rollback(s):
    """Held by some threads, wanted by others, which have read their own id already."""
    exe = build(s, "mutexes", MUTEXES)
    for i in range(2):
        expect(rolled_back(s, exe) == "right\n")


LOCKS = """
import fcntl, os, subprocess, sys, time
whole = open("whole", "w"); fcntl.flock(whole, fcntl.LOCK_EX)
part = open("part", "w+"); fcntl.lockf(part, fcntl.LOCK_EX, 10, 5)
open("here", "w").close()
for i in range(150): time.sleep(0.01)
other = open("whole")
try:
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB); print("not locked")
except BlockingIOError:
    print("locked")
sys.stdout.flush()
print(subprocess.call(["/usr/bin/python3", "-c", '''
import fcntl
part = open("part", "r+")
fcntl.lockf(part, fcntl.LOCK_EX | fcntl.LOCK_NB, 4, 0)
try: fcntl.lockf(part, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 14)
except BlockingIOError: raise SystemExit(3)
''']))
"""


@test
def locks_on_files_are_kept(s):
    expect(rolled_back(s, PYTHON, "-c", LOCKS) == "locked\n3\n")


FILES = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
enum { WRITTEN = 8192, SIZE = 8000, ROUNDS = 1000 };
#define OK(x) do { if (!(x)) { printf("round %d: not %s\\n", i, #x); return 1; } } while (0)
int main(void)
{
	int direct = open("direct", O_CREAT | O_RDWR | O_DIRECT, 0644), look = open("direct", O_RDONLY), i = 0, last;
	FILE *f = fopen("stream", "w");
	char *block = aligned_alloc(4096, WRITTEN), got[SIZE];
	struct stat st;
	fprintf(f, "0");
	for (i = 1; i < ROUNDS; i++) {
		memset(block, i, WRITTEN);
		OK(pwrite(direct, block, WRITTEN, 0) == WRITTEN && ftruncate(direct, SIZE) == 0);
		f = freopen(NULL, "r", f);
		OK(fscanf(f, "%d", &last) == 1 && last == i - 1);
		usleep(1000);
		f = freopen(NULL, "r", f);
		OK(fscanf(f, "%d", &last) == 1 && last == i - 1);
		OK(fstat(direct, &st) == 0 && st.st_size == SIZE && fcntl(direct, F_GETFL) & O_DIRECT);
		OK(pread(look, got, SIZE, 0) == SIZE && !memcmp(got, block, SIZE));
		f = freopen(NULL, "w", f);
		fprintf(f, "%d", i);
		fflush(f);
	}
	puts("right");
	return 0;
}
"""


@test
def files_without_cache_and_streams_that_are_opened_again_are_set_back(s):
    exe = build(s, "again", FILES)
    for i in range(3):
        expect(rolled_back(s, exe) == "right\n")


WAITS = """
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>
static sigset_t set;
static struct timespec limit = {1, 0};
static int ready[2];
static struct epoll_event event;
static int with_ppoll(void) { struct pollfd p = {ready[0], POLLIN, 0}; return ppoll(&p, 1, &limit, &set); }
static int with_pselect(void) { return pselect(0, NULL, NULL, NULL, &limit, &set); }
static int with_epoll(void) { return epoll_pwait(epoll_create1(0), &event, 1, 1000, &set); }
static int with_sigwaitinfo(void) { return sigwaitinfo(&set, NULL); }
static void *wait_for(void *call)
{
	errno = 0;
	int rc = ((int (*)(void))call)();
	return (void *)(long)(rc < 0 ? -errno : rc);
}
int main(void)
{
	int (*call[])(void) = {with_ppoll, with_pselect, with_epoll, with_sigwaitinfo};
	pthread_t t[4];
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pipe(ready);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, wait_for, call[i]);
	usleep(1200000);
	pthread_kill(t[3], SIGUSR2);
	for (int i = 0; i < 4; i++) {
		void *rc;
		pthread_join(t[i], &rc);
		printf("%ld ", (long)rc);
	}
	puts("");
	return 0;
}
"""


@test
def calls_with_a_mask_of_signals_go_on_waiting_over_checkpoints(s):
    r = s.hale_run(1, build(s, "waits", WAITS), options=["--no-mpi", "--ckpt-every", "100ms", "--report", "report.json"])
    expect(r.status == 0 and r.out == f"0 0 0 {signal.SIGUSR2} \n" and s.report()["checkpoints"], r)


LIMITED = """
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
enum { FEW = 11 };
static sigset_t set;
static const struct timespec limit = {1, 0};
static int pair[2], listener, late[2], full[2], sem, word;
static struct pollfd nothing = {-1, POLLIN, 0};
static char room[1 << 16];
static struct epoll_event event;
static long with_sigtimedwait(void) { return sigtimedwait(&set, NULL, &limit); }
static long with_poll(void) { return syscall(SYS_poll, &nothing, 1, 1000); }
static long with_futex(void) { return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &limit, NULL, 0); }
static long with_pwait2(void) { return syscall(SYS_epoll_pwait2, epoll_create1(0), &event, 1, &limit, NULL, 8); }
static long with_sem(void) { struct sembuf op = {0, -1, 0}; return semtimedop(sem, &op, 1, &limit); }
static long with_recv(void) { return recv(pair[0], room, 1, 0); }
static long with_read(void) { return read(pair[1], room, 1); }
static long with_recvfrom(void) { return syscall(SYS_recvfrom, pair[0], room, 1, 0, NULL, NULL); }
static long with_accept(void) { return accept(listener, NULL, NULL); }
static long with_late(void) { return read(late[0], room, 1); }
static long with_send(void)
{
	while (send(full[0], room, sizeof(room), MSG_DONTWAIT) > 0)
		;
	return send(full[0], room, sizeof(room), 0);
}
static void *wait_for(void *call)
{
	errno = 0;
	long rc = ((long (*)(void))call)();
	return (void *)(rc < 0 ? -errno : rc);
}
int main(void)
{
	long (*call[FEW])(void) = {with_sigtimedwait, with_poll, with_futex, with_pwait2, with_sem, with_recv,
				   with_read, with_recvfrom, with_accept, with_send, with_late};
	struct timeval socket_limit = {1, 0}, long_limit = {100, 0};
	struct sockaddr_un a = {AF_UNIX, "listener"};
	struct timespec end;
	pthread_t t[FEW];
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	socketpair(AF_UNIX, SOCK_STREAM, 0, late);
	socketpair(AF_UNIX, SOCK_STREAM, 0, full);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(listener, (struct sockaddr *)&a, sizeof(a));
	listen(listener, 1);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &socket_limit, sizeof(socket_limit));
	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &socket_limit, sizeof(socket_limit));
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &socket_limit, sizeof(socket_limit));
	setsockopt(full[0], SOL_SOCKET, SO_SNDTIMEO, &socket_limit, sizeof(socket_limit));
	setsockopt(late[0], SOL_SOCKET, SO_RCVTIMEO, &long_limit, sizeof(long_limit));
	sem = semget(IPC_PRIVATE, 1, 0600);
	for (int i = 0; i < FEW; i++)
		pthread_create(&t[i], NULL, wait_for, call[i]);
	usleep(1500000);
	write(late[1], "abc", 3);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 60;
	for (int i = 0; i < FEW; i++) {
		void *rc;
		if (pthread_timedjoin_np(t[i], &rc, &end))
			printf("waits ");
		else
			printf("%ld ", (long)rc);
	}
	puts("");
	semctl(sem, 0, IPC_RMID);
	return 0;
}
"""


@test
def calls_with_a_limit_go_on_waiting_over_checkpoints_and_end(s):
    """Also where checkpoints come sooner than the limit, and by libc's syscall."""
    r = s.hale_run(1, build(s, "limited", LIMITED), options=["--no-mpi", "--ckpt-every", "100ms", "--report", "report.json"])
    again, late = -errno.EAGAIN, -errno.ETIMEDOUT
    wanted = [again, 0, late, 0, again, again, again, again, again, again, 1]
    expect(r.status == 0 and r.out.split() == [str(w) for w in wanted] and s.report()["checkpoints"], r, wanted)


KEPT = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#define OK(x) do { if (!(x)) printf("not %s\\n", #x); } while (0)
static volatile int made, over;
static void make_timer(clockid_t clock)
{
	struct sigevent none = {.sigev_notify = SIGEV_NONE};
	struct itimerspec long_time = {{0, 0}, {1000, 0}};
	timer_t timer;
	OK(!timer_create(clock, &none, &timer) && !timer_settime(timer, 0, &long_time, NULL));
}
static void *work(void *arg)
{
	make_timer(CLOCK_THREAD_CPUTIME_ID);
	made = gettid();
	while (!over)
		usleep(10000);
	return NULL;
}
static int has_timer(int clock)
{
	char line[200], wanted[40];
	FILE *f = fopen("/proc/self/timers", "r");
	int found = 0;
	sprintf(wanted, "ClockID: %d\\n", clock);
	while (fgets(line, sizeof(line), f))
		found += !strcmp(line, wanted);
	fclose(f);
	return found;
}
static void put_packets(int fd)
{
	OK(write(fd, "abc", 3) == 3 && write(fd, "de", 2) == 2 && write(fd, "f", 1) == 1);
}
static void take_packets(int fd)
{
	char got[10];
	OK(read(fd, got, 10) == 3 && read(fd, got, 1) == 1 && got[0] == 'd' && read(fd, got, 10) == 1 && got[0] == 'f');
}
static void disarm(int epoll, int fd, int other)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT};
	char c;
	OK(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e));
	OK(write(other, "x", 1) == 1 && epoll_wait(epoll, &e, 1, 0) == 1 && read(fd, &c, 1) == 1);
}
int main(void)
{
	struct itimerspec often = {{0, 10000000}, {0, 10000000}};
	int packets[2], last[2], watched[2], pair[2], epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct epoll_event e;
	unsigned long ticks, rounds;
	clockid_t of_main;
	pthread_t thread;
	char got[10];
	pthread_create(&thread, NULL, work, NULL);
	make_timer(CLOCK_PROCESS_CPUTIME_ID);
	pthread_getcpuclockid(pthread_self(), &of_main);
	make_timer(of_main);
	timerfd_settime(timer, 0, &often, NULL);
	OK(!pipe2(packets, O_DIRECT) && !pipe2(last, O_DIRECT) && !pipe(watched));
	OK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && !mkfifo("named", 0600));
	int reader = open("named", O_RDONLY | O_NONBLOCK), writer = open("named", O_WRONLY);
	fcntl(writer, F_SETFL, O_DIRECT);
	unlink("named");
	put_packets(packets[1]);
	put_packets(writer);
	OK(write(last[1], "xyz", 3) == 3);
	close(last[1]);
	disarm(epoll, watched[0], watched[1]);
	disarm(epoll, pair[0], pair[1]);
	for (rounds = 0; access("go", F_OK) || rounds < 100; rounds++) {
		usleep(10000);
		if (rounds == 30)
			close(open("begun", O_CREAT | O_WRONLY, 0600));
	}
	take_packets(packets[0]);
	take_packets(reader);
	OK(read(last[0], got, 1) == 1 && got[0] == 'x' && read(last[0], got, 10) == 0);
	close(watched[1]);
	close(pair[1]);
	OK(epoll_wait(epoll, &e, 1, 0) == 0);
	OK(read(timer, &ticks, sizeof(ticks)) == sizeof(ticks) && ticks >= rounds - 1);
	OK(has_timer(-6) == 1);
	OK(has_timer((int)(~(unsigned)getpid() << 3) | 6) == 1);
	OK(has_timer((int)(~(unsigned)made << 3) | 6) == 1);
	over = 1;
	pthread_join(thread, NULL);
	puts("done");
	return 0;
}
"""


@test
def packets_of_pipes_disarmed_watches_and_ticks_are_as_they_were(s):
    """And timers on processor time count that of the process, or of the thread."""
    expect((out := gone_back(s, build(s, "kept", KEPT))) == "done\n", out)


OPTIONS = """
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
enum { PAIR, PAIR_TOO, LISTENER, FROM, TO, UDP, UDP6, SOCKETS };
static int fd[SOCKETS];
static struct { int of, level, name, value, was; } option[] = {
	{PAIR, SOL_SOCKET, SO_PASSCRED, 1}, {PAIR_TOO, SOL_SOCKET, SO_PEEK_OFF, 0}, {PAIR, SOL_SOCKET, SO_MARK, 4},
	{FROM, IPPROTO_TCP, TCP_CORK, 1}, {FROM, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 70000}, {FROM, IPPROTO_TCP, TCP_SYNCNT, 3},
	{FROM, SOL_SOCKET, SO_MAX_PACING_RATE, 100000000}, {FROM, SOL_SOCKET, SO_ZEROCOPY, 1},
	{TO, IPPROTO_TCP, TCP_LINGER2, 7}, {TO, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT},
	{TO, IPPROTO_IP, IP_MINTTL, 3}, {LISTENER, IPPROTO_TCP, TCP_DEFER_ACCEPT, 7}, {LISTENER, IPPROTO_TCP, TCP_SAVE_SYN, 1},
	{LISTENER, IPPROTO_TCP, TCP_FASTOPEN, 5}, {UDP, SOL_SOCKET, SO_TIMESTAMPNS, 1}, {UDP, SOL_SOCKET, SO_RXQ_OVFL, 1},
	{UDP, IPPROTO_IP, IP_RECVTTL, 1}, {UDP, IPPROTO_IP, IP_RECVTOS, 1}, {UDP, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE},
	{UDP, IPPROTO_IP, IP_RECVORIGDSTADDR, 1}, {UDP, IPPROTO_UDP, 104, 1}, {UDP6, SOL_SOCKET, SO_TIMESTAMPING, 0x18},
	{UDP6, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO}, {UDP6, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1},
	{UDP6, IPPROTO_IPV6, IPV6_RECVTCLASS, 1}, {UDP6, IPPROTO_IPV6, IPV6_DONTFRAG, 1}, {UDP6, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 9},
	{UDP6, IPPROTO_IPV6, IPV6_RECVPATHMTU, 1}};
enum { OPTIONS = sizeof(option) / sizeof(option[0]) };
static int is_now(int i)
{
	int v = -2;
	socklen_t len = sizeof(v);
	return getsockopt(fd[option[i].of], option[i].level, option[i].name, &v, &len) ? -2 : v;
}
int main(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct timeval limit = {5, 0}, now;
	char name[16] = "", text[4] = "";
	struct ucred peer;
	socklen_t len = sizeof(a);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		return 1;
	fd[LISTENER] = socket(AF_INET, SOCK_STREAM, 0);
	bind(fd[LISTENER], (struct sockaddr *)&a, sizeof(a));
	listen(fd[LISTENER], 4);
	getsockname(fd[LISTENER], (struct sockaddr *)&a, &len);
	fd[FROM] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd[FROM], (struct sockaddr *)&a, sizeof(a)) || (fd[TO] = accept(fd[LISTENER], NULL, NULL)) < 0)
		return 2;
	close(fd[LISTENER]);
	fd[LISTENER] = socket(AF_INET, SOCK_STREAM, 0);
	for (int i = 0; i < OPTIONS; i++)
		if (option[i].of == LISTENER)
			setsockopt(fd[LISTENER], option[i].level, option[i].name, &option[i].value, sizeof(int));
	listen(fd[LISTENER], 4);
	fd[UDP] = socket(AF_INET, SOCK_DGRAM, 0);
	fd[UDP6] = socket(AF_INET6, SOCK_DGRAM, 0);
	write(fd[PAIR], "abc", 3);
	setsockopt(fd[PAIR], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd[FROM], IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
	for (int i = 0; i < OPTIONS; i++) {
		setsockopt(fd[option[i].of], option[i].level, option[i].name, &option[i].value, sizeof(int));
		option[i].was = is_now(i);
		if (option[i].was != option[i].value && option[i].name != SO_MARK && option[i].name != TCP_SYNCNT)
			fprintf(stderr, "option %d.%d.%d is %d here\\n", option[i].of, option[i].level, option[i].name, option[i].was);
	}
	recv(fd[PAIR_TOO], text, 1, MSG_PEEK);
	fclose(fopen("begun", "w"));
	while (access("go", F_OK))
		usleep(10000);
	for (int i = 0; i < OPTIONS; i++)
		if (option[i].name != SO_PEEK_OFF && is_now(i) != option[i].was)
			printf("option %d.%d.%d is %d\\n", option[i].of, option[i].level, option[i].name, is_now(i));
	len = sizeof(now);
	getsockopt(fd[PAIR], SOL_SOCKET, SO_RCVTIMEO, &now, &len);
	len = sizeof(name);
	getsockopt(fd[FROM], IPPROTO_TCP, TCP_CONGESTION, name, &len);
	len = sizeof(peer);
	getsockopt(fd[PAIR], SOL_SOCKET, SO_PEERCRED, &peer, &len);
	recv(fd[PAIR_TOO], text, 3, MSG_PEEK);
	printf("%s %d %d %s\\n", name, (int)now.tv_sec, peer.pid == getpid(), text);
	return 0;
}
"""


@test
def options_of_sockets_are_as_they_were(s):
    """Also those of socket pairs; and a place in what is looked at by MSG_PEEK is the program's own."""
    out = gone_back(s, build(s, "options", OPTIONS))
    expect(out == "reno 5 1 bc\n", out)


URGENT = """
import os, socket, time
kind = os.environ["KIND"]
if kind == "unix":
    a, b = socket.socketpair()
else:
    door = socket.create_server(("127.0.0.1", 0)); a = socket.create_connection(door.getsockname()); b, _ = door.accept()
    door.close()
a.send(b"before"); a.send(b"!", socket.MSG_OOB); a.send(b"after")
time.sleep(0.1)
if kind == "seen":
    b.recv(1, socket.MSG_OOB)
while not os.path.exists("go"): time.sleep(0.02)
got = b.recv(6) + (b"" if kind == "seen" else b.recv(1, socket.MSG_OOB)) + b.recv(5)
print("done" if got == (b"beforeafter" if kind == "seen" else b"before!after") else got)
"""


@test
def connections_with_urgent_data_are_refused_by_name(s):
    """Also where that was read, and its place was not passed yet: what comes behind it can't be looked at."""
    for kind in "tcp", "seen", "unix":
        job = s.hale_start(1, PYTHON, "-c", URGENT, options=["--no-mpi", "--ckpt-every", "100ms", "--ckpt-wait", "200ms"],
                           env={"KIND": kind})
        job.until_says(r"checkpoint \d+ failed, the job goes on: .*with urgent data \(MSG_OOB\) that nobody has read")
        s.write("go", "")
        r = job.wait()
        expect(r.status == 0 and r.out == "done\n", kind, r)
        os.unlink(s.path("go"))


@test
def a_lock_that_another_process_has_by_then_is_not_shared(s):
    """The image needs it: refused, with its reason; and the job says that it starts from its beginning."""
    job = s.hale_start(1, PYTHON, "-c", "import fcntl, os, time\n"
                       "f = open('file', 'w')\n"
                       "try: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
                       "except BlockingIOError: print('it is taken'); raise SystemExit\n"
                       "open('begun', 'w').close()\n"
                       "while True: time.sleep(0.05)\n",
                       options=["--no-mpi", "--ckpt-every", "1h"])
    job.until(lambda: os.path.exists(s.path("begun")), "the lock")
    job.checkpoint()
    pid = job.info()["ranks"][0]["pid"]
    stranger = subprocess.Popen(["flock", s.path("file"), "sleep", "60"])
    try:
        os.kill(pid, signal.SIGKILL)
        r = job.wait()
    finally:
        for p in children(stranger.pid) + [stranger.pid]:
            os.kill(p, signal.SIGKILL)
        stranger.wait()
    expect(r.status == 0 and "it is taken" in r.out, r)
    expect("which the program had at the checkpoint, can't be taken again" in r.err, r)
    expect(re.search(r"the job starts again from its beginning \(.* lost\), since no checkpoint of it can be "
                     r"restored; the last one that was tried is refused: rank 0 could not be rebuilt", r.err), r)


def refused(s, why, *program):
    """By name, before anything stops; the job goes on."""
    job = s.hale_start(1, *program, options=["--no-mpi", "--ckpt-every", "100ms"])
    job.until_says(r"no checkpoint: rank 0 can't be captured: .*" + why)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "done\n", r)
    os.unlink(s.path("go"))


OWNED = """
import fcntl, os, time
r, w = os.pipe()
fcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())
while not os.path.exists("go"):
    time.sleep(0.01)
print("done")
"""


SANDBOX = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	struct sock_fprog all = {1, &allow};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all))
		return 1;
	while (access("go", F_OK))
		usleep(10000);
	puts("done");
	return 0;
}
"""

@test
def what_can_not_be_kept_is_refused_by_name(s):
    refused(s, r"has filtered its system calls \(seccomp\)", build(s, "sandbox", SANDBOX))
    job = s.hale_start(1, PYTHON, "-c", OWNED, options=["--no-mpi", "--ckpt-every", "100ms"])
    job.until_says(r"checkpoint \d+ failed, the job goes on: .*sends signals to a process that is not captured with it")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "done\n", r)


@test
def a_named_pipe_that_a_stranger_has_open_is_refused_with_his_name(s):
    os.mkfifo(s.path("pipe"))
    reader = subprocess.Popen(["cat", s.path("pipe")], stdout=subprocess.DEVNULL)
    try:
        refused(s, rf"is a named pipe that process {reader.pid} \(cat\) has open", PYTHON, "-c",
                "import os, time\n"
                "f = open('pipe', 'w')\n"
                "while not os.path.exists('go'): time.sleep(0.02)\n"
                "print('done')\n")
        reader.wait(10)  # who had written is gone
    finally:
        if reader.poll() is None:
            reader.kill()
        reader.wait()


SEQUENCES = """
#include <linux/rseq.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
extern const ptrdiff_t __rseq_offset;
static struct rseq own;
int main(void)
{
	void *libc = (char *)__builtin_thread_pointer() + __rseq_offset;
	syscall(SYS_rseq, libc, 32, RSEQ_FLAG_UNREGISTER, 0x53053053);
	if (syscall(SYS_rseq, &own, 32, 0, 0x53053053))
		return 1;
	while (access("go", F_OK))
		usleep(10000);
	puts("done");
	return 0;
}
"""

NAMES = "import os, time\n" \
        "os.mkdir('aside'); f = open('one', 'w+'); os.link('one', 'aside/two'); os.unlink('one')\n" \
        "while not os.path.exists('go'): time.sleep(0.02)\n" \
        "print('done')\n"


VIEWS = "import mmap, os, time\n" \
        "f = open('one', 'w+b'); f.truncate(4096); os.unlink('one')\n" \
        "m = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE)\n" \
        "while not os.path.exists('go'): time.sleep(0.02)\n" \
        "print('done')\n"


WIPED = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, 4096, MADV_WIPEONFORK);
	strcpy(p, "done");
	while (access("go", F_OK))
		usleep(10000);
	puts(p);
	return 0;
}
"""


@test
def what_an_image_can_not_tell_is_refused_by_name(s):
    job = s.hale_start(1, build(s, "wiped", WIPED), options=["--no-mpi", "--ckpt-every", "100ms"])
    job.until_says(r"checkpoint 1 failed, the job goes on: .*is empty in forked processes \(MADV_WIPEONFORK\)")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "done\n", r)
    os.unlink(s.path("go"))
    refused(s, "a file that has lost the name it was opened by", PYTHON, "-c", NAMES)
    refused(s, "is a private one of a file without a name", PYTHON, "-c", VIEWS)
    job = s.hale_start(1, build(s, "sequences", SEQUENCES), options=["--no-mpi", "--ckpt-every", "100ms"])
    job.until_says(r"checkpoint 1 failed, the job goes on: .*has registered for restartable sequences by itself")
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == "done\n", r)


@test
def the_checkpoint_after_one_that_could_not_fork_stands_still_at_once(s):
    """Also if it is asked for before the process that found it out has ended."""
    exe = build(s, "wiped", WIPED)
    for i in range(3):
        job = s.hale_start(1, exe, options=["--no-mpi", "--ckpt-every", "1h"])
        job.until(lambda: (j := job.info()) and [r["state"] for r in j["ranks"]] == ["running"], "the program")
        r = s.hale("ckpt", job.id())
        expect(r.status == 1 and "the next checkpoint is written while the process stands still" in r.err, r)
        job.checkpoint()
        s.write("go", "")
        r = job.wait()
        expect(r.status == 0 and r.out == "done\n", r)
        os.unlink(s.path("go"))


REST = """
import mmap, os, resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
os.nice(4)
big = mmap.mmap(-1, 40 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
big[30 << 30] = 7
for i in range(150): time.sleep(0.01)
print(resource.getrlimit(resource.RLIMIT_NOFILE), os.sched_getaffinity(0) == {cpu}, os.nice(0), big[30 << 30])
"""


@test
def limits_processors_priorities_and_unreserved_memory_come_back(s):
    out = rolled_back(s, PYTHON, "-c", REST)
    expect(out == f"(200, 300) True {os.nice(0) + 4} 7\n", out)


@test
def a_job_whose_checkpoints_are_gone_says_that_it_starts_anew(s):
    job = s.hale_start(1, PYTHON, "-c", "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\n"
                       "print('done')", options=["--no-mpi", "--ckpt-every", "1h"])
    path = job.checkpoint()
    pid = job.info()["ranks"][0]["pid"]
    shutil.rmtree(path)
    s.write("go", "")
    os.kill(pid, signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0 and r.out == "done\n", r)
    expect("the job starts again from its beginning" in r.err and "are not in" in r.err, r)


@test
def a_job_that_never_had_a_whole_checkpoint_misses_none(s):
    r = s.hale_run(1, PYTHON, "-c", "import time\ntime.sleep(1.5)\nprint('done')",
                   options=["--no-mpi", "--ckpt-every", "200ms", "--inject", "kill:rank=0,at-ckpt=1"])
    expect(r.status == 0 and r.out == "done\n", r)
    expect("rolling back to the beginning" in r.err and "are not in" not in r.err, r)


main()
