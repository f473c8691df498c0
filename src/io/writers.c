/* SPDX-License-Identifier: BSD-3-Clause */
/* Who of this node writes which bytes of which file now: so whoever writes gaps along, as it has
 * read them, does not undo what another process writes there.
 *
 *   plain       shows its range, and looks for others with gaps. Is there one? It takes its own
 *               back, waits, and begins anew
 *   with gaps   shows its range, and waits for plain ones that have been there before, and for
 *               others with gaps. Of two of these the process with the higher number steps back
 *
 * Each shows its own range before it looks for others', so of two one sees the other. A process has
 * one range at a time, in its mailbox; there is no safe point while it has. */
#include "base/yield.h"
#include "ckpt/rank.h"
#include "io/internal.h"

enum writing { NOTHING, PLAIN, GAPS };
enum reply { FREE, WAIT, STEP_BACK };

bool io_knows_writers(const struct file *f)
{
	const struct segment *s = link_self()->segment;
	return f->readable && f->local && s->nhere == s->nranks && s->degree == 1;
}

/* Of two files with one key each waits for the other's writers. */
static uint64_t key_of(const struct file *f)
{
	return f->device * 0x9e3779b97f4a7c15u ^ f->inode;
}

static void show(const struct file *f, uint64_t begin, uint64_t end, enum writing how)
{
	struct mailbox *m = link_self()->mailbox;
	atomic_store_explicit(&m->file_key, key_of(f), memory_order_relaxed);
	atomic_store_explicit(&m->file_begin, begin, memory_order_relaxed);
	atomic_store_explicit(&m->file_end, end, memory_order_relaxed);
	atomic_store(&m->file_writing, how);
}

void io_written(void)
{
	atomic_store_explicit(&link_self()->mailbox->file_writing, NOTHING, memory_order_release);
}

static enum writing overlap(struct mailbox *m, uint64_t key, uint64_t begin, uint64_t end)
{
	enum writing how = atomic_load(&m->file_writing);
	if (how == NOTHING || atomic_load_explicit(&m->lost, memory_order_relaxed) ||
	    atomic_load_explicit(&m->file_key, memory_order_relaxed) != key ||
	    atomic_load_explicit(&m->file_begin, memory_order_relaxed) >= end ||
	    atomic_load_explicit(&m->file_end, memory_order_relaxed) <= begin)
		return NOTHING;
	return how;
}

/* What the others of the node say to it. */
static enum reply ask(const struct file *f, uint64_t begin, uint64_t end, enum writing how)
{
	const struct link *l = link_self();
	enum reply reply = FREE;
	for (uint32_t p = 0; p < l->segment->nranks; p++) {
		if (p == l->process)
			continue;
		enum writing other = overlap(segment_mailbox(l->segment, p), key_of(f), begin, end);
		if (other == GAPS && (how == PLAIN || p < l->process))
			return STEP_BACK;
		if (other != NOTHING && how == GAPS)
			reply = WAIT;
	}
	return reply;
}

static void begin_writing(const struct file *f, uint64_t begin, uint64_t end, enum writing how)
{
	enum reply reply;
	for (;;) {
		show(f, begin, end, how);
		while ((reply = ask(f, begin, end, how)) == WAIT)
			yield_or_nap();
		if (reply == FREE)
			return;
		io_written();
		while (ask(f, begin, end, how) == STEP_BACK)
			yield_or_nap();
	}
}

void io_writing(const struct file *f, uint64_t begin, uint64_t end)
{
	show(f, begin, end, PLAIN);
	if (UNLIKELY(atomic_load(&link_self()->segment->file_gaps)))
		begin_writing(f, begin, end, PLAIN);
}

void io_writing_with_gaps(const struct file *f, uint64_t begin, uint64_t end)
{
	atomic_store(&link_self()->segment->file_gaps, 1);
	begin_writing(f, begin, end, GAPS);
}
