// SPDX-License-Identifier: BSD-3-Clause
/* One process's side of a coordinated checkpoint; the order of steps is in rank.h. */
#include "base/exit_status.h"
#include "ckpt/clocks.h"
#include "ckpt/rank.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cancel.h"
#include "ckpt/migrate.h"
#include "ckpt/owners.h"
#include "ckpt/rank_private.h"
#include "image/image.h"
#include "image/tree/tree.h"
#include "journal/journal.h"

static struct ckpt_participant *participants, **participants_end = &participants;

/* One thread of this process is doing a checkpoint; another one has come to do it meanwhile. */
enum { PLACE_FREE, PLACE_TAKEN, PLACE_WANTED };
enum { TOGETHER_S = 10 };
static _Atomic int coordinating;
static uint32_t last_id; /* newest checkpoint taken, in this life or the one before */
static bool last_restored;
static struct ckpt_request asked; /* of the coordinator, from when it began with it */
static uint32_t round_id;	  /* of the checkpoint under way */

/* What travels in the image for us. */
struct rank_note {
	uint32_t id, rank;
	uint64_t position[3];
	uint32_t stop;	   /* of a migration, no checkpoint */
	uint32_t together; /* CKPT_TOGETHER: so many ranks come back before one runs on; 0: no */
	uint32_t across;   /* CKPT_ACROSS: all of the job come back before one runs on */
};

void ckpt_participate(struct ckpt_participant *p)
{
	p->next = NULL;
	*participants_end = p;
	participants_end = &p->next;
}

uint32_t rank_checkpoint_last(bool *restored)
{
	*restored = last_restored;
	return last_id;
}

void rank_checkpoint_inherit(uint32_t id)
{
	last_id = id;
}

static bool given_up(uint32_t id)
{
	return atomic_load(&link_self()->mailbox->ckpt_cancelled) >= id;
}

/* ---- suspend and resume ---- */

uint32_t ckpt_round(void)
{
	return round_id;
}

bool ckpt_is_alone(void)
{
	return (asked.flags & CKPT_ALONE) != 0;
}

static bool takes_part(const struct ckpt_participant *p)
{
	return !ckpt_is_alone() || p->alone;
}

static bool participants_suspend(uint32_t id)
{
	round_id = id;
	for (struct ckpt_participant *p = participants; p; p = p->next)
		if (p->suspend_start && takes_part(p))
			p->suspend_start();
	for (int round = 0;; round++) {
		bool all = true;
		for (struct ckpt_participant *p = participants; p; p = p->next)
			all &= !p->suspend_poll || !takes_part(p) || p->suspend_poll();
		if (given_up(id))
			return false;
		if (all)
			return true;
		link_wait_step(round);
	}
}

static void participants_resume(struct ckpt_participant *p, bool restored)
{
	if (!p)
		return;
	participants_resume(p->next, restored);
	if (p->resume && (restored || takes_part(p)))
		p->resume(restored);
}

/* CTC: nobody runs on before everybody has saved what others could change. The word holds the
 * checkpoint's id above and a count below, so that what a given-up checkpoint left doesn't count.
 */
static void count_into(_Atomic uint64_t *word, uint32_t id)
{
	uint64_t seen = atomic_load(word), next;
	do {
		if ((seen >> 32) > id)
			return;
		next = (seen >> 32) == id ? seen + 1 : ((uint64_t)id << 32) + 1;
	} while (!atomic_compare_exchange_weak(word, &seen, next));
}

static void count_in(uint32_t id)
{
	count_into(&link_self()->segment->ckpt_saved, id);
}

/* Processes of this node, but for dead replicas. */
static uint32_t living_here(void)
{
	const struct link *l = link_self();
	uint32_t n = l->segment->nhere;
	for (uint32_t p = 0; l->degree > 1 && p < l->nprocesses; p++)
		n -= segment_here(l->segment, p) &&
		     atomic_load(&segment_mailbox(l->segment, p)->lost);
	return n;
}

static bool counted_in(uint32_t id)
{
	uint64_t seen = atomic_load(&link_self()->segment->ckpt_saved);
	return seen >= ((uint64_t)id << 32) + living_here();
}

/* Only a job whose processes share something has to wait for all. */
static void count_in_wait(uint32_t id)
{
	for (int round = 0; participants && !counted_in(id) && !given_up(id); round++)
		link_wait_step(round);
}

/* ---- objects that ranks share ---- */

/* How many share them; 0: none do. */
static uint32_t together_count(uint32_t id)
{
	uint64_t word = atomic_load(&link_self()->segment->together);
	return asked.flags & CKPT_TOGETHER && word >> 32 == id ? (uint32_t)word : 0;
}

/* Until so many have counted themselves. False: the checkpoint was given up. */
static bool together_wait(const _Atomic uint64_t *word, uint32_t id, uint32_t count)
{
	for (int round = 0; !given_up(id); round++) {
		if (atomic_load(word) >= ((uint64_t)id << 32) + count)
			return true;
		link_wait_step(round);
	}
	return false;
}

/* CKPT_ACROSS: until all ranks of the job have said this. False: the checkpoint was given up. */
static bool across_wait(uint32_t id, enum proto_type said)
{
	struct proto_plain p = {.type = said, .value = (int32_t)id};
	link_tell(&p, sizeof(p));
	return together_wait(&link_self()->segment->across, id, said == PROTO_CKPT_STILL ? 1 : 2);
}

/* In a process that has come back: its files are what they were. Nobody writes to them before that
 * is so of all who write them, wherever they are now. */
static void across_restored(const struct rank_note *note)
{
	const struct segment *s = link_self()->segment;
	if (!note->across && (!note->together || s->nhere == s->nranks))
		return;
	for (int round = 0; !atomic_load(&s->all_back); round++)
		link_wait_step(round);
}

/* Of the image under way, and in it: the other ranks of this node; has it what they may have, too?
 */
static struct image_beside beside;

static struct image_beside *together_beside(void)
{
	const struct link *l = link_self();
	beside.count = 0;
	beside.shared = false;
	for (uint32_t p = 0; p < l->nprocesses && beside.count < IMAGE_TREE_MAX; p++) {
		int32_t pid = segment_here(l->segment, p)
				  ? atomic_load(&segment_mailbox(l->segment, p)->pid)
				  : 0;
		if (pid > 0 && p != l->process)
			beside.pid[beside.count++] = pid;
	}
	return &beside;
}

struct image_beside *rank_beside(void)
{
	return link_may_share() ? together_beside() : NULL;
}

/* The first rank that claims an object saves it. */
static int together_claim(int kind, int id)
{
	_Atomic uint64_t *claim = link_self()->segment->claim;
	uint64_t round = (uint64_t)asked.id << 36;
	uint64_t key = round | (uint64_t)kind << 32 | (uint32_t)id;
	beside.shared = true;
	for (size_t i = 0; i < SEGMENT_CLAIMS; i++) {
		uint64_t seen = atomic_load(&claim[i]);
		while (seen >> 36 != round >> 36)
			if (atomic_compare_exchange_weak(&claim[i], &seen, key))
				return 1;
		if (seen == key)
			return 0;
	}
	return -1;
}

/* In a process that has come back: nobody runs on before all have put back what they share. Those
 * that have had something together once, and by now nothing, may be on different nodes; and what
 * one of them is about to call is there again when all are back. */
static void together_restored(const struct rank_note *note)
{
	struct segment *s = link_self()->segment;
	uint64_t deadline = clock_ns() + TOGETHER_S * 1000000000ull;
	atomic_fetch_add(&s->together_back, 1);
	if (!note->together || (!beside.shared && s->nhere < note->together))
		return;
	if (s->nhere < note->together) {
		log_warn("rank %u can't go on: ranks that share System V objects, connections or "
			 "named pipes were on one node, and are not any more",
			 note->rank);
		_exit(EXIT_UNRECOVERED);
	}
	for (int round = 0; atomic_load(&s->together_back) < note->together &&
			    (beside.shared || clock_ns() < deadline);
	     round++)
		link_wait_step(round);
	image_ipc_together();
}

/* ---- the image ---- */

/* Children are waited for and not captured: for who doubts it, and for tests of the waiting. */
static bool trees_are_off(void)
{
	const char *text = getenv("HALE_TREES");
	return text && !strcmp(text, "off");
}

static void report_fill(struct proto_ckpt *packet, enum proto_type type, uint32_t id,
			const struct error *error)
{
	memset(packet, 0, sizeof(*packet));
	packet->type = type;
	packet->id = id;
	packet->status = (int32_t)error->code;
	if (error->code != HALE_OK)
		memcpy(packet->text, error->text, sizeof(packet->text));
	packet->text[PROTO_TEXT - 1] = 0;
}

/* Called in the writing child. */
static void image_written(void *arg, const struct image_result *result)
{
	const struct rank_note *note = arg;
	struct proto_ckpt packet;
	report_fill(&packet, result->error.code == HALE_OK ? PROTO_CKPT_WRITTEN : PROTO_CKPT_FAILED,
		    note->id, &result->error);
	packet.bytes = result->bytes;
	packet.pages = result->pages_saved;
	packet.pages_zero = result->pages_zero;
	packet.checksum = result->checksum;
	packet.seconds = result->seconds;
	memcpy(packet.position, note->position, sizeof(packet.position));
	link_tell(&packet, sizeof(packet));
}

static void params_fill(struct image_params *p, struct rank_note *note)
{
	const struct link *l = link_self();
	uint32_t flags = asked.flags;
	const char *job = getenv("HALE_JOB");
	memset(p, 0, sizeof(*p));
	strncpy(p->identity.job, job ? job : "", sizeof(p->identity.job) - 1);
	p->identity.rank = l->process;
	p->identity.nranks = l->nprocesses;
	p->identity.id = note->id;
	p->identity.base = asked.base;
	p->path = asked.path;
	p->mode = flags & CKPT_SYNC ? IMAGE_SYNC : IMAGE_FORKED;
	p->compress = flags & CKPT_LZ4 ? IMAGE_LZ4 : flags & CKPT_ZSTD ? IMAGE_ZSTD : IMAGE_PLAIN;
	p->incremental = p->identity.base != 0;
	p->track = (flags & CKPT_TRACK) != 0;
	p->sync = !(flags & CKPT_NOFSYNC);
	p->note = note;
	p->note_len = sizeof(*note);
	p->written = image_written;
	p->arg = note;
	p->beside = note->together ? together_beside() : NULL;
	p->claim = note->together ? together_claim : NULL;
}

static void tell_failed(uint32_t id, const struct error *error)
{
	struct proto_ckpt packet;
	report_fill(&packet, PROTO_CKPT_FAILED, id, error);
	link_tell(&packet, sizeof(packet));
}

/* A process that was just rebuilt: a new agent connection, a new segment. */
static void rejoin(const struct rank_note *note)
{
	struct error err = {HALE_OK, ""};
	size_t len;
	const struct link_address *address = image_passed(&len);
	if (address && len >= sizeof(*address))
		link_address_set(address);
	if (address && len >= sizeof(*address) && !note->stop)
		journal_restored(address->journal, note->id);
	if (link_reopen(note->id, note->position, &err) != HALE_OK) {
		log_warn("rank %u can't rejoin its job after the restart: %s", note->rank,
			 err.text);
		_exit(EXIT_UNRECOVERED);
	}
}

static void tell_resumed(const struct rank_note *note, uint64_t pause_ns)
{
	struct error ok = {HALE_OK, ""};
	struct proto_ckpt packet;
	report_fill(&packet, PROTO_CKPT_RESUMED, note->id, &ok);
	packet.pause_ns = pause_ns;
	memcpy(packet.position, note->position, sizeof(packet.position));
	link_tell(&packet, sizeof(packet));
}

/* At this point all of this process's channels are silent. */
static image_return_t image_take(struct rank_note *note, uint64_t *image_ns, struct error *err)
{
	struct image_params params;
	if (note->stop)
		return migrate_stop(&asked, note, sizeof(*note));
	params_fill(&params, note);
	last_id = note->id;
	if (asked.flags & CKPT_NO_IMAGE) {
		last_restored = false;
		return IMAGE_CAPTURED;
	}
	last_restored = true; /* what the image will say */
	image_return_t rc =
	    tree_capture(err) == HALE_OK ? image_capture(&params, image_ns, err) : IMAGE_FAILED;
	if (rc != IMAGE_RESTORED)
		last_restored = false;
	return rc;
}

/* Asked for before the head knew. An image would be of a process without messages, of which nobody
 * would know that it may end. */
static bool has_finalized(struct error *err)
{
	if (atomic_load(&link_self()->mailbox->state) != RANK_FINALIZED)
		return false;
	error_set(err, HALE_ERR_STATE,
		  "the program has called MPI_Finalize, so it is about to end");
	return true;
}

/* The agent has looked from outside before it asked; a child may have been made since. A migration
 * sees to it by itself. */
static bool children_stop(const struct rank_note *note, struct error *err)
{
	struct image_params params;
	if (note->stop)
		return true;
	params_fill(&params, (struct rank_note *)(uintptr_t)note);
	if (trees_are_off() && image_has_children()) {
		error_set(err, HALE_ERR_AGAIN,
			  "it has just started a child process, which no image holds");
		return false;
	}
	return tree_stop(&params, err) == HALE_OK;
}

/* Ranks that have begun since the agent has looked to have something together would have images of
 * different moments. Each says so before it does, so one that has been met by another knows. */
static bool have_met(struct error *err)
{
	const struct link *l = link_self();
	uint32_t count = 0;
	if (asked.flags & (CKPT_TOGETHER | CKPT_STOP))
		return false;
	for (uint32_t p = 0; p < l->nprocesses; p++)
		count += segment_here(l->segment, p) &&
			 atomic_load(&segment_mailbox(l->segment, p)->may_share);
	if (count <= atomic_load(&l->segment->together_known))
		return false;
	error_set(err, HALE_ERR_AGAIN,
		  "ranks of its node have just begun with System V objects, connections or named "
		  "pipes, which they may have together");
	return true;
}

/* The checkpoint was given up. */
static void let_go(void)
{
	tree_release();
	guests_resume(false);
	participants_resume(participants, false);
	atomic_store(&link_self()->mailbox->state, RANK_RUNNING);
}

/* All other threads are parked, this one is inside the guard. */
static void checkpoint_run(uint64_t began_ns)
{
	const uint32_t id = asked.id;
	struct rank_note note = {
	    .id = id, .rank = link_self()->rank, .stop = asked.flags & CKPT_STOP};
	struct error err = {HALE_OK, ""};
	uint64_t image_ns = 0;
	bool fresh = true; /* a new segment */

	if (has_finalized(&err) || have_met(&err) || !children_stop(&note, &err)) {
		last_id = id;
		tell_failed(id, &err);
		return;
	}
	atomic_store(&link_self()->mailbox->state, RANK_CHECKPOINTING);
	if (!guests_prepare(&err)) {
		tree_release();
		guests_resume(false);
		last_id = id;
		atomic_store(&link_self()->mailbox->state, RANK_RUNNING);
		tell_failed(id, &err);
		return;
	}
	if (!participants_suspend(id)) {
		let_go();
		return;
	}
	for (struct ckpt_participant *p = participants; p; p = p->next)
		if (p->save && takes_part(p))
			p->save();
	if (!note.stop)
		journal_cut(id);
	if (!ckpt_is_alone()) {
		count_in(id);
		note.together = together_count(id);
		note.across = (asked.flags & CKPT_ACROSS) != 0;
	}
	if ((note.together &&
	     !together_wait(&link_self()->segment->ckpt_saved, id, note.together)) ||
	    (note.across && !across_wait(id, PROTO_CKPT_STILL))) {
		let_go();
		return;
	}
	streams_position(note.position);
	clocks_save();
	image_return_t rc = image_take(&note, &image_ns, &err);
	if (rc == IMAGE_RESTORED) {
		tree_restored();
		clocks_restored();
		owners_thread_restored();
		rejoin(&note);
		together_restored(&note);
		across_restored(&note);
		began_ns = clock_ns();
		migrate_runs();
	} else if (ckpt_is_alone()) {
		fresh = false;
	} else if (note.stop) {
		fresh = migrate_await_release(id);
	} else {
		count_in_wait(id);
		if (note.together) {
			count_into(&link_self()->segment->together_taken, id);
			together_wait(&link_self()->segment->together_taken, id, note.together);
		}
		if (note.across)
			across_wait(id, PROTO_CKPT_TAKEN);
		tree_release();
		fresh = false;
	}
	link_show_fds();
	guests_resume(rc == IMAGE_RESTORED);
	participants_resume(participants, fresh);
	atomic_store(&link_self()->mailbox->state, RANK_RUNNING);
	if (rc == IMAGE_FAILED)
		tell_failed(id, &err);
	tell_resumed(&note, clock_ns() - began_ns);
}

/* ---- who does it, and when ---- */

static uint32_t wanted(void)
{
	const struct mailbox *m = link_self()->mailbox;
	uint32_t id = atomic_load(&m->ckpt_wanted);
	return id != last_id && id != migrate_last_id() && !given_up(id) ? id : 0;
}

/* The agent writes the next request over this one only when this process has answered it, or after
 * it has said that it was given up: what was read before that is all of one request. */
static void request_take(void)
{
	const struct mailbox *m = link_self()->mailbox;
	do {
		asked.id = wanted();
		asked.base = atomic_load(&m->ckpt_base);
		asked.flags = atomic_load(&m->ckpt_flags);
		memcpy(asked.path, m->ckpt_path, sizeof(asked.path));
		atomic_thread_fence(memory_order_acquire);
	} while (wanted() != asked.id);
}

static void announce(void)
{
	for (struct ckpt_participant *p = participants; p; p = p->next)
		if (p->announce)
			p->announce(asked.base - 1, asked.id);
	migrate_attended(asked.id);
}

static void look(void)
{
	for (struct ckpt_participant *p = participants; p; p = p->next)
		if (p->look)
			p->look();
}

static bool is_round_ahead(void)
{
	return (asked.flags & (CKPT_LIVE | CKPT_STOP)) == CKPT_LIVE;
}

/* A note for the thread that is inside the library: it will do it at its next safe point. */
static void leave_to_others(void)
{
	guard_attention = 1;
	link_wake_self();
}

static bool checkpoint_wanted(void)
{
	uint64_t began_ns = clock_ns();
	request_take();
	uint32_t id = asked.id;
	if (!id && !migrate_hold_wanted()) {
		look();
		return true;
	}
	if (id && asked.flags & CKPT_ANNOUNCE) {
		announce();
		return true;
	}
	int busy = image_park();
	if (busy > 0)
		return false;
	if (!id && busy < 0) {
		migrate_hold_not();
	} else if (!id) {
		migrate_hold(began_ns);
		image_unpark();
	} else if (busy < 0) {
		struct error err;
		error_set(&err, HALE_ERR_TIMEOUT,
			  "a thread of rank %u (pid %d) could not be stopped within 5 s",
			  link_self()->rank, (int)getpid());
		tell_failed(id, &err);
		last_id = id;
	} else if (is_round_ahead()) {
		migrate_round(&asked, began_ns);
		image_unpark();
	} else {
		checkpoint_run(began_ns);
		image_unpark();
	}
	return true;
}

/* One round as the coordinator; the guard keeps our own signal out meanwhile. False: a thread that
 * is inside the library has to do it. Who has the lock may wait for this thread, in a user's
 * operation for a mutex for instance: so it is not waited for, and sees the note when it leaves. */
static bool attend_once(void)
{
	guard_inside = 1;
	if (guard_multiple && !guard_lock_soon()) {
		guard_inside = 0;
		return false;
	}
	guard_attention = 0;
	inject_read_mailbox();
	bool done = checkpoint_wanted();
	if (guard_multiple)
		guard_unlock_slow();
	/* we may stand in the middle of link_sleep, and link_wait_step has said "awake" since: the
	 * wait for the old bell must not go on */
	link_wake_self();
	guard_inside = 0;
	return done;
}

static bool place_take(void)
{
	int was = PLACE_FREE;
	while (!atomic_compare_exchange_weak(&coordinating, &was,
					     was == PLACE_FREE ? PLACE_TAKEN : PLACE_WANTED))
		;
	return was == PLACE_FREE;
}

/* Takes the coordinator's place if it is free. Who finds it taken leaves a note, and the
 * coordinator looks for notes after it has given up the place: so none is lost. What it leaves to
 * a thread inside the library it does itself if that one has been here meanwhile: it may not call
 * the library again for long. */
static void attend(void)
{
	UNCANCELLED; /* all others are stopped */
	int saved_errno = errno;
	do {
		guard_attention = 1;
		if (!place_take())
			break;
		bool done = attend_once();
		int place = atomic_exchange(&coordinating, PLACE_FREE);
		if (!done && place == PLACE_TAKEN) {
			leave_to_others();
			break;
		}
	} while (guard_attention);
	errno = saved_errno;
}

void guard_attend(void)
{
	if (!link_is_ours()) { /* a child of the rank: nothing is asked of it here */
		guard_attention = 0;
		return;
	}
	/* by system call: pthread_sigmask is ours (masks.c) and would leave out our own signals */
	uint64_t all = ~0ull, before;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
	attend();
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

static void on_request(int sig, siginfo_t *info, void *context)
{
	if (info->si_code == SI_TIMER) {
		tick_handle();
		image_restart_syscall(context);
		return;
	}
	/* link_open, or the library call that this interrupts, looks for notes when it is done */
	if (guard_inside || guest_inside || !link_self()->mailbox)
		leave_to_others();
	else
		attend();
	image_restart_syscall(context);
}

void rank_signal_install(void)
{
	struct sigaction sa = {.sa_sigaction = on_request, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigfillset(&sa.sa_mask);
	image_sigaction(PROTO_CKPT_SIGNAL, &sa, NULL);
}
