// SPDX-License-Identifier: BSD-3-Clause
/* The last step of a restart, the point of no return: this process's mappings go, the staged ones
 * move to their places, and the image's own library takes over. The steps are system calls listed
 * beforehand; the few instructions that make them are copied into scratch memory, since the
 * library they stem from is among what goes. */
#include <asm/prctl.h>
#include <string.h>
#include <sys/mman.h>

#include "image/sink.h"

enum { SWITCH_STACK = 256 << 10 };

/* run(ops, end, stack, resume, plan): position-independent, complete between its two labels. */
extern const char sink_run_begin[], sink_run_end[];
__asm__(
    ".pushsection .text\n"
    ".hidden sink_run_begin\n"
    ".hidden sink_run_end\n"
    ".globl sink_run_begin\n"
    "sink_run_begin:\n"
    "	mov %rdi, %rbx\n"
    "	mov %rsi, %rbp\n"
    "	mov %rdx, %rsp\n"
    "	mov %rcx, %r14\n"
    "	mov %r8, %r15\n"
    "1:	cmp %rbp, %rbx\n"
    "	jae 3f\n"
    "	mov 0(%rbx), %rax\n"
    "	mov 8(%rbx), %rdi\n"
    "	mov 16(%rbx), %rsi\n"
    "	mov 24(%rbx), %rdx\n"
    "	mov 32(%rbx), %r10\n"
    "	mov 40(%rbx), %r8\n"
    "	mov 48(%rbx), %r9\n"
    "	syscall\n"
    "	cmpq $0, 64(%rbx)\n"
    "	jne 2f\n"
    "	cmp 56(%rbx), %rax\n"
    "	jne 4f\n"
    "2:	add $72, %rbx\n"
    "	jmp 1b\n"
    "3:	mov %r15, %rdi\n"
    "	xor %ebp, %ebp\n"
    "	call *%r14\n"
    "	hlt\n"
    "4:	mov $1, %eax\n" /* write */
    "	mov $2, %edi\n"
    "	lea 5f(%rip), %rsi\n"
    "	mov $(6f - 5f), %edx\n"
    "	syscall\n"
    "	mov $231, %eax\n" /* exit_group */
    "	mov $70, %edi\n"
    "	syscall\n"
    "	hlt\n"
    "5:	.ascii \"hale: the restart failed while memory was being put in place: free memory, "
    "or raise vm.max_map_count\\n\"\n"
    "6:\n"
    ".globl sink_run_end\n"
    "sink_run_end:\n"
    ".popsection\n");
_Static_assert(sizeof(struct sink_op) == 72, "the loop above steps by 72");

static bool add_op(struct sink *s, const struct sink_op *op)
{
	struct sink_op *added = list_add(&s->ops);
	if (added)
		*added = *op;
	return added != NULL;
}

static bool add_move(struct sink *s, uint64_t from, uint64_t to, uint64_t len)
{
	return add_op(s, &(struct sink_op){
			     .nr = SYS_mremap,
			     .arg = {(long)from, (long)len, (long)len,
				     MREMAP_MAYMOVE | MREMAP_FIXED, (long)to},
			     .expected = (long)to,
			 });
}

static bool in_gap(const struct sink *s, const struct map *m)
{
	return m->start >= s->gap && m->end <= s->gap + s->gap_len;
}

/* [vdso] and its data have to move together, and their old and new places may overlap: out of
 * the way first, to their places last. Only if they aren't there already. */
static bool plan_kernel_regions(struct sink *s, const struct kernel_region *now, bool out)
{
	const struct kernel_region *then = s->t.process->region;
	uint64_t park = s->gap + s->gap_len - (PROCESS_REGIONS << 20);
	if (!memcmp(now, then, PROCESS_REGIONS * sizeof(*now)))
		return true;
	for (int i = 0; i < PROCESS_REGIONS; i++) {
		uint64_t slot = park + ((uint64_t)i << 20), len = now[i].end - now[i].start;
		if (len && !(out ? add_move(s, now[i].start, slot, len)
				 : add_move(s, slot, then[i].start, len)))
			return false;
	}
	return true;
}

static bool plan_unmap(struct sink *s, const struct list *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *m = list_at(maps, i);
		if (in_gap(s, m) || map_is_kernel(m) || map_is_excluded(m->start, m->end))
			continue;
		if (!add_op(s,
			    &(struct sink_op){.nr = SYS_munmap,
					      .arg = {(long)m->start, (long)(m->end - m->start)}}))
			return false;
	}
	return true;
}

/* Are the places of the staging area in the order of the mappings? Of a live image they need not
 * be.
 */
static bool stages_ascend(const struct sink *s)
{
	for (size_t k = 1; k < s->t.map_count; k++)
		if (s->stage[k] <= s->stage[k - 1])
			return false;
	return true;
}

/* However a staged mapping was split meanwhile (protection, files mapped into it) or joined: the
 * kernel's own list tells the parts. Both lists are walked once, for there may be many. */
static bool plan_moves(struct sink *s, const struct list *maps)
{
	bool ascend = stages_ascend(s);
	size_t first = 0;
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *m = list_at(maps, i);
		if (!in_gap(s, m) || m->start < s->gap + s->scratch.reserved)
			continue;
		for (size_t k = first; k < s->t.map_count; k++) {
			uint64_t stage = s->stage[k];
			uint64_t len = s->t.maps[k].end - s->t.maps[k].start;
			uint64_t from = m->start > stage ? m->start : stage;
			uint64_t to = m->end < stage + len ? m->end : stage + len;
			if (ascend && stage + len <= m->start)
				first = k + 1;
			if (ascend && stage >= m->end)
				break;
			if (from < to &&
			    !add_move(s, from, s->t.maps[k].start + (from - stage), to - from))
				return false;
		}
	}
	return true;
}

hale_status_t sink_plan_switch(struct sink *s, struct error *err)
{
	struct list maps;
	struct kernel_region now[PROCESS_REGIONS];
	uint64_t sum, leader_fs = s->t.threads[0].fs;
	hale_status_t rc = maps_scan("/proc/thread-self/maps", &s->arena, &maps, err);
	if (rc != HALE_OK)
		return rc;
	for (size_t i = 0; i < s->t.thread_count; i++)
		if (s->t.threads[i].leader)
			leader_fs = s->t.threads[i].fs;
	process_kernel_regions(&maps, now, &sum);
	list_init(&s->ops, &s->scratch, sizeof(struct sink_op));
	bool ok = plan_kernel_regions(s, now, true) && plan_unmap(s, &maps);
	/* the heap: a mapping that can grow, then covered by the staged one */
	ok = ok && add_op(s, &(struct sink_op){
				 .nr = SYS_brk, .arg = {(long)s->t.process->brk}, .ignore = 1});
	ok = ok && plan_moves(s, &maps) && plan_kernel_regions(s, now, false);
	ok = ok && add_op(s, &(struct sink_op){.nr = SYS_arch_prctl,
					       .arg = {ARCH_SET_FS, (long)leader_fs}});
	return ok ? HALE_OK : error_set(err, HALE_ERR_MEMORY, "no memory to rebuild the process");
}

void sink_switch(struct sink *s)
{
	const sys_set_t all = ~0ull;
	size_t len = (size_t)(sink_run_end - sink_run_begin);
	char *code = arena_pages(&s->scratch, ALIGN_UP(len, HALE_PAGE));
	char *stack = arena_pages(&s->scratch, SWITCH_STACK);
	if (!code || !stack) {
		log_warn("the restart failed: no memory");
		for (;;)
			sys(SYS_exit_group, 70);
	}
	memcpy(code, sink_run_begin, len);
	sys(SYS_mprotect, code, ALIGN_UP(len, HALE_PAGE), PROT_READ | PROT_EXEC);
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	/* its area is about to go */
	thread_rseq_unregister();
	sys(SYS_set_robust_list, NULL, 24);
	void (*run)(const void *, const void *, void *, uint64_t, void *) =
	    (void (*)(const void *, const void *, void *, uint64_t, void *))(uintptr_t)code;
	run(s->ops.items, list_at(&s->ops, s->ops.count), stack + SWITCH_STACK,
	    s->t.process->resume, s->plan);
	__builtin_unreachable();
}
