/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory, fork, exec, exit, wait, signals, and who runs next. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "globals.h"
#include "kernel.h"

/* Not static data of the code under test: never exchanged (globals.h). */
OWN struct kernel *kernel;
OWN static struct globals *globals;
OWN static struct proc *globals_owner; /* whose static data are in place; NULL: nobody's */
OWN static enum { ASK_NOTHING, ASK_FORK, ASK_BECOME, ASK_EXIT } asked;

/* ---- chance, time, story ---- */

uint64_t kernel_random(uint64_t below)
{
	uint64_t z = (kernel->random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	z ^= z >> 31;
	return below ? z % below : 0;
}

bool kernel_chance(double p)
{
	return p > 0 && (double)kernel_random(1u << 30) < p * (double)(1u << 30);
}

void kernel_say(const char *format, ...)
{
	const struct proc *p = kernel->running;
	char line[2048];
	int n = snprintf(line, sizeof(line), "%12.6f %-8s %-18s ", (double)kernel->now / 1e9,
			 p ? p->host->name : "-", p ? p->name : "-");
	va_list args;

	va_start(args, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 2, format, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	while (n > 0 && line[n - 1] == '\n')
		n--;
	line[n++] = '\n';
	if (kernel->story_len + (size_t)n > kernel->story_cap) {
		kernel->story_cap = kernel->story_cap ? 2 * kernel->story_cap : 1 << 16;
		kernel->story = realloc(kernel->story, kernel->story_cap);
	}
	memcpy(kernel->story + kernel->story_len, line, (size_t)n);
	kernel->story_len += (size_t)n;
	if (kernel->verbose)
		fwrite(line, 1, (size_t)n, stdout);
}

void kernel_fail(const char *format, ...)
{
	va_list args;

	if (kernel->failure[0])
		return;
	va_start(args, format);
	vsnprintf(kernel->failure, sizeof(kernel->failure), format, args);
	va_end(args);
	kernel_say("FAILED: %s", kernel->failure);
}

struct kept {
	struct kept *next;
	max_align_t bytes[];
};

void *kernel_keep(size_t len)
{
	struct kept *k = calloc(1, sizeof(*k) + len);

	k->next = kernel->kept;
	kernel->kept = k;
	return k->bytes;
}

/* ---- memory ---- */

enum { POWERS = 8, CLASSES = 56, LEAST = 32 };

/* At the beginning of a heap. */
struct heap {
	size_t top;
	struct block *free[CLASSES];
};

struct block {
	size_t class; /* of class_bytes(class) bytes, with this */
	struct block *next;
};

/* 32, 64, … 4096; then in steps of a quarter: much of a heap is buffers of 64 KiB, and a heap is
 * copied whenever another process takes its place. */
static size_t class_bytes(size_t class)
{
	size_t above = class < POWERS ? 0 : class + 1 - POWERS;

	return class < POWERS ? (size_t)LEAST << class
			      : ((size_t)LEAST << (POWERS - 1 + above / 4)) / 4 * (4 + above % 4);
}

static struct heap *heap_of(const struct slot *s)
{
	return (struct heap *)s->base;
}

static char *stack_end(const struct slot *s)
{
	return s->base + SLOT_HEAP + SLOT_STACK;
}

static void make_room(const struct slot *s, size_t upto, const struct proc *except);

static void heap_reset(struct slot *s)
{
	*heap_of(s) = (struct heap){.top = (sizeof(struct heap) + 63) & ~63ul};
}

void *proc_malloc(size_t size)
{
	struct heap *h = heap_of(kernel->running->slot);
	size_t class = 0, bytes;
	struct block *b;

	while (class < CLASSES && class_bytes(class) < size + 16)
		class ++;
	bytes = class < CLASSES ? class_bytes(class) : SLOT_HEAP;
	b = class < CLASSES ? h->free[class] : NULL;
	if (b) {
		h->free[class] = b->next;
	} else if (class < CLASSES && h->top + bytes <= SLOT_HEAP) {
		b = (struct block *)((char *)h + h->top);
		make_room(kernel->running->slot, h->top + bytes, kernel->running);
		h->top += bytes;
		b->class = class;
	} else {
		kernel_fail("a process has no memory left for %zu bytes", size);
		errno = ENOMEM;
		return NULL;
	}
	return (char *)b + 16;
}

static bool in_slots(const void *at)
{
	for (size_t i = 0; i < kernel->slot_count; i++)
		if ((char *)at >= kernel->slots[i].base &&
		    (char *)at < kernel->slots[i].base + SLOT_HEAP)
			return true;
	return false;
}

bool proc_free(void *at)
{
	struct block *b = (struct block *)((char *)at - 16);
	struct heap *h;

	if (!kernel || !in_slots(at))
		return false;
	if (kernel->running && (char *)at >= kernel->running->slot->base &&
	    (char *)at < kernel->running->slot->base + SLOT_HEAP) {
		h = heap_of(kernel->running->slot);
		memset(at, 0xdb, class_bytes(b->class) - 16);
		b->next = h->free[b->class];
		h->free[b->class] = b;
	}
	return true;
}

void *proc_realloc(void *at, size_t size)
{
	struct block *b = (struct block *)((char *)at - 16);
	size_t had = at ? class_bytes(b->class) - 16 : 0;
	void *new;

	if (at && size <= had)
		return at;
	new = proc_malloc(size);
	if (new &&at) {
		memcpy(new, at, had);
		proc_free(at);
	}
	return new;
}

static struct slot *slot_take(void)
{
	struct slot *s = NULL;

	for (size_t i = 0; !s && i < kernel->slot_count; i++)
		if (!kernel->slots[i].taken)
			s = &kernel->slots[i];
	if (!s) {
		if (kernel->slot_count == PROCS_MAX)
			abort();
		s = &kernel->slots[kernel->slot_count++];
		s->base = mmap(NULL, SLOT_HEAP + SLOT_STACK, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (s->base == MAP_FAILED)
			abort();
	}
	s->taken = true;
	s->users = 1;
	s->occupant = NULL;
	heap_reset(s);
	return s;
}

static void slot_leave(struct proc *p)
{
	struct slot *s = p->slot;

	if (!s)
		return;
	if (s->occupant == p)
		s->occupant = NULL;
	if (--s->users == 0)
		s->taken = false;
	free(p->saved.heap);
	free(p->saved.stack);
	p->saved = (struct saved){0};
	p->slot = NULL;
}

static void save_heap(struct proc *p, size_t upto)
{
	struct saved *k = &p->saved;

	upto = upto < k->heap_len ? upto : k->heap_len;
	if (upto <= k->kept)
		return;
	if (k->heap_cap < upto) {
		k->heap_cap = 2 * upto;
		k->heap = realloc(k->heap, k->heap_cap);
	}
	memcpy(k->heap + k->kept, p->slot->base + k->kept, upto - k->kept);
	k->kept = upto;
}

static void save(struct proc *p, size_t upto)
{
	const struct slot *s = p->slot;
	const char *sp = p->sp;
	struct saved *k = &p->saved;

	k->heap_len = heap_of(s)->top;
	k->kept = 0;
	save_heap(p, upto);
	k->stack_len = (size_t)(stack_end(s) - sp);
	if (k->stack_cap < k->stack_len) {
		k->stack_cap = 2 * k->stack_len;
		k->stack = realloc(k->stack, k->stack_cap);
	}
	memcpy(k->stack, sp, k->stack_len);
	k->there = true;
}

/* Somebody needs the first bytes of the slot: what is still there of others' is saved. */
static void make_room(const struct slot *s, size_t upto, const struct proc *except)
{
	for (uint32_t i = 0; s->users > 1 && i < kernel->proc_limit; i++) {
		struct proc *q = &kernel->procs[i];

		if (q != except && q->slot == s && proc_alive(q) && q->saved.there &&
		    s->occupant != q)
			save_heap(q, upto);
	}
}

static void load(struct proc *p)
{
	struct slot *s = p->slot;

	make_room(s, p->saved.kept, p);
	memcpy(s->base, p->saved.heap, p->saved.kept);
	memcpy(stack_end(s) - p->saved.stack_len, p->saved.stack, p->saved.stack_len);
	p->saved.there = false;
	s->occupant = p;
}

/* The memory of p is where p expects it. */
static void put_in_place(struct proc *p)
{
	struct slot *s = p->slot;

	if (s->occupant != p) {
		struct proc *before = s->occupant;

		s->occupant = NULL;
		if (before)
			save(before, p->saved.there ? p->saved.heap_len : SLOT_HEAP);
		if (p->saved.there)
			load(p);
		s->occupant = p;
	}
	if (globals_owner != p) {
		if (globals_owner)
			globals_save(globals, globals_owner->globals);
		globals_load(globals, p->globals);
		globals_owner = p;
	}
}

/* ---- processes ---- */

bool proc_alive(const struct proc *p)
{
	return p->state == PROC_READY || p->state == PROC_BLOCKED;
}

struct proc *proc_find(pid_t pid)
{
	for (uint32_t i = 0; i < kernel->proc_limit; i++)
		if (kernel->procs[i].state != PROC_FREE && kernel->procs[i].pid == pid)
			return &kernel->procs[i];
	return NULL;
}

static struct proc *proc_new(struct machine *h, const char *name, pid_t parent)
{
	struct proc *p = NULL;

	for (uint32_t i = 0; !p && i < PROCS_MAX; i++) {
		if (kernel->procs[i].state == PROC_FREE) {
			p = &kernel->procs[i];
			if (i >= kernel->proc_limit)
				kernel->proc_limit = i + 1;
		}
	}
	if (!p)
		abort();
	*p = (struct proc){.state = PROC_READY,
			   .pid = kernel->next_pid++,
			   .incarnation = kernel->next_incarnation++,
			   .parent = parent,
			   .host = h,
			   .deadline = NS_NEVER,
			   .rank = -1};
	p->group = p->pid;
	snprintf(p->name, sizeof(p->name), "%s", name);
	snprintf(p->cwd, sizeof(p->cwd), "/apps");
	p->globals = malloc(globals_size(globals));
	memcpy(p->globals, globals_pristine(globals), globals_size(globals));
	return p;
}

/* From one stack to another one: what a call keeps (the ABI's six registers) lies on the stack that
 * is left, whose end goes to *from. Nothing here asks the real kernel for anything. */
void simulate_switch(void **from, void *to);
__asm__(".text\n"
	".type simulate_switch, @function\n"
	"simulate_switch:\n"
	"	pushq %rbp\n	pushq %rbx\n	pushq %r12\n"
	"	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n"
	"	popq %r12\n	popq %rbx\n	popq %rbp\n"
	"	ret\n"
	".size simulate_switch, . - simulate_switch\n");

static void begin(void)
{
	struct proc *p = kernel->running;

	p->actor(p->actor_arg);
	proc_exit(0);
}

static void prepare(struct proc *p, void (*actor)(void *arg), void *arg)
{
	enum { KEPT_REGISTERS = 6 };
	void **top;

	p->slot = slot_take();
	p->actor = actor;
	p->actor_arg = arg;
	top = (void **)(void *)stack_end(p->slot);
	*--top =
	    NULL; /* begin returns to nobody, and stands on the stack as a call would leave it */
	*--top = (void *)(uintptr_t)begin;
	for (int i = 0; i < KEPT_REGISTERS; i++)
		*--top = NULL;
	p->sp = top;
}

struct proc *proc_create(struct machine *h, const char *name, pid_t parent,
			 void (*actor)(void *arg), void *arg)
{
	struct proc *p = proc_new(h, name, parent);

	prepare(p, actor, arg);
	return p;
}

static void to_scheduler(int request)
{
	struct proc *p = kernel->running;

	asked = request;
	simulate_switch(&p->sp, kernel->scheduler);
}

void proc_become(struct proc *p, const char *name, void (*actor)(void *arg), void *arg)
{
	for (int i = 0; i < FDS_MAX; i++)
		if (p->fd[i].o && p->fd[i].cloexec)
			proc_fd_close(p, i);
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->handled = 0;
	p->actor = actor;
	p->actor_arg = arg;
	to_scheduler(ASK_BECOME);
	abort();
}

int proc_fork(void)
{
	to_scheduler(ASK_FORK);
	return (int)kernel->running->result;
}

static void do_fork(struct proc *p)
{
	struct proc *c = proc_new(p->host, p->name, p->pid);
	char *mine = c->globals;
	pid_t pid = c->pid;
	uint64_t incarnation = c->incarnation;

	*c = *p;
	c->pid = pid;
	c->incarnation = incarnation;
	c->parent = p->pid;
	c->globals = mine;
	c->death_signal = 0;
	c->last_call = 0;
	c->rank = -1; /* whoever writes its image is not the rank */
	c->rank_runs = false;
	c->subreaper = false;
	c->pending = 0;
	c->waits = NULL;
	c->wait_count = c->wait_cap = 0;
	c->saved = (struct saved){0};
	for (int i = 0; i < FDS_MAX; i++)
		if (c->fd[i].o)
			c->fd[i].o->refs++;
	globals_save(globals, c->globals);
	c->slot->users++;
	save(c, SLOT_HEAP);
	c->result = 0;
	p->result = pid;
}

static void forget_waits(struct proc *p)
{
	for (size_t i = 0; i < p->wait_count; i++) {
		struct object *o = p->waits[i];

		for (size_t k = 0; k < o->waiter_count; k++) {
			if (o->waiters[k] == p) {
				o->waiters[k] = o->waiters[--o->waiter_count];
				break;
			}
		}
	}
	p->wait_count = 0;
}

static void release(struct proc *p)
{
	if (globals_owner == p)
		globals_owner = NULL;
	free(p->globals);
	p->globals = NULL;
	slot_leave(p);
	free(p->waits);
	p->waits = NULL;
	p->wait_cap = 0;
}

static struct proc *reaper_of(const struct proc *p)
{
	struct proc *q = proc_find(p->parent);

	for (; q && proc_alive(q); q = proc_find(q->parent))
		if (q->subreaper)
			return q;
	return NULL;
}

static void reparent(const struct proc *dead)
{
	struct proc *reaper = reaper_of(dead);

	for (uint32_t i = 0; i < kernel->proc_limit; i++) {
		struct proc *c = &kernel->procs[i];

		if (c->state == PROC_FREE || c->parent != dead->pid)
			continue;
		c->parent = reaper ? reaper->pid : 1;
		if (c->state == PROC_ZOMBIE && !reaper)
			c->state = PROC_FREE;
		else if (c->state == PROC_ZOMBIE)
			proc_kill(reaper, SIGCHLD);
		else if (c->death_signal)
			proc_kill(c, c->death_signal);
	}
}

/* Everything but its memory, which is freed when it does not run. */
static void bury(struct proc *p, int status)
{
	struct proc *parent = proc_find(p->parent);

	kernel_say("process %d (%s) ends: %s %d", (int)p->pid, p->name,
		   WIFSIGNALED(status) ? "signal" : "status",
		   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	if (kernel->on_end)
		kernel->on_end(p, status);
	p->state = PROC_ZOMBIE;
	p->status = status;
	p->rank_runs = false;
	forget_waits(p);
	for (int i = 0; i < FDS_MAX; i++)
		if (p->fd[i].o)
			proc_fd_close(p, i);
	reparent(p);
	for (uint32_t i = 0; i < kernel->proc_limit; i++) { /* pidfds */
		struct proc *q = &kernel->procs[i];

		for (int k = 0; proc_alive(q) && k < FDS_MAX; k++)
			if (q->fd[k].o && q->fd[k].o->kind == OBJ_PIDFD &&
			    q->fd[k].o->u.target == p)
				object_changed(q->fd[k].o);
	}
	if (!parent || !proc_alive(parent)) {
		p->state = PROC_FREE;
		return;
	}
	parent->check = true;
	proc_kill(parent, SIGCHLD);
}

void proc_end(struct proc *p, int status)
{
	if (!proc_alive(p))
		return;
	bury(p, status);
	release(p);
}

_Noreturn void proc_exit(int status)
{
	struct proc *p = kernel->running;

	bury(p, status);
	to_scheduler(ASK_EXIT);
	abort();
}

pid_t proc_wait(pid_t pid, int *status, int flags)
{
	struct proc *me = kernel->running;

	for (;;) {
		bool any = false;

		for (uint32_t i = 0; i < kernel->proc_limit; i++) {
			struct proc *c = &kernel->procs[i];

			if (c->state == PROC_FREE || c->parent != me->pid || c->host != me->host ||
			    (pid > 0 && c->pid != pid) || (pid < -1 && c->group != -pid))
				continue;
			any = true;
			if (c->state != PROC_ZOMBIE)
				continue;
			if (status)
				*status = c->status;
			c->state = PROC_FREE;
			return c->pid;
		}
		if (!any) {
			errno = ECHILD;
			return -1;
		}
		if (flags & WNOHANG)
			return 0;
		proc_block(NULL, 0, NULL, NULL, NS_NEVER);
	}
}

/* ---- signals ---- */

static bool ends_by_default(int sig)
{
	return sig != SIGCHLD && sig != SIGCONT && sig != SIGURG && sig != SIGWINCH;
}

static void wake_signalfds(struct proc *p)
{
	for (int i = 0; i < FDS_MAX; i++)
		if (p->fd[i].o && p->fd[i].o->kind == OBJ_SIGNALFD)
			object_changed(p->fd[i].o);
}

int proc_kill(struct proc *p, int sig)
{
	uint64_t bit = sig ? 1ull << (sig - 1) : 0;

	if (p->state == PROC_FREE) {
		errno = ESRCH;
		return -1;
	}
	if (sig == 0 || !proc_alive(p))
		return 0;
	if (sig == SIGKILL) {
		if (p == kernel->running)
			proc_exit(SIGKILL);
		proc_end(p, SIGKILL);
		return 0;
	}
	if (sig == SIGCONT)
		p->stopped = false;
	if (sig == SIGSTOP) {
		p->stopped = true;
		if (p == kernel->running)
			proc_yield();
		return 0;
	}
	if (!(p->blocked & bit) &&
	    ((p->ignored & bit) || (!(p->handled & bit) && !ends_by_default(sig))))
		return 0;
	if (!(p->blocked & bit) && !(p->handled & bit)) {
		if (sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU) {
			p->stopped = true;
			return 0;
		}
		if (p == kernel->running)
			proc_exit(sig);
		proc_end(p, sig);
		return 0;
	}
	p->pending |= bit;
	p->sender[sig] = kernel->running ? kernel->running->pid : 0;
	p->check = true;
	wake_signalfds(p);
	return 0;
}

void proc_end_within(struct proc *p, uint64_t calls)
{
	p->last_call = p->calls + 1 + kernel_random(calls);
}

static void run_handlers(void)
{
	struct proc *p = kernel->running;
	uint64_t due;

	while ((due = p->pending & p->handled & ~p->blocked)) {
		int sig = __builtin_ctzll(due) + 1;

		p->pending &= ~(1ull << (sig - 1));
		p->handler[sig](sig);
		p = kernel->running;
	}
}

/* ---- blocking ---- */

void proc_yield(void)
{
	to_scheduler(ASK_NOTHING);
	run_handlers();
}

bool proc_block(struct object **objects, size_t count, bool (*ready)(void *arg), void *arg,
		uint64_t deadline)
{
	struct proc *p = kernel->running;

	(void)ready;
	(void)arg;
	if (p->wait_cap < count) {
		p->wait_cap = 2 * count;
		p->waits = realloc(p->waits, p->wait_cap * sizeof(*p->waits));
	}
	for (size_t i = 0; i < count; i++) {
		struct object *o = objects[i];

		p->waits[p->wait_count++] = o;
		if (o->waiter_count == o->waiter_cap) {
			o->waiter_cap = o->waiter_cap ? 2 * o->waiter_cap : 2;
			o->waiters = realloc(o->waiters, o->waiter_cap * sizeof(struct proc *));
		}
		o->waiters[o->waiter_count++] = p;
	}
	p->check = false;
	p->timed_out = false;
	p->deadline = deadline;
	p->state = PROC_BLOCKED;
	to_scheduler(ASK_NOTHING);
	p = kernel->running;
	forget_waits(p);
	p->deadline = NS_NEVER;
	run_handlers();
	return !kernel->running->timed_out;
}

void proc_sleep(uint64_t ns)
{
	uint64_t until = kernel->now + ns;

	while (kernel->now < until)
		proc_block(NULL, 0, NULL, NULL, until);
}

/* ---- descriptors ---- */

int proc_fd_put(struct proc *p, struct object *o, int from, bool cloexec)
{
	for (int i = from < 0 ? 0 : from; i < FDS_MAX; i++) {
		if (p->fd[i].o)
			continue;
		p->fd[i] = (struct fd){o, cloexec};
		return i;
	}
	object_drop(o);
	errno = EMFILE;
	return -1;
}

struct object *proc_fd(int fd)
{
	if (fd >= 0 && fd < FDS_MAX && kernel->running->fd[fd].o)
		return kernel->running->fd[fd].o;
	errno = EBADF;
	return NULL;
}

void proc_fd_close(struct proc *p, int fd)
{
	struct object *o = p->fd[fd].o;

	p->fd[fd] = (struct fd){NULL, false};
	if (o)
		object_drop(o);
}

/* ---- who runs ---- */

static void serve(struct proc *p)
{
	switch (asked) {
	case ASK_FORK:
		do_fork(p);
		break;
	case ASK_BECOME:
		slot_leave(p);
		if (globals_owner == p)
			globals_owner = NULL;
		memcpy(p->globals, globals_pristine(globals), globals_size(globals));
		prepare(p, p->actor, p->actor_arg);
		break;
	case ASK_EXIT:
		release(p);
		break;
	default:
		break;
	}
}

static void run(struct proc *p)
{
	p->state = PROC_READY;
	put_in_place(p);
	kernel->running = p;
	asked = ASK_NOTHING;
	simulate_switch(&kernel->scheduler, p->sp);
	serve(p);
	kernel->running = NULL;
	kernel->steps++;
	kernel->now += 1000 + kernel_random(20000);
}

/* Of those that can run, one by chance; NULL: nobody can. *next: when somebody might. */
static struct proc *choose(uint64_t *next)
{
	struct proc *chosen = NULL;
	uint64_t count = 0;

	*next = NS_NEVER;
	for (uint32_t i = 0; i < kernel->proc_limit; i++) {
		struct proc *p = &kernel->procs[i];

		if (!proc_alive(p) || p->stopped)
			continue;
		if (p->state == PROC_BLOCKED && !p->check) {
			if (p->deadline > kernel->now) {
				*next = p->deadline < *next ? p->deadline : *next;
				continue;
			}
			p->timed_out = true;
		}
		if (kernel_random(++count) == 0)
			chosen = p;
	}
	if (chosen && chosen->check)
		chosen->timed_out = false;
	return chosen;
}

bool kernel_run(uint64_t until)
{
	kernel->until = until;
	while (!kernel->failure[0] && kernel->now < kernel->until) {
		uint64_t next;
		struct proc *p = choose(&next);

		if (p) {
			run(p);
		} else if (next == NS_NEVER) {
			return false;
		} else {
			kernel->now = next < kernel->until ? next : kernel->until;
		}
	}
	return true;
}

/* ---- a world ---- */

void host_vanish(struct machine *h, bool with_disk)
{
	h->up = false;
	for (uint32_t i = 0; i < kernel->proc_limit; i++) {
		struct proc *p = &kernel->procs[i];

		if (p->host != h || p->state == PROC_FREE)
			continue;
		if (proc_alive(p)) {
			forget_waits(p);
			release(p);
		}
		/* what it had open is neither closed nor used any more */
		p->state = PROC_FREE;
	}
	h->listener_count = 0;
	if (with_disk) {
		disk_free(h->root);
		h->root = disk_root();
	}
}

struct machine *kernel_host(const char *name)
{
	struct machine *h = &kernel->hosts[kernel->host_count];

	for (uint32_t i = 0; i < kernel->host_count; i++)
		if (!strcmp(kernel->hosts[i].name, name))
			return &kernel->hosts[i];
	*h = (struct machine){.up = true, .index = kernel->host_count++, .root = disk_root()};
	snprintf(h->name, sizeof(h->name), "%s", name);
	return h;
}

void kernel_create(uint64_t seed)
{
	struct slot *slots = kernel ? kernel->slots : calloc(PROCS_MAX, sizeof(*slots));
	size_t count = kernel ? kernel->slot_count : 0;

	if (!globals)
		globals = globals_find();
	if (!kernel)
		kernel = calloc(1, sizeof(*kernel));
	else
		memset(kernel, 0,
		       offsetof(struct kernel, procs) + kernel->proc_limit * sizeof(struct proc));
	kernel->slots = slots;
	kernel->slot_count = count;
	kernel->seed = seed;
	kernel->random = seed * 0x2545f4914f6cdd1dull + 1;
	kernel->now = 1000 * NS_PER_S;
	kernel->next_pid = 100;
	kernel->next_incarnation = 1;
	kernel->cluster = disk_root();
	kernel->yield = 0.02;
}

bool kernel_destroy(void)
{
	bool again;

	for (uint32_t i = 0; i < kernel->proc_limit; i++) {
		struct proc *p = &kernel->procs[i];

		if (proc_alive(p)) {
			forget_waits(p);
			p->parent = 0;
			for (int k = 0; k < FDS_MAX; k++)
				if (p->fd[k].o)
					proc_fd_close(p, k);
			release(p);
		}
		p->state = PROC_FREE;
	}
	globals_load(globals, globals_pristine(globals));
	globals_owner = NULL;
	again = globals_learn(globals);
	for (uint32_t i = 0; i < kernel->host_count; i++) {
		disk_free(kernel->hosts[i].root);
		free(kernel->hosts[i].listeners);
	}
	disk_free(kernel->cluster);
	/* of hosts that have vanished; one may be on its way to another */
	for (struct object *o = kernel->all; o; o = o->next)
		o->refs = 1 << 30;
	for (struct object *o = kernel->all; o; o = o->next)
		object_empty(o);
	while (kernel->all) {
		kernel->all->refs = 1;
		object_drop(kernel->all);
	}
	for (struct kept *k = kernel->kept, *next; k; k = next) {
		next = k->next;
		free(k);
	}
	for (size_t i = 0; i < kernel->mapping_count; i++)
		if (kernel->mappings[i])
			munmap(kernel->mappings[i], kernel->mapping_len[i]);
	free(kernel->story);
	kernel->story = NULL;
	return again;
}
