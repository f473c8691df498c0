// SPDX-License-Identifier: BSD-3-Clause
/* What the kernel keeps for a process beside memory, descriptors and signals: limits, priorities,
 * locks. */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/test/scenario.h"

enum { PAGE = 4096 };

static pthread_barrier_t barrier;

/* ---- how threads run ---- */

static int first_of(const cpu_set_t *set)
{
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, set))
			return i;
	return -1;
}

static void *runs_otherwise(void *arg)
{
	struct sched_param none = {0};
	cpu_set_t one = *(cpu_set_t *)arg, now;
	CHECK(!sched_setscheduler(0, SCHED_BATCH, &none));
	CHECK(!pthread_setaffinity_np(pthread_self(), sizeof(one), &one));
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	CHECK(sched_getscheduler(0) == SCHED_BATCH);
	CHECK(!pthread_getaffinity_np(pthread_self(), sizeof(now), &now) && CPU_EQUAL(&now, &one));
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
	return NULL;
}

static void scheduling(void)
{
	pthread_t thread;
	cpu_set_t all, one, now;
	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	CPU_SET(first_of(&all), &one);
	pthread_barrier_init(&barrier, NULL, 2);
	CHECK(!pthread_create(&thread, NULL, runs_otherwise, &one));
	pthread_barrier_wait(&barrier);
	CHECK(!setpriority(PRIO_PROCESS, 0, 3));
	take();
	CHECK(getpriority(PRIO_PROCESS, 0) == 3 && sched_getscheduler(0) == SCHED_OTHER);
	CHECK(!sched_getaffinity(0, sizeof(now), &now) && CPU_EQUAL(&now, &all));
	CHECK(!prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	pthread_barrier_wait(&barrier);
	CHECK(!pthread_join(thread, NULL));
}

static void limits(void)
{
	struct rlimit files = {200, 300}, core = {0, 0}, space = {RLIM_INFINITY, RLIM_INFINITY};
	space.rlim_cur = space.rlim_max = 1ul << 42;
	CHECK(!setrlimit(RLIMIT_NOFILE, &files) && !setrlimit(RLIMIT_CORE, &core));
	CHECK(!setrlimit(RLIMIT_AS, &space));
	take();
	CHECK(!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur == 200 && files.rlim_max == 300);
	CHECK(!getrlimit(RLIMIT_CORE, &core) && core.rlim_cur == 0 && core.rlim_max == 0);
	CHECK(!getrlimit(RLIMIT_AS, &space) && space.rlim_max == 1ul << 42);
}

/* ---- memory ---- */

static void unreserved_memory(void)
{
	struct sysinfo info;
	CHECK(!sysinfo(&info));
	/* more than the kernel gives to anybody who means to use it */
	size_t len = 2 * (info.totalram + info.totalswap) * info.mem_unit + (1ul << 30);
	char *m = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(m != MAP_FAILED);
	fill(m + len / 2, 3 * PAGE, 1);
	take();
	CHECK(filled(m + len / 2, 3 * PAGE, 1) && zero(m + len - PAGE, PAGE) && zero(m, PAGE));
	fill(m + len - PAGE, PAGE, 2);
	take();
	CHECK(filled(m + len / 2, 3 * PAGE, 1) && filled(m + len - PAGE, PAGE, 2));
}

static void growing_memory(void)
{
	char *room = mmap(NULL, 1024 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(room != MAP_FAILED && !munmap(room, 1024 * PAGE));
	char *top = mmap(room + 1000 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
	CHECK(top == room + 1000 * PAGE);
	fill(top - 2 * PAGE, 3 * PAGE, 1);
	take();
	CHECK(filled(top - 2 * PAGE, 3 * PAGE, 1));
	fill(top - 9 * PAGE, 5 * PAGE, 2);
	take();
	fill(top - 20 * PAGE, 5 * PAGE, 3);
	CHECK(filled(top - 9 * PAGE, 5 * PAGE, 2) && filled(top - 20 * PAGE, 5 * PAGE, 3));
}

/* KiB of this mapping that are locked, of all that the process has locked; whether it is by itself.
 */
static long locked(void)
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmLck: %ld", &kib);
	fclose(f);
	return kib;
}

static void locked_memory(void)
{
	char *part =
	    mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *lazy =
	    mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char there[64];
	CHECK(part != MAP_FAILED && lazy != MAP_FAILED);
	CHECK(!mlock(part + 2 * PAGE, 3 * PAGE) && !mlock2(lazy, 64 * PAGE, MLOCK_ONFAULT));
	lazy[5 * PAGE] = 1;
	CHECK(locked() == 67 * PAGE / 1024);
	take();
	CHECK(locked() == 67 * PAGE / 1024);
	/* the pages of one are there, though they are zero; those of the other come when used */
	CHECK(!mincore(part + 2 * PAGE, 3 * PAGE, there) && there[0] & there[1] & there[2] & 1);
	CHECK(!mincore(lazy, 64 * PAGE, there) && there[5] & 1 && !(there[30] & 1));
	CHECK(!munlockall() && !mlockall(MCL_FUTURE));
	take();
	long before = locked();
	char *more =
	    mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(more != MAP_FAILED && locked() == before + 4 * PAGE / 1024);
}

/* ---- small things ---- */

enum { MAPPINGS = 8000 };

static void registrations_and_seals(void)
{
	int memory = memfd_create("sealed", MFD_ALLOW_SEALING), plain = memfd_create("plain", 0);
	struct stat st;
	char adj[16] = "";
	int oom = open("/proc/self/oom_score_adj", O_RDWR);
	CHECK(oom >= 0 && write(oom, "300", 3) == 3 && !close(oom));
	CHECK(memory >= 0 && plain >= 0 && write(memory, "x", 1) == 1 && !fchmod(memory, 0640));
	CHECK(!fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE));
	CHECK(!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
	int file = open(in_folder("file"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(file >= 0 && !ftruncate(file, PAGE));
	char *shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
	CHECK(shared != MAP_FAILED && !close(file));
	take();
	CHECK(fcntl(memory, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_WRITE));
	CHECK(fcntl(plain, F_GET_SEALS) == F_SEAL_SEAL);
	CHECK(!fstat(memory, &st) && (st.st_mode & 07777) == 0640);
	CHECK(!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
	CHECK(!mprotect(shared, PAGE, PROT_READ | PROT_WRITE));
	shared[0] = 1;
	oom = open("/proc/self/oom_score_adj", O_RDONLY);
	CHECK(oom >= 0 && read(oom, adj, sizeof(adj)) == 4 && !memcmp(adj, "300\n", 4));
}

/* Every other page can be written: as many mappings. */
static void many_mappings(void)
{
	size_t len = 2ul * MAPPINGS * PAGE;
	char *m = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m != MAP_FAILED);
	for (int i = 0; i < MAPPINGS; i++) {
		CHECK(!mprotect(m + 2ul * (size_t)i * PAGE, PAGE, PROT_READ | PROT_WRITE));
		*(int *)(m + 2ul * (size_t)i * PAGE) = i;
	}
	take();
	for (int i = 0; i < MAPPINGS; i++)
		CHECK(*(int *)(m + 2ul * (size_t)i * PAGE) == i);
}

/* ---- locks on files ---- */

static bool is_free(const char *name, short type, off_t start)
{
	pid_t pid = fork();
	int status;
	if (!pid) {
		struct flock l = {
		    .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = 1};
		int fd = open(in_folder(name), O_RDWR);
		CHECK(fd >= 0);
		if (start < 0) /* a lock of the whole file */
			_exit(flock(fd, (type == F_WRLCK ? LOCK_EX : LOCK_SH) | LOCK_NB) ? 7 : 0);
		CHECK(!fcntl(fd, F_OFD_GETLK, &l));
		_exit(l.l_type == F_UNLCK ? 0 : 7);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7);
	return !WEXITSTATUS(status);
}

static int lock_range(int fd, int how, short type, off_t start, off_t len)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
	return fcntl(fd, how, &l);
}

static void check_file_locks(void)
{
	CHECK(!is_free("whole", F_WRLCK, -1) && !is_free("whole", F_RDLCK, -1));
	CHECK(!is_free("shared", F_WRLCK, -1) && is_free("shared", F_RDLCK, -1));
	CHECK(is_free("ranges", F_WRLCK, 9) && !is_free("ranges", F_WRLCK, 10));
	CHECK(!is_free("ranges", F_WRLCK, 19) && is_free("ranges", F_WRLCK, 20));
	CHECK(!is_free("ranges", F_WRLCK, 1000000) && is_free("ranges", F_RDLCK, 1000000));
	CHECK(!is_free("open", F_WRLCK, 4) && is_free("open", F_WRLCK, 5));
	CHECK(!is_free("log", F_WRLCK, 0) && is_free("mapped", F_WRLCK, 0));
	CHECK(!is_free("mapped", F_WRLCK, 100));
}

/* Files that the engine reads to save them lose no lock by that. */
static void file_locks(void)
{
	const int how = O_RDWR | O_CREAT | O_TRUNC;
	int whole = open(in_folder("whole"), how, 0600),
	    shared = open(in_folder("shared"), how, 0600);
	int ranges = open(in_folder("ranges"), how, 0600), ofd = open(in_folder("open"), how, 0600);
	int log = open(in_folder("log"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int mapped = open(in_folder("mapped"), how, 0600);
	CHECK(write(ranges, "0123456789", 10) == 10 && write(log, "first\n", 6) == 6);
	CHECK(!flock(whole, LOCK_EX) && !flock(shared, LOCK_SH));
	CHECK(dup(whole) >= 0 && dup(ranges) >= 0);
	CHECK(!lock_range(ranges, F_SETLK, F_WRLCK, 10, 10));
	CHECK(!lock_range(ranges, F_SETLK, F_RDLCK, 100, 0));
	CHECK(!lock_range(ofd, F_OFD_SETLK, F_WRLCK, 4, 1));
	CHECK(!lock_range(log, F_SETLK, F_WRLCK, 0, 0));
	CHECK(!ftruncate(mapped, PAGE) && !lock_range(mapped, F_SETLK, F_WRLCK, 100, 1));
	CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0) != MAP_FAILED);
	check_file_locks();
	take();
	check_file_locks();
	CHECK(!flock(whole, LOCK_UN) && is_free("whole", F_WRLCK, -1));
	CHECK(!lock_range(ranges, F_SETLK, F_UNLCK, 0, 0) && is_free("ranges", F_WRLCK, 15));
}

/* ---- named pipes ---- */

static const char *fifo(const char *name)
{
	unlink(in_folder(name));
	CHECK(!mkfifo(in_folder(name), 0600));
	return in_folder(name);
}

static int fifo_open(const char *name, int how)
{
	int fd = open(in_folder(name), how | O_NONBLOCK);
	CHECK(fd >= 0);
	return fd;
}

static short fifo_events(int fd)
{
	struct pollfd look = {.fd = fd, .events = POLLIN};
	CHECK(poll(&look, 1, 0) >= 0);
	return look.revents;
}

static void fifo_read(int fd, const char *expected)
{
	char text[64];
	ssize_t n = read(fd, text, sizeof(text));
	CHECK(n == (ssize_t)strlen(expected) && !memcmp(text, expected, (size_t)n));
}

/* What a reader knows of its writers counts as well as what is in it. */
static void named_pipes(void)
{
	const char *const names[] = {"talk", "quiet", "left", "kept", "gone"};
	for (size_t i = 0; i < 5; i++)
		fifo(names[i]);
	int reader = fifo_open("talk", O_RDONLY), writer = fifo_open("talk", O_WRONLY);
	int quiet = fifo_open("quiet", O_RDONLY), left = fifo_open("left", O_RDONLY);
	int leaver = fifo_open("left", O_WRONLY), both = fifo_open("kept", O_RDWR);
	int kept = fifo_open("kept", O_WRONLY), gone = fifo_open("gone", O_RDWR);
	struct stat st;
	signal(SIGPIPE, SIG_IGN);
	CHECK(write(writer, "half a line", 11) == 11 && write(leaver, "last words", 10) == 10);
	CHECK(write(both, "kept", 4) == 4 && write(gone, "nameless", 8) == 8);
	CHECK(!close(leaver) && !close(both) && !unlink(in_folder("gone")));
	CHECK(fifo_events(quiet) == 0 && fifo_events(left) == (POLLIN | POLLHUP));
	take();
	fifo_read(reader, "half a line");
	CHECK(read(reader, &st, 1) == -1 && errno == EAGAIN && fifo_events(quiet) == 0);
	CHECK(fifo_events(left) == (POLLIN | POLLHUP));
	fifo_read(left, "last words");
	CHECK(read(left, &st, 1) == 0 && write(kept, "x", 1) == -1 && errno == EPIPE);
	fifo_read(fifo_open("kept", O_RDONLY), "kept");
	fifo_read(gone, "nameless");
	CHECK(!fstat(gone, &st) && S_ISFIFO(st.st_mode) && st.st_nlink == 0);
	CHECK(access(in_folder("gone"), F_OK) && !close(writer));
	/* what wrote the image may have it still */
	CHECK(poll(&(struct pollfd){.fd = reader}, 1, 5000) == 1 && fifo_events(reader) == POLLHUP);
}

/* ---- signals of descriptors ---- */

static volatile sig_atomic_t told, told_of = -1;

static void on_told(int sig, siginfo_t *info, void *context)
{
	told++;
	told_of = info->si_fd;
}

static void owners_and_leases(void)
{
	struct sigaction sa = {.sa_sigaction = on_told, .sa_flags = SA_SIGINFO};
	struct f_owner_ex owner;
	int end[2], leased = open(in_folder("leased"), O_RDWR | O_CREAT, 0600);
	CHECK(!pipe(end) && leased >= 0 && !sigaction(SIGUSR1, &sa, NULL));
	CHECK(!fcntl(end[0], F_SETOWN, getpid()) && !fcntl(end[0], F_SETSIG, SIGUSR1));
	CHECK(!fcntl(end[0], F_SETFL, fcntl(end[0], F_GETFL) | O_ASYNC));
	CHECK(write(end[1], "first", 5) == 5 && told == 1);
	CHECK(!fcntl(leased, F_SETLEASE, F_WRLCK) && !fcntl(leased, F_SETSIG, SIGUSR1));
	take();
	CHECK(told == 1 && fcntl(end[0], F_GETSIG) == SIGUSR1);
	CHECK(!fcntl(end[0], F_GETOWN_EX, &owner) && owner.type == F_OWNER_PID &&
	      owner.pid == getpid());
	CHECK(write(end[1], "second", 6) == 6 && told == 2 && told_of == end[0]);
	CHECK(fcntl(leased, F_GETLEASE) == F_WRLCK);
	pid_t pid = fork();
	if (!pid)
		_exit(open(in_folder("leased"), O_RDONLY | O_NONBLOCK) == -1 && errno == EAGAIN
			  ? 0
			  : 1);
	int status = 1;
	while (waitpid(pid, &status, 0) == -1)
		CHECK(errno == EINTR);
	CHECK(!status && told == 3 && told_of == leased);
}

const struct scenario scenarios_rest[] = {{"scheduling", scheduling},
					  {"limits", limits},
					  {"unreserved_memory", unreserved_memory},
					  {"growing_memory", growing_memory},
					  {"locked_memory", locked_memory},
					  {"registrations_and_seals", registrations_and_seals},
					  {"many_mappings", many_mappings},
					  {"file_locks", file_locks},
					  {"named_pipes", named_pipes},
					  {"owners_and_leases", owners_and_leases},
					  {NULL, NULL}};
