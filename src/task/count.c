// SPDX-License-Identifier: BSD-3-Clause
/* What protection did and cost. Each thread counts for itself; the process adds up when it ends. */
#include "task/task.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fmt.h"
#include "task/inputs.h"

struct task_thread *_Atomic task_threads;
static __thread struct task_thread *self __attribute__((tls_model("initial-exec")));

static char folder[400];
static _Atomic int running;	      /* tasks */
static _Atomic uint64_t serial_since; /* clock; 0: tasks run */
static _Atomic uint64_t serial_ns;

/* mmap and not malloc: the first task of a thread may have interrupted anything but that. */
static struct task_thread *thread_make(void)
{
	struct task_thread *t = mmap(NULL, ALIGN_UP(sizeof(*t), HALE_PAGE), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED) {
		log_warn("no memory for the protection of tasks");
		abort();
	}
	t->next = atomic_load(&task_threads);
	while (!atomic_compare_exchange_weak(&task_threads, &t->next, t))
		;
	return self = t;
}

struct task_thread *task_thread_self(void)
{
	return LIKELY(self != NULL) ? self : thread_make();
}

struct task_frame *task_thread_frame(void)
{
	return self ? self->frame : NULL;
}

void task_count_running(bool begins)
{
	if (begins && atomic_fetch_add_explicit(&running, 1, memory_order_relaxed) == 0) {
		uint64_t since = atomic_exchange(&serial_since, 0);

		if (since)
			atomic_fetch_add(&serial_ns, clock_ns() - since);
	} else if (!begins && atomic_fetch_sub_explicit(&running, 1, memory_order_relaxed) == 1) {
		atomic_store(&serial_since, clock_ns());
	}
}

uint64_t task_count_serial_ns(void)
{
	uint64_t since = atomic_load(&serial_since);

	return atomic_load(&serial_ns) + (since ? clock_ns() - since : 0);
}

uint64_t task_count_log_ns(void)
{
	uint64_t log[5] = {0};

	task_mpi.totals(log);
	return log[4];
}

static void add_up(struct task_account *a)
{
	uint64_t log[5] = {0};

	a->processes = 1;
	for (struct task_thread *t = atomic_load(&task_threads); t; t = t->next) {
		for (int i = 0; i < TASK_COUNTS; i++)
			a->count[i] += t->count[i];
		for (int i = 0; i < TASK_REASONS; i++)
			a->reason[i] += t->reason[i];
		for (int i = 0; i < TASK_SHARES; i++)
			a->share[i] += 1e-9 * (double)t->ns[i];
		a->bytes[TASK_COPIED] += t->copied;
	}
	task_mpi.totals(log);
	a->bytes[TASK_LOG] = log[0];
	a->bytes[TASK_LOG_PEAK] = log[1];
	a->count[TASK_REPLAYED] = log[2] - log[3];
	a->count[TASK_SKIPPED] = log[3];
	a->share[TASK_S_LOG] = 1e-9 * (double)log[4];
	a->bytes[TASK_CHECKPOINT] = task_keep_bytes() + task_inputs_bytes();
	a->share[TASK_S_SERIAL] = 1e-9 * (double)task_count_serial_ns();
}

__attribute__((destructor)) static void leave(void)
{
	struct task_account a = {0};
	struct json_out j;
	char path[480];
	int fd;

	if (!folder[0])
		return;
	add_up(&a);
	json_out_init(&j);
	task_account_json(&a, &j);
	fmt_print(path, sizeof(path), "%s/%d", folder, (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, j.text, j.len) != (ssize_t)j.len)
		log_warn("the report of the tasks of process %d could not be left in '%s'",
			 (int)getpid(), folder);
	if (fd >= 0)
		close(fd);
	json_out_fini(&j);
}

/* The process is rebuilt from a checkpoint that knows nothing of it, so it is said beside. */
static void fallen_path(char path[480], unsigned rank, uint64_t number)
{
	if (number == UINT64_MAX)
		fmt_print(path, 480, "%s/%d.%d.%llu.fell", folder, (int)getpid(),
			  (int)syscall(SYS_gettid), (unsigned long long)clock_ns());
	else
		fmt_print(path, 480, "%s/rank%u.task%llu.fell", folder, rank,
			  (unsigned long long)number);
}

bool task_count_has_fallen(unsigned rank, uint64_t number)
{
	char path[480];

	if (!folder[0])
		return false;
	fallen_path(path, rank, number);
	return access(path, F_OK) == 0;
}

void task_count_fell_back(unsigned rank, uint64_t number)
{
	static const char text[] = "{\"struck\":1,\"fell_back\":1}";
	char path[480];
	int fd;

	if (!folder[0])
		return;
	fallen_path(path, rank, number);
	/* not by open(): the rollback would undo the note as it undoes the program's files */
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			  0600);
	if (fd < 0)
		return;
	if (write(fd, text, sizeof(text) - 1) < 0)
		log_warn("no room in '%s' to note a memory error", folder);
	close(fd);
}

void task_count_init(void)
{
	const char *to = getenv("HALE_TASKS_REPORTS");

	if (to && strlen(to) < sizeof(folder))
		strcpy(folder, to);
	atomic_store(&serial_since, clock_ns());
}
