// SPDX-License-Identifier: BSD-3-Clause
/* The running job and this process: errors that `hale inject due` asks for, and counts from which
 * the head takes the coverage, and with it the interval of checkpoints. All of it goes through the
 * mailbox and the meter in the node's segment, by libhale.so. */
#include "task/task.h"

#include <dlfcn.h>
#include "node/segment.h"

enum { METER_EVERY_NS = 50000000 };

static int none_due(uint32_t *seen, char *to)
{
	return 0;
}

static void none_meter(const uint64_t add[METER_TASKS])
{
}

static int (*job_due)(uint32_t *seen, char *to) = none_due;
static void (*job_meter)(const uint64_t add[METER_TASKS]) = none_meter;
static uint32_t seen;
static _Atomic int looking;

/* One thread looks; the others go on with what held. */
void task_job_look(void)
{
	char text[MAILBOX_DUE], why[160];
	struct task_due d;
	uint32_t before = __atomic_load_n(&seen, __ATOMIC_RELAXED), number = before;

	if (LIKELY(!job_due(&number, text)) || atomic_exchange(&looking, 1))
		return;
	__atomic_store_n(&seen, number, __ATOMIC_RELAXED);
	if (!task_due_read(&d, text, why))
		log_warn("an order for memory errors in tasks is %s", why);
	else
		task_due_set(&d);
	atomic_store(&looking, 0);
}

/* What of a sum of all threads nobody has told yet. Races are harmless: the parts add up to the
 * last sum, as every part begins where another one ended. */
static uint64_t rest_of(_Atomic uint64_t *told, uint64_t sum)
{
	return sum - atomic_exchange_explicit(told, sum, memory_order_relaxed);
}

static void meter(struct task_thread *t)
{
	static _Atomic uint64_t serial, log;
	uint64_t add[METER_TASKS], is[METER_TASKS] = {
	    [METER_TASK_MENDED] = t->count[TASK_STRUCK],
	    [METER_TASK_NS] = t->ns[TASK_S_TASKS],
	    [METER_TASK_PROTECTED] = t->ns[TASK_S_PROTECTED],
	    [METER_TASK_CHECKPOINT] = t->ns[TASK_S_CHECKPOINT],
	    [METER_TASK_AGAIN] = t->ns[TASK_S_LOST] + t->ns[TASK_S_RESTORE],
	};

	for (int i = 0; i < METER_TASKS; i++) {
		add[i] = is[i] - t->metered[i];
		t->metered[i] = is[i];
	}
	add[METER_TASK_SERIAL] = rest_of(&serial, task_count_serial_ns());
	add[METER_TASK_LOG] = rest_of(&log, task_count_log_ns());
	job_meter(add);
}

void task_job_meter(struct task_thread *t, uint64_t now)
{
	if (LIKELY(now - t->metered_at < METER_EVERY_NS))
		return;
	t->metered_at = now;
	meter(t);
}

void task_job_init(void)
{
	void *due = dlsym(RTLD_DEFAULT, "hale_tasks_due");
	void *meter = dlsym(RTLD_DEFAULT, "hale_tasks_meter");

	if (!due || !meter)
		return;
	*(void **)&job_due = due;
	*(void **)&job_meter = meter;
}
